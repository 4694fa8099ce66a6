"""`trainyard due`: what is due for a stack file, as one list: what, since or until when, what to do.

It follows from the stack file and the catalogue. With --live (`--live`) the account is asked as well
which add-on builds and AMI releases are newer than the committed ones.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from importlib import metadata

from trainyard import command_line
from trainyard.catalog import versions
from trainyard.catalog.aws.prices import stale
from trainyard.catalog.upstream.releases import NEWEST, PACKAGES, SEEN
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.live.releases import ami_release, amis, in_order, newest, with_bottlerocket
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.reports.costs.cost import estimate
from trainyard.reports.plan import as_json, errors_as_json
from trainyard.reports.stack_file import errors_of, report_on
from trainyard.rules.cluster import end_of_support, next_release
from trainyard.rules.environment import offers_warnings, surroundings
from trainyard.rules.stores import store_warnings
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.reading.reader import Reading
from trainyard.settings.reading.yaml_file import as_yaml

UPGRADES = "docs/upgrades.md has the order"


@dataclass(frozen=True, kw_only=True)
class Due:
    """One thing to do."""

    what: str
    when: str
    """Since or until which day, such as "until 2027-03-27"."""
    do: str


def main(options: argparse.Namespace) -> int:
    """Print the list of one stack; 1 with the errors where the stack is refused, 2 where it has no
    file."""

    def report(reading: Reading, plan: EnvironmentPlan | TeamPlan) -> int:
        found = list[Due]()
        if isinstance(plan, EnvironmentPlan) and reading.config and reading.config.environment:
            found += due(plan, reading.config.environment, datetime.now(UTC))
            found += newer(Account(plan.access), plan) if options.asks else []
        print(as_json(found) if options.json else "\n".join(text(plan, found)))
        return 0

    return report_on(options.stack, report, errors_as_json if options.json else errors_of)


def due(plan: EnvironmentPlan, wanted: EnvironmentConfig, now: datetime) -> list[Due]:
    """Everything that the stack file and the catalogue say, the next to end first."""
    today, trainer = now.date(), [*_trainer(plan)]
    installed = _installed(plan)
    if trainer:  # it says what upstream has, too
        del installed["Trainer"]
    found = [
        _support(plan.identity.region, wanted, today),
        *_blocks(wanted),
        *_system_nodes(plan),
        *trainer,
        *_upstream(installed),
        *_tables(plan, today),
    ]
    return sorted(found, key=_order)


def _order(one: Due) -> tuple[bool, bool, str]:
    """The next to end first, then prices that are old since a day, and at last releases that are newer."""
    return (not one.when.startswith("until"), not one.when, one.when)


def _support(region: str, wanted: EnvironmentConfig, today: date) -> Due:
    cluster = wanted.cluster
    release, newer_one = versions.KUBERNETES[cluster.version], next_release(cluster.version)
    standard = release.support(today) == "standard"
    return Due(
        what=end_of_support(cluster.version, cluster.upgrade_policy, today),
        when=f"{'until' if standard else 'since'} {release.standard_ends}",
        do=(
            f"write cluster: {{version: {as_yaml(newer_one)}}}; {UPGRADES}{_warned(region, wanted, newer_one)}"
            if newer_one
            else "update this checkout: it knows no later version"
        ),
    )


def _warned(region: str, wanted: EnvironmentConfig, version: str) -> str:
    """Warnings of `check` about the stores on another release of Kubernetes, which it does not have on theirs."""
    later = replace(wanted, cluster=replace(wanted.cluster, version=version))
    around = surroundings(region, wanted)
    same = {*map(str, store_warnings(wanted, around))}
    new = [str(each) for each in store_warnings(later, around) if str(each) not in same]
    return "".join(f"; {each}" for each in new)


def _blocks(wanted: EnvironmentConfig) -> Iterator[Due]:
    """Capacity Blocks and reservations that end."""
    for name, pool in wanted.pools.items():
        held = pool.reservation
        if held and held.ends:
            ends = held.ends.astimezone(UTC)
            yield Due(
                what=f"{held.id}, the {pool.capacity} of pool {name}, ends at {ends:%H:%M} UTC",
                when=f"until {ends:%Y-%m-%d}",
                do=(
                    f"delete pools.{name} after it, or write id, starts and ends of another"
                    " reservation"
                ),
            )


def _system_nodes(plan: EnvironmentPlan) -> Iterator[Due]:
    """A release of the stack file that is older than the committed one."""
    own, committed = plan.system_nodes.release, versions.KUBERNETES[plan.cluster.version]
    if in_order(own) < in_order(committed.system_nodes):
        yield Due(
            what=f"system nodes have AMI release {own}; {committed.system_nodes} is newer",
            when=f"since {_day(committed.system_nodes)}",
            do="delete system_nodes.release, and run pulumi up",
        )


def _trainer(plan: EnvironmentPlan) -> Iterator[Due]:
    """A later Trainer that was tried with the cluster's Kubernetes, and the newest of upstream."""
    own = plan.trainer.version
    kubernetes, karpenter = plan.cluster.version, plan.karpenter.version
    tried = [one for one in versions.TRAINERS if versions.known_good(kubernetes, one, karpenter)]
    later = [one for one in tried if in_order(one) > in_order(own)]
    if later:
        latest = newest(later)
        write = f"write trainer: {{version: {latest}}}; {UPGRADES}{_before(plan, latest)}"
        beyond = [*_upstream({"Trainer": latest})]
        yield Due(
            what=f"Trainer {own} is installed; {latest} is newer{_newest_of_all(beyond)}",
            when="",
            do=". Then ".join([write, *(one.do for one in beyond)]),
        )


