"""What is refused and what is not: tables of edits of the stack files, for test_rules.py and as
examples."""

from __future__ import annotations

from typing import Any

from tests.support.stackfile import Edit, at, without

JOB = "jobs.t5-large"
OWN = "trainer.own_runtimes.torch-distributed-resilient"
SCRIPT = f"{JOB}.script"
P5 = {"instance_types": ["p5.48xlarge"], "max_nodes": 1}

REPOSITORIES = "storage.scratch.lustre.repositories"


def _linked(*repositories: dict[str, Any]) -> Edit:
    """Repositories r0, r1, … of the dev file's Lustre store."""
    whole = {"s3": "s3://sets/a/", "path": "/data"}
    return at(
        REPOSITORIES, {f"r{n}": {**whole, **each} for n, each in enumerate(repositories or ({},))}
    )


# name → (edits of the dev file, path of the fault, part of what it says)
REFUSED: dict[str, tuple[list[Edit], str, str]] = {
    "region as zone": ([at("zone", "ap-northeast-2")], "zone", "is a zone, not a region"),
    "another region as zone": ([at("zone", "us-east-1")], "zone", "use one of ap-northeast-2a"),
    "zone of another region": (
        [at("zone", "us-east-1a")],
        "zone",
        "lies in aws:region (ap-northeast-2)",
    ),
    "zone that does not exist": (
        [at("zone", "ap-northeast-2f")],
        "zone",
        "exists in ap-northeast-2",
    ),
    "zone without a control plane": (
        [at("zone_id", "use1-az3")],
        "zone_id",
        "must be the id of a zone in which EKS places control planes, got use1-az3",
    ),
    "network in another region's zone": (
        [at("network.zones", ["ap-northeast-2a", "us-east-1b"])],
        "network.zones",
        "must name zones of ap-northeast-2, and none of them twice, got [ap-northeast-2a,"
        " us-east-1b]; zones: [ap-northeast-2a, ap-northeast-2b]",
    ),
    "network in one zone twice": (
        [at("network.zones", ["ap-northeast-2c", "ap-northeast-2c"])],
        "network.zones",
        "; zones: [ap-northeast-2c]",
    ),
    "network in one zone": (
        [at("network.zones", ["ap-northeast-2a"])],
        "network.zones",
        "a second zone beside environment.zone: EKS wants two, got [ap-northeast-2a]; zones:"
        " [ap-northeast-2a, ap-northeast-2b]",
    ),
    "fallback zone that the network leaves out": (
        [
            at("network.zones", ["ap-northeast-2c"]),
            at("pools.h100.fallback_zones", ["ap-northeast-2b"]),
        ],
        "pools.h100.fallback_zones",
        "one of ap-northeast-2c",
    ),
    "store with the name of a mount target": (
        [
            at("pools.h100.fallback_zones", ["ap-northeast-2b"]),
            at("storage.home-b", {"efs": {}}),
        ],
        "storage.home-b",
        "must not have the name of home's mount target in ap-northeast-2b",
    ),
    "no range": ([at("network.cidr", "10.0.0.0/99")], "network.cidr", "is an IPv4 range"),
    "host bits": ([at("network.cidr", "10.0.0.1/16")], "network.cidr", "has host bits set"),
    "network too large": ([at("network.cidr", "10.0.0.0/12")], "network.cidr", "/16 to /20"),
    "network too small": ([at("network.cidr", "10.0.0.0/24")], "network.cidr", "10.0.0.0/16"),
    "public addresses": ([at("network.cidr", "8.8.0.0/16")], "network.cidr", "RFC 1918"),
    "unknown Kubernetes": (
        [at("cluster.version", "1.19")],
        "cluster.version",
        "is a version with known add-ons",
    ),
    "CIDRs of a private endpoint": (
        [at("cluster.endpoint", "private")],
        "cluster.public_access_cidrs",
        "belongs to a public endpoint",
    ),
    "public endpoint for nobody": (
        [without("cluster.public_access_cidrs")],
        "cluster.public_access_cidrs",
        "says who may reach",
    ),
    "no range at the endpoint": (
        [at("cluster.public_access_cidrs", ["my-house"])],
        "cluster.public_access_cidrs",
        "holds IPv4 ranges, got my-house",
    ),
    "namespace of the system": ([at("namespace", "kube-system")], "namespace", "is for jobs only"),
    "no type in a pool": (
        [at("pools.g6e.instance_types", [])],
        "pools.g6e.instance_types",
        "got none",
    ),
    "unknown type": (
        [at("pools.g6e.instance_types", ["p7.48xlarge"])],
        "pools.g6e.instance_types",
        "is a type of the catalogue",
    ),
    "type the region does not sell": (
        [at("pools.big", {**P5, "instance_types": ["p5e.48xlarge"]})],
        "pools.big.instance_types",
        "is sold in ap-northeast-2",
    ),
    "type the zone does not sell": (
        [at("zone_id", "apne2-az3")],
        "pools.h100.instance_types",
        "in ap-northeast-2: apne2-az1",
    ),
    "store of two kinds": (
        [at("storage.home.lustre", {"capacity_gib": 1200, "throughput_mbps_per_tib": 125})],
        "storage.home",
        "got both",
    ),
    "store of no kind": ([without("storage.home.efs")], "storage.home", "got neither"),
    "size FSx does not sell": (
        [at("storage.scratch.lustre.capacity_gib", 5000)],
        "storage.scratch.lustre.capacity_gib",
        "nearest: 4800",
    ),
    "small size FSx does not sell": (
        [at("storage.scratch.lustre.capacity_gib", 1000)],
        "storage.scratch.lustre.capacity_gib",
        "nearest: 1200",
    ),
    "speed FSx does not sell": (
        [at("storage.scratch.lustre.throughput_mbps_per_tib", 300)],
        "storage.scratch.lustre.throughput_mbps_per_tib",
        "(125, 250, 500, 1000)",
    ),
    "no speed": (
        [without("storage.scratch.lustre.throughput_mbps_per_tib")],
        "storage.scratch.lustre.throughput_mbps_per_tib",
        "got None",
    ),
    "speed of scratch": (
        [at("storage.scratch.lustre.deployment", "SCRATCH_2")],
        "storage.scratch.lustre.throughput_mbps_per_tib",
        "is fixed for SCRATCH_2",
    ),
    "unknown Trainer": ([at("trainer.version", "1.8.1")], "trainer.version", "has builders for"),
    "unknown runtime": (
        [at("trainer.runtimes", ["torch-distributed", "jax"])],
        "trainer.runtimes",
        "your own go under own_runtimes",
    ),
    "own runtime of an upstream name": (
        [at("trainer.own_runtimes.torch-distributed", {"image": "a@sha256:0"})],
        "trainer.own_runtimes.torch-distributed",
        "does not take an upstream name",
    ),
    "unknown pool": ([at(f"{JOB}.pool", "g6")], f"{JOB}.pool", "one of g6e, h100"),
    "gang larger than its pool": (
        [at(f"{JOB}.nodes", 5)],
        f"{JOB}.nodes",
        "raise pools.g6e.max_nodes to 5",
    ),
    "more GPUs than a node has": (
        [at(f"{JOB}.gpus_per_node", 9)],
        f"{JOB}.gpus_per_node",
        "fits g6e.48xlarge, which has 8, got 9",
    ),
    "more ranks than GPUs": (
        [at(f"{JOB}.gpus_per_node", 4), at(f"{JOB}.processes_per_node", 8)],
        f"{JOB}.processes_per_node",
        "is at most the 4 GPUs of the pod",
    ),
    "all memory shared": (
        [at(f"{JOB}.shared_memory_gib", 1400)],
        f"{JOB}.shared_memory_gib",
        "half of the node's",
    ),
    "runtime that is not installed": (
        [at(f"{JOB}.runtime", "jax")],
        f"{JOB}.runtime",
        "is a runtime of the",
    ),
    "restarts from nothing": (
        [without(f"{JOB}.checkpoints")],
        f"{JOB}.checkpoints",
        "is what 5 restarts resume from",
    ),
    "unknown store": (
        [at(f"{JOB}.storage.data", {"path": "/data"})],
        f"{JOB}.storage.data",
        "one of scratch, home",
    ),
    "two mounts at a path": (
        [at(f"{JOB}.storage", {"home": {"path": "/mnt/"}, "scratch": {"path": "/mnt"}})],
        f"{JOB}.storage",
        "mounts one thing at a path, got /mnt",
    ),
    "mount where checkpoints are": (
        [at(f"{JOB}.storage.home", {"path": "/checkpoints"})],
        f"{JOB}.storage",
        "got /checkpoints",
    ),
    "mount on shared memory": (
        [at(f"{JOB}.storage.home", {"path": "/dev/shm"})],
        f"{JOB}.storage",
        "got /dev/shm",
    ),
    "checkpoints on an unknown store": (
        [at(f"{JOB}.checkpoints.store", "data")],
        f"{JOB}.checkpoints.store",
        "is a store of the environment, got data; one of scratch, home",
    ),
    "checkpoints outside of their store": (
        [at(f"{JOB}.checkpoints.directory", "a/../../b")],
        f"{JOB}.checkpoints.directory",
        "stays in its store",
    ),
    "no command": ([without(SCRIPT)], JOB, "got none"),
    "two commands": ([at(f"{JOB}.command", ["python", "train.py"])], JOB, "got script and command"),
    "ranks without a meeting place": (
        [at(SCRIPT, "cd /code\ntorchrun --rdzv_backend=c10d train.py\n")],
        f"{JOB}.script",
        "--rdzv_backend=c10d --rdzv_endpoint",
    ),
    "ranks without a meeting place, over lines": (
        [at(SCRIPT, "torchrun \\\n  --rdzv-backend c10d \\\n  train.py\n")],
        f"{JOB}.script",
        "rendezvous endpoint",
    ),
    "torchrun itself without a meeting place": (
        [without(SCRIPT), at(f"{JOB}.command", ["/usr/bin/torchrun", "--standalone", "train.py"])],
        f"{JOB}.script",
        "rendezvous",
    ),
    "blank after a backslash": (
        [at(SCRIPT, "torchrun --rdzv_endpoint=a:1 \\ \n  train.py\n")],
        f"{JOB}.script",
        "backslash",
    ),
    "comment after a backslash": (
        [at(SCRIPT, "torchrun --rdzv_endpoint=a:1 \\ # eight\n  train.py\n")],
        f"{JOB}.script",
        "backslash",
    ),
    "variable of the Trainer": (
        [at(f"{JOB}.env.PET_NNODES", "2")],
        f"{JOB}.env.PET_NNODES",
        "is set by the Trainer",
    ),
    "token in the environment": (
        [at(f"{JOB}.env.HF_TOKEN", "hf_" + "a" * 34)],
        f"{JOB}.env.HF_TOKEN",
        "put it into a Kubernetes Secret",
    ),
    "token in the script": (
        [at(SCRIPT, "export AWS_ACCESS_KEY_ID=AKIA" + "A" * 16)],
        f"{JOB}.script",
        "holds no token in clear",
    ),
}

