"""What AWS sells where: regions, their zones, and the zone ids that offer each GPU instance type.

Zone names (ap-northeast-2a) differ from account to account, zone ids (apne2-az1) do not, so offers are keyed by id.
Source: EC2 DescribeInstanceTypeOfferings as shipped in moto 5.2.5; a region or zone may have gained a type since.
Change it by regenerating from a newer moto or a live account.
"""

SNAPSHOT = "2026-10"
"""Month of the offerings below, named in every warning that rests on them."""

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

OFFERED_IN: dict[str, dict[str, str]] = {
    "g5.48xlarge": {
        "ap-east-1": "ape1-az1 ape1-az2",
        "ap-northeast-1": "apne1-az1 apne1-az4",
        "ap-northeast-2": "apne2-az1 apne2-az3 apne2-az4",
        "ap-south-1": "aps1-az1 aps1-az3",
        "ap-southeast-2": "apse2-az1 apse2-az2",
        "ap-southeast-3": "apse3-az1 apse3-az3",
        "ca-central-1": "cac1-az1 cac1-az2",
        "eu-central-1": "euc1-az1 euc1-az2 euc1-az3",
        "eu-north-1": "eun1-az2 eun1-az3",
        "eu-south-2": "eus2-az1 eus2-az2 eus2-az3",
        "eu-west-1": "euw1-az1 euw1-az2 euw1-az3",
        "eu-west-2": "euw2-az2 euw2-az3",
        "eu-west-3": "euw3-az1 euw3-az2 euw3-az3",
        "il-central-1": "ilc1-az1 ilc1-az2 ilc1-az3",
        "me-central-1": "mec1-az1 mec1-az2",
        "sa-east-1": "sae1-az1 sae1-az2",
        "us-east-1": "use1-az1 use1-az2 use1-az4 use1-az5 use1-az6",
        "us-east-2": "use2-az1 use2-az2 use2-az3",
        "us-west-2": "usw2-az1 usw2-az2 usw2-az3",
    },
    "g6.48xlarge": {
        "ap-northeast-1": "apne1-az1 apne1-az4",
        "ap-northeast-2": "apne2-az1 apne2-az3 apne2-az4",
        "ap-south-1": "aps1-az1 aps1-az3",
        "ap-south-2": "aps2-az1 aps2-az2",
        "ap-southeast-2": "apse2-az1 apse2-az2 apse2-az3",
        "ap-southeast-5": "apse5-az1 apse5-az2",
        "ca-central-1": "cac1-az1 cac1-az2 cac1-az4",
        "eu-central-1": "euc1-az1 euc1-az2 euc1-az3",
        "eu-central-2": "euc2-az2 euc2-az3",
        "eu-north-1": "eun1-az1 eun1-az2",
        "eu-south-2": "eus2-az1 eus2-az2 eus2-az3",
        "eu-west-2": "euw2-az1 euw2-az2 euw2-az3",
        "eu-west-3": "euw3-az2 euw3-az3",
        "me-central-1": "mec1-az1 mec1-az2",
        "sa-east-1": "sae1-az1 sae1-az2",
        "us-east-1": "use1-az1 use1-az2 use1-az4 use1-az5 use1-az6",
        "us-east-2": "use2-az1 use2-az2 use2-az3",
        "us-west-2": "usw2-az1 usw2-az2 usw2-az3 usw2-az4",
    },
    "g6e.12xlarge": {
        "ap-northeast-1": "apne1-az1 apne1-az4",
        "ap-northeast-2": "apne2-az1 apne2-az2",
        "ap-northeast-3": "apne3-az1 apne3-az2",
        "ap-south-1": "aps1-az1 aps1-az3",
        "ap-south-2": "aps2-az1 aps2-az2",
        "eu-central-1": "euc1-az1 euc1-az2 euc1-az3",
        "eu-north-1": "eun1-az1 eun1-az2",
        "eu-south-2": "eus2-az2 eus2-az3",
        "me-central-1": "mec1-az1 mec1-az2",
        "us-east-1": "use1-az1 use1-az2 use1-az4 use1-az6",
        "us-east-2": "use2-az1 use2-az2 use2-az3",
        "us-west-2": "usw2-az1 usw2-az2 usw2-az3 usw2-az4",
    },
    "g6e.24xlarge": {
        "ap-northeast-1": "apne1-az1 apne1-az4",
        "ap-northeast-2": "apne2-az1 apne2-az2",
        "ap-northeast-3": "apne3-az1 apne3-az2",
        "ap-south-1": "aps1-az1 aps1-az3",
        "ap-south-2": "aps2-az1 aps2-az2",
        "eu-central-1": "euc1-az1 euc1-az2 euc1-az3",
        "eu-north-1": "eun1-az1 eun1-az2",
        "eu-south-2": "eus2-az2 eus2-az3",
        "me-central-1": "mec1-az1 mec1-az2",
        "us-east-1": "use1-az1 use1-az2 use1-az4 use1-az6",
        "us-east-2": "use2-az1 use2-az2 use2-az3",
        "us-west-2": "usw2-az1 usw2-az2 usw2-az3 usw2-az4",
    },
    "g6e.48xlarge": {
        "ap-northeast-1": "apne1-az1 apne1-az4",
        "ap-northeast-2": "apne2-az1 apne2-az2",
        "ap-northeast-3": "apne3-az1 apne3-az2",
        "ap-south-1": "aps1-az1 aps1-az3",
        "ap-south-2": "aps2-az1 aps2-az2",
        "eu-central-1": "euc1-az1 euc1-az2 euc1-az3",
        "eu-north-1": "eun1-az1 eun1-az2",
        "eu-south-2": "eus2-az2 eus2-az3",
        "me-central-1": "mec1-az1 mec1-az2",
        "us-east-1": "use1-az1 use1-az2 use1-az4 use1-az6",
        "us-east-2": "use2-az1 use2-az2 use2-az3",
        "us-west-2": "usw2-az1 usw2-az2 usw2-az3 usw2-az4",
    },
    "p4d.24xlarge": {
        "ap-northeast-1": "apne1-az1 apne1-az4",
        "ap-northeast-2": "apne2-az2 apne2-az4",
        "ap-south-1": "aps1-az1 aps1-az2 aps1-az3",
        "ap-southeast-2": "apse2-az1 apse2-az2",
        "ca-central-1": "cac1-az1 cac1-az2",
        "eu-central-1": "euc1-az1 euc1-az2 euc1-az3",
        "eu-north-1": "eun1-az3",
        "eu-west-1": "euw1-az2",
        "eu-west-2": "euw2-az2 euw2-az3",
        "sa-east-1": "sae1-az1 sae1-az3",
        "us-east-1": "use1-az1 use1-az2 use1-az4 use1-az6",
        "us-east-2": "use2-az1 use2-az2 use2-az3",
        "us-west-2": "usw2-az1 usw2-az2 usw2-az3 usw2-az4",
    },
    "p4de.24xlarge": {
        "ap-northeast-1": "apne1-az1 apne1-az4",
        "ap-southeast-1": "apse1-az2 apse1-az3",
        "eu-central-1": "euc1-az1 euc1-az2",
        "il-central-1": "ilc1-az1 ilc1-az2 ilc1-az3",
        "us-east-1": "use1-az4 use1-az6",
        "us-west-2": "usw2-az1 usw2-az2 usw2-az3",
    },
    "p5.48xlarge": {
        "ap-northeast-1": "apne1-az1 apne1-az4",
        "ap-northeast-2": "apne2-az1",
        "ap-south-1": "aps1-az1 aps1-az2 aps1-az3",
        "ap-southeast-2": "apse2-az1 apse2-az2 apse2-az3",
        "ap-southeast-3": "apse3-az1",
        "ca-central-1": "cac1-az4",
        "eu-north-1": "eun1-az1 eun1-az2 eun1-az3",
        "eu-west-2": "euw2-az1 euw2-az2 euw2-az3",
        "sa-east-1": "sae1-az3",
        "us-east-1": "use1-az1 use1-az2 use1-az3 use1-az4 use1-az5 use1-az6",
        "us-east-2": "use2-az1 use2-az2 use2-az3",
        "us-west-1": "usw1-az1 usw1-az3",
        "us-west-2": "usw2-az1 usw2-az2 usw2-az3 usw2-az4",
    },
    "p5e.48xlarge": {
        "ap-southeast-2": "apse2-az3",
        "ap-southeast-3": "apse3-az1 apse3-az3",
        "eu-north-1": "eun1-az1",
        "eu-west-2": "euw2-az2",
        "sa-east-1": "sae1-az2 sae1-az3",
        "us-east-2": "use2-az1 use2-az2 use2-az3",
        "us-west-2": "usw2-az3",
    },
    "p5en.48xlarge": {
        "ap-northeast-1": "apne1-az4",
        "ap-northeast-2": "apne2-az1",
        "ap-south-1": "aps1-az1 aps1-az3",
        "ap-southeast-3": "apse3-az2 apse3-az3",
        "eu-north-1": "eun1-az1 eun1-az3",
        "eu-south-2": "eus2-az1 eus2-az2",
        "me-central-1": "mec1-az1 mec1-az3",
        "us-east-1": "use1-az2 use1-az6",
        "us-east-2": "use2-az1 use2-az2 use2-az3",
        "us-west-1": "usw1-az3",
        "us-west-2": "usw2-az2 usw2-az3 usw2-az4",
    },
    "p6-b200.48xlarge": {
        "ap-south-1": "aps1-az2",
        "ap-south-2": "aps2-az2",
        "eu-north-1": "eun1-az2",
        "eu-west-3": "euw3-az1",
        "us-east-1": "use1-az6",
        "us-east-2": "use2-az1 use2-az2 use2-az3",
        "us-west-2": "usw2-az1 usw2-az2 usw2-az4",
    },
    "p6-b300.48xlarge": {
        "ap-northeast-2": "apne2-az3",
        "ap-south-2": "aps2-az1 aps2-az3",
        "ap-southeast-3": "apse3-az1 apse3-az2 apse3-az3",
        "sa-east-1": "sae1-az2 sae1-az3",
        "us-east-1": "use1-az2 use1-az6",
        "us-west-2": "usw2-az1 usw2-az2",
    },
}
"""instance type → region → the zone ids that offer it."""


def zone_names(region: str) -> tuple[str, ...]:
    """The zone names of a region, in order; empty for a region this table does not know."""
    return tuple(f"{region}{letter}" for letter in ZONE_LETTERS.get(region, ""))


def regions_with(instance_type: str) -> tuple[str, ...]:
    """Regions that sell the type; empty for a type this table does not know."""
    return tuple(OFFERED_IN.get(instance_type, {}))


def zone_ids_with(instance_type: str, region: str) -> tuple[str, ...]:
    """Zone ids of the region that offer the type."""
    return tuple(OFFERED_IN.get(instance_type, {}).get(region, "").split())
