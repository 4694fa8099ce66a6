"""Errors about regions, zones, ranges and stack names that an environment cannot have."""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping

from trainyard.catalog.aws.zones import (
    OFFERS,
    SNAPSHOT,
    WITHOUT_EKS,
    ZONE_LETTERS,
    every_zone_name,
    zone_names,
)
from trainyard.derive.network import network_zones
from trainyard.problems import REMOVE, At, InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.network import ExistingNetworkConfig
from trainyard.settings.reading.reader import NO_REGION
from trainyard.settings.reading.yaml_file import as_yaml

RFC_1918 = tuple(
    ipaddress.IPv4Network(c) for c in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
)


def stack_errors(stack: str) -> Iterator[InputError]:
    """A name that no environment can have (EC2 API, CreateSecurityGroup, GroupName)."""
    if stack == "sg" or stack.startswith("sg-"):
        yield At("stack").must(
            "not begin with sg-: the names of security groups begin with the stack's name, and"
            " EC2 refuses those that begin with sg-",
            got=stack,
            fix=f"rename the stack, and its file to Pulumi.env-{stack}.yaml",
        )


def zone_ids(region: str) -> list[str]:
    """The zone ids of a region, as far as the table of offers knows them."""
    return sorted({id_ for sold in OFFERS.values() for id_ in sold.get(region, "").split()})


def _without_eks(region: str) -> list[str]:
    """The zone ids of a region in which EKS places no control plane: use1-az3 of us-east-1."""
    ids = zone_ids(region)
    return [each for each in WITHOUT_EKS if ids and each.split("-")[0] == ids[0].split("-")[0]]


def network_warnings(region: str, wanted: EnvironmentConfig) -> Iterator[InputWarning]:
    """Zones by default, of which one may be a zone where CreateCluster fails. Names of zones mean other zones in
    other accounts, so that only the account knows: trainyard/live/zone_choice.py."""
    refused = _without_eks(region)
    if not refused or isinstance(wanted.network, ExistingNetworkConfig) or wanted.network.zones:
        return
    zones = network_zones(region, wanted)
    # An id that is written is that of no such zone: network_errors.
    unknown = [zone for zone in sorted(zones) if zone != wanted.zone or wanted.zone_id is None]
    yield At("environment.network.zones").warning(
        f"one of {', '.join(unknown)} may be {' or '.join(refused)} in your account, where EKS places no control"
        " plane, and the first `pulumi up` would fail: `trainyard check --live` says whether, and which zones to"
        " write"
    )


def network_errors(region: str, wanted: EnvironmentConfig) -> Iterator[InputError]:
    """Networks that no cluster can have, as far as the stack file tells. Only the account knows which
    id a zone has, and how an existing VPC is set up: trainyard/live/preflight.py."""
    if wanted.zone_id in _without_eks(region):
        usable = ", ".join(id_ for id_ in zone_ids(region) if id_ not in WITHOUT_EKS)
        yield At("environment.zone_id").must(
            "be the id of a zone in which EKS places control planes",
            got=wanted.zone_id,
            fix=f"write another zone with its id, which is one of {usable}",
        )
    if isinstance(wanted.network, ExistingNetworkConfig):
        yield from _existing(region, wanted.zone, wanted.network.private_subnets)
    else:
        yield from range_errors(wanted.network.cidr)
        yield from _listed(region, wanted, wanted.network.zones)


def _existing(region: str, zone: str, subnets: Mapping[str, str]) -> Iterator[InputError]:
    """Every error of `network.private_subnets`."""
    path, known = "environment.network.private_subnets", every_zone_name(region)
    yield from _unknown_zones(path, region, subnets)
    if zone not in subnets or len(subnets) < 2:
        lacking = "a second zone: EKS needs two" if zone in subnets else f"environment.zone, {zone}"
        other = next((each for each in known if each != zone), "another zone")
        yield At(path).must(
            f"have a subnet in {lacking}",
            got=as_yaml(dict(subnets)),
            fix=f"add {other if zone in subnets else zone} with the id of a subnet in it",
        )
    yield from _of_two_zones(
        path, {each: id_ for each, id_ in subnets.items() if not known or each in known}
    )


def _unknown_zones(path: str, region: str, subnets: Mapping[str, str]) -> Iterator[InputError]:
    known = every_zone_name(region)
    for unknown in [each for each in subnets if known and each not in known]:
        again = [zone for zone in known if subnets.get(zone) == subnets[unknown]]
        yield At(f"{path}.{unknown}").must(
            f"have the name of a zone of {region}",
            got=unknown,
            fix=f"delete it: {subnets[unknown]} stands under {again[0]}"
            if again
            else f"write the zone of {subnets[unknown]}: one of {', '.join(known)}",
            write=REMOVE if again else None,
        )


def _of_two_zones(path: str, subnets: Mapping[str, str]) -> Iterator[InputError]:
    for twice in sorted({id_ for id_ in subnets.values() if [*subnets.values()].count(id_) > 1}):
        yield At(path).must(
            "have a subnet of its own for each zone: a subnet is in one zone",
            got=f"{twice} for {', '.join(each for each in subnets if subnets[each] == twice)}",
            fix="delete one of the zones, or write each zone's own subnet"
            if len(subnets) > 2
            else "write each zone's own subnet: EKS needs two zones",
        )


