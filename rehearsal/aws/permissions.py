"""Questions of a call to IAM: actions, the ARNs they are done to, and values of condition keys.

Source: the Service Authorization Reference, for the calls that policies of the product limit. A call
that takes no resource in a policy asks for *.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from rehearsal.aws import backends, capacity, launch_templates, principals, storage
from rehearsal.aws.iam_actions import IAM_ACTIONS
from rehearsal.aws.installed import SERVICES
from rehearsal.aws.operations import Call, Fields
from rehearsal.aws.policies import Ask

KINDS = {
    "eipalloc": "elastic-ip",
    "eni": "network-interface",
    "fl": "vpc-flow-log",
    "i": "instance",
    "igw": "internet-gateway",
    "lt": "launch-template",
    "nat": "natgateway",
    "pg": "placement-group",
    "rtb": "route-table",
    "sg": "security-group",
    "sgr": "security-group-rule",
    "subnet": "subnet",
    "vol": "volume",
    "vpc": "vpc",
    "vpce": "vpc-endpoint",
}
"""Prefix of an id of EC2 → the resource type in its ARN."""
LAUNCHES = ("ec2:RunInstances", "ec2:CreateFleet")
PASSES = {
    "ec2:CreateFlowLogs": ("DeliverLogsPermissionArn", "vpc-flow-logs.amazonaws.com"),
    "iam:AddRoleToInstanceProfile": ("RoleName", "ec2.amazonaws.com"),
    "eks:CreateCluster": ("roleArn", "eks.amazonaws.com"),
    "eks:CreateNodegroup": ("nodeRole", "eks.amazonaws.com"),
    "eks:CreatePodIdentityAssociation": ("roleArn", "pods.eks.amazonaws.com"),
}
"""Call of a service without a row of its own → its parameter with a role, and the service that gets it."""
TOPICS = ("TopicArn", "SubscriptionArn", "ResourceArn", "Name")
"""Parameters that name a topic; the ARN of a subscription begins with that of its topic."""
TAGGED_AT = {
    "elasticfilesystem:CreateAccessPoint": "access-point",
    "elasticfilesystem:CreateFileSystem": "file-system",
    "fsx:CreateDataRepositoryAssociation": "association",
    "fsx:CreateFileSystem": "file-system",
}
"""Call whose tags IAM asks about, too → the kind that gets them (guides, using-tags). FSx has no key CreateAction."""


def of(call: Call) -> Iterator[Ask]:
    """Every question that AWS asks before it carries out the call."""
    shared = {
        "aws:RequestedRegion": call.region,
        "aws:PrincipalArn": call.principal.entity,
        "aws:SecureTransport": "true",
    }
    find = _launch if call.name in LAUNCHES else _by_tags if call.service == "ec2" else _by_name
    for ask in (*find(call), *_tagged(call), *_passed(call), *_decrypting(call)):
        action = IAM_ACTIONS.get(ask.action, ask.action)
        yield replace(ask, action=action, context=shared | dict(ask.context))


def _by_tags(call: Call) -> Iterator[Ask]:
    """Objects of EC2 by their ids, with their tags; what a call creates, with the tags it gets."""
    given, tagged = _pairs(call["Tags"]), _tags(call["TagSpecifications"])
    ids = [] if call.action.startswith("Describe") else [*_ids(call)]
    for id_ in ids:
        context = _request(given) | _resource(call, id_)
        yield Ask(
            action=call.name,
            resource=_ec2(call, KINDS[id_.partition("-")[0]], id_),
            context=context,
        )
    if group := _placement_group(call):
        yield Ask(action=call.name, resource=group.arn, context=_resource(call, group.id))
    for kind, tags in tagged.items():
        yield Ask(action=call.name, resource=_ec2(call, kind), context=_request(tags))
        yield _tagging(call, kind, tags)
    if not ids and not tagged and not group:
        yield Ask(action=call.name)


def _ids(call: Call) -> Iterator[str]:
    """Every id that the call names at its top."""
    for name, value in call.params.items():
        if name.endswith(("Id", "Ids", "Resources")):
            ids = value if isinstance(value, list) else [value]
            yield from (one for one in ids if one and one.partition("-")[0] in KINDS)
    if name := call["LaunchTemplateName"]:
        yield from (
            one.id for one in call.ec2.launch_templates.values() if one.name == name
        )  # one that is created has no id yet


def _placement_group(call: Call) -> capacity.Group | None:
    """The one that a call deletes: the only objects of EC2 that are named, and not by their ids."""
    deletes = call.name == "ec2:DeletePlacementGroup"
    return capacity.groups(call.ec2).get(call["GroupName"]) if deletes else None


def _launch(call: Call) -> Iterator[Ask]:
    """RunInstances and CreateFleet: all that it launches from and creates. A fleet asks for RunInstances, too."""
    templates = _templates(call)
    datas = [launch_templates.data(call.region, one) for one in templates]
    used = {arn: dict[str, Any]() for data in (*datas, *_given(call)) for arn in _from(call, data)}
    for template in templates:
        id_ = launch_templates.id_of(call.region, template)
        used[_ec2(call, "launch-template", id_)] = _resource(call, id_)
    created = _created(call, datas)
    for action in LAUNCHES if call.name == "ec2:CreateFleet" else (call.name,):
        for resource, context in used.items():
            yield Ask(action=action, resource=resource, context=context)
        for kind, tags in created.items():
            if kind != "fleet" or action == "ec2:CreateFleet":
                yield Ask(action=action, resource=_ec2(call, kind), context=_request(tags))
    yield from (_tagging(call, kind, tags) for kind, tags in created.items() if tags)
    yield from _passed_to_instances([*datas, call.params])


def _templates(call: Call) -> list[Fields]:
    """Specifications of the launch templates that it names."""
    fleets = [one["LaunchTemplateSpecification"] for one in call["LaunchTemplateConfigs"] or ()]
    return [one for one in (*fleets, call["LaunchTemplate"]) if one]


def _given(call: Call) -> list[Fields]:
    """Launch template data that the call says itself: a fleet's for each place."""
    configs = call["LaunchTemplateConfigs"] or ()
    return [call.params, *(place for one in configs for place in one.get("Overrides") or ())]


