"""Queues for the jobs of teams: what the environment makes for all, what for each, and what a team's
stack says of its jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.graph_rules import OF_EVERY_GRAPH, Rule
from tests.support.graphs import environment
from tests.support.recording import Graph, deploy
from tests.support.stackfile import ENVIRONMENT, Edit, at
from tests.support.teams import (
    both,
    by_name,
    checkout,
    environment_of,
    listed,
    team_of,
    with_queues,
)
from trainyard.catalog.versions import KUEUE, TRAINER_RELEASES
from trainyard.objects.teams.queue_admission import POLICY
from trainyard.plan import EnvironmentPlan
from trainyard.plans.jobs import JobPlan
from trainyard.reports import plan as report


def queued_environment(*edits: Edit) -> Graph:
    return environment(with_queues, *edits)


@pytest.fixture(scope="module")
def queued() -> Graph:
    return queued_environment()


def spec(graph: Graph, resource: str) -> Any:
    return graph[resource].inputs["spec"]


def kueue(graph: Graph) -> Any:
    """What Kueue reads when it starts."""
    values = graph["Release kueue"].inputs["values"]
    return yaml.safe_load(values["managerConfig"]["controllerManagerConfigYaml"])


def test_an_environment_without_queues_has_nothing_of_them() -> None:
    def only_teams(values: dict[str, Any]) -> None:
        listed(values[ENVIRONMENT])

    graph = deploy("dev", only_teams)
    assert not graph.starting("trainyard:queues:") and "kueue" not in graph.golden()
    assert POLICY not in graph.golden() and POLICY in queued_environment().golden()


def test_a_flavor_has_the_label_and_the_taint_of_its_pool(queued: Graph) -> None:
    template = spec(queued, "NodePool g6e-pool")["template"]
    flavor = spec(queued, "ResourceFlavor flavor-g6e")
    assert flavor["nodeLabels"].items() <= template["metadata"]["labels"].items()
    assert flavor["nodeTaints"] == template["spec"]["taints"]
    tolerated = {each["key"] for each in flavor["tolerations"]}
    assert {taint["key"] for taint in flavor["nodeTaints"]} <= tolerated


def quotas(graph: Graph, resource: str) -> dict[str, dict[str, str]]:
    [group] = spec(graph, resource)["resourceGroups"]
    assert group["coveredResources"] == ["nvidia.com/gpu"]
    return {
        flavor["name"]: {k: v for k, v in flavor["resources"][0].items() if k != "name"}
        for flavor in group["flavors"]
    }


def test_the_quotas_are_whole_nodes_and_add_up_to_the_pools(queued: Graph) -> None:
    """g6e has 4 nodes of 8 GPUs, of which vision is guaranteed 2; h100 has 2."""
    assert quotas(queued, "Cohort queues-cohort") == {
        "g6e": {"nominalQuota": "16"},
        "h100": {"nominalQuota": "16"},
    }
    assert quotas(queued, "ClusterQueue team-vision-share") == {
        "g6e": {"nominalQuota": "16"},
        "h100": {"nominalQuota": "0"},
    }
    assert quotas(queued, "ClusterQueue team-nlp-share") == {
        "g6e": {"nominalQuota": "0", "borrowingLimit": "16"},
        "h100": {"nominalQuota": "0"},
    }


def test_a_team_that_keeps_its_nodes_lends_none() -> None:
    graph = queued_environment(at("teams.vision.lends_nodes", False))
    assert quotas(graph, "ClusterQueue team-vision-share")["g6e"]["lendingLimit"] == "0"


def test_the_nodes_of_a_static_pool_are_those_that_it_keeps() -> None:
    """A warm spare is for a broken node, and no job counts on it."""
    graph = queued_environment(at("pools.g6e.replicas", 3), at("pools.g6e.warm_spares", 1))
    assert quotas(graph, "Cohort queues-cohort")["g6e"] == {"nominalQuota": "8"}


def test_by_topology_flavors_name_the_layers_and_runtimes_prefer_the_nearest() -> None:
    static = (at("pools.g6e.replicas", 4), at("pools.h100.replicas", 2))
    graph = queued_environment(at("queues.topology", "preferred"), *static)
    layers = [f"topology.k8s.aws/network-node-layer-{layer}" for layer in (1, 2, 3)]
    topology = graph["Topology queues-topology"]
    assert topology.inputs["spec"] == {"levels": [{"nodeLabel": layer} for layer in layers]}
    for pool in ("g6e", "h100"):
        named = spec(graph, f"ResourceFlavor flavor-{pool}")["topologyName"]
        assert named == topology.inputs["metadata"]["name"]
    for node in graph.of("kubernetes:trainer.kubeflow.org/v1alpha1:ClusterTrainingRuntime"):
        jobs = node.inputs["spec"]["template"]["spec"]["replicatedJobs"]
        [training] = [job for job in jobs if job["name"] == "node"]
        pod = training["template"]["spec"]["template"]
        wanted = {"kueue.x-k8s.io/podset-preferred-topology": layers[-1]}
        assert pod["metadata"]["annotations"] == wanted, node.name


def test_without_topology_there_is_no_word_of_it(queued: Graph) -> None:
    assert "topology.k8s.aws" not in queued.golden() and "topologyName" not in queued.golden()


def test_the_plan_says_which_pools_are_placed_in_the_network(tmp_path: Path) -> None:
    static = (at("pools.g6e.replicas", 4), at("pools.h100.replicas", 2))
    edits = both(with_queues, at("queues.topology", "preferred"), *static)
    folder = checkout(tmp_path, edits, by_name)
    said = "nodes are chosen by their place in the network of AWS: pools g6e, h100"
    assert said in " ".join(report.text(environment_of(folder)).split())


OWN = {"policy": "LowerPriority", "maxPriorityThreshold": -1}
NOBODY = {"policy": "Never"}


@pytest.mark.parametrize(
    ("said", "fair", "within", "reclaim", "borrowing"),
    [
        ("urgency_and_guarantees", False, "LowerPriority", "Any", OWN),
        ("urgency_and_guarantees", True, "LowerPriority", "Any", NOBODY),
        ("guarantees", False, "Never", "Any", NOBODY),
        ("never", False, "Never", "Never", NOBODY),
    ],
)
def test_preemption_says_who_stops_for_whom(
    said: str, fair: bool, within: str, reclaim: str, borrowing: dict[str, Any]
) -> None:
    graph = queued_environment(at("queues", {"preemption": said, "fair_sharing": fair}))
    assert spec(graph, "ClusterQueue team-vision-share")["preemption"] == {
        "withinClusterQueue": within,
        "reclaimWithinCohort": reclaim,
        "borrowWithinCohort": borrowing,
    }


def test_kueue_gives_a_gang_its_time_and_tries_again_for_ever(queued: Graph) -> None:
    """210 s that a slow node takes, five times, and an hour in which a recipe fetches its model."""
    waits = kueue(queued)["waitForPodsReady"]
    assert waits["timeout"] == waits["recoveryTimeout"] == "78m"
    assert "backoffLimitCount" not in waits["requeuingStrategy"]
    assert "fairSharing" not in kueue(queued)


@pytest.mark.parametrize(
    ("edit", "seconds"),
    [
        (at("pools.h100.replicas", 2), 600),
        (
            both(
                at("pools.h100.capacity", "reservation"),
                at("pools.h100.reservation", {"id": "cr-0123456789abcdef0", "instances": 2}),
            ),
            600,
        ),
        (at("pools.h100.max_nodes", 1), 3600),
    ],
    ids=["nodes that stand", "a reservation", "nodes that come when asked"],
)
def test_nodes_that_are_paid_anyway_wait_ten_minutes_at_most_for_the_next_try(
    edit: Edit, seconds: int
) -> None:
    """Kueue counts the tries of a job as long as it lives: a job sent long before a block began left it idle for up to
    an hour."""
    waits = kueue(queued_environment(edit))["waitForPodsReady"]
    assert waits["requeuingStrategy"]["backoffMaxSeconds"] == seconds


def test_a_pool_that_stands_waits_for_images_only_and_a_recipe_for_its_model() -> None:
    kept = queued_environment(at("pools.g6e.replicas", 2), at("pools.h100.replicas", 2))
    assert kueue(kept)["waitForPodsReady"]["timeout"] == "65m"
    off = queued_environment(at("pools.g6e.replicas", 0), at("pools.h100.replicas", 0))
    assert kueue(off)["waitForPodsReady"] == kueue(kept)["waitForPodsReady"]
    plain = queued_environment(at("trainer.runtimes", ["torch-distributed"]))
    assert kueue(plain)["waitForPodsReady"]["timeout"] == "18m"


def test_a_gang_that_loses_a_node_of_a_pool_that_stands_has_the_time_of_a_new_node() -> None:
    """With the time for images it was stopped, and went behind all others, while its new node booted."""
    kept = queued_environment(
        at("pools.g6e.replicas", 2),
        at("pools.h100.replicas", 2),
        at("trainer.runtimes", ["torch-distributed"]),
        at("training_operator", {"version": "1.8.1"}),
    )
    waits = kueue(kept)["waitForPodsReady"]
    assert (waits["timeout"], waits["recoveryTimeout"]) == ("5m", "18m")
    told = json.loads(kept["ConfigMap gangs-files"].inputs["data"]["settings.json"])
    assert told["ready_seconds"] == 18 * 60


def test_kueue_manages_the_jobs_of_teams_and_no_others(queued: Graph) -> None:
    configured = kueue(queued)
    assert configured["manageJobsWithoutQueueName"] is True
    assert configured["managedJobsNamespaceSelector"] == {
        "matchExpressions": [{"key": "trainyard.io/team", "operator": "Exists"}]
    }
    assert configured["integrations"]["frameworks"] == [
        "trainer.kubeflow.org/trainjob",
        "jobset.x-k8s.io/jobset",
    ]
    assert kueue(queued_environment(at("queues.fair_sharing", True)))["fairSharing"]


def test_every_resource_of_a_job_is_counted_or_said_not_to_be(
    queued: Graph, tmp_path: Path
) -> None:
    """Kueue starts no job that requests anything else."""
    job = team_of(checkout(tmp_path, with_queues, by_name)).jobs["vit-base"]
    known = (*kueue(queued)["resources"]["excludeResourcePrefixes"], "nvidia.com/gpu")
    requested = job.spec["trainer"]["resourcesPerNode"]["requests"]
    assert [name for name in requested if not name.startswith(known)] == []


def test_the_release_is_the_one_that_fits_the_trainer(queued: Graph) -> None:
    release = queued["Release kueue"].inputs
    assert release["chart"] == "oci://registry.k8s.io/kueue/charts/kueue"
    assert release["version"] == KUEUE
    image = release["values"]["controllerManager"]["manager"]["image"]
    assert (image["repository"], image["tag"]) == ("registry.k8s.io/kueue/kueue", f"v{KUEUE}")


def test_a_queue_stands_before_anybody_enters_and_goes_while_kueue_runs(queued: Graph) -> None:
    release, share = queued["Release kueue"], queued["ClusterQueue team-vision-share"]
    queue = queued["LocalQueue team-vision-queue"]
    assert queued.waits_for(share, release) and queued.waits_for(queue, share)
    for shared in ("ResourceFlavor flavor-g6e", "Cohort queues-cohort"):
        assert queued.waits_for(share, queued[shared])
    assert queued.waits_for(queued["AccessEntry team-vision-deployer"], queue)
    assert queue.inputs["metadata"] == {"name": "vision", "namespace": "team-vision"}


def test_urgencies_are_classes_and_a_namespace_lists_those_of_its_team() -> None:
    graph = queued_environment(at("teams.vision.max_urgency", "normal"))
    classes = {
        n.inputs["metadata"]["name"]: n.inputs["value"] for n in graph.of("WorkloadPriorityClass")
    }
    assert classes == {"low": 100, "normal": 500, "high": 900}
    annotations = graph["Namespace team-vision"].inputs["metadata"]["annotations"]
    assert annotations["trainyard.io/urgencies"] == "low,normal"


@pytest.mark.parametrize("rule", OF_EVERY_GRAPH, ids=lambda rule: rule.__name__)
def test_a_stack_with_queues_keeps_the_rules_of_every_graph(queued: Graph, rule: Rule) -> None:
    assert [*rule(queued)] == []


def test_an_entry_more_changes_its_own_resources_only(queued: Graph) -> None:
    more = queued_environment(
        at("teams.audio", {"deployer": "arn:aws:iam::111122223333:role/audio"})
    )
    before, after = (json.loads(graph.golden()) for graph in (queued, more))
    added = [each for each in after if each not in before]
    assert [each for each in before if each not in after] == []
    assert all("team-audio" in each["name"] for each in added)


def test_a_job_waits_in_the_queue_of_its_team_and_is_the_same_run(tmp_path: Path) -> None:
    plain = team_of(checkout(tmp_path, listed, by_name)).jobs["vit-base"]
    job = team_of(checkout(tmp_path, with_queues, by_name)).jobs["vit-base"]
    assert job.labels == {
        "kueue.x-k8s.io/queue-name": "vision",
        "kueue.x-k8s.io/priority-class": "normal",
    }
    assert (job.run, job.spec) == (plain.run, plain.spec)
    urgent = both(by_name, at("jobs.vit-base.urgency", "high"))
    job = team_of(checkout(tmp_path, with_queues, urgent)).jobs["vit-base"]
    assert job.labels["kueue.x-k8s.io/priority-class"] == "high" and job.run == plain.run


@pytest.mark.parametrize(
    ("most", "written"), [("low", "low"), ("normal", "normal"), ("high", "normal")]
)
def test_a_job_without_urgency_has_one_that_its_namespace_admits(
    most: str, written: str, tmp_path: Path
) -> None:
    """With `max_urgency: low` the API server refused every job that says none, after a clean preview."""
    limited = both(with_queues, at("teams.vision.max_urgency", most))
    job = team_of(checkout(tmp_path, limited, by_name)).jobs["vit-base"]
    assert job.labels["kueue.x-k8s.io/priority-class"] == written


def test_each_run_of_a_sweep_waits_in_the_queue_of_its_team(tmp_path: Path) -> None:
    def swept(settings: dict[str, Any]) -> None:
        job = settings["jobs"]["vit-base"]
        job["env"] = {"SEED": "{seed}"}
        job["sweep"] = {"over": {"seed": [1, 2]}}
        if "checkpoints" in job:
            job["checkpoints"] = {**job["checkpoints"], "directory": "own/{seed}"}

    jobs = team_of(checkout(tmp_path, with_queues, both(by_name, swept))).jobs
    queues = {name: job.labels["kueue.x-k8s.io/queue-name"] for name, job in jobs.items()}
    assert queues == {"vit-base-1": "vision", "vit-base-2": "vision"}


ZEROS = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: theirs}
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    numNodes: 2
    image: public.ecr.aws/deep-learning-containers/train:1
    command: [bash, -c, "torchrun train.py"]
    args: []
    env: [{name: PET_RDZV_CONF, value: timeout=86400}, {name: EMPTY, value: ""}, {name: SET, value: "0"}]
    resourcesPerNode: {limits: {nvidia.com/gpu: 8}}
  runtimePatches:
    - manager: example.com/me
      trainingRuntimeSpec:
        template:
          spec:
            replicatedJobs:
              - name: node
                template:
                  spec:
                    template:
                      spec:
                        nodeSelector: {}
                        volumes: [{name: tmp, emptyDir: {medium: ""}}]
                        containers:
                          - name: node
                            volumeMounts: [{name: tmp, mountPath: /scratch, readOnly: false, subPath: ""}]
                            securityContext: {runAsUser: 0, allowPrivilegeEscalation: false}
"""