# Pools: capacity that contradicts itself.

ODCR = {"id": "cr-0123456789abcdef0", "instances": 2}
BLOCK = {**ODCR, "starts": "2098-12-01T11:30:00Z", "ends": "2098-12-03T11:30:00Z"}
POOL = "pools.h100"


def _h100(**more: Any) -> Edit:
    return at(POOL, {**P5, "max_nodes": 2, **more})


def _job_on(pool: str, **more: Any) -> Edit:
    """A second job like the first, on another pool."""
    return lambda settings: settings["jobs"].update(
        {
            "other": {
                **settings["jobs"]["t5-large"],
                "pool": pool,
                "script": "accelerate launch t5.py",
                **more,
            }
        }
    )


def _over_efa(**more: Any) -> Edit:
    """The dev file's Lustre store, made for EFA."""
    return at(
        "storage.scratch.lustre",
        {"capacity_gib": 9600, "throughput_mbps_per_tib": 500, "efa": True, **more},
    )


CPU = at("pools.cpu", {"instance_types": ["m7i.48xlarge"], "max_nodes": 2})
MODEL = [at(f"{JOB}.parameters_billion", 70), at("storage.scratch.lustre.capacity_gib", 9600)]
"""9600 GiB at 500 MB/s per TiB: 840 GB take 3 minutes."""

