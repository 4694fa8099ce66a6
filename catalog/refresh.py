"""Write offers.json anew: `python -m catalog.refresh`, with credentials that may call ec2:DescribeRegions and
ec2:DescribeInstanceTypeOfferings, which read only. AWS_ENDPOINT_URL and AWS_PROFILE are honoured.

`--from-moto` takes what the installed moto ships instead. Needs botocore, which the product itself does not.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from catalog.instances import CPU_TYPES, GPU_TYPES
from catalog.zones import OFFERS, OFFERS_FILE, SNAPSHOT, ZONE_LETTERS

FRESH_FOR = timedelta(days=180)
"""How long a fact that AWS changes without notice is taken for current; a choice of ours."""
TYPES = (*GPU_TYPES, *CPU_TYPES)

Offers = Iterable[tuple[str, str, str]]
"""Instance type, region, zone id."""


def outdated(as_of: str, today: date) -> str | None:
    """A sentence for a warning where a day or month lies more than 180 days back; None where it does not."""
    try:
        day = date.fromisoformat(as_of if as_of.count("-") == 2 else f"{as_of}-01")
    except ValueError:
        return f"has no readable date ({as_of}): `python -m catalog.refresh` gives it one"
    if today - day <= FRESH_FOR:
        return None
    return f"is of {as_of}, {(today - day).days} days old, and AWS has added since: `python -m catalog.refresh`"


def from_moto() -> Offers:
    """The offers that the installed moto ships."""
    package = find_spec("moto")
    if package is None or package.origin is None:
        raise SystemExit("moto is not installed: pip install -r requirements-dev.txt")
    for file in Path(package.origin).parent.glob("ec2/resources/instance_type_offerings/availability-zone-id/*.gz"):
        for offer in json.loads(gzip.decompress(file.read_bytes())):
            yield offer["InstanceType"], file.name.partition(".")[0], offer["Location"]


def enabled_regions() -> set[str]:
    """The regions of ZONE_LETTERS that the account may ask."""
    answer = _ec2("us-east-1").describe_regions()
    return {region["RegionName"] for region in answer["Regions"]} & set(ZONE_LETTERS)


def from_account(regions: Iterable[str]) -> Offers:
    """What EC2 offers in the regions today."""
    for region in regions:
        pages = _ec2(region).get_paginator("describe_instance_type_offerings").paginate(
            LocationType="availability-zone-id", Filters=[{"Name": "instance-type", "Values": list(TYPES)}])
        for page in pages:
            for offer in page["InstanceTypeOfferings"]:
                yield offer["InstanceType"], region, offer["Location"]


def _ec2(region: str) -> Any:
    try:
        from botocore.session import Session
    except ImportError:
        raise SystemExit("botocore is not installed: pip install -r requirements-dev.txt") from None
    return Session().create_client("ec2", region_name=region)


def kept(regions: set[str]) -> Offers:
    """The committed offers of regions that were not asked."""
    return ((kind, region, zone) for kind, sold in OFFERS.items() for region, zones in sold.items()
            if region not in regions for zone in zones.split())


def text(offers: Offers, as_of: str, source: str) -> str:
    """offers.json: a line for each type and region, sorted."""
    zones: dict[tuple[str, str], set[str]] = {}
    for kind, region, zone in offers:
        if kind in TYPES and region in ZONE_LETTERS:
            zones.setdefault((kind, region), set()).add(zone)
    rows = ",\n".join(json.dumps([*key, " ".join(sorted(found))]) for key, found in sorted(zones.items()))
    return f'{{"as_of": {json.dumps(as_of)},\n"source": {json.dumps(source)},\n"offers": [\n{rows}\n]}}\n'


def main(arguments: Sequence[str]) -> int:
    """Rewrite the file and say from where."""
    parser = argparse.ArgumentParser(prog="python -m catalog.refresh", description="Write catalog/offers.json anew.")
    parser.add_argument("--from-moto", action="store_true", help="what the installed moto ships, not a live account")
    parser.add_argument("--as-of", help="month of moto's data; needed with --from-moto")
    options = parser.parse_args(arguments)
    if options.from_moto and not options.as_of:
        parser.error("--from-moto needs --as-of: moto does not say how old its data is")
    if options.from_moto:
        offers, as_of = from_moto(), options.as_of
        source = f"EC2 DescribeInstanceTypeOfferings, as shipped in moto {version('moto')}"
    else:
        regions, as_of = enabled_regions(), date.today().isoformat()
        offers, source = [*from_account(sorted(regions)), *kept(regions)], "EC2 DescribeInstanceTypeOfferings"
        if missing := sorted(set(ZONE_LETTERS) - regions):
            source += f"; not asked, so as of {SNAPSHOT}: {', '.join(missing)}"
    OFFERS_FILE.write_text(text(offers, as_of, source))
    print(f"{OFFERS_FILE.name}: {source}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
