"""Whom pods of a team reach by IP and by name, as the meaning of its NetworkPolicy says: every attack
fails, and succeeds when the policies are taken away."""

from __future__ import annotations

import pytest

from rehearsal.kube import Object
from tests.support.reachability import Cluster, Endpoint
from trainyard.objects.teams.team_network import Ranges, policy_spec

RANGES = Ranges(vpc=("10.0.0.0/16",), services="172.20.0.0/16")
RANK, PEER = "vision-node-0-0.vision", "vision-node-0-1.vision"
ENDPOINTS = {
    RANK: Endpoint(address="10.0.1.10", namespace="team-vision", labels={"rank": "0"}),
    PEER: Endpoint(address="10.0.1.11", namespace="team-vision", labels={"rank": "1"}),
    "secret-node-0-0.nlp": Endpoint(
        address="10.0.1.20", namespace="team-nlp", labels={"k8s-app": "kube-dns"}
    ),
    "t5-node-0-0.dev": Endpoint(address="10.0.1.30", namespace="training"),
    "coredns": Endpoint(
        address="10.0.2.2", namespace="kube-system", labels={"k8s-app": "kube-dns"}
    ),
    "kube-dns": Endpoint(
        address="172.20.0.10", namespace="kube-system", labels={"k8s-app": "kube-dns"}
    ),
    "kubernetes": Endpoint(address="172.20.0.1", namespace="default"),
    "kueue": Endpoint(address="10.0.2.3", namespace="kueue-system", labels={"app": "kueue"}),
    "kueue-webhook-service": Endpoint(
        address="172.20.7.7", namespace="kueue-system", labels={"app": "kueue"}
    ),
    "s3": Endpoint(address="52.219.60.1"),
    "fs-0123.fsx": Endpoint(address="10.0.0.99"),
    "fs-4567.efs": Endpoint(address="10.0.0.98"),
}


def policy(namespace: str, *, pod_identity: bool = False) -> Object:
    spec = policy_spec(RANGES, pod_identity=pod_identity)
    return {"metadata": {"namespace": namespace}, "spec": spec}


def cluster(*walled: str) -> Cluster:
    return Cluster(policies=[policy(namespace) for namespace in walled], endpoints=ENDPOINTS)


BOTH = cluster("team-vision", "team-nlp")
NEEDED = {
    "rendezvous": (PEER, 29500, "TCP"),
    "a random port of NCCL's sockets": (PEER, 41234, "TCP"),
    "ssh of MPI": (PEER, 22, "TCP"),
    "a rank by its address": ("10.0.1.11", 29500, "TCP"),
    "DNS": ("kube-dns", 53, "UDP"),
    "DNS, a long answer": ("kube-dns", 53, "TCP"),
    "DNS at a pod of CoreDNS": ("coredns", 53, "UDP"),
    "the API server": ("kubernetes", 443, "TCP"),
    "S3": ("s3", 443, "TCP"),
    "a model hub": ("99.84.1.1", 443, "TCP"),
}
ATTACKS = {
    "A23 another team's pod by name": ("secret-node-0-0.nlp", 29500, "TCP"),
    "A23 another team's pod by IP": ("10.0.1.20", 29500, "TCP"),
    "A23 another team's pod by IP over HTTPS": ("10.0.1.20", 443, "TCP"),
    "A23 another team's pod that poses as DNS": ("10.0.1.20", 53, "UDP"),
    "A23 a job of the environment": ("t5-node-0-0.dev", 443, "TCP"),
    "A23 a controller": ("kueue", 9443, "TCP"),
    "A23 a webhook": ("kueue-webhook-service", 443, "TCP"),
    "A23 metrics of CoreDNS": ("coredns", 9153, "TCP"),
    "A23 a node": ("10.0.1.1", 443, "TCP"),
    "A23 Lustre past the mount": ("fs-0123.fsx", 988, "TCP"),
    "A23 NFS past the access point": ("fs-4567.efs", 2049, "TCP"),
    "A23 credentials of the node": ("169.254.169.254", 80, "TCP"),
    "A23 mail to the internet": ("52.219.60.1", 25, "TCP"),
}


@pytest.mark.parametrize("case", NEEDED)
def test_what_training_needs_is_reached(case: str) -> None:
    assert BOTH.reaches(RANK, *NEEDED[case])


@pytest.mark.parametrize("case", ATTACKS)
def test_an_attack_reaches_nothing(case: str) -> None:
    assert not BOTH.reaches(RANK, *ATTACKS[case])


@pytest.mark.parametrize("case", ATTACKS)
def test_without_policies_each_attack_succeeds(case: str) -> None:
    assert cluster().reaches(RANK, *ATTACKS[case])


def test_between_teams_the_policy_of_either_is_enough() -> None:
    """One keeps what leaves, the other what comes in."""
    foreign = ATTACKS["A23 another team's pod by IP"]
    assert not cluster("team-vision").reaches(RANK, *foreign)
    assert not cluster("team-nlp").reaches(RANK, *foreign)


def test_nothing_outside_of_the_team_opens_a_connection_to_its_pods() -> None:
    for source in ("secret-node-0-0.nlp", "t5-node-0-0.dev", "kueue"):
        assert not cluster("team-vision").reaches(source, RANK, 29500)
        assert cluster().reaches(source, RANK, 29500)


def test_the_api_server_has_the_first_address_of_the_services() -> None:
    other = Ranges(vpc=("172.20.0.0/16", "100.64.0.0/16"), services="10.100.0.0/16")
    [*_, https] = policy_spec(other, pod_identity=False)["egress"]
    api_server, outside = https["to"]
    assert api_server == {"ipBlock": {"cidr": "10.100.0.1/32"}}
    assert outside["ipBlock"]["except"] == [*other.vpc, other.services]


def test_pods_with_an_aws_identity_reach_the_agent_that_gives_it_and_nothing_else_of_the_node() -> (
    None
):
    agent, metadata = "169.254.170.23", "169.254.169.254"
    with_identity = Cluster(
        policies=[policy("team-vision", pod_identity=True)], endpoints=ENDPOINTS
    )
    assert with_identity.reaches(RANK, agent, 80) and not BOTH.reaches(RANK, agent, 80)
    assert not with_identity.reaches(RANK, metadata, 80)
    assert not with_identity.reaches(RANK, agent, 22), "HTTP only"
