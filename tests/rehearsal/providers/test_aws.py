"""The aws plugin against the rehearsal's account: each type is made, read back by its id alone,
changed and deleted."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest

from rehearsal import paths
from rehearsal.aws import identity, own
from rehearsal.providers.aws.account import Account as Aws_
from rehearsal.providers.aws.account import Clients, Failed
from rehearsal.providers.aws.comparison import filled, same, shaped
from rehearsal.providers.aws.provider import KINDS, Aws
from rehearsal.providers.aws.resource_type import dig, nested
from rehearsal.providers.call import Call
from rehearsal.providers.plugin import Diff
from rehearsal.providers.problems import Invalid, NotReady, Refused
from rehearsal.providers.wire import UNKNOWN, Properties
from tests.rehearsal.aws_world import (
    AT_ONCE,
    NEVER,
    REGION,
    Account,
    policy,
    served,
    speak_to,
    trust,
)
from tests.support import account_log
from trainyard.catalog.aws_types.table import AWS_TYPES
from trainyard.objects.deployer import Scope, deployer_policies
from trainyard.objects.iam.policies import lifecycle
from trainyard.parts.parts import SERVICES

DOCUMENT = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": ["*"]}],
    }
)
SEND = {
    "Effect": "Allow",
    "Principal": {"Service": ["events.amazonaws.com", "sqs.amazonaws.com"]},
    "Action": "sqs:SendMessage",
}
ADMIN_POLICY = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
BOUNDARY = "arn:aws:iam::123456789012:policy/boundary"
OTHER_BOUNDARY = f"{BOUNDARY}-of-the-company"
TOKENS = {token.split(":")[-1]: token for token in KINDS}
OF_SERVICES = [
    import_module(f"tests.rehearsal.aws.own.test_{each.name}")
    for each in iter_modules(own.__path__)
]
"""The tests of services with a file of their own: `things` makes an object of each of their types, beside
those that are there, and `UPDATES` are changes in place."""


@dataclass(kw_only=True)
class Thing:
    """A resource as the engine keeps it."""

    type: str
    inputs: Properties
    id: str = ""
    state: Properties = field(default_factory=dict)
    imported: str = ""
    """What `pulumi import` takes; empty: `import_id` says it."""

    def call(self, **details: Any) -> Call:
        return Call(urn=f"urn:pulumi:dev::project::{TOKENS[self.type]}::it", id=self.id, **details)

    @property
    def import_id(self) -> str:
        """What `pulumi import` takes, where that is not the id."""
        told = self.state
        return {
            "Route": lambda: f"{told['routeTableId']}_{told['destinationCidrBlock']}",
            "RouteTableAssociation": lambda: f"{told['subnetId']}/{told['routeTableId']}",
            "EventTarget": lambda: f"{told['rule']}/{told['targetId']}",
            "PodIdentityAssociation": lambda: f"{told['clusterName']},{self.id}",
        }.get(self.type, lambda: self.imported or self.id)()


class Engine:
    """The little of an engine that a test needs: check, then create, keeping what was given
    back."""

    def __init__(self, plugin: Aws) -> None:
        self.plugin, self.things = plugin, []

    def make(self, type_: str, /, **inputs: Any) -> Thing:
        if KINDS[TOKENS[type_]].tagging:
            inputs["tags"] = {"Name": type_, "trainyard:name": "it"} | inputs.get("tags", {})
        thing = Thing(type=type_, inputs=inputs)
        thing.inputs = self.plugin.check(
            thing.call(seed=str(len(self.things)).encode()), {}, inputs
        )
        thing.id, thing.state = self.plugin.create(thing.call(), thing.inputs)
        self.things.append(thing)
        return thing

    def diff(self, thing: Thing, **changed: Any) -> Diff:
        new = self.plugin.check(thing.call(), thing.inputs, {**thing.inputs, **changed})
        return self.plugin.diff(thing.call(), thing.inputs, new, thing.state)

    def change(self, thing: Thing, **changed: Any) -> Properties:
        new = {**thing.inputs, **changed}
        thing.state = self.plugin.update(thing.call(), thing.inputs, new, thing.state)
        thing.inputs = new
        return thing.state

    def destroy(self) -> None:
        for thing in reversed(self.things):
            self.plugin.delete(thing.call(), thing.state)


def configured() -> Aws:
    plugin = Aws()
    plugin.configure({"region": REGION})
    return plugin


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    with (
        pytest.MonkeyPatch.context() as patch,
        served(tmp_path_factory.mktemp("account"), patch) as account,
    ):
        speak_to(account, patch)
        for arn in (BOUNDARY, OTHER_BOUNDARY):
            policy(account, arn.rpartition("/")[2], Action="*", Resource="*")
        stop = threading.Event()
        keeper = threading.Thread(target=_keep, args=(account, stop), daemon=True)
        keeper.start()
        yield account
        stop.set()
        keeper.join()


def _keep(account: Account, stop: threading.Event) -> None:
    """EKS's part inside the cluster, and every instance a Ready node at once."""
    ec2 = account.client("ec2")
    while not stop.wait(0.1):
        reservations = ec2.describe_instances()["Reservations"]
        account.kubernetes.nodes.clear()
        account.kubernetes.join(
            *(one["InstanceId"] for part in reservations for one in part["Instances"])
        )
        account.keep()


@pytest.fixture(scope="module")
def engine(account: Account) -> Engine:
    return Engine(configured())


