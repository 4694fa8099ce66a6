"""Several environments behind one: what the manager and its worker make, and what stays as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from tests.support.dispatching import (
    CLUSTER,
    MANAGER,
    ROLE,
    TEAM,
    WORKER,
    checkout,
    manager_graph,
    planned,
)
from tests.support.recording import UNKNOWN, Graph, deploy, stack_values
from tests.support.stackfile import TEAM as OF_TEAM
from tests.support.stackfile import without
from tests.support.teams import by_name
from trainyard.objects.jobs.pod_template import POOL
from trainyard.objects.programs.dispatch import APP, CHECK
from trainyard.objects.queues.queues import DISPATCHER, MANAGERS, NAMESPACE
from trainyard.objects.teams.queue_admission import POLICY
from trainyard.plan import TeamPlan

CLASSES = ("Dispatch", "Passes", "Manager")


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return manager_graph(checkout(tmp_path_factory.mktemp("checkout")), CLUSTER)


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return deploy(WORKER, folder=checkout(tmp_path_factory.mktemp("checkout")))


def kueue(graph: Graph) -> Any:
    values = graph["Release kueue"].inputs["values"]
    return yaml.safe_load(values["managerConfig"]["controllerManagerConfigYaml"])


def test_queues_without_workers_and_manager_have_nothing_of_it(tmp_path: Path) -> None:
    folder = checkout(tmp_path, worker=without("queues.manager"))
    plain = deploy(WORKER, folder=folder)
    assert not [each for each in plain.nodes.values() if each.kind.endswith(CLASSES)]
    assert "multiKueue" not in kueue(plain) and MANAGERS not in plain.golden()
    assert "queues_role" not in plain.outputs


def test_each_queue_waits_for_the_workers(manager: Graph) -> None:
    for team in ("vision", "nlp"):
        share = manager[f"ClusterQueue team-{team}-share"]
        assert share.inputs["spec"]["admissionChecksStrategy"] == {
            "admissionChecks": [{"name": CHECK}]
        }
        for label in ("AdmissionCheck dispatch-check", "MultiKueueCluster worker-tokyo"):
            assert manager.waits_for(share, manager[label])
    assert kueue(manager)["multiKueue"] == {"origin": MANAGER}


def test_the_pass_is_empty_and_says_where_the_cluster_is(manager: Graph) -> None:
    """Nothing that opens a cluster stands in the state."""
    secret = manager["Secret pass-tokyo"].inputs
    assert secret["stringData"]["$secret"] == {
        "cluster": "tokyo-cluster",
        "server": "https://tokyo",
        "authority": "Y2E=",
    }
    assert secret["metadata"] == {"name": "worker-tokyo", "namespace": NAMESPACE}


def test_the_program_reads_and_writes_the_passes_and_no_other_secret(manager: Graph) -> None:
    [rule] = manager["Role dispatch-renews"].inputs["rules"]
    assert rule["resourceNames"] == ["worker-tokyo"] and rule["verbs"] == ["get", "patch"]
    assert manager["Role dispatch-renews"].inputs["metadata"]["namespace"] == NAMESPACE
    own = [each.kind for each in manager.nodes.values() if each.name.startswith("dispatch-passes")]
    assert not [kind for kind in own if "rbac" in kind]


def test_its_role_has_no_policy_and_is_of_use_to_its_own_pod_only(manager: Graph) -> None:
    role = manager.one("aws:iam/role:Role", "dispatch")
    [statement] = json.loads(role.inputs["assumeRolePolicy"])["Statement"]
    said = statement["Condition"]["StringEquals"]
    assert said["aws:RequestTag/kubernetes-namespace"] == APP
    assert said["aws:RequestTag/kubernetes-service-account"] == APP
    attached = [*manager.of("RolePolicy"), *manager.of("RolePolicyAttachment")]
    assert not [each for each in attached if each.name.startswith("dispatch")]
    deployment = manager["Deployment dispatch-passes"]
    assert manager.waits_for(deployment, manager["PodIdentityAssociation dispatch"])
    assert manager.outputs["queues_role"] == "arn:aws:iam:::dispatch"


def test_a_preview_needs_no_worker_and_an_update_does(tmp_path: Path) -> None:
    folder = checkout(tmp_path)
    graph = deploy(
        MANAGER, folder=folder, references={f"organization/trainyard/{WORKER}": {}}, preview=True
    )
    said = graph["Secret pass-tokyo"].inputs["stringData"]
    assert said == UNKNOWN or UNKNOWN in str(said)
    with pytest.raises(pulumi.RunError, match="run `pulumi up -s tokyo` first"):
        manager_graph(folder)


def test_the_manager_enters_a_worker_with_its_own_group_after_its_rights(worker: Graph) -> None:
    entry = worker["AccessEntry queue-manager"]
    assert entry.inputs["principalArn"] == ROLE
    assert entry.inputs["kubernetesGroups"] == [MANAGERS]
    for label in (
        "ClusterRoleBinding queue-manager-sees",
        "RoleBinding queue-manager-starts-vision",
        "RoleBinding queue-manager-starts-nlp",
    ):
        assert worker.waits_for(entry, worker[label])
    bound = worker["RoleBinding queue-manager-starts-vision"]
    assert bound.inputs["metadata"]["namespace"] == TEAM
    assert worker.waits_for(bound, worker["Namespace team-vision"])


def test_only_a_worker_lets_the_manager_make_a_job_a_part_of_a_workload(
    worker: Graph, manager: Graph
) -> None:
    for graph, said in ((worker, True), (manager, False)):
        spec = graph["ValidatingAdmissionPolicy teams-queue"].inputs["spec"]
        assert graph["ValidatingAdmissionPolicy teams-queue"].inputs["metadata"]["name"] == POLICY
        assert (MANAGERS in json.dumps(spec)) is said


def test_a_job_of_a_team_is_left_to_kueue_and_names_no_zone(tmp_path: Path) -> None:
    folder = checkout(tmp_path)
    values = stack_values("team-vision")
    by_name(values[OF_TEAM])
    job = values[OF_TEAM]["jobs"]["vit-base"]
    job.pop("checkpoints", None)
    job["image"] = "registry.example.com/vision/a:1"
    job |= {"allow_no_checkpoint": True}
    (folder / "Pulumi.team-vision.yaml").write_text(yaml.safe_dump({"config": values}))
    plan = planned("team-vision", folder).accepted()
    assert isinstance(plan, TeamPlan)
    spec = plan.jobs["vit-base"].spec
    assert spec["managedBy"] == DISPATCHER
    assert "topology.kubernetes.io/zone" not in json.dumps(spec)
    assert POOL in json.dumps(spec)
