"""What each team mounts of a store that keeps teams apart, or that teams only read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.directories import kept_apart
from tests.support.recording import Graph, Node, deploy
from tests.support.stackfile import ENVIRONMENT, Edit, at
from tests.support.teams import ROLE
from trainyard.plans.directories import owner_of
from trainyard.stores.kinds import KINDS


def environment(*edits: Edit) -> Graph:
    def changes(values: dict[str, Any]) -> None:
        for edit in (kept_apart, *edits):
            edit(values[ENVIRONMENT])

    return deploy("dev", changes)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return environment()


def volume(graph: Graph, namespace: str, store: str) -> Any:
    return graph[f"PersistentVolume {namespace}-{store}-volume"].inputs["spec"]


def added(before: Graph, after: Graph) -> tuple[list[str], list[str]]:
    """Resources that are new, and those that are not as before."""
    was, now = (json.loads(each.golden()) for each in (before, after))
    new = [f"{each['type']} {each['name']}" for each in now if each not in was]
    return new, [each["name"] for each in was if each not in now]


def test_every_kind_of_store_is_here(graph: Graph) -> None:
    drivers = {
        volume(graph, "team-nlp", s)["csi"]["driver"] for s in ("scratch", "home", "results")
    }
    assert drivers == {kind.driver.name for kind in KINDS.values()}


def test_two_teams_mount_two_directories_of_each_store(graph: Graph) -> None:
    for team in ("vision", "nlp"):
        lustre, efs, s3 = (
            volume(graph, f"team-{team}", store) for store in ("scratch", "home", "results")
        )
        assert lustre["csi"]["volumeAttributes"] == {
            "dnsname": "scratch.fsx",
            "mountname": f"mnt/teams/{team}",
        }
        assert lustre["csi"]["volumeHandle"] == f"scratch-id-{team}"
        assert efs["csi"]["volumeHandle"] == f"home-id::team-{team}-home-id"
        assert s3["mountOptions"] == [
            "allow-other",
            "dir-mode=0777",
            "file-mode=0666",
            f"prefix teams/{team}/",
        ]
        assert s3["csi"]["volumeAttributes"]["authenticationSource"] == "pod"
        assert s3["csi"]["volumeHandle"].endswith(f"-{team}")


def test_the_environment_itself_mounts_all_of_every_store(graph: Graph) -> None:
    for namespace in ("training", "trainyard-stores"):
        spec = volume(graph, namespace, "scratch")
        assert spec["csi"]["volumeAttributes"]["mountname"] == "mnt"
    home = volume(graph, "training", "home")
    assert home["csi"]["volumeHandle"] == "home-id"
    assert home["mountOptions"] == []
    assert (
        "authenticationSource"
        not in volume(graph, "training", "results")["csi"]["volumeAttributes"]
    )


def test_a_store_that_teams_read_is_mounted_without_the_right_to_write(graph: Graph) -> None:
    """By the mount option: the drivers refuse the access mode ReadOnlyMany, and the kubelet hands
    csi.readOnly to none."""
    for team in ("vision", "nlp"):
        assert "ro" in volume(graph, f"team-{team}", "corpus")["mountOptions"]
        assert volume(graph, f"team-{team}", "corpus")["accessModes"] == ["ReadWriteMany"]
    assert "ro" not in volume(graph, "training", "corpus")["mountOptions"]


def test_an_access_point_gives_files_an_owner_of_the_team(graph: Graph) -> None:
    points = {team: graph[f"AccessPoint team-{team}-home"].inputs for team in ("vision", "nlp")}
    for team, point in points.items():
        owner = owner_of(team)
        assert point["posixUser"] == {"uid": owner, "gid": owner}
        assert point["rootDirectory"]["path"] == f"/teams/{team}"
        assert point["rootDirectory"]["creationInfo"]["ownerUid"] == owner
    assert owner_of("vision") != owner_of("nlp") and owner_of("nlp") < 2**31


def test_pods_of_a_team_may_use_its_prefix_and_no_other(graph: Graph) -> None:
    policy = json.loads(graph["RolePolicy team-nlp-pods-stores"].inputs["policy"])
    assert "teams/vision" not in str(policy)
    for statement in policy["Statement"]:
        whole = statement["Resource"].endswith("/teams/nlp/*")
        listed = statement.get("Condition", {}).get("StringLike", {}).get("s3:prefix")
        assert whole or listed == ["teams/nlp/", "teams/nlp/*"], statement
    assert "s3:DeleteObject" not in str(policy)
    association = graph["PodIdentityAssociation team-nlp-pods"]
    assert graph.waits_for(graph["AccessEntry team-nlp-deployer"], association)


def test_a_directory_of_lustre_is_made_before_anybody_mounts_it(graph: Graph) -> None:
    job = graph["Job team-nlp-scratch"]
    assert job.inputs["metadata"]["namespace"] == "trainyard-stores"
    pod = job.inputs["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert container["command"] == ["mkdir", "-p", "-m", "0777", "/store/teams/nlp"]
    assert graph.waits_for(graph["PersistentVolume team-nlp-scratch-volume"], job)
    assert graph.waits_for(job, graph["PersistentVolumeClaim trainyard-stores-scratch-claim"])
    assert graph.waits_for(job, graph["Addon aws-fsx-csi-driver"])


def test_the_pod_that_makes_directories_can_do_little_else(graph: Graph) -> None:
    pod = graph["Job team-nlp-scratch"].inputs["spec"]["template"]["spec"]
    secured = pod["containers"][0]["securityContext"]
    assert secured["capabilities"] == {"drop": ["ALL"]}
    assert secured["readOnlyRootFilesystem"] and not secured["allowPrivilegeEscalation"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["nodeSelector"] == {"trainyard.io/nodes": "system"}
    policy = graph["NetworkPolicy directories-network"].inputs
    assert policy["metadata"]["namespace"] == "trainyard-stores"
    assert policy["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def test_a_team_more_changes_nothing_of_the_others(graph: Graph) -> None:
    new, changed = added(graph, environment(at("teams.audio", {"deployer": f"{ROLE}/audio"})))
    assert changed == []
    assert all("team-audio" in each for each in new), new
    own = {each.rpartition(":")[2] for each in new}
    for each in ("Job team-audio-scratch", "AccessPoint team-audio-home"):
        assert each in own, own


def test_each_team_has_the_same_number_of_resources_whoever_else_is_there(graph: Graph) -> None:
    def of(found: Graph, team: str) -> list[Node]:
        return [node for node in found.nodes.values() if f"team-{team}" in node.name]

    teams = [f"t{number}" for number in range(10, 20)]
    many = environment(at("teams", {name: {"deployer": f"{ROLE}/{name}"} for name in teams}))
    assert {len(of(many, name)) for name in teams} == {len(of(graph, "nlp"))}
    assert len(many.nodes) - len(graph.nodes) == 8 * len(of(graph, "nlp")) - (
        len(of(graph, "vision")) - len(of(graph, "nlp"))
    )


def test_without_teams_or_without_lustre_nobody_makes_directories() -> None:
    for edit in (at("teams", {}), at("storage.scratch.teams", "together")):
        found = environment(edit)
        assert not found.of("Job") and not found.starting("trainyard:teams:DirectoryRoots")


def test_a_directory_is_made_again_for_another_file_system_and_not_for_another_image(
    graph: Graph,
) -> None:
    job = graph["Job team-nlp-scratch"]
    assert list(job.options.ignoreChanges) == ["spec"]
    assert job.options.deleteBeforeReplace


def test_the_contract_of_a_team_names_its_own_directories(graph: Graph) -> None:
    team = json.loads(graph["Parameter team-nlp"].inputs["insecureValue"])["team"]
    assert team["directories"] == dict.fromkeys(("home", "results", "scratch"), "teams/nlp")
    assert team["read_only"] == ["corpus"]


def test_the_nodes_that_make_directories_reach_lustre_before_they_do(graph: Graph) -> None:
    """System nodes are no clients of a store: without these rules the Job waits for its mount for
    ever."""
    job = graph["Job team-vision-scratch"]
    for kind, name, ports in (
        ("SecurityGroupIngressRule", "scratch-system-988", (988, 988)),
        ("SecurityGroupIngressRule", "scratch-system-1018", (1018, 1023)),
        ("SecurityGroupEgressRule", "scratch-system-clients-988-out", (988, 988)),
        ("SecurityGroupIngressRule", "scratch-system-servers-988-in", (988, 988)),
    ):
        rule = graph[f"{kind} {name}"]
        assert graph.waits_for(job, rule)
        assert (rule.inputs["fromPort"], rule.inputs["toPort"]) == ports
        assert "sg-cluster" in (
            rule.inputs["referencedSecurityGroupId"],
            rule.inputs["securityGroupId"],
        )