def _listed(
    region: str, wanted: EnvironmentConfig, listed: tuple[str, ...]
) -> Iterator[InputError]:
    """Every error of `network.zones`; derive.network.zone_cidrs has room for every zone of the table."""
    known = every_zone_name(region)
    if not listed or not known:
        return
    sound = [zone for zone in dict.fromkeys(listed) if zone in known]
    more = [zone for zone in zone_names(region) if zone not in (*sound, wanted.zone)]
    enough = [*sound, *more[: max(0, 2 - len({*sound, wanted.zone}))]]
    must = None
    if len(sound) < len(listed):
        must = f"list zones of {region}, each of them once"
    elif len({*listed, wanted.zone}) < 2:
        must = "list a second zone beside environment.zone: EKS needs two"
    if must:
        yield At("environment.network.zones").must(
            must, got=as_yaml(listed), fix=f"write {as_yaml(enough)}", write=enough
        )


def zone_errors(region: str, wanted: EnvironmentConfig) -> Iterator[InputError]:
    zone, known = wanted.zone, every_zone_name(region)
    first = known[0] if known else ""
    if region == NO_REGION:
        return
    if not known:
        yield _unknown_region(region)
    elif zone == region or zone in ZONE_LETTERS:
        other = ""
        if zone != region:
            inside = f"{zone}{ZONE_LETTERS[zone][0]}"
            other = (
                f"; or change aws:region to {zone}, and write a zone of it here, such as {inside}"
            )
        yield At("environment.zone").must(
            f"be a zone of {region}, not a region" if other else "be a zone, not a region",
            got=zone,
            fix=f"write one of {', '.join(known)}{other}",
            write=first,
        )
    elif not zone.startswith(region):
        yield At("environment.zone").must(
            f"be a zone of aws:region ({region})",
            got=zone,
            fix=f"write one of {', '.join(known)}, or change aws:region",
            write=first,
        )
    elif zone not in known:
        yield At("environment.zone").must(
            f"be a zone that {region} has",
            got=zone,
            fix=f"write one of {', '.join(known)}",
            write=first,
        )
    yield from _zone_id(region, wanted.zone_id)


def _unknown_region(region: str) -> InputError:
    """The network takes its other zones from the table; EKS refuses a cluster with one."""
    of_zone = region[:-1] if region[:-1] in ZONE_LETTERS else None
    near = difflib.get_close_matches(region.lower(), ZONE_LETTERS, n=1, cutoff=0.8)
    meant = of_zone or (near[0] if near else None)
    return At("aws:region").must(
        f"be a region of the zone table (as of {SNAPSHOT})",
        got=region,
        fix=(
            f"write {meant}"
            if meant
            else f"write one of {', '.join(ZONE_LETTERS)}, or add a row to trainyard/catalog/aws/zones.py"
        ),
        write=meant,
    )


def _zone_id(region: str, zone_id: str | None) -> Iterator[InputError]:
    ids = zone_ids(region)
    if ids and zone_id and zone_id not in (*ids, *_without_eks(region)):
        yield At("environment.zone_id").must(
            f"be a zone id of {region} (as of {SNAPSHOT})",
            got=zone_id,
            fix=f"delete it, or write what trainyard check --live prints: one of {', '.join(ids)}",
            write=REMOVE,
        )


def range_errors(cidr: str) -> Iterator[InputError]:
    path, usual = "environment.network.cidr", "10.0.0.0/16"
    if wrong := _no_range(cidr):
        network = without_host_bits(cidr)
        nearest = _of_a_vpc(ipaddress.IPv4Network(network)) if network else usual
        yield At(path).must(f"be an IPv4 range ({wrong})", got=cidr, write=nearest)
        return
    vpc = ipaddress.IPv4Network(cidr)
    private = within(cidr, RFC_1918)
    if not 16 <= vpc.prefixlen <= 20:
        meant = _of_a_vpc(vpc) if private else usual
        yield At(path).must(
            "be /16 to /20 (a VPC has at most a /16; GPU nodes need room)", got=cidr, write=meant
        )
    if not private:
        yield At(path).must("be private (RFC 1918)", got=cidr, write=usual)


def _of_a_vpc(network: ipaddress.IPv4Network) -> str:
    """The range of a size that a VPC here has, around or at the beginning of a range. One address alone is
    the beginning of the widest."""
    alone = network.prefixlen == network.max_prefixlen
    bits = 16 if alone else min(max(network.prefixlen, 16), 20)
    return str(ipaddress.IPv4Network((network.network_address, bits), strict=False))


def without_host_bits(cidr: str) -> str | None:
    try:
        return str(ipaddress.IPv4Network(cidr, strict=False))
    except ValueError:
        return None


RANGE = re.compile(r"\d+(\.\d+){3}/\d{1,2}")
"""The only form that AWS takes. Python also takes an address alone, and a mask behind the /."""


def is_range(text: str) -> bool:
    return not _no_range(text)


def _no_range(text: str) -> str:
    """Reason why a text is no range of AWS; empty where it is one."""
    try:
        ipaddress.IPv4Network(text)
    except ValueError as error:
        return str(error)
    return "" if RANGE.fullmatch(text) else "behind the address belongs /16, or another number"


def within(cidr: str, ranges: Iterable[ipaddress.IPv4Network]) -> bool:
    """True where a range lies in one of the ranges; False for a text that is no range."""
    return is_range(cidr) and any(map(ipaddress.IPv4Network(cidr).subnet_of, ranges))
