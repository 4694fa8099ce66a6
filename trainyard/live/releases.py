"""The add-on builds and AMI releases that a stack pins: which they are, and whether they can be had in
its region, for `trainyard check --live`. Which are newer: due.py."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trainyard.catalog import versions
from trainyard.catalog.upstream import bottlerocket
from trainyard.plan import EnvironmentPlan
from trainyard.plans.clusters import AddOnPlan
from trainyard.problems import InputError

VERSION, RELEASE = "environment.cluster.version", "environment.system_nodes.release"
STANDARD, NVIDIA = "standard", "nvidia"
"""Variants of EKS's AMIs: the one of system nodes and CPU nodes, and the one of GPU nodes."""


def amis(plan: EnvironmentPlan) -> list[tuple[str, str]]:
    """(variant, release) of every AMI of EKS that nodes of the stack boot from, such as v20261012. Bottlerocket
    publishes its own."""
    of_pools = {
        (NVIDIA if kind.gpus else STANDARD, pool.ami.partition("@")[2])
        for pool in plan.pools.values()
        for kind in pool.types
        if not bottlerocket.is_bottlerocket(pool.ami)
    }
    return sorted({(STANDARD, ami_release(plan.system_nodes.release)), *of_pools})


def in_order(release: str) -> list[int]:
    """By what releases are compared: their numbers, such as those of v1.22.4-eksbuild.3."""
    return [*map(int, re.findall(r"\d+", release))]


def newest(releases: Sequence[str]) -> str:
    """The highest of some releases."""
    return max(releases, key=in_order)


def build_errors(
    plan: EnvironmentPlan, add_on: AddOnPlan, offered: Sequence[str]
) -> Iterator[InputError]:
    """A pinned build of an add-on that EKS does not offer in the region. `offered`: its builds."""
    if add_on.version in offered:
        return
    version = plan.cluster.version
    yield InputError(
        path=VERSION,
        must=(
            f"be a version for which EKS offers {add_on.name} {add_on.version} in"
            f" {plan.identity.region}"
        ),
        got=f"{version}, for which it offers {newest(offered) if offered else 'no build of it'}",
        fix=(
            f'write {newest(offered)} in trainyard/catalog/versions.py, KUBERNETES["{version}"].add_ons'
            if offered
            else "another Kubernetes version, or another region"
        ),
    )


def ami_errors(
    plan: EnvironmentPlan, variant: str, release: str, recommended: str, kubelet: str
) -> Iterator[InputError]:
    """A pinned release of EKS's AMI that the region does not have, or whose kubelet is another one than
    a node group would ask for. `recommended`: the release that EKS recommends. `kubelet`: of the AMI;
    empty where there is none."""
    version, own = plan.cluster.version, plan.system_nodes.release
    of_system_nodes = variant == STANDARD and ami_release(own) == release
    pinned_here = of_system_nodes and own != versions.KUBERNETES[version].system_nodes
    of_ami = f"{kubelet}-{release.removeprefix('v')}"
    if not kubelet:
        yield InputError(
            path=RELEASE if pinned_here else VERSION,
            must=f"have an AMI of EKS, variant {variant}, in {plan.identity.region}",
            got=f"{version}, which has none of release {release}",
            fix=(
                f"write {recommended}"
                if pinned_here
                else f"write {ami_release(recommended)} in trainyard/catalog/versions.py, AMI_RELEASE"
            ),
        )
    elif of_system_nodes and own != of_ami:
        yield InputError(
            path=RELEASE if pinned_here else VERSION,
            must=f"have the patch release of the kubelet in EKS's AMI of {release}",
            got=own,
            fix=f"write {of_ami if pinned_here else f'system_nodes: {{release: {of_ami}}}'}",
            write=of_ami if pinned_here else None,
        )


def with_bottlerocket(plan: EnvironmentPlan) -> list[str]:
    """The pools whose nodes boot from Bottlerocket."""
    return [name for name, pool in plan.pools.items() if bottlerocket.is_bottlerocket(pool.ami)]


def bottlerocket_errors(plan: EnvironmentPlan, *, there: bool) -> Iterator[InputError]:
    """Pools whose nodes would boot from a Bottlerocket that the region does not have: Karpenter then launches none."""
    for pool in with_bottlerocket(plan) if not there else ():
        yield InputError(
            path=f"environment.pools.{pool}.ami_family",
            must=f"have an AMI in {plan.identity.region} for Kubernetes {plan.cluster.version}",
            got=f"Bottlerocket, of which it has no {versions.BOTTLEROCKET_RELEASE} with NVIDIA's driver",
            fix="write AL2023, or delete it",
            write="AL2023",
        )


def ami_release(release: str) -> str:
    """The release of the AMI in a release of a node group: v20261012 of 1.35.8-20261012."""
    return f"v{release.rpartition('-')[2]}"
