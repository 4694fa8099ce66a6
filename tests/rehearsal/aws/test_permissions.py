"""What the product's IAM documents let their owners do, statement by statement: one that is taken out
is missed by a call that is named here."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from rehearsal.aws import identity
from rehearsal.kubelet.kubelet import CREDENTIALS
from tests.rehearsal.aws.test_storage import PERSISTENT, open_to_lustre
from tests.rehearsal.aws_world import (
    REGION,
    Account,
    Network,
    create_cluster,
    profile,
    role,
    served,
)
from trainyard.catalog.aws_types.table import AWS_TYPES
from trainyard.objects.deployer import Scope, deployer_policies
from trainyard.objects.iam import policies, s3
from trainyard.objects.iam.policies import Document

GRAPH = Path(__file__).parents[2] / "golden/dev.graph.json"
STACK, CLUSTER, ACCOUNT = "demo", "demo-eks", identity.ACCOUNT
ANYBODY = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
OWN = {
    f"kubernetes.io/cluster/{CLUSTER}": "owned",
    "eks:eks-cluster-name": CLUSTER,
    "karpenter.sh/nodepool": "gpu",
}
"""Tags that Karpenter gives everything it creates."""
IMAGE = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id"
DENIED = {"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"}


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    with pytest.MonkeyPatch.context() as patch:
        folder: Path = tmp_path_factory.mktemp("account")
        with served(folder, patch) as account:
            yield account


def _tags(**more: str) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in (OWN | more).items()]


def _specified(*kinds: str, **more: str) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": _tags(**more)} for kind in kinds]


class Somebody:
    """A role whose policies change from test to test, and a session of it."""

    def __init__(self, account: Account, name: str) -> None:
        self._iam, self._name = account.client("iam"), name
        trusted = policies.document({"Principal": ANYBODY, "Action": "sts:AssumeRole"})
        made = self._iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(trusted))
        keys = account.client("sts").assume_role(
            RoleArn=made["Role"]["Arn"], RoleSessionName="session"
        )
        self.client = partial(account.client, credentials=keys["Credentials"])
        self.keys = {name: keys["Credentials"][key] for name, key in CREDENTIALS.items()}
        """As environment variables of a pod."""

    def may(self, *statements: Document) -> None:
        unnamed = [{k: v for k, v in one.items() if k != "Sid"} for one in statements]
        document = {"Version": "2012-10-17", "Statement": unnamed}
        self._iam.put_role_policy(
            RoleName=self._name, PolicyName="p", PolicyDocument=json.dumps(document)
        )


Calls = dict[str, Callable[[], Any]]


def _refused(calls: Calls) -> set[str]:
    """Names of the calls that IAM refuses; any other answer means that it let them pass."""
    found = set()
    for name, call in calls.items():
        try:
            call()
        except ClientError as error:
            if error.response["Error"]["Code"] in DENIED:
                found.add(name)
            else:
                assert "DryRun" in error.response["Error"]["Code"], (name, error)
    return found


class Karpenter:
    """A cluster with what Karpenter finds there, and the calls that it makes."""

    def __init__(self, account: Account) -> None:
        self.account, network = account, Network(account)
        self.ec2, self.network = account.client("ec2"), network
        self.nodes = profile(account, "node")
        cluster = create_cluster(account, network, name=CLUSTER)
        url = account.client("sqs").create_queue(QueueName="events")["QueueUrl"]
        self.url, self.somebody = url, Somebody(account, "karpenter")
        self.image = account.client("ssm").get_parameter(Name=IMAGE)["Parameter"]["Value"]
        self.template = self.make_template()
        self.instance = self.launch()
        self.documents = {
            "node_role_arn": self.nodes,
            "cluster_arn": cluster["arn"],
            "queue_arn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:events",
        }

    def statements(
        self, cluster: str = CLUSTER, region: str = REGION, **arns: str
    ) -> list[Document]:
        made = (
            policies.karpenter_nodes(region=region, cluster=cluster),
            policies.karpenter_identity(**(self.documents | arns)),
            policies.karpenter_discovery(region=region),
        )
        return [statement for document in made for statement in document["Statement"]]

    def make_template(self, client: Any = None, **tags: str) -> str:
        nic = {"DeviceIndex": 0, "Groups": [self.network.group]}
        made = (client or self.ec2).create_launch_template(
            LaunchTemplateName=f"lt-{secrets.token_hex(4)}",
            LaunchTemplateData={
                "ImageId": self.image,
                "IamInstanceProfile": {"Name": "node"},
                "NetworkInterfaces": [nic],
                "TagSpecifications": _specified("network-interface"),
            },
            TagSpecifications=_specified("launch-template", **tags),
        )
        return made["LaunchTemplate"]["LaunchTemplateId"]

    def launch(self, client: Any = None, template: str = "", **tags: str) -> str:
        override = {"InstanceType": "m7i.large", "SubnetId": self.network.subnets[0]}
        specified = {"LaunchTemplateId": template or self.template, "Version": "$Latest"}
        made = (client or self.ec2).create_fleet(
            Type="instant",
            TargetCapacitySpecification={"TotalTargetCapacity": 1},
            LaunchTemplateConfigs=[
                {"Overrides": [override], "LaunchTemplateSpecification": specified}
            ],
            TagSpecifications=_specified("instance", "volume", "fleet", **tags),
        )
        return made["Instances"][0]["InstanceIds"][0]

    def calls(self) -> Calls:
        """As Karpenter 1.14 makes them, by a name of ours."""
        ec2, iam, sqs = map(self.somebody.client, ("ec2", "iam", "sqs"))
        name = [{"Key": "Name", "Value": "n"}, {"Key": "karpenter.sh/nodeclaim", "Value": "c"}]
        spare, other = self.launch(), self.make_template(x="y")
        return {
            "CreateFleet": lambda: self.launch(ec2),
            "CreateLaunchTemplate": lambda: self.make_template(ec2, z="1"),
            "CreateTags": lambda: ec2.create_tags(Resources=[self.instance], Tags=name),
            "TerminateInstances": lambda: ec2.terminate_instances(InstanceIds=[spare]),
            "DeleteLaunchTemplate": lambda: ec2.delete_launch_template(LaunchTemplateId=other),
            "ListInstanceProfiles": lambda: iam.list_instance_profiles(),
            "GetInstanceProfile": lambda: iam.get_instance_profile(InstanceProfileName="node"),
            "DescribeCluster": lambda: self.somebody.client("eks").describe_cluster(name=CLUSTER),
            "GetQueueUrl": lambda: sqs.get_queue_url(QueueName="events"),
            "ReceiveMessage": lambda: sqs.receive_message(QueueUrl=self.url),
            "DescribeInstances": lambda: ec2.describe_instances(),
            "GetParameter": lambda: self.somebody.client("ssm").get_parameter(Name=IMAGE),
            "GetProducts": lambda: self.somebody.client("pricing").get_products(
                ServiceCode="AmazonEC2",
                Filters=[{"Type": "TERM_MATCH", "Field": "tenancy", "Value": "Shared"}],
            ),
        }


@pytest.fixture(scope="module")
def karpenter(account: Account) -> Karpenter:
    made = Karpenter(account)
    open_to_lustre(made.network)
    return made


MISSED = {
    "LaunchFrom": {"CreateFleet"},
    "LaunchFromOwnTemplates": {"CreateFleet"},
    "LaunchTagged": {"CreateFleet", "CreateLaunchTemplate"},
    "TagAtCreation": {"CreateFleet", "CreateLaunchTemplate"},
    "TagOwnInstances": {"CreateTags"},
    "TerminateOwn": {"TerminateInstances", "DeleteLaunchTemplate"},
    "PassNodeRole": {"CreateFleet"},
    "ListProfiles": {"ListInstanceProfiles"},
    "ReadProfiles": {"GetInstanceProfile"},
    "ReadCluster": {"DescribeCluster"},
    "ReadInterruptions": {"GetQueueUrl", "ReceiveMessage"},
    "ReadRegion": {"DescribeInstances"},
    "ReadImages": {"GetParameter"},
    "ReadPrices": {"GetProducts"},
}
"""Statement of Karpenter's policies → the calls that are refused without it."""


