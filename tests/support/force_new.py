"""One change for every resource type that makes AWS or Kubernetes replace it: its force-new input.

tests/worlds/test_replaced_world.py makes each change in a world, tests/rehearsal/providers/test_replaced.py
in an account without a cluster, and one `up` must converge.
tests/graph/test_force_new.py compares the table with the types of every recorded stack.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import yaml

from tests.support.stackfile import Edit, at
from tests.worlds.harness import with_l4

NAME, FILE, EDITS = "changed", "Pulumi.changed.yaml", "edits.json"
ROLE = "arn:aws:iam::123456789012:role"
TEAM, OPS = "vision", ("ops", "ops-2")
"""Roles that the account has before the stack names them."""
JOB: dict[str, Any] = {
    "runtime": "once",
    "nodes": 1,
    "pool": "l4",
    "image": "trainer:1",
    "gpus_per_node": 1,
    "script": "sleep 3",
    "allow_no_checkpoint": True,
}
STORES: dict[str, Any] = {
    "scratch": {
        "lustre": {
            "capacity_gib": 1200,
            "throughput_mbps_per_tib": 125,
            "repositories": {"images": {"s3": "s3://sets/images/", "path": "/images"}},
        },
        "data": "delete",
        "teams": "apart",
    },
    "home": {
        "efs": {"only_this_cluster": True, "backup_days": 7},
        "data": "delete",
        "teams": "apart",
    },
    "corpus": {
        "s3": {"writable": True, "versioning": True, "delete_after_days": {"old/": 30}},
        "data": "delete",
        "teams": "apart",
    },
}
OLD_JOB: dict[str, Any] = {
    "pytorch_job": {},
    "nodes": 1,
    "pool": "l4",
    "image": "trainer:1",
    "gpus_per_node": 1,
    "command": ["/bin/sh", "-c", "sleep 3"],
    "allow_no_checkpoint": True,
}
LATER = ("teams", "jobs")
"""Settings of STACK that need what the first `up` makes, or a role."""
STACK = with_l4(
    network={"flow_logs": {"days": 7}},
    storage=STORES,
    registries={"images": {"data": "delete", "keep_images": 30}},
    metrics={
        "alerts": {"emails": ["gpu-oncall@example.com"]},
        "push_gateway": True,
        "managed_prometheus": {"data": "delete"},
    },
    repair={},
    budget={"dollars_a_month": 1000, "emails": ["gpu-budget@example.com"]},
    priorities={"high": 1000},
    teams={TEAM: {"deployer": f"{ROLE}/{TEAM}", "s3_reads": ["s3://sets/images/"]}},
    training_operator={"version": "1.8.1"},
    jobs={"short": JOB, "old": OLD_JOB},
)
_ENVIRONMENT = STACK["trainyard:environment"]
_ENVIRONMENT["cluster"]["admins"] = {"ops": {"role_arn": f"{ROLE}/{OPS[0]}"}}
_ENVIRONMENT["trainer"]["own_runtimes"] = {"once": {"image": "trainer:1", "max_restarts": 0}}
# EC2 deletes no placement group in which a node runs: no job asks for this pool.
_ENVIRONMENT["pools"]["near"] = _ENVIRONMENT["pools"]["l4"] | {"placement": "cluster"}


@dataclass(frozen=True, kw_only=True)
class Change:
    """A force-new input of one resource, changed, and what is replaced with it."""

    replaces: tuple[str, ...]
    """Type and name, without the words before the type's last colon."""
    settings: tuple[Edit, ...] = ()
    """The change in the stack file, where a setting makes it."""
    inputs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Else "type name" → path → new value, in which {} is the old one: a later release of the
    program."""
    program: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Else file → text of the program, and what a later release has in its place: for a name that
    several resources have."""
    allow: str = ""
    """Entry that the preview refuses to replace until `allow_replace` lists it."""
    never: bool = False
    """No entry allows the change."""


def _renamed(*names: str, path: str = "name", value: str = "{}-2") -> dict[str, dict[str, str]]:
    return {name: {path: value} for name in names}


