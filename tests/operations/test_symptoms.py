"""Every sign is read from the words that schedulers, Karpenter, kubelets and ranks really say."""

from __future__ import annotations

import pytest

from operations.symptoms import MEETING, PENDING, WAITING, Sign, read

KARPENTER = "Failed to schedule pod, "
POOL = (
    "incompatible requirements, key trainyard.io/pool, trainyard.io/pool In [g6e] not in"
    " trainyard.io/pool In [h100]"
)
IMAGE = (
    'ImagePullBackOff: Back-off pulling image "r/i:1": ErrImagePull: failed to resolve reference'
    ' "r/i:1": '
)
PENDING_WORDS = {
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
        "pool g6e has"
    ),
    KARPENTER + "no instance type has the required offering, requirements=a, resources={}": (
        "capacity: AWS has none"
    ),
    KARPENTER + POOL + '; incompatible requirements, label "disk" does not have known values': (
        'select by "disk"'
    ),
    KARPENTER
    + "incompatible requirements, key a/disk, a/disk In [x] not in a/disk In [y]; "
    + POOL: "by a/disk",
    KARPENTER + POOL + "; did not tolerate taint (taint=a=b:NoSchedule)": (
        "taint: not tolerated: a=b:NoSchedule"
    ),
    "0/2 nodes are available: 2 node(s) had untolerated taint(s). preemption": (
        "taint: not tolerated: untolerated"
    ),
    KARPENTER + POOL: "label: there is no pool of this trainyard.io/pool",
}
WAITING_WORDS = {
    'InvalidImageName: Failed to apply default image tag "A": couldn\'t parse image name': (
        "no name of an image"
    ),
    IMAGE + "r/i:1: not found": "there is no r/i:1",
    IMAGE + "unexpected status from HEAD request: 403 Forbidden": "node's role or",
    IMAGE + "dial tcp: lookup r: no such host": "no way to the registry",
    "CreateContainerConfigError: couldn't find key token in Secret t/hub": (
        "there is no key token in Secret t/hub"
    ),
    'MountVolume.SetUp failed for volume "c" : configmap "late" not found': (
        'there is no configmap "late"'
    ),
    'MountVolume.SetUp failed for volume "c" : configmap references non-existent config key: a': (
        "no config key: a"
    ),
    'MountVolume.SetUp failed for volume "h" : hostPath type check failed: /x is not a directory': (
        "path: /x is not"
    ),
    "failed to assign an IP address to container": "no address is left",
    "init container init-pytorch still runs": "init-pytorch has not ended",
}
REFUSED = (
    "[c10d] The client socket has failed to connect to [a]:29500 (errno: 111 - Connection refused)."
)
UNKNOWN = (
    "[c10d] The IPv6 network addresses of (a, 1) cannot be retrieved (gai error: -2 - Name or"
    " service not known)."
)
MEETING_WORDS = {
    "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError": "not all nodes came",
    UNKNOWN: "the endpoint's name is not known",
    UNKNOWN + "\nRendezvousConnectionError: x": "the endpoint's name is not known",
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
CASES = ((PENDING, PENDING_WORDS), (WAITING, WAITING_WORDS), (MEETING, MEETING_WORDS))


@pytest.mark.parametrize(
    ("signs", "text", "why"), [(signs, *case) for signs, words in CASES for case in words.items()]
)
def test_words_are_read(signs: tuple[Sign, ...], text: str, why: str):
    found, do = read(signs, f"before\n{text}\n", "", space="t", job="a=b")
    assert why in found and text.splitlines()[0] in found and do and "{" not in do


@pytest.mark.parametrize(
    "text", [REFUSED + "\nstep 1", UNKNOWN + "\nstep 1", "NCCL INFO Connected all rings", ""]
)
def test_ranks_that_met_after_all_are_left_alone(text: str):
    assert read(MEETING, text, "") == (text, "")
