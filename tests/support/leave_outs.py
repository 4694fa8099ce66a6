"""Objects that can be taken away from the dev stack on AWS, one at a time, and given back.

Two tests use it. A fast one takes it from the account alone, and asks what nodes and pods ask
(tests/rehearsal/test_leave_outs.py). `make soak` takes it from a whole world, where the job must not
complete and `trainyard status` must name the cause (tests/worlds/soak.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

Aws = Callable[[str], Any]
"""The SDK's client of a service, of the account."""
Undo = Callable[[], object]
Away = Callable[[Aws], Undo]

UNREACHED = ("the node cannot reach the file system",)
NOT_JOINED = ("has an instance that has not joined",)
NOT_LAUNCHED = (
    "AWS refused a call",
    "is not launched",
    "InstanceProfileReady",
    "ValidationSucceeded",
)


@dataclass(frozen=True, kw_only=True)
class LeaveOut:
    """Something that AWS keeps for the stack."""

    what: str
    away: Away
    """Takes it away and returns what brings it back."""
    probe: str
    """Probe that fails then: a name of PROBES of the fast test."""
    words: str
    """Part of what is said then."""
    named: tuple[str, ...] = ()
    """Any of these in `trainyard status`. Without them a whole world does not tell: `only_fast` says why."""
    fresh: bool = True
    """Nodes that are there already do not miss it."""
    restart: str = ""
    """A Deployment in kube-system whose running pods do not miss it."""
    only_fast: str = field(default="")


def _named(name: str) -> list[dict[str, Any]]:
    """The filter for what the product calls so."""
    return [{"Name": "tag:trainyard:name", "Values": [name]}]


def rule(name: str, aws: Aws) -> Undo:
    ec2 = aws("ec2")
    [found] = ec2.describe_security_group_rules(Filters=_named(name))["SecurityGroupRules"]
    way = "egress" if found["IsEgress"] else "ingress"
    permission = {"IpProtocol": found["IpProtocol"]}
    if found["IpProtocol"] != "-1":
        permission |= {"FromPort": found["FromPort"], "ToPort": found["ToPort"]}
    if group := found.get("ReferencedGroupInfo"):
        permission["UserIdGroupPairs"] = [{"GroupId": group["GroupId"]}]
    else:
        permission["IpRanges"] = [{"CidrIp": found["CidrIpv4"]}]
    id_, tags = found["SecurityGroupRuleId"], found["Tags"]
    getattr(ec2, f"revoke_security_group_{way}")(
        GroupId=found["GroupId"], SecurityGroupRuleIds=[id_]
    )
    return partial(
        getattr(ec2, f"authorize_security_group_{way}"),
        GroupId=found["GroupId"],
        IpPermissions=[permission],
        TagSpecifications=[{"ResourceType": "security-group-rule", "Tags": tags}],
    )


def _clusters_own_rule(aws: Aws) -> Undo:
    """EKS's: everything between members of the cluster's group."""
    ec2, eks = aws("ec2"), aws("eks")
    [name] = eks.list_clusters()["clusters"]
    group = eks.describe_cluster(name=name)["cluster"]["resourcesVpcConfig"][
        "clusterSecurityGroupId"
    ]
    permission = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=[permission])
    return partial(ec2.authorize_security_group_ingress, GroupId=group, IpPermissions=[permission])


def _table(aws: Aws, name: str) -> dict[str, Any]:
    [found] = aws("ec2").describe_route_tables(Filters=_named(name))["RouteTables"]
    return found


def _route(name: str, aws: Aws) -> Undo:
    ec2, table = aws("ec2"), _table(aws, name)
    [route] = [one for one in table["Routes"] if one.get("DestinationCidrBlock") == "0.0.0.0/0"]
    at = {"RouteTableId": table["RouteTableId"], "DestinationCidrBlock": "0.0.0.0/0"}
    ec2.delete_route(**at)
    to = {key: route[key] for key in ("NatGatewayId", "GatewayId") if route.get(key)}
    return partial(ec2.create_route, **at, **to)


