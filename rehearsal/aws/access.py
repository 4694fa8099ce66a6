"""Access entries, which say who may enter an EKS cluster, and Pod Identity associations.

The one access policy here is AmazonEKSClusterAdminPolicy for the whole cluster, which means
system:masters inside.
"""

from __future__ import annotations

import secrets

from rehearsal.aws import backends, principals
from rehearsal.aws.eks import (
    ABSENT,
    CLUSTERS,
    IN_USE,
    INVALID,
    KINDS,
    Cluster,
    ClusterPart,
    cluster,
    only,
    part,
)
from rehearsal.aws.operations import Call, Fields, NotBuilt, Principal, answers, follows, refuse

ADMIN_POLICY = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
NODES = "EC2_LINUX"
KEPT_GROUPS = ("system:", "eks:", "aws:", "amazon:", "iam:")
"""Prefixes that no group of an access entry may have."""
_ASSOCIATED = {"policyArn": ADMIN_POLICY, "accessScope": {"type": "cluster"}}


@answers("eks", "CreateAccessEntry")
def _create_entry(call: Call) -> Fields:
    only(call, "principalArn type kubernetesGroups tags")
    refuse(
        not principals.exists(call["principalArn"]),
        INVALID,
        f"invalid principal {call['principalArn']}.",
    )
    if call["type"] not in (None, "STANDARD", NODES):
        raise NotBuilt(f"access entries of type {call['type']}")
    groups = _groups(call)
    answer = admit(
        cluster(call, active=True), call["principalArn"], call["type"] or "STANDARD", call["tags"]
    )
    answer["accessEntry"]["kubernetesGroups"] += groups
    return answer


def _groups(call: Call) -> list[str]:
    """The groups of a call, none of which belongs to Kubernetes or AWS (EKS API,
    CreateAccessEntry)."""
    groups = call["kubernetesGroups"] or []
    kept = [group for group in groups if group.startswith(KEPT_GROUPS)]
    refuse(kept, INVALID, f"The kubernetes group name {', '.join(kept)} is invalid")
    refuse(
        groups and call["type"] == NODES,
        INVALID,
        "kubernetesGroups cannot be set for access entries of type EC2_LINUX",
    )
    return list(groups)


@answers("eks", "UpdateAccessEntry")
def _update_entry(call: Call) -> Fields:
    only(call, "principalArn kubernetesGroups")
    view = part(call, "AccessEntry").view
    if call["kubernetesGroups"] is not None:
        view["kubernetesGroups"] = _groups(call)
    return {"accessEntry": view}


def admit(found: Cluster, arn: str, kind: str = NODES, tags: Fields | None = None) -> Fields:
    """An access entry for the principal."""
    session = arn.replace(":iam:", ":sts:").replace(":role/", ":assumed-role/") + "/{{SessionName}}"
    username = (
        "system:node:{{EC2PrivateDNSName}}"
        if kind == NODES
        else session
        if ":role/" in arn
        else arn
    )
    return found.add(
        "AccessEntry",
        arn,
        ClusterPart(
            owner=found,
            view={
                "type": kind,
                "username": username,
                "kubernetesGroups": ["system:nodes"] if kind == NODES else [],
                "tags": tags,
                "policies": [],
            },
        ),
    )


@follows("eks", "CreateCluster")
def _admit_creator(call: Call, answer: Fields) -> None:
    if answer["cluster"]["accessConfig"]["bootstrapClusterCreatorAdminPermissions"]:
        entry = admit(CLUSTERS[call["name"]], call.principal.entity, "STANDARD")["accessEntry"]
        entry["policies"] = [dict(_ASSOCIATED)]


@answers("eks", "AssociateAccessPolicy")
def _associate_policy(call: Call) -> Fields:
    view, scope = part(call, "AccessEntry").view, call["accessScope"]["type"]
    refuse(
        view["type"] != "STANDARD",
        "InvalidRequestException",
        f"not for entries of type {view['type']}",
    )
    if (call["policyArn"], scope) != (ADMIN_POLICY, "cluster"):
        raise NotBuilt(f"the access policy {call['policyArn']} for a {scope}")
    view["policies"] = [dict(_ASSOCIATED)]
    return {"associatedAccessPolicy": view["policies"][0]}


