"""Rights of pods that an update takes away from jobs that go on: a PriorityClass that leaves, or a priority or an image
that a team may not use any more. Pods that run go on; the next one is refused.

The API server refuses a pod whose PriorityClass is not there (Kubernetes 1.35, plugin/pkg/admission/priority), and
our policy one that its team may not have, as it refuses that Kueue starts the job
(trainyard/objects/teams/team_admission.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trainyard.objects.teams.teams import IMAGE_PREFIXES, PRIORITIES
from trainyard.plan import EnvironmentPlan
from trainyard.plans.jobs import maps_in
from trainyard.problems import At, InputWarning, few
from trainyard.replacing.deployed import SHOWN, Deployed, Object, Show, going_of_others
from trainyard.replacing.jobs.runtimes import runtime_of
from trainyard.replacing.leaving import NAMESPACE, PREFIX
from trainyard.replacing.replacing import RUNTIME

PRIORITY = "kubernetes:scheduling.k8s.io/v1:PriorityClass"
TYPES = frozenset({PRIORITY, NAMESPACE, RUNTIME})
"""Types of resources that the rule looks at."""
_REFUSES = (
    ": the cluster then refuses each new pod of theirs, so one that waits never starts, and one that loses a pod never"
    " starts again. To lose nothing, change it when they have ended"
)


def admission_warnings(
    plan: EnvironmentPlan, deployed: Deployed, show: Show
) -> Iterator[InputWarning]:
    """Jobs that have not ended and whose next pod would be refused. `show`: what is in the cluster."""
    gone = sorted(deployed.names(PRIORITY) - plan.priorities.keys())
    taken = {team: lists for team in plan.teams if (lists := _taken(plan, deployed, team))}
    if not gone and not taken:
        return
    jobs = going_of_others(plan, deployed, show)
    for name in gone:
        asking = [called for called, _, job in jobs if name in _priorities(job, deployed)]
        if asking:
            yield At("environment.priorities").warning(
                f"this update deletes {name}, and {few(sorted(asking), SHOWN)} asks for it{_REFUSES}"
            )
    for team, lists in taken.items():
        space = plan.teams[team].workspace.namespace
        own = [(name, job) for name, _, job in jobs if job["metadata"]["namespace"] == space]
        for setting, (was, now) in lists.items():
            lost = [name for name, job in own if _loses(setting, job, was, now, gone, deployed)]
            if lost:
                yield At(f"environment.teams.{team}.{setting}").warning(
                    f"this update takes what {few(sorted(lost), SHOWN)} asks for{_REFUSES}"
                )


_Lists = Mapping[str, tuple[list[str], list[str]]]
_SETTINGS = {"allowed_priorities": PRIORITIES, "image_prefixes": IMAGE_PREFIXES}
"""Setting of a team → the annotation of its namespace that the policies read."""


def _taken(plan: EnvironmentPlan, deployed: Deployed, team: str) -> _Lists:
    """Setting of a team whose list changes → the list of before and of after."""
    space = deployed.output(NAMESPACE, f"{PREFIX}{team}", "metadata")
    if space is None:
        return {}
    before, after = space.get("annotations") or {}, plan.teams[team].workspace.annotations
    lists = {
        setting: (before.get(key, "").split(","), after.get(key, "").split(","))
        for setting, key in _SETTINGS.items()
    }
    return {setting: (was, now) for setting, (was, now) in lists.items() if was != now}


def _loses(
    setting: str, job: Object, was: list[str], now: list[str], gone: list[str], deployed: Deployed
) -> bool:
    """True where the policy let a pod of the job through and will refuse the next one. `gone`: priorities that leave
    for all."""
    if setting == "allowed_priorities":
        asked = _priorities(job, deployed) - {*gone}
        return bool(asked) and asked <= {*was} and not asked <= {*now}
    images = _images(job["spec"]) or _images(deployed.output(RUNTIME, runtime_of(job), "spec"))
    return _fits(images, was) and not _fits(images, now)


def _fits(images: set[str], prefixes: list[str]) -> bool:
    return all(image.startswith((*prefixes,)) for image in images)


def _priorities(job: Object, deployed: Deployed) -> set[str]:
    """PriorityClasses of the pods of a job."""
    specs = [job["spec"], deployed.output(RUNTIME, runtime_of(job), "spec")]
    return {name for each in maps_in(specs) if (name := each.get("priorityClassName"))}


def _images(spec: Object | None) -> set[str]:
    """Images that a spec names; none in a TrainJob that takes that of its runtime."""
    return {it for each in maps_in(spec) if isinstance(it := each.get("image"), str) and it}
