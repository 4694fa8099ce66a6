"""Errors about metrics that cannot work: a history that fits on no disk, a Prometheus that fits on
no system node, an address that takes no samples."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainyard.catalog.aws.prices import CAPACITY_SERVICES, Price
from trainyard.parts.metrics_size import (
    LARGEST_DISK_GIB,
    Room,
    days_on_disk,
    disk_gib,
    room,
    series_of,
    taken,
)
from trainyard.parts.topics import topic_errors
from trainyard.problems import InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.metrics import AlertsConfig, MetricsConfig, RemoteWriteConfig
from trainyard.settings.pools import PoolConfig, node_type_names
from trainyard.settings.reading.secrets.secrets import HIDDEN

AT = "environment.metrics"
LARGER = ("m7i.xlarge", "m7i.2xlarge", "m7i.4xlarge", "m7i.8xlarge")


def metrics_errors(
    metrics: MetricsConfig, region: str, wanted: EnvironmentConfig
) -> Iterator[InputError]:
    """Every error of the metrics of an environment."""
    series = series_of(wanted)
    yield from _history(metrics, series)
    yield from _node(wanted.system_nodes.instance_type, metrics, series)
    if metrics.remote_write:
        yield from _address(metrics.remote_write)
    if alerts := metrics.alerts:
        yield from topic_errors(f"{AT}.alerts", alerts.topic_arn, alerts.emails, region)


def _history(metrics: MetricsConfig, series: int) -> Iterator[InputError]:
    most, need = days_on_disk(series), disk_gib(series, metrics.retention_days)
    if need > LARGEST_DISK_GIB:
        yield InputError(
            path=f"{AT}.retention_days",
            must=(
                f"need at most {LARGEST_DISK_GIB} GiB, which the disk of a system node has for"
                f" {series:,} series"
            ),
            got=f"{metrics.retention_days}, which need {need} GiB",
            fix=f"write {most}, and set managed_prometheus or remote_write for more"
            if most
            else "lower max_nodes of pools",
            write=most or None,
        )


def _node(instance_type: str, metrics: MetricsConfig, series: int) -> Iterator[InputError]:
    has, need = room(instance_type), taken(metrics, series)
    if has and not _fits(instance_type, need):
        larger = next((kind for kind in LARGER if _fits(kind, need)), None)
        programs = "Prometheus and Grafana" if metrics.grafana else "Prometheus"
        yield InputError(
            path="environment.system_nodes.instance_type",
            must=(
                f"have {need.memory_mib} MiB of memory and {need.millicpus / 1000:g} vCPUs for"
                f" {programs} in half of a node, for {series:,} series"
            ),
            got=f"{instance_type}, half of which has {has.memory_mib} MiB and"
            f" {has.millicpus / 1000:g} vCPUs",
            fix=f"write {larger}" if larger else f"delete {AT}",
            write=larger,
        )


def _fits(instance_type: str, need: Room) -> bool:
    has = room(instance_type)
    return has is not None and has.memory_mib >= need.memory_mib and has.millicpus >= need.millicpus


CREDENTIAL = re.compile(r"@|[?&][^=&]*(token|key|auth|secret|sig|pass)[^=&]*=", re.IGNORECASE)
"""A user name, or a key in the query, in an address."""


def _address(remote: RemoteWriteConfig) -> Iterator[InputError]:
    """An address with a user name or a key would stand in a ConfigMap in clear. A password is refused as a
    secret already, and does not arrive here."""
    if HIDDEN in remote.url:
        return
    secret, example = (
        bool(CREDENTIAL.search(remote.url)),
        "https://metrics.example.com/api/v1/write",
    )
    if not secret and re.fullmatch(r"https://[\w.-]+(:\d{1,5})?(/[^\s@#]*)?", remote.url):
        return
    yield InputError(
        path=f"{AT}.remote_write.url",
        must=(
            "not contain a user name, a password or a key: the address stands in a ConfigMap"
            if secret
            else "be an address that takes samples: https:// with a host and a path"
        ),
        got="a URL with one" if secret else remote.url,
        fix=f"write such as {example}",
        write=example,
    )


def node_prices(region: str, wanted: EnvironmentConfig) -> dict[str, Price | None]:
    """NodePool → an hour of one of its nodes, as `trainyard plan` has it; None where no price of the region is
    known. Spot without a price counts with the price on demand, which is the most that it costs. Capacity
    Blocks are paid in advance, and not among them."""
    return {
        node_pool: _node_price(wanted, CAPACITY_SERVICES[pool.capacity], kind, region)
        for node_pool, kind, pool in _node_pools(wanted)
        if pool.capacity != "block"
    }


def _node_pools(wanted: EnvironmentConfig) -> Iterator[tuple[str, str, PoolConfig]]:
    """(NodePool, its instance type, its pool): a pool has one for each of its types."""
    for name, pool in wanted.pools.items():
        for node_pool, kind in zip(node_type_names(name, pool), pool.instance_types, strict=False):
            yield node_pool, kind, pool


def _node_price(wanted: EnvironmentConfig, service: str, kind: str, region: str) -> Price | None:
    offered = wanted.own_prices.quote(service, kind, region)
    return offered.price or offered.ceiling


def metrics_warnings(
    metrics: MetricsConfig, region: str, wanted: EnvironmentConfig
) -> Iterator[InputWarning]:
    """Where the history ends with its node, where nobody is told of an alert, and where an alert
    counts less than is paid."""
    if metrics.dollars_a_day:
        prices = node_prices(region, wanted)
        unknown = [
            node_pool if len(pool.instance_types) == 1 else f"{node_pool} ({kind})"
            for node_pool, kind, pool in _node_pools(wanted)
            if node_pool in prices and prices[node_pool] is None
        ]
        if unknown:
            yield InputWarning(
                path=f"{AT}.dollars_a_day",
                text=(
                    f"no price of {region} is known for nodes of {', '.join(unknown)}, which the alert"
                    " does not count"
                ),
            )
    if metrics.alerts == AlertsConfig():
        yield InputWarning(
            path=f"{AT}.alerts",
            text=(
                "nobody reads the topic that the environment makes; write emails, or subscribe to"
                " the topic of the stack output alerts_topic"
            ),
        )
    if not (metrics.remote_write or metrics.managed_prometheus):
        yield InputWarning(
            path=AT,
            text=(
                "the history is on the disk of one system node, and another node begins without it;"
                " set managed_prometheus or remote_write to keep it"
            ),
        )