def _association(subnet: str, aws: Aws) -> Undo:
    ec2 = aws("ec2")
    [found] = ec2.describe_subnets(Filters=_named(subnet))["Subnets"]
    [link] = [
        one
        for table in ec2.describe_route_tables()["RouteTables"]
        for one in table["Associations"]
        if one.get("SubnetId") == found["SubnetId"]
    ]
    ec2.disassociate_route_table(AssociationId=link["RouteTableAssociationId"])
    return partial(
        ec2.associate_route_table, RouteTableId=link["RouteTableId"], SubnetId=found["SubnetId"]
    )


def _nat(aws: Aws) -> Undo:
    """Another one comes back, with another address: the route has to follow."""
    ec2 = aws("ec2")
    [found] = ec2.describe_nat_gateways(Filters=_named("network-nat-a"))["NatGateways"]
    ec2.delete_nat_gateway(NatGatewayId=found["NatGatewayId"])

    def back() -> None:
        address = ec2.allocate_address(Domain="vpc")["AllocationId"]
        tags = [{"ResourceType": "natgateway", "Tags": found["Tags"]}]
        made = ec2.create_nat_gateway(
            SubnetId=found["SubnetId"], AllocationId=address, TagSpecifications=tags
        )
        ec2.replace_route(
            RouteTableId=_table(aws, "network-private")["RouteTableId"],
            DestinationCidrBlock="0.0.0.0/0",
            NatGatewayId=made["NatGateway"]["NatGatewayId"],
        )

    return back


def _role(aws: Aws, name: str) -> str:
    """The role that the product calls so: its own name begins with the stack's."""
    roles = [one["RoleName"] for one in aws("iam").list_roles()["Roles"]]
    [found] = [one for one in roles if one.startswith(f"dev-{name}-")]
    return found


def _statement(policy: str, sid: str, aws: Aws) -> Undo:
    """One of an inline policy of Karpenter's role."""
    iam, at = aws("iam"), {"RoleName": _role(aws, "karpenter"), "PolicyName": policy}
    document = iam.get_role_policy(**at)["PolicyDocument"]
    rest = [one for one in document["Statement"] if one["Sid"] != sid]
    assert len(rest) < len(document["Statement"]), f"{policy} has no statement {sid}"
    iam.put_role_policy(**at, PolicyDocument=json.dumps(document | {"Statement": rest}))
    return partial(iam.put_role_policy, **at, PolicyDocument=json.dumps(document))


def _attachment(role: str, policy: str, aws: Aws) -> Undo:
    iam = aws("iam")
    at = {"RoleName": _role(aws, role), "PolicyArn": f"arn:aws:iam::aws:policy/{policy}"}
    iam.detach_role_policy(**at)
    return partial(iam.attach_role_policy, **at)


def _trust(role: str, aws: Aws) -> Undo:
    """Somebody else may assume the role."""
    iam, name = aws("iam"), _role(aws, role)
    document = iam.get_role(RoleName=name)["Role"]["AssumeRolePolicyDocument"]
    [one] = document["Statement"]
    other = document | {"Statement": [one | {"Principal": {"Service": "lambda.amazonaws.com"}}]}
    iam.update_assume_role_policy(RoleName=name, PolicyDocument=json.dumps(other))
    return partial(
        iam.update_assume_role_policy, RoleName=name, PolicyDocument=json.dumps(document)
    )


def _profile(aws: Aws) -> Undo:
    """The role of the nodes' instance profile."""
    iam, role = aws("iam"), _role(aws, "gpu-nodes")
    [profile] = iam.list_instance_profiles_for_role(RoleName=role)["InstanceProfiles"]
    at = {"InstanceProfileName": profile["InstanceProfileName"], "RoleName": role}
    iam.remove_role_from_instance_profile(**at)
    return partial(iam.add_role_to_instance_profile, **at)


def _identity(account: str, aws: Aws) -> Undo:
    """The Pod Identity association of a service account."""
    eks = aws("eks")
    [cluster] = eks.list_clusters()["clusters"]
    asked = {"clusterName": cluster, "namespace": "kube-system", "serviceAccount": account}
    [found] = eks.list_pod_identity_associations(**asked)["associations"]
    at = {"clusterName": cluster, "associationId": found["associationId"]}
    arn = eks.describe_pod_identity_association(**at)["association"]["roleArn"]
    eks.delete_pod_identity_association(**at)
    return partial(eks.create_pod_identity_association, **asked, roleArn=arn)