def _bucket(make: Callable[..., Thing]) -> list[Thing]:
    """A bucket and each of its settings."""
    bucket = make("Bucket", bucket="our-corpus", forceDestroy=True)
    of_it = {"bucket": bucket.id}
    blocked = dict.fromkeys(
        ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets"), True
    )
    encryption = {
        "applyServerSideEncryptionByDefault": {"sseAlgorithm": "AES256"},
        "bucketKeyEnabled": False,
    }
    remains = {
        "id": "abort-uploads",
        "status": "Enabled",
        "filter": {"prefix": ""},
        "abortIncompleteMultipartUpload": {"daysAfterInitiation": 7},
    }
    gone = {
        "id": "delete tmp/",
        "status": "Enabled",
        "filter": {"prefix": "tmp/"},
        "expiration": {"days": 3},
    }
    old = {
        "id": "old-versions",
        "status": "Enabled",
        "filter": {"prefix": ""},
        "expiration": {"expiredObjectDeleteMarker": True},
        "noncurrentVersionExpiration": {"noncurrentDays": 30},
    }
    return [
        bucket,
        make("BucketPublicAccessBlock", **of_it, **blocked),
        make("BucketPolicy", **of_it, policy=DOCUMENT),
        make("BucketServerSideEncryptionConfiguration", **of_it, rules=[encryption]),
        make("BucketLifecycleConfiguration", **of_it, rules=[remains, gone, old]),
        make("BucketVersioning", **of_it, versioningConfiguration={"status": "Enabled"}),
    ]


@pytest.fixture(scope="module")
def world(engine: Engine) -> dict[str, Thing]:
    """One object of every type."""
    make = engine.make
    vpc = make("Vpc", cidrBlock="10.0.0.0/16", enableDnsHostnames=True)
    subnets = [
        make(
            "Subnet",
            vpcId=vpc.id,
            cidrBlock=f"10.0.{n * 16}.0/20",
            availabilityZone=f"{REGION}{zone}",
            mapPublicIpOnLaunch=n == 0,
        )
        for n, zone in enumerate("ac")
    ]
    gateway = make("InternetGateway", vpcId=vpc.id)
    address = make("Eip", domain="vpc")
    table = make("RouteTable", vpcId=vpc.id)
    route = make(
        "Route", routeTableId=table.id, destinationCidrBlock="0.0.0.0/0", gatewayId=gateway.id
    )
    association = make("RouteTableAssociation", routeTableId=table.id, subnetId=subnets[0].id)
    nat = make("NatGateway", allocationId=address.id, subnetId=subnets[0].id)
    endpoint = make(
        "VpcEndpoint",
        vpcId=vpc.id,
        serviceName=f"com.amazonaws.{REGION}.s3",
        routeTableIds=[table.id],
    )
    group = make("SecurityGroup", vpcId=vpc.id, description="nodes")
    egress = make(
        "SecurityGroupEgressRule", securityGroupId=group.id, ipProtocol="-1", cidrIpv4="0.0.0.0/0"
    )
    ingress = make(
        "SecurityGroupIngressRule",
        securityGroupId=group.id,
        ipProtocol="-1",
        description="among nodes",
        referencedSecurityGroupId=group.id,
    )
    policies = [
        f"arn:aws:iam::aws:policy/{name}"
        for name in (
            "AmazonEKSClusterPolicy",
            "AmazonEKSWorkerNodePolicy",
            "AmazonEC2ContainerRegistryReadOnly",
        )
    ]
    role = make(
        "Role",
        assumeRolePolicy=trust("ec2.amazonaws.com", "eks.amazonaws.com", "pods.eks.amazonaws.com"),
        permissionsBoundary=BOUNDARY,
    )
    attached = [make("RolePolicyAttachment", role=role.id, policyArn=policy) for policy in policies]
    other = make("Role", assumeRolePolicy=trust("ec2.amazonaws.com"))
    inline = make("RolePolicy", role=other.id, policy=DOCUMENT)
    profile = make("InstanceProfile", role=other.id)
    cluster = make(
        "Cluster",
        name="demo",
        roleArn=role.state["arn"],
        version="1.34",
        bootstrapSelfManagedAddons=False,
        vpcConfig={"subnetIds": [subnet.id for subnet in subnets], "endpointPrivateAccess": True},
        accessConfig={"authenticationMode": "API"},
        kubernetesNetworkConfig={"serviceIpv4Cidr": "172.20.0.0/16"},
    )
    addon = make(
        "Addon",
        clusterName="demo",
        addonName="vpc-cni",
        addonVersion="v1.20.4-eksbuild.2",
        resolveConflictsOnCreate="OVERWRITE",
        resolveConflictsOnUpdate="PRESERVE",
    )
    template = make(
        "LaunchTemplate",
        name="system",
        metadataOptions={"httpTokens": "required", "httpPutResponseHopLimit": 1},
        blockDeviceMappings=[
            {
                "deviceName": "/dev/xvda",
                "ebs": {"volumeSize": 30, "volumeType": "gp3", "encrypted": "true"},
            }
        ],
        tagSpecifications=[{"resourceType": "volume", "tags": {"a": "b"}}],
    )
    nodes = make(
        "NodeGroup",
        clusterName="demo",
        nodeRoleArn=role.state["arn"],
        subnetIds=[subnets[1].id],
        instanceTypes=["m7i.large"],
        scalingConfig={"minSize": 1, "maxSize": 3, "desiredSize": 1},
        labels={"role": "system"},
    )
    entry = make(
        "AccessEntry",
        clusterName="demo",
        principalArn=other.state["arn"],
        kubernetesGroups=["trainyard:team-vision:member"],
    )
    parameter = make(
        "Parameter", name="/trainyard/dev/teams/vision", type="String", insecureValue="{}"
    )
    access = make(
        "AccessPolicyAssociation",
        clusterName="demo",
        principalArn=other.state["arn"],
        policyArn=ADMIN_POLICY,
        accessScope={"type": "cluster"},
    )
    identity_ = make(
        "PodIdentityAssociation",
        clusterName="demo",
        namespace="kube-system",
        serviceAccount="karpenter",
        roleArn=role.state["arn"],
    )
    queue = make("Queue", messageRetentionSeconds=300)
    statement = {"Version": "2012-10-17", "Statement": [{**SEND, "Resource": queue.state["arn"]}]}
    queue_policy = make("QueuePolicy", queueUrl=queue.id, policy=json.dumps(statement))
    lines = make("LogGroup", name="/aws/eks/demo/cluster", retentionInDays=30)
    flow = make(
        "FlowLog",
        vpcId=vpc.id,
        trafficType="ALL",
        logDestinationType="cloud-watch-logs",
        logDestination=lines.state["arn"],
        iamRoleArn=role.state["arn"],
    )
    topic = make("Topic", kmsMasterKeyId="alias/aws/sns")
    reader = make(
        "TopicSubscription",
        topic=topic.state["arn"],
        protocol="email",
        endpoint="gpu-oncall@example.com",
    )
    rule = make("EventRule", eventPattern=json.dumps({"source": ["aws.ec2"]}))
    target = make("EventTarget", rule=rule.id, targetId="karpenter", arn=queue.state["arn"])
    lustre, linked = (
        make(
            "LustreFileSystem",
            deploymentType="PERSISTENT_2",
            storageCapacity=4800,
            dataCompressionType="LZ4",
            fileSystemTypeVersion="2.15",
            perUnitStorageThroughput=250,
            subnetIds=subnets[1].id,
            securityGroupIds=[group.id],
        )
        for _ in range(2)
    )
    link = make(
        "DataRepositoryAssociation",
        fileSystemId=linked.id,
        fileSystemPath="/data",
        dataRepositoryPath="s3://sets/a/",
        s3={"autoImportPolicy": {"events": ["NEW"]}},
        batchImportMetaDataOnCreate=True,
    )
    home = make("FileSystem", encrypted=True, throughputMode="elastic")
    placed = make("PlacementGroup", strategy="cluster")
    repository = make(
        "Repository",
        name="dev/train",
        imageTagMutability="IMMUTABLE",
        imageScanningConfiguration={"scanOnPush": True},
        forceDelete=True,
    )
    lifecycle_ = make("LifecyclePolicy", repository=repository.id, policy=lifecycle(30))
    mount = make(
        "MountTarget", fileSystemId=home.id, subnetId=subnets[1].id, securityGroups=[group.id]
    )
    point = make(
        "AccessPoint",
        fileSystemId=home.id,
        posixUser={"uid": 1001, "gid": 1001},
        rootDirectory={
            "path": "/teams/vision",
            "creationInfo": {"ownerUid": 1001, "ownerGid": 1001, "permissions": "0770"},
        },
    )
    door = make("FileSystemPolicy", fileSystemId=home.id, policy=DOCUMENT)
    buckets = _bucket(make)
    made = (
        *buckets,
        door,
        parameter,
        vpc,
        subnets[0],
        gateway,
        address,
        table,
        route,
        association,
        nat,
        endpoint,
        group,
        egress,
        ingress,
        role,
        attached[0],
        inline,
        profile,
        cluster,
        addon,
        nodes,
        entry,
        access,
        identity_,
        queue,
        queue_policy,
        topic,
        reader,
        lines,
        flow,
        rule,
        target,
        lustre,
        link,
        home,
        mount,
        point,
        placed,
        template,
        repository,
        lifecycle_,
    )
    around = {thing.type: thing for thing in made}
    of_services = [thing for each in OF_SERVICES for thing in each.things(make, around)]
    return around | {thing.type: thing for thing in of_services}


