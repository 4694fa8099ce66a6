"""Parameters of Systems Manager: those that somebody has put, and the public ones of EKS's AMIs."""

from __future__ import annotations

from dataclasses import dataclass, field

from rehearsal.aws import backends, images
from rehearsal.aws.operations import Call, Fields, NotBuilt, Refused, answers, refuse

STANDARD_BYTES = 4096
"""Size of a value in the standard tier."""


@dataclass(kw_only=True)
class Parameter:
    """One parameter, of type String."""

    value: str
    version: int = 1
    tags: dict[str, str] = field(default_factory=dict)


PARAMETERS: dict[tuple[str, str], Parameter] = {}
"""(region, name) → parameter."""


@answers("ssm", "GetParameter")
def _get(call: Call) -> Fields:
    name = call["Name"]
    own = PARAMETERS.get((call.region, name))
    value = own.value if own else images.public_parameter(call.region, name)
    refuse(not value, "ParameterNotFound", f"Parameter {name} not found.")
    arn = f"arn:aws:ssm:{call.region}:{backends.ACCOUNT}:parameter{name}"
    return {
        "Parameter": {
            "Name": name,
            "Type": "String",
            "Value": value,
            "Version": own.version if own else 1,
            "DataType": "text",
            "ARN": arn,
        }
    }


@answers("ssm", "PutParameter")
def _put(call: Call) -> Fields:
    key = (call.region, call["Name"])
    if call["Type"] not in (None, "String"):
        raise NotBuilt(f"parameters of type {call['Type']}")
    refuse(
        len(call["Value"].encode()) > STANDARD_BYTES,
        "ValidationException",
        "Standard tier parameters support a maximum parameter value of 4096 characters.",
    )
    known = PARAMETERS.get(key)
    refuse(
        known and not call["Overwrite"],
        "ParameterAlreadyExists",
        "The parameter already exists. To overwrite this value, set the overwrite option in the"
        " request to true.",
    )
    if known:
        known.value, known.version = call["Value"], known.version + 1
    else:
        tags = {tag["Key"]: tag["Value"] for tag in call["Tags"] or ()}
        PARAMETERS[key] = Parameter(value=call["Value"], tags=tags)
    return {"Version": PARAMETERS[key].version, "Tier": "Standard"}


@answers("ssm", "DeleteParameter")
def _delete(call: Call) -> Fields:
    key = (call.region, call["Name"])
    refuse(key not in PARAMETERS, "ParameterNotFound", f"Parameter {key[1]} not found.")
    del PARAMETERS[key]
    return {}


@answers("ssm", "ListTagsForResource")
def _list_tags(call: Call) -> Fields:
    tags = _tagged(call).tags.items()
    return {"TagList": [{"Key": key, "Value": value} for key, value in tags]}


@answers("ssm", "AddTagsToResource", "RemoveTagsFromResource")
def _tag(call: Call) -> Fields:
    found = _tagged(call)
    found.tags |= {tag["Key"]: tag["Value"] for tag in call["Tags"] or ()}
    for key in call["TagKeys"] or ():
        found.tags.pop(key, None)
    return {}


def _tagged(call: Call) -> Parameter:
    found = PARAMETERS.get((call.region, call["ResourceId"]))
    if found is None or call["ResourceType"] != "Parameter":
        raise Refused("InvalidResourceId", f"{call['ResourceId']} is no parameter")
    return found