def _newest_of_all(beyond: Sequence[Due]) -> str:
    """A clause about the newest release of the Trainer, where this program does not know it; or nothing."""
    return f", and {NEWEST['Trainer'].release} was the newest on {SEEN}" if beyond else ""


def _before(plan: EnvironmentPlan, later: str) -> str:
    """A sentence about the TrainJobs that must end before a later Trainer comes, or nothing: its CRD may
    lack the field with which those of this one change their pods."""
    own, new = (versions.TRAINER_RELEASES[one] for one in (plan.trainer.version, later))
    if plan.queues is None or own.pod_changes == new.pod_changes:
        return ""
    return (
        ". Before it let the TrainJobs of teams end, those that wait and those that run: they lose"
        f" {own.pod_changes}, and with it their stores"
    )


def _installed(plan: EnvironmentPlan) -> dict[str, str]:
    """Part of NEWEST → its release in this environment, of those that the environment has."""
    trainer = plan.trainer.version
    found = {
        "Karpenter": plan.karpenter.version,
        "Trainer": trainer,
        "JobSet": versions.TRAINER_RELEASES[trainer].line.jobset,
        "Kueue": plan.queues and plan.queues.version,
        "NVIDIA device plugin": plan.device_plugins.nvidia.version,
        **{package: _package(package) for package in PACKAGES},
    }
    return {part: release for part, release in found.items() if release}


