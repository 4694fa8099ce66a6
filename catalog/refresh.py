"""Write what AWS changes without notice anew, with credentials that may only read. AWS_ENDPOINT_URL
and AWS_PROFILE are honoured; needs botocore, which the product itself does not.

`python -m catalog.refresh`: offers.json, from ec2:DescribeRegions and
ec2:DescribeInstanceTypeOfferings; `--from-moto` takes what the installed moto ships instead.
`--prices`: on_demand.json, from pricing:GetProducts.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import command_line
from catalog.instances import CPU_TYPES, GPU_TYPES
from catalog.prices import FRESH_FOR, ON_DEMAND, ON_DEMAND_FILE, PriceList, days_old
from catalog.zones import OFFERS, OFFERS_FILE, SNAPSHOT, ZONE_LETTERS

TYPES = (*GPU_TYPES, *CPU_TYPES)

PRICE_LIST = "us-east-1"
"""One of the three regions that answer for all."""
PLAIN_LINUX = {
    "operatingSystem": "Linux",
    "preInstalledSw": "NA",
    "tenancy": "Shared",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
    "productFamily": "Compute Instance",
}
"""What is asked of the price list, as Karpenter asks it (its pricing.go, 1.14.1)."""

Offers = Iterable[tuple[str, str, str]]
"""Instance type, region, zone id."""
Prices = Mapping[tuple[str, str], Decimal]
"""Instance type and region → USD an hour."""


def outdated(as_of: str, today: date) -> str | None:
    """A sentence for a warning where a day or month lies more than 180 days back; None where it
    does not."""
    try:
        days = days_old(as_of, today)
    except ValueError:
        return f"has no readable date ({as_of}): `python -m catalog.refresh` gives it one"
    if days <= FRESH_FOR.days:
        return None
    return f"is of {as_of}, {days} days old, and AWS has added since: `python -m catalog.refresh`"


def from_moto() -> Offers:
    """The offers that the installed moto ships."""
    package = find_spec("moto")
    if package is None or package.origin is None:
        raise SystemExit("moto is not installed: pip install -r requirements-dev.txt")
    for file in Path(package.origin).parent.glob(
        "ec2/resources/instance_type_offerings/availability-zone-id/*.gz"
    ):
        for offer in json.loads(gzip.decompress(file.read_bytes())):
            yield offer["InstanceType"], file.name.partition(".")[0], offer["Location"]


def enabled_regions() -> set[str]:
    """The regions of ZONE_LETTERS that the account may ask."""
    answer = _client("ec2", "us-east-1").describe_regions()
    return {region["RegionName"] for region in answer["Regions"]} & set(ZONE_LETTERS)


def from_account(regions: Iterable[str]) -> Offers:
    """What EC2 offers in the regions today."""
    for region in regions:
        pages = (
            _client("ec2", region)
            .get_paginator("describe_instance_type_offerings")
            .paginate(
                LocationType="availability-zone-id",
                Filters=[{"Name": "instance-type", "Values": list(TYPES)}],
            )
        )
        for page in pages:
            for offer in page["InstanceTypeOfferings"]:
                yield offer["InstanceType"], region, offer["Location"]


def from_price_list(regions: Iterable[str], types: Collection[str]) -> Prices:
    """What the types cost on demand today; one that the list prices twice is left out."""
    client, found = _client("pricing", PRICE_LIST), dict[tuple[str, str], set[Decimal]]()
    for region in regions:
        for product in _products(client, region):
            kind = product["product"]["attributes"]["instanceType"]
            found.setdefault((kind, region), set()).update(_usd(product))
    return {key: next(iter(usd)) for key, usd in found.items() if len(usd) == 1 and key[0] in types}


def _products(client: Any, region: str) -> Iterator[dict[str, Any]]:
    wanted = {**PLAIN_LINUX, "regionCode": region}.items()
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted]
    for page in client.get_paginator("get_products").paginate(
        ServiceCode="AmazonEC2", Filters=filters
    ):
        yield from (json.loads(product) for product in page["PriceList"])


def _usd(product: dict[str, Any]) -> Iterator[Decimal]:
    """An hour of it; zero is what the list says of what only Capacity Blocks sell."""
    for term in product["terms"].get("OnDemand", {}).values():
        for part in term["priceDimensions"].values():
            if part["unit"] == "Hrs" and (usd := Decimal(part["pricePerUnit"]["USD"])):
                yield usd


def _client(service: str, region: str) -> Any:
    try:
        from botocore.session import Session
    except ImportError:
        raise SystemExit("botocore is not installed: pip install -r requirements-dev.txt") from None
    return Session().create_client(service, region_name=region)


def kept(regions: set[str]) -> Offers:
    """The committed offers of regions that were not asked."""
    return (
        (kind, region, zone)
        for kind, sold in OFFERS.items()
        for region, zones in sold.items()
        if region not in regions
        for zone in zones.split()
    )


def text(offers: Offers, as_of: str, source: str) -> str:
    """offers.json: a line for each type and region, sorted."""
    zones: dict[tuple[str, str], set[str]] = {}
    for kind, region, zone in offers:
        if kind in TYPES and region in ZONE_LETTERS:
            zones.setdefault((kind, region), set()).add(zone)
    rows = ",\n".join(
        json.dumps([*key, " ".join(sorted(found))]) for key, found in sorted(zones.items())
    )
    return (
        f'{{"as_of": {json.dumps(as_of)},\n"source": {json.dumps(source)},\n"offers":'
        f" [\n{rows}\n]}}\n"
    )


def with_prices(lists: Iterable[PriceList], newest: PriceList) -> list[PriceList]:
    """The lists with another in front, less what it has."""
    older = [
        PriceList(
            as_of=each.as_of,
            source=each.source,
            prices={key: usd for key, usd in each.prices.items() if key not in newest.prices},
        )
        for each in lists
    ]
    return [each for each in (newest, *older) if each.prices]


def price_text(lists: Iterable[PriceList]) -> str:
    """on_demand.json: a line for each region and family, sorted."""
    return (
        "[\n"
        + ",\n".join(
            f'{{"as_of": {json.dumps(each.as_of)},\n"source":'
            f' {json.dumps(each.source)},\n"prices": [\n'
            + ",\n".join(_price_rows(each.prices))
            + "\n]}"
            for each in lists
        )
        + "\n]\n"
    )


def _price_rows(prices: Prices) -> Iterator[str]:
    families: dict[tuple[str, str], dict[str, Decimal]] = {}
    for (kind, region), usd in prices.items():
        family, _, size = kind.partition(".")
        families.setdefault((region, family), {})[size] = usd
    for key, sizes in sorted(families.items()):
        yield json.dumps(
            [
                *key,
                " ".join(
                    f"{size}={sizes[size].normalize():f}" for size in sorted(sizes, key=_place)
                ),
            ]
        )


def _place(size: str) -> tuple[int, str]:
    """large, xlarge, 2xlarge … 48xlarge."""
    times = size.removesuffix("xlarge")
    return (0 if times == size else int(times or 1)), size


def _refresh_prices(today: str) -> None:
    kinds = {*TYPES, *(kind for each in ON_DEMAND for kind, _ in each.prices)}
    newest = PriceList(
        as_of=today,
        source="AWS price list, GetProducts",
        prices=from_price_list(ZONE_LETTERS, kinds),
    )
    lists = with_prices(ON_DEMAND, newest)
    ON_DEMAND_FILE.write_text(price_text(lists))
    print(
        f"{ON_DEMAND_FILE.name}:"
        f" {', '.join(f'{len(each.prices)} prices of {each.as_of}' for each in lists)}"
    )


def main(arguments: Sequence[str]) -> int:
    """Rewrite the file and say from where."""
    parser = command_line.parser(
        "catalog.refresh", "Write catalog/offers.json anew, from what EC2 offers to this account."
    )
    origin = parser.add_mutually_exclusive_group()
    origin.add_argument(
        "--prices",
        action="store_true",
        help="write catalog/on_demand.json instead, from the price list of AWS",
    )
    origin.add_argument(
        "--from-moto",
        action="store_true",
        help="take the offers that the installed moto ships, and ask no account",
    )
    parser.add_argument(
        "--as-of", metavar="MONTH", help="with --from-moto: the month of its data, as 2026-11"
    )
    options = parser.parse_args(arguments)
    if options.from_moto and not options.as_of:
        parser.error("--from-moto needs --as-of: moto does not say how old its data is")
    if options.as_of and not options.from_moto:
        parser.error("--as-of is the month of moto's data: it needs --from-moto")
    if options.prices:
        _refresh_prices(date.today().isoformat())
        return 0
    if options.from_moto:
        offers, as_of = from_moto(), options.as_of
        source = f"EC2 DescribeInstanceTypeOfferings, as shipped in moto {version('moto')}"
    else:
        regions, as_of = enabled_regions(), date.today().isoformat()
        offers, source = (
            [*from_account(sorted(regions)), *kept(regions)],
            "EC2 DescribeInstanceTypeOfferings",
        )
        if missing := sorted(set(ZONE_LETTERS) - regions):
            source += f"; not asked, so as of {SNAPSHOT}: {', '.join(missing)}"
    OFFERS_FILE.write_text(text(offers, as_of, source))
    print(f"{OFFERS_FILE.name}: {source}")
    return 0


if __name__ == "__main__":
    command_line.run(main)
