"""Data that the destroy of a stack keeps (`data: keep`): what it is, what it costs, and the commands that delete it.

Which command deletes what: trainyard/catalog/aws_types. Before a destroy the stack file is the better way: BEFORE.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from trainyard.catalog.aws.prices import lustre_per_month, price
from trainyard.catalog.aws_types.table import AWS_TYPES
from trainyard.replacing.urn import stack_of, title_of, type_of
from trainyard.stores.kinds import KINDS
from trainyard.stores.lustre_updates import FILE_SYSTEM, LINK

Object = dict[str, Any]
BEFORE = (
    "to have the destroy delete it, too, first write `data: delete` at it in Pulumi.{stack}.yaml and run `{up}`;"
    " after the destroy that would create the whole environment anew"
)
HISTORY = "trainyard:jobs:History"
"""Type of the component of `environment.history`."""
STORES = {kind.holds_data for kind in KINDS.values()}
PRICES = "https://aws.amazon.com/fsx/lustre/pricing"
DELETES = "deletes it with what is not exported yet"
TAKES_LINKS = "keeps it and takes its links away, so that S3 never gets what is not exported yet"
HEADING = "to delete what was kept, too"
GONE = "once AWS has deleted it: the state forgets it"
REST = "delete the network that was kept for it"


def kept(resources: Iterable[Object]) -> list[Object]:
    """Resources of a state that a destroy with --exclude-protected keeps, in the order in which they can be deleted:
    what depends on another one stands behind it in the state."""
    return [each for each in reversed([*resources]) if each.get("protect") and each.get("id")]


def lost(resources: Iterable[Object]) -> list[str]:
    """A line for each store that a destroy deletes with its files."""
    return [
        f"deletes store {title_of(each['urn'])} {each['id']} with all files in it (data: delete)"
        for each in resources
        if each["type"] in STORES and _is_deleted(each) and not each.get("protect")
    ]


def exporting(resources: Iterable[Object]) -> list[str]:
    """A line for each file system that exports to S3 and that a destroy deletes, or keeps without its links: what FSx
    has not exported yet goes with it, or never reaches S3 (FSx for Lustre user guide, delete-file-system; FSx API,
    DeleteDataRepositoryAssociation)."""
    every = [*resources]
    links = [
        (each, (each.get("outputs") or {}).get("fileSystemId"))
        for each in every
        if each["type"] == LINK and _exports(each.get("outputs") or {})
    ]
    ends = {id_ for link, id_ in links if not link.get("protect")}
    return [
        f"{title_of(each['urn'])} {each['id']} exports to S3 in the background, and the destroy"
        f" {TAKES_LINKS if each.get('protect') else DELETES}: first wait until its metric"
        " AgeOfOldestQueuedMessage in CloudWatch (AWS/FSx) is 0"
        for each in every
        if each["type"] == FILE_SYSTEM and each.get("id") in ends
    ]


def _exports(link: Object) -> bool:
    policy = (link.get("s3") or {}).get("autoExportPolicy") or {}
    return bool(policy.get("events"))


def forgotten(resources: Iterable[Object], stack: str) -> list[str]:
    """A line about the history of runs, which is in the cluster; nothing without one."""
    if not any(each["type"] == HISTORY for each in resources):
        return []
    return [
        f"the history of runs goes with the cluster: `trainyard runs {stack} --json > runs.json` writes runs and"
        " dollars out before"
    ]


def nothing_else(resources: Sequence[Object]) -> bool:
    """True where a destroy with --exclude-protected would delete nothing: each resource is kept, or kept for one."""
    by_urn = {each["urn"]: each for each in resources}
    left, needed = [each["urn"] for each in kept(resources)], set[str]()
    while left:
        if (urn := left.pop()) in by_urn and urn not in needed:
            needed.add(urn)
            left += [*(by_urn[urn].get("dependencies") or ()), by_urn[urn].get("parent", "")]
    return needed >= {each["urn"] for each in resources if _is_deleted(each)}


def _is_deleted(resource: Object) -> bool:
    """True of what a destroy deletes in AWS or in a cluster."""
    own = resource.get("custom") and not resource.get("external")
    return bool(own) and not resource["type"].startswith("pulumi:")


def line(resource: Object) -> str:
    """Kind, name, id and price."""
    return f"{title_of(resource['urn'])} {resource['id']}, {_price(resource)}"


def before(resources: Iterable[Object], stack: str, *, up: str) -> list[str]:
    """Lines about what a destroy of a stack would keep, and how it would not; none where it would keep nothing. `up`:
    the command that updates the stack."""
    found = [*filter(deletions, kept(resources))]
    lines = [f"the destroy keeps {line(each)}, because of data: keep" for each in found]
    return [*lines, *([BEFORE.format(stack=stack, up=up)] if found else [])]


def ways(found: Sequence[Object], *, destroy: str) -> list[tuple[str, str]]:
    """Commands, with their purpose, that delete what was kept with its data, and then what was kept for it. `destroy`:
    the command that destroys the stack."""
    commands = [*_ways(found)]
    return [*commands, (destroy, REST)] if commands else []


def listed(
    resources: Iterable[Object], *, destroy: str, shell: Sequence[tuple[str, str]] = ()
) -> list[str]:
    """Lines about what the destroy of a stack has kept, and how to delete it; none where it has kept nothing.
    `destroy`: as in `ways`. `shell`: what a shell needs before."""
    found = kept(resources)
    lines, commands = [f"kept: {line(each)}" for each in found], ways(found, destroy=destroy)
    typed = [f"  {command}  # {purpose}" for command, purpose in (*shell, *commands)]
    return [*lines, *([f"{HEADING}:", *typed] if commands else [])]


def _ways(found: Iterable[Object]) -> Iterator[tuple[str, str]]:
    for each in filter(deletions, found):
        urn = each["urn"]
        for command in deletions(each):
            yield command, f"delete {title_of(urn)} and its data"
        yield f"pulumi state delete '{urn}' --force --yes --stack {stack_of(urn)}", GONE


def deletions(resource: Object) -> list[str]:
    """Commands that delete it and its data in AWS; none of what is protected for another reason, such as a cluster."""
    row = AWS_TYPES.get(type_of(resource["urn"]))
    names = {"{id}": resource["id"], "{region}": _region(resource)}
    return [_filled(each, names) for each in row.deletions] if row else []


def _filled(command: str, names: dict[str, str]) -> str:
    for name, value in names.items():
        command = command.replace(name, value)
    return command


def _region(resource: Object) -> str:
    """The resource's own region. A state of another tool may lack it."""
    return (resource.get("outputs") or {}).get("region") or "$AWS_REGION"