def test_the_world_has_an_object_of_every_type(world: dict[str, Thing]) -> None:
    assert sorted(world) == sorted(TOKENS)


@pytest.mark.parametrize("type_", sorted(TOKENS))
def test_an_object_read_back_by_its_id_alone_is_what_the_program_asked_for(
    type_: str, engine: Engine, world: dict[str, Thing]
) -> None:
    thing = world[type_]
    found = engine.plugin.read(Thing(type=type_, inputs={}, id=thing.import_id).call(), {}, {})
    assert found
    assert (found.id or thing.import_id) == thing.id
    imported = Thing(type=type_, inputs=found.inputs, id=thing.id, state=found.state)
    assert (
        engine.plugin.diff(imported.call(), found.inputs, thing.inputs, found.state).changes == {}
    )


@pytest.mark.parametrize("type_", sorted(TOKENS))
def test_a_refresh_of_an_object_nobody_touched_changes_nothing(
    type_: str, engine: Engine, world: dict[str, Thing]
) -> None:
    thing = world[type_]
    found = engine.plugin.read(thing.call(), thing.inputs, thing.state)
    assert found
    assert found.inputs == thing.inputs


def test_an_interface_endpoint_is_what_the_program_asked_for_and_moves_to_another_group(
    engine: Engine, world: dict[str, Thing]
) -> None:
    group, vpc = world["SecurityGroup"].id, world["Vpc"].id
    other = engine.make("SecurityGroup", vpcId=vpc, description="endpoints")
    thing = engine.make(
        "VpcEndpoint",
        vpcId=vpc,
        serviceName=f"com.amazonaws.{REGION}.ec2",
        vpcEndpointType="Interface",
        subnetIds=[world["Subnet"].id],
        securityGroupIds=[group],
        privateDnsEnabled=True,
    )
    found = engine.plugin.read(thing.call(), thing.inputs, thing.state)
    assert found and found.inputs == thing.inputs
    assert not engine.diff(thing, securityGroupIds=[other.id]).replaces
    assert engine.diff(thing, serviceName=f"com.amazonaws.{REGION}.sqs").replaces
    engine.change(thing, securityGroupIds=[other.id])
    found = engine.plugin.read(thing.call(), thing.inputs, thing.state)
    assert found and found.state["securityGroupIds"] == [other.id]
    for each in (thing, other):
        engine.plugin.delete(each.call(), each.state)
        engine.things.remove(each)


