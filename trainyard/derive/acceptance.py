"""The job that measures what the plan promises on the nodes of a pool, and what is promised.

It is an entry of the stack file like any other, whose script is workloads/accept/measure.py. The word
that writes the entry and judges what the script prints: trainyard/operations/nodes/accept.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from trainyard.catalog.acceptance import MINUTES, MINUTES_OF_STORE
from trainyard.catalog.aws.storage import Speed
from trainyard.derive import pod_resources
from trainyard.derive.pools import TYPES
from trainyard.derive.team_stores import stores_of
from trainyard.objects.jobs.pod_template import EFA, GPU
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import RUN_NUMBER, JobConfig
from trainyard.settings.training.files import FilesConfig
from trainyard.stores.goodput import bytes_per_second
from trainyard.stores.kinds import kind_of, kinds_of, sized

SCRIPT = "workloads/accept/measure.py"
RESTARTS = 3
"""Restarts of the ranks by torchrun. The script kills one of its ranks once; a node more that fails
at the same moment is another restart."""

FRESH_STORE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
"""Makes torchrun's restarted ranks meet in a new store. In the one that torchrun shares with them
they can find the addresses of the ranks before, and wait for these (torch 2.15,
dynamic_rendezvous.py)."""


@dataclass(frozen=True, kw_only=True)
class Promise:
    """Promise of a plan about the nodes of one job."""

    instance_type: str
    nodes: int
    gpus: int
    """GPUs of each pod."""
    efa: int
    """EFA devices of each pod."""
    lustre_over_efa: bool = False
    """The nodes mount some Lustre store of the job over EFA."""
    stores: Mapping[str, Speed]
    """Store → what all nodes of the job reach together."""


def is_acceptance(job: JobConfig) -> bool:
    """True where the job runs the script that measures."""
    return job.files is not None and SCRIPT in job.files.sources


def acceptance_entry(
    environment: EnvironmentConfig,
    *,
    pool: str,
    nodes: int,
    image: str,
    runtime: str,
    team: str | None = None,
) -> dict[str, Any]:
    """The entry of a stack file. Each run has a folder of its own, so that results stay. `team`: whose
    file it is; None: the environment's."""
    stores = measured_stores(environment, team)
    paths = {store: f"/stores/{store}" for store in stores}
    kinds = environment.pools[pool].instance_types
    script = f"{FilesConfig(sources=(SCRIPT,)).path}/{PurePosixPath(SCRIPT).name}"
    minutes = MINUTES + MINUTES_OF_STORE * len(stores)
    return {
        "runtime": runtime,
        "nodes": nodes,
        "pool": pool,
        "image": image,
        **({} if TYPES[kinds[0]].gpus else {"processes_per_node": 1}),
        "files": {"sources": [SCRIPT]},
        "torchrun": {
            "script": script,
            "max_restarts": RESTARTS,
            "arguments": [f"--store={store}={path}" for store, path in paths.items()],
        },
        "env": FRESH_STORE,
        "storage": {store: {"path": path} for store, path in paths.items()},
        "checkpoints": {"store": stores[0], "directory": f"accept-{pool}/{RUN_NUMBER}"},
        "expected_hours": math.ceil(minutes / 6) / 10,
    }


def measured_stores(environment: EnvironmentConfig, team: str | None = None) -> list[str]:
    """The stores whose files can be written and read as those of a disk. `team`: the one whose jobs
    do so; None: the environment's own, or those of a team that it does not list."""
    storage = environment.storage
    if entry := environment.teams.get(team or ""):
        seen = stores_of(entry, environment)
        storage = {name: store for name, store in seen.items() if store.teams != "read_only"}
    found = {name: kind_of(store) for name, store in storage.items()}
    return [name for name, kind in found.items() if kind and not [*kind[0].write_errors("", name)]]


def promise(job: JobConfig, environment: EnvironmentConfig, region: str) -> Promise:
    """Promise of the plan about the job's nodes."""
    pool = environment.pools[job.pool]
    kind = TYPES[pool.instance_types[0]]
    devices = pod_resources.devices(job, kind)
    return Promise(
        instance_type=kind.name,
        nodes=job.nodes,
        gpus=devices.get(GPU, 0),
        efa=devices.get(EFA, 0),
        lustre_over_efa=any(
            store_kind.mounts_over_efa(settings, pool, kind.name)
            for name in job.storage
            for store_kind, settings in kinds_of(environment.storage[name])
        ),
        stores={
            name: speed
            for name in job.storage
            if (speed := _speed(name, job, environment, region)) is not None
        },
    )


def _speed(name: str, job: JobConfig, environment: EnvironmentConfig, region: str) -> Speed | None:
    """Speed that the nodes of a job reach together on a store; None where that is not known."""
    pool = environment.pools[job.pool]
    first = [each.instance_types[0] for each in environment.pools.values() if each.instance_types]
    found = kind_of(sized(environment.storage[name], region, first))
    if found is None:
        return None
    kind, settings = found
    store, instance_type = kind.checkpoint_store(settings, region), pool.instance_types[0]
    if store is None:
        return None
    over_efa = kind.mounts_over_efa(settings, pool, instance_type)
    return bytes_per_second(
        store, nodes=job.nodes, instance_type=instance_type, mounted_over_efa=over_efa
    )