def test_karpenter_may_do_what_it_does(karpenter: Karpenter) -> None:
    assert MISSED.keys() == {one["Sid"] for one in karpenter.statements()}
    karpenter.somebody.may(*karpenter.statements())
    assert _refused(karpenter.calls()) == set()


@pytest.mark.parametrize("sid", MISSED)
def test_a_statement_that_karpenter_lacks_is_missed(karpenter: Karpenter, sid: str) -> None:
    karpenter.somebody.may(*(one for one in karpenter.statements() if one["Sid"] != sid))
    assert _refused(karpenter.calls()) == MISSED[sid]


LAUNCHING = {"CreateFleet", "CreateLaunchTemplate"}
OWN_THINGS = {"CreateTags", "TerminateInstances", "DeleteLaunchTemplate"}


@pytest.mark.parametrize(
    ("wrong", "missed"),
    [
        ({"cluster": "other"}, LAUNCHING | OWN_THINGS),
        (
            {"region": "us-east-1"},
            LAUNCHING | OWN_THINGS | {"DescribeInstances", "GetParameter"},
        ),
        ({"node_role_arn": f"arn:aws:iam::{ACCOUNT}:role/other"}, {"CreateFleet"}),
        ({"cluster_arn": f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/other"}, {"DescribeCluster"}),
        (
            {"queue_arn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:other"},
            {"GetQueueUrl", "ReceiveMessage"},
        ),
    ],
)
def test_policies_for_something_else_are_worth_nothing(
    karpenter: Karpenter, wrong: dict[str, str], missed: set[str]
) -> None:
    karpenter.somebody.may(*karpenter.statements(**wrong))
    assert _refused(karpenter.calls()) == missed


def test_karpenter_touches_nothing_of_another_cluster(karpenter: Karpenter) -> None:
    theirs = {f"kubernetes.io/cluster/{CLUSTER}": "shared"}
    instance, template = karpenter.launch(**theirs), karpenter.make_template(**theirs)
    karpenter.somebody.may(*karpenter.statements())
    ec2 = karpenter.somebody.client("ec2")
    named = [{"Key": "Name", "Value": "n"}]
    other = [{"Key": "eks:eks-cluster-name", "Value": "other"}]
    owner = [{"Key": f"kubernetes.io/cluster/{CLUSTER}", "Value": "owned"}]
    attempts: Calls = {
        "terminate": lambda: ec2.terminate_instances(InstanceIds=[instance]),
        "with its own": lambda: ec2.terminate_instances(InstanceIds=[karpenter.instance, instance]),
        "delete": lambda: ec2.delete_launch_template(LaunchTemplateId=template),
        "launch from": lambda: karpenter.launch(ec2, template),
        "launch as": lambda: karpenter.launch(ec2, **theirs),
        "tag": lambda: ec2.create_tags(Resources=[instance], Tags=named),
        "give away": lambda: ec2.create_tags(Resources=[karpenter.instance], Tags=other),
        "tag freely": lambda: ec2.create_tags(Resources=[karpenter.instance], Tags=owner),
    }
    assert _refused(attempts) == set(attempts)


def test_an_explicit_deny_wins_where_its_condition_holds(karpenter: Karpenter) -> None:
    here = {"StringEquals": {"aws:RequestedRegion": REGION}}
    deny: Document = {
        "Sid": "No",
        "Effect": "Deny",
        "Action": "ec2:Terminate*",
        "Resource": "*",
        "Condition": here,
    }
    karpenter.somebody.may(*karpenter.statements(), deny)
    assert _refused(karpenter.calls()) == {"TerminateInstances"}
    elsewhere = {"StringEquals": {"aws:RequestedRegion": "us-east-1"}}
    karpenter.somebody.may(*karpenter.statements(), deny | {"Condition": elsewhere})
    assert _refused(karpenter.calls()) == set()


@pytest.mark.parametrize(
    ("policy", "missed"),
    [
        ("AmazonEKSWorkerNodePolicy", {"DescribeInstances"}),
        ("AmazonEC2ContainerRegistryPullOnly", {"BatchGetImage"}),
    ],
)
def test_a_node_misses_a_policy_of_its_role(
    account: Account, karpenter: Karpenter, policy: str, missed: set[str]
) -> None:
    node = Somebody(account, f"without-{policy}")
    calls: Calls = {
        "DescribeInstances": lambda: node.client("ec2").describe_instances(),
        "BatchGetImage": lambda: node.client("ecr").batch_get_image(
            repositoryName="train", imageIds=[{"imageTag": "1"}]
        ),
    }
    ecr = account.client("ecr")
    if not any(
        one["repositoryName"] == "train" for one in ecr.describe_repositories()["repositories"]
    ):
        ecr.create_repository(repositoryName="train")
    for one in ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly"):
        if one != policy:
            account.client("iam").attach_role_policy(
                RoleName=f"without-{policy}", PolicyArn=f"arn:aws:iam::aws:policy/{one}"
            )
    assert _refused(calls) == missed


@pytest.mark.parametrize("sid", ["List", "Objects"])
def test_a_pod_of_an_s3_store_misses_a_statement(account: Account, sid: str) -> None:
    pod, bucket = Somebody(account, f"s3-{sid.lower()}"), f"store-{sid.lower()}"
    own = account.client("s3")
    for name in (bucket, f"{bucket}-2"):
        own.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
        own.put_object(Bucket=name, Key="k", Body=b"")
    found = pod.client("s3")
    calls: Calls = {
        "List": lambda: found.list_objects_v2(Bucket=bucket),
        "Objects": lambda: found.get_object(Bucket=bucket, Key="k"),
        "of another": lambda: found.get_object(Bucket=f"{bucket}-2", Key="k"),
        "write": lambda: found.put_object(Bucket=bucket, Key="k", Body=b""),
    }
    every = {
        one["Sid"]: {"Effect": "Allow", **one}
        for one in (s3.list_statement(bucket), s3.object_statement(bucket, writable=False))
    }
    pod.may(*every.values())
    assert _refused(calls) == {"of another", "write"}
    pod.may(*(one for name, one in every.items() if name != sid))
    assert _refused(calls) == {"of another", "write", sid}


DEPLOYING = {
    "ReadRegion": {"DescribeVpcs", "DescribeCluster"},
    "ReadIam": {"GetRole"},
    "ReadParameters": {"GetParameter"},
    "WriteInRegion": {"CreateVpc", "CreateFileSystem of EFS", "CreateFileSystem of FSx"},
    "DeleteOwn": {"DeleteSecurityGroup", "DeletePlacementGroup", "DeleteFileSystem of FSx"},
    "DeleteOfGuardDuty": {"DeleteSecurityGroup of GuardDuty"},
    "TagNew": {"CreateVpc", "CreateFileSystem of EFS"},
    "TagOwn": {"CreateTags", "TagResource of EFS"},
    "TagRules": {"CreateTags of a rule"},
    "TagNotOfOthers": {"CreateFileSystem of FSx", "TagResource of FSx"},
    "WriteSqs": {"CreateQueue"},
    "WriteEvents": {"PutRule"},
    "WriteEks": {"CreateAccessEntry"},
    "WriteRoles": {"CreateRole", "AddRoleToInstanceProfile"},
    "AttachPolicies": {"AttachRolePolicy"},
    "PassRoles": {"AddRoleToInstanceProfile"},
}
"""Statement of the deployer's policies → the calls that are refused without it."""
OTHERS = {"UseKeys", "MakeServiceLinkedRoles", "WriteLogs", "DeleteWithBackup"}
"""Statements about services whose calls nothing here makes: KMS, roles that AWS makes, logs, and the last backup of a
Lustre file system, about which AWS may ask at its deletion."""


def _deploying() -> list[Document]:
    """The statements of whoever deploys the recorded stack."""
    types = {one["type"] for one in json.loads(GRAPH.read_text())} & AWS_TYPES.keys()
    types |= {"aws:eks/cluster:Cluster", "aws:ec2/placementGroup:PlacementGroup"}
    made = deployer_policies(types, Scope(stack=STACK, region=REGION))
    return [one for document in made.values() for one in document["Statement"]]


def _deployer(account: Account, karpenter: Karpenter) -> tuple[Somebody, Calls]:
    deployer = Somebody(account, "ci")
    ec2, iam, eks = map(deployer.client, ("ec2", "iam", "eks"))
    own = [{"ResourceType": "security-group", "Tags": [{"Key": "trainyard:stack", "Value": STACK}]}]
    watched = [own[0] | {"Tags": [{"Key": "GuardDutyManaged", "Value": "true"}]}]

    def group(tags: Any = own) -> str:
        return account.client("ec2").create_security_group(
            GroupName=f"g-{secrets.token_hex(4)}",
            Description="g",
            VpcId=karpenter.network.vpc,
            TagSpecifications=tags,
        )["GroupId"]

    def placement_group() -> str:
        name = f"p-{secrets.token_hex(4)}"
        tags = [own[0] | {"ResourceType": "placement-group"}]
        account.client("ec2").create_placement_group(
            GroupName=name, Strategy="cluster", TagSpecifications=tags
        )
        return name

    arn = role(account, "demo-entered", "ec2.amazonaws.com")
    role(account, "demo-nodes", "ec2.amazonaws.com")
    account.client("iam").create_instance_profile(InstanceProfileName="demo-nodes")
    trusted = json.dumps(policies.trust("ec2.amazonaws.com"))
    admin = "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"
    return deployer, {
        "DescribeVpcs": lambda: ec2.describe_vpcs(),
        "DescribeCluster": lambda: eks.describe_cluster(name=CLUSTER),
        "GetRole": lambda: iam.get_role(RoleName="demo-nodes"),
        "GetParameter": lambda: deployer.client("ssm").get_parameter(Name=IMAGE),
        "CreateVpc": lambda: ec2.create_vpc(
            CidrBlock="10.0.0.0/16",
            TagSpecifications=[{"ResourceType": "vpc", "Tags": STACK_TAG}],
            DryRun=True,
        ),
        "DeleteSecurityGroup": lambda: ec2.delete_security_group(GroupId=group(), DryRun=True),
        "DeleteSecurityGroup of GuardDuty": lambda: ec2.delete_security_group(
            GroupId=group(watched), DryRun=True
        ),
        "DeletePlacementGroup": lambda: ec2.delete_placement_group(GroupName=placement_group()),
        "CreateQueue": lambda: deployer.client("sqs").create_queue(QueueName="demo-q"),
        "PutRule": lambda: deployer.client("events").put_rule(
            Name="demo-r", EventPattern='{"source": ["aws.ec2"]}'
        ),
        "CreateAccessEntry": lambda: _once(
            lambda: eks.create_access_entry(clusterName=CLUSTER, principalArn=arn)
        ),
        "CreateRole": lambda: _once(
            lambda: iam.create_role(RoleName="demo-new", AssumeRolePolicyDocument=trusted)
        ),
        "AttachRolePolicy": lambda: iam.attach_role_policy(RoleName="demo-nodes", PolicyArn=admin),
        "AddRoleToInstanceProfile": lambda: _once(
            lambda: iam.add_role_to_instance_profile(
                InstanceProfileName="demo-nodes", RoleName="demo-nodes"
            )
        ),
    }


STACK_TAG = [{"Key": "trainyard:stack", "Value": STACK}]
OTHER_TAG = [{"Key": "trainyard:stack", "Value": "other"}]


def _lustre(client: Any, network: Network, tags: Any = STACK_TAG) -> Any:
    return client.create_file_system(
        FileSystemType="LUSTRE",
        FileSystemTypeVersion="2.15",
        StorageCapacity=1200,
        SubnetIds=network.subnets[:1],
        SecurityGroupIds=[network.group],
        LustreConfiguration=PERSISTENT,
        Tags=tags,
    )["FileSystem"]


def _efs(client: Any, tags: Any = STACK_TAG) -> str:
    return client.create_file_system(CreationToken=secrets.token_hex(4), Tags=tags)["FileSystemId"]


def _storing(account: Account, karpenter: Karpenter, deployer: Somebody) -> Calls:
    """Calls of whoever deploys that give tags, or that need them."""
    network, (ec2, efs, fsx) = karpenter.network, map(deployer.client, ("ec2", "efs", "fsx"))

    def rule() -> str:
        """A new one, which has no tag yet."""
        port = 1024 + secrets.randbelow(40_000)
        into = {"IpProtocol": "tcp", "FromPort": port, "ToPort": port}
        made = network.ec2.authorize_security_group_ingress(
            GroupId=network.group,
            IpPermissions=[into | {"IpRanges": [{"CidrIp": "10.0.0.0/8"}]}],
        )
        return made["SecurityGroupRules"][0]["SecurityGroupRuleId"]

    own_fsx, own_efs = account.client("fsx"), account.client("efs")
    mine, shared = _lustre(own_fsx, network), _efs(own_efs)
    more = [{"Key": "cost-center", "Value": "vision"}]
    account.client("ec2").create_tags(Resources=[network.subnets[1]], Tags=STACK_TAG)
    return {
        "CreateTags": lambda: ec2.create_tags(Resources=[network.subnets[1]], Tags=more),
        "CreateTags of a rule": lambda: ec2.create_tags(Resources=[rule()], Tags=STACK_TAG),
        "CreateFileSystem of EFS": lambda: _efs(efs),
        "TagResource of EFS": lambda: efs.tag_resource(ResourceId=shared, Tags=more),
        "CreateFileSystem of FSx": lambda: _lustre(fsx, network),
        "TagResource of FSx": lambda: fsx.tag_resource(ResourceARN=mine["ResourceARN"], Tags=more),
        "DeleteFileSystem of FSx": lambda: fsx.delete_file_system(
            FileSystemId=_lustre(own_fsx, network)["FileSystemId"]
        ),
    }


def _once(call: Callable[[], Any]) -> None:
    """The call, which may have been made before."""
    try:
        call()
    except ClientError as error:
        if error.response["Error"]["Code"] in DENIED:
            raise
        known = ("EntityAlreadyExists", "ResourceInUseException", "LimitExceeded")
        assert error.response["Error"]["Code"] in known, error


def test_whoever_deploys_misses_each_statement(account: Account, karpenter: Karpenter) -> None:
    every = _deploying()
    assert {one["Sid"] for one in every} == DEPLOYING.keys() | OTHERS
    deployer, calls = _deployer(account, karpenter)
    calls |= _storing(account, karpenter, deployer)
    deployer.may(*every)
    assert _refused(calls) == set()
    for sid, missed in DEPLOYING.items():
        deployer.may(*(one for one in every if one["Sid"] != sid))
        assert _refused(calls) == missed, sid


def test_whoever_deploys_cannot_give_away_more_than_the_stack_has(
    account: Account, karpenter: Karpenter
) -> None:
    somebody = Somebody(account, "ci-2")
    somebody.may(*_deploying())
    ec2, iam = somebody.client("ec2"), somebody.client("iam")
    admin = "arn:aws:iam::aws:policy/AdministratorAccess"
    role(account, "demo-mine", "ec2.amazonaws.com")
    account.client("ec2").create_placement_group(GroupName="others", Strategy="cluster")
    attempts: Calls = {
        "an administrator": lambda: iam.attach_role_policy(RoleName="demo-mine", PolicyArn=admin),
        "a role of others": lambda: iam.delete_role(RoleName="karpenter"),
        "a group of others": lambda: ec2.delete_security_group(
            GroupId=karpenter.network.group, DryRun=True
        ),
        "a placement group of others": lambda: ec2.delete_placement_group(GroupName="others"),
        "another region": lambda: somebody.client("ec2", region="us-east-1").create_vpc(
            CidrBlock="10.0.0.0/16", DryRun=True
        ),
    }
    assert _refused(attempts) == set(attempts)


def test_whoever_deploys_tags_nothing_of_others_and_so_deletes_nothing_of_them(
    account: Account, karpenter: Karpenter
) -> None:
    somebody, network = Somebody(account, "ci-3"), karpenter.network
    somebody.may(*_deploying())
    ec2, efs, fsx = map(somebody.client, ("ec2", "efs", "fsx"))
    lustre = _lustre(account.client("fsx"), network, OTHER_TAG)
    nobodys, theirs = (_efs(account.client("efs"), tags) for tags in ([], OTHER_TAG))
    attempts: Calls = {
        "a VPC": lambda: ec2.create_tags(Resources=[network.vpc], Tags=STACK_TAG),
        "the tags of a VPC": lambda: ec2.delete_tags(Resources=[network.vpc], Tags=OTHER_TAG),
        "an EFS of nobody": lambda: efs.tag_resource(ResourceId=nobodys, Tags=STACK_TAG),
        "an EFS of others": lambda: efs.tag_resource(ResourceId=theirs, Tags=STACK_TAG),
        "a Lustre of others": lambda: fsx.tag_resource(
            ResourceARN=lustre["ResourceARN"], Tags=STACK_TAG
        ),
        "its deletion": lambda: fsx.delete_file_system(FileSystemId=lustre["FileSystemId"]),
    }
    assert _refused(attempts) == set(attempts)