def test_a_lifecycle_that_the_program_takes_out_is_taken_away(
    engine: Engine, world: dict[str, Thing]
) -> None:
    thing = world["FileSystem"]
    engine.change(thing, lifecyclePolicies=[{"transitionToIa": "AFTER_7_DAYS"}])
    engine.change(thing, lifecyclePolicies=None)
    found = engine.plugin.read(thing.call(), thing.inputs, thing.state)
    assert found and "lifecyclePolicies" not in found.state
    assert engine.diff(thing).changes == {}


@pytest.mark.parametrize(
    ("type_", "change", "replaces"),
    [
        ("Vpc", {"cidrBlock": "10.1.0.0/16"}, True),
        ("Vpc", {"enableDnsHostnames": False}, False),
        ("Subnet", {"availabilityZone": f"{REGION}c"}, True),
        ("Route", {"gatewayId": "igw-1"}, False),
        ("SecurityGroup", {"description": "x"}, True),
        ("SecurityGroupIngressRule", {"description": "x"}, False),
        ("Role", {"name": "x"}, True),
        ("Cluster", {"accessConfig": {"bootstrapClusterCreatorAdminPermissions": False}}, True),
        ("Cluster", {"version": "1.35"}, False),
        ("NodeGroup", {"instanceTypes": ["m7i.xlarge"]}, True),
        ("NodeGroup", {"scalingConfig": {"minSize": 1, "maxSize": 9, "desiredSize": 1}}, False),
        (
            "AccessPolicyAssociation",
            {"accessScope": {"type": "namespace", "namespaces": ["a"]}},
            True,
        ),
        ("LustreFileSystem", {"storageCapacity": 7200}, False),
        ("LustreFileSystem", {"securityGroupIds": ["sg-1"]}, True),
        ("LustreFileSystem", {"efaEnabled": True}, True),
        ("LustreFileSystem", {"backupId": "backup-0123456789abcdef0"}, True),
        ("LustreFileSystem", {"metadataConfiguration": {"mode": "AUTOMATIC"}}, True),
        ("DataRepositoryAssociation", {"dataRepositoryPath": "s3://sets/b/"}, True),
        (
            "DataRepositoryAssociation",
            {"s3": {"autoImportPolicy": {"events": ["NEW", "CHANGED"]}}},
            False,
        ),
        ("MountTarget", {"subnetId": "subnet-1"}, True),
        ("VpcEndpoint", {"routeTableIds": ["rtb-1"]}, False),
        ("Queue", {"region": "us-east-1"}, True),
        ("LifecyclePolicy", {"repository": "dev/other"}, True),
    ],
)
def test_a_change_replaces_where_no_update_can_do_it(
    type_: str, change: Properties, replaces: bool, engine: Engine, world: dict[str, Thing]
) -> None:
    diff = engine.diff(world[type_], **change)
    assert diff.changes
    assert bool(diff.replaces) is replaces


def test_a_mount_target_goes_before_another_one_comes(
    engine: Engine, world: dict[str, Thing]
) -> None:
    """EFS takes one a zone (pulumi-aws, provider/resources.go, DeleteBeforeReplace)."""
    assert engine.diff(world["MountTarget"], subnetId="subnet-1").delete_before_replace


@pytest.mark.parametrize(
    ("type_", "change"),
    [
        ("Vpc", {"enableDnsHostnames": False, "enableDnsSupport": False}),
        ("Subnet", {"mapPublicIpOnLaunch": False}),
        ("Role", {"assumeRolePolicy": trust("ec2.amazonaws.com", "pods.eks.amazonaws.com")}),
        ("Role", {"permissionsBoundary": OTHER_BOUNDARY}),
        ("RolePolicy", {"policy": DOCUMENT.replace("Get", "Put")}),
        ("EventRule", {"eventPattern": json.dumps({"source": ["aws.health"]})}),
        (
            "Cluster",
            {"vpcConfig": {"endpointPrivateAccess": True, "publicAccessCidrs": ["192.0.2.0/24"]}},
        ),
        ("NodeGroup", {"scalingConfig": {"minSize": 1, "maxSize": 4, "desiredSize": 2}}),
        ("LaunchTemplate", {"metadataOptions": {"httpTokens": "optional"}}),
        ("Cluster", {"enabledClusterLogTypes": ["audit"]}),
        ("Cluster", {"upgradePolicy": {"supportType": "STANDARD"}}),
        ("Queue", {"messageRetentionSeconds": 600}),
        ("LifecyclePolicy", {"policy": lifecycle(10)}),
        ("LustreFileSystem", {"storageCapacity": 7200, "automaticBackupRetentionDays": 7}),
        ("LustreFileSystem", {"weeklyMaintenanceStartTime": "7:16:30"}),
        (
            "FileSystem",
            {
                "lifecyclePolicies": [
                    {"transitionToIa": "AFTER_30_DAYS"},
                    {"transitionToArchive": "AFTER_90_DAYS"},
                ]
            },
        ),
        ("FileSystem", {"throughputMode": "provisioned", "provisionedThroughputInMibps": 128}),
        ("DataRepositoryAssociation", {"s3": {"autoImportPolicy": {"events": ["NEW", "DELETED"]}}}),
        *(change for each in OF_SERVICES for change in getattr(each, "UPDATES", ())),
    ],
)
def test_an_update_is_there_when_the_object_is_read_again(
    type_: str, change: Properties, engine: Engine, world: dict[str, Thing]
) -> None:
    thing = world[type_]
    engine.change(thing, **change)
    found = engine.plugin.read(thing.call(), thing.inputs, thing.state)
    assert found
    assert found.inputs == thing.inputs