IN_NAMESPACE = (
    "Namespace team-vision",
    "RoleBinding team-vision-deployers",
    "LimitRange team-vision-requests",
    "ResourceQuota team-vision-objects",
    "NetworkPolicy team-vision-network",
    "PodIdentityAssociation team-vision-pods",
)
CHANGES: dict[str, Change] = {
    "another name of an event rule": Change(
        inputs=_renamed("EventRule karpenter-health"),
        replaces=("EventRule karpenter-health", "EventTarget karpenter-health"),
    ),
    "another name of the queue": Change(
        inputs=_renamed("Queue karpenter"), replaces=("Queue karpenter", "QueuePolicy karpenter")
    ),
    "another name of the topic": Change(
        inputs=_renamed("Topic alertmanager-topic"),
        replaces=(
            "Topic alertmanager-topic",
            "TopicSubscription alertmanager-gpu-oncall@example.com",
        ),
    ),
    "another name of the vault": Change(
        inputs=_renamed("Vault home-backups"), replaces=("Vault home-backups",)
    ),
    "another name of the backup plan": Change(
        inputs=_renamed("Plan home-backups"),
        replaces=("Plan home-backups", "Selection home-backups"),
    ),
    "another name of the budget": Change(
        inputs=_renamed("Budget budget"), replaces=("Budget budget",)
    ),
    "another name of the repository": Change(
        inputs=_renamed("Repository images"),
        replaces=("Repository images", "LifecyclePolicy images"),
    ),
    "another name of a parameter": Change(
        inputs=_renamed("Parameter team-vision"), replaces=("Parameter team-vision",)
    ),
    "another name of the log group": Change(
        inputs=_renamed("LogGroup network-flow-logs"),
        replaces=("LogGroup network-flow-logs", "FlowLog network-flow-logs"),
    ),
    "another bucket": Change(
        inputs=_renamed("Bucket corpus", path="bucket"),
        replaces=(
            "Bucket corpus",
            "BucketPublicAccessBlock corpus",
            "BucketPolicy corpus",
            "BucketServerSideEncryptionConfiguration corpus",
            "BucketLifecycleConfiguration corpus",
            "BucketVersioning corpus",
            "PersistentVolume training-corpus-volume",
            "PersistentVolumeClaim training-corpus-claim",
        ),
    ),
    "another placement group": Change(
        inputs=_renamed("PlacementGroup near-nodes"), replaces=("PlacementGroup near-nodes",)
    ),
    "another name of a role's policy": Change(
        inputs=_renamed("RolePolicy karpenter-nodes"), replaces=("RolePolicy karpenter-nodes",)
    ),
    "another role of the GPU nodes": Change(
        inputs=_renamed("Role gpu-nodes"),
        replaces=(
            "Role gpu-nodes",
            "AccessEntry gpu-nodes",
            "RolePolicyAttachment gpu-nodes-AmazonEKSWorkerNodePolicy",
        ),
    ),
    "another instance profile": Change(
        inputs=_renamed("InstanceProfile gpu-nodes"), replaces=("InstanceProfile gpu-nodes",)
    ),
    "another admin": Change(
        settings=(at("cluster.admins", {"ops": {"role_arn": f"{ROLE}/{OPS[1]}"}}),),
        replaces=("AccessEntry cluster-ops", "AccessPolicyAssociation cluster-ops"),
    ),
    "another type of system nodes": Change(
        settings=(at("system_nodes", {"instance_type": "m7i.2xlarge"}),),
        replaces=("NodeGroup system",),
    ),
    "another launch template": Change(
        inputs=_renamed("LaunchTemplate system"),
        replaces=("LaunchTemplate system", "NodeGroup system"),
    ),
    "another range of a private subnet": Change(
        inputs={"Subnet network-private-b": {"cidrBlock": "10.0.96.0/19"}},
        replaces=("Subnet network-private-b", "RouteTableAssociation network-private-b"),
    ),
    "another prefix of a repository": Change(
        settings=(at("storage.scratch.lustre.repositories.images.s3", "s3://sets/others/"),),
        replaces=("DataRepositoryAssociation scratch.images",),
    ),
    "another namespace of a team": Change(
        settings=(at("teams.vision.namespace", "seers"),), replaces=IN_NAMESPACE
    ),
    "another value of a priority": Change(
        settings=(at("priorities", {"high": 2000}),), replaces=("PriorityClass high",)
    ),
    "another run of a job": Change(
        settings=(at("jobs.short.run", 2),), replaces=("TrainJob short",)
    ),
    "another run of a PyTorchJob": Change(
        settings=(at("jobs.old.run", 2),), replaces=("PyTorchJob old",)
    ),
    "another failure policy of a runtime": Change(
        settings=(at("trainer.own_runtimes.once.max_restarts", 3),),
        allow="runtimes.once",
        replaces=("ClusterTrainingRuntime once",),
    ),
    "another role and binding": Change(
        inputs={
            "ClusterRole metrics-reads": {"metadata.name": "{}-2"},
            "ClusterRoleBinding metrics-reads": {"metadata.name": "{}-2", "roleRef.name": "{}-2"},
        },
        replaces=("ClusterRole metrics-reads", "ClusterRoleBinding metrics-reads"),
    ),
    "another role of a namespace": Change(
        inputs=_renamed("Role repair-remembers", path="metadata.name"),
        replaces=("Role repair-remembers",),
    ),
    "another account of pods": Change(
        # Its AWS identity follows, or the new pod could not sign what it sends to the workspace.
        program={
            "trainyard/objects/metrics/managed_prometheus.py": (
                '= "prometheus"',
                '= "prometheus-2"',
            )
        },
        replaces=(
            "ServiceAccount metrics-account",
            "PodIdentityAssociation managed-prometheus",
        ),
    ),
    "another name of a Service": Change(
        inputs=_renamed("Service push-gateway-service", path="metadata.name"),
        replaces=("Service push-gateway-service",),
    ),
    "another name of a policy of admission": Change(
        inputs={
            "ValidatingAdmissionPolicy teams-pods": {"metadata.name": "{}-2"},
            "ValidatingAdmissionPolicyBinding teams-pods": {
                "metadata.name": "{}-2",
                "spec.policyName": "{}-2",
            },
        },
        replaces=(
            "ValidatingAdmissionPolicy teams-pods",
            "ValidatingAdmissionPolicyBinding teams-pods",
        ),
    ),
    "other data of a file": Change(
        inputs=_renamed("ConfigMap exporters-counters", path="data.counters\\.csv", value="{}\n"),
        replaces=("ConfigMap exporters-counters",),
    ),
    "another selector of a DaemonSet": Change(
        inputs={
            "DaemonSet efa-device-plugin": {
                "spec.selector.matchLabels.app\\.kubernetes\\.io/name": "efa-2",
                "spec.template.metadata.labels.app\\.kubernetes\\.io/name": "efa-2",
            }
        },
        replaces=("DaemonSet efa-device-plugin",),
    ),
    "another selector of a Deployment": Change(
        inputs={
            "Deployment push-gateway": {
                "spec.selector.matchLabels.app\\.kubernetes\\.io/name": "push-2",
                "spec.template.metadata.labels.app\\.kubernetes\\.io/name": "push-2",
            }
        },
        replaces=("Deployment push-gateway",),
    ),
    "another release of a chart's name": Change(
        inputs=_renamed("Release nvidia-device-plugin"), replaces=("Release nvidia-device-plugin",)
    ),
    "another name of a pool": Change(
        inputs=_renamed("NodePool l4-pool", path="metadata.name"), replaces=("NodePool l4-pool",)
    ),
    "another name of a node class": Change(
        inputs={
            "EC2NodeClass l4-class": {"metadata.name": "{}-2"},
            "NodePool l4-pool": {"spec.template.spec.nodeClassRef.name": "{}-2"},
        },
        replaces=("EC2NodeClass l4-class",),
    ),
    "another file system": Change(
        inputs=_renamed("FileSystem home", path="creationToken"),
        replaces=(
            "FileSystem home",
            "FileSystemPolicy home",
            "MountTarget home.a",
            "Selection home-backups",
            "AccessPoint team-vision-home",
            "PersistentVolume training-home-volume",
            "PersistentVolumeClaim training-home-claim",
        ),
    ),
    "another deployment of Lustre": Change(
        settings=(at("storage.scratch.lustre", {"capacity_gib": 1200, "deployment": "SCRATCH_2"}),),
        allow="storage.scratch",
        replaces=("LustreFileSystem scratch", "Job team-vision-scratch"),
    ),
    "other zones": Change(
        settings=(at("network.zones", ["us-east-2a", "us-east-2b"]),),
        never=True,
        replaces=("Cluster cluster-eksCluster", "NodeGroup system", "Addon vpc-cni"),
    ),
    # From here on volumes and claims of the jobs have other names, which follow from the namespace.
    "another namespace of the jobs": Change(
        settings=(at("namespace", "others"),), replaces=("Namespace workspace",)
    ),
    "another range of the VPC": Change(
        settings=(at("network.cidr", "10.9.0.0/16"),),
        never=True,
        replaces=(
            "Vpc network",
            "RouteTable network-private",
            "Route network-private",
            "VpcEndpoint network-s3",
            # A second one cannot have its address: no setting moves it to another subnet.
            "NatGateway network-nat-a",
            # Its other inputs, the name and the description, are written once.
            "SecurityGroup nodes",
            "SecurityGroupIngressRule nodes-self-in",
            "SecurityGroupEgressRule nodes-self-out",
        ),
    ),
}
"""Name of each change → the change, in the order in which one world bears them."""
_NAMED = (
    "its name follows from that of a team, a pool or a worker: another name is another resource"
)
_ONE = "its one name is in the program, and nothing else of it makes another one"
_FILED = (
    "its name is in the job's file or follows from its content: another name is another resource"
)
NO_INPUT = {
    "InternetGateway": "its VPC changes in place",
    "Eip": "`domain` has one value",
    "CronJob": "its name is that of the job's entry: another name is another resource",
    "ClusterQueue": _NAMED,
    "LocalQueue": _NAMED,
    "ResourceFlavor": _NAMED,
    "MultiKueueCluster": _NAMED,
    "Secret": f"{_NAMED}, and so is `type`, which the program leaves alone",
    "AdmissionCheck": _ONE,
    "Cohort": _ONE,
    "MultiKueueConfig": _ONE,
    "Topology": _ONE,
    "WorkloadPriorityClass": _ONE,
    "SecretProviderClass": _FILED,
    "TrainingRuntime": _FILED,
    "Workspace": "its key alone does, and the worlds of this table have no key; a preview refuses it",
    "WorkspaceConfiguration": "it goes with its workspace",
}
"""Type → why no input of it replaces it here."""

