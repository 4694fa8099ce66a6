"""IAM's types: roles, their policies and attachments, instance profiles."""

from __future__ import annotations

from dataclasses import dataclass

from rehearsal.providers.aws.account import Account
from rehearsal.providers.aws.resource_type import Kind, Tagging
from rehearsal.providers.wire import Properties, words


@dataclass(frozen=True, kw_only=True)
class Role(Kind):
    def update(
        self, aws: Account, operation: str, which: Properties, given: Properties, new: Properties
    ) -> None:
        """IAM calls the trust of a role otherwise when it changes."""
        later = {"AssumeRolePolicyDocument": "PolicyDocument"}
        aws.call("iam", operation, **which, **{later.get(k, k): v for k, v in given.items()})

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        """Out of its instance profiles first, as the genuine provider does."""
        told = aws.seen("iam", "list_instance_profiles_for_role", RoleName=id_) or {}
        for profile in told.get("InstanceProfiles", []):
            name = profile["InstanceProfileName"]
            aws.call(
                "iam", "remove_role_from_instance_profile", InstanceProfileName=name, RoleName=id_
            )
        super().remove(aws, id_, state)


KINDS = (
    Role(
        token="aws:iam/role:Role",
        service="iam",
        create="create_role",
        read="get_role",
        delete="delete_role",
        made="Role",
        found="Role",
        id="{RoleName}",
        asks={"RoleName": "id"},
        fixed=words("description"),
        updates={
            "assumeRolePolicy": "update_assume_role_policy",
            "permissionsBoundary": "put_role_permissions_boundary",
        },
        names={"name": "RoleName", "assumeRolePolicy": "AssumeRolePolicyDocument"},
        outputs={
            "arn": "Arn",
            "uniqueId": "RoleId",
            "permissionsBoundary": "PermissionsBoundary.PermissionsBoundaryArn",
        },
        tagging=Tagging(target="RoleName", tag="tag_role", untag="untag_role"),
    ),
    Kind(
        token="aws:iam/instanceProfile:InstanceProfile",
        service="iam",
        create="create_instance_profile",
        read="get_instance_profile",
        delete="delete_instance_profile",
        made="InstanceProfile",
        found="InstanceProfile",
        id="{InstanceProfileName}",
        asks={"InstanceProfileName": "id"},
        later=words("role"),
        updates={"role": "add_role_to_instance_profile"},
        undo={"role": "remove_role_from_instance_profile"},
        names={"name": "InstanceProfileName", "role": "RoleName"},
        outputs={"arn": "Arn", "role": "Roles.0.RoleName"},
        tagging=Tagging(
            target="InstanceProfileName", tag="tag_instance_profile", untag="untag_instance_profile"
        ),
    ),
    Kind(
        token="aws:iam/rolePolicy:RolePolicy",
        service="iam",
        create="put_role_policy",
        read="get_role_policy",
        delete="delete_role_policy",
        id="{role}:{name}",
        import_id="{role}:{name}",
        asks={"RoleName": "role", "PolicyName": "name"},
        updates={"policy": "put_role_policy"},
        names={"role": "RoleName", "name": "PolicyName", "policy": "PolicyDocument"},
    ),
    Kind(
        token="aws:iam/rolePolicyAttachment:RolePolicyAttachment",
        service="iam",
        create="attach_role_policy",
        read="list_attached_role_policies",
        delete="detach_role_policy",
        found="AttachedPolicies",
        among="policyArn",
        id="{role}/{policyArn}",
        import_id="{role}/{policyArn}",
        asks={"RoleName": "role"},
        drops={"RoleName": "role", "PolicyArn": "policyArn"},
        names={"role": "RoleName"},
    ),
)
