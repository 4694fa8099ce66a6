"""IAM's types: roles, policies, attachments, instance profiles."""

from __future__ import annotations

from typing import Any, ClassVar

from rehearsal.plugins.aws.account import Account
from rehearsal.plugins.aws.kind import Pascal, Seen, Tagging, pairs, snake, text, unpaired
from rehearsal.plugins.wire import Properties, words


class Iam(Pascal):
    """A type with the usual quartet: create_x, get_x, delete_x, tag_x by its name."""

    word: ClassVar[str]
    key: ClassVar[str]
    """The parameter that names an object, as "RoleName"."""
    service = "iam"
    auto_name = "name"
    documents: ClassVar[frozenset[str]] = frozenset()
    """Inputs that are policy documents."""

    def name(self, key: str) -> str:
        return f"{self.word}Name" if key == "name" else super().name(key)

    def create(self, aws: Account, new: Properties) -> str:
        given = self.arguments(new) | {"Tags": pairs(new["tags"]) or None}
        answer = aws.call("iam", f"create_{snake(self.word)}", **given)[self.word]
        return answer["Arn" if self.key == "PolicyArn" else self.key]

    def find(self, aws: Account, id_: str, hint: Properties) -> Seen | None:
        answer = aws.seen("iam", f"get_{snake(self.word)}", **{self.key: id_})
        if not answer:
            return None
        found = answer[self.word]
        born = found["CreateDate"].strftime("%Y-%m-%dT%H:%M:%SZ")
        state = self.known(found) | {"arn": found["Arn"], "createDate": born}
        state |= {key: text(found[self.name(key)]) for key in self.documents} | self.details(aws, found)
        return Seen(state=state, tags=unpaired(found.get("Tags")))

    def details(self, aws: Account, found: dict[str, Any]) -> Properties:
        """State beyond the inputs."""
        return {}

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        aws.call("iam", f"delete_{snake(self.word)}", **{self.key: id_})


class Role(Iam):
    token = "aws:iam/role:Role"
    word, key = "Role", "RoleName"
    tagging = Tagging(target=key, tag="tag_role", untag="untag_role")
    inputs = words("name path assumeRolePolicy description maxSessionDuration permissionsBoundary forceDetachPolicies")
    replaces = words("name path")
    local = words("forceDetachPolicies")
    names = {"assumeRolePolicy": "AssumeRolePolicyDocument"}
    documents = words("assumeRolePolicy")
    defaults = {"path": "/", "maxSessionDuration": 3600}

    def details(self, aws: Account, found: dict[str, Any]) -> Properties:
        boundary = found.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn")
        unique = {"uniqueId": found["RoleId"]}
        return unique | ({"permissionsBoundary": boundary} if boundary else {})

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        if "assumeRolePolicy" in changed:
            aws.call("iam", "update_assume_role_policy", RoleName=id_, PolicyDocument=new["assumeRolePolicy"])
        if changed & {"description", "maxSessionDuration"}:
            seconds = new.get("maxSessionDuration", self.defaults["maxSessionDuration"])
            note = new.get("description", "")
            aws.call("iam", "update_role", RoleName=id_, Description=note, MaxSessionDuration=seconds)
        if "permissionsBoundary" in changed:
            boundary = new.get("permissionsBoundary")
            operation = "put_role_permissions_boundary" if boundary else "delete_role_permissions_boundary"
            aws.call("iam", operation, RoleName=id_, PermissionsBoundary=boundary)

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        role = {"RoleName": id_}
        for profile in aws.call("iam", "list_instance_profiles_for_role", **role)["InstanceProfiles"]:
            name = profile["InstanceProfileName"]
            aws.call("iam", "remove_role_from_instance_profile", InstanceProfileName=name, **role)
        if state.get("forceDetachPolicies"):
            for policy in aws.call("iam", "list_attached_role_policies", **role)["AttachedPolicies"]:
                aws.call("iam", "detach_role_policy", PolicyArn=policy["PolicyArn"], **role)
            for name in aws.call("iam", "list_role_policies", **role)["PolicyNames"]:
                aws.call("iam", "delete_role_policy", PolicyName=name, **role)
        super().remove(aws, id_, state)


