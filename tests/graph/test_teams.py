"""Teams that the environment lists: what it makes for each, and what the stack of one makes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pulumi
import pytest

from stacks import pace
from tests.support.contracts import alone, contract_of
from tests.support.recording import UNKNOWN, Graph, Node, deploy
from tests.support.stackfile import ENVIRONMENT, Edit, at
from tests.support.teams import DEPLOYER, ROLE, both, by_name, checkout, listed
from trainyard.catalog import versions
from trainyard.objects.teams.team_network import Ranges, policy_spec
from trainyard.objects.teams.teams import PARAMETER_BYTES, REACHED_BYTES

NAME = "/trainyard/dev/teams/vision"


def environment(*edits: Edit) -> Graph:
    def changes(values: dict[str, Any]) -> None:
        for edit in (listed, *edits):
            edit(values[ENVIRONMENT])

    return deploy("dev", changes)


@pytest.fixture(scope="module")
def with_teams() -> Graph:
    return environment()


def published(graph: Graph, team: str = "vision") -> str:
    """The contract of a team, as AWS stores it."""
    return graph[f"Parameter team-{team}"].inputs["insecureValue"]


def of_team(graph: Graph, team: str) -> dict[str, Node]:
    """Resources of one team, by type and name; components stand for nothing."""
    return {
        str(node): node
        for node in graph.nodes.values()
        if not node.kind.startswith("trainyard:") and f"team-{team}" in node.name
    }


def test_a_team_is_its_own_resources_and_changes_no_other(with_teams: Graph, dev: Graph) -> None:
    """An entry more is k resources more, and none of the others is touched."""
    more = environment(at("teams.audio", {"deployer": f"{ROLE}/audio"}))
    before, after = (json.loads(graph.golden()) for graph in (with_teams, more))
    added = [each for each in after if each not in before]
    assert [each for each in before if each not in after] == []
    assert {f"{each['type']} {each['name']}" for each in added if "team-audio" in each["name"]} == {
        f"{each['type']} {each['name']}" for each in added
    }
    assert len(of_team(more, "audio")) == 1 + 2 * 2 + 2 + 1 + 1 + 1 + 1
    """Namespace, two stores, quota and smallest requests, network policy, binding, entry,
    contract."""


def test_what_is_made_for_a_team_in_aws_carries_its_name_and_its_tags() -> None:
    graph = environment(
        at("tags", {"cost-center": "1", "owner": "all"}),
        at("teams.vision.tags", {"cost-center": "4711"}),
        at("teams.vision.s3_reads", ["s3://results/vision/"]),
        at("teams.vision.stores", ["home"]),
        at("storage.home.teams", "apart"),
    )
    tagged = {
        label: node.inputs["tags"]
        for label, node in of_team(graph, "vision").items()
        if node.kind.startswith("aws:") and "tags" in node.inputs
    }
    assert {label.split()[0].rpartition(":")[2] for label in tagged} == {
        "AccessEntry",
        "AccessPoint",
        "Parameter",
        "PodIdentityAssociation",
        "Role",
    }
    for label, tags in tagged.items():
        own = (tags["trainyard:team"], tags["cost-center"], tags["owner"])
        assert own == ("vision", "4711", "all"), label
    others = graph["Parameter team-nlp"].inputs["tags"]
    assert (others["trainyard:team"], others["cost-center"]) == ("nlp", "1")
    assert "trainyard:team" not in graph["Vpc network"].inputs["tags"]


def test_a_role_that_nobody_has_is_not_bound(with_teams: Graph) -> None:
    """Of a team with everybody, all three are; of one with a deployer only, the one."""
    everybody = {"members": [f"{ROLE}/m"], "viewers": [f"{ROLE}/v"]}
    more = environment(
        at("teams.audio", {"deployer": f"{ROLE}/audio", **everybody}),
        at("teams.speech", {"deployer": f"{ROLE}/speech"}),
    )
    bound = [node.name for node in more.of("RoleBinding")]
    assert [name for name in bound if "audio" in name] == [
        f"team-audio-{role}s" for role in ("deployer", "member", "viewer")
    ]
    assert [name for name in bound if "speech" in name] == ["team-speech-deployers"]


def test_a_team_is_asked_for_before_the_next_one_is_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hundred teams that are asked for at once take 70 MiB more."""
    monkeypatch.setattr(pace, "PATIENCE", 60)
    names = [node.name for node in environment().nodes.values()]
    assert names.index("team-nlp-deployer") < names.index("team-vision")


