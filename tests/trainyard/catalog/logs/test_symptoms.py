"""Every symptom is read from messages that schedulers, Karpenter, kubelets and ranks really print."""

from __future__ import annotations

import re

import pytest

from trainyard.catalog.logs.symptom import Symptom, read
from trainyard.catalog.logs.symptoms import PENDING, RENDEZVOUS, STARTING

KARPENTER = "Failed to schedule pod, "
POOL = (
    "incompatible requirements, key trainyard.io/pool, trainyard.io/pool In [g6e] not in"
    " trainyard.io/pool In [h100]"
)
IMAGE = (
    'ImagePullBackOff: Back-off pulling image "r/i:1": ErrImagePull: failed to resolve reference'
    ' "r/i:1": '
)
PULL = (
    'ImagePullBackOff: Back-off pulling image "r/i:1": ErrImagePull: rpc error: code = NotFound desc = failed to'
    ' pull and unpack image "r/i:1": '
)
PENDING_MESSAGES = {
    '0/2 nodes are available: persistentvolumeclaim "data" not found.': (
        "claim: there is no PersistentVolumeClaim data"
    ),
    KARPENTER + 'getting persistent volume claim, PersistentVolumeClaim "data" not found': (
        "PersistentVolumeClaim data"
    ),
    KARPENTER + "unbound pvc must define a storage class (PersistentVolumeClaim=t/d)": (
        "claim: a Persistent"
    ),
    KARPENTER + POOL + "; no instance type has enough resources, requirements=a, resources={1M}": (
        "no node has {1M}"
    ),
    KARPENTER + "all available instance types exceed limits for nodepool (NodePool=g6e); " + POOL: (
        "pool g6e already has"
    ),
    KARPENTER + "no instance type has the required offering, requirements=a, resources={}": (
        "capacity: AWS has no capacity"
    ),
    "insufficient capacity, with fleet error(s), VcpuLimitExceeded: You have requested more vCPU capacity": (
        "quota: the account's vCPU quota of EC2 for the pool's instance types is used up (VcpuLimitExceeded)"
    ),
    "insufficient capacity, with fleet error(s), InsufficientFreeAddressesInSubnet: There are not enough": (
        "addresses: the subnet of the zone has no free address"
    ),
    KARPENTER
    + POOL
    + "; the only compatible reserved offering is full; falling through to other": (
        "capacity: all instances of the pool's reservation are in use"
    ),
    KARPENTER + "all compatible reserved offerings are full and no on-demand or spot fallback": (
        "capacity: all instances of the pool's reservation are in use"
    ),
    KARPENTER + POOL + '; incompatible requirements, label "disk" does not have known values': (
        'select: "disk"'
    ),
    KARPENTER
    + "incompatible requirements, key a/disk, a/disk In [x] not in a/disk In [y]; "
    + POOL: "select: a/disk",
    KARPENTER + POOL + "; did not tolerate taint (taint=a=b:NoSchedule)": (
        "taint: the pods lack a toleration: a=b:NoSchedule"
    ),
    "0/2 nodes are available: 2 node(s) had untolerated taint(s). preemption": (
        "taint: the pods lack a toleration: untolerated"
    ),
    KARPENTER + POOL: "label: no pool has the value of trainyard.io/pool",
}
SECRET = 'MountVolume.SetUp failed for volume "secrets-manager" : rpc error: code = Unknown desc = '
STARTING_MESSAGES = {
    SECRET + "us-east-2: Failed fetching secret nlp/hf: operation error Secrets Manager:"
    " GetSecretValue, https response error StatusCode: 400, api error AccessDeniedException: User": (
        "Secrets Manager refuses nlp/hf"
    ),
    SECRET
    + "us-east-2: Failed fetching secret hf: operation error Secrets Manager: GetSecretValue,"
    " https response error StatusCode: 400, ResourceNotFoundException: can't find": "Secrets Manager has no secret hf",
    SECRET
    + "Failed to fetch secret from all regions. Verify secret exists and required permissions"
    " are granted for: hf": "no identity in AWS with which hf",
    SECRET + "Invalid JSON used with jmesPath in secret: a.b.": "the secret a.b is no JSON object",
    SECRET + 'JMES Path - "token" for object alias - HF.value does not point to a valid object.': (
        "the secret has no key token"
    ),
    SECRET
    + 'Invalid JMES search result type for path:"port". Only string is allowed.': "the value of key port is no text",
    SECRET + "failed to get secretproviderclass t/train-secrets-1, error: SecretProviderClass"
    ' "train-secrets-1" not found': "secretproviderclass t/train-secrets-1 does not exist",
    SECRET + 'error connecting to provider "aws": provider not found: provider "aws"': (
        "does not run on the node"
    ),
    'InvalidImageName: Failed to apply default image tag "A": couldn\'t parse image name': (
        "the image name is not valid"
    ),
    IMAGE + "r/i:1: not found": "r/i:1 does not exist",
    PULL + "no match for platform in manifest: not found": "another kind of CPU than the nodes",
    PULL + "no match for platform in manifest sha256:ab12: not found": "another kind of CPU",
    IMAGE
    + "no matching manifest for linux/amd64 in the manifest list entries": "another kind of CPU",
    PULL
    + "failed to copy: httpReadSeeker: failed open: unexpected status code https://registry-1.docker.io/v2/"
    "r/i/manifests/sha256:50aa: 429 Too Many Requests - Server message: toomanyrequests: You have reached your"
    " unauthenticated pull rate limit. https://www.docker.com/increase-rate-limit": "permits no more pulls",
    PULL
    + "failed to extract layer sha256:04: write /var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/"
    "snapshots/1/fs/opt/libtorch_cuda.so: no space left on device": "has no room for the image",
    IMAGE + "unexpected status from HEAD request: 403 Forbidden": "node's role or",
    IMAGE + "dial tcp: lookup r: no such host": "cannot reach the registry",
    "CreateContainerConfigError: couldn't find key token in Secret t/hub": (
        "Secret hub has no key token"
    ),
    'CreateContainerConfigError: secret "hf" not found': "Secret hf does not exist",
    'MountVolume.SetUp failed for volume "s" : secret "hf" not found': "Secret hf does not exist",
    'MountVolume.SetUp failed for volume "c" : configmap "late" not found': (
        'configmap "late" does not exist'
    ),
    'MountVolume.SetUp failed for volume "c" : configmap references non-existent config key: a': (
        "config key: a does not exist"
    ),
    'MountVolume.SetUp failed for volume "h" : hostPath type check failed: /x is not a directory': (
        "no such path: /x is not"
    ),
    'MountVolume.SetUp failed for volume "scratch" : mount.lustre: mount fs-1.fsx.us-east-1.amazonaws.com'
    "@tcp:/fsx at /scratch failed: Connection timed out": "volume scratch cannot be mounted",
    'MountVolume.SetUp failed for volume "home" : mount.nfs4: fs-1: Connection timed out': (
        "volume home cannot be mounted: the node cannot reach the file system"
    ),
    'MountVolume.SetUp failed for volume "scratch" : rpc error: code = Internal desc = Could not'
    ' mount "fs-1@tcp:/a": mount.lustre: failed: Is the MGS specification correct?': "volume scratch",
    "failed to assign an IP address to container": "no free IP address",
    "init container init-pytorch still runs": "init container init-pytorch has not ended",
}
REFUSED = (
    "[c10d] The client socket has failed to connect to [a]:29500 (errno: 111 - Connection refused)."
)
UNKNOWN = (
    "[c10d] The IPv6 network addresses of (a, 1) cannot be retrieved (gai error: -2 - Name or"
    " service not known)."
)
RENDEZVOUS_MESSAGES = {
    "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError": "not all nodes joined",
    UNKNOWN: "DNS does not know the endpoint",
    UNKNOWN + "\nRendezvousConnectionError: x": "DNS does not know the endpoint",
    "RendezvousConnectionError: x. (t5-node-0-0.t5: [Errno -3] Temporary failure in name resolution)": (
        "DNS does not know the endpoint"
    ),
    REFUSED: "nothing answers at the endpoint",
    "RuntimeError: Gloo connectFullMesh failed with [gloo/transport/tcp/pair.cc:144] no error": (
        "gloo cannot reach"
    ),
    "n:1:2 [0] NCCL WARN NET/OFI Unable to insert remote address into address vector for device 1": (
        "EFA does not"
    ),
    "NCCL WARN socketStartConnect: Connect to 10.0.0.2<4> failed : Connection refused": (
        "NCCL cannot reach"
    ),
}
CASES = (
    (PENDING, PENDING_MESSAGES),
    (STARTING, STARTING_MESSAGES),
    (RENDEZVOUS, RENDEZVOUS_MESSAGES),
)