class Policy(Iam):
    token = "aws:iam/policy:Policy"
    word, key = "Policy", "PolicyArn"
    tagging = Tagging(target=key, tag="tag_policy", untag="untag_policy")
    inputs = words("name path description policy")
    replaces = words("name path description")
    names = {"policy": "PolicyDocument"}
    defaults = {"path": "/"}

    def details(self, aws: Account, found: dict[str, Any]) -> Properties:
        arn, version = found["Arn"], found["DefaultVersionId"]
        current = aws.call("iam", "get_policy_version", PolicyArn=arn, VersionId=version)["PolicyVersion"]
        counted = {"policyId": found["PolicyId"], "attachmentCount": found.get("AttachmentCount", 0)}
        return {"policy": text(current["Document"]), **counted}

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        old = self.old_versions(aws, id_)
        if len(old) > 3:  # a policy has at most five versions
            aws.call("iam", "delete_policy_version", PolicyArn=id_, VersionId=old[-1])
        aws.call("iam", "create_policy_version", PolicyArn=id_, PolicyDocument=new["policy"], SetAsDefault=True)

    def old_versions(self, aws: Account, arn: str) -> list[str]:
        versions = aws.call("iam", "list_policy_versions", PolicyArn=arn)["Versions"]
        newest_first = sorted(versions, key=lambda version: version["CreateDate"], reverse=True)
        return [version["VersionId"] for version in newest_first if not version["IsDefaultVersion"]]

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        for version in self.old_versions(aws, id_):
            aws.call("iam", "delete_policy_version", PolicyArn=id_, VersionId=version)
        super().remove(aws, id_, state)


class InstanceProfile(Iam):
    token = "aws:iam/instanceProfile:InstanceProfile"
    word, key = "InstanceProfile", "InstanceProfileName"
    tagging = Tagging(target=key, tag="tag_instance_profile", untag="untag_instance_profile")
    inputs = words("name path role")
    later = words("role")
    replaces = words("name path")
    defaults = {"path": "/"}

    def details(self, aws: Account, found: dict[str, Any]) -> Properties:
        role = {"role": found["Roles"][0]["RoleName"]} if found["Roles"] else {}
        return {"uniqueId": found["InstanceProfileId"], **role}

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        profile = {"InstanceProfileName": id_}
        if state.get("role"):
            aws.seen("iam", "remove_role_from_instance_profile", RoleName=state["role"], **profile)
        if new.get("role"):
            aws.call("iam", "add_role_to_instance_profile", RoleName=new["role"], **profile)

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        for role in aws.call("iam", "get_instance_profile", InstanceProfileName=id_)["InstanceProfile"]["Roles"]:
            name = role["RoleName"]
            aws.call("iam", "remove_role_from_instance_profile", InstanceProfileName=id_, RoleName=name)
        super().remove(aws, id_, state)


class RolePolicy(Pascal):
    token = "aws:iam/rolePolicy:RolePolicy"
    auto_name = "name"
    inputs = words("name role policy")
    replaces = words("name role")
    names = {"name": "PolicyName", "role": "RoleName", "policy": "PolicyDocument"}

    def create(self, aws: Account, new: Properties) -> str:
        aws.call("iam", "put_role_policy", **self.arguments(new))
        return f"{new['role']}:{new['name']}"

    def find(self, aws: Account, id_: str, hint: Properties) -> Seen | None:
        role, name = id_.split(":", 1)
        found = aws.seen("iam", "get_role_policy", RoleName=role, PolicyName=name)
        state = {"role": role, "name": name}
        return Seen(state=state | {"policy": text(found["PolicyDocument"])}) if found else None

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        aws.call("iam", "put_role_policy", **self.arguments(new))

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        role, name = id_.split(":", 1)
        aws.call("iam", "delete_role_policy", RoleName=role, PolicyName=name)


class RolePolicyAttachment(Pascal):
    token = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
    inputs = replaces = words("role policyArn")
    names = {"role": "RoleName"}

    def create(self, aws: Account, new: Properties) -> str:
        aws.call("iam", "attach_role_policy", **self.arguments(new))
        return f"{new['role']}/{new['policyArn']}"

    def find(self, aws: Account, id_: str, hint: Properties) -> Seen | None:
        role, arn = id_.split("/", 1)
        answer = aws.seen("iam", "list_attached_role_policies", RoleName=role) or {}
        attached = any(policy["PolicyArn"] == arn for policy in answer.get("AttachedPolicies", []))
        return Seen(state={"role": role, "policyArn": arn}) if attached else None

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        role, arn = id_.split("/", 1)
        aws.call("iam", "detach_role_policy", RoleName=role, PolicyArn=arn)


KINDS = (Role, Policy, InstanceProfile, RolePolicy, RolePolicyAttachment)