def _created(call: Call, datas: list[Fields]) -> dict[str, dict[str, str]]:
    """Resource types that a launch creates, with the tags that templates and call give them."""
    kinds = ["instance", "volume", "network-interface"]
    if call.name == "ec2:CreateFleet":
        asked = call["TargetCapacitySpecification"].get("DefaultTargetCapacityType")
        kinds += ["fleet", *(["spot-instances-request"] if asked == "spot" else [])]
    created: dict[str, dict[str, str]] = {kind: {} for kind in kinds}
    for data in (*datas, call.params):
        for kind, tags in _tags(data.get("TagSpecifications")).items():
            created[kind] = created.get(kind, {}) | tags
    return created


def _passed_to_instances(datas: list[Fields]) -> Iterator[Ask]:
    """The roles of the instance profiles in launch template data."""
    names = {(data.get("IamInstanceProfile") or {}).get("Name") for data in datas}
    profiles = backends.iam().instance_profiles
    for found in [profiles[name] for name in names if name in profiles]:
        yield from (_passing(role.arn, "ec2.amazonaws.com") for role in found.roles)


def _from(call: Call, data: Fields) -> Iterator[str]:
    """ARNs of images, subnets, groups and reservations in launch template data."""
    nics = data.get("NetworkInterfaces") or []
    target = (data.get("CapacityReservationSpecification") or {}).get("CapacityReservationTarget")
    placement = data.get("Placement") or {}
    ids = {
        "security-group": [*(data.get("SecurityGroupIds") or ()), *_each(nics, "Groups")],
        "subnet": [data.get("SubnetId"), *(nic.get("SubnetId") for nic in nics)],
        "capacity-reservation": [(target or {}).get("CapacityReservationId")],
        "placement-group": [placement.get("GroupName") or placement.get("GroupId")],
    }
    if image := data.get("ImageId"):
        yield f"arn:aws:ec2:{call.region}::image/{image}"
    for kind, of_kind in ids.items():
        yield from (_ec2(call, kind, id_) for id_ in of_kind if id_)


def _each(parts: list[Fields], name: str) -> list[str]:
    return [value for part in parts for value in part.get(name) or ()]


def _tagging(call: Call, kind: str, tags: dict[str, str]) -> Ask:
    context = _request(tags) | {"ec2:CreateAction": call.action}
    return Ask(action="ec2:CreateTags", resource=_ec2(call, kind), context=context)


def _ec2(call: Call, kind: str, id_: str = "*") -> str:
    return f"arn:aws:ec2:{call.region}:{backends.ACCOUNT}:{kind}/{id_}"


def _resource(call: Call, id_: str) -> Fields:
    """The tags of an object of EC2, as condition keys."""
    return _of_resource(dict(call.ec2.tags.get(id_, {})))


