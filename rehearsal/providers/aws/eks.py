"""EKS's types: cluster, add-ons, node groups, access, Pod Identity."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from rehearsal.providers.aws.account import Account
from rehearsal.providers.aws.resource_type import Kind, Tagging
from rehearsal.providers.problems import Refused
from rehearsal.providers.wire import UNKNOWN, Properties, words


@dataclass(frozen=True, kw_only=True)
class Eks(Kind):
    """A type whose updates take time, and whose troubles are told as health issues."""

    def reason_of(self, found: dict[str, Any]) -> str:
        issues = (found.get("health") or {}).get("issues") or []
        return "; ".join(f"{issue.get('code')}: {issue.get('message')}" for issue in issues)

    def update(
        self, aws: Account, operation: str, which: Properties, given: Properties, new: Properties
    ) -> None:
        """Start an update and wait for its end, where it is one that takes time."""
        if conflicts := new.get("resolveConflictsOnUpdate"):
            given = {**given, "resolveConflicts": conflicts}
        begun = aws.call("eks", operation, **which, **given).get("update")
        if not begun:
            return
        part = {key: value for key, value in which.items() if key not in ("name", "clusterName")}
        about = {"name": which.get("name") or which["clusterName"], "updateId": begun["id"], **part}

        def done() -> bool:
            now = aws.call("eks", "describe_update", **about)["update"]
            if now["status"] in ("Failed", "Cancelled"):
                reasons = "; ".join(
                    error.get("errorMessage", "") for error in now.get("errors", [])
                )
                raise Refused(f"{operation} of {about['name']}: {now['status']}: {reasons}")
            return now["status"] == "Successful"

        aws.request.until(done, default=self.minutes * 60, what=f"{operation} of {about['name']}")


LOGS = ("api", "audit", "authenticator", "controllerManager", "scheduler")


@dataclass(frozen=True, kw_only=True)
class EksCluster(Eks):
    """EKS takes one kind of change a call, and logs as those that are on and those that are off."""

    def change(
        self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties
    ) -> None:
        """The version first, as the genuine provider does."""
        for key in sorted(changed, key=lambda key: (key != "version", key)):
            super().change(aws, id_, frozenset({key}), new, state)

    def update(
        self, aws: Account, operation: str, which: Properties, given: Properties, new: Properties
    ) -> None:
        """The call for a key names the cluster otherwise."""
        if operation == "associate_encryption_config":
            which = {"clusterName": which["name"]}
        super().update(aws, operation, which, given, new)

    def arguments(self, new: Properties, only: Collection[str] | None = None) -> dict[str, Any]:
        logs = new.get("enabledClusterLogTypes") or []
        given = super().arguments(
            {key: value for key, value in new.items() if key != "enabledClusterLogTypes"}, only
        )
        if only is None and logs or only is not None and "enabledClusterLogTypes" in only:
            off = [name for name in LOGS if name not in logs]
            setup = [{"types": sorted(logs), "enabled": True}, {"types": off, "enabled": False}]
            given["logging"] = {"clusterLogging": [one for one in setup if one["types"]]}
        return given

    def known(self, found: dict[str, Any]) -> Properties:
        setup = (found.get("logging") or {}).get("clusterLogging") or []
        on = [name for one in setup if one["enabled"] for name in one["types"]]
        return super().known(found) | ({"enabledClusterLogTypes": sorted(on)} if on else {})


def eks_resource(
    type_: str, noun: str, answer: str, *, arn: str = "arn", **more: Any
) -> dict[str, Any]:
    """Row of most types: create_x, describe_x, delete_x by the names that their id is made of."""
    outputs = {arn: f"{answer}Arn", **more.pop("outputs", {})}
    tagging = Tagging(
        target="resourceArn", by=arn, tags="tags", keys="tagKeys", born="tags", paired=False
    )
    return {
        "token": f"aws:eks/{type_[:1].lower()}{type_[1:]}:{type_}",
        "service": "eks",
        "create": f"create_{noun}",
        "read": f"describe_{noun}",
        "delete": f"delete_{noun}",
        "made": answer,
        "found": answer,
        "status": "status",
        "outputs": outputs,
        "tagging": tagging,
        "import_id": more.get("id", ""),
        **more,
    }


KINDS = (
    EksCluster(
        **eks_resource(
            "Cluster",
            "cluster",
            "cluster",
            id="{name}",
            import_id="",
            asks={"name": "id"},
            minutes=30,
            fixed=words("accessConfig kubernetesNetworkConfig"),
            updates={
                "version": "update_cluster_version",
                "vpcConfig": "update_cluster_config",
                "upgradePolicy": "update_cluster_config",
                "deletionProtection": "update_cluster_config",
                "controlPlaneScalingConfig": "update_cluster_config",
                "encryptionConfig": "associate_encryption_config",
                "enabledClusterLogTypes": "update_cluster_config",
            },
            unread=words("bootstrapSelfManagedAddons"),
            names={"vpcConfig": "resourcesVpcConfig", "encryptionConfig": "encryptionConfig.0"},
            chosen=words(
                "accessConfig kubernetesNetworkConfig vpcConfig version upgradePolicy deletionProtection"
                " controlPlaneScalingConfig"
            ),
            defaults={
                "vpcConfig": {
                    "endpointPrivateAccess": False,
                    "endpointPublicAccess": True,
                    "publicAccessCidrs": ["0.0.0.0/0"],
                }
            },
            unknown={"vpcConfig": {"clusterSecurityGroupId": UNKNOWN, "vpcId": UNKNOWN}},
            outputs={
                "arn": "arn",
                "endpoint": "endpoint",
                "status": "status",
                "certificateAuthority": "certificateAuthority",
                "identities.0.oidcs.0": "identity.oidc",
            },
        )
    ),
    Eks(
        **eks_resource(
            "Addon",
            "addon",
            "addon",
            id="{clusterName}:{addonName}",
            asks={"clusterName": "clusterName", "addonName": "addonName"},
            updates={"addonVersion": "update_addon", "configurationValues": "update_addon"},
            local=words("resolveConflictsOnUpdate"),
            unread=words("resolveConflictsOnCreate"),
            chosen=words("addonVersion"),
            names={"resolveConflictsOnCreate": "resolveConflicts"},
            busy=Kind.busy | {"degraded"},
        )
    ),
    Eks(
        **eks_resource(
            "NodeGroup",
            "nodegroup",
            "nodegroup",
            id="{clusterName}:{nodeGroupName}",
            minutes=60,
            asks={"clusterName": "clusterName", "nodegroupName": "nodeGroupName"},
            fixed=words("labels"),
            updates={
                "version": "update_nodegroup_version",
                "releaseVersion": "update_nodegroup_version",
                "launchTemplate": "update_nodegroup_version",
                "scalingConfig": "update_nodegroup_config",
                "updateConfig": "update_nodegroup_config",
            },
            chosen=words(
                "amiType capacityType diskSize instanceTypes version releaseVersion updateConfig"
            ),
            names={
                "nodeGroupName": "nodegroupName",
                "nodeRoleArn": "nodeRole",
                "subnetIds": "subnets",
            },
            outputs={"status": "status"},
        )
    ),
    Eks(
        **eks_resource(
            "AccessEntry",
            "access_entry",
            "accessEntry",
            arn="accessEntryArn",
            id="{clusterName}:{principalArn}",
            asks={"clusterName": "clusterName", "principalArn": "principalArn"},
            updates={"kubernetesGroups": "update_access_entry"},
            chosen=words("kubernetesGroups"),
            defaults={"type": "STANDARD"},
        )
    ),
    Eks(
        **eks_resource(
            "PodIdentityAssociation",
            "pod_identity_association",
            "association",
            arn="associationArn",
            id="{associationId}",
            import_id="{clusterName},{id}",
            asks={"clusterName": "clusterName", "associationId": "id"},
            outputs={"associationId": "associationId"},
            updates={"roleArn": "update_pod_identity_association"},
        )
    ),
    Kind(
        token="aws:eks/accessPolicyAssociation:AccessPolicyAssociation",
        service="eks",
        create="associate_access_policy",
        read="list_associated_access_policies",
        found="associatedAccessPolicies",
        delete="disassociate_access_policy",
        among="policyArn",
        id="{clusterName}#{principalArn}#{policyArn}",
        import_id="{clusterName}#{principalArn}#{policyArn}",
        asks={"clusterName": "clusterName", "principalArn": "principalArn"},
        drops={
            "clusterName": "clusterName",
            "principalArn": "principalArn",
            "policyArn": "policyArn",
        },
        alone=True,
        minutes=10,
    ),
)