def _access_entry(aws: Aws) -> Undo:
    eks, arn = aws("eks"), aws("iam").get_role(RoleName=_role(aws, "gpu-nodes"))["Role"]["Arn"]
    [cluster] = eks.list_clusters()["clusters"]
    whose = {"clusterName": cluster, "principalArn": arn}
    eks.delete_access_entry(**whose)
    return partial(eks.create_access_entry, **whose, type="EC2_LINUX")


def _mount_target(aws: Aws) -> Undo:
    efs = aws("efs")
    [system] = efs.describe_file_systems()["FileSystems"]
    whole = {"FileSystemId": system["FileSystemId"]}
    [found] = efs.describe_mount_targets(**whole)["MountTargets"]
    id_ = found["MountTargetId"]
    groups = efs.describe_mount_target_security_groups(MountTargetId=id_)["SecurityGroups"]
    efs.delete_mount_target(MountTargetId=id_)
    return partial(
        efs.create_mount_target, **whole, SubnetId=found["SubnetId"], SecurityGroups=groups
    )


def _tag(name: str, key: str, aws: Aws) -> Undo:
    """Of a security group."""
    ec2 = aws("ec2")
    [found] = ec2.describe_security_groups(Filters=_named(name))["SecurityGroups"]
    [tag] = [one for one in found["Tags"] if one["Key"] == key]
    at = {"Resources": [found["GroupId"]], "Tags": [tag]}
    ec2.delete_tags(**at)
    return partial(ec2.create_tags, **at)


def _add_on(name: str, aws: Aws) -> Undo:
    eks = aws("eks")
    [cluster] = eks.list_clusters()["clusters"]
    at = {"clusterName": cluster, "addonName": name}
    found = eks.describe_addon(**at)["addon"]
    kept = {key: found[key] for key in ("addonVersion", "configurationValues") if found.get(key)}
    eks.delete_addon(**at)
    # Until then its pods are there, and who starts anew finds them.
    eks.get_waiter("addon_deleted").wait(**at, WaiterConfig={"Delay": 1, "MaxAttempts": 90})
    return partial(eks.create_addon, **at, **kept, resolveConflicts="OVERWRITE", tags=found["tags"])


def _rule_of_events(kind: str, aws: Aws) -> Undo:
    events = aws("events")
    name = _event_rule(aws, kind)
    events.disable_rule(Name=name)
    return partial(events.enable_rule, Name=name)


def _event_rule(aws: Aws, kind: str) -> str:
    names = [one["Name"] for one in aws("events").list_rules()["Rules"]]
    [found] = [one for one in names if f"karpenter-{kind}" in one]
    return found


def _target(kind: str, aws: Aws) -> Undo:
    events, name = aws("events"), _event_rule(aws, kind)
    [found] = events.list_targets_by_rule(Rule=name)["Targets"]
    events.remove_targets(Rule=name, Ids=[found["Id"]])
    return partial(events.put_targets, Rule=name, Targets=[found])


def _queue_policy(aws: Aws) -> Undo:
    sqs = aws("sqs")
    [url] = sqs.list_queues()["QueueUrls"]
    at = {"QueueUrl": url}
    policy = sqs.get_queue_attributes(**at, AttributeNames=["Policy"])["Attributes"]["Policy"]
    sqs.set_queue_attributes(**at, Attributes={"Policy": ""})
    return partial(sqs.set_queue_attributes, **at, Attributes={"Policy": policy})


EVENTS = ("health", "rebalance", "reservation", "spot", "state")
NOT_TOLD = "Karpenter is not told, and a job completes: tests/worlds/test_capacity_world.py"
NO_ECR = "the job's image is of a public registry, which needs no role"
OLD_NODES = "nodes of the managed group are there before it is missed"