REFUSED |= {
    "another accelerator": (
        [at(f"{POOL}.instance_types", ["trn1.32xlarge"])],
        f"{POOL}.instance_types",
        "is a type this program trains on",
    ),
    "one letter wrong in a type": (
        [at(f"{POOL}.instance_types", ["p5.48xlrage"])],
        f"{POOL}.instance_types",
        "nearest: p5.48xlarge",
    ),
    "a type twice": (
        [at(f"{POOL}.instance_types", ["p5.48xlarge", "p5.48xlarge"])],
        f"{POOL}.instance_types",
        "names a type once",
    ),
    "types with unlike GPUs": (
        [at("pools.mixed", {"instance_types": ["g6e.48xlarge", "g6e.12xlarge"], "max_nodes": 1})],
        "pools.mixed.instance_types",
        "g6e.48xlarge 8, g6e.12xlarge 4",
    ),
    "reserved nodes of several types": (
        [
            _h100(
                instance_types=["p5.48xlarge", "p5en.48xlarge"],
                capacity="reservation",
                reservation=ODCR,
            )
        ],
        f"{POOL}.instance_types",
        "is one type where nodes are reserved or kept",
    ),
    "capacity nobody sells": (
        [at(f"{POOL}.capacity", "cheap")],
        f"{POOL}.capacity",
        "input should be 'on_demand'",
    ),
    "reservation without an id": (
        [_h100(capacity="reservation")],
        f"{POOL}.reservation",
        "says which",
    ),
    "something that is no reservation's id": (
        [_h100(capacity="reservation", reservation={**ODCR, "id": "r-1"})],
        f"{POOL}.reservation.id",
        "string should match",
    ),
    "a reservation nothing uses": (
        [_h100(reservation=ODCR)],
        f"{POOL}.capacity",
        "capacity: reservation, or block",
    ),
    "more nodes than are reserved": (
        [_h100(max_nodes=3, capacity="reservation", reservation=ODCR)],
        f"{POOL}.max_nodes",
        "is at most the 2 instances",
    ),
    "a new placement group for a reservation": (
        [_h100(capacity="reservation", reservation=ODCR, placement="cluster")],
        f"{POOL}.placement",
        "only in the group it was made in",
    ),
    "a block without its ends": (
        [_h100(capacity="block", reservation=ODCR)],
        f"{POOL}.reservation",
        "has both ends",
    ),
    "a block that ends before it starts": (
        [_h100(capacity="block", reservation={**BLOCK, "ends": "2098-11-30T00:00:00Z"})],
        f"{POOL}.reservation.ends",
        "comes after starts",
    ),
    "a block that is over": (
        [
            _h100(
                capacity="block",
                reservation={
                    **ODCR,
                    "starts": "2024-01-01T00:00:00Z",
                    "ends": "2024-01-02T00:00:00Z",
                },
            )
        ],
        f"{POOL}.reservation.ends",
        "give the id of a new one",
    ),
    "a time without its zone": (
        [_h100(capacity="block", reservation={**BLOCK, "starts": "2098-12-01T11:30:00"})],
        f"{POOL}.reservation.starts",
        "timezone",
    ),
    "a block of a type that has none": (
        [
            at(
                "pools.g6e",
                {
                    "instance_types": ["g6e.48xlarge"],
                    "max_nodes": 2,
                    "capacity": "block",
                    "reservation": BLOCK,
                },
            )
        ],
        "pools.g6e.instance_types",
        "is sold as Capacity Block",
    ),
    "one reservation in two pools": (
        [
            _h100(capacity="reservation", reservation=ODCR),
            at("pools.more", {**P5, "capacity": "reservation", "reservation": ODCR}),
        ],
        "pools.more.reservation.id",
        "is not used by pool h100 already",
    ),
    "spares of nothing": ([_h100(warm_spares=1)], f"{POOL}.warm_spares", "set replicas too"),
    "more kept than the pool may have": (
        [_h100(replicas=2, warm_spares=1)],
        f"{POOL}.max_nodes",
        "holds 2 replicas and 1 spares",
    ),
    "spot that is kept": (
        [_h100(replicas=1, capacity="spot")],
        f"{POOL}.replicas",
        "which spot is not",
    ),
    "a fallback to the same zone": (
        [_h100(fallback_zones=["ap-northeast-2a"])],
        f"{POOL}.fallback_zones",
        "are other zones",
    ),
    "a fallback to a zone without a subnet": (
        [_h100(fallback_zones=["ap-northeast-2d"])],
        f"{POOL}.fallback_zones",
        "one of ap-northeast-2b, ap-northeast-2c",
    ),
    "a fallback named twice": (
        [_h100(fallback_zones=["ap-northeast-2b", "ap-northeast-2b"])],
        f"{POOL}.fallback_zones",
        "names a zone once",
    ),
    "a reservation with fallback zones": (
        [_h100(capacity="reservation", reservation=ODCR, fallback_zones=["ap-northeast-2b"])],
        f"{POOL}.fallback_zones",
        "is in one zone",
    ),
    "a placement group over zones": (
        [_h100(placement="cluster", fallback_zones=["ap-northeast-2b"])],
        f"{POOL}.fallback_zones",
        "is in one zone",
    ),
    "kept nodes over zones": (
        [_h100(replicas=1, fallback_zones=["ap-northeast-2b"])],
        f"{POOL}.fallback_zones",
        "spread over the zones",
    ),
    "two NodePools of one name": (
        [
            at("pools.a", {"instance_types": ["g6e.48xlarge", "g6.48xlarge"], "max_nodes": 1}),
            at("pools.a-2", P5),
        ],
        "pools.a",
        "rename one of the two",
    ),
    "more nodes than the subnet has addresses": (
        [at("network.cidr", "10.0.0.0/20"), at("pools.g6e.max_nodes", 40)],
        "network.cidr",
        "lower max_nodes",
    ),
    # The environment.
    "a zone id of another region": (
        [at("zone_id", "use1-az1")],
        "zone_id",
        "is a zone id of ap-northeast-2",
    ),
    "GPUs for controllers": (
        [at("system_nodes.instance_type", "g6e.12xlarge")],
        "system_nodes.instance_type",
        "pays for no GPUs",
    ),
    "controllers on Arm": (
        [at("system_nodes.instance_type", "m7g.xlarge")],
        "system_nodes.instance_type",
        "is x86",
    ),
    "controllers without memory": (
        [at("system_nodes.instance_type", "t3.small")],
        "system_nodes.instance_type",
        "8 GiB at least",
    ),
    "a tag of AWS": ([at("tags", {"aws:team": "a"})], "tags.aws:team", "is not a key that AWS"),
    "a tag of ours": (
        [at("tags", {"trainyard:stack": "a"})],
        "tags.trainyard:stack",
        "is not a key that AWS",
    ),
    "a tag that Karpenter refuses": (
        [at("tags", {"karpenter.sh/nodepool": "a"})],
        "tags.karpenter.sh/nodepool",
        "is not a key that AWS",
    ),
    "a long tag": ([at("tags", {"why": "w" * 257})], "tags.why", "its value 256"),
    "too many tags": ([at("tags", {f"t{n}": "1" for n in range(41)})], "tags", "are at most 40"),
    "an admin twice": (
        [
            at(
                "cluster.admins",
                {n: {"role_arn": "arn:aws:iam::000000000000:role/ops"} for n in "ab"},
            )
        ],
        "cluster.admins",
        "names a role once",
    ),
    "a namespace that looks like the system's": (
        [at("namespace", "kube-jobs")],
        "namespace",
        "is for jobs only",
    ),
    # Stores.
    "size and model": (
        [at("storage.scratch.lustre.for_model", {"parameters_billion": 7, "nodes": 2})],
        "storage.scratch.lustre.capacity_gib",
        "follows from for_model",
    ),
    "speed and model": (
        [at("storage.scratch.lustre.for_model", {"parameters_billion": 7, "nodes": 2})],
        "storage.scratch.lustre.throughput_mbps_per_tib",
        "follows from for_model",
    ),
    "neither size nor model": (
        [at("storage.scratch.lustre", {"throughput_mbps_per_tib": 500})],
        "storage.scratch.lustre.capacity_gib",
        "or follow from for_model",
    ),
    "scratch for a model": (
        [
            at(
                "storage.scratch.lustre",
                {"deployment": "SCRATCH_2", "for_model": {"parameters_billion": 7, "nodes": 2}},
            )
        ],
        "storage.scratch.lustre.deployment",
        "loses checkpoints with a server",
    ),
    "a goodput nobody reaches": (
        [
            at(
                "storage.scratch.lustre",
                {"for_model": {"parameters_billion": 1000, "nodes": 2000, "goodput_percent": 99.9}},
            )
        ],
        "storage.scratch.lustre.for_model.goodput_percent",
        "can be reached with what FSx sells",
    ),
    "backups of scratch": (
        [
            at(
                "storage.scratch.lustre",
                {"capacity_gib": 2400, "deployment": "SCRATCH_2", "backup_days": 7},
            )
        ],
        "storage.scratch.lustre.backup_days",
        "FSx makes no backups of scratch",
    ),
    "petabytes by mistake": (
        [at("storage.scratch.lustre.capacity_gib", 4800000)],
        "storage.scratch.lustre.capacity_gib",
        "is at most 1 PiB",
    ),
    "checkpoints that do not fit": (
        [at(f"{JOB}.parameters_billion", 175)],
        f"{JOB}.checkpoints.store",
        "holds 3 checkpoints of 2,100 GB",
    ),
    "saves that take longer than their interval": (
        [*MODEL, at(f"{JOB}.checkpoints.interval_minutes", 2)],
        f"{JOB}.checkpoints.interval_minutes",
        "is longer than a save",
    ),
    "asynchronous saves that never end": (
        [
            *MODEL,
            at(f"{JOB}.checkpoints.interval_minutes", 2),
            at(f"{JOB}.checkpoints.asynchronous", True),
        ],
        f"{JOB}.checkpoints.interval_minutes",
        "is longer than a save",
    ),
    "saves rarer than failures": (
        [*MODEL, at(f"{JOB}.checkpoints.interval_minutes", 200_000)],
        f"{JOB}.checkpoints.interval_minutes",
        "run between failures",
    ),
    "a goodput the store cannot keep": (
        [
            at(f"{JOB}.parameters_billion", 70),
            at("storage.scratch.lustre", {"capacity_gib": 2400, "throughput_mbps_per_tib": 125}),
            at(f"{JOB}.goodput_percent", 99.9),
        ],
        f"{JOB}.goodput_percent",
        "can be kept on scratch",
    ),
    "a goodput of nothing": (
        [at(f"{JOB}.goodput_percent", 95)],
        f"{JOB}.goodput_percent",
        "set parameters_billion and checkpoints",
    ),
    # Repositories.
    "backups of a linked store": (
        [_linked(), at("storage.scratch.lustre.backup_days", 7)],
        "storage.scratch.lustre.backup_days",
        "FSx backs up no file system that is linked to S3",
    ),
    "nine repositories": (
        [_linked(*({"s3": f"s3://sets-{n}", "path": f"/{n}"} for n in range(9)))],
        REPOSITORIES,
        "are at most 8 a file system, got 9",
    ),
    "no S3 URI": (
        [_linked({"s3": "https://sets.s3.amazonaws.com/a"})],
        f"{REPOSITORIES}.r0.s3",
        "is s3://bucket/prefix/",
    ),
    "no bucket of S3": (
        [_linked({"s3": "s3://My_Sets/a"})],
        f"{REPOSITORIES}.r0.s3",
        "3 to 63 of a-z",
    ),
    "relative path": (
        [_linked({"path": "data"})],
        f"{REPOSITORIES}.r0.path",
        "counts from the file system's root",
    ),
    "path with ..": (
        [_linked({"path": "/data/../x"})],
        f"{REPOSITORIES}.r0.path",
        "without empty steps, . and ..",
    ),
    "directories in each other": (
        [_linked({}, {"s3": "s3://other", "path": "/data/more"})],
        f"{REPOSITORIES}.r1.path",
        "lies beside r0's /data",
    ),
    "whole file system and a directory": (
        [_linked({"path": "/"}, {"s3": "s3://other"})],
        f"{REPOSITORIES}.r1.path",
        "lies beside r0's /, neither in it",
    ),
    "prefixes in each other": (
        [_linked({}, {"s3": "s3://sets/a/b", "path": "/more"})],
        f"{REPOSITORIES}.r1.s3",
        "lies beside r0's s3://sets/a/",
    ),
    "one prefix twice": (
        [_linked({}, {"s3": "s3://sets/a", "path": "/more"})],
        f"{REPOSITORIES}.r1.s3",
        "neither in it nor around it",
    ),
    "event twice": (
        [_linked({"auto_import": ["NEW", "NEW"]})],
        f"{REPOSITORIES}.r0.auto_import",
        "names an event once",
    ),
    # Lustre over EFA.
    "EFA of scratch": (
        [
            at(
                "storage.scratch.lustre",
                {"capacity_gib": 2400, "deployment": "SCRATCH_2", "efa": True},
            )
        ],
        "storage.scratch.lustre.efa",
        "scratch has no EFA",
    ),
    "size that is not sold with EFA": (
        [at("storage.scratch.lustre.efa", True)],
        "storage.scratch.lustre.capacity_gib",
        "is a multiple of 9600 GiB with EFA at 500 MB/s per TiB, got 4800; nearest: 9600",
    ),
    "EFA for nodes that would hang": (
        [_over_efa(), without(POOL)],
        "storage.scratch.lustre.efa",
        "g6e.48xlarge, which loses packets over EFA and hangs",
    ),
    "EFA over zones": (
        [
            _over_efa(),
            without("pools.g6e"),
            without("jobs"),
            _h100(fallback_zones=["ap-northeast-2b"]),
        ],
        "storage.scratch.lustre.efa",
        "EFA does not cross zones",
    ),
    # Jobs on pools.
    "a gang on several types": (
        [at("pools.g6e.instance_types", ["g6e.48xlarge", "g6.48xlarge"])],
        f"{JOB}.nodes",
        "ranks would mix them",
    ),
    "a gang over zones": (
        [at("pools.g6e.fallback_zones", ["ap-northeast-2b"])],
        f"{JOB}.nodes",
        "EFA does not cross zones",
    ),
    "a gang larger than what is kept": (
        [_h100(replicas=1), _job_on("h100", nodes=2)],
        "jobs.other.nodes",
        "it brings up no others",
    ),
    "a gang larger than what is reserved": (
        [
            _h100(max_nodes=2, capacity="reservation", reservation={**ODCR, "instances": 1}),
            _job_on("h100", nodes=2),
        ],
        "jobs.other.nodes",
        "has reserved",
    ),
    "a gang on spot that cannot resume": (
        [at("pools.g6e.capacity", "spot"), at(f"{JOB}.runtime", "torch-distributed")],
        f"{JOB}.nodes",
        "one reclaimed node ends all",
    ),
    "a run longer than its block": (
        [_h100(capacity="block", reservation=BLOCK), _job_on("h100", expected_hours=48)],
        "jobs.other.expected_hours",
        "fits the 47.3 h",
    ),
    "more ranks in the script than GPUs": (
        [at(f"{JOB}.gpus_per_node", 4)],
        f"{JOB}.script",
        "--nproc_per_node=${PET_NPROC_PER_NODE}",
    ),
    "GPUs of a CPU": (
        [CPU, _job_on("cpu", gpus_per_node=1, processes_per_node=1)],
        "jobs.other.gpus_per_node",
        "is left out on m7i.48xlarge",
    ),
    "ranks counted by GPUs on a CPU": (
        [CPU, _job_on("cpu")],
        "jobs.other.processes_per_node",
        "auto counts GPUs",
    ),
    "no image": ([at(f"{JOB}.image", " ")], f"{JOB}.image", "is an image, got  "),
    "an empty script": ([at(SCRIPT, "\n")], f"{JOB}.script", "does something"),
    "a variable nobody can name": (
        [at(f"{JOB}.env", {"MY-VAR": "1"})],
        f"{JOB}.env.MY-VAR",
        "is a variable's name",
    ),
    "NVLink where there is none": (
        [at(f"{JOB}.env", {"NCCL_P2P_LEVEL": "NVL"})],
        f"{JOB}.env.NCCL_P2P_LEVEL",
        "NVLink",
    ),
}