def test_teams_change_the_policy_engine_of_the_cni_and_nothing_else(
    dev: Graph, with_teams: Graph
) -> None:
    before, after = (json.loads(graph.golden()) for graph in (dev, with_teams))
    changed = [each["name"] for each in before if each not in after]
    assert changed == ["vpc-cni"] and not dev.starting("trainyard:teams:")
    engines = [
        json.loads(graph["Addon vpc-cni"].inputs["configurationValues"]).pop(
            "enableNetworkPolicy", None
        )
        for graph in (dev, with_teams)
    ]
    assert engines == [None, "true"]


def test_a_team_with_parts_of_buckets_has_a_role_and_is_otherwise_as_before(
    with_teams: Graph,
) -> None:
    more = environment(at("teams.vision.s3_writes", ["s3://results/vision/"]))
    before, after = (json.loads(graph.golden()) for graph in (with_teams, more))
    new = {each["name"] for each in after} - {each["name"] for each in before}
    changed = {f"{each['type']} {each['name']}" for each in before if each not in after}
    assert new == {"team-vision-pods", "team-vision-pods-s3"}
    assert {each for each in changed if "AccessEntry" not in each} == {
        "kubernetes:networking.k8s.io/v1:NetworkPolicy team-vision-network"
    }
    """Entries wait for the role; their inputs stay."""
    association = more["PodIdentityAssociation team-vision-pods"]
    assert association.inputs["namespace"] == "team-vision"
    assert more.waits_for(more["AccessEntry team-vision-deployer"], association)
    trust = json.loads(more["Role team-vision-pods"].inputs["assumeRolePolicy"])
    tags = trust["Statement"][0]["Condition"]["StringEquals"]
    assert tags["aws:RequestTag/kubernetes-namespace"] == "team-vision"
    policy = json.loads(more["RolePolicy team-vision-pods-s3"].inputs["policy"])
    assert "arn:aws:s3:::results/vision/*" in str(policy)


def test_the_network_policy_names_the_ranges_of_the_cluster(with_teams: Graph) -> None:
    policy = with_teams["NetworkPolicy team-vision-network"].inputs
    assert policy["metadata"] == {"name": "network", "namespace": "team-vision"}
    ranges = Ranges(vpc=("10.0.0.0/16",), services="172.20.0.0/16")
    assert policy["spec"] == policy_spec(ranges, pod_identity=False)
    assert with_teams["NetworkPolicy team-nlp-network"].inputs["spec"] == policy["spec"]


def test_what_holds_for_all_teams_exists_once(with_teams: Graph) -> None:
    assert [n.name for n in with_teams.of("ClusterRole")] == [
        f"teams-{role}" for role in ("deployer", "everybody", "member", "viewer")
    ]
    bound = [n.name for n in with_teams.of("ValidatingAdmissionPolicyBinding")]
    assert bound == ["one-run", "teams-jobs", "teams-pods"]


def test_a_namespace_says_whose_it_is_and_what_its_images_are(with_teams: Graph) -> None:
    metadata = with_teams["Namespace team-vision"].inputs["metadata"]
    assert metadata == {
        "name": "team-vision",
        "labels": {
            "pod-security.kubernetes.io/enforce": "baseline",
            "trainyard.io/team": "vision",
        },
        "annotations": {"trainyard.io/image-prefixes": "public.ecr.aws/deep-learning-containers/"},
    }
    assert "annotations" not in with_teams["Namespace team-nlp"].inputs["metadata"]


def test_a_namespace_lists_the_priorities_that_its_team_may_give() -> None:
    allowed = at("teams.vision.allowed_priorities", ["high"])
    graph = environment(at("priorities", {"high": 1000}), allowed)
    annotations = graph["Namespace team-vision"].inputs["metadata"]["annotations"]
    assert annotations["trainyard.io/priorities"] == "high"


def test_a_team_has_the_stores_of_its_entry_and_its_share(with_teams: Graph) -> None:
    claims = [n.name for n in with_teams.of("PersistentVolumeClaim") if "team-" in n.name]
    assert claims == ["team-nlp-home-claim", "team-nlp-scratch-claim", "team-vision-scratch-claim"]
    quota = with_teams["ResourceQuota team-vision-gpus"].inputs["spec"]
    assert quota == {"hard": {"requests.nvidia.com/gpu": "16"}}
    counted = with_teams["ResourceQuota team-nlp-objects"].inputs["spec"]["hard"]
    assert counted == {
        "count/trainjobs.trainer.kubeflow.org": "100",
        "pods": "500",
        "count/configmaps": "1050",
        "count/trainingruntimes.trainer.kubeflow.org": "150",
    }


