"""A team on the dev environment: what it gets, what it cannot see, and what it cannot change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from tests.support.recording import DIY, UNKNOWN, Graph, deploy
from tests.support.stackfile import SCRATCH, TEAM, Edit, at, environment_plan, without
from trainyard.catalog.versions import TRAINYARD

REFERENCE = "organization/trainyard/dev"
JOB = "kubernetes:trainer.kubeflow.org/v1alpha1:TrainJob vit-base"


def on(contract: dict[str, Any], *edits: Edit, preview: bool = False) -> Graph:
    """The team's graph on an environment that promises this, with its own settings edited."""

    def changes(values: dict[str, Any]) -> None:
        for edit in edits:
            edit(values[TEAM])

    return deploy(
        "team-vision", changes, references={REFERENCE: {"contract": contract}}, preview=preview
    )


def test_the_graph_is_the_one_that_was_reviewed(
    team: Graph, golden: Callable[[str, Graph], None]
) -> None:
    golden("team-vision", team)


def test_a_team_is_a_namespace_its_claims_and_its_jobs_and_touches_nothing_else(
    team: Graph,
) -> None:
    assert sorted(
        {
            n.kind.rpartition(":")[2]
            for n in team.nodes.values()
            if not n.kind.startswith("trainyard:")
        }
    ) == [
        "Namespace",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "ResourceQuota",
        "StackReference",
        "TrainJob",
        "kubernetes",
    ]
    assert not team.starting("aws:")


def test_a_team_finds_its_cluster_through_the_environments_outputs_only(
    team: Graph, dev: Graph
) -> None:
    [reference] = team.of("StackReference")
    assert reference.inputs == {"name": REFERENCE}
    provider, environments = (
        team["pulumi:providers:kubernetes cluster"],
        dev["pulumi:providers:kubernetes cluster"],
    )
    assert team.waits_for(provider, reference)
    assert provider.inputs == environments.inputs, "the same cluster, by the same kubeconfig"
    assert team.outputs["kubeconfig"] == dev.outputs["kubeconfig"]


def test_a_team_says_in_its_outputs_which_namespace_is_its_own(team: Graph) -> None:
    """`trainyard drain` ends jobs there, and nowhere else."""
    assert team.outputs["namespace"] == "team-vision"


def test_a_team_says_in_its_outputs_which_release_made_it(team: Graph) -> None:
    assert team.outputs["release"] == TRAINYARD


def parsed_by_the_service(name: str) -> dict[str, str]:
    """What Pulumi's own service takes a stack's name for: pulumi 3.259,
    pkg/backend/httpstate/backend.go, parseStackName."""
    parts = name.split("/")
    keys = {1: ["name"], 2: ["owner", "name"], 3: ["owner", "project", "name"]}[len(parts)]
    return dict(zip(keys, parts, strict=True))


def parsed_by_a_diy_backend(name: str) -> dict[str, str]:
    """The same for a file, S3, GCS or Azure backend: pkg/backend/diy/store.go, ParseReference."""
    found = parsed_by_the_service(name)
    if found.get("owner", DIY) != DIY:
        raise ValueError("organization name must be 'organization'")
    return found


@pytest.mark.parametrize(
    ("organization", "parse"), [(DIY, parsed_by_a_diy_backend), ("acme", parsed_by_the_service)]
)
def test_a_team_finds_its_environment_on_every_backend(
    organization: str, parse: Callable[[str], dict[str, str]], contract: dict[str, Any]
) -> None:
    outputs = {f"{organization}/trainyard/dev": {"contract": contract}}
    graph = deploy("team-vision", references=outputs, organization=organization)
    assert parse(graph.of("StackReference")[0].inputs["name"]) == {
        "owner": organization,
        "project": "trainyard",
        "name": "dev",
    }


def test_a_diy_backend_knows_no_other_organization_than_its_own() -> None:
    with pytest.raises(ValueError, match="must be 'organization'"):
        parsed_by_a_diy_backend("acme/trainyard/dev")


def test_a_team_mounts_the_environments_file_system_through_a_volume_of_its_own(
    team: Graph, dev: Graph
) -> None:
    own = team["PersistentVolume team-vision-scratch-volume"].inputs
    theirs = dev["PersistentVolume training-scratch-volume"].inputs
    assert own["spec"]["csi"] == theirs["spec"]["csi"] and own["spec"]["mountOptions"] == ["flock"]
    assert own["metadata"]["name"] != theirs["metadata"]["name"]
    assert own["spec"]["claimRef"] == {"name": SCRATCH, "namespace": "team-vision"}
    assert [c.name for c in team.of("PersistentVolumeClaim")] == ["team-vision-scratch-claim"]


