"""Write what AWS changes without notice anew.

`python -m trainyard.catalog.refresh`: offers.json, from ec2:DescribeRegions and
ec2:DescribeInstanceTypeOfferings, with credentials that may only read. AWS_ENDPOINT_URL and
AWS_PROFILE are honoured; needs botocore, which the product itself does not. `--from-moto` takes what
the installed moto ships instead.
`--prices`: on_demand.json and service_prices.json, from AWS's public price list, without
credentials.
`--fields`: fields.json, from the CRDs in components/charts, without an account.
`--proven FILE`: proven.json, with the durations of a file of `trainyard prove`.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from trainyard import command_line
from trainyard.catalog.aws import price_list
from trainyard.catalog.aws.instances import CPU_TYPES, GPU_TYPES
from trainyard.catalog.aws.latencies import PROVEN_FILE, Proven, proven_of, read_proven
from trainyard.catalog.aws.prices import (
    ON_DEMAND_FILE,
    SERVICES_FILE,
    UNITS,
    Price,
    PriceList,
    on_demand,
    services,
)
from trainyard.catalog.aws.zones import OFFERS, OFFERS_FILE, SNAPSHOT, ZONE_LETTERS
from trainyard.catalog.crds import fields_text
from trainyard.catalog.fields import FIELDS_FILE

TYPES = (*GPU_TYPES, *CPU_TYPES)

Offers = Iterable[tuple[str, str, str]]
"""Instance type, region, zone id."""
Prices = Mapping[tuple[str, str], Decimal]
"""Instance type and region → USD an hour."""


def from_moto() -> Offers:
    """The offers that the installed moto ships."""
    package = find_spec("moto")
    if package is None or package.origin is None:
        raise SystemExit("moto is not installed: pip install -r requirements/develop.txt")
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
    """Instance types that EC2 offers in the regions today."""
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


def _client(service: str, region: str) -> Any:
    try:
        from botocore.session import Session
    except ImportError:
        raise SystemExit(
            "botocore is not installed: pip install -r requirements/develop.txt"
        ) from None
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


def service_text(prices: Mapping[tuple[str, str, str], Price]) -> str:
    """service_prices.json: the prices of one source and day together, a line for each, sorted."""
    lists: dict[tuple[str, str], list[str]] = {}
    for (service, sku, region), found in sorted(prices.items()):
        row = json.dumps([service, sku, region, f"{found.usd.normalize():f}"])
        lists.setdefault((found.source, found.as_of), []).append(row)
    return (
        "[\n"
        + ",\n".join(
            f'{{"as_of": {json.dumps(as_of)},\n"source": {json.dumps(source)},\n"prices": [\n'
            + ",\n".join(rows)
            + "\n]}"
            for (source, as_of), rows in sorted(lists.items())
        )
        + "\n]\n"
    )


@dataclass
class _Read:
    """Prices in today's lists."""

    instances: dict[tuple[str, str], Decimal]
    services: dict[tuple[str, str, str], Price]
    left: list[str]
    """Sentences about what keeps its older price."""


def read_price_lists(regions: Iterable[str], today: str) -> _Read:
    """Read the public price lists of the regions. What cannot be read is named and left out."""
    types = {*TYPES, *(kind for each in on_demand() for kind, _ in each.prices)}
    read = _Read(instances={}, services={}, left=[])
    for region in regions:
        for code in price_list.CODES:
            try:
                found = price_list.fetch(code, region, types)
            except price_list.Unreachable as error:
                read.left.append(str(error))
                continue
            _take(read, found, code, region, today)
    return read


def _take(read: _Read, found: price_list.Found, code: str, region: str, today: str) -> None:
    source = f"AWS price list {code}, published {found.published or 'on a day it does not say'}"
    for (service, sku), usd in found.prices.items():
        if service == "ec2":
            read.instances[sku, region] = usd
            continue
        unit, kind = UNITS[service, sku]
        read.services[service, sku, region] = Price(
            usd=usd, unit=unit, kind=kind, as_of=today, source=source
        )
    for (service, sku), several in found.unresolved.items():
        said = f"{len(several)} prices: {', '.join(map(str, several))}" if several else "no price"
        read.left.append(f"unresolved: {service} {sku} in {region}: the list has {said}")


