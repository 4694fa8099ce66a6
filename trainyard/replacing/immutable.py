"""Changes that no update can make in deployed objects, because the API server refuses it: found at
preview, and not after the updates of everything else. What an update would replace:
replacing.py."""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.objects.queues.queues import API, TOPOLOGY
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.plans.jobs import beside_name
from trainyard.problems import At, InputError
from trainyard.replacing.changes import differences
from trainyard.replacing.deployed import Deployed

NODE_POOL = "kubernetes:karpenter.sh/v1:NodePool"
FLAVOR = f"kubernetes:{API}:ResourceFlavor"
TYPES = frozenset({NODE_POOL, FLAVOR})
"""Types of resources that the rules look at."""
OWN_RUNTIME = "kubernetes:trainer.kubeflow.org/v1alpha1:TrainingRuntime"
OF_A_TEAM = frozenset({OWN_RUNTIME})
"""Types of resources that the rules look at in the stack of a team."""


def immutable_errors(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[InputError]:
    """Every change that the API server would refuse."""
    yield from _replicas(plan, deployed)
    yield from _topology(plan, deployed)


def own_runtime_errors(plan: TeamPlan, deployed: Deployed) -> Iterator[InputError]:
    """Runtimes in files of jobs of a queue: trainyard/objects/teams/queue_admission.py refuses another spec."""
    if "queue" not in plan.contract.get("team", {}):
        return
    for name, job in plan.jobs.items():
        for made in job.objects:
            was = deployed.output(OWN_RUNTIME, beside_name(name, made), "spec")
            change = differences(was, made["spec"]) if was and "spec" in made else ""
            if change:
                called = made["metadata"]["name"]
                yield At(f"team.jobs.{name}.manifest").must(
                    f"keep the spec of {made['kind']} {called} as it is: a queue counts jobs by it, and the cluster"
                    " refuses another one",
                    got=change,
                    fix=f"rename it to {called}-2, also in runtimeRef of the job",
                )


def _replicas(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[InputError]:
    """A NodePool has replicas from its first day, or never (CEL rule of karpenter.sh_nodepools.yaml,
    1.14.1: has(self.replicas) == has(oldSelf.replicas))."""
    for name, pool in plan.pools.items():
        made = [f"{kind.name}-pool" for kind in pool.types]
        there = [each for each in made if (NODE_POOL, each) in deployed.resources]
        had = [deployed.output(NODE_POOL, each, "spec.replicas") for each in there]
        was = next((int(each) for each in had if each is not None), None)
        if there and (was is None) != (pool.replicas is None):
            yield InputError(
                path=f"environment.pools.{name}.replicas",
                must=(
                    "not be set later: Karpenter refuses it"
                    if was is None
                    else "stay set: Karpenter refuses a pool that had replicas and has none"
                ),
                got="nothing" if pool.replicas is None else str(pool.replicas),
                fix=(
                    f"{'delete it' if was is None else f'write {was} again'}; otherwise add a pool of"
                    f" another name, and delete {name} in a later update"
                ),
            )


def _topology(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[InputError]:
    """A ResourceFlavor keeps its topology (CEL rule of kueue.x-k8s.io_resourceflavors.yaml, 0.16.9 and
    0.19.2: spec is immutable when topologyName is set)."""
    had = {
        name.removeprefix("flavor-")
        for name in deployed.names(FLAVOR)
        if deployed.output(FLAVOR, name, "spec.topologyName") == TOPOLOGY
    }
    lost = (
        [each.pool for each in plan.queues.flavors if not each.by_topology] if plan.queues else []
    )
    if had & {*lost}:
        yield InputError(
            path="environment.queues.topology",
            must="stay preferred: Kueue refuses a queue that had a topology and has none",
            got="nothing",
            fix="write preferred again; otherwise delete queues in one update, when no job of a team runs or waits, and"
            " add them in the next",
        )
