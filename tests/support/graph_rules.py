"""Rules that hold for the graph of every environment. Each rule yields what breaks it, as a
sentence."""

from __future__ import annotations

import graphlib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from policy_pack.taggable import taggable
from tests.support.recording import CHECKOUT, Graph, Node
from trainyard.catalog.aws.ranges import is_internet

FIRST_TOKENS = {
    "ExistingCluster": "BroughtCluster",
    "ExistingEfs": "BroughtEfs",
    "ExistingLustre": "BroughtLustre",
    "ExistingNetwork": "BroughtNetwork",
    "JobNamespace": "Workspace",
}
"""Class that got another name → its token, which stays: deployed state names it."""
CALLED = frozenset(
    FIRST_TOKENS.get(name, name)
    for path in (CHECKOUT / "components").rglob("*.py")
    for name in re.findall(r"^class (\w+)\(", path.read_text(), re.MULTILINE)
) | {"Gangs", "History", "Passes", "Repair"}
"""Classes of components/, whose tokens may leave out words before, and programs, each with a token of its
own."""
Rule = Callable[[Graph], Iterator[str]]
LAST: tuple[tuple[str, str], ...] = (
    ("Release karpenter", "PodIdentityAssociation karpenter"),
    ("Release karpenter", "QueuePolicy karpenter"),
    ("NodePool", "Release karpenter"),
    ("NodePool", "NodeGroup system"),
    ("NodePool", "AccessEntry gpu-nodes"),
    ("NodePool", "SecurityGroupEgressRule nodes-out"),
    ("NodePool", "SecurityGroupIngressRule nodes-itself-in"),
    ("TrainJob", "NodePool"),
    ("TrainJob", "Release kubeflow-trainer"),
    ("LustreFileSystem", "SecurityGroupIngressRule"),
    ("NodeGroup system", "Route"),
    ("Deployment", "NodeGroup system"),
)
"""Pairs of a resource that ends first, and of one that it needs to the end. A type stands for its
resources, of which one at least is needed; a pair without resources says nothing."""
REASONS: dict[str, str] = {}
"""Wildcard action on a wildcard resource → why it must be so. There is none."""


def no_circle(graph: Graph) -> Iterator[str]:
    try:
        graphlib.TopologicalSorter({urn: n.needs for urn, n in graph.nodes.items()}).prepare()
    except graphlib.CycleError as error:
        yield f"a circle: {error.args[1]}"


def _meant(graph: Graph, label: str) -> list[Node]:
    kind, _, name = label.partition(" ")
    return [node for node in graph.of(kind) if not name or node.name == name]


def destroy_order(graph: Graph) -> Iterator[str]:
    """The engine destroys in the reverse order of what needs what."""
    for first, last in LAST:
        lasting = _meant(graph, last)
        for node in _meant(graph, first) if lasting else ():
            needed = graph.before(node)
            if not any(str(one) in needed for one in lasting):
                yield f"{node} may outlive {last}"


def data_outlives_its_users(graph: Graph) -> Iterator[str]:
    """A job ends before the claims that it mounts, and a volume before what it shows: an unmount hangs
    where the file server is gone."""
    claims = graph.of("PersistentVolumeClaim")
    for job in (*graph.of("TrainJob"), *graph.of("PyTorchJob")):
        text, needed = json.dumps(job.inputs), graph.before(job)
        for claim in claims:
            meta = claim.inputs["metadata"]
            mounted = f'"claimName": "{meta["name"]}"' in text
            here = meta["namespace"] == job.inputs["metadata"]["namespace"]
            if mounted and here and str(claim) not in needed:
                yield f"{job} may outlive {claim}"
    for volume in graph.of("PersistentVolume"):
        handle, needed = volume.inputs["spec"]["csi"]["volumeHandle"], graph.before(volume)
        systems = [*graph.of("LustreFileSystem"), *graph.of("FileSystem")]
        for system in (one for one in systems if handle.partition("::")[0] == one.id):
            targets = [t for t in graph.of("MountTarget") if t.inputs["fileSystemId"] == system.id]
            for each in (system, *targets):
                if str(each) not in needed:
                    yield f"{volume} may outlive {each}"


def _subnets_of_nodes(graph: Graph) -> Iterator[tuple[Node, str]]:
    for node_class in graph.of("EC2NodeClass"):
        for term in node_class.inputs["spec"]["subnetSelectorTerms"]:
            yield node_class, term.get("id", "")
    for group in graph.of("NodeGroup"):
        for subnet in group.inputs["subnetIds"]:
            yield group, subnet


