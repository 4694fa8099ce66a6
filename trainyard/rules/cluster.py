"""Errors about clusters that cannot work: Kubernetes version, admins, Trainer and training-operator.
The endpoint: endpoint.py. System nodes: system_nodes.py."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from datetime import date, timedelta

from trainyard.catalog import versions
from trainyard.catalog.versions import KubernetesRelease, minor
from trainyard.derive.cluster import named_roles
from trainyard.derive.policies import given
from trainyard.objects.jobs.upstream_runtimes import upstream_runtimes
from trainyard.plans.access import NamedRole
from trainyard.problems import REMOVE, At, InputError, InputWarning
from trainyard.rules.endpoint import endpoint_errors
from trainyard.rules.entries import torchtune_errors
from trainyard.rules.existing_cluster import existing_cluster_errors
from trainyard.rules.images import image_errors, tag_errors
from trainyard.rules.pods import variable_errors
from trainyard.rules.service_range import service_range_errors
from trainyard.settings.cluster import ClusterConfig
from trainyard.settings.environment import EnvironmentConfig, OwnRuntimeConfig
from trainyard.settings.reading.yaml_file import as_yaml

WARNING_TIME = timedelta(days=90)
"""Time before the end of standard support from which a warning says so."""


def cluster_errors(wanted: EnvironmentConfig) -> Iterator[InputError]:
    cluster, known = wanted.cluster, [*versions.KUBERNETES]
    near = [
        each for each in known if re.fullmatch(rf"v?{re.escape(each)}(\.\d+)?", cluster.version)
    ]
    if cluster.version not in known and near:
        yield At("environment.cluster.version").must(
            "be a minor version of Kubernetes, as EKS has it: without v and without a patch",
            got=cluster.version,
            fix=f"write {as_yaml(near[0])}",
            write=near[0],
        )
    elif cluster.version not in known:
        yield At("environment.cluster.version").must(
            "be a Kubernetes version whose add-ons this program knows",
            got=_lacking(cluster.version, versions.LATER_KUBERNETES),
            fix=f"write {' or '.join(map(_with_support, known))}",
            write=versions.DEFAULT_KUBERNETES,
        )
    else:
        yield from _karpenter(cluster.version, wanted.karpenter.version)
    yield from endpoint_errors(cluster)
    yield from existing_cluster_errors(wanted)
    yield from service_range_errors(wanted)
    yield from _twice(cluster)


def _twice(cluster: ClusterConfig) -> Iterator[InputError]:
    """Roles that would need a second access entry."""
    first: dict[str, NamedRole] = {}
    for role in named_roles(cluster):
        if first.setdefault(role.arn, role) != role:
            yield At(role.path).must(
                f"be another role than {first[role.arn].path}: EKS has one access entry for each role",
                got=role.arn,
                write=REMOVE,
            )


def _with_support(version: str) -> str:
    """A known version, with the end of its standard support."""
    return (
        f"{as_yaml(version)} (standard support until {versions.KUBERNETES[version].standard_ends})"
    )


def _lacking(version: str, later: Mapping[str, str]) -> str:
    """A version that is refused, with what this program lacks for it where it is later than those that
    it knows."""
    return f"{version}, for which it lacks {later[version]}" if version in later else version


def _karpenter(kubernetes: str, release: str) -> Iterator[InputError]:
    """A release of Karpenter that this program cannot install, or a Kubernetes version on which it does
    not run."""
    if release not in versions.KARPENTERS:
        near = [one for one in versions.KARPENTERS if one.startswith(f"{release}.")]
        yield At("environment.karpenter.version").must(
            "be a Karpenter release that this program supports",
            got=release,
            fix=f"write {' or '.join(near or versions.KARPENTERS)}",
            write=(near or versions.KARPENTERS)[0],
        )
        return
    karpenter = release.rpartition(".")[0]
    oldest, newest = versions.KARPENTER_KUBERNETES[karpenter]
    if not minor(oldest) <= minor(kubernetes) <= minor(newest):
        yield At("environment.cluster.version").must(
            f"be a Kubernetes version that Karpenter {karpenter} supports",
            got=kubernetes,
            fix=f"write {as_yaml(oldest)} to {as_yaml(newest)}, or another release in karpenter.version",
        )


def support_warnings(wanted: EnvironmentConfig, today: date) -> Iterator[InputWarning]:
    """The end of standard support, from WARNING_TIME before it on, and what follows from it."""
    version = wanted.cluster.version
    release = versions.KUBERNETES.get(version)
    if release is None or today < release.standard_ends - WARNING_TIME:
        return
    newer = next_release(version)
    first = "have its owner upgrade the cluster, then " if wanted.cluster.name else ""
    do = f"; {first}write {as_yaml(newer)}, docs/upgrades.md has the order" if newer else ""
    text = f"{end_of_support(version, wanted.cluster.upgrade_policy, today)}{do}"
    yield At("environment.cluster.version").warning(text)


def next_release(version: str) -> str | None:
    """The next minor release of Kubernetes; None where this program does not know it."""
    newer = [one for one in versions.KUBERNETES if minor(one) > minor(version)]
    return newer[0] if newer else None


def end_of_support(version: str, policy: str, today: date) -> str:
    """When standard support of a known version ends or ended, and what follows from it. `policy`:
    the cluster's upgrade_policy."""
    release = versions.KUBERNETES[version]
    follows = _after_standard_support(release, policy, today)
    return f"{_end_of_standard(version, release, today)}: {follows}"


