"""Errors about system nodes that cannot work: their type, their release, and their CPU for the pods of
controllers."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence

from trainyard.catalog import versions
from trainyard.catalog.aws.instances import (
    GENERAL_SIZES,
    GPU_TYPES,
    standard_vcpus,
)
from trainyard.catalog.aws.zones import SNAPSHOT, ZONE_LETTERS, regions_with_family
from trainyard.derive.system_pods import first_without_room, left_beside_karpenter, system_pods
from trainyard.plans.system_nodes import SystemPod
from trainyard.problems import At, InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.system_nodes import MOST_NODES, SystemNodesConfig

SYSTEM_TYPE = "environment.system_nodes.instance_type"
SMALL = re.compile(r"nano|micro|small|medium|large")
"""Sizes with less than 8 GiB in some or all families."""
SHAPE = re.compile(r"[a-z][a-z0-9-]*\d[a-z0-9-]*\.(?:(?:\d+x|x)?large|metal(?:-\d+xl)?)")
"""Names of instance types."""


def system_node_errors(wanted: EnvironmentConfig) -> Iterator[InputError]:
    yield from _release_errors(wanted)
    kind, usual = wanted.system_nodes.instance_type, SystemNodesConfig().instance_type
    family, _, size = kind.partition(".")
    sizes = GENERAL_SIZES.get(family, ())
    if kind in GPU_TYPES:
        must = "have no GPUs: only controllers run there"
    elif re.search(r"\dg|^a1$", family):
        must = "be x86, as the images of the charts are"
    elif re.match(r"mac|(?:trn|inf|dl|f|vt)\d", family):
        must = "be a type for general use, with Linux and without accelerators: only controllers run there"
    elif size in sizes:
        yield from _room_errors(wanted)
        return
    elif SMALL.fullmatch(size):
        must = "have room for the controllers: at least 2 vCPUs and 8 GiB"
    elif sizes:
        must, usual = (
            f"have a size of {family}: {', '.join(sizes)}",
            f"{family}.{_nearest_size(size, sizes)}",
        )
    elif SHAPE.fullmatch(kind):
        return
    else:
        must = "be an EC2 instance type: family, dot and size"
    yield At(SYSTEM_TYPE).must(must, got=kind, write=usual)


def _room_errors(wanted: EnvironmentConfig) -> Iterator[InputError]:
    """Nodes on which not all controllers find CPU: their pods run on no other nodes."""
    kind, nodes = wanted.system_nodes.instance_type, wanted.system_nodes.nodes
    vcpus, pods = standard_vcpus(kind), system_pods(wanted)
    if vcpus is None:
        return
    # Of a Prometheus larger than half of a node metrics_rules.py says so.
    judged = [pod for pod in pods if 2 * pod.millicpus <= vcpus * 1000]
    pod = first_without_room(judged, vcpus, nodes)
    if pod is None:
        return
    family = kind.partition(".")[0]
    larger = [f"{family}.{size}" for size in GENERAL_SIZES[family]]
    enough = next(
        (one for one in larger if _holds(one, pods, nodes)), SystemNodesConfig().instance_type
    )
    more = next((n for n in range(nodes + 1, MOST_NODES + 1) if _holds(kind, pods, n)), None)
    yield At(SYSTEM_TYPE).must(
        f"have room for the pods of controllers: {pod.name} requests {pod.millicpus / 1000:g} vCPUs and stays"
        " Pending",
        got=f"{nodes} nodes of {kind}, which have {left_beside_karpenter(vcpus) / 1000:g} vCPUs each beside"
        " Karpenter and DaemonSets",
        fix=f"write {enough}" + (f", or set nodes to {more}" if more else ""),
        write=enough,
    )


def _holds(instance_type: str, pods: Sequence[SystemPod], nodes: int) -> bool:
    vcpus = standard_vcpus(instance_type)
    return vcpus is not None and first_without_room(pods, vcpus, nodes) is None


def _nearest_size(size: str, sizes: Sequence[str]) -> str:
    """The next larger one; the nearest name where sizes have no numbers."""
    wanted = re.match(r"\d+", size)
    larger = [
        one for one in sizes if wanted and int((re.match(r"\d+", one) or "0")[0]) > int(wanted[0])
    ]
    return next(iter(larger or difflib.get_close_matches(size, sizes, 1)), sizes[0])


def system_node_warnings(region: str, wanted: EnvironmentConfig) -> Iterator[InputWarning]:
    """A type of a family that EC2, or the region, did not have when the catalogue was written."""
    kind = wanted.system_nodes.instance_type
    family, _, size = kind.partition(".")
    regions = regions_with_family(family)
    if regions and region in ZONE_LETTERS and region not in regions:
        sold = [one for one in GENERAL_SIZES if region in regions_with_family(one)]
        here = min(sold, key=lambda one: one[:1] != family[:1], default="")
        other = (
            f"write {here}.{size}" if size in GENERAL_SIZES.get(here, ()) else "take another type"
        )
        yield At(SYSTEM_TYPE).warning(
            f"{region} had no {family} in {SNAPSHOT}, and EKS makes no system nodes of a type that a zone of the"
            f" network lacks: {other}, or make sure that `aws ec2 describe-instance-type-offerings --region"
            f" {region} --location-type availability-zone --filters Name=instance-type,Values={kind}` lists each"
            " zone"
        )
    refused = any(error.path == SYSTEM_TYPE for error in system_node_errors(wanted))
    if family not in GENERAL_SIZES and not refused:
        yield At(SYSTEM_TYPE).warning(
            f"{kind} is not among the instance types that EC2 had in {SNAPSHOT}: if EC2 does not sell it, EKS"
            f" cannot make the system nodes; write {SystemNodesConfig().instance_type}, or make sure that"
            f" `aws ec2 describe-instance-types --instance-types {kind}` lists it"
        )


def _release_errors(wanted: EnvironmentConfig) -> Iterator[InputError]:
    """A release of another minor version, which EKS refuses, or of a day whose kernel panics."""
    release, version = wanted.system_nodes.release, wanted.cluster.version
    if release is None or version not in versions.KUBERNETES:
        return
    pinned, day = versions.KUBERNETES[version].system_nodes, release.partition("-")[2]
    panics = day in versions.PANICKING_AMI_RELEASES
    if release.rpartition(".")[0] != version:
        must = f"be a release of environment.cluster.version, {version}"
    elif panics and versions.KUBERNETES[version].kernel == versions.PANICKING_KERNEL:
        must = "be a release whose kernel does not panic (amazon-eks-ami#2845)"
    else:
        return
    yield At("environment.system_nodes.release").must(
        must, got=release, fix=f"write {pinned}, or delete it", write=pinned
    )