def _of_resource(tags: dict[str, str]) -> Fields:
    return {
        f"{service}:ResourceTag/{key}": value
        for service in ("aws", "ec2")
        for key, value in tags.items()
    }


def _request(tags: dict[str, str]) -> Fields:
    """The tags that a call gives, as condition keys."""
    named = {f"aws:RequestTag/{key}": value for key, value in tags.items()}
    return named | ({"aws:TagKeys": list(tags)} if tags else {})


def _tags(specifications: Iterable[Fields] | None) -> dict[str, dict[str, str]]:
    return {one["ResourceType"]: _pairs(one.get("Tags")) for one in specifications or ()}


def _pairs(tags: object) -> dict[str, str]:
    """Tags in any of AWS's forms."""
    if isinstance(tags, dict):
        return tags
    return {
        one.get("Key", one.get("key")): one.get("Value", one.get("value")) or ""
        for one in (tags if isinstance(tags, list) else ())
    }


def _by_name(call: Call) -> Iterator[Ask]:
    """Objects whose ARN follows from the call's parameters."""
    registered = SERVICES.get(call.service)
    find = registered.arns if registered else _ARNS.get(call.service, lambda call: iter(()))
    context = _request(_pairs(call["Tags"] or call["tags"])) | _of_resource(_own_tags(call))
    if call["PolicyArn"]:
        context["iam:PolicyARN"] = call["PolicyArn"]
    if boundary := call["PermissionsBoundary"] or principals.boundary_of(call["RoleName"]):
        context["iam:PermissionsBoundary"] = boundary
    if call.name in ("s3:ListObjects", "s3:ListObjectsV2"):
        context["s3:prefix"] = call["Prefix"] or ""
    for arn in [*find(call)] or ["*"]:
        yield Ask(action=call.name, resource=arn, context=context)


def _own_tags(call: Call) -> dict[str, str]:
    """The tags of what a call names."""
    if call.service in SERVICES:
        return dict(SERVICES[call.service].tags(call))
    id_ = call["FileSystemId"] or call["ResourceId"] or call["ResourceARN"] or ""
    if call.service == "fsx":
        return _pairs(storage.FILE_SYSTEMS.get(id_.rpartition("/")[2], {}).get("Tags"))
    efs = backends.efs(call.region)
    if call.service != "efs" or id_ not in {*efs.file_systems_by_id, *efs.access_points}:
        return {}
    return _pairs(efs.list_tags_for_resource(id_))


def _tagged(call: Call) -> Iterator[Ask]:
    """EFS and FSx ask whether who creates something with tags may tag, too."""
    if call["Tags"] and (kind := TAGGED_AT.get(call.name)):
        creation = {} if call.service == "fsx" else {f"{call.prefix}:CreateAction": call.action}
        told = _request(_pairs(call["Tags"])) | creation
        yield Ask(
            action=f"{call.prefix}:TagResource", resource=_at(call, f"{kind}/*"), context=told
        )


def _of_iam(call: Call) -> Iterator[str]:
    """A role that is put into a profile is passed: the action itself is about the profile."""
    if call["InstanceProfileName"]:
        yield f"arn:aws:iam::{backends.ACCOUNT}:instance-profile/{call['InstanceProfileName']}"
    elif call["RoleName"]:
        found = {role.name: role.arn for role in backends.iam().get_roles()}
        yield found.get(call["RoleName"], _role(call["RoleName"]))
    elif call["PolicyArn"]:
        yield call["PolicyArn"]


def _role(name: str) -> str:
    return f"arn:aws:iam::{backends.ACCOUNT}:role/{name}"


def _of_eks(call: Call) -> Iterator[str]:
    """A cluster, or what belongs to one: EKS ends those ARNs with ids of its own."""
    cluster = call["clusterName"] or call["name"]
    kinds = {
        "nodegroupName": "nodegroup",
        "addonName": "addon",
        "principalArn": "access-entry",
        "associationId": "podidentityassociation",
    }
    inside = [(kind, call[name]) for name, kind in kinds.items() if call[name]]
    creates = call.action.startswith("Create")
    for kind, name in inside if not creates else ():
        yield _at(call, f"{kind}/{cluster}/{name.rpartition('/')[2]}/*")
    if cluster and (creates or not inside):
        yield _at(call, f"cluster/{cluster}")