def test_jobs_are_counted_once_their_controllers_run() -> None:
    """A quota that is older than a kind in it refuses that kind for minutes."""
    graph = environment(at("training_operator", {"version": versions.TRAINING_OPERATORS[-1]}))
    quota = graph["ResourceQuota team-nlp-objects"]
    assert quota.inputs["spec"]["hard"]["count/pytorchjobs.kubeflow.org"] == "100"
    for controller in ("kubeflow-trainer", "training-operator"):
        assert graph.waits_for(quota, graph[f"Release {controller}"])


def test_each_role_enters_by_groups_and_without_a_policy_of_aws(with_teams: Graph) -> None:
    entries = [n for n in with_teams.of("AccessEntry") if n.name.startswith("team-vision-")]
    assert {n.inputs["principalArn"]: n.inputs["kubernetesGroups"] for n in entries} == {
        f"{ROLE}/{role}": [f"trainyard:team-vision:{group}", "trainyard:teams"]
        for role, group in {
            "vision-deployer": "deployer",
            "vision": "member",
            "auditors": "viewer",
        }.items()
    }
    assert {n.inputs["type"] for n in entries} == {"STANDARD"}
    assert not with_teams.of("AccessPolicyAssociation")


def test_nobody_enters_before_limits_roles_and_policies_stand(with_teams: Graph) -> None:
    entry = with_teams["AccessEntry team-vision-deployer"]
    for earlier in (
        "ResourceQuota team-vision-gpus",
        "ResourceQuota team-vision-objects",
        "LimitRange team-vision-requests",
        "NetworkPolicy team-vision-network",
        "Addon vpc-cni",
        "RoleBinding team-vision-deployers",
        "ClusterRole teams-deployer",
        "ValidatingAdmissionPolicyBinding teams-pods",
        "ValidatingAdmissionPolicyBinding teams-jobs",
    ):
        assert with_teams.waits_for(entry, with_teams[earlier]), earlier


def test_the_namespace_goes_with_all_jobs_before_what_their_pods_need(with_teams: Graph) -> None:
    """Destroy is the graph backwards. A claim waits for its pods, which only the namespace ends."""
    space = with_teams["Namespace team-vision"]
    inside = [
        node
        for node in with_teams.starting("kubernetes:")
        if (node.inputs.get("metadata") or {}).get("namespace") == "team-vision"
    ]
    assert len(inside) > 6
    assert {node.options.deletedWith for node in inside} == {space.urn}
    volume = with_teams["PersistentVolume team-vision-scratch-volume"]
    assert not volume.options.deletedWith, "it lies in no namespace"
    assert with_teams.waits_for(space, volume)
    assert with_teams.waits_for(volume, with_teams["Addon aws-fsx-csi-driver"])


def test_the_order_of_a_list_of_roles_means_nothing() -> None:
    roles = [f"{ROLE}/a", f"{ROLE}/b"]
    one, other = (
        environment(at("teams.vision.members", order)).golden() for order in (roles, roles[::-1])
    )
    assert one == other


def test_a_contract_has_only_the_part_of_its_team_and_fits_its_parameter(
    with_teams: Graph,
) -> None:
    found = json.loads(published(with_teams))
    assert set(found["environment"]["storage"]) == {"scratch"}
    assert found["environment"]["teams"]["vision"]["max_gpus"] == 16
    assert found["team"] == {"name": "vision", "namespace": "team-vision"}
    assert set(found["cluster"]) == {"name", "arn", "endpoint", "certificate_authority"}
    assert "nlp" not in published(with_teams)
    parameter = with_teams["Parameter team-vision"].inputs
    assert (parameter["name"], parameter["type"]) == (NAME, "String")
    assert len(published(with_teams)) + REACHED_BYTES < PARAMETER_BYTES and "tier" not in parameter


def test_a_long_contract_is_in_a_parameter_of_the_advanced_tier() -> None:
    """The standard one takes 4 KiB. A parameter that fits it stays there and costs nothing."""
    pool = {"instance_types": ["g6e.48xlarge"], "max_nodes": 1}
    more = {f"a-pool-with-a-long-name-{number}": pool for number in range(25)}
    graph = environment(*(at(f"pools.{name}", it) for name, it in more.items()))
    assert len(published(graph)) > PARAMETER_BYTES - REACHED_BYTES
    assert graph["Parameter team-vision"].inputs["tier"] == "Advanced"


def test_the_room_for_reaching_a_cluster_is_enough_for_one_of_eks() -> None:
    """A certificate authority of EKS is 1,107 bytes as PEM, so 1,476 as base64."""
    reached = {
        "name": "n" * 100,
        "arn": f"arn:aws-us-gov:eks:ap-northeast-2:123456789012:cluster/{'n' * 100}",
        "endpoint": f"https://{'0' * 32}.gr7.ap-northeast-2.eks.amazonaws.com",
        "certificate_authority": "c" * 1476,
    }
    assert len(json.dumps({"cluster": reached})) < REACHED_BYTES