LATER_RELEASE = """\
import copy, json, pathlib, re
import pulumi

_EDITS = json.loads(pathlib.Path("edits.json").read_text())


def _edited(args):
    edits = _EDITS.get(f"{args.type_.rpartition(':')[2]} {args.name}")
    if edits is None:
        return None
    props = copy.copy(dict(args.props))
    for path, value in edits.items():
        *way, last = (step.replace("\\\\.", ".") for step in re.split(r"(?<!\\\\)\\.", path))
        inside = props
        for step in way:
            inside[step] = dict(inside[step])
            inside = inside[step]
        inside[last] = pulumi.Output.from_input(inside.get(last)).apply(
            lambda old, value=value: value.replace("{}", str(old))
        )
    return pulumi.ResourceTransformResult(props, args.opts)


pulumi.runtime.register_resource_transform(_edited)
"""
"""Beginning of the program: it changes inputs, as a later release of it could."""


class Place(Protocol):
    """Place in which a stack is deployed."""

    checkout: Path
    """The program and its stack file, which may be changed."""

    def up(self) -> str:
        """Deploy the stack. Returns the error; empty where there is none."""
        ...

    def preview(self) -> str:
        """Output of a preview by the engine."""
        ...

    def state(self) -> list[dict[str, Any]]:
        """Resources that the engine believes to exist."""
        ...