@pytest.mark.parametrize("release", TRAINER_RELEASES)
def test_a_queued_job_has_no_zero_value_that_kueue_would_drop(tmp_path: Path, release: str) -> None:
    """Trainer 2.3 takes the loss for a change, and the job never starts. In 2.1 nothing is compared."""
    old = release == "2.1.0"
    text = ZEROS[: ZEROS.index("  runtimePatches")] if old else ZEROS
    (tmp_path / "theirs.yaml").write_text(text)
    team = both(
        by_name,
        at("jobs.vit-base.env", {"EMPTY": "", "SET": "0"}),
        at("jobs.theirs", {"manifest": "theirs.yaml", "pool": "g6e"}),
    )

    def jobs(edit: Edit) -> tuple[JobPlan, JobPlan]:
        released = both(edit, at("trainer.version", release))
        found = team_of(checkout(tmp_path, released, team)).jobs
        return found["vit-base"], found["theirs"]

    plain, sent = jobs(listed), jobs(with_queues)
    assert [job.run for job in sent] == [job.run for job in plain]
    assert {"name": "EMPTY", "value": ""} in plain[0].spec["trainer"]["env"]
    assert plain[1].spec == yaml.safe_load(text)["spec"]
    for job in sent:
        empty = {"name": "EMPTY", "value": ""} if old else {"name": "EMPTY"}
        assert empty in job.spec["trainer"]["env"]
        assert {"name": "SET", "value": "0"} in job.spec["trainer"]["env"]
    assert ("args" in sent[1].spec["trainer"]) is old
    if not old:
        [patch] = sent[1].spec["runtimePatches"]
        [job] = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
        assert job["template"]["spec"]["template"]["spec"] == {
            "volumes": [{"name": "tmp", "emptyDir": {}}],
            "containers": [
                {
                    "name": "node",
                    "volumeMounts": [{"name": "tmp", "mountPath": "/scratch"}],
                    "securityContext": {"runAsUser": 0, "allowPrivilegeEscalation": False},
                }
            ],
        }


def test_the_plan_says_what_each_team_is_guaranteed_and_can_have(tmp_path: Path) -> None:
    made = environment_of(checkout(tmp_path, with_queues, by_name))
    assert isinstance(made, EnvironmentPlan)
    lines = [" ".join(line.split()) for line in report.text(made).splitlines()]
    at = lines.index("queue pool guaranteed GPUs possible GPUs")
    assert lines[at + 1 : at + 5] == [
        "vision g6e 16 32",
        "vision h100 0 16",
        "nlp g6e 0 16",
        "nlp h100 0 16",
    ]
    assert any(line.startswith("Kueue ") for line in lines)
    assert "a gang that has not got all its pods after 78 minutes" in " ".join(lines)
