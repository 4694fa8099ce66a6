"""What cannot work, refused before anything is created. One function a subject; each rule says what to do instead.

Sources of the rules: AWS service limits named beside them, and the traps in the shared facts (by-hand-and-traps.md §2).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping

from catalog import versions
from catalog.instances import INSTANCE_TYPES
from catalog.zones import SNAPSHOT, ZONE_LETTERS, regions_with, zone_ids_with, zone_names
from components.trainer_objects import upstream_runtimes
from stacks.config import EnvironmentConfig, JobConfig, PoolConfig, StackConfig, StoreConfig, TeamConfig
from stacks.faults import Fault, Notice

RFC_1918 = tuple(ipaddress.IPv4Network(c) for c in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
LUSTRE_TIERS = (125, 250, 500, 1000)
"""MB/s per TiB that FSx sells for PERSISTENT_2."""
SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system", "kubeflow-system")
"""They exist before us, or a chart makes them."""
RESERVED_ENV = ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT")
"""The Trainer sets them; its webhook refuses a job that does."""
TOKEN = re.compile(r"hf_[A-Za-z0-9]{20,}|AKIA[0-9A-Z]{16}|sk-lf-[0-9a-f-]{20,}|nvapi-[A-Za-z0-9_-]{20,}")
"""What tokens of Hugging Face, AWS, Langfuse and NVIDIA look like."""


def environment_faults(region: str, wanted: EnvironmentConfig, set_aside: frozenset[str]) -> Iterator[Fault]:
    """Every fault of an environment. `set_aside`: names that were left out, so that no second fault names them."""
    at = "environment"
    yield from _zone(region, wanted)
    yield from _network(wanted)
    yield from _cluster(wanted)
    if wanted.namespace in SYSTEM_NAMESPACES:
        yield Fault(path=f"{at}.namespace", rule="is for jobs only", value=wanted.namespace, way_out="training")
    for name, pool in wanted.pools.items():
        yield from _pool(f"{at}.pools.{name}", region, wanted, pool)
    for name, store in wanted.storage.items():
        yield from _store(f"{at}.storage.{name}", store)
    yield from _trainer(wanted)
    for name, job in wanted.jobs.items():
        yield from _job(f"{at}.jobs.{name}", job, wanted, set_aside)


def team_faults(region: str, team: TeamConfig, base: StackConfig, set_aside: frozenset[str]) -> Iterator[Fault]:
    """Every fault of a team on a sound environment."""
    environment = base.environment
    assert environment is not None  # plan_team has looked
    if region != base.region:
        yield Fault(path="aws:region", rule="is the environment's region", value=region, way_out=f"use {base.region}")
    if team.namespace in (environment.namespace, *SYSTEM_NAMESPACES):
        yield Fault(path="team.namespace", rule="is the team's own", value=team.namespace,
                    way_out=f"take another, such as team-{team.namespace}")
    for name, job in team.jobs.items():
        yield from _job(f"team.jobs.{name}", job, environment, set_aside)
        if team.max_gpus and job.pool in environment.pools and (need := _gpus(job, environment)) > team.max_gpus:
            yield Fault(path=f"team.jobs.{name}.nodes", rule="fits the team's max_gpus", value=f"{need} GPUs",
                        way_out=f"raise team.max_gpus from {team.max_gpus} or take fewer nodes")


def environment_notices(region: str, wanted: EnvironmentConfig) -> Iterator[Notice]:
    """What works but should be known."""
    if wanted.cluster.endpoint != "private" and "0.0.0.0/0" in wanted.cluster.public_access_cidrs:
        yield Notice(path="environment.cluster.public_access_cidrs",
                     text="the API server answers the whole internet (with credentials only); list your own addresses")
    if wanted.zone_id is None:
        yield Notice(path="environment.zone_id", text="unset, so what the zone sells is only checked by region")
    yield from job_notices(wanted.jobs, wanted)


def job_notices(jobs: Mapping[str, JobConfig], environment: EnvironmentConfig) -> Iterator[Notice]:
    """What should be known about jobs."""
    for name, job in jobs.items():
        pool = environment.pools.get(job.pool)
        kind = INSTANCE_TYPES.get(pool.instance_types[0]) if pool and pool.instance_types else None
        if kind and job.nodes > 1 and not kind.gpudirect:
            yield Notice(path=f"jobs.{name}.pool", text=f"{job.pool} has no GPUDirect RDMA: expect about 3 GB/s between"
                         " nodes where p5 reaches 487 (aws-ofi-nccl#547)")
        if "@sha256:" not in job.image:
            yield Notice(path=f"jobs.{name}.image", text="is a tag; a digest (@sha256:…) is what was tested")


def _zone(region: str, wanted: EnvironmentConfig) -> Iterator[Fault]:
    zone, known = wanted.zone, zone_names(region)
    choices = f"use one of {', '.join(known)}"
    if not known:
        # The network takes its other zones from the table; EKS refuses a cluster with one.
        yield Fault(path="aws:region", rule=f"is a region of the zone table (as of {SNAPSHOT})", value=region,
                    way_out=f"one of {', '.join(ZONE_LETTERS)}, or add a row to catalog/zones.py")
    elif zone == region or zone in ZONE_LETTERS:
        yield Fault(path="environment.zone", rule="is a zone, not a region", value=zone, way_out=choices)
    elif not zone.startswith(region):
        yield Fault(path="environment.zone", rule=f"lies in aws:region ({region})", value=zone, way_out=choices)
    elif zone not in known:
        yield Fault(path="environment.zone", rule=f"exists in {region}", value=zone, way_out=choices)


def _network(wanted: EnvironmentConfig) -> Iterator[Fault]:
    path, cidr = "environment.network.cidr", wanted.network.cidr
    try:
        vpc = ipaddress.IPv4Network(cidr)
    except ValueError as error:
        yield Fault(path=path, rule="is an IPv4 range", value=cidr, way_out=f"{error}; for example 10.0.0.0/16")
        return
    if not 16 <= vpc.prefixlen <= 20:
        yield Fault(path=path, rule="is /16 to /20 (a VPC's largest is /16; GPU nodes need room)", value=cidr,
                    way_out=f"{vpc.network_address}/16")
    if not any(vpc.subnet_of(private) for private in RFC_1918):
        yield Fault(path=path, rule="is private (RFC 1918)", value=cidr, way_out="for example 10.0.0.0/16")


def _cluster(wanted: EnvironmentConfig) -> Iterator[Fault]:
    cluster = wanted.cluster
    if cluster.version not in versions.KUBERNETES:
        yield Fault(path="environment.cluster.version", rule="is a version with known add-ons", value=cluster.version,
                    way_out=f"use {', '.join(versions.KUBERNETES)}, or add a row to catalog/versions.py")
    path = "environment.cluster.public_access_cidrs"
    if cluster.endpoint == "private" and cluster.public_access_cidrs:
        yield Fault(path=path, rule="belongs to a public endpoint", value=", ".join(cluster.public_access_cidrs),
                    way_out="drop it, or set endpoint: public-and-private")
    if cluster.endpoint != "private" and not cluster.public_access_cidrs:
        yield Fault(path=path, rule="says who may reach the public endpoint", value="nothing",
                    way_out="list your addresses, such as [203.0.113.7/32]")
    for cidr in cluster.public_access_cidrs:
        if not _is_network(cidr):
            yield Fault(path=path, rule="holds IPv4 ranges", value=cidr, way_out="for example 203.0.113.7/32")


def _pool(path: str, region: str, wanted: EnvironmentConfig, pool: PoolConfig) -> Iterator[Fault]:
    if len(pool.instance_types) != 1:
        yield Fault(path=f"{path}.instance_types", rule="holds one type: EFA interfaces are laid out by type",
                    value=", ".join(pool.instance_types) or "none", way_out="make a pool for each type")
    if pool.capacity != "on_demand":
        yield Fault(path=f"{path}.capacity", rule="is on_demand in this release", value=pool.capacity,
                    way_out="reservations, capacity blocks and spot are not built yet")
    for kind in pool.instance_types:
        if kind not in INSTANCE_TYPES:
            yield Fault(path=f"{path}.instance_types", rule="is a GPU type of the catalogue", value=kind,
                        way_out=f"one of {', '.join(INSTANCE_TYPES)}")
        elif region in ZONE_LETTERS and region not in regions_with(kind):
            yield Fault(path=f"{path}.instance_types", rule=f"is sold in {region} (as of {SNAPSHOT})", value=kind,
                        way_out=f"sold in {', '.join(regions_with(kind))}")
        elif wanted.zone_id and region in ZONE_LETTERS and wanted.zone_id not in zone_ids_with(kind, region):
            yield Fault(path=f"{path}.instance_types", rule=f"is sold in {wanted.zone_id} (as of {SNAPSHOT})",
                        value=kind, way_out=f"in {region}: {', '.join(zone_ids_with(kind, region))}")


def _store(path: str, store: StoreConfig) -> Iterator[Fault]:
    if (store.lustre is None) == (store.efs is None):
        yield Fault(path=path, rule="is exactly one of lustre and efs", value="both" if store.lustre else "neither",
                    way_out="lustre: {capacity_gib: 4800, throughput_mbps_per_tib: 500} or efs: {}")
    if store.lustre is None:
        return
    size, tier = store.lustre.capacity_gib, store.lustre.throughput_mbps_per_tib
    if size != 1200 and size % 2400:
        near = max(2400, round(size / 2400) * 2400)
        yield Fault(path=f"{path}.lustre.capacity_gib", rule="is 1200 or a multiple of 2400 GiB, as FSx sells it",
                    value=str(size), way_out=f"nearest: {1200 if size < 1800 else near}")
    if store.lustre.deployment == "PERSISTENT_2" and tier not in LUSTRE_TIERS:
        yield Fault(path=f"{path}.lustre.throughput_mbps_per_tib", rule=f"is one of {LUSTRE_TIERS} for PERSISTENT_2",
                    value=str(tier), way_out="500 writes a 30B checkpoint of 360 GB to 4800 GiB in about 2.5 minutes")
    if store.lustre.deployment == "SCRATCH_2" and tier is not None:
        yield Fault(path=f"{path}.lustre.throughput_mbps_per_tib", rule="is fixed for SCRATCH_2", value=str(tier),
                    way_out="drop it, or take deployment: PERSISTENT_2")


def _trainer(wanted: EnvironmentConfig) -> Iterator[Fault]:
    trainer = wanted.trainer
    if trainer.version not in versions.TRAINERS:
        yield Fault(path="environment.trainer.version", rule="is a release this program has builders for",
                    value=trainer.version, way_out=f"use {', '.join(versions.TRAINERS)}")
        return
    shipped = upstream_runtimes(trainer.version)
    for name in trainer.runtimes:
        if name not in shipped:
            yield Fault(path="environment.trainer.runtimes", rule=f"is a runtime of Trainer {trainer.version}",
                        value=name, way_out=f"one of {', '.join(shipped)}; your own go under own_runtimes")
    for name in trainer.own_runtimes:
        if name in shipped:
            yield Fault(path=f"environment.trainer.own_runtimes.{name}", rule="does not take an upstream name",
                        value=name, way_out=f"{name}-own")


def _job(path: str, job: JobConfig, environment: EnvironmentConfig,
         set_aside: frozenset[str]) -> Iterator[Fault]:
    yield from _job_pool(path, job, environment, set_aside)
    yield from _job_runtime(path, job, environment, set_aside)
    yield from _job_storage(path, job, environment, set_aside)
    yield from _job_command(path, job)
    for key, value in job.env.items():
        if key in RESERVED_ENV:
            yield Fault(path=f"{path}.env.{key}", rule="is set by the Trainer", value=value, way_out="drop it")
        if TOKEN.search(value):
            yield Fault(path=f"{path}.env.{key}", rule="holds no token in clear", value=f"{value[:4]}…",
                        way_out="put it into a Kubernetes Secret; it would be in the state file")


def _job_pool(path: str, job: JobConfig, environment: EnvironmentConfig, set_aside: frozenset[str]) -> Iterator[Fault]:
    pool = environment.pools.get(job.pool)
    if pool is None:
        if job.pool not in set_aside:
            yield Fault(path=f"{path}.pool", rule="is a pool of the environment", value=job.pool,
                        way_out=f"one of {', '.join(environment.pools) or 'none yet'}")
        return
    if job.nodes > pool.max_nodes:
        yield Fault(path=f"{path}.nodes", rule=f"fits pool {job.pool} (max_nodes {pool.max_nodes})",
                    value=str(job.nodes), way_out=f"raise pools.{job.pool}.max_nodes to {job.nodes}")
    kind = INSTANCE_TYPES.get(pool.instance_types[0]) if pool.instance_types else None
    if kind is None:
        return
    gpus = job.gpus_per_node or kind.gpus
    if gpus > kind.gpus:
        yield Fault(path=f"{path}.gpus_per_node", rule=f"fits {pool.instance_types[0]}, which has {kind.gpus}",
                    value=str(gpus), way_out=f"{kind.gpus}, or leave it out for all of them")
    if isinstance(job.processes_per_node, int) and job.processes_per_node > gpus:
        yield Fault(path=f"{path}.processes_per_node", rule=f"is at most the {gpus} GPUs of the pod",
                    value=str(job.processes_per_node), way_out=str(gpus))
    if job.shared_memory_gib * 1024 > kind.allocatable_mib // 2:
        yield Fault(path=f"{path}.shared_memory_gib", rule="leaves the ranks half of the node's memory",
                    value=str(job.shared_memory_gib), way_out=f"at most {kind.allocatable_mib // 2048}")


def _job_runtime(path: str, job: JobConfig, environment: EnvironmentConfig,
                 set_aside: frozenset[str]) -> Iterator[Fault]:
    trainer = environment.trainer
    known = (*trainer.runtimes, *trainer.own_runtimes)
    if job.runtime not in known and job.runtime not in set_aside:
        yield Fault(path=f"{path}.runtime", rule="is a runtime of the environment", value=job.runtime,
                    way_out=f"one of {', '.join(known)}")
    own = trainer.own_runtimes.get(job.runtime)
    if own and own.max_restarts and not job.checkpoints and not job.allow_no_checkpoint:
        yield Fault(path=f"{path}.checkpoints", rule=f"is what {own.max_restarts} restarts resume from",
                    value="nothing", way_out="set checkpoints: {store: …, directory: …} or allow_no_checkpoint: true")


def _job_storage(path: str, job: JobConfig, environment: EnvironmentConfig,
                 set_aside: frozenset[str]) -> Iterator[Fault]:
    for store in job.storage:
        if store not in environment.storage and store not in set_aside:
            yield Fault(path=f"{path}.storage.{store}", rule="is a store of the environment", value=store,
                        way_out=f"one of {', '.join(environment.storage) or 'none yet'}")
    paths = [mount.path.rstrip("/") for mount in job.storage.values()]
    for twice in sorted({p for p in paths if paths.count(p) > 1} | ({"/dev/shm", "/checkpoints"} & set(paths))):
        yield Fault(path=f"{path}.storage", rule="mounts one thing at a path", value=twice, way_out="take another path")
    store = job.checkpoints.store if job.checkpoints else None
    if store is not None and store not in environment.storage and store not in set_aside:
        yield Fault(path=f"{path}.checkpoints.store", rule="is a store of the environment", value=store,
                    way_out=f"one of {', '.join(environment.storage) or 'none yet'}")
    if job.checkpoints and ".." in job.checkpoints.directory.split("/"):
        yield Fault(path=f"{path}.checkpoints.directory", rule="stays in its store (the API server refuses `..`)",
                    value=job.checkpoints.directory, way_out="name it from the store's root")


def _job_command(path: str, job: JobConfig) -> Iterator[Fault]:
    if (job.script is None) == (not job.command):
        yield Fault(path=path, rule="has exactly one of script and command", value="both" if job.script else "neither",
                    way_out="script: | with bash text, or command: [program, argument]")
    # A continued line is one command: the shell joins it, so do we before looking.
    text = (job.script or " ".join(job.command)).replace("\\\n", " ")
    starts = [line for line in text.splitlines() if re.match(r"\s*(exec\s+)?torchrun\b", line)]
    if job.command and job.command[0].endswith("torchrun"):
        starts = [text]
    for line in starts:
        if job.nodes > 1 and not re.search(r"--(rdzv[_-]endpoint|master[_-]addr)\b", line):
            yield Fault(path=f"{path}.script", rule="gives torchrun a rendezvous endpoint: without one every node"
                        " waits at its own localhost", value=" ".join(line.split())[:60],
                        way_out="--rdzv_backend=c10d --rdzv_endpoint=${PET_MASTER_ADDR}:${PET_MASTER_PORT}")
    if re.search(r"\\[ \t]+(#|$)", job.script or "", re.MULTILINE):
        yield Fault(path=f"{path}.script", rule="ends continued lines with the backslash", value="a blank after \\",
                    way_out="delete what follows the backslash")
    for token in TOKEN.findall(text):
        yield Fault(path=f"{path}.script", rule="holds no token in clear", value=f"{token[:4]}…",
                    way_out="put it into a Kubernetes Secret")


def _gpus(job: JobConfig, environment: EnvironmentConfig) -> int:
    kind = INSTANCE_TYPES[environment.pools[job.pool].instance_types[0]]
    return job.nodes * (job.gpus_per_node or kind.gpus)


def _is_network(text: str) -> bool:
    try:
        ipaddress.IPv4Network(text)
    except ValueError:
        return False
    return True