def _public(graph: Graph) -> set[str]:
    """Ids of subnets whose route table has a route to an internet gateway."""
    gateways = {node.id for node in graph.of("InternetGateway")}
    tables = {r.inputs["routeTableId"] for r in graph.of("Route") if _gateway(r) in gateways}
    return {
        one.inputs["subnetId"]
        for one in graph.of("RouteTableAssociation")
        if one.inputs["routeTableId"] in tables
    }


def _gateway(route: Node) -> str:
    return route.inputs.get("gatewayId") or ""


def nodes_are_private(graph: Graph) -> Iterator[str]:
    """No node is in a public subnet, gets a public address, or lets one in by its groups."""
    public = _public(graph)
    for node, subnet in _subnets_of_nodes(graph):
        if not subnet or subnet in public:
            yield f"{node} is in {subnet or 'a subnet without an id'}, which is public"
    for node_class in graph.of("EC2NodeClass"):
        if node_class.inputs["spec"].get("associatePublicIPAddress"):
            yield f"{node_class} gives public addresses"
    for subnet in graph.of("Subnet"):
        if subnet.inputs.get("mapPublicIpOnLaunch"):
            yield f"{subnet} gives public addresses"


def stores_are_closed(graph: Graph) -> Iterator[str]:
    """Encrypted, in private subnets, and open to security groups only."""
    public = _public(graph)
    for system in graph.of("FileSystem"):
        if not system.inputs.get("encrypted"):
            yield f"{system} is not encrypted"
    for target in graph.of("MountTarget"):
        if target.inputs["subnetId"] in public:
            yield f"{target} is in a public subnet"
    for lustre in graph.of("LustreFileSystem"):
        if lustre.inputs["subnetIds"] in public:
            yield f"{lustre} is in a public subnet"
    for bucket in graph.of("Bucket"):
        for kind in ("BucketPublicAccessBlock", "BucketServerSideEncryptionConfiguration"):
            names = (bucket.id, bucket.inputs["bucket"])
            beside = [one for one in graph.of(kind) if one.inputs["bucket"] in names]
            if not beside:
                yield f"{bucket} has no {kind}"
            if any(value is False for one in beside for value in one.inputs.values()):
                yield f"{bucket} has a {kind} that is off"


def in_the_zone(graph: Graph, zone: str, subnet: str, more: tuple[str, ...]) -> Iterator[str]:
    """GPU nodes and Lustre in the training zone's subnet, jobs on their nodes. `more`: subnets of
    fallback zones, which pools for jobs of one node may have."""
    for node_class in graph.of("EC2NodeClass"):
        found = [term["id"] for term in node_class.inputs["spec"]["subnetSelectorTerms"]]
        if subnet not in found or {*found} - {subnet, *more}:
            yield f"{node_class} is in {found}"
    for lustre in graph.of("LustreFileSystem"):
        if lustre.inputs["subnetIds"] != subnet:
            yield f"{lustre} is in {lustre.inputs['subnetIds']}"
    if graph.of("FileSystem") and not any(
        target.inputs["subnetId"] == subnet for target in graph.of("MountTarget")
    ):
        yield "EFS has no mount target in the zone"
    for pool in graph.of("NodePool"):
        for term in pool.inputs["spec"]["template"]["spec"]["requirements"]:
            wrong = term["key"] == "topology.kubernetes.io/zone" and zone not in term["values"]
            if wrong:
                yield f"{pool} is in {term['values']}"


def _documents(value: Any) -> Iterator[dict[str, Any]]:
    """IAM policies among some inputs, which are JSON as text."""
    if isinstance(value, str) and value.startswith("{") and '"Statement"' in value:
        yield json.loads(value)
    for inner in value.values() if isinstance(value, dict) else ():
        yield from _documents(inner)


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())


def no_wildcard_without_a_reason(graph: Graph) -> Iterator[str]:
    for node in graph.starting("aws:"):
        for document in _documents(node.inputs):
            for statement in document["Statement"]:
                wild = [a for a in _listed(statement.get("Action")) if "*" in a]
                everything = "*" in _listed(statement.get("Resource"))
                unlimited = statement["Effect"] == "Allow" and everything
                for action in wild if unlimited else ():
                    if action not in REASONS:
                        yield f"{node} allows {action} on *"