@pytest.mark.parametrize(
    ("type_", "change", "named"),
    [
        ("Role", {"description": "x"}, "description of a aws:iam/role"),
        ("Role", {"permissionsBoundary": None}, "permissionsBoundary of a aws:iam/role"),
        ("NodeGroup", {"labels": {"role": "x"}}, "labels of a aws:eks/nodeGroup"),
        (
            "LustreFileSystem",
            {"perUnitStorageThroughput": None},
            "perUnitStorageThroughput of a aws:fsx",
        ),
    ],
)
def test_a_change_it_cannot_make_is_refused_by_name_in_the_preview_already(
    type_: str, change: Properties, named: str, engine: Engine, world: dict[str, Thing]
) -> None:
    thing = world[type_]
    with pytest.raises(Refused, match=f"cannot change {named}"):
        engine.plugin.update(
            thing.call(preview=True), thing.inputs, {**thing.inputs, **change}, thing.state
        )


def test_a_rule_and_a_target_follow_what_is_replaced_in_place(
    engine: Engine, world: dict[str, Thing]
) -> None:
    others = (
        engine.make("SecurityGroup", vpcId=world["Vpc"].id, description="x"),
        engine.make("Queue", messageRetentionSeconds=60),
    )
    moved = (
        (world["SecurityGroupIngressRule"], "referencedSecurityGroupId", others[0].id),
        (world["EventTarget"], "arn", others[1].state["arn"]),
    )
    for thing, key, value in moved:
        before = thing.inputs[key]
        assert not engine.diff(thing, **{key: value}).replaces
        for wanted in (value, before):
            engine.change(thing, **{key: wanted})
            found = engine.plugin.read(thing.call(), thing.inputs, thing.state)
            assert found and found.inputs == thing.inputs and found.state[key] == wanted
    for each in others:
        engine.plugin.delete(each.call(), each.state)
        engine.things.remove(each)


def test_groups_that_eks_gives_to_nodes_are_no_difference_after_an_import(
    engine: Engine, world: dict[str, Thing]
) -> None:
    role = engine.make("Role", assumeRolePolicy=trust("ec2.amazonaws.com"))
    wanted = {"principalArn": role.state["arn"], "type": "EC2_LINUX"}
    thing = engine.make("AccessEntry", clusterName=world["Cluster"].id, **wanted)
    found = engine.plugin.read(Thing(type="AccessEntry", inputs={}, id=thing.id).call(), {}, {})
    assert found and found.inputs["kubernetesGroups"] == ["system:nodes"]
    imported = Thing(type="AccessEntry", inputs=found.inputs, id=thing.id, state=found.state)
    diff = engine.plugin.diff(imported.call(), found.inputs, thing.inputs, found.state)
    assert diff.changes == {}
    for each in (thing, role):
        engine.plugin.delete(each.call(), each.state)
        engine.things.remove(each)


def test_another_role_takes_the_place_of_the_profiles_one(
    engine: Engine, world: dict[str, Thing]
) -> None:
    profile, role = world["InstanceProfile"], world["Role"]
    before = profile.inputs["role"]
    assert engine.change(profile, role=role.id)["role"] == role.id
    assert engine.change(profile, role=before)["role"] == before


def test_a_role_leaves_its_instance_profiles_before_it_goes(engine: Engine) -> None:
    role = engine.make("Role", assumeRolePolicy=trust("ec2.amazonaws.com"))
    profile = engine.make("InstanceProfile", role=role.id)
    for each in (role, profile):
        engine.plugin.delete(each.call(), each.state)
        engine.things.remove(each)


@pytest.mark.parametrize(
    "type_", sorted(token for token, name in TOKENS.items() if KINDS[name].tagging)
)
def test_a_tag_is_set_and_taken_away_again(
    type_: str, engine: Engine, world: dict[str, Thing]
) -> None:
    thing, before = world[type_], world[type_].inputs["tags"]
    assert engine.change(thing, tags={**before, "team": "red"})["tagsAll"]["team"] == "red"
    assert "team" not in engine.change(thing, tags=before)["tagsAll"]


def test_a_tag_that_somebody_added_by_hand_is_seen_by_a_refresh(
    account: Account, engine: Engine, world: dict[str, Thing]
) -> None:
    vpc = world["Vpc"]
    account.client("ec2").create_tags(Resources=[vpc.id], Tags=[{"Key": "by", "Value": "hand"}])
    found = engine.plugin.read(vpc.call(), vpc.inputs, vpc.state)
    account.client("ec2").delete_tags(Resources=[vpc.id], Tags=[{"Key": "by"}])
    assert found
    assert found.inputs["tags"] == {**vpc.inputs["tags"], "by": "hand"}


