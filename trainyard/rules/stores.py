"""Errors about stores that cannot work.

What only one kind of store refuses is in the class of that kind: trainyard/stores/. Checkpoints of jobs on
a store: checkpoints.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainyard.catalog import versions
from trainyard.catalog.aws.storage import Driver
from trainyard.problems import At, InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.reading.yaml_file import as_yaml
from trainyard.settings.stores import StoreConfig
from trainyard.stores.existing import existing_store_errors
from trainyard.stores.kind import Surroundings
from trainyard.stores.kinds import KINDS, AnyKind, kinds_of, of_kind, whose


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
        yield from kind.errors_together([*_own(kind, wanted)], wanted, zones)
    yield from existing_store_errors(wanted)


def _own(kind: AnyKind, wanted: EnvironmentConfig) -> dict[str, Any]:
    """Settings of the stores of a kind that the stack makes."""
    stores = of_kind(wanted.storage, kind).items()
    return {name: settings for name, settings in stores if whose(kind, settings) is kind}


def store_warnings(wanted: EnvironmentConfig, around: Surroundings) -> Iterator[InputWarning]:
    """Warnings about stores that work."""
    for name, store in wanted.storage.items():
        for kind, settings in kinds_of(store):
            path = f"environment.storage.{name}.{kind.name}"
            yield from kind.warnings(path, settings, around)
            yield from _kernel_warnings(path, kind.driver, wanted.cluster.version)
    for kind in KINDS.values():
        stores = {
            name: kind.sized(settings, around.region, around.instance_types)
            for name, settings in _own(kind, wanted).items()
        }
        yield from kind.warnings_together(stores, around.region)


def _kernel_warnings(path: str, driver: Driver, kubernetes: str) -> Iterator[InputWarning]:
    """A store whose client is not known to be in the kernel of the nodes."""
    release = versions.KUBERNETES.get(kubernetes)
    if release and driver.kernels and release.kernel not in driver.kernels:
        yield At(path).warning(
            f"nodes of Kubernetes {kubernetes} have kernel {release.kernel}, and the client of such"
            f" a store is known for {', '.join(driver.kernels)} only: without its client in the kernel every pod of"
            " a job stays in ContainerCreating, and its GPUs are paid for. Mount it on one node first: trainyard"
            " shell --pool <pool> does"
        )