def begin(checkout: Path) -> None:
    """Make the program one that a later release can follow."""
    (checkout / EDITS).write_text("{}")
    program = checkout / "__main__.py"
    program.write_text(LATER_RELEASE + program.read_text())


def write(checkout: Path, stack: dict[str, Any]) -> None:
    (checkout / FILE).write_text(yaml.safe_dump({"config": stack}))


def make(change: Change, stack: dict[str, Any], place: Place) -> None:
    """Make a change, and see that one `up` converges, or that the preview refuses it. `stack`: the
    stack file as it is, and then as it has become."""
    before, wanted = _objects(place), copy.deepcopy(stack)
    settings = wanted["trainyard:environment"]
    for edit in change.settings:
        edit(settings)
    if change.allow:
        write(place.checkout, wanted)
        assert "allow_replace" in (said := place.preview()), said
        settings["allow_replace"] = [change.allow]
    write(place.checkout, wanted)
    if change.never:
        assert "destroy first" in (said := place.preview()), said
        write(place.checkout, stack)
        return
    file = place.checkout / EDITS
    edits = json.loads(file.read_text())
    file.write_text(json.dumps(edits | {name: dict(to) for name, to in change.inputs.items()}))
    for name, (old, new) in change.program.items():
        part = place.checkout / name
        part.write_text(part.read_text().replace(old, new))
    assert not (wrong := place.up()), wrong
    settings.pop("allow_replace", None)
    stack.clear()
    stack |= wanted
    after = _objects(place)
    new = {label for label, identity in after.items() if before.get(label) != identity}
    assert not (stayed := {*change.replaces} - new), stayed


def _objects(place: Place) -> dict[str, str]:
    """Type and name of every resource → its id, and when it was made."""
    return {
        f"{one['type'].rpartition(':')[2]} {one['urn'].rpartition('::')[2]}": (
            f"{one['id']} {one.get('created')}"
        )
        for one in place.state()
        if one.get("custom")
    }