def _package(name: str) -> str | None:
    """The release of a package where this tool runs; None where it runs without it."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _upstream(installed: Mapping[str, str]) -> Iterator[Due]:
    """Releases of upstream that are newer than those of the environment."""
    for part, release in installed.items():
        newest_one = NEWEST[part]
        if in_order(release) < in_order(newest_one.release):
            yield Due(
                what=f"{part} is {release} here; {newest_one.release} was the newest on {SEEN}",
                when="",
                do=f"{_write(part, newest_one.release)}: {newest_one.moving}",
            )


def _write(part: str, release: str) -> str:
    """A clause that says how an environment gets a release of a part."""
    if part == "Karpenter" and release in versions.KARPENTERS:
        return f"write karpenter: {{version: {release}}}"
    return f"update this program once a release of it has {release}"


def _tables(plan: EnvironmentPlan, today: date) -> Iterator[Due]:
    """Prices and offers that are too old."""
    costs = estimate(plan)
    sums = (costs.idle, costs.at_work, costs.all_full, costs.paid_once)
    dates = [sum_.as_of for sum_ in sums if sum_]
    if old := stale(dates, today):
        what, _, _ = old.partition(": `")
        oldest = min(as_of for as_of in dates if as_of)
        yield Due(
            what=what, when=f"since {oldest}", do="python -m trainyard.catalog.refresh --prices"
        )
    for warning in offers_warnings(today):
        what, _, command = warning.text.partition(": `")
        yield Due(what=what, when="", do=command.rstrip("`"))


def newer(account: Account, plan: EnvironmentPlan) -> list[Due]:
    """Versions that AWS offers and that are newer than the committed rows. A question that fails is
    named."""
    version = plan.cluster.version
    questions: list[Callable[[], Iterator[Due]]] = [
        lambda add_on=add_on: _build(
            version, add_on.name, add_on.version, account.add_on_builds(version, add_on.name)
        )
        for add_on in plan.add_ons.every
    ]
    questions += [
        lambda variant=variant, release=release: _ami(
            variant, release, account.recommended_ami(version, variant)
        )
        for variant, release in amis(plan)
    ]
    if with_bottlerocket(plan):
        questions.append(lambda: _bottlerocket(account.newest_bottlerocket(version)))
    try:
        account.caller_arn()  # makes the session before there are threads
    except NotAnswered as reason:
        return [_unanswered(reason)]
    with ThreadPoolExecutor(8) as pool:
        return [one for found in pool.map(_answered, questions) for one in found]


def _answered(question: Callable[[], Iterator[Due]]) -> list[Due]:
    try:
        return [*question()]
    except NotAnswered as reason:
        return [_unanswered(reason)]


def _unanswered(reason: NotAnswered) -> Due:
    do = "trainyard check --live says what the account answers"
    return Due(what=f"a question to the account failed: {reason}", when="", do=do)


def _build(version: str, name: str, pinned: str, offered: Sequence[str]) -> Iterator[Due]:
    if offered and in_order(latest := newest(offered)) > in_order(pinned):
        yield Due(
            what=f"add-on {name} {pinned} is pinned; EKS offers {latest}",
            when="",
            do=f'write it in trainyard/catalog/versions.py, KUBERNETES["{version}"].add_ons',
        )


def _ami(variant: str, pinned: str, recommended: str) -> Iterator[Due]:
    latest = ami_release(recommended)
    if in_order(latest) > in_order(pinned):
        yield Due(
            what=f"AMI release {pinned} is pinned for {variant} nodes; EKS recommends {recommended}",
            when=f"since {_day(recommended)}",
            do=f"write {latest} in trainyard/catalog/versions.py, AMI_RELEASE",
        )


def _bottlerocket(latest: str) -> Iterator[Due]:
    if in_order(latest) > in_order(versions.BOTTLEROCKET_RELEASE):
        yield Due(
            what=f"Bottlerocket {versions.BOTTLEROCKET_RELEASE} is pinned; the region has {latest}",
            when="",
            do=f"write {latest} in trainyard/catalog/versions.py, BOTTLEROCKET_RELEASE",
        )


def _day(release: str) -> date:
    """The day of an AMI release such as 1.35.8-20261012."""
    return date.fromisoformat(release.rpartition("-")[2])


def text(plan: EnvironmentPlan | TeamPlan, found: Sequence[Due]) -> list[str]:
    """The list for a person."""
    stack = plan.identity.stack
    if isinstance(plan, TeamPlan):
        return [f"{stack} has nothing due of its own: run trainyard due {plan.environment}"]
    lines = [f"{stack}: {len(found)} due"]
    for one in found:
        lines += ["", *command_line.wrapped(f"{one.when}: {one.what}" if one.when else one.what)]
        lines += command_line.wrapped(f"do: {one.do}")
    return lines
