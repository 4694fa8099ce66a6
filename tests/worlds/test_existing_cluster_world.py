"""An environment in a cluster that was there before, with nodes and add-ons of its own: refused while it
does not exist, a job to its end in it, and afterwards the cluster is object by object what it was."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import Harness, Object, rehearsing
from tests.worlds.test_existing_network_world import ABSENT, REGION, ZONES, make_vpc
from tests.worlds.test_existing_stores_world import IMAGE, aws
from trainyard.catalog.versions import KUBERNETES
from trainyard.objects.iam.policies import trust

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]
STACK, FILE = "guest", "Pulumi.guest.yaml"
NAME, NODES = "research", "cpu"
ADD_ONS = ("vpc-cni", "kube-proxy", "eks-pod-identity-agent", "coredns")
JOBSETS = "components/charts/kubeflow-trainer-crds-2.1.0/templates/jobsets.jobset.x-k8s.io.yaml"
LEFT = {"kubeflow-system"}
"""Namespaces of what stays: Helm deletes none that it has created."""
NODE_POLICIES = (
    "AmazonEKSWorkerNodePolicy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonEKS_CNI_Policy",
)


def stack(network: Object, *existing: str) -> str:
    job = {
        "runtime": "torch-distributed",
        "nodes": 1,
        "pool": "l4",
        "image": IMAGE,
        "command": ["bash", "-c", "echo existing > /home/mine; cat /home/mine"],
        "shared_memory_gib": 8,
        "storage": {"home": {"path": "/home"}},
        "wait": "complete",
    }
    settings: dict[str, Any] = {
        "zone": ZONES[0],
        "network": network,
        "pools": {"l4": {"instance_types": ["g6.12xlarge"], "max_nodes": 2}},
        "storage": {"home": {"efs": {}, "data": "delete"}},
        "cluster": {"name": NAME, "version": "1.35", "existing_add_ons": [*existing]},
        "trainer": {"version": "2.1.0", "runtimes": ["torch-distributed"]},
        "jobs": {"look": job},
    }
    config = {"aws:region": REGION, "trainyard:environment": settings}
    return yaml.safe_dump({"config": config})


def make_role(harness: Harness, name: str, service: str, *policies: str) -> str:
    """An IAM role; its ARN."""
    document = json.dumps(trust(service))
    arn = aws(
        harness, f"iam create-role --role-name {name} --assume-role-policy-document '{document}'"
    )["Role"]["Arn"]
    for policy in policies:
        at = f"--policy-arn arn:aws:iam::aws:policy/{policy}"
        harness.shell(f"aws iam attach-role-policy --role-name {name} {at}")
    return arn


def make_cluster(harness: Harness, network: Object) -> None:
    """A cluster with two nodes and EKS add-ons, as people make it by hand."""
    plane = make_role(harness, "research-plane", "eks.amazonaws.com", "AmazonEKSClusterPolicy")
    nodes = make_role(harness, "research-nodes", "ec2.amazonaws.com", *NODE_POLICIES)
    subnets = list(network["private_subnets"].values())
    place = f"subnetIds={','.join(subnets)},endpointPublicAccess=true,endpointPrivateAccess=true"
    aws(
        harness,
        f"eks create-cluster --name {NAME} --kubernetes-version 1.35 --role-arn {plane}"
        f" --resources-vpc-config {place},publicAccessCidrs=203.0.113.7/32"
        " --kubernetes-network-config serviceIpv4Cidr=172.20.0.0/16"
        " --access-config authenticationMode=API --tags owner=platform-team",
    )
    harness.shell(f"aws eks wait cluster-active --name {NAME}")
    for name in ADD_ONS[:-1]:
        add(harness, name)
    aws(
        harness,
        f"eks create-nodegroup --cluster-name {NAME} --nodegroup-name {NODES} --node-role {nodes}"
        f" --subnets {' '.join(subnets)} --instance-types m7i.xlarge"
        " --scaling-config minSize=2,maxSize=3,desiredSize=2",
    )
    harness.shell(f"aws eks wait nodegroup-active --cluster-name {NAME} --nodegroup-name {NODES}")
    add(harness, ADD_ONS[-1])
    for name in ADD_ONS:
        harness.shell(f"aws eks wait addon-active --cluster-name {NAME} --addon-name {name}")


def add(harness: Harness, name: str) -> None:
    version = KUBERNETES["1.35"].add_ons[name]
    aws(
        harness,
        f"eks create-addon --cluster-name {NAME} --addon-name {name} --addon-version {version}"
        " --resolve-conflicts OVERWRITE",
    )


def described(harness: Harness) -> list[Object]:
    """The cluster, its node group, its add-ons and who may enter it."""
    of = f"--cluster-name {NAME}"
    entries = aws(harness, f"eks list-access-entries {of}")["accessEntries"]
    return [
        aws(harness, f"eks describe-cluster --name {NAME}"),
        aws(harness, f"eks describe-nodegroup {of} --nodegroup-name {NODES}"),
        *(aws(harness, f"eks describe-addon {of} --addon-name {name}") for name in ADD_ONS),
        aws(harness, f"eks list-pod-identity-associations {of}"),
        *(aws(harness, f"eks describe-access-entry {of} --principal-arn {one}") for one in entries),
    ]


def objects(harness: Harness) -> dict[str, dict[str, str]]:
    """Kind → uid of each object that is in the cluster and lives long → its namespace."""
    kubeconfig = harness.state / "theirs"
    harness.shell(f"aws eks update-kubeconfig --name {NAME} --kubeconfig {kubeconfig}")
    found: dict[str, dict[str, str]] = {}
    for kind in ("namespaces", "daemonsets", "deployments", "configmaps", "nodes"):
        said = harness.shell(
            f"kubectl --kubeconfig {kubeconfig} get {kind} --all-namespaces --output json"
        )
        for one in json.loads(said)["items"]:
            meta = one["metadata"]
            place = meta.get("namespace", meta["name"])
            found.setdefault(kind, {})[meta["uid"]] = place
    return found


def theirs(harness: Harness, command: str) -> None:
    """kubectl in the cluster, as its owner, with a JobSet CRD of the owner's own Helm release and a
    namespace as its objects."""
    kubeconfig = harness.state / "theirs"
    harness.shell(f"aws eks update-kubeconfig --name {NAME} --kubeconfig {kubeconfig}")
    crd = json.loads((harness.checkout / JOBSETS).read_text())
    crd["metadata"]["annotations"] = {
        "meta.helm.sh/release-name": "jobset",
        "meta.helm.sh/release-namespace": "jobset-system",
    }
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "training"}}
    file = harness.state / "theirs.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [crd, space]}))
    harness.shell(f"kubectl --kubeconfig {kubeconfig} {command} --filename {file}")


def checked(harness: Harness) -> str:
    """What `trainyard check --live` says of names that are taken, or that it was not checked."""
    said = harness.shell(f"{sys.executable} -m trainyard check {STACK} --rehearsal", check=False)
    assert "next: trainyard plan" in said or "error" in said, said
    of_names = ("are free", "would need is not checked")
    return "\n".join(line for line in said.splitlines() if any(word in line for word in of_names))


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    with rehearsing(STACK, {FILE: stack(ABSENT)}) as made:
        yield made


def test_a_job_runs_in_it_and_down_leaves_it_as_it_was(harness: Harness) -> None:
    # A world starts with its first `up`, which is refused: there is no such VPC.
    assert harness.do("up", "--stack", STACK) != 0
    network = make_vpc(harness)
    (harness.checkout / FILE).write_text(stack(network))
    assert harness.do("up", "--stack", STACK) != 0
    assert "environment.cluster.name: must be an EKS cluster" in harness.log.read_text()

    make_cluster(harness, network)
    before, inside, there = described(harness), objects(harness), harness.inventory()
    assert harness.do("up", "--stack", STACK) != 0
    said = harness.log.read_text()
    assert "Fix: write [eks-pod-identity-agent]" in said, said
    (harness.checkout / FILE).write_text(stack(network, "eks-pod-identity-agent"))
    theirs(harness, "create")
    said = checked(harness)
    assert "CustomResourceDefinition jobsets.jobset.x-k8s.io of Helm release jobset in" in said, (
        said
    )
    assert "environment.namespace" in said and "Namespace training, written by kubectl" in said, (
        said
    )
    theirs(harness, "delete")
    assert checked(harness) == ""
    assert harness.do("up", "--stack", STACK) == 0, harness.log.read_text()
    assert checked(harness) == "", "what the stack has made is its own"
    logs = "kubectl logs --namespace training --selector jobset.sigs.k8s.io/jobset-name=look"
    assert "existing" in harness.shell(f"{logs} --tail -1")
    for parts in zip(before[:6], described(harness)[:6], strict=True):
        assert parts[0] == parts[1]
    harness.shell(f"pulumi up --stack {STACK} --refresh --yes --skip-preview --expect-no-changes")

    assert harness.do("down") != 0, "the cluster is in no stack, and the world stays for it"
    assert described(harness) == before
    now = objects(harness)
    assert not [each for kind, each in inside.items() if each.keys() - now[kind].keys()]
    left = {each[uid] for kind, each in now.items() for uid in each.keys() - inside[kind].keys()}
    assert left == LEFT
    assert [one for one in harness.inventory() if one not in there] == []