def rules_are_narrow(graph: Graph) -> Iterator[str]:
    """Rules that let traffic in: security groups, and ranges of at most a /8. So does the endpoint
    of a cluster."""
    for rule in graph.of("SecurityGroupIngressRule"):
        for key in ("cidrIpv4", "cidrIpv6"):
            if (cidr := rule.inputs.get(key)) and is_internet(cidr):
                yield f"{rule} lets {cidr} in"
    for group in graph.of("SecurityGroup"):
        if group.inputs.get("ingress"):
            yield f"{group} has rules of its own"
    for cluster in graph.of("eks:index:Cluster"):
        if any(map(is_internet, cluster.inputs.get("publicAccessCidrs") or ())):
            yield f"{cluster} answers everybody"


def components_are_complete(graph: Graph) -> Iterator[str]:
    """The engine shows a component as being created until it has registered its outputs."""
    for node in graph.starting("trainyard:"):
        if node.urn not in graph.registered:
            yield f"{node} never says that it is complete"


def components_are_called_as_their_class(graph: Graph) -> Iterator[str]:
    """The token is in the URN of everything below: with another one, all of it would be replaced."""
    for node in graph.nodes.values():
        if not node.options.custom and not node.kind.startswith(("eks:", "pulumi:")):
            if not (found := re.fullmatch(r"trainyard:[a-z]+:(\w+)", node.kind)):
                yield f"{node} has no token of ours"
            elif not any(name.endswith(found[1]) for name in CALLED):
                yield f"{node} is called as no class of components/"


def memory_is_limited(graph: Graph) -> Iterator[str]:
    """A program that leaks memory must end before the system node that it shares with others."""
    for node in (*graph.of("Deployment"), *graph.of("StatefulSet")):
        pod = node.inputs["spec"]["template"]["spec"]
        for container in pod["containers"]:
            if "memory" not in container.get("resources", {}).get("limits", {}):
                yield f"container {container['name']} of {node} may take all memory of its node"


def _team_of(graph: Graph, node: Node) -> str | None:
    """The team that a resource is made for: that of the component above it."""
    above = graph.nodes.get(node.options.parent)
    while above and above.kind != "trainyard:teams:Team":
        above = graph.nodes.get(above.options.parent)
    return above.name.removeprefix("team-") if above else None


def tags_say_whose_it_is(graph: Graph) -> Iterator[str]:
    """Bills, audits and the search for orphans go by tags: project, stack, name, and the team."""
    for node in graph.nodes.values():
        if not taggable(node.kind) and node.kind != "eks:index:Cluster":
            continue
        tags, team = node.inputs.get("tags") or {}, _team_of(graph, node)
        for key in ("project", "stack", "name"):
            if not tags.get(f"trainyard:{key}"):
                yield f"{node} has no tag trainyard:{key}"
        if tags.get("trainyard:team") != team:
            yield f"{node} has the tag trainyard:team {tags.get('trainyard:team')}, and not {team}"


def roles_share_a_boundary(graph: Graph) -> Iterator[str]:
    """A role without the boundary of the others can do what the company forbids."""
    limits = {
        str(role): role.inputs.get("permissionsBoundary") for role in graph.of("aws:iam/role:Role")
    }
    wanted = next((limit for limit in limits.values() if limit), None)
    for role, limit in limits.items():
        if limit != wanted:
            yield f"{role} has the boundary {limit}, and another role {wanted}"


def logs_end(graph: Graph) -> Iterator[str]:
    """CloudWatch keeps a line for ever where nobody says how long."""
    for group in graph.of("LogGroup"):
        if not group.inputs.get("retentionInDays"):
            yield f"{group} has no retention"


def buckets_refuse_plain_http(graph: Graph) -> Iterator[str]:
    """Every call without TLS is denied, on the bucket and on its objects."""
    for bucket in graph.of("Bucket"):
        policies = [
            statement
            for one in graph.of("BucketPolicy")
            if one.inputs["bucket"] in (bucket.id, bucket.inputs["bucket"])
            for statement in json.loads(one.inputs["policy"])["Statement"]
        ]
        if not any(
            each["Effect"] == "Deny"
            and _listed(each["Action"]) == ["s3:*"]
            and len(_listed(each["Resource"])) == 2
            and each["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
            for each in policies
        ):
            yield f"{bucket} answers without TLS"


OF_EVERY_GRAPH: tuple[Rule, ...] = (
    no_circle,
    destroy_order,
    data_outlives_its_users,
    nodes_are_private,
    stores_are_closed,
    no_wildcard_without_a_reason,
    rules_are_narrow,
    components_are_complete,
    components_are_called_as_their_class,
    memory_is_limited,
    tags_say_whose_it_is,
    roles_share_a_boundary,
    logs_end,
    buckets_refuse_plain_http,
)
"""Rules that need nothing but the graph."""