def _price(resource: Object) -> str:
    """Cost of keeping the object, where that is known."""
    if not deletions(resource):
        return "which is protected from deletion"
    inputs, region = resource.get("inputs") or {}, _region(resource)
    if mibps := inputs.get("provisionedThroughputInMibps"):
        return _provisioned(resource["id"], int(mibps), region)
    if "storageCapacity" not in inputs:
        return "billed by the data in it"
    monthly = lustre_per_month(
        region,
        inputs.get("deploymentType", ""),
        inputs.get("perUnitStorageThroughput"),
        inputs["storageCapacity"],
    )
    if monthly is not None:
        return f"about ${monthly:,.0f}/month"
    return (
        f"{inputs['storageCapacity']:,.0f} GiB, whose price in {region} is not known here: {PRICES}"
    )


def _provisioned(id_: str, mibps: int, region: str) -> str:
    """Cost of an EFS file system with provisioned throughput: an upper bound, because the throughput that its data
    gives costs nothing (EFS user guide, performance)."""
    found = price("efs", "provisioned", region)
    cost = f"up to ${found.usd * mibps:,.0f}/month" if found else "money"
    return (
        f"billed by the data in it and {cost} for {mibps:,} MiB/s, used or not (`aws efs update-file-system"
        f" --file-system-id {id_} --throughput-mode elastic --region {region}` ends that)"
    )
