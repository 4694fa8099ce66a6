"""Regions, their zones, and the zone ids that offer each instance type.

Zone names (ap-northeast-2a) differ from account to account, zone ids (apne2-az1) do not, so offers
are keyed by id. The offers are in offers.json with their date and source; `python -m
trainyard.catalog.refresh` writes it anew.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

ZONE_LETTERS: dict[str, str] = {
    "af-south-1": "abc",
    "ap-east-1": "abc",
    "ap-northeast-1": "acd",
    "ap-northeast-2": "abcd",
    "ap-northeast-3": "abc",
    "ap-south-1": "abc",
    "ap-south-2": "abc",
    "ap-southeast-1": "abc",
    "ap-southeast-2": "abc",
    "ap-southeast-3": "abc",
    "ap-southeast-4": "abc",
    "ap-southeast-5": "abc",
    "ca-central-1": "abd",
    "ca-west-1": "abc",
    "eu-central-1": "abc",
    "eu-central-2": "abc",
    "eu-north-1": "abc",
    "eu-south-1": "abc",
    "eu-south-2": "abc",
    "eu-west-1": "abc",
    "eu-west-2": "abcd",
    "eu-west-3": "abc",
    "il-central-1": "abc",
    "me-central-1": "abc",
    "me-south-1": "abc",
    "sa-east-1": "abc",
    "us-east-1": "abcdef",
    "us-east-2": "abc",
    "us-west-1": "ab",
    "us-west-2": "abcd",
}
"""region → the letters its zone names end with (one account's view; never fewer than two)."""
_SOME_ACCOUNTS: dict[str, str] = {"ap-northeast-1": "b", "us-west-1": "c"}
"""region → letters that other accounts have: each has two of a, b and c in us-west-1 (coreos/coreos-kubernetes#442,
cloudfoundry/bosh-bootloader#162, openshift/installer#1209), and old ones have b in ap-northeast-1."""

WITHOUT_EKS = ("use1-az3", "usw1-az2", "cac1-az3")
"""Zone ids in which EKS places no control plane: CreateCluster with a subnet in one of them fails
with UnsupportedAvailabilityZoneException. From eksctl (pkg/az/az.go, zoneIDsToAvoid) and the EKS
user guide (network-reqs, subnet requirements), both of 2026; China's regions are left out."""

OFFERS_FILE = Path(__file__).with_name("offers.json")
_FILE = json.loads(OFFERS_FILE.read_text())

SNAPSHOT: str = _FILE["as_of"]
"""Day or month of the offers, named in every warning that rests on them; age.outdated() says
when it is old."""

OFFERS: dict[str, dict[str, str]] = {}
"""instance type → region → the zone ids that offer it."""
for _type, _region, _ids in _FILE["offers"]:
    OFFERS.setdefault(_type, {})[_region] = _ids


def zone_names(region: str) -> tuple[str, ...]:
    """The zone names of a region, in order; empty for a region this table does not know."""
    return tuple(f"{region}{letter}" for letter in ZONE_LETTERS.get(region, ""))


def every_zone_name(region: str) -> tuple[str, ...]:
    """The zone names that some account has in a region, in order."""
    letters = sorted(f"{ZONE_LETTERS.get(region, '')}{_SOME_ACCOUNTS.get(region, '')}")
    return tuple(f"{region}{letter}" for letter in letters)


def regions_with(instance_type: str) -> tuple[str, ...]:
    """Regions that sell the type; empty for a type this table does not know."""
    return tuple(OFFERS.get(instance_type, {}))


@cache
def regions_with_family(family: str) -> frozenset[str]:
    """Regions that sell some type of an instance family; empty for a family this table does not know."""
    types = [each for each in OFFERS if each.partition(".")[0] == family]
    return frozenset(region for each in types for region in OFFERS[each])


def zone_ids_with(instance_type: str, region: str) -> tuple[str, ...]:
    """Zone ids of the region that offer the type."""
    return tuple(OFFERS.get(instance_type, {}).get(region, "").split())
