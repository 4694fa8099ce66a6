"""Errors about stores that cannot work.

What only one kind of store refuses is in the class of that kind: trainyard/stores/. Checkpoints of jobs on
a store: checkpoints.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.catalog import versions
from trainyard.catalog.aws.storage import Driver
from trainyard.problems import At, InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.reading.yaml_file import as_yaml
from trainyard.settings.stores import StoreConfig
from trainyard.stores.existing import existing_store_errors
from trainyard.stores.kind import Surroundings
from trainyard.stores.kinds import KINDS, kinds_of, of_kind, whose


def store_errors(path: str, store: StoreConfig, around: Surroundings) -> Iterator[InputError]:
    """Every error of one store."""
    found = kinds_of(store)
    if len(found) != 1:
        yield _not_one_kind(path, [kind.name for kind, _ in found])
    for kind, settings in found:
        yield from kind.errors(f"{path}.{kind.name}", settings, around)


def _not_one_kind(path: str, named: list[str]) -> InputError:
    must = f"have exactly one of {', '.join(KINDS)}"
    if named:
        return At(path).must(must, got=" and ".join(named), fix="delete all of them but one")
    examples = [{kind.name: dict(kind.example)} for kind in KINDS.values()]
    simplest = next(example for example in examples if not any(example.values()))
    proposed = " or ".join(as_yaml(example) for example in examples)
    return At(path).must(must, got="none", fix=f"write {proposed}", write=simplest)


def stores_together_errors(
    wanted: EnvironmentConfig, zones: tuple[str, ...]
) -> Iterator[InputError]:
    """Stores that cannot stand beside each other. `zones`: those of the network, the training zone
    first."""
    for kind in KINDS.values():
        stores = of_kind(wanted.storage, kind).items()
        own = [name for name, settings in stores if whose(kind, settings) is kind]
        yield from kind.errors_together(own, wanted, zones)
    yield from existing_store_errors(wanted)


def store_warnings(wanted: EnvironmentConfig) -> Iterator[InputWarning]:
    """Warnings about stores that work."""
    for name, store in wanted.storage.items():
        for kind, settings in kinds_of(store):
            path = f"environment.storage.{name}.{kind.name}"
            yield from kind.warnings(path, settings, wanted.pools)
            yield from _kernel_warnings(path, kind.driver, wanted.cluster.version)


def _kernel_warnings(path: str, driver: Driver, kubernetes: str) -> Iterator[InputWarning]:
    """A store whose client nobody has been seen to load on the kernel of the nodes."""
    release = versions.KUBERNETES.get(kubernetes)
    if release and driver.kernels and release.kernel not in driver.kernels:
        yield At(path).warning(
            f"nodes of Kubernetes {kubernetes} have kernel {release.kernel}, and nobody has been seen"
            " to mount such a store on it: without its client in the kernel every pod of a job stays"
            " in ContainerCreating, and its GPUs are paid for. Mount it on one node first: trainyard"
            " shell --pool <pool> does"
        )
