"""Durations of AWS, in seconds: `make up` expects them on a real account, and the rehearsal scales
them down.

Medians and 90th percentiles of raw logs that public files hold (gathered on 2026-11-20, checked
by hand and extended on 2026-11-22). Lines without a real cloud id and those of simulators were
left out. `n` says how much a figure is worth: with two or three lines the 90th percentile is the
slowest of them, with none both are from what people write.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Latency:
    """Duration of one operation."""

    typical: float
    """Median."""
    slow: float
    """90th percentile: one in ten takes as long or longer."""
    n: int
    """Lines of logs; 0: none, only what people write."""
    source: str
    families: tuple[str, ...] = ()
    """Families of instance types that the logs are of; empty where the type makes no difference."""


PROVEN_FILE = Path(__file__).with_name("proven.json")
"""Durations that people saw with `trainyard prove` on their accounts, by `python -m trainyard.catalog.refresh
--proven prove.json`: row, seconds, begin in UTC, region, instance type."""
FEW = 3
"""Lines of logs of which the slowest stands for the 90th percentile."""


@dataclass(frozen=True, kw_only=True)
class Proven:
    """A duration that somebody saw on an account."""

    row: str
    seconds: float
    start: str
    """UTC."""
    region: str
    instance_type: str = ""


def read_proven() -> tuple[Proven, ...]:
    """The durations of PROVEN_FILE."""
    columns = ("row", "seconds", "start", "region", "instance_type")
    rows = json.loads(PROVEN_FILE.read_text())
    return tuple(Proven(**dict(zip(columns, row, strict=True))) for row in rows)


def proven_of(proof: Mapping[str, Any]) -> Iterator[Proven]:
    """Durations of a file of `trainyard prove` that have a row."""
    for one in proof["seen"]:
        if one["row"] in LATENCIES and one["seconds"] > 0:
            yield Proven(
                row=one["row"],
                seconds=one["seconds"],
                start=one["start"],
                region=proof["region"],
                instance_type=one["instance_type"],
            )


def with_proven(row: Latency, seen: Sequence[Proven]) -> Latency:
    """The row with more durations. Of a row that only people wrote of, nothing is left; of another one each
    of its lines counts as much as each new one, on a logarithmic scale, because of them only the median and
    the 90th percentile are known."""
    if not seen:
        return row
    seconds = [one.seconds for one in seen]
    n = row.n + len(seconds)
    if not row.n:
        typical, slow = median(seconds), max(seconds)
    else:
        typical = _mean(row.typical, row.n, seconds)
        later = [each for each in seconds if each > row.slow]
        slow = max(row.slow, *seconds) if n <= FEW else _mean(row.slow, row.n, later)
    kinds = {one.instance_type.partition(".")[0] for one in seen} if row.families else set[str]()
    where = sorted({f"{one.region} {one.start[:10]}" for one in seen})
    own = f"{len(seconds)} of trainyard prove: {', '.join(where)}"
    return replace(
        row,
        typical=round(typical, 1),
        slow=round(max(slow, typical), 1),
        n=n,
        families=tuple(sorted({*row.families, *kinds} - {""})),
        source=f"{row.source}; {own}" if row.n else own,
    )


def _mean(known: float, n: int, more: Sequence[float]) -> float:
    """Geometric mean of a figure that stands for n lines, and of more lines."""
    logs = n * math.log(known) + sum(map(math.log, more))
    return math.exp(logs / (n + len(more)))


_LOGS = "terraform and eksctl logs in public files"
_PROSE = "write-ups, no log"

_WRITTEN: dict[str, Latency] = {
    "ec2.vpc": Latency(typical=14, slow=17, n=5, source=_LOGS),
    # 11 where public addresses are mapped, which ours leave off
    "ec2.subnet": Latency(typical=2, slow=3, n=3, source=_LOGS),
    # 3, and up to 8 for its rules, which EC2 takes one after the other
    "ec2.security-group": Latency(typical=11, slow=12, n=2, source=_LOGS),
    "ec2.nat-gateway": Latency(typical=111, slow=125, n=30, source=_LOGS),
    "ec2.nat-gateway.delete": Latency(typical=60, slow=75, n=2, source=_LOGS),
    "ec2.vpc-endpoint": Latency(typical=6, slow=7, n=9, source=_LOGS),
    "ec2.interface-endpoint": Latency(
        typical=90, slow=115, n=1, source="one log of 113; a judgement on the rest"
    ),
    "ec2.instance-boot": Latency(
        typical=129,
        slow=140,
        n=2,
        families=("g6",),
        source=(
            "Karpenter on AL2023, NodeClaim to initialized: g6.12xlarge in Seoul and g6 in us-west-2;"
            " Auto Mode on Bottlerocket takes 75"
        ),
    ),
    # Ready and initialized at once: the plugin of GPUs is a service of the system, and no pod
    "ec2.instance-boot.bottlerocket": Latency(
        typical=75,
        slow=90,
        n=0,
        families=("p5",),
        source=(
            "authors of AWS in The New Stack (2026-07), no log: a pod of p5.48xlarge to its node, Ready after"
            " 60 to 90 s in Auto Mode, whose nodes are Bottlerocket"
        ),
    ),
    "ec2.instance-ready": Latency(
        typical=86,
        slow=97,
        n=1,
        source=(
            "43 s before the GPU node is initialized: it was registered 61 s before (g6.12xlarge in"
            " Seoul), and 5 AL2023 nodes without GPUs were Ready 13 to 21 s after that, median 18"
        ),
    ),
    "ec2.instance-terminate": Latency(typical=60, slow=90, n=0, source=_PROSE),
    "eks.cluster": Latency(
        typical=544, slow=683, n=26, source=f"{_LOGS}; median of the newest ten, 595 of all"
    ),
    "eks.cluster.delete": Latency(typical=150, slow=225, n=3, source=_LOGS),
    "eks.addon": Latency(typical=25, slow=45, n=9, source=f"{_LOGS}: kube-proxy"),
    "eks.addon.vpc-cni": Latency(typical=30, slow=35, n=4, source=f"{_LOGS}, before nodes"),
    "eks.addon.coredns": Latency(typical=15, slow=56, n=9, source=f"{_LOGS}, with nodes"),
    "eks.addon.aws-fsx-csi-driver": Latency(
        typical=54, slow=65, n=7, source=f"{_LOGS}: the driver of EBS in its place"
    ),
    "eks.addon.aws-efs-csi-driver": Latency(
        typical=54, slow=65, n=7, source=f"{_LOGS}: the driver of EBS in its place"
    ),
    "eks.addon.delete": Latency(typical=20, slow=40, n=0, source=_PROSE),
    "eks.nodegroup": Latency(typical=124, slow=333, n=16, source=f"{_LOGS}; one took 1,979"),
    "eks.nodegroup.ready": Latency(
        typical=89,
        slow=298,
        n=3,
        source=(
            "the fastest groups, ACTIVE after 80, 88 and 89 s, had Ready nodes by then; an instance"
            " takes 37 to 48 of them (5 logs of Karpenter, AL2023). Slow: as long before ACTIVE"
        ),
    ),
    "eks.nodegroup.delete": Latency(typical=250, slow=300, n=0, source=_PROSE),
    "efs.file-system": Latency(typical=8, slow=10, n=1, source=_LOGS),
    "efs.mount-target": Latency(typical=84, slow=95, n=1, source=_LOGS),
    "efs.mount-target.delete": Latency(typical=30, slow=60, n=0, source=_PROSE),
    "fsx.lustre": Latency(
        typical=446,
        slow=600,
        n=3,
        source="PERSISTENT_2-500 of 1.2 TiB: 446 and 372; steampipe-plugin-aws#906: 360 to 370",
    ),
    "fsx.lustre.large": Latency(
        typical=720, slow=900, n=1, source="aws-fsx-csi-driver#382: 72 TB of SCRATCH_2"
    ),
    "fsx.lustre.efa": Latency(
        typical=900, slow=1200, n=0, source=f"{_PROSE}; terraform-provider-aws#40568 timed out"
    ),
    "fsx.lustre.delete": Latency(
        typical=200, slow=250, n=10, source="terraform-provider-aws#22291 and others, with create"
    ),
    "fsx.backup": Latency(
        typical=300,
        slow=3600,
        n=0,
        source=f"{_PROSE}; FSx user guide, using-backups-fsx: minutes with little data, hours with TBs",
    ),
    # one after the other on a file system; 120 with a small bucket, more than 600 with a large one
    "fsx.association": Latency(typical=300, slow=600, n=2, source="terraform-provider-aws#22291"),
    "fsx.association.delete": Latency(typical=540, slow=600, n=1, source=_LOGS),
    "sqs.queue": Latency(typical=26, slow=26, n=5, source=_LOGS),
    "iam.propagation": Latency(typical=2, slow=7, n=3, source=_LOGS),
    "helm.karpenter": Latency(typical=62, slow=63, n=2, source=_LOGS),
    "helm.controller": Latency(
        typical=60, slow=105, n=4, source=f"{_LOGS}: other controllers with webhooks"
    ),
    "kubernetes.pools": Latency(typical=6, slow=10, n=0, source="a model"),
    "kubernetes.runtimes": Latency(typical=3, slow=6, n=0, source="a model"),
    "job.batching": Latency(
        typical=2,
        slow=10,
        n=0,
        source=(
            "Karpenter's settings: a batch ends 1 s after its last pod (BATCH_IDLE_DURATION), 10 s"
            " after its first at the latest (BATCH_MAX_DURATION); a gang's pods come within a second"
        ),
    ),
    "job.image-pull": Latency(
        typical=50,
        slow=60,
        n=2,
        source=(
            "9.35 and 10.78 GB on AL2023 with SOCI's parallel pull, which our nodes turn on"
            " (karpenter-blueprints); 112 to 138 without it, 23 to 45 on Bottlerocket"
        ),
    ),
    "job.image-pull.bottlerocket": Latency(
        typical=34,
        slow=45,
        n=2,
        source="9.35 and 10.78 GB in 23.2 and 45.0 s, in the same runs as the two on AL2023, with the same pull",
    ),
    "job.first-step": Latency(
        typical=45, slow=90, n=0, source=f"{_PROSE}: imports, rendezvous and NCCL with 16 ranks"
    ),
}
"""Figures without what people saw with `trainyard prove`."""
_PROVEN = read_proven()
LATENCIES: dict[str, Latency] = {
    name: with_proven(row, [one for one in _PROVEN if one.row == name])
    for name, row in _WRITTEN.items()
}
"""Operations of the account, of the cluster and of a job, with the seconds that they take. A
NodeClaim counts until its node is initialized, which is when pods can start."""

TYPICAL: dict[str, float] = {name: each.typical for name, each in LATENCIES.items()}
"""The medians."""

LARGE_LUSTRE_GIB = 12_000
"""From here a file system takes as long as the large one that was measured. A guess of ours, between
the sizes of the two measurements."""

STAGES: dict[str, float] = {
    "network": 130,
    "storage": 460,
    "cluster": 575,
    "system nodes": 140,
    "karpenter": TYPICAL["helm.karpenter"],
    "pools": TYPICAL["kubernetes.pools"],
    "trainer": TYPICAL["helm.controller"],
    "runtimes": TYPICAL["kubernetes.runtimes"],
    "jobs": 183,
}
"""Seconds that a stage takes on AWS (model): its slowest chain of the above; `jobs` is a node, its
image and the first step, but not the training itself. Stages overlap: storage runs beside the
cluster."""


def add_on(name: str) -> str:
    """Name of the row of LATENCIES for an add-on of EKS."""
    own = f"eks.addon.{name}"
    return own if own in LATENCIES else "eks.addon"


def lustre(capacity_gib: int, *, efa: bool) -> str:
    """Name of the row of LATENCIES for a Lustre file system."""
    if efa:
        return "fsx.lustre.efa"
    return "fsx.lustre.large" if capacity_gib >= LARGE_LUSTRE_GIB else "fsx.lustre"


NAT_START_GBPS, NAT_MOST_GBPS = 5, 100
"""Gigabits a second of one NAT gateway: with which it starts, and to which it grows by itself (VPC user
guide, nat-gateway-basics). All nodes of a job are behind one: they are in one zone."""
IMAGE_GB = Decimal("9.35")
"""Size of the image behind "image pull", and of an image whose size nobody says: AWS's deep learning
container of PyTorch. It comes from a
public registry, through the NAT gateway; layers in ECR of the same region come through the S3
endpoint, which is free."""