# name → (edits of the team file, path, part of what it says)
TEAM_REFUSED: dict[str, tuple[list[Edit], str, str]] = {
    "namespace of the environment": (
        [at("namespace", "training")],
        "team.namespace",
        "is the team's own",
    ),
    "namespace of the system": (
        [at("namespace", "default")],
        "team.namespace",
        "is the team's own",
    ),
    "more GPUs than its share": (
        [at("max_gpus", 4)],
        "team.jobs.vit-base.nodes",
        "raise team.max_gpus from 4",
    ),
    "pool that the environment lacks": (
        [at("jobs.vit-base.pool", "a100")],
        "team.jobs.vit-base.pool",
        "one of g6e, h100",
    ),
    "store that the environment lacks": (
        [at("jobs.vit-base.storage.data", {"path": "/data"})],
        "team.jobs.vit-base.storage.data",
        "is a store of the environment",
    ),
    "environment without a file": (
        [at("environment", "prod")],
        "team.environment",
        "no Pulumi.prod.yaml",
    ),
    "environment that is a team": (
        [at("environment", "team-vision")],
        "team.environment",
        "make check STACK=team-vision",
    ),
}

SOUND: dict[str, list[Edit]] = {
    "as it is": [],
    "another zone": [at("zone", "ap-northeast-2c")],
    "with its zone id": [at("zone_id", "apne2-az1")],
    "zones of its own, in any order": [
        at("network.zones", ["ap-northeast-2d", "ap-northeast-2a"]),
        at("pools.h100.fallback_zones", ["ap-northeast-2d"]),
    ],
    "two stores whose mount targets have names of their own": [
        at("pools.h100.fallback_zones", ["ap-northeast-2b"]),
        at("storage.home-c", {"efs": {}}),
    ],
    "a small private network": [at("network.cidr", "192.168.16.0/20")],
    "a private endpoint": [
        at("cluster.endpoint", "private"),
        without("cluster.public_access_cidrs"),
    ],
    "one's own address": [at("cluster.public_access_cidrs", ["203.0.113.7/32"])],
    "the smallest Lustre": [at("storage.scratch.lustre.capacity_gib", 1200)],
    "scratch Lustre": [
        at("storage.scratch.lustre", {"capacity_gib": 2400, "deployment": "SCRATCH_2"})
    ],
    "eight directories that show S3": [
        _linked(*({"s3": f"s3://sets/{n}-{n}/", "path": f"/{n}"} for n in range(8)))
    ],
    "names that begin alike": [_linked({}, {"s3": "s3://sets/ab", "path": "/database/"})],
    "a whole bucket as the whole file system": [
        _linked({"s3": "s3://sets", "path": "/", "auto_export": ["NEW"]})
    ],
    "scratch that shows S3": [
        _linked(),
        at("storage.scratch.lustre.deployment", "SCRATCH_2"),
        without("storage.scratch.lustre.throughput_mbps_per_tib"),
    ],
    "data that is kept": [at("storage.scratch.data", "keep"), without("storage.home.data")],
    "half a node": [
        at(f"{JOB}.gpus_per_node", 4),
        at(f"{JOB}.processes_per_node", 4),
        at(SCRIPT, "accelerate launch a.py"),
    ],
    "torchrun that goes by PET_MASTER_ADDR": [at(SCRIPT, "torchrun --nproc_per_node=8 train.py")],
    "the static backend, named": [at(SCRIPT, "torchrun --rdzv_backend=static train.py")],
    "one node without a meeting place": [at(f"{JOB}.nodes", 1), at(SCRIPT, "torchrun train.py")],
    "master_addr as the meeting place": [
        at(SCRIPT, "exec torchrun --master-addr=$PET_MASTER_ADDR train.py")
    ],
    "another launcher": [at(SCRIPT, "accelerate launch train.py")],
    "a command": [
        without(SCRIPT),
        at(f"{JOB}.command", ["python", "-m", "train", "--note=a \\ b"]),
    ],
    "no restarts and no checkpoints": [at(f"{OWN}.max_restarts", 0), without(f"{JOB}.checkpoints")],
    "restarts that may start over": [
        without(f"{JOB}.checkpoints"),
        at(f"{JOB}.allow_no_checkpoint", True),
    ],
    "an upstream runtime": [
        at(f"{JOB}.runtime", "torch-distributed"),
        without(f"{JOB}.checkpoints"),
    ],
    "no jobs": [without("jobs")],
    "no pools and no jobs": [at("pools", {}), without("jobs")],
    "no storage": [
        without("storage"),
        at(f"{JOB}.storage", {}),
        without(f"{JOB}.checkpoints"),
        at(f"{JOB}.allow_no_checkpoint", True),
    ],
    "charts from a folder": [at("artifacts.charts", "/mirror/charts")],
    "ordinary words that begin like tokens": [at(f"{JOB}.env", {"NAME": "hf_hub", "KIND": "AKIA"})],
    "tags": [at("tags", {"cost-center": "17"})],
}

