"""Launch templates of EC2."""

from __future__ import annotations

from typing import Any

from moto.core.types import Base64EncodedString

from rehearsal.aws import backends
from rehearsal.aws.operations import Call, Fields, Refused, answers, follows


def data(region: str, specification: Fields) -> Fields:
    """The launch template data that a specification names, without values that are empty. moto's object for
    UserData is true where the text is empty."""
    version = specification.get("Version") or "$Default"
    found = _find(region, specification).get_version(version).data
    return {name: value for name, value in found.items() if value and not _no_text(value)}


def _no_text(value: Any) -> bool:
    return isinstance(value, Base64EncodedString) and not value.as_bytes()


def id_of(region: str, specification: Fields) -> str:
    """The id of the launch template that a specification names."""
    return str(_find(region, specification).id)


def _find(region: str, specification: Fields) -> Any:
    id_, name = specification.get("LaunchTemplateId"), specification.get("LaunchTemplateName")
    for template in backends.ec2(region).launch_templates.values():
        if id_ == template.id or name == template.name:
            return template
    raise Refused(
        (
            "InvalidLaunchTemplateId.NotFound"
            if id_
            else "InvalidLaunchTemplateName.NotFoundException"
        ),
        f"The specified launch template, {id_ or name}, does not exist.",
    )


@follows("ec2", "CreateLaunchTemplate")
def _own_tags_are_no_data(call: Call, answer: Fields) -> None:
    """moto puts the tags of the template itself among those of instances and volumes."""
    data = _find(call.region, answer["LaunchTemplate"]).get_version("$Default").data
    tags = data.get("TagSpecifications") or ()
    data["TagSpecifications"] = [one for one in tags if one["ResourceType"] != "launch-template"]


@answers("ec2", "DescribeLaunchTemplates")
def _describe(call: Call) -> Fields:
    """moto ends after 15 without a token: Karpenter would leak the rest."""
    filters = {one["Name"]: one["Values"] for one in call["Filters"] or ()}
    found = call.ec2.describe_launch_templates(
        call["LaunchTemplateNames"], call["LaunchTemplateIds"], filters
    )
    return {
        "LaunchTemplates": [
            {
                "LaunchTemplateId": one.id,
                "LaunchTemplateName": one.name,
                "LatestVersionNumber": one.latest_version_number,
                "DefaultVersionNumber": one.default_version_number,
                "Tags": one.get_tags(),
                "CreateTime": one.create_time,
            }
            for one in found
        ]
    }