def _of_ssm(call: Call) -> Iterator[str]:
    """AWS's own parameters are in no account."""
    tagged = call["ResourceId"] if call["ResourceType"] == "Parameter" else None
    name = call["Name"] or tagged or ""
    owner = "" if name.startswith("/aws/") else backends.ACCOUNT
    if name:
        yield f"arn:aws:ssm:{call.region}:{owner}:parameter/{name.lstrip('/')}"


def _of_s3(call: Call) -> Iterator[str]:
    key = f"/{call['Key']}" if call["Key"] else ""
    yield from _named(call, "", call["Bucket"] and f"arn:aws:s3:::{call['Bucket']}{key}")


def _of_secretsmanager(call: Call) -> Iterator[str]:
    """A secret by its ARN; what does not exist as it is written, so that nobody learns whether it does."""
    wanted = call["SecretId"] or call["Name"]
    if wanted:
        found = _secret(call)
        yield found.arn if found else wanted


def _secret(call: Call) -> Any:
    """moto's secret that a call names; None where there is none."""
    held = backends.secretsmanager(call.region).secrets
    return held.get(call["SecretId"]) if call["SecretId"] in held else None


def _decrypting(call: Call) -> Iterator[Ask]:
    """Secrets Manager asks KMS in the name of the caller, where the key is not AWS's own."""
    if call.name != "secretsmanager:GetSecretValue" or (found := _secret(call)) is None:
        return
    if (key := found.kms_key_id or "").startswith("arn:"):
        via = {"kms:ViaService": f"secretsmanager.{call.region}.amazonaws.com"}
        yield Ask(action="kms:Decrypt", resource=key, context=via)


def _of_efs(call: Call) -> Iterator[str]:
    kind = "access-point" if (call["ResourceId"] or "").startswith("fsap-") else "file-system"
    yield from _named(call, f"{kind}/{{}}", call["FileSystemId"] or call["ResourceId"])


def _of_fsx(call: Call) -> Iterator[str]:
    """A file system or a link, by ARN or id; one that is created has no id yet."""
    system, link = call["FileSystemId"], call["AssociationId"]
    new = call.action.startswith("Create") and "*"
    yield from _named(call, "", call["ResourceARN"])
    yield from _named(call, f"association/{system or '*'}/{{}}", link or (system and new))
    yield from _named(call, "file-system/{}", system or new)


def _named(call: Call, form: str, name: object) -> Iterator[str]:
    """The ARN of this name, which can be one; nothing where the call names nothing."""
    if name:
        yield str(name) if str(name).startswith("arn:") else _at(call, form.format(name))


def _at(call: Call, resource: str) -> str:
    return f"arn:aws:{call.prefix}:{call.region}:{backends.ACCOUNT}:{resource}"


_ARNS: dict[str, Callable[[Call], Iterator[str]]] = {
    "ecr": lambda call: _named(call, "repository/{}", call["repositoryName"]),
    "efs": _of_efs,
    "eks": _of_eks,
    "events": lambda call: _named(call, "rule/{}", call["Name"] or call["Rule"] or "*"),
    "fsx": _of_fsx,
    "iam": _of_iam,
    "kms": lambda call: _named(call, "key/{}", call["KeyId"]),
    "logs": lambda call: _named(
        call, "log-group:{}", (call["resourceArn"] or "").removesuffix(":*") or call["logGroupName"]
    ),  # tags name a group by its ARN, which ends otherwise for streams
    "s3": _of_s3,
    "secretsmanager": _of_secretsmanager,
    "sns": lambda call: _named(call, "{}", next(filter(None, map(call.__getitem__, TOPICS)), "*")),
    "sqs": lambda call: _named(
        call, "{}", call["QueueName"] or (call["QueueUrl"] or "").rpartition("/")[2]
    ),
    "ssm": _of_ssm,
    "sts": lambda call: _named(call, "", call["RoleArn"]),
}
"""Service without a row of its own → the ARNs that a call names."""


def _passed(call: Call) -> Iterator[Ask]:
    """The roles that the call hands to a service, those of an add-on among them."""
    name, to = PASSES.get(call.name, ("", ""))
    registered = SERVICES.get(call.service)
    pairs = [(call[name], to), *(registered.passes(call) if registered else ())]
    pods = call["podIdentityAssociations"] or ()
    pairs += [(one["roleArn"], "pods.eks.amazonaws.com") for one in pods]
    for role, service in (pair for pair in pairs if pair[0]):
        yield _passing(role if ":" in role else _role(role), service)


def _passing(role: str, service: str) -> Ask:
    return Ask(action="iam:PassRole", resource=role, context={"iam:PassedToService": service})