@answers("eks", "DisassociateAccessPolicy")
def _disassociate_policy(call: Call) -> Fields:
    view = part(call, "AccessEntry").view
    refuse(not view["policies"], ABSENT, f"The policy {call['policyArn']} is not associated")
    view["policies"] = []
    return {}


answers("eks", "ListAccessEntries")(
    lambda call: {"accessEntries": list(cluster(call).parts["AccessEntry"])}
)
answers("eks", "ListAssociatedAccessPolicies")(
    lambda call: {"associatedAccessPolicies": part(call, "AccessEntry").view["policies"]}
)


def kubernetes_user(found: Cluster, principal: Principal, node_name: str | None) -> Fields | None:
    """User that the principal is inside the cluster; None where no access entry lets it in. A node
    has a DNS name."""
    entry = found.parts["AccessEntry"].get(principal.entity)
    if entry is None or (entry.view["type"] == NODES and not node_name):
        return None
    if entry.view["type"] == NODES:
        return {
            "username": f"system:node:{node_name}",
            "groups": ["system:bootstrappers", "system:nodes"],
        }
    return {
        "username": entry.view["username"].replace("{{SessionName}}", principal.session or ""),
        "groups": [
            *entry.view["kubernetesGroups"],
            *(["system:masters"] if entry.view["policies"] else []),
        ],
    }


@answers("eks", "CreatePodIdentityAssociation")
def _create_association(call: Call) -> Fields:
    found, slot = (
        cluster(call, active=True),
        {name: call[name] for name in ("namespace", "serviceAccount")},
    )
    refuse(
        _associations(found, slot), IN_USE, f"Association already exists: {'/'.join(slot.values())}"
    )
    refuse(
        principals.role(call["roleArn"]) is None,
        INVALID,
        f"The role {call['roleArn']} does not exist",
    )
    view = slot | {"roleArn": call["roleArn"], "tags": call["tags"], "disableSessionTags": False}
    return found.add(
        "PodIdentityAssociation", f"a-0{secrets.token_hex(8)}", ClusterPart(owner=found, view=view)
    )


def _associations(found: Cluster, slot: Fields) -> list[Fields]:
    views = [one.view for one in found.parts["PodIdentityAssociation"].values()]
    return [
        view
        for view in views
        if {name: value for name, value in slot.items() if value}.items() <= view.items()
    ]


answers("eks", "ListPodIdentityAssociations")(
    lambda call: {
        "associations": _associations(
            cluster(call), {name: call[name] for name in ("namespace", "serviceAccount")}
        )
    }
)


@answers("eks", "DeleteAccessEntry", "DeletePodIdentityAssociation")
def _delete(call: Call) -> Fields:
    kind = call.action.removeprefix("Delete")
    return {"association": part(call, kind).owner.parts[kind].pop(call[KINDS[kind][0]]).view}


def pod_role(cluster_name: str, namespace: str, service_account: str) -> str:
    """The role that Pod Identity gives a pod; empty without the agent, or a trust that lets it
    in."""
    found = CLUSTERS.get(cluster_name)
    if found is None or "eks-pod-identity-agent" not in found.parts["Addon"]:
        return ""
    views = _associations(found, {"namespace": namespace, "serviceAccount": service_account})
    request = {
        "aws:SourceAccount": backends.ACCOUNT,
        "aws:SourceArn": found.view["arn"],
        "aws:RequestTag/kubernetes-namespace": namespace,
        "aws:RequestTag/kubernetes-service-account": service_account,
    }
    return next(
        (
            one["roleArn"]
            for one in views
            if all(
                principals.trusts(
                    one["roleArn"], "pods.eks.amazonaws.com", request=request, action=action
                )
                for action in ("sts:AssumeRole", "sts:TagSession")
            )
        ),
        "",
    )