def _in_the_network() -> Iterator[LeaveOut]:
    lustre = {
        "scratch-988": "lets TCP 988 in from",
        "scratch-1018": "lets TCP 1018 in from",
        "scratch-servers-988-in": "lets TCP 988 in from",
        "scratch-servers-1018-in": "lets TCP 1018 in from",
        "scratch-clients-988-out": "lets TCP 988 out to",
        "scratch-clients-1018-out": "lets TCP 1018 out to",
        "scratch-self-in": "lets TCP 988 in from",
        "scratch-self-out": "lets TCP 988 out to",
    }
    for name, words in lustre.items():
        yield LeaveOut(
            what=f"rule {name}",
            away=partial(rule, name),
            probe="scratch is mounted",
            words=words,
            named=UNREACHED,
            fresh=False,
        )
    yield LeaveOut(
        what="rule home-nfs",
        away=partial(rule, "home-nfs"),
        probe="home is mounted",
        words="lets TCP 2049 in from",
        only_fast="the job does not mount the store",
    )
    yield LeaveOut(
        what="mount target of home",
        away=_mount_target,
        probe="home is mounted",
        words="has a mount target in",
        only_fast="the job does not mount the store",
    )
    yield LeaveOut(
        what="rule nodes-self-out",
        away=partial(rule, "nodes-self-out"),
        probe="EFA reaches the peers",
        words="lets EFA out to",
        named=("EFA does not work",),
        fresh=False,
    )
    yield LeaveOut(
        what="tag trainyard:stack of a security group",
        away=partial(_tag, "nodes", "trainyard:stack"),
        probe="who deploys may delete it",
        words="UnauthorizedOperation",
        only_fast="the job needs no deletion",
    )
    yield LeaveOut(
        what="the rule of the cluster's own group",
        away=_clusters_own_rule,
        probe="a GPU node joins",
        words="lets TCP 443 in from",
        named=NOT_JOINED,
    )
    for what, away, words in (
        ("route network-private", partial(_route, "network-private"), "has no route to 0.0.0.0/0"),
        ("route network-public", partial(_route, "network-public"), "no route to an internet gate"),
        (
            "association of network-private-a",
            partial(_association, "network-private-a"),
            "has no route to 0.0.0.0/0",
        ),
        (
            "association of network-public-a",
            partial(_association, "network-public-a"),
            "no route to an internet gateway",
        ),
        ("NAT gateway", _nat, "is delet"),
    ):
        yield LeaveOut(
            what=what,
            away=away,
            probe="a GPU node boots",
            words=words,
            named=(*NOT_JOINED, *NOT_LAUNCHED),  # Karpenter needs the same way
        )
    for zone in "bc":
        yield LeaveOut(
            what=f"association of network-private-{zone}",
            away=partial(_association, f"network-private-{zone}"),
            probe="system nodes boot in every zone",
            words="has no route to 0.0.0.0/0",
            only_fast=OLD_NODES,
        )


def _of_identities() -> Iterator[LeaveOut]:
    yield LeaveOut(
        what="access entry of the GPU nodes",
        away=_access_entry,
        probe="a GPU node joins",
        words="401",
        named=("needs an access entry",),
    )
    for what, away, words in (
        ("role of the instance profile", _profile, "no instance profile whose role"),
        ("trust of the GPU nodes' role", partial(_trust, "gpu-nodes"), "whose role EC2 may assume"),
        (
            "AmazonEKSWorkerNodePolicy of the GPU nodes",
            partial(_attachment, "gpu-nodes", "AmazonEKSWorkerNodePolicy"),
            "not authorized to perform: ec2:DescribeInstances",
        ),
    ):
        yield LeaveOut(
            what=what,
            away=away,
            probe="a GPU node boots",
            words=words,
            named=(*NOT_JOINED, *NOT_LAUNCHED),
        )
    for role, reason in (("gpu-nodes", NO_ECR), ("system", OLD_NODES)):
        node = "a GPU node" if role == "gpu-nodes" else "a system node"
        yield LeaveOut(
            what=f"AmazonEC2ContainerRegistryPullOnly of {node}",
            away=partial(_attachment, role, "AmazonEC2ContainerRegistryPullOnly"),
            probe=f"{node} pulls from ECR",
            words="ecr:BatchGetImage",
            only_fast=reason,
        )
    yield LeaveOut(
        what="AmazonEKSWorkerNodePolicy of the system nodes",
        away=partial(_attachment, "system", "AmazonEKSWorkerNodePolicy"),
        probe="system nodes boot in every zone",
        words="not authorized to perform: ec2:DescribeInstances",
        only_fast=OLD_NODES,
    )
    for what, away in (
        ("AmazonEKS_CNI_Policy", partial(_attachment, "cni", "AmazonEKS_CNI_Policy")),
        ("trust of the CNI's role", partial(_trust, "cni")),
        ("identity of the CNI", partial(_identity, "aws-node")),
    ):
        yield LeaveOut(
            what=what,
            away=away,
            probe="pods get addresses",
            words="ec2:AssignPrivateIpAddresses",
            named=("cni plugin not initialized",),
        )
    for what, away in (
        ("trust of Karpenter's role", partial(_trust, "karpenter")),
        ("identity of Karpenter", partial(_identity, "karpenter")),
    ):
        yield LeaveOut(
            what=what,
            away=away,
            probe="Karpenter has its role",
            words="no Pod Identity",
            named=("nothing launches nodes",),
            restart="karpenter",
        )