SOUND |= {
    "Lustre over EFA for one pool of two": [_over_efa()],
    "Lustre over EFA for a model": [
        at(
            "storage.scratch.lustre",
            {"efa": True, "for_model": {"parameters_billion": 70, "nodes": 16}},
        )
    ],
    "several types for jobs of one node": [
        at("pools.g6e.instance_types", ["g6e.48xlarge", "g6.48xlarge"]),
        at(f"{JOB}.nodes", 1),
    ],
    "fallback zones for jobs of one node": [
        at("pools.g6e.fallback_zones", ["ap-northeast-2c"]),
        at(f"{JOB}.nodes", 1),
    ],
    "spot for a gang that resumes": [at("pools.g6e.capacity", "spot")],
    "spot for one node": [at("pools.g6e.capacity", "spot"), at(f"{JOB}.nodes", 1)],
    "a reservation": [_h100(capacity="reservation", reservation=ODCR), _job_on("h100")],
    "a reservation and the group it was made in": [
        _h100(capacity="reservation", reservation={**ODCR, "placement_group": "theirs"})
    ],
    "a reservation with an end": [
        _h100(capacity="reservation", reservation={**ODCR, "ends": BLOCK["ends"]})
    ],
    "a block": [_h100(capacity="block", reservation=BLOCK), _job_on("h100", expected_hours=47)],
    "a block of which some is used": [_h100(max_nodes=1, capacity="block", reservation=BLOCK)],
    "nodes that are kept": [_h100(replicas=2), _job_on("h100")],
    "kept nodes and a spare": [_h100(max_nodes=3, replicas=2, warm_spares=1), _job_on("h100")],
    "kept nodes of a reservation": [_h100(replicas=2, capacity="reservation", reservation=ODCR)],
    "a placement group": [_h100(placement="cluster")],
    "a CPU pool": [CPU, _job_on("cpu", processes_per_node=2)],
    "a job that shares a node": [
        at(f"{JOB}.gpus_per_node", 4),
        at(f"{JOB}.nodes", 1),
        at(SCRIPT, "python t5.py"),
    ],
    "ranks by variable": [
        at(SCRIPT, "torchrun --nproc_per_node=${PET_NPROC_PER_NODE} --rdzv_endpoint=a:1 t5.py")
    ],
    "a store by model": [
        at("storage.scratch.lustre", {"for_model": {"parameters_billion": 70, "nodes": 16}})
    ],
    "backups": [at("storage.scratch.lustre.backup_days", 7)],
    "a model and its interval": [*MODEL, at(f"{JOB}.checkpoints.interval_minutes", 30)],
    "asynchronous saves": [
        *MODEL,
        at(f"{JOB}.checkpoints.interval_minutes", 4),
        at(f"{JOB}.checkpoints.asynchronous", True),
    ],
    "a goodput that is kept": [*MODEL, at(f"{JOB}.goodput_percent", 95)],
    "small models on EFS": [
        at(f"{JOB}.checkpoints.store", "home"),
        at(f"{JOB}.parameters_billion", 0.7),
    ],
    "NCCL settings that do something": [
        at(f"{JOB}.env", {"NCCL_DEBUG": "INFO", "FI_LOG_LEVEL": "warn"})
    ],
    "another x86 type for controllers": [at("system_nodes.instance_type", "c7i.2xlarge")],
    "a Karpenter that makes no dry runs": [at("karpenter.dry_run", False)],
    "admins": [at("cluster.admins", {"ops": {"role_arn": "arn:aws:iam::000000000000:role/ops"}})],
}
