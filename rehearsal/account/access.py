"""Who may enter an EKS cluster (access entries and their policies), and Pod Identity associations.

Of the access policies only AmazonEKSClusterAdminPolicy means anything inside Kubernetes (system:masters): the others
become the group eks-access-policy:<name>[:<namespace>], which is bound to nothing unless somebody binds it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from rehearsal.account import principals
from rehearsal.account.eks import CLUSTERS, Cluster, Part, cluster, in_use, invalid, part
from rehearsal.account.operations import Call, Fields, NotBuilt, Principal, Refused, answers, follows

ADMIN_POLICY = "AmazonEKSClusterAdminPolicy"
ACCESS_POLICIES = (ADMIN_POLICY, "AmazonEKSAdminPolicy", "AmazonEKSEditPolicy", "AmazonEKSViewPolicy",
                   "AmazonEKSAdminViewPolicy")
NODES = "EC2_LINUX"
_POLICY_ARN = "arn:aws:eks::aws:cluster-access-policy/"


@dataclass(kw_only=True)
class Entry(Part):
    """An access entry and its policies."""

    policies: dict[str, Fields] = field(default_factory=dict)


@answers("eks", "CreateAccessEntry")
def _create_entry(call: Call) -> Fields:
    found, arn, kind = cluster(call, active=True), call["principalArn"], call["type"] or "STANDARD"
    if not principals.exists(arn):
        raise invalid(f"The specified principalArn is invalid: invalid principal {arn}.")
    if kind not in ("STANDARD", NODES):
        raise NotBuilt(f"access entries of type {kind}")
    if kind == NODES and (call["kubernetesGroups"] or call["username"]):
        raise Refused("InvalidRequestException", f"Access entries of type {kind} take no groups and no user name")
    _check_groups(call)
    return found.add("AccessEntry", arn, Entry(owner=found, view=_entry_view(arn, call.params)))


def _check_groups(call: Call) -> None:
    for name in call["kubernetesGroups"] or ():
        if name.startswith(("system:", "eks:", "aws:", "amazon:", "iam:")):
            raise invalid(f"The kubernetes group name {name} is invalid, it cannot start with {name.split(':')[0]}:")


def _entry_view(arn: str, params: Fields) -> Fields:
    if params.get("type") == NODES:
        return {"type": NODES, "username": "system:node:{{EC2PrivateDNSName}}", "kubernetesGroups": ["system:nodes"],
                "tags": params.get("tags")}
    session = arn.replace(":iam:", ":sts:").replace(":role/", ":assumed-role/") + "/{{SessionName}}"
    return {"type": "STANDARD", "username": params.get("username") or (session if ":role/" in arn else arn),
            "kubernetesGroups": params.get("kubernetesGroups") or [], "tags": params.get("tags")}


@follows("eks", "CreateCluster")
def _admit_creator(call: Call, answer: Fields) -> None:
    made, arn, policy = CLUSTERS[call["name"]], call.principal.entity, _POLICY_ARN + ADMIN_POLICY
    if answer["cluster"]["accessConfig"]["bootstrapClusterCreatorAdminPermissions"]:
        entry = Entry(owner=made, view=_entry_view(arn, {}), policies={policy: _association(policy)})
        made.add("AccessEntry", arn, entry)


def admit_nodes(found: Cluster, role_arn: str) -> None:
    """What EKS does for the role of a managed node group."""
    if role_arn not in found.parts["AccessEntry"]:
        found.add("AccessEntry", role_arn, Entry(owner=found, view=_entry_view(role_arn, {"type": NODES})))


@answers("eks", "UpdateAccessEntry")
def _update_entry(call: Call) -> Fields:
    entry = _standard(call)
    _check_groups(call)
    entry.view.update({name: call[name] for name in ("kubernetesGroups", "username") if call[name] is not None})
    return {"accessEntry": entry.view}


def _standard(call: Call) -> Entry:
    entry = part(call, "AccessEntry")
    if entry.view["type"] != "STANDARD":
        raise Refused("InvalidRequestException", f"{call.action} is not for entries of type {entry.view['type']}")
    return entry


@answers("eks", "DeleteAccessEntry")
def _delete_entry(call: Call) -> Fields:
    del part(call, "AccessEntry").owner.parts["AccessEntry"][call["principalArn"]]
    return {}


@answers("eks", "AssociateAccessPolicy")
def _associate_policy(call: Call) -> Fields:
    entry, policy, scope = _standard(call), call["policyArn"], call["accessScope"]
    if policy.removeprefix(_POLICY_ARN) not in ACCESS_POLICIES:
        raise invalid(f"The policyArn {policy} is invalid")
    if (scope["type"] == "namespace") != bool(scope.get("namespaces")):
        raise invalid("Namespaces go with access scopes of type namespace, and only with those")
    entry.policies[policy] = _association(policy, scope)
    return {"clusterName": entry.owner.name, "principalArn": call["principalArn"],
            "associatedAccessPolicy": entry.policies[policy]}


def _association(policy: str, scope: Fields | None = None) -> Fields:
    return {"policyArn": policy, "accessScope": {"type": "cluster", "namespaces": []} | (scope or {}),
            "associatedAt": time.time(), "modifiedAt": time.time()}


@answers("eks", "DisassociateAccessPolicy")
def _disassociate_policy(call: Call) -> Fields:
    if not part(call, "AccessEntry").policies.pop(call["policyArn"], None):
        raise Refused("ResourceNotFoundException", f"The policy {call['policyArn']} is not associated")
    return {}


@answers("eks", "ListAssociatedAccessPolicies")
def _list_policies(call: Call) -> Fields:
    return {"clusterName": call["clusterName"], "principalArn": call["principalArn"],
            "associatedAccessPolicies": list(part(call, "AccessEntry").policies.values())}


def kubernetes_user(found: Cluster, principal: Principal, node_name: str | None) -> Fields | None:
    """Who the principal is inside the cluster; None where no access entry lets it in.

    `node_name` is the private DNS name of the instance the session is named after, if it is one.
    """
    entry = found.parts["AccessEntry"].get(principal.entity)
    if entry is None or (entry.view["type"] == NODES and not node_name):
        return None
    if entry.view["type"] == NODES:
        return {"username": f"system:node:{node_name}", "groups": ["system:bootstrappers", "system:nodes"]}
    groups = [*entry.view["kubernetesGroups"], *(group for one in entry.policies.values() for group in _groups(one))]
    return {"username": entry.view["username"].replace("{{SessionName}}", principal.session or ""), "groups": groups}


def _groups(association: Fields) -> Iterator[str]:
    name, scope = association["policyArn"].removeprefix(_POLICY_ARN), association["accessScope"]
    if scope["type"] == "namespace":
        yield from (f"eks-access-policy:{name}:{namespace}" for namespace in scope["namespaces"])
    else:
        yield "system:masters" if name == ADMIN_POLICY else f"eks-access-policy:{name}"


@answers("eks", "CreatePodIdentityAssociation")
def _create_association(call: Call) -> Fields:
    return associate(cluster(call, active=True), call.params, owner=None)


def associate(found: Cluster, params: Fields, *, owner: str | None) -> Fields:
    """A Pod Identity association, of nobody or of an add-on."""
    slot = {name: params[name] for name in ("namespace", "serviceAccount")}
    if principals.role(params["roleArn"]) is None:
        raise invalid(f"Role provided in the request does not exist: {params['roleArn']}")
    if any(slot.items() <= one.view.items() for one in found.parts["PodIdentityAssociation"].values()):
        raise in_use(f"Association already exists: {'/'.join(slot.values())}")
    view = slot | {"roleArn": params["roleArn"], "tags": params.get("tags"), "ownerArn": owner,
                   "disableSessionTags": params.get("disableSessionTags", False)}
    return found.add("PodIdentityAssociation", f"a-0{secrets.token_hex(8)}", Part(owner=found, view=view))


@answers("eks", "ListPodIdentityAssociations")
def _list_associations(call: Call) -> Fields:
    wanted = {name: call[name] for name in ("namespace", "serviceAccount") if call[name]}
    return {"associations": [one.view for one in cluster(call).parts["PodIdentityAssociation"].values()
                             if wanted.items() <= one.view.items()]}


@answers("eks", "UpdatePodIdentityAssociation")
def _update_association(call: Call) -> Fields:
    view = part(call, "PodIdentityAssociation").view
    if call["roleArn"] and principals.role(call["roleArn"]) is None:
        raise invalid(f"Role provided in the request does not exist: {call['roleArn']}")
    view.update({name: call[name] for name in ("roleArn", "disableSessionTags") if call[name] is not None})
    return {"association": view}


@answers("eks", "DeletePodIdentityAssociation")
def _delete_association(call: Call) -> Fields:
    one = part(call, "PodIdentityAssociation")
    if one.view["ownerArn"]:
        raise Refused("InvalidRequestException", f"The association is managed by {one.view['ownerArn']}")
    return {"association": one.owner.parts["PodIdentityAssociation"].pop(call["associationId"]).view}


def pod_role(cluster_name: str, namespace: str, service_account: str) -> str | None:
    """The role that Pod Identity gives a pod, if the agent is there and the role's trust lets it in."""
    found, slot = CLUSTERS.get(cluster_name), {"namespace": namespace, "serviceAccount": service_account}
    if found is None or "eks-pod-identity-agent" not in found.parts["Addon"]:
        return None
    roles = [one.view["roleArn"] for one in found.parts["PodIdentityAssociation"].values()
             if slot.items() <= one.view.items()]
    return roles[0] if roles and principals.trusts(roles[0], "pods.eks.amazonaws.com") else None
