"""What a pod of an entry of `jobs` cannot request: more vCPUs or memory than a node has for pods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from catalog.instances import InstanceType
from stacks.derive.capacity import TYPES
from stacks.derive.pod_resources import node_cpus, node_memory_gib
from stacks.settings.environment import PoolConfig
from stacks.settings.job import JobConfig
from stacks.settings.problems import InputError


def pod_resource_errors(path: str, job: JobConfig, pool: PoolConfig) -> Iterator[InputError]:
    """`pool`: of types that the catalogue knows."""
    kinds = [TYPES[name] for name in pool.instance_types]
    yield from _too_much(f"{path}.cpus_per_node", job.cpus_per_node, kinds, node_cpus)
    yield from _too_much(f"{path}.memory_gib", job.memory_gib, kinds, node_memory_gib)


def _too_much(
    path: str,
    wanted: int | None,
    kinds: Sequence[InstanceType],
    of_node: Callable[[InstanceType], int],
) -> Iterator[InputError]:
    smallest = min(kinds, key=of_node)
    most = of_node(smallest)
    if wanted is not None and wanted > most:
        yield InputError(
            path=path,
            must=f"be at most {most}, which {smallest.name} has for pods beside its DaemonSets",
            got=str(wanted),
            fix=f"write {most} or less",
            write=most,
        )
