"""EKS's types: cluster, add-ons, node groups, access, Pod Identity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from rehearsal.plugins.aws.account import Account
from rehearsal.plugins.aws.kind import Kind, Minutes, Seen, Tagging
from rehearsal.plugins.base import Refused
from rehearsal.plugins.wire import UNKNOWN, Properties, words


def tagged_by(output: str) -> Tagging:
    return Tagging(target="resourceArn", by=output, tags="tags", keys="tagKeys", paired=False)


class Eks(Kind):
    """A type with the usual quartet: create_x, describe_x, delete_x by the names that its id is made of."""

    noun: ClassVar[str]
    """Its name in operations, as "access_entry"."""
    answer: ClassVar[str]
    """Its name in answers, as "accessEntry"."""
    keys: ClassVar[tuple[str, ...]] = ("clusterName",)
    """The inputs whose values, joined with ":", are its id."""
    service = "eks"
    arn_key: ClassVar[str] = "arn"
    """The output that its ARN is called."""
    tagging = tagged_by("arn")

    def create(self, aws: Account, new: Properties) -> str:
        aws.call("eks", f"create_{self.noun}", **self.arguments(new), tags=new["tags"] or None)
        return ":".join(new[key] for key in self.keys)

    def where(self, id_: str, state: Properties) -> dict[str, str]:
        """The parameters that say which object."""
        values = id_.split(":", len(self.keys) - 1)
        return {self.name(key): value for key, value in zip(self.keys, values, strict=True)}

    def find(self, aws: Account, id_: str, hint: Properties) -> Seen | None:
        answer = aws.seen("eks", f"describe_{self.noun}", **self.where(id_, hint))
        if not answer:
            return None
        found = answer[self.answer]
        state = self.known(found) | self.details(found)
        state |= {key: found[key].strftime("%Y-%m-%dT%H:%M:%SZ") for key in ("createdAt", "modifiedAt") if key in found}
        issues = (found.get("health") or {}).get("issues") or []
        reason = "; ".join(f"{issue.get('code')}: {issue.get('message')}" for issue in issues)
        return Seen(state=state, tags=found.get("tags") or {}, status=found.get("status", ""), reason=reason)

    def details(self, found: dict[str, Any]) -> Properties:
        """State beyond the inputs."""
        return {self.arn_key: found[f"{self.answer}Arn"]}

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        aws.call("eks", f"delete_{self.noun}", **self.where(id_, state))

    def updated(self, aws: Account, id_: str, operation: str, **arguments: Any) -> None:
        """Start an update of something slow and wait for its end."""
        where = self.where(id_, {})
        update = aws.call("eks", operation, **where, **arguments)["update"]["id"]
        part = {key: value for key, value in where.items() if key not in ("name", "clusterName")}
        which = {"name": where.get("name") or where["clusterName"], **part}

        def done() -> bool:
            now = aws.call("eks", "describe_update", updateId=update, **which)["update"]
            if now["status"] in ("Failed", "Cancelled"):
                reasons = "; ".join(error.get("errorMessage", "") for error in now.get("errors", []))
                raise Refused(f"{operation} of {id_}: {now['status']}: {reasons}")
            return now["status"] == "Successful"

        aws.request.until(done, default=self.minutes.update * 60, what=f"{operation} of {id_}")


class Cluster(Eks):
    token = "aws:eks/cluster:Cluster"
    noun, answer, keys = "cluster", "cluster", ("name",)
    settings = words(
        "accessConfig computeConfig controlPlaneScalingConfig deletionProtection kubernetesNetworkConfig "
        "remoteNetworkConfig storageConfig upgradePolicy vpcConfig zonalShiftConfig"
    )
    """Inputs that update_cluster_config changes, one at a time."""
    inputs = settings | words(
        "name roleArn version enabledClusterLogTypes encryptionConfig bootstrapSelfManagedAddons defaultAddonsToRemoves"
    )
    replaces = words(
        "name roleArn encryptionConfig bootstrapSelfManagedAddons accessConfig.bootstrapClusterCreatorAdminPermissions "
        "kubernetesNetworkConfig.serviceIpv4Cidr kubernetesNetworkConfig.ipFamily"
    )
    local = words("defaultAddonsToRemoves")
    unread = words("bootstrapSelfManagedAddons")
    chosen = settings | words("version")
    names = {"vpcConfig": "resourcesVpcConfig"}
    auto_name = "name"
    defaults = {
        "vpcConfig": {
            "endpointPrivateAccess": False, "endpointPublicAccess": True, "publicAccessCidrs": ["0.0.0.0/0"]
        }
    }  # fmt: skip
    unknown = {"vpcConfig": {"clusterSecurityGroupId": UNKNOWN, "vpcId": UNKNOWN}}
    minutes = Minutes(create=30, update=60, delete=15)

    def arguments(self, new: Properties, only: Any = None) -> dict[str, Any]:
        given = super().arguments(new, only)
        if log_types := given.pop("enabledClusterLogTypes", None):
            given["logging"] = {"clusterLogging": [{"types": log_types, "enabled": True}]}
        return given

    def details(self, found: dict[str, Any]) -> Properties:
        told = "arn endpoint platformVersion status certificateAuthority"
        oidc = (found.get("identity") or {}).get("oidc")
        logging = (found.get("logging") or {}).get("clusterLogging") or []
        return {
            **{key: found[key] for key in words(told) if found.get(key) is not None},
            "identities": [{"oidcs": [oidc]}] if oidc else [],
            "enabledClusterLogTypes": [kind for part in logging if part["enabled"] for kind in part["types"]],
        }

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        if "version" in changed:
            self.updated(aws, id_, "update_cluster_version", version=new["version"])
        for key in sorted(changed & self.settings):
            self.updated(aws, id_, "update_cluster_config", **self.arguments(new, {key}))
        if "enabledClusterLogTypes" in changed:
            self.updated(aws, id_, "update_cluster_config", logging={"clusterLogging": self.logging(new, state)})

    def logging(self, new: Properties, state: Properties) -> list[dict[str, Any]]:
        on, was = new.get("enabledClusterLogTypes") or [], state.get("enabledClusterLogTypes") or []
        parts = {True: on, False: sorted(set(was) - set(on))}
        return [{"types": types, "enabled": enabled} for enabled, types in parts.items() if types]


class Addon(Eks):
    token = "aws:eks/addon:Addon"
    noun, answer, keys = "addon", "addon", ("clusterName", "addonName")
    replaces = words("clusterName addonName")
    local = words("resolveConflictsOnUpdate preserve")
    unread = words("resolveConflictsOnCreate")
    inputs = replaces | local | unread | words("addonVersion configurationValues serviceAccountRoleArn")
    chosen = words("addonVersion")
    names = {"resolveConflictsOnCreate": "resolveConflicts"}
    busy = Kind.busy | {"DEGRADED"}
    minutes = Minutes(delete=40)

    def details(self, found: dict[str, Any]) -> Properties:
        return {"arn": found["addonArn"]}

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        if changed - self.unread - self.local:
            parts = self.arguments(new, words("addonVersion configurationValues serviceAccountRoleArn"))
            conflicts = new.get("resolveConflictsOnUpdate", "NONE")
            self.updated(aws, id_, "update_addon", resolveConflicts=conflicts, **parts)

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        aws.call("eks", "delete_addon", **self.where(id_, state), preserve=state.get("preserve"))


class NodeGroup(Eks):
    token = "aws:eks/nodeGroup:NodeGroup"
    noun, answer, keys = "nodegroup", "nodegroup", ("clusterName", "nodeGroupName")
    replaces = words(
        "clusterName nodeGroupName nodeRoleArn subnetIds instanceTypes amiType capacityType diskSize launchTemplate.id "
        "launchTemplate.name"
    )
    local = words("forceUpdateVersion")
    settings = words("labels taints scalingConfig updateConfig nodeRepairConfig")
    inputs = (
        words(
            "clusterName nodeGroupName nodeRoleArn subnetIds instanceTypes amiType capacityType diskSize "
            "launchTemplate version releaseVersion forceUpdateVersion"
        )
        | settings
    )
    chosen = words("amiType capacityType diskSize instanceTypes version releaseVersion updateConfig nodeRepairConfig")
    names = {"nodeGroupName": "nodegroupName", "nodeRoleArn": "nodeRole", "subnetIds": "subnets"}
    auto_name = "nodeGroupName"
    minutes = Minutes(create=60, update=60, delete=60)

    def details(self, found: dict[str, Any]) -> Properties:
        resources = found.get("resources") or {}
        groups = resources.get("autoScalingGroups", [])
        group = resources.get("remoteAccessSecurityGroup", "")
        made = {"autoscalingGroups": groups, "remoteAccessSecurityGroupId": group}
        return {"arn": found["nodegroupArn"], "status": found["status"], "resources": [made]}

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        if changed & {"version", "releaseVersion", "launchTemplate"}:
            parts = self.arguments(new, words("version releaseVersion launchTemplate"))
            self.updated(aws, id_, "update_nodegroup_version", force=new.get("forceUpdateVersion"), **parts)
        if now := changed & self.settings:
            parts = self.arguments(new, now - {"labels", "taints"})
            self.updated(aws, id_, "update_nodegroup_config", **parts, **self.marks(now, new, state))

    def marks(self, changed: frozenset[str], new: Properties, state: Properties) -> dict[str, Any]:
        """Labels and taints as what to put and what to take away."""
        parts: dict[str, Any] = {}
        if "labels" in changed:
            labels, was = new.get("labels") or {}, state.get("labels") or {}
            parts["labels"] = {"addOrUpdateLabels": labels, "removeLabels": sorted(was.keys() - labels.keys())}
        if "taints" in changed:
            taints, old = new.get("taints") or [], state.get("taints") or []
            kept = {(taint["key"], taint["effect"]) for taint in taints}
            gone = [taint for taint in old if (taint["key"], taint["effect"]) not in kept]
            parts["taints"] = {"addOrUpdateTaints": taints, "removeTaints": gone}
        return parts


class AccessEntry(Eks):
    token = "aws:eks/accessEntry:AccessEntry"
    noun, answer, keys = "access_entry", "accessEntry", ("clusterName", "principalArn")
    arn_key = "accessEntryArn"
    tagging = tagged_by(arn_key)
    replaces = words("clusterName principalArn type")
    inputs = replaces | words("kubernetesGroups userName")
    chosen = words("userName kubernetesGroups")
    names = {"userName": "username"}
    defaults = {"type": "STANDARD"}

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        groups, user = new.get("kubernetesGroups") or [], new.get("userName")
        aws.call("eks", "update_access_entry", **self.where(id_, state), kubernetesGroups=groups, username=user)


class AccessPolicyAssociation(Kind):
    token = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
    alone = True
    inputs = replaces = words("clusterName principalArn policyArn accessScope")
    minutes = Minutes(create=10, delete=10)

    def create(self, aws: Account, new: Properties) -> str:
        aws.call("eks", "associate_access_policy", **self.arguments(new))
        return "#".join(new[key] for key in ("clusterName", "principalArn", "policyArn"))

    def find(self, aws: Account, id_: str, hint: Properties) -> Seen | None:
        cluster, principal, policy = id_.split("#")
        whose = {"clusterName": cluster, "principalArn": principal}
        answer = aws.seen("eks", "list_associated_access_policies", **whose) or {}
        for found in answer.get("associatedAccessPolicies", []):
            if found["policyArn"] == policy:
                return Seen(state={**whose, "policyArn": policy, "accessScope": found["accessScope"]})
        return None

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        cluster, principal, policy = id_.split("#")
        aws.call("eks", "disassociate_access_policy", clusterName=cluster, principalArn=principal, policyArn=policy)


class PodIdentityAssociation(Eks):
    token = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
    noun, answer, arn_key = "pod_identity_association", "association", "associationArn"
    tagging = tagged_by(arn_key)
    replaces = words("clusterName namespace serviceAccount")
    inputs = replaces | words("roleArn targetRoleArn disableSessionTags")
    defaults = {"disableSessionTags": False}

    def create(self, aws: Account, new: Properties) -> str:
        given = self.arguments(new) | {"tags": new["tags"] or None}
        return aws.call("eks", "create_pod_identity_association", **given)["association"]["associationId"]

    def where(self, id_: str, state: Properties) -> dict[str, str]:
        """By the association's id and its cluster, on import both in one as CLUSTER,ASSOCIATION."""
        cluster, _, association = id_.rpartition(",")
        return {"clusterName": cluster or state.get("clusterName", ""), "associationId": association}

    def find(self, aws: Account, id_: str, hint: Properties) -> Seen | None:
        seen = super().find(aws, id_, hint)
        return seen and replace(seen, id=id_.rpartition(",")[2])

    def details(self, found: dict[str, Any]) -> Properties:
        return super().details(found) | {"associationId": found["associationId"], "externalId": found.get("externalId")}

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        parts = self.arguments(new, self.inputs - self.replaces)
        aws.call("eks", "update_pod_identity_association", **self.where(id_, state), **parts)


KINDS = (Cluster, Addon, NodeGroup, AccessEntry, AccessPolicyAssociation, PodIdentityAssociation)
