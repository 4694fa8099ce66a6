"""The dollars of a stack file, reckoned again from the file and the catalogue's JSON alone. It imports
nothing of the product: a fault there is no fault here.

It knows what an environment without other settings has: a control plane, NAT gateways with their addresses,
two system nodes of 50 GiB each, and 200 GiB, 4,000 IOPS and 1,000 MB/s for each node of a pool.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

CATALOGUE = Path(__file__).parents[2] / "trainyard/catalog/aws"
MONTH = 730
"""Hours."""
Sku = tuple[str, str]
Part = tuple[str, str, Decimal]
"""Service, SKU and quantity."""
PER_MONTH = {"ebs", "fsx-lustre", "efs"}
"""Services whose prices are by the month."""
SERVICE = {
    "on_demand": "ec2",
    "reservation": "ec2",
    "spot": "ec2-spot",
    "block": "ec2-block",
}


def _prices() -> dict[tuple[str, str, str], Decimal]:
    """Service, SKU and region → USD. The first list that has an instance counts."""
    found: dict[tuple[str, str, str], Decimal] = {}
    for each in json.loads((CATALOGUE / "service_prices.json").read_text()):
        for service, sku, region, usd in each["prices"]:
            found[service, sku, region] = Decimal(usd)
    for each in json.loads((CATALOGUE / "on_demand.json").read_text()):
        for region, family, sizes in each["prices"]:
            for size in sizes.split():
                name, _, usd = size.partition("=")
                found.setdefault(("ec2", f"{family}.{name}", region), Decimal(usd))
    return found


PRICES = _prices()


@dataclass
class Sum:
    """Dollars an hour: what is known, its upper bound, and the range with guesses."""

    least: Decimal = Decimal()
    most: Decimal | None = Decimal()
    guess_least: Decimal = Decimal()
    guess_most: Decimal | None = Decimal()

    def add(
        self,
        service: str,
        sku: str,
        region: str,
        quantity: Decimal | int,
        share: Decimal = Decimal(1),
    ) -> None:
        """So many units of a price. `share`: of the list price that is paid."""
        hours = MONTH if service in PER_MONTH else 1
        quantity *= share
        low, high, guess_low, guess_high = bounds(service, sku, region)
        self.least += low * quantity / hours
        self.guess_least += guess_low * quantity / hours
        if high is None or self.most is None:
            self.most = None
        else:
            self.most += high * quantity / hours
        if guess_high is None or self.guess_most is None:
            self.guess_most = None
        else:
            self.guess_most += guess_high * quantity / hours

    def times(self, hours: Decimal) -> Sum:
        """So many hours of it."""
        return Sum(
            least=self.least * hours,
            most=None if self.most is None else self.most * hours,
            guess_least=self.guess_least * hours,
            guess_most=None if self.guess_most is None else self.guess_most * hours,
        )

    def plus(self, other: Sum) -> Sum:
        """Both together."""
        return Sum(
            least=self.least + other.least,
            most=None if self.most is None or other.most is None else self.most + other.most,
            guess_least=self.guess_least + other.guess_least,
            guess_most=None
            if self.guess_most is None or other.guess_most is None
            else self.guess_most + other.guess_most,
        )


def bounds(
    service: str, sku: str, region: str
) -> tuple[Decimal, Decimal | None, Decimal, Decimal | None]:
    """Known part, upper bound, and both with a guess."""
    usd = PRICES.get((service, sku, region))
    if usd is not None:
        return usd, usd, usd, usd
    if service == "ec2-spot":
        ceiling = PRICES.get(("ec2", sku, region))
        if ceiling is not None:
            return Decimal(), ceiling, Decimal(), ceiling
        service = "ec2"
    others = [usd for (a, b, _), usd in PRICES.items() if (a, b) == (service, sku)]
    if not others:
        return Decimal(), None, Decimal(), None
    return Decimal(), None, min(others) * 9 / 10, max(others) * 14 / 10


def share_of(prices: Mapping[str, Any], service: str, sku: str) -> Decimal:
    """Share of the list price that is paid: an agreement takes its per cent off each price, and a Savings
    Plan first its own off instances on demand of its family."""
    left = (100 - Decimal(str(prices.get("discount_percent", 0)))) / 100
    if service == "ec2":
        family, _, _ = sku.partition(".")
        left *= (100 - Decimal(str(prices.get("savings_plan_percent", {}).get(family, 0)))) / 100
    return left


@dataclass
class Reckoned:
    """Figures of one environment."""

    idle: Sum = field(default_factory=Sum)
    at_work: Sum = field(default_factory=Sum)
    full: Sum = field(default_factory=Sum)
    once: Sum | None = None
    runs: dict[str, Sum] = field(default_factory=dict[str, Sum])
    """Job → its run with everything beside it."""


def reckoned(
    config: Mapping[str, Any], cold_start_seconds: Mapping[str, float], endpoints: int = 0
) -> Reckoned:
    """The figures of a stack file's configuration. `cold_start_seconds`: job → seconds that its nodes are paid
    before its first step, which are no dollars; `endpoints`: interface endpoints times zones."""
    region, env = config["aws:region"], config["trainyard:environment"]
    pools, jobs = env["pools"], env.get("jobs") or {}
    summed = partial(_sum, region, env.get("prices", {}))
    found = Reckoned(idle=summed(_fixed(env, endpoints)))
    found.at_work, found.full = (found.idle.plus(Sum()) for _ in range(2))
    for name, pool in pools.items():
        needed = sum(job["nodes"] for job in jobs.values() if job["pool"] == name)
        working = min(pool["max_nodes"], needed)
        most = max(pool["max_nodes"], kept(pool))
        found.at_work = found.at_work.plus(summed(_added(pool, working)))
        found.full = found.full.plus(summed(_added(pool, most)))
        for kind in pool["instance_types"][1:]:
            other = {"instance_types": [kind], "max_nodes": most}
            found.full = found.full.plus(summed(_added(other, pool["max_nodes"])))
    blocks = [pool for pool in pools.values() if pool.get("capacity") == "block"]
    if blocks:
        parts = [("ec2-block", pool["instance_types"][0], _block_hours(pool)) for pool in blocks]
        found.once = summed(parts)
    for name, job in jobs.items():
        if hours := job.get("expected_hours"):
            paid = Decimal(str(hours)) + Decimal(str(cold_start_seconds[name])) / 3600
            pool = pools[job["pool"]]
            beside = found.idle.plus(summed(_of_run(pool, job["nodes"])))
            found.runs[name] = beside.times(paid).plus(_images(env, region, job))
    return found


def kept(pool: Mapping[str, Any]) -> int:
    """Nodes that run all the time."""
    return pool.get("replicas", 0) + pool.get("warm_spares", 0)


def _reserved(pool: Mapping[str, Any]) -> int:
    return pool["reservation"]["instances"] if "reservation" in pool else 0


def _block_hours(pool: Mapping[str, Any]) -> Decimal:
    begin, end = (datetime.fromisoformat(pool["reservation"][key]) for key in ("starts", "ends"))
    return Decimal(_reserved(pool)) * round((end - begin).total_seconds() / 3600)


def _fixed(env: Mapping[str, Any], endpoints: int) -> Iterator[Part]:
    yield "eks", "cluster", Decimal(1)
    if tier := env["cluster"].get("scaling_tier"):
        yield "eks", tier, Decimal(1)
    network = env["network"]
    if network.get("internet", "outbound") == "outbound":
        gateways = 3 if network.get("nat") == "each_zone" else 1
        yield "nat", "hour", Decimal(gateways)
        yield "vpc", "public-ipv4", Decimal(gateways)
    if endpoints:
        yield "vpc", "endpoint-hour", Decimal(endpoints)
    system = env.get("system_nodes", {})
    nodes = Decimal(system.get("nodes", 2))
    yield "ec2", system.get("instance_type", "m7i.xlarge"), nodes
    yield "ebs", "gp3", 50 * nodes
    for store in env.get("storage", {}).values():
        yield from _store(store)
    for pool in env["pools"].values():
        paid = max(_reserved(pool), kept(pool))
        if paid and pool.get("capacity") != "block":
            yield (
                SERVICE[pool.get("capacity", "on_demand")],
                pool["instance_types"][0],
                Decimal(paid),
            )
        yield from _disks(kept(pool))


def _store(store: Mapping[str, Any]) -> Iterator[Part]:
    if lustre := store.get("lustre"):
        deployment, tier = lustre.get("deployment"), lustre.get("throughput_mbps_per_tib")
        sku = deployment or f"PERSISTENT_2-{tier}"
        yield "fsx-lustre", sku, Decimal(lustre["capacity_gib"])
    elif (store.get("efs") or {}).get("throughput_mibps"):
        yield "efs", "provisioned", Decimal(store["efs"]["throughput_mibps"])


def _disks(nodes: int) -> Iterator[Part]:
    if nodes > 0:
        yield "ebs", "gp3", Decimal(200 * nodes)
        yield "ebs", "gp3-iops", Decimal(1000 * nodes)
        yield "ebs", "gp3-mbps", Decimal(875 * nodes)


def _added(pool: Mapping[str, Any], nodes: int) -> Iterator[Part]:
    """Nodes beyond those that are paid anyway. A block is paid already where it is idle, not by the hour."""
    more = nodes - max(_reserved(pool), kept(pool))
    if more > 0:
        yield SERVICE[pool.get("capacity", "on_demand")], pool["instance_types"][0], Decimal(more)
    yield from _disks(nodes - kept(pool))


def _of_run(pool: Mapping[str, Any], nodes: int) -> Iterator[Part]:
    """A run on a block has its share of the block."""
    if pool.get("capacity") == "block":
        yield "ec2-block", pool["instance_types"][0], Decimal(nodes)
        yield from _disks(nodes)
    else:
        yield from _added(pool, nodes)


def _images(env: Mapping[str, Any], region: str, job: Mapping[str, Any]) -> Sum:
    """Images of 9.35 GB that come through a NAT gateway."""
    found = Sum()
    if env["network"].get("internet", "outbound") == "outbound":
        gigabytes = Decimal(str(job.get("image_gb", "9.35"))) * job["nodes"]
        found.add("nat", "gb", region, gigabytes, share_of(env.get("prices", {}), "nat", "gb"))
    return found


def _sum(region: str, prices: Mapping[str, Any], parts: Iterable[Part]) -> Sum:
    found = Sum()
    for service, sku, quantity in parts:
        found.add(service, sku, region, quantity, share_of(prices, service, sku))
    return found