def test_what_programs_read_of_an_object_is_there(world: dict[str, Thing]) -> None:
    cluster, lustre = world["Cluster"].state, world["LustreFileSystem"].state
    assert cluster["endpoint"].startswith("https://")
    assert cluster["certificateAuthority"]["data"]
    assert cluster["vpcConfig"]["clusterSecurityGroupId"].startswith("sg-")
    assert cluster["identities"][0]["oidcs"][0]["issuer"].startswith("https://oidc.eks.")
    assert lustre["networkInterfaceIds"]
    assert lustre["dnsName"].startswith(world["LustreFileSystem"].id)
    assert lustre["mountName"]
    assert world["Eip"].state["publicIp"]
    assert world["Queue"].state["url"] == world["Queue"].id


def test_ids_have_the_genuine_providers_form(world: dict[str, Thing]) -> None:
    role, other = world["Role"].id, world["AccessEntry"].inputs["principalArn"]
    assert (
        world["RolePolicyAttachment"].id == f"{role}/arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
    )
    assert world["AccessEntry"].id == f"demo:{other}"
    assert world["AccessPolicyAssociation"].id == f"demo#{other}#{ADMIN_POLICY}"
    assert world["Addon"].id == "demo:vpc-cni"
    assert world["Route"].id == f"r-{world['RouteTable'].id}1080289494"
    assert world["PodIdentityAssociation"].id.startswith("a-")


def test_a_new_security_group_lets_nothing_out_by_itself(
    account: Account, engine: Engine, world: dict[str, Thing]
) -> None:
    group = engine.make("SecurityGroup", vpcId=world["Vpc"].id, description="closed")
    rules = account.client("ec2").describe_security_group_rules(
        Filters=[{"Name": "group-id", "Values": [group.id]}]
    )
    assert rules["SecurityGroupRules"] == []


def test_a_name_is_kept_while_the_object_lives_and_a_given_one_is_deleted_before_it_is_replaced(
    engine: Engine,
) -> None:
    role = Thing(type="Role", inputs={})
    named = engine.plugin.check(role.call(), {"name": "it-1234567"}, {"assumeRolePolicy": DOCUMENT})
    assert named["name"] == "it-1234567"
    changed = {**named, "region": "us-east-1"}
    assert not engine.plugin.diff(role.call(), named, changed, named).delete_before_replace
    own = {**changed, "name": "the-role"}
    assert engine.plugin.diff(
        role.call(), {**named, "name": "the-role"}, own, named
    ).delete_before_replace


def test_a_preview_knows_the_inputs_and_says_which_fields_only_aws_knows(engine: Engine) -> None:
    cluster = Thing(
        type="Cluster",
        inputs={"name": "x", "vpcConfig": {"subnetIds": ["subnet-1"]}, "tags": {"a": "b"}},
    )
    id_, state = engine.plugin.create(cluster.call(preview=True), cluster.inputs)
    assert id_ == ""
    assert state["vpcConfig"] == {
        "subnetIds": ["subnet-1"],
        "clusterSecurityGroupId": UNKNOWN,
        "vpcId": UNKNOWN,
    }
    assert state["tagsAll"] == {"a": "b"}
    assert "endpoint" not in state


def test_every_input_the_program_gives_is_implemented() -> None:
    graph = json.loads((paths.HOME / "tests/golden/dev.graph.json").read_text())
    given = {
        (made["type"], key)
        for made in graph
        if made["type"].startswith("aws:")
        for key in made["inputs"]
    }
    assert given <= {(kind.token, key) for kind in KINDS.values() for key in kind.inputs | {"tags"}}


def test_types_properties_settings_and_functions_it_does_not_have_are_refused_by_name(
    engine: Engine,
) -> None:
    plugin = engine.plugin
    with pytest.raises(Refused, match="does not implement aws:dynamodb/table:Table"):
        plugin.check(Call(urn="urn:pulumi:dev::project::aws:dynamodb/table:Table::it"), {}, {})
    with pytest.raises(Invalid, match="ipv6CidrBlock of aws:ec2/vpc:Vpc"):
        plugin.check(Thing(type="Vpc", inputs={}).call(), {}, {"ipv6CidrBlock": "::/56"})
    with pytest.raises(Invalid, match="tags of aws:ec2/route:Route"):
        plugin.check(Thing(type="Route", inputs={}).call(), {}, {"tags": {"a": "b"}})
    with pytest.raises(Invalid, match="ignoreTags"):
        plugin.check_config({"ignoreTags": "{}"})
    with pytest.raises(Refused, match="does not implement aws:ec2/getAmi:getAmi"):
        plugin.invoke("aws:ec2/getAmi:getAmi", {})


# Who speaks to AWS, and in which account.


def settings(**given: Any) -> Properties:
    """Provider settings as the engine hands them over: what is no text as JSON."""
    words = {k: v if isinstance(v, str) else json.dumps(v) for k, v in given.items()}
    return {"region": REGION, **words}


def plugin_of(**given: Any) -> Aws:
    plugin = Aws()
    assert plugin.check_config(settings(**given)) == settings(**given)
    plugin.configure(settings(**given))
    return plugin


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ({"allowedAccountIds": ["999999999999"]}, True),
        ({"allowedAccountIds": ["999999999999", identity.ACCOUNT]}, False),
        ({"forbiddenAccountIds": [identity.ACCOUNT]}, True),
        ({"forbiddenAccountIds": ["999999999999"]}, False),
    ],
)
def test_an_account_that_is_not_allowed_is_refused_before_anything_is_made(
    account: Account, given: Any, refused: bool
) -> None:
    """In the words of the genuine provider (terraform-provider-aws, internal/conns/config.go)."""
    if not refused:
        plugin_of(**given)
        return
    with pytest.raises(Refused, match=f"^AWS account ID not allowed: {identity.ACCOUNT}$"):
        plugin_of(**given)