def _end_of_standard(version: str, release: KubernetesRelease, today: date) -> str:
    ends, support = release.standard_ends, release.support(today)
    if support == "no":
        return f"support of Kubernetes {version} ended on {release.extended_ends}"
    if support == "extended":
        return f"standard support of Kubernetes {version} ended on {ends}"
    days = (ends - today).days
    in_days = "tomorrow" if days == 1 else f"in {days} days"
    return f"standard support of Kubernetes {version} ends on {ends}, {in_days}"


def _after_standard_support(release: KubernetesRelease, policy: str, today: date) -> str:
    support = release.support(today)
    then = " then" if support == "standard" else ""
    if policy == "standard" or support == "no":
        return f"EKS{then} upgrades the control plane by itself, at a time that it chooses"
    until = f", until {release.extended_ends}" if support == "extended" else ""
    return f"the control plane{then} costs {_extended_price()}{until}"


def _extended_price() -> str:
    """Prices of extended and of standard support in us-east-1. No price list that was read on 2026-11-22
    has another price in another region."""
    usual, more = (
        sum(found.usd for found in versions.control_plane_prices("us-east-1", support) if found)
        for support in ("standard", "extended")
    )
    return f"${more:.2f} an hour instead of ${usual:.2f} (us-east-1)"


def trainer_errors(wanted: EnvironmentConfig) -> Iterator[InputError]:
    trainer, known = wanted.trainer, [*versions.TRAINERS]
    if trainer.version not in known:
        near = [version for version in known if version.startswith(f"{trainer.version}.")]
        yield At("environment.trainer.version").must(
            "be a Kubeflow Trainer release that this program supports",
            got=_lacking(trainer.version, versions.LATER_TRAINERS),
            fix=f"write {' or '.join(near or known)}",
            write=(near or known)[0],
        )
        return
    shipped = upstream_runtimes(trainer.version)
    for name in trainer.runtimes:
        if name not in shipped:
            rest = [other for other in trainer.runtimes if other in shipped]
            near = difflib.get_close_matches(name, shipped, n=1)
            yield At("environment.trainer.runtimes").must(
                f"list runtimes of Trainer {trainer.version}",
                got=name,
                fix=(f"write {near[0]}" if near else f"write some of {', '.join(shipped)}")
                + "; describe a runtime of your own under own_runtimes",
                write=list(dict.fromkeys([*rest, *near])),
            )
    for name, own in trainer.own_runtimes.items():
        yield from _own_runtime(name, own, wanted, name in shipped)


def _own_runtime(
    name: str, own: OwnRuntimeConfig, wanted: EnvironmentConfig, is_upstream: bool
) -> Iterator[InputError]:
    """Every error of an own runtime. `is_upstream`: whether the Trainer ships a runtime of that name."""
    path = f"environment.trainer.own_runtimes.{name}"
    if own.priority and own.priority not in wanted.priorities:
        listed = ", ".join(wanted.priorities)
        add = f"add {own.priority}: 1000 under environment.priorities"
        yield At(f"{path}.priority").must(
            "be one of environment.priorities",
            got=own.priority,
            fix=f"write one of {listed}, or {add}" if listed else f"delete it, or {add}",
            write=next(iter(wanted.priorities), REMOVE),
        )
    if own.pool and own.pool not in wanted.pools:
        yield At(f"{path}.pool").must(
            "be one of environment.pools",
            got=own.pool,
            fix=f"write one of {', '.join(wanted.pools)}",
            write=next(iter(wanted.pools), REMOVE),
        )
    yield from torchtune_errors(path, own, wanted)
    yield from variable_errors(f"{path}.env", own.env)
    for variable in own.env.keys() & {*given(own.kind)}:
        yield At(f"{path}.env.{variable}").must(
            "not be a variable that the Trainer sets: it replaces the value",
            got=own.env[variable],
            write=REMOVE,
        )
    yield from image_errors(own.image, At(f"{path}.image"))
    yield from tag_errors(own.image, At(f"{path}.image"))
    if is_upstream:
        yield At(path).must(
            "not have the name of a runtime that the Trainer ships",
            got=name,
            fix=f"rename it to {name}-own",
        )


def training_operator_errors(wanted: EnvironmentConfig) -> Iterator[InputError]:
    operator, known = wanted.training_operator, versions.TRAINING_OPERATORS
    if operator and operator.version not in known:
        yield At("environment.training_operator.version").must(
            "be a release that this program has a chart of",
            got=operator.version,
            fix=f"write {' or '.join(known)}",
            write=known[-1],
        )
