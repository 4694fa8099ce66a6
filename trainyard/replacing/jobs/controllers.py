"""Controllers that an update takes away from jobs that go on: the training-operator, or a kind of jobs that it runs.

Its CRDs stay, and with them the jobs (components/charts/training-operator/templates/crd.yaml). Pods that run go on.
The training-operator alone makes a failed one again, and marks a job as ended (1.8.1,
pkg/controller.v1/common/job.go and pod.go).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.catalog.job_kinds import ENTRY_KINDS, JOB_KINDS
from trainyard.plan import EnvironmentPlan
from trainyard.plans.controllers import OPERATOR, RELEASE
from trainyard.problems import At, InputError, few
from trainyard.replacing.deployed import SHOWN, Deployed, Show, ends_one, going_of_others

TYPES = frozenset({RELEASE})
"""Types of resources that the rule looks at."""
SETTING = "environment.training_operator"


def operator_errors(plan: EnvironmentPlan, deployed: Deployed, show: Show) -> Iterator[InputError]:
    """Kinds of jobs that lose their controller while jobs of them have not ended. `show`: what is in the cluster."""
    gone = sorted(_before(deployed) - _after(plan))
    if not gone:
        return
    named = sorted(name for name, *_ in going_of_others(plan, deployed, show, gone))
    if not named:
        return
    stays = bool(plan.training_operators)
    more = [kind for each in plan.training_operators.values() for kind in each.more_kinds]
    yield At(f"{SETTING}.more_kinds" if stays else SETTING).must(
        f"{'keep each kind of which jobs' if stays else 'stay while jobs of its kinds'} have not ended: nobody else"
        " makes a pod of theirs that failed again, or marks them as ended, so that a gang that lost a pod waits on its"
        " nodes for ever",
        got=f"{', '.join(more) or 'nothing'} beside {few(named, SHOWN)}",
        fix=f"write it again, and delete it when they have ended; {ends_one()}",
    )


def _before(deployed: Deployed) -> set[str]:
    """Kinds of jobs that the deployed training-operator runs."""
    if (RELEASE, OPERATOR) not in deployed.resources:
        return set()
    more = deployed.output(RELEASE, OPERATOR, "values.moreKinds") or ()
    known = {kind for kind, it in JOB_KINDS.items() if it.controller_setting == SETTING}
    return {kind for kind in known if kind in ENTRY_KINDS or kind.lower() in more}


def _after(plan: EnvironmentPlan) -> set[str]:
    """Kinds of jobs that it runs after the update."""
    operators = plan.training_operators
    return {*operators, *(kind for each in operators.values() for kind in each.more_kinds)}