@pytest.fixture
def role_for(account: Account) -> Iterator[Callable[..., str]]:
    """role_for(name, *callers): a role that these may assume, and that may do everything."""
    iam, names = account.client("iam"), list[str]()
    anything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [anything]})

    def make(name: str, *callers: str) -> str:
        document = json.loads(trust("ec2.amazonaws.com"))
        document["Statement"][0]["Principal"] = {"AWS": list(callers)}
        made = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(document))
        iam.put_role_policy(RoleName=name, PolicyName="all", PolicyDocument=policy)
        names.append(name)
        return made["Role"]["Arn"]

    yield make
    for name in names:
        iam.delete_role_policy(RoleName=name, PolicyName="all")
        iam.delete_role(RoleName=name)


def test_roles_are_assumed_one_from_the_other_and_the_last_one_makes_the_objects(
    role_for: Callable[..., str],
) -> None:
    hub = role_for("hub", f"arn:aws:iam::{identity.ACCOUNT}:root")
    deployer = role_for("deployer", hub)
    chain = [{"roleArn": hub}, {"roleArn": deployer, "sessionName": "ci"}]
    sts = plugin_of(assumeRoles=chain).clients.get("sts", REGION)
    arn = f"arn:aws:sts::{identity.ACCOUNT}:assumed-role/deployer/ci"
    assert sts.get_caller_identity()["Arn"] == arn


@pytest.mark.parametrize("role", ["nobody", "aloof"])
def test_a_role_that_is_not_there_or_does_not_trust_the_caller_is_not_assumed(
    account: Account, role_for: Callable[..., str], role: str
) -> None:
    if role == "aloof":
        role_for(role, f"arn:aws:iam::{identity.ACCOUNT}:role/other")
    arn = f"arn:aws:iam::{identity.ACCOUNT}:role/{role}"
    with pytest.raises(Refused, match=rf"^IAM Role \({arn}\) cannot be assumed: .*AccessDenied"):
        plugin_of(assumeRoles=[{"roleArn": arn}])