@pytest.mark.parametrize(
    ("symptoms", "text", "why"),
    [(symptoms, *case) for symptoms, messages in CASES for case in messages.items()],
)
def test_the_cause_of_a_message_is_found(symptoms: tuple[Symptom, ...], text: str, why: str):
    cause, do = read(symptoms, f"before\n{text}\n", "", namespace="t", job="a=b")
    assert why in cause and text.splitlines()[0] in cause and do
    assert not re.search(r"\{\w*\}", do)


@pytest.mark.parametrize(
    "text", [REFUSED + "\nstep 1", UNKNOWN + "\nstep 1", "NCCL INFO Connected all rings", ""]
)
def test_ranks_that_connected_in_the_end_have_no_symptom(text: str):
    assert read(RENDEZVOUS, text, "") == (text, "")


@pytest.mark.parametrize(
    ("image", "repository"),
    [
        ("123456789012.dkr.ecr.eu-west-1.amazonaws.com/robots/train:7", "robots/train"),
        ("localhost:5000/train@sha256:ab", "train"),
        ("python:3.11", "python"),
    ],
)
def test_the_command_that_looks_for_an_image_names_its_repository(
    image: str, repository: str
) -> None:
    said = f'ErrImagePull: failed to pull image "{image}": not found'
    why, do = read(STARTING, said, "")
    assert f"{image} does not exist" in why and f"--repository-name {repository}; push it" in do
