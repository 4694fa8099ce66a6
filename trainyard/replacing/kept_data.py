"""Entries that the stack file no longer has, while what they made is kept (`data: keep`).

The engine refuses to delete what is protected, in its own words, after it has deleted the claims of the store. So
the plan is refused before. A component says in its outputs that it is kept; one of an older release does not.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.parts.parts import METRICS
from trainyard.plan import EnvironmentPlan
from trainyard.plans.stores import KEPT
from trainyard.problems import At, InputError
from trainyard.replacing.deployed import Deployed

STORES = frozenset({f"trainyard:storage:{kind}" for kind in ("Lustre", "Efs", "S3")})
REGISTRY = "trainyard:storage:Registry"
MANAGED = "trainyard:metrics:ManagedPrometheus"
TYPES = frozenset({*STORES, REGISTRY, MANAGED})
"""Types of resources that the rule looks at."""


def is_kept(deployed: Deployed, name: str) -> bool:
    """True for a store that is deployed and whose data is kept."""
    return any(deployed.output(kind, name, KEPT) for kind in STORES)


def kept_errors(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[InputError]:
    """Entries that are gone while their data is kept."""
    stores = {name for name in deployed.names(*STORES) if is_kept(deployed, name)}
    for name in sorted(stores - plan.stores.keys()):
        yield _gone(f"environment.storage.{name}", f"store {name}")
    registries = {it for it in deployed.names(REGISTRY) if deployed.output(REGISTRY, it, KEPT)}
    for name in sorted(registries - plan.registries.keys()):
        yield _gone(f"environment.registries.{name}", f"registry {name}")
    metrics = METRICS.of(plan)
    for name in deployed.names(MANAGED) if not (metrics and metrics.managed) else ():
        if deployed.output(MANAGED, name, KEPT):
            yield _gone("environment.metrics.managed_prometheus", "the workspace of Prometheus")


def _gone(path: str, what: str) -> InputError:
    return At(path).must(
        f"stay while the data of {what} is kept: it was deployed with data: keep, and no update deletes it",
        got="no entry",
        fix="write the entry again. To delete it with its data, write data: delete at it and run `pulumi up`, and"
        " delete the entry then",
    )
