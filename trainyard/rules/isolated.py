"""Errors and warnings where nodes have no way to the internet or reach AWS APIs by endpoints of the
VPC.

Sources: EKS user guide, private-clusters; Karpenter 1.14.1, settings.isolatedVPC, whose prices are in
trainyard/catalog/upstream/karpenter.py; VPC user guide, NAT gateways and AWS PrivateLink (private DNS answers with
addresses of the VPC).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from trainyard.catalog.aws.endpoints import NONE
from trainyard.catalog.upstream.karpenter import has_price
from trainyard.catalog.versions import KARPENTERS
from trainyard.derive.scripts import script_of
from trainyard.parts.parts import wanted_parts
from trainyard.plans.images import in_region
from trainyard.problems import At, InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import JobConfig
from trainyard.settings.network import NetworkConfig
from trainyard.settings.pools import PoolConfig

NETWORK, IMAGES = "environment.network", "environment.artifacts.images"
DOWNLOADS = re.compile(
    r"\b(?:git\s+clone|(?:pip3?|conda|uv\s+pip)\s+install(?!.*--no-index)|apt(?:-get)?\s+install"
    r"|(?:dnf|yum)\s+install|wget\s|curl\s+[^|;&\n]*https?://|huggingface-cli\s+download|hf\s+download)"
)
"""Commands of a script that fetch something from the internet."""


def isolation_errors(region: str, wanted: EnvironmentConfig) -> Iterator[InputError]:
    """Settings that a network without a way to the internet cannot have, or must have."""
    if wanted.artifacts and wanted.artifacts.images:
        yield from _region_errors(region, wanted.artifacts.images)
    if wanted.network.internet != "none":
        return
    if isinstance(wanted.network, NetworkConfig):
        yield from _own_errors(wanted.network)
    if not (wanted.artifacts and wanted.artifacts.images):
        yield At(IMAGES).must(
            "name a registry of ECR with all images: nodes reach no other without the internet",
            got="nothing",
            fix=f"write images: <account>.dkr.ecr.{region}.amazonaws.com/mirror, and run trainyard mirror"
            " before pulumi up",
        )
    yield from _price_errors(wanted)


def _price_errors(wanted: EnvironmentConfig) -> Iterator[InputError]:
    """Pools on demand that never get a node."""
    release = wanted.karpenter.version
    for path, pool, unpriced in _unpriced(wanted):
        if len(unpriced) < len(pool.instance_types):
            continue
        better = [one for one in KARPENTERS if any(has_price(one, kind) for kind in unpriced)]
        ways = [
            *(f"write karpenter.version: {one}" for one in better[-1:]),
            *(["write capacity: spot"] if pool.replicas is None else []),
            "name a reservation with capacity: reservation",
        ]
        yield At(path).must(
            f"be types that Karpenter {release} has a price of: with internet: none it learns no other, and"
            " launches no node on demand without one",
            got=", ".join(unpriced),
            fix="; or ".join(ways),
        )


def _unpriced(wanted: EnvironmentConfig) -> Iterator[tuple[str, PoolConfig, list[str]]]:
    """Place, pool and its types that Karpenter launches no node of on demand."""
    for name, pool in wanted.pools.items():
        unpriced = [
            kind for kind in pool.instance_types if not has_price(wanted.karpenter.version, kind)
        ]
        if unpriced and pool.capacity == "on_demand":
            yield f"environment.pools.{name}.instance_types", pool, unpriced


def _own_errors(network: NetworkConfig) -> Iterator[InputError]:
    if network.endpoints != "private":
        yield At(f"{NETWORK}.endpoints").must(
            "be private with internet: none: nothing else leads to AWS APIs",
            got=network.endpoints,
            write="private",
        )
    if network.nat != "single":
        yield At(f"{NETWORK}.nat").not_set(
            "with internet: none, which has no NAT gateway", got=network.nat
        )


def _region_errors(region: str, mirror: str) -> Iterator[InputError]:
    """Endpoints are those of the region's own ECR; another region's costs data and minutes."""
    if not in_region(mirror, region):
        there = re.sub(r"\.ecr\.[a-z0-9-]+\.", f".ecr.{region}.", mirror)
        yield At(IMAGES).must(
            f"be a registry of {region}: nodes pull from ECR of their own region",
            got=mirror,
            fix=f"copy the images to {region}, and write {there}",
            write=there,
        )


def isolation_warnings(wanted: EnvironmentConfig) -> Iterator[InputWarning]:
    """Warnings about what works otherwise than with a way to the internet."""
    if wanted.network.endpoints == "private" and wanted.teams:
        yield At(f"{NETWORK}.endpoints").warning(
            "AWS APIs then have addresses of the VPC, which the network policy of a team keeps"
            " from its pods: they reach S3 and get the credentials of their role, and reach no"
            " other AWS API"
        )
    if wanted.network.internet != "none":
        return
    yield At(f"{NETWORK}.internet").warning(
        f"none: {NONE['pricing']}, so pools of several"
        " instance types are compared by prices that may have changed since"
    )
    for path, pool, unpriced in _unpriced(wanted):
        if len(unpriced) < len(pool.instance_types):
            yield At(path).warning(
                f"Karpenter {wanted.karpenter.version} has no price of {', '.join(unpriced)}, and with internet:"
                " none it learns none: it launches the other types only"
            )
    if wanted.cluster.endpoint != "private":
        yield At("environment.cluster.endpoint").warning(
            "the Kubernetes API still answers public_access_cidrs from the internet, though nodes"
            " never use that way; once the VPC can be entered, write endpoint: private"
        )
    for part, settings in wanted_parts(wanted):
        yield from part.isolated_warnings(settings)


def offline_warnings(
    path: str, jobs: Mapping[str, JobConfig], wanted: EnvironmentConfig
) -> Iterator[InputWarning]:
    """Jobs whose script fetches something, where nothing can be fetched. `path`: that holds the
    jobs."""
    if wanted.network.internet != "none":
        return
    for name, job in jobs.items():
        script = job.script if job.script is not None else script_of(job.command)
        if found := DOWNLOADS.search(script):
            what = " ".join(found[0].split())
            yield At(f"{path}.{name}.{'script' if job.script is not None else 'command'}").warning(
                f"{what}: nodes have no way to the internet, so it waits and fails unless it asks"
                " a server inside the VPC; put it into the image or into a store"
            )
