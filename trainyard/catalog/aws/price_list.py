"""AWS's public price list, which anybody can read without credentials.

Each service has a region_index.json with the address of the list of each region. We read the list
as CSV, line by line: that of AmazonEC2 is 441 MB in one region. Addresses, columns and selectors are
those of lists that AWS published until 2026-10; tests/trainyard/catalog/price_lists/ has rows of them.
"""

from __future__ import annotations

import codecs
import csv
import http.client
import json
import re
import urllib.request
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

HOST = "https://pricing.us-east-1.amazonaws.com"
"""Answers for all regions."""
TIMEOUT_SECONDS = 60
PREFIX = r"(?:[A-Z]{2,4}[0-9]?-)?"
"""Beginning of a usage type: the region, such as APN2-; nothing in us-east-1."""

Key = tuple[str, str]
"""Service and SKU, as in trainyard.catalog.aws.prices.UNITS; "ec2" and an instance type for instances."""


@dataclass(frozen=True, kw_only=True)
class Selector:
    """Selects the rows of a list that are about one price of ours."""

    key: Key
    code: str
    """AWS's name of the service."""
    usage: str
    """Regular expression of the usage type, behind its region."""
    unit: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Column of the CSV, in lower case → what it must say."""
    per: Decimal = Decimal(1)
    """Number of our units in one of AWS's units."""

    def matches(self, row: Mapping[str, str]) -> bool:
        """True for a row about this price."""
        return (
            re.fullmatch(PREFIX + self.usage, row.get("usagetype", "")) is not None
            and row.get("unit", "").lower() == self.unit.lower()
            and all(row.get(column) == value for column, value in self.attributes.items())
        )