def test_a_profile_is_one_of_the_aws_cli(
    account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = account.client("iam").create_access_key(UserName=identity.DEVELOPER)["AccessKey"]
    (tmp_path / "config").write_text(
        f"[profile corp]\naws_access_key_id = {key['AccessKeyId']}\n"
        f"aws_secret_access_key = {key['SecretAccessKey']}\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    credentials = plugin_of(profile="corp").clients.session.get_credentials()
    assert credentials and credentials.access_key == key["AccessKeyId"]
    monkeypatch.delenv("AWS_DATA_PATH", raising=False)
    with pytest.raises(Refused, match="^failed to get shared config profile, nobody$"):
        plugin_of(profile="nobody")
    monkeypatch.setenv("AWS_DATA_PATH", str(tmp_path))
    with pytest.raises(Refused, match="^failed to get shared config profile, nobody$"):
        plugin_of(profile="nobody")


def test_default_tags_are_put_on_in_the_create_call_and_changed_with_the_provider(
    account: Account,
) -> None:
    def engine_of(**tags: str) -> Engine:
        return Engine(plugin_of(defaultTags={"tags": tags}))

    first = engine_of(cost="17", team="all")
    vpc = first.make("Vpc", cidrBlock="10.77.0.0/16", tags={"team": "red"})
    own = {"Name": "Vpc", "trainyard:name": "it", "team": "red"}
    assert vpc.state["tags"] == own, "its own tag counts"
    assert vpc.state["tagsAll"] == {**own, "cost": "17"}
    assert first.diff(vpc).changes == {}
    found = first.plugin.read(vpc.call(), vpc.inputs, vpc.state)
    assert found and (found.inputs["tags"], found.state["tags"]) == (own, own)

    second = engine_of(owner="ops")
    assert second.diff(vpc).changes == {"tagsAll": "update"}
    assert second.change(vpc)["tagsAll"] == {**own, "owner": "ops"}
    assert second.diff(vpc).changes == {}
    second.plugin.delete(vpc.call(), vpc.state)


def test_an_id_that_says_too_little_is_refused_with_the_form_it_should_have(engine: Engine) -> None:
    addon = Thing(type="Addon", inputs={}, id="vpc-cni")
    with pytest.raises(Refused, match="is {clusterName}:{addonName}, not vpc-cni"):
        engine.plugin.read(addon.call(), {}, {})


def test_the_partition_is_told(engine: Engine) -> None:
    assert engine.plugin.invoke("aws:index/getPartition:getPartition", {})["partition"] == "aws"


def test_an_interrupted_create_keeps_what_was_made(
    account: Account, engine: Engine, world: dict[str, Thing]
) -> None:
    account.speed(NEVER)
    address = engine.make("Eip")
    nat = Thing(
        type="NatGateway", inputs={"allocationId": address.id, "subnetId": world["Subnet"].id}
    )
    interrupted = threading.Event()
    interrupted.set()
    with pytest.raises(NotReady, match="interrupted while waiting") as caught:
        engine.plugin.create(nat.call(cancelled=interrupted), nat.inputs)
    account.speed(AT_ONCE)
    assert caught.value.id.startswith("nat-")
    assert caught.value.state["subnetId"] == world["Subnet"].id
    engine.things.append(
        Thing(type="NatGateway", inputs=nat.inputs, id=caught.value.id, state=caught.value.state)
    )


def test_an_update_finishes_what_an_interrupted_create_left_undone(engine: Engine) -> None:
    vpc, gateway = engine.make("Vpc", cidrBlock="10.8.0.0/16"), engine.make("InternetGateway")
    gateway.inputs["vpcId"] = vpc.id
    assert "vpcId" not in gateway.state
    assert engine.change(gateway)["vpcId"] == vpc.id


def test_a_throttled_call_is_made_again(account: Account, engine: Engine) -> None:
    fault = {"kind": "throttle", "service": "sqs", "action": "CreateQueue", "count": 3}
    account.world("POST", "faults", fault)
    assert engine.make("Queue").id


def test_a_lost_answer_is_shown_and_the_call_is_not_repeated(
    account: Account, engine: Engine
) -> None:
    before = len(account.client("ec2").describe_vpcs()["Vpcs"])
    account.world(
        "POST",
        "faults",
        {"kind": "lose-answer", "service": "ec2", "action": "CreateVpc", "count": 1},
    )
    with pytest.raises(Refused, match="ec2:create_vpc"):
        engine.make("Vpc", cidrBlock="10.9.0.0/16", tags={"lost": "yes"})
    ghosts = account.client("ec2").describe_vpcs(Filters=[{"Name": "tag:lost", "Values": ["yes"]}])[
        "Vpcs"
    ]
    assert len(account.client("ec2").describe_vpcs()["Vpcs"]) == before + 1
    engine.things.insert(0, Thing(type="Vpc", inputs={}, id=ghosts[0]["VpcId"]))


def test_a_delete_waits_until_what_depends_on_the_object_is_gone_but_no_longer() -> None:
    answers = iter([Failed("ec2", "delete_vpc", "DependencyViolation", "has dependencies")])

    def remove() -> None:
        for fault in answers:
            raise fault

    aws = Aws_(Clients(REGION), REGION, Call(urn="urn"))
    aws.patiently(10, remove)

    def never() -> None:
        raise Failed("ec2", "delete_vpc", "DependencyViolation", "has dependencies")

    with pytest.raises(Failed, match="has dependencies"):
        aws.patiently(0, never)


def test_other_errors_of_a_delete_are_not_waited_out_and_an_absent_object_is_deleted() -> None:
    aws = Aws_(Clients(REGION), REGION, Call(urn="urn"))

    def fail(code: str) -> Any:
        raise Failed("eks", "delete_cluster", code, "Cluster has nodegroups attached")

    with pytest.raises(Failed, match="nodegroups attached"):
        aws.patiently(60, lambda: fail("ResourceInUseException"))
    aws.patiently(60, lambda: fail("ResourceNotFoundException"))


def test_a_provider_of_another_region_is_another_provider(engine: Engine) -> None:
    assert engine.plugin.diff_config({"region": "a"}, {"region": "b"}).replaces == {"region"}
    assert not engine.plugin.diff_config(
        {"region": "a"}, {"region": "a", "defaultTags": "{}"}
    ).replaces


def test_documents_are_compared_by_meaning_and_plain_lists_as_sets() -> None:
    one = '{"Statement": [{"Action": ["a", "b"], "Resource": ["*"]}]}'
    assert same(one, '{"Statement":{"Resource":"*","Action":["b","a"]}}')
    assert not same(one, '{"Statement":{"Resource":"*","Action":["b","c"]}}')
    assert same(["b", "a"], ["a", "b"])
    assert same(None, [])
    assert not same(0, None)


def test_a_path_leads_into_objects_and_to_the_first_of_a_list_and_back() -> None:
    made = nested({"Targets.0.Id": "a", "Targets.0.Arn": "b", "Rule": "c"})
    assert made == {"Targets": [{"Id": "a", "Arn": "b"}], "Rule": "c"}
    assert dig(made, "Targets.0.Arn") == "b"
    assert dig(made, "Targets.1.Arn") is dig(made, "Other.Arn") is None


def test_defaults_fill_what_is_not_given_and_only_what_the_program_speaks_of_is_compared() -> None:
    assert filled({"a": {"x": 1}}, {"a": {"y": 2}, "b": 3}) == {"a": {"x": 1, "y": 2}, "b": 3}
    assert shaped({"x": 1, "y": 2}, {"x": 5}) == {"x": 1}


def test_after_everything_is_destroyed_the_account_is_empty(
    account: Account, engine: Engine, world: dict[str, Thing]
) -> None:
    assert world
    engine.destroy()
    assert account.types() == set()


def test_whatever_was_asked_of_the_account_is_in_the_deployers_policy(
    account: Account, engine: Engine, world: dict[str, Thing]
) -> None:
    """Up, changes, refreshes and destruction of every type, by the account's own log."""
    assert world and account.types() == set()
    calls = account_log.asked(paths.LOGS)
    policies = deployer_policies(
        AWS_TYPES,
        Scope(
            stack="dev",
            region=REGION,
            own_buckets=("it-*",),
            boundary=BOUNDARY,
            services=SERVICES,
        ),
    )
    by_tests = {"iam:CreateAccessKey", "iam:CreatePolicy", "sts:AssumeRole"}
    beyond = calls - account_log.allowed(policies) - by_tests
    assert len(calls) > 80 and beyond == {"sts:GetCallerIdentity"}, "which needs no permission"
