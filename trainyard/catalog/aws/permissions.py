"""Calls of AWS that a resource type needs: those of CloudFormation's own handlers, and those of
Terraform's provider beside them (trainyard/catalog/aws_types).

permissions.json has the handlers' lists as AWS publishes them. They come with cfn-lint, which only
development installs: `python -m trainyard.catalog.aws.permissions >
trainyard/catalog/aws/permissions.json`; a test compares.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from trainyard import command_line
from trainyard.catalog.aws_types.table import AWS_TYPES

FILE = Path(__file__).with_name("permissions.json")
HANDLERS = ("create", "read", "update", "delete")
READS = re.compile(r"[a-z0-9-]+:(Describe|Get|List|View)")

UNUSED = re.compile(
    r"vpc-lattice:|sns:\w*DataProtectionPolicy|vpce:|ec2:AcceptAddressTransfer|ec2:ModifyVpcTenancy|ec2:\w*VpnGateways?"
    r"|ec2:\w*VpcEncryptionControls?|ec2:\w*PrivateNatGatewayAddress|ec2:\w*SubnetCidrBlock"
    r"|ec2:DescribeKeyPairs|elasticfilesystem:\w*Replication\w*|elasticfilesystem:DeleteTags"
    r"|\w+:\w*PermissionsBoundary|eks:ActivateCertificateAuthority|events:.*\bPassRole"
)
"""Calls of handlers for what no resource of this program has: lattices, VPN gateways, replication,
address transfers, private NAT, IPv6, key pairs, encryption controls, SNS's data protection and boundaries."""


def actions(types: Iterable[str], handlers: Iterable[str] = HANDLERS) -> set[str]:
    """The calls that resources of these types need. KeyError: a type that the table lacks."""
    return {action for kind in types for handler in handlers for action in _of(kind, handler)}


def reads(types: Iterable[str]) -> set[str]:
    """The calls that a preview and a refresh need."""
    return {action for action in actions(types, ["read"]) if READS.match(action)}


def _of(kind: str, handler: str) -> set[str]:
    row = AWS_TYPES[kind]
    published = [] if row.calls else HANDLED[row.cloudformation].get(handler, [])
    own = (row.calls or row.calls_beside).get(handler, "").split()
    return {action for action in [*published, *own] if not UNUSED.match(action)}


def published() -> dict[str, dict[str, list[str]]]:
    """CloudFormation's type → handler → calls, of the installed cfn-lint."""
    found = find_spec("cfnlint")
    if found is None or found.origin is None:
        raise SystemExit("this needs cfn-lint, of requirements/develop.txt")
    schemas = Path(found.origin).parent / "data" / "schemas"
    hashes = json.loads((schemas / "providers" / "us-east-1.json").read_text())
    return {
        kind: _handlers(json.loads((schemas / "resources" / f"{hashes[kind]}.json").read_text()))
        for kind in sorted({row.cloudformation for row in AWS_TYPES.values() if not row.calls})
    }


def _handlers(schema: Mapping[str, Mapping[str, Mapping[str, list[str]]]]) -> dict[str, list[str]]:
    handlers = schema.get("handlers", {})
    return {name: sorted(handlers[name]["permissions"]) for name in HANDLERS if name in handlers}


def as_text() -> str:
    """permissions.json as the installed cfn-lint has it."""
    source = f"resource schemas of us-east-1 in cfn-lint {version('cfn-lint')}"
    return json.dumps({"source": source, "handlers": published()}, indent=1) + "\n"


def main(arguments: list[str]) -> int:
    """Print permissions.json anew."""
    command_line.parser(
        "trainyard.catalog.aws.permissions",
        "Print trainyard/catalog/aws/permissions.json anew, from the resource schemas of the installed cfn-lint.",
    ).parse_args(arguments)
    print(as_text(), end="")
    return 0


# The shell empties the file before the command above writes it anew.
_WRITTEN = FILE.read_text() if FILE.exists() else ""
HANDLED: dict[str, dict[str, list[str]]] = json.loads(_WRITTEN)["handlers"] if _WRITTEN else {}
"""CloudFormation's type → handler → calls."""


if __name__ == "__main__":
    command_line.run(main)