def _refresh_prices(today: str, regions: Sequence[str]) -> int:
    """Write both files of prices; 1 where no list could be read."""
    read = read_price_lists(regions, today)
    for sentence in read.left:
        print(sentence)
    if not read.instances and not read.services:
        print("no price list could be read, so nothing is changed")
        return 1
    newest = PriceList(as_of=today, source="AWS price list AmazonEC2", prices=read.instances)
    lists = with_prices(on_demand(), newest)
    ON_DEMAND_FILE.write_text(price_text(lists))
    SERVICES_FILE.write_text(service_text({**services(), **read.services}))
    dates = ", ".join(f"{len(each.prices)} prices of {each.as_of}" for each in lists)
    print(f"{ON_DEMAND_FILE.name}: {dates}")
    print(f"{SERVICES_FILE.name}: {len(read.services)} of {len(services())} prices of {today}")
    return 0


def _refresh_fields() -> None:
    FIELDS_FILE.write_text(fields_text())
    print(f"{FIELDS_FILE.name}: the CRDs in components/charts")


def proven_text(rows: Iterable[Proven]) -> str:
    """proven.json: a line for each duration, the oldest first; one that is there already counts once."""
    every = {(row.start, row.row): row for row in rows}
    lines = [
        json.dumps([row.row, row.seconds, row.start, row.region, row.instance_type])
        for _, row in sorted(every.items())
    ]
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"


def durations_of(proof: Mapping[str, Any]) -> Iterator[Proven]:
    """Durations of a file of `trainyard prove` that the catalogue has rows for. SystemExit where the file
    was not made on an AWS account."""
    if proof.get("schema") != 1 or not proof.get("live"):
        raise SystemExit(
            "--proven takes a file of schema 1 that `trainyard prove --live` has written on an AWS account"
        )
    return proven_of(proof)


def _refresh_proven(file: str) -> None:
    before = read_proven()
    PROVEN_FILE.write_text(
        proven_text([*before, *durations_of(json.loads(Path(file).read_text()))])
    )
    print(f"{PROVEN_FILE.name}: {len(read_proven()) - len(before)} more durations")


def _parser() -> argparse.ArgumentParser:
    parser = command_line.parser(
        "trainyard.catalog.refresh",
        "Write trainyard/catalog/aws/offers.json anew, from what EC2 offers to this account.",
    )
    origin = parser.add_mutually_exclusive_group()
    origin.add_argument(
        "--prices",
        action="store_true",
        help=(
            "write on_demand.json and service_prices.json of trainyard/catalog/aws instead, from AWS's"
            " public price list, without credentials"
        ),
    )
    origin.add_argument(
        "--fields",
        action="store_true",
        help="write trainyard/catalog/fields.json instead, from the CRDs in components/charts",
    )
    origin.add_argument(
        "--proven",
        metavar="FILE",
        help="add the durations of this file of `trainyard prove` to trainyard/catalog/aws/proven.json",
    )
    origin.add_argument(
        "--from-moto",
        action="store_true",
        help="take the offers that the installed moto ships, and ask no account",
    )
    parser.add_argument("--as-of", metavar="MONTH", help="with --from-moto: its month, as 2026-11")
    parser.add_argument(
        "--region",
        metavar="REGION",
        action="append",
        choices=sorted(ZONE_LETTERS),
        help="with --prices: read the lists of this region only (some 450 MB); may be repeated",
    )
    return parser


def _refresh_offers(options: argparse.Namespace) -> None:
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


def main(arguments: Sequence[str]) -> int:
    """Rewrite the file and say from where."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.region and not options.prices:
        parser.error("--region is a region of the price list: it needs --prices")
    if options.from_moto and not options.as_of:
        parser.error("--from-moto needs --as-of: moto does not say how old its data is")
    if options.as_of and not options.from_moto:
        parser.error("--as-of is the month of moto's data: it needs --from-moto")
    if options.prices:
        return _refresh_prices(date.today().isoformat(), options.region or list(ZONE_LETTERS))
    if options.fields:
        _refresh_fields()
    elif options.proven:
        _refresh_proven(options.proven)
    else:
        _refresh_offers(options)
    return 0


if __name__ == "__main__":
    command_line.run(main)
