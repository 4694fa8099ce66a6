"""What a job cannot be: gangs that never assemble, ranks that never meet, runs that cannot resume.

Sources: Trainer 2.1 (shared facts trainer.md), traps 2a to 2c of by-hand-and-traps.md; storage.py has the checkpoints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta

from catalog import fabric
from stacks.capacity import TYPES, largest_gang
from stacks.faults import Fault, Notice
from stacks.settings import EnvironmentConfig, JobConfig, PoolConfig
from stacks.storage import checkpoint_faults, checkpoint_notices

RESERVED_ENV = ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT")
"""The Trainer sets them; its webhook refuses a job that does."""
TOKEN = re.compile(r"hf_[A-Za-z0-9]{20,}|AKIA[0-9A-Z]{16}|sk-lf-[0-9a-f-]{20,}|nvapi-[A-Za-z0-9_-]{20,}")
"""What tokens of Hugging Face, AWS, Langfuse and NVIDIA look like."""
RANKS = re.compile(r"--nproc[_-]per[_-]node[= ]+(\d+)")
BLOCK_TAIL = timedelta(minutes=40)
"""Karpenter drains a Capacity Block this long before its end (karpenter-provider-aws, a constant)."""


def job_faults(path: str, job: JobConfig, environment: EnvironmentConfig, region: str,
               set_aside: frozenset[str]) -> Iterator[Fault]:
    """Every fault of a job. `set_aside`: names that were left out, so that no second fault names them."""
    pool = environment.pools.get(job.pool)
    if pool is None and job.pool not in set_aside:
        yield Fault(path=f"{path}.pool", rule="is a pool of the environment", value=job.pool,
                    way_out=f"one of {', '.join(environment.pools) or 'none yet'}")
    if pool is not None and pool.instance_types and set(pool.instance_types) <= set(TYPES):
        yield from _gang(path, job, pool, environment)
        yield from _node(path, job, pool)
        yield from _until_the_end(path, job, pool)
        yield from checkpoint_faults(path, job, environment, region)
    yield from _runtime(path, job, environment, set_aside)
    yield from _storage(path, job, environment, set_aside)
    yield from _command(path, job)
    yield from _environment(path, job, pool)


def job_notices(jobs: Mapping[str, JobConfig], environment: EnvironmentConfig, region: str,
                at: str) -> Iterator[Notice]:
    """What works but should be known about jobs. `at`: the path that holds them."""
    for name, job in jobs.items():
        path, pool = f"{at}.{name}", environment.pools.get(job.pool)
        kind = TYPES.get(pool.instance_types[0]) if pool and pool.instance_types else None
        if kind and pool and job.nodes > 1 and not job.allow_slow_fabric and (slow := fabric.slow(kind)):
            yield Notice(path=f"{path}.pool", text=f"{job.pool} {slow}")
        if kind and kind.gpus and job.nodes > 1 and (job.gpus_per_node or kind.gpus) < kind.gpus:
            yield Notice(path=f"{path}.gpus_per_node", text=f"leaves {kind.gpus - (job.gpus_per_node or 0)} GPUs of"
                         " each node idle and sends over the network what could stay in one: fewer, whole nodes")
        for key, value in job.env.items():
            if kind and (vain := fabric.harm(key, value, kind)) and vain.idle:
                yield Notice(path=f"{path}.env.{key}", text=vain.reason)
        if "@sha256:" not in job.image:
            yield Notice(path=f"{path}.image", text="is a tag; a digest (@sha256:…) is what was tested")
        if pool and pool.fallback_zones and (away := sorted(_stores(job))):
            yield Notice(path=f"{path}.pool", text=f"may run in another zone than {', '.join(away)}: slower, and"
                         " $0.01 a GB each way")
        yield from checkpoint_notices(path, job, environment, region)


def _gang(path: str, job: JobConfig, pool: PoolConfig, environment: EnvironmentConfig) -> Iterator[Fault]:
    """All nodes of a job must come up at once, alike and in one zone."""
    path, most = f"{path}.nodes", largest_gang(pool)
    if job.nodes > pool.max_nodes:
        yield Fault(path=path, rule=f"fits pool {job.pool} (max_nodes {pool.max_nodes})", value=str(job.nodes),
                    way_out=f"raise pools.{job.pool}.max_nodes to {job.nodes}")
    elif job.nodes > most:
        yield Fault(path=path, rule=f"fits the {most} nodes that pool {job.pool} "
                    f"{'keeps: it brings up no others' if pool.replicas else 'has reserved'}", value=str(job.nodes),
                    way_out=f"at most {most}, or another pool")
    if job.nodes > 1 and len(pool.instance_types) > 1:
        yield Fault(path=path, rule=f"is 1 on pool {job.pool}, which has several types: ranks would mix them",
                    value=str(job.nodes), way_out=f"a pool of one type, such as {pool.instance_types[0]}")
    if job.nodes > 1 and pool.fallback_zones:
        yield Fault(path=path, rule=f"is 1 on pool {job.pool}, which has fallback zones: EFA does not cross zones",
                    value=str(job.nodes), way_out="a pool without fallback_zones")
    if job.nodes > 1 and pool.capacity == "spot" and not _resumable(job, environment):
        yield Fault(path=path, rule="is 1 on spot, unless the gang restarts and resumes: one reclaimed node ends all",
                    value=str(job.nodes), way_out="a runtime with max_restarts and checkpoints, or on_demand")


def _resumable(job: JobConfig, environment: EnvironmentConfig) -> bool:
    own = environment.trainer.own_runtimes.get(job.runtime)
    return job.checkpoints is not None and own is not None and own.max_restarts > 0


def _node(path: str, job: JobConfig, pool: PoolConfig) -> Iterator[Fault]:
    """What one pod asks of its node."""
    name = pool.instance_types[0]
    kind = TYPES[name]
    if not kind.gpus:
        yield from _cpu_node(path, job, name)
        return
    gpus = job.gpus_per_node or kind.gpus
    if gpus > kind.gpus:
        yield Fault(path=f"{path}.gpus_per_node", rule=f"fits {name}, which has {kind.gpus}", value=str(gpus),
                    way_out=f"{kind.gpus}, or leave it out for all of them")
    if isinstance(job.processes_per_node, int) and job.processes_per_node > gpus:
        yield Fault(path=f"{path}.processes_per_node", rule=f"is at most the {gpus} GPUs of the pod",
                    value=str(job.processes_per_node), way_out=str(gpus))
    for ranks in sorted({int(n) for n in RANKS.findall(job.script or " ".join(job.command)) if int(n) > gpus}):
        yield Fault(path=f"{path}.script", rule=f"starts at most a rank for each of the pod's {gpus} GPUs",
                    value=f"--nproc_per_node={ranks}", way_out="--nproc_per_node=${PET_NPROC_PER_NODE}")
    least = min(TYPES[each].allocatable_mib for each in pool.instance_types)
    if job.shared_memory_gib * 1024 > least // 2:
        yield Fault(path=f"{path}.shared_memory_gib", rule="leaves the ranks half of the node's memory",
                    value=str(job.shared_memory_gib), way_out=f"at most {least // 2048}")


def _cpu_node(path: str, job: JobConfig, name: str) -> Iterator[Fault]:
    if job.gpus_per_node is not None:
        yield Fault(path=f"{path}.gpus_per_node", rule=f"is left out on {name}, which has none",
                    value=str(job.gpus_per_node), way_out="drop it, or take a pool with GPUs")
    if job.processes_per_node == "auto":
        yield Fault(path=f"{path}.processes_per_node", rule=f"is a number on {name}: auto counts GPUs", value="auto",
                    way_out="1, and threads for the rest; or one a NUMA node")


def _until_the_end(path: str, job: JobConfig, pool: PoolConfig) -> Iterator[Fault]:
    """A job fits what is left of a Capacity Block."""
    held = pool.reservation
    if job.expected_hours is None or held is None or held.starts is None or held.ends is None:
        return
    hours = (held.ends - held.starts - BLOCK_TAIL) / timedelta(hours=1)
    if job.expected_hours > hours:
        yield Fault(path=f"{path}.expected_hours", rule=f"fits the {hours:.1f} h that {held.id} gives (its nodes drain"
                    " 40 minutes before the end)", value=f"{job.expected_hours:g}",
                    way_out="fewer hours with checkpoints to go on from, or a longer block")


def _environment(path: str, job: JobConfig, pool: PoolConfig | None) -> Iterator[Fault]:
    kind = TYPES.get(pool.instance_types[0]) if pool and pool.instance_types else None
    for key, value in job.env.items():
        path_of = f"{path}.env.{key}"
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key):
            yield Fault(path=path_of, rule="is a variable's name", value=key, way_out="letters, digits and _")
        if key in RESERVED_ENV:
            yield Fault(path=path_of, rule="is set by the Trainer", value=value, way_out="drop it")
        if TOKEN.search(value):
            yield Fault(path=path_of, rule="holds no token in clear", value=f"{value[:4]}…",
                        way_out="put it into a Kubernetes Secret; it would be in the state file")
        if kind and (harm := fabric.harm(key, value, kind)) and not harm.idle:
            yield Fault(path=path_of, rule=harm.reason, value=value, way_out="drop it")


def _stores(job: JobConfig) -> set[str]:
    return {*job.storage, *([job.checkpoints.store] if job.checkpoints else [])}


def _runtime(path: str, job: JobConfig, environment: EnvironmentConfig,
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


def _storage(path: str, job: JobConfig, environment: EnvironmentConfig,
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


def _command(path: str, job: JobConfig) -> Iterator[Fault]:
    if not job.image.strip() or " " in job.image.strip():
        yield Fault(path=f"{path}.image", rule="is an image", value=job.image or "nothing",
                    way_out="registry/name:tag, better registry/name@sha256:…")
    if job.script is not None and not job.script.strip():
        yield Fault(path=f"{path}.script", rule="does something", value="nothing", way_out="write it, or drop the job")
    if (job.script is None) == (not job.command):
        yield Fault(path=path, rule="has exactly one of script and command", value="both" if job.script else "neither",
                    way_out="script: | with bash text, or command: [program, argument]")
    # A continued line is one command: the shell joins it, so do we before looking.
    text = (job.script or " ".join(job.command)).replace("\\\n", " ")
    starts = [line for line in text.splitlines() if re.match(r"\s*(exec\s+)?torchrun\b", line)]
    if job.command and job.command[0].endswith("torchrun"):
        starts = [text]
    for line in starts:
        # Without any of these options torchrun goes by PET_MASTER_ADDR, as the Trainer sets it: that works.
        alone = re.search(r"--standalone\b|--rdzv[_-]backend[= ]+(?!static)", line)
        if job.nodes > 1 and alone and not re.search(r"--(rdzv[_-]endpoint|master[_-]addr)\b", line):
            yield Fault(path=f"{path}.script", rule="gives torchrun a rendezvous endpoint: without one every node"
                        " waits at its own localhost", value=" ".join(line.split())[:60],
                        way_out="--rdzv_backend=c10d --rdzv_endpoint=${PET_MASTER_ADDR}:${PET_MASTER_PORT}")
    if re.search(r"\\[ \t]+(#|$)", job.script or "", re.MULTILINE):
        yield Fault(path=f"{path}.script", rule="ends continued lines with the backslash", value="a blank after \\",
                    way_out="delete what follows the backslash")
    for token in TOKEN.findall(text):
        yield Fault(path=f"{path}.script", rule="holds no token in clear", value=f"{token[:4]}…",
                    way_out="put it into a Kubernetes Secret")