def test_a_team_can_mount_efs_as_well(contract: dict[str, Any]) -> None:
    graph = on(contract, at("jobs.vit-base.storage.home", {"path": "/home/vision"}))
    csi = graph["PersistentVolume team-vision-home-volume"].inputs["spec"]["csi"]
    assert (csi["driver"], csi["volumeHandle"]) == ("efs.csi.aws.com", "home-id")


def test_a_team_has_its_share_of_the_gpus_and_no_more(
    team: Graph, contract: dict[str, Any]
) -> None:
    quota = team["ResourceQuota workspace-gpus"].inputs
    assert quota["spec"] == {"hard": {"requests.nvidia.com/gpu": "16"}}
    assert quota["metadata"]["namespace"] == "team-vision"
    assert not on(contract, without("max_gpus")).of("ResourceQuota")


def test_a_teams_namespace_refuses_pods_that_reach_the_host(team: Graph) -> None:
    metadata = team["Namespace workspace"].inputs["metadata"]
    assert metadata == {
        "name": "team-vision",
        "labels": {"pod-security.kubernetes.io/enforce": "baseline"},
    }


def test_a_teams_job_waits_for_its_namespace_and_claims_and_ends_before_them(team: Graph) -> None:
    for earlier in ("Namespace workspace", "PersistentVolumeClaim team-vision-scratch-claim"):
        assert team.waits_for(team[JOB], team[earlier])
    job = team[JOB].inputs
    assert job["metadata"]["namespace"] == "team-vision"
    assert job["spec"]["runtimeRef"] == {"name": "torch-distributed-resilient"}
    assert (
        team.outputs["jobs"]["vit-base"]["describe"]
        == "kubectl -n team-vision describe trainjob vit-base"
    )


def test_one_node_needs_no_fabric(team: Graph) -> None:
    resources = team[JOB].inputs["spec"]["trainer"]["resourcesPerNode"]
    assert resources["limits"] == {"nvidia.com/gpu": "8", "memory": "1272Gi"}


@pytest.mark.parametrize("preview", [False, True])
def test_a_team_is_refused_on_an_environment_of_another_stack_file(
    contract: dict[str, Any], preview: bool
) -> None:
    other = environment_plan(at("zone", "ap-northeast-2c")).contract
    says = "dev is deployed from another stack file .*zone is .*2a. here and .*2c. there"
    with pytest.raises(pulumi.RunError, match=says):
        on({**contract, **other}, preview=preview)


@pytest.mark.parametrize("preview", [False, True])
def test_a_team_runs_on_an_environment_that_differs_in_what_it_does_not_use(
    contract: dict[str, Any], team: Graph, preview: bool
) -> None:
    """A pool that none of its jobs names may grow."""
    other = environment_plan(at("pools.h100.max_nodes", 3)).contract
    graph = on({**contract, **other}, preview=preview)
    assert graph[JOB].inputs == team[JOB].inputs


def test_a_team_is_refused_on_an_environment_that_promises_nothing() -> None:
    for outputs in ({}, {"contract": {}}):
        with pytest.raises(pulumi.RunError, match="is not deployed.*`pulumi up -s dev`"):
            deploy("team-vision", references={REFERENCE: outputs})
    for contract in ({"version": 1}, {"version": 2}, {"version": 3}, {"version": [2]}, {"zone": 7}):
        with pytest.raises(pulumi.RunError, match=r"has a contract that cannot be read: .*Fix: "):
            deploy("team-vision", references={REFERENCE: {"contract": contract}})


def test_a_preview_of_a_team_knows_all_but_what_the_cluster_will_say(
    contract: dict[str, Any], team: Graph
) -> None:
    preview = on(contract, preview=True)
    assert preview.nodes.keys() == team.nodes.keys()
    assert UNKNOWN not in str(preview[JOB].inputs["spec"])


def test_the_environment_does_not_know_its_teams(dev: Graph) -> None:
    assert not dev.of("StackReference")
    assert "vision" not in dev.golden()


def test_a_team_with_errors_creates_nothing(contract: dict[str, Any]) -> None:
    with pytest.raises(
        pulumi.RunError, match=r"must need at most the 4 GPUs of team.max_gpus; got 1, which need 8"
    ):
        on(contract, at("max_gpus", 4))


def test_a_team_can_be_previewed_before_its_environment_exists(team: Graph) -> None:
    """A pull request needs no cluster: everything is listed, and what only AWS can say is
    unknown."""
    preview = deploy("team-vision", references={REFERENCE: {}}, preview=True)
    assert preview.nodes.keys() == team.nodes.keys()
    assert preview[JOB].inputs["spec"] == team[JOB].inputs["spec"]
    assert (
        preview["PersistentVolume team-vision-scratch-volume"].inputs["spec"]["csi"]["volumeHandle"]
        == UNKNOWN
    )
