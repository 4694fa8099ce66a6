"""Parameters of Systems Manager: those that somebody has put, and the public ones of EKS's AMIs."""

from __future__ import annotations

from dataclasses import dataclass, field

from rehearsal.aws import backends, images
from rehearsal.aws.operations import Call, Fields, NotBuilt, Refused, answers, refuse

BYTES = {"Standard": 4096, "Advanced": 8192}
"""Tier → size of a value (Systems Manager user guide, parameter-store-advanced-parameters)."""


@dataclass(kw_only=True)
class Parameter:
    """One parameter, of type String."""

    value: str
    tier: str
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
    version = own.version if own else 1
    return {"Parameter": _view(call, name, version) | {"Value": value}}


def _view(call: Call, name: str, version: int) -> Fields:
    return {
        "Name": name,
        "Type": "String",
        "Version": version,
        "DataType": "text",
        "ARN": f"arn:aws:ssm:{call.region}:{backends.ACCOUNT}:parameter{name}",
    }


@answers("ssm", "DescribeParameters")
def _describe(call: Call) -> Fields:
    match call["ParameterFilters"]:
        case [{"Key": "Name", "Option": "Equals", "Values": names}]:
            found = {name: PARAMETERS.get((call.region, name)) for name in names}
        case _:
            raise NotBuilt("DescribeParameters with filters other than equal names")
    return {
        "Parameters": [
            _view(call, name, one.version) | {"Tier": one.tier}
            for name, one in found.items()
            if one
        ]
    }


@answers("ssm", "PutParameter")
def _put(call: Call) -> Fields:
    key = (call.region, call["Name"])
    if call["Type"] not in (None, "String"):
        raise NotBuilt(f"parameters of type {call['Type']}")
    known = PARAMETERS.get(key)
    tier = call["Tier"] or (known.tier if known else "Standard")
    if tier not in BYTES:
        raise NotBuilt(f"parameters of tier {tier}")
    refuse(
        len(call["Value"].encode()) > BYTES[tier],
        "ValidationException",
        f"{tier} tier parameters support a maximum parameter value of {BYTES[tier]} characters.",
    )
    refuse(
        known and BYTES[tier] < BYTES[known.tier],
        "ValidationException",
        "This parameter uses the advanced-parameter tier. You can't downgrade a parameter from the"
        " advanced-parameter tier to the standard-parameter tier.",
    )
    refuse(
        known and not call["Overwrite"],
        "ParameterAlreadyExists",
        "The parameter already exists. To overwrite this value, set the overwrite option in the"
        " request to true.",
    )
    if known:
        known.value, known.version, known.tier = call["Value"], known.version + 1, tier
    else:
        tags = {tag["Key"]: tag["Value"] for tag in call["Tags"] or ()}
        PARAMETERS[key] = Parameter(value=call["Value"], tier=tier, tags=tags)
    return {"Version": PARAMETERS[key].version, "Tier": tier}


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
