"""Parameters of SSM: the resource type, and the look-up of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from rehearsal.providers.aws.account import Account, Clients
from rehearsal.providers.aws.resource_type import Kind, Tagging
from rehearsal.providers.problems import Refused
from rehearsal.providers.wire import Properties, words

GET = "aws:ssm/getParameter:getParameter"


def get(clients: Clients, region: str, arguments: Properties) -> Properties:
    """The value of a parameter, as the genuine provider's data source gives it."""
    name = arguments["name"]
    try:
        client = clients.get("ssm", arguments.get("region") or region)
        found = client.get_parameter(Name=name, WithDecryption=True)["Parameter"]
    except ClientError as fault:
        missing = fault.response["Error"]["Code"] == "ParameterNotFound"
        why = "couldn't find resource" if missing else str(fault)
        raise Refused(f"reading SSM Parameter ({name}): {why}") from None
    return {
        **arguments,
        "id": name,
        "arn": found["ARN"],
        "type": found["Type"],
        "value": found["Value"],
        "insecureValue": found["Value"],
        "version": found["Version"],
    }


@dataclass(frozen=True, kw_only=True)
class Parameter(Kind):
    """Tags and updates of a parameter take arguments that those of other services do not."""

    def update(
        self, aws: Account, operation: str, which: Properties, given: Properties, new: Properties
    ) -> None:
        given = {**which, "Value": new["insecureValue"], **given}
        aws.call("ssm", operation, **given, Overwrite=True)

    def tags_of(self, aws: Account, state: Properties, found: dict[str, Any]) -> dict[str, str]:
        told = aws.call("ssm", "list_tags_for_resource", **_named(state["name"]))
        return {tag["Key"]: tag["Value"] for tag in told["TagList"]}

    def retag(
        self, aws: Account, id_: str, state: Properties, put: dict[str, str], drop: list[str]
    ) -> None:
        if put:
            tags = [{"Key": key, "Value": value} for key, value in put.items()]
            aws.call("ssm", "add_tags_to_resource", **_named(id_), Tags=tags)
        if drop:
            aws.call("ssm", "remove_tags_from_resource", **_named(id_), TagKeys=drop)


def _named(name: str) -> Properties:
    return {"ResourceType": "Parameter", "ResourceId": name}


KINDS = (
    Parameter(
        token="aws:ssm/parameter:Parameter",
        service="ssm",
        create="put_parameter",
        read="get_parameter",
        delete="delete_parameter",
        found="Parameter",
        id="{name}",
        import_id="{name}",
        asks={"Name": "name"},
        fixed=words("type"),
        unread=words("tier"),
        updates={"insecureValue": "put_parameter", "tier": "put_parameter"},
        names={"insecureValue": "Value"},
        outputs={"arn": "ARN", "version": "Version"},
        tagging=Tagging(target="ResourceId"),
        minutes=3,
    ),
)