# The stack of a listed team.


def stack(folder: Path, graph: Graph, *edits: Edit, preview: bool = False, **more: Any) -> Graph:
    """The team's graph on an environment that has published its contracts."""
    checkout(folder, listed, both(by_name, *edits))
    parameters = more.pop("parameters", {NAME: published(graph)})
    return deploy("team-vision", folder=folder, parameters=parameters, preview=preview, **more)


def test_the_stack_of_a_listed_team_makes_jobs_only(tmp_path: Path, with_teams: Graph) -> None:
    graph = stack(tmp_path, with_teams)
    kinds = {n.kind for n in graph.nodes.values() if not n.kind.startswith("trainyard:")}
    assert kinds == {
        "pulumi:providers:aws",
        "pulumi:providers:kubernetes",
        "kubernetes:trainer.kubeflow.org/v1alpha1:TrainJob",
    }
    assert not graph.starting("aws:") and not graph.of("StackReference")
    assert graph["TrainJob vit-base"].inputs["metadata"]["namespace"] == "team-vision"
    assert graph.outputs["namespace"] == "team-vision"


def test_its_job_is_that_of_a_team_that_makes_its_namespace_itself(
    tmp_path: Path, with_teams: Graph, team: Graph
) -> None:
    mine = stack(tmp_path, with_teams)["TrainJob vit-base"].inputs
    assert mine == team["TrainJob vit-base"].inputs, "the same run, on the same claim"


def test_it_enters_as_the_deployer_of_its_entry(tmp_path: Path, with_teams: Graph) -> None:
    graph = stack(tmp_path, with_teams)
    assert DEPLOYER in str(graph["pulumi:providers:aws aws"].inputs["assumeRoles"])
    arguments = str(graph["pulumi:providers:kubernetes cluster"].inputs["kubeconfig"])
    assert f'--role-arn", "{DEPLOYER}' in arguments.replace("\\", "")


def test_it_cannot_enter_as_somebody_else(tmp_path: Path, with_teams: Graph) -> None:
    def changes(values: dict[str, Any]) -> None:
        values["aws:assumeRole"] = {"roleArn": f"{ROLE}/other"}

    with pytest.raises(pulumi.RunError, match="must end in the deployer that the environment"):
        stack(tmp_path, with_teams, changes=changes)


def test_a_contract_of_another_stack_file_is_refused(tmp_path: Path, with_teams: Graph) -> None:
    other = environment(at("teams.vision.max_gpus", 4))
    says = r"from another stack file than .* environment\.teams\.vision\.max_gpus is 16 here and 4"
    with pytest.raises(pulumi.RunError, match=says):
        stack(tmp_path, with_teams, parameters={NAME: published(other)})


def test_a_team_deploys_by_its_contract_alone(tmp_path: Path, with_teams: Graph) -> None:
    """What it reads of its environment is the file that it was handed, and its own parameter."""
    contract = contract_of(listed)
    graph = stack(tmp_path, with_teams)
    folder = alone(tmp_path / "alone", contract)
    parameters = {NAME: published(with_teams)}
    found = deploy("team-vision", folder=folder, parameters=parameters)
    assert sorted(file.name for file in folder.iterdir()) == [
        "Pulumi.team-vision.yaml",
        "Pulumi.yaml",
        "contract.yaml",
    ]
    assert found.golden() == graph.golden()
    preview = deploy("team-vision", folder=folder, parameters=parameters, preview=True)
    assert preview["TrainJob vit-base"].inputs == graph["TrainJob vit-base"].inputs


def test_a_pool_that_a_team_does_not_use_may_change_under_it(
    tmp_path: Path, with_teams: Graph
) -> None:
    other = environment(at("pools.h100.max_nodes", 3))
    graph = stack(tmp_path, with_teams, parameters={NAME: published(other)})
    assert graph.golden() == stack(tmp_path, with_teams).golden()


def test_a_contract_that_is_not_there_stops_an_update_and_no_preview(
    tmp_path: Path, with_teams: Graph
) -> None:
    nothing = {"/trainyard/dev/teams/nlp": "{}"}
    with pytest.raises(Exception, match="couldn't find resource"):
        stack(tmp_path, with_teams, parameters=nothing)
    preview = stack(tmp_path, with_teams, preview=True, parameters=nothing)
    assert UNKNOWN not in str(preview["TrainJob vit-base"].inputs["spec"])


def test_the_environment_does_not_change_because_of_a_teams_stack(
    tmp_path: Path, with_teams: Graph
) -> None:
    stack(tmp_path, with_teams)
    assert environment().golden() == with_teams.golden()