STATEMENTS = {
    "nodes": {
        "LaunchFrom": "a node is launched",
        "LaunchFromOwnTemplates": "a node is launched",
        "LaunchTagged": "a node is launched",
        "TagAtCreation": "a node is launched",
        "TagOwnInstances": "",
        "TerminateOwn": "",
    },
    "identity": {
        "PassNodeRole": "a node is launched",
        "ListProfiles": "",
        "ReadProfiles": "",
        "ReadCluster": "",
        "ReadInterruptions": "",
    },
    "discovery": {
        "ReadRegion": "instances are described",
        "ReadImages": "",
        "ReadPrices": "",
    },
}
"""Inline policy of Karpenter → statement → what a job misses first; empty where a job completes
without it. Which calls miss each of them: tests/rehearsal/aws/test_permissions.py."""


def _of_karpenter() -> Iterator[LeaveOut]:
    for policy, sids in STATEMENTS.items():
        for sid, probe in sids.items():
            if probe:
                yield LeaveOut(
                    what=f"statement {sid}",
                    away=partial(_statement, policy, sid),
                    probe=probe,
                    words="UnauthorizedOperation",
                    named=NOT_LAUNCHED,
                    # It keeps the refusal of a dry run for half an hour.
                    restart="karpenter",
                )
    for kind in EVENTS:
        for what, away in (("rule", _rule_of_events), ("target", _target)):
            yield LeaveOut(
                what=f"{what} of the event {kind}",
                away=partial(away, kind),
                probe=f"{kind} is told",
                words="no message",
                only_fast=NOT_TOLD,
            )
    yield LeaveOut(
        what="policy of the queue",
        away=_queue_policy,
        probe="state is told",
        words="no message",
        only_fast=NOT_TOLD,
    )


def _of_add_ons() -> Iterator[LeaveOut]:
    """A kubelet notices: there is none without a world."""
    for name, named, restart in (
        ("coredns", "DNS does not know the endpoint", ""),
        ("kube-proxy", "nothing launches nodes", "karpenter"),
        ("vpc-cni", "cni plugin not initialized", ""),
        ("eks-pod-identity-agent", "nothing launches nodes", "karpenter"),
        ("aws-fsx-csi-driver", "not found in the list of registered CSI drivers", ""),
    ):
        yield LeaveOut(
            what=f"add-on {name}",
            away=partial(_add_on, name),
            probe="",
            words="",
            named=(named,),
            restart=restart,
            fresh=name == "vpc-cni" or bool(restart),
        )


LEAVE_OUTS = (*_in_the_network(), *_of_identities(), *_of_karpenter(), *_of_add_ons())
REDUNDANT = {
    "nodes-out": "the cluster's own group lets everything out of the same interfaces",
    "nodes-self-in": "the cluster's own group lets its members in, EFA included",
}
"""Rule of the graph → why nobody misses it."""
