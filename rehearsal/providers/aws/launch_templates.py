"""EC2's launch templates, whose every change is a new version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rehearsal.providers.aws.account import Account
from rehearsal.providers.aws.network import ec2_resource
from rehearsal.providers.aws.resource_type import Kind, lower, renamed, upper
from rehearsal.providers.wire import Properties, words

DATA = words("blockDeviceMappings metadataOptions tagSpecifications")
"""Inputs that are in a version."""
TEXT_FLAGS = ("Encrypted", "DeleteOnTermination")
"""Fields of a disk that AWS takes as flags and the plugin's program as text."""


@dataclass(frozen=True, kw_only=True)
class LaunchTemplate(Kind):
    def arguments(self, new: Properties, only: Any = None) -> dict[str, Any]:
        """The data as a whole: a version has nothing of the one before it."""
        if only is not None and not DATA & set(only):
            return {}
        name = {} if only is not None else {"LaunchTemplateName": new["name"]}
        return {**name, "LaunchTemplateData": _outward(new)}

    def change(
        self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties
    ) -> None:
        if DATA & changed:
            made = aws.call(
                "ec2",
                "create_launch_template_version",
                LaunchTemplateId=id_,
                LaunchTemplateData=_outward(new),
            )["LaunchTemplateVersion"]
            if new.get("updateDefaultVersion"):
                aws.call(
                    "ec2",
                    "modify_launch_template",
                    LaunchTemplateId=id_,
                    DefaultVersion=str(made["VersionNumber"]),
                )

    def details(self, aws: Account, found: dict[str, Any]) -> Properties:
        answer = aws.call(
            "ec2",
            "describe_launch_template_versions",
            LaunchTemplateId=found["LaunchTemplateId"],
            Versions=["$Latest"],
        )
        newest = answer["LaunchTemplateVersions"][0]
        return {**_inward(newest["LaunchTemplateData"]), "latestVersion": newest["VersionNumber"]}


def _outward(new: Properties) -> dict[str, Any]:
    data = {upper(key): renamed(new[key], upper) for key in sorted(DATA) if new.get(key)}
    for disk in data.get("BlockDeviceMappings", ()):
        disk["Ebs"] |= {key: disk["Ebs"][key] == "true" for key in TEXT_FLAGS if key in disk["Ebs"]}
    for number, one in enumerate(data.get("TagSpecifications", ())):
        tags = new["tagSpecifications"][number].get("tags") or {}
        one["Tags"] = [{"Key": key, "Value": value} for key, value in sorted(tags.items())]
    return data


def _inward(data: dict[str, Any]) -> Properties:
    told: Properties = {lower(key): renamed(value, lower) for key, value in data.items()}
    for disk in told.get("blockDeviceMappings", ()):
        flags = {lower(key) for key in TEXT_FLAGS} & disk["ebs"].keys()
        disk["ebs"] |= {key: str(disk["ebs"][key]).lower() for key in flags}
    for one in told.get("tagSpecifications", ()):
        one["tags"] = {tag["key"]: tag["value"] for tag in one["tags"]}
    return {key: value for key, value in told.items() if key in DATA}


KINDS = (
    LaunchTemplate(
        **ec2_resource(
            "LaunchTemplate",
            "launch-template",
            updates=dict.fromkeys(DATA, "create_launch_template_version"),
            local=words("updateDefaultVersion"),
            names={"name": "LaunchTemplateName"},
            outputs={
                "latestVersion": "LatestVersionNumber",
                "defaultVersion": "DefaultVersionNumber",
            },
            minutes=5,
        )
    ),
)
