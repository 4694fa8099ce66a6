"""What schedulers, kubelets and ranks say when something is wrong, what it means, and what to type
next: tables.

A new symptom is a new row; the first row that fits counts. Words are those of Kubernetes 1.34
(pkg/scheduler, pkg/kubelet, pkg/volume), Karpenter 1.14 (pkg/controllers/provisioning/scheduling)
and the issues named beside a row.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

GRACE_SECONDS = 20
"""How long something may take before it is worth a word."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something seen, why it matters, and what to do."""

    what: str
    why: str
    do: str

    def __str__(self) -> str:
        return f"{self.what}\n    {self.why}\n    → {self.do}"


@dataclass(frozen=True, kw_only=True)
class Sign:
    """Words that give a cause away. {0} is what the expression caught, {job} the selector of the
    job's pods."""

    says: str
    why: str
    do: str


PENDING = (
    Sign(
        says=r'(?i)persistentvolumeclaims? "([^"]+)" not found',
        why="claim: there is no PersistentVolumeClaim {0}",
        do="kubectl -n {space} get persistentvolumeclaims, and mount one that is there",
    ),
    Sign(
        says=(
            r"(?i)unbound|claim is being deleted|non-existent persistentvolume|failed to"
            r" validate pvc"
        ),
        why="claim: a PersistentVolumeClaim is not bound",
        do="kubectl -n {space} describe persistentvolumeclaims",
    ),
    Sign(
        says=(
            r"(?i)insufficient.?capacity|unfulfillable|types were unavailable|(?:has the|es, had a)"
            r" required offer"
        ),
        why="capacity: AWS has none of the pool's instances to give in its zone now",
        do="wait (Karpenter tries again every 3 minutes), take a reservation or fewer nodes",
    ),
    Sign(
        says=r"(?:limits have been exhausted|exceed limits) for nodepool \(NodePool=([^)]+)\)",
        why="resources: pool {0} has all the nodes that it may have",
        do="raise pools.{0}.max_nodes, or wait for another job's end: kubectl get nodeclaims",
    ),
    Sign(
        says=r"no instance type [^;]*resources=([^;]*)|Insufficient ([\w./-]+)",
        why="resources: no node has {0}",
        do="ask for what a node of the pool has: kubectl describe nodes, make plan",
    ),
    Sign(
        says=(
            r'label ("[^"]+") does not have known|ments, key'
            r" (?!trainyard.io/pool|karpenter.sh/nodepool)([^,]+)"
            r"|(affinity/selector)"
        ),
        why="label: no pool has nodes with what the pods select by {0}",
        do="kubectl get nodepools --output yaml, and select by a label that is there",
    ),
    Sign(
        says=r"did not tolerate taint \(taint=([^)]+)\)|(untolerated taint[^,]*)",
        why="taint: not tolerated: {0}",
        do=(
            "add a toleration for it to the pods: kubectl get nodepools --output yaml shows all"
            " taints"
        ),
    ),
    Sign(
        says=r"requirements, key ([^,]+)",
        why="label: there is no pool of this {0}",
        do="kubectl get nodepools",
    ),
)
"""Why pods have no node. Karpenter's later checks stand first: the pool that got there is the one
that is meant."""
WAITING = (
    Sign(
        says=r"InvalidImageName",
        why="this is no name of an image",
        do="write registry/repository:tag, in lower case, without https://",
    ),
    Sign(
        # kubernetes/kops#16762
        says=r"ImagePull[^\n]*(?:\b40[13]\b|denied|authoriz|no basic auth)",
        why="the image cannot be pulled: the node's role or the pull secret does not allow it",
        do=(
            "compare the node role with AmazonEC2ContainerRegistryPullOnly, the job with"
            " pull_secrets"
        ),
    ),
    Sign(
        says=r'ImagePull[^\n]*image "([^"]+)"[^\n]*not found',
        why="the image cannot be pulled: there is no {0}",
        do=(
            "aws ecr describe-images --repository-name <repository>; push it, or correct the job's"
            " image"
        ),
    ),
    Sign(
        says=r"ImagePull[^\n]*(?:timeout|no such host|refused)",
        why="the node has no way to the registry",
        do="see that its subnet has a NAT gateway, or endpoints for ecr.api, ecr.dkr and s3",
    ),
    Sign(
        says=(
            r'(key \S+ in \w+ \S+|(?:config|secret) key: \S+|(?:configmap|secret)s? "[^"]+"(?= not'
            r" found))"
        ),
        why="there is no {0}",
        do="kubectl -n {space} get configmaps,secrets; add it, or name one that is there",
    ),
    Sign(
        says=r"hostPath type check failed: (.+)",
        why="the node does not have this path: {0}",
        do=(
            "a node has what AMI and user data bring: use a ConfigMap, shared storage, or type"
            " DirectoryOrCreate"
        ),
    ),
    Sign(
        says=r"init container (\S+) still runs",
        why=(
            "{0} has not ended, which prepares it (init-pytorch waits until the master's name is"
            " known)"
        ),
        do=(
            "kubectl -n {space} get pods,services -l {job}; kubectl -n {space} logs -l {job}"
            " --container {0}"
        ),
    ),
    Sign(
        says=r"assign an IP address",
        why="no address is left in the node's subnet",
        do="aws ec2 describe-subnets",
    ),
)
"""Why a pod that has its node does not run: why its containers wait, or the last event about it."""
MEETING = (
    Sign(
        says=r"RendezvousTimeoutError",  # pytorch/tutorials#2209, ymcui/Chinese-LLaMA-Alpaca-2#274
        why="not all nodes came to the rendezvous in time (torch waits 600 s)",
        do=(
            "compare --nnodes, --rdzv_id and --rdzv_endpoint: kubectl -n {space} logs -l {job}"
            " --prefix --tail=20"
        ),
    ),
    Sign(
        # OFA-Sys/OFA#307
        says=r"(?:gai ?error|Name or service not known)(?:[^\n]*\n?\Z|(?s:.*)RendezvousConn)",
        why="the endpoint's name is not known: no headless service of that name, or no CoreDNS",
        do="kubectl -n {space} get services; kubectl -n kube-system get pods -l k8s-app=kube-dns",
    ),
    Sign(
        # aws/aws-ofi-nccl#663, NVIDIA/nccl#1597
        says=r"NET/OFI[^\n]*(?:nable|rror|nresponsive|ouldn't)",
        why=(
            "EFA does not carry: it needs one zone, and a security group that lets all in from and"
            " out to itself"
        ),
        do="aws ec2 describe-security-groups; kubectl get nodes -L topology.kubernetes.io/zone",
    ),
    Sign(
        says=(
            r"RendezvousConnectionError|has timed out after|failed to connect to[^\n]*errno:"
            r" 1[01][^\n]*\n?\Z"
        ),
        why=(
            "nothing answers at the endpoint: wrong host or port, a pod that is not up, a security"
            " group in between"
        ),
        do="kubectl -n {space} get pods -l {job} --output wide, and compare with --rdzv_endpoint",
    ),
    Sign(
        # gpustack/gpustack#2125, meta-pytorch/torchtune#2676
        says=r"connectFullMesh failed|gloo[^\n]*Timed out",
        why=(
            "gloo cannot reach every rank: it took an address that the others do not see, or a rank"
            " is gone"
        ),
        do=(
            "set GLOO_SOCKET_IFNAME=eth0; which rank ended first: kubectl -n {space} logs -l {job}"
            " --prefix --tail=20"
        ),
    ),
    Sign(
        # NVIDIA/nccl#975, nccl-tests#166
        says=r"NCCL WARN[^\n]*(?:onnect|peer)|ncclSystemError|ncclRemoteError",
        why=(
            "NCCL cannot reach every rank: a rank is gone, or security group or interface are wrong"
        ),
        do=(
            "set NCCL_DEBUG=INFO and NCCL_SOCKET_IFNAME=eth0: kubectl -n {space} logs -l {job}"
            " --prefix --tail=20"
        ),
    ),
)
"""What ranks say when they do not meet. Of the endpoint: pytorch/pytorch#107021, #79388,
gensyn-ai/rl-swarm#197."""
EXITS = {
    126: "not executable",
    127: "command not found",
    137: "killed, often for memory",
    139: "segmentation fault",
}
"""Exit code → what it commonly means."""


def read(signs: tuple[Sign, ...], text: str, otherwise: str, **names: str) -> tuple[str, str]:
    """Why, with the line that says it, and what to do next; without a sign the text itself, and
    `otherwise`."""
    for sign in signs:
        if found := re.search(sign.says, text):
            caught = next(filter(None, found.groups()), "")
            line = text[text.rfind("\n", 0, found.start()) + 1 :].partition("\n")[0]
            return f"{sign.why.format(caught)}\n    {line}", sign.do.format(caught, **names)
    return text, otherwise