_NAT = {"product family": "NAT Gateway", "operation": "NatGateway"}
_LUSTRE = {"file system type": "Lustre", "storage type": "SSD"}
SELECTORS: tuple[Selector, ...] = (
    Selector(
        key=("eks", "cluster"), code="AmazonEKS", unit="Hours", usage="AmazonEKS-Hours:perCluster"
    ),
    Selector(
        key=("eks", "extended-support"),
        code="AmazonEKS",
        unit="Hours",
        usage="AmazonEKS-Hours:extendedSupport",
    ),
    Selector(
        key=("nat", "hour"), code="AmazonEC2", unit="Hrs", usage="NatGateway-Hours", attributes=_NAT
    ),
    Selector(
        key=("nat", "gb"), code="AmazonEC2", unit="GB", usage="NatGateway-Bytes", attributes=_NAT
    ),
    Selector(
        key=("vpc", "public-ipv4"), code="AmazonVPC", unit="Hrs", usage="PublicIPv4:InUseAddress"
    ),
    Selector(
        key=("vpc", "endpoint-hour"),
        code="AmazonVPC",
        unit="Hrs",
        usage="VpcEndpoint-Hours",
        attributes={"endpoint type": "PrivateLink"},
    ),
    Selector(
        key=("vpc", "endpoint-gb"),
        code="AmazonVPC",
        unit="GB",
        usage="VpcEndpoint-Bytes",
        attributes={"endpoint type": "PrivateLink", "startingrange": "0"},
    ),
    Selector(
        key=("ebs", "gp3"),
        code="AmazonEC2",
        unit="GB-Mo",
        usage=r"EBS:VolumeUsage\.gp3",
        attributes={"product family": "Storage"},
    ),
    Selector(
        key=("ebs", "gp3-iops"),
        code="AmazonEC2",
        unit="IOPS-Mo",
        usage=r"EBS:VolumeP-IOPS\.gp3",
        attributes={"product family": "System Operation"},
    ),
    Selector(
        key=("ebs", "gp3-mbps"),
        code="AmazonEC2",
        unit="GiBps-mo",
        usage=r"EBS:VolumeP-Throughput\.gp3",
        attributes={"product family": "Provisioned Throughput"},
        per=Decimal(1024),
    ),
    Selector(
        key=("efs", "standard"),
        code="AmazonEFS",
        unit="GB-Mo",
        usage="TimedStorage-ByteHrs",
        attributes={"storage class": "General Purpose"},
    ),
    Selector(
        key=("efs", "infrequent"),
        code="AmazonEFS",
        unit="GB-Mo",
        usage="IATimedStorage-ByteHrs",
        attributes={"storage class": "Infrequent Access"},
    ),
    Selector(
        key=("efs", "archive"),
        code="AmazonEFS",
        unit="GB-Mo",
        usage="ArchiveTimedStorage-ByteHrs",
        attributes={"storage class": "Archive"},
    ),
    Selector(
        key=("efs", "provisioned"),
        code="AmazonEFS",
        unit="MiBps-Mo",
        usage="ProvisionedTP-MiBpsHrs",
        attributes={"product family": "Provisioned Throughput"},
    ),
    *(
        Selector(
            key=("efs", access.lower()),
            code="AmazonEFS",
            unit="GB",
            usage="ETDataAccess-Bytes",
            attributes={"access type": access},
        )
        for access in ("Read", "Write")
    ),
    *(
        Selector(
            key=("fsx-lustre", f"PERSISTENT_2-{tier}"),
            code="AmazonFSx",
            unit="GB-Mo",
            usage=rf"Storage\.SSD\.{tier}",
            attributes={
                **_LUSTRE,
                "deployment option": "Persistent",
                "throughput capacity": str(tier),
            },
        )
        for tier in (125, 250, 500, 1000)
    ),
    Selector(
        key=("fsx-lustre", "SCRATCH_2"),
        code="AmazonFSx",
        unit="GB-Mo",
        usage="Storage",
        attributes={**_LUSTRE, "deployment option": "Single-AZ", "throughput capacity": "N/A"},
    ),
    Selector(
        key=("fsx-lustre", "metadata"),
        code="AmazonFSx",
        unit="IOPS-Mo",
        usage=".*",
        attributes={"product family": "Provisioned IOPS", "file system type": "Lustre"},
    ),
    Selector(
        key=("s3", "standard"),
        code="AmazonS3",
        unit="GB-Mo",
        usage="TimedStorage-ByteHrs",
        attributes={"volume type": "Standard", "startingrange": "0"},
    ),
    Selector(
        key=("s3", "put"),
        code="AmazonS3",
        unit="Requests",
        usage="Requests-Tier1",
        attributes={"group": "S3-API-Tier1"},
        per=Decimal("0.001"),
    ),
    Selector(
        key=("logs", "ingested"),
        code="AmazonCloudWatch",
        unit="GB",
        usage="DataProcessing-Bytes",
        attributes={"product family": "Data Payload", "group": "Ingested Logs"},
    ),
    Selector(
        key=("transfer", "between-zones"),
        code="AWSDataTransfer",
        unit="GB",
        usage="DataTransfer-Regional-Bytes",
    ),
)
CODES = tuple(dict.fromkeys(selector.code for selector in SELECTORS))
"""The lists that are read in each region."""
INSTANCE = {
    "product family": "Compute Instance",
    "operating system": "Linux",
    "pre installed s/w": "NA",
    "tenancy": "Shared",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
    "unit": "Hrs",
}
"""Rows of AmazonEC2 about an instance type on demand, as Karpenter selects them (its pricing.go,
1.14.1)."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """Prices of one list."""

    published: str
    """Day; empty where the list does not say."""
    prices: Mapping[Key, Decimal]
    unresolved: Mapping[Key, tuple[Decimal, ...]]
    """Wanted, and not exactly one positive price was there."""


class Unreachable(Exception):
    """A list cannot be read."""


def read_list(lines: Iterable[str], code: str, types: Collection[str]) -> Found:
    """The prices of ours in the list of one service and region. `types`: instance types to look
    for in AmazonEC2; one that the region does not sell is not unresolved."""
    rows = csv.reader(lines)
    published, header = _head(rows)
    wanted = [selector for selector in SELECTORS if selector.code == code]
    seen: dict[Key, set[Decimal]] = {selector.key: set() for selector in wanted}
    for cells in rows:
        row = dict(zip(header, cells, strict=False))
        if row.get("termtype") != "OnDemand" or _elsewhere(row):
            continue
        for key, usd in _prices(row, wanted, types if code == "AmazonEC2" else ()):
            seen.setdefault(key, set()).add(usd)
    return Found(
        published=published,
        prices={key: next(iter(usd)) for key, usd in seen.items() if len(usd) == 1},
        unresolved={key: tuple(sorted(usd)) for key, usd in seen.items() if len(usd) != 1},
    )


def _head(rows: Iterator[list[str]]) -> tuple[str, list[str]]:
    """Day of publication and names of the columns; the lines before the columns are pairs. Lists
    of different services write the same name with other capitals, so all are made small."""
    published = ""
    for cells in rows:
        if cells and cells[0] == "SKU":
            return published, [name.lower() for name in cells]
        if len(cells) > 1 and cells[0] == "Publication Date":
            published = cells[1][:10]
    raise Unreachable("the list has no line of column names, which begins with SKU")


def _elsewhere(row: Mapping[str, str]) -> bool:
    """True for a row about a Local Zone, a Wavelength Zone or an Outpost."""
    return row.get("location type", "AWS Region") != "AWS Region"


def _prices(
    row: Mapping[str, str], wanted: Iterable[Selector], types: Collection[str]
) -> Iterator[tuple[Key, Decimal]]:
    """The prices of ours in a row; AWS lists at zero what is not sold by the hour."""
    usd = Decimal(row.get("priceperunit") or "0")
    if usd <= 0:
        return
    for selector in wanted:
        if selector.matches(row):
            yield selector.key, usd / selector.per
    kind = row.get("instance type", "")
    if kind in types and all(row.get(column) == value for column, value in INSTANCE.items()):
        yield ("ec2", kind), usd


def fetch(code: str, region: str, types: Collection[str]) -> Found:
    """Read the list of a service in a region. Raises Unreachable where that fails."""
    index = json.loads(
        "".join(lines_of(f"{HOST}/offers/v1.0/aws/{code}/current/region_index.json"))
    )
    entry: dict[str, Any] | None = index["regions"].get(region)
    if entry is None:
        raise Unreachable(f"{code} has no price list of {region}")
    address = HOST + entry["currentVersionUrl"].replace("index.json", "index.csv")
    return read_list(lines_of(address), code, types)


def lines_of(address: str) -> Iterator[str]:
    """The lines of a page as they arrive. Raises Unreachable."""
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_SECONDS) as page:
            yield from codecs.iterdecode(page, "utf-8")
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable(f"{address} cannot be read: {error}") from error
