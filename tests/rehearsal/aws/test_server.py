"""The embedded account as a server: who may call, what goes wrong on purpose, what does not
exist."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from botocore.session import Session

from rehearsal import paths
from rehearsal.aws import identity
from rehearsal.kubelet import aws
from tests.rehearsal.aws_world import (
    NEVER,
    REGION,
    Account,
    Network,
    create_cluster,
    profile,
    refused,
    role,
    served,
    speak_to,
    trust,
)


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with served(tmp_path, monkeypatch) as account:
        yield account


def launch(account: Account, network: Network, profile_name: str) -> str:
    newest = (
        "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id"
    )
    image = account.client("ssm").get_parameter(Name=newest)
    made = network.ec2.run_instances(
        MinCount=1,
        MaxCount=1,
        ImageId=image["Parameter"]["Value"],
        InstanceType="m7i.large",
        SubnetId=network.subnets[0],
        IamInstanceProfile={"Name": profile_name},
    )
    return made["Instances"][0]["InstanceId"]


def token(account: Account, credentials: dict[str, str] | None, cluster: str) -> str:
    """As `aws eks get-token` makes it."""
    client = account.client("sts", credentials)
    client.meta.events.register(
        "before-sign.sts.GetCallerIdentity",
        lambda request, **_: request.headers.add_header("x-k8s-aws-id", cluster),
    )
    url = client.generate_presigned_url("get_caller_identity", ExpiresIn=60, HttpMethod="GET")
    return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


def review(account: Account, text: str) -> dict:
    return account.world("POST", "token-review", {"spec": {"token": text}})[1]["status"]


def test_the_developer_is_a_user_of_the_account(account: Account) -> None:
    arn = account.client("sts").get_caller_identity()["Arn"]
    assert arn == f"arn:aws:iam::{identity.ACCOUNT}:user/{identity.DEVELOPER}"


def test_an_unknown_access_key_is_refused_as_each_service_does(account: Account) -> None:
    nobody = {"AccessKeyId": "AKIAIOSFODNN7EXAMPLE", "SecretAccessKey": "x"}
    with refused("AuthFailure"):
        account.client("ec2", nobody).describe_vpcs()
    with refused("InvalidClientTokenId"):
        account.client("iam", nobody).list_roles()
    with refused("UnrecognizedClientException"):
        account.client("eks", nobody).list_clusters()


@pytest.mark.parametrize(
    ("service", "operation"),
    [
        ("ec2", "describe_vpn_concentrators"),
        ("eks", "list_capabilities"),
        ("lambda", "list_functions"),
    ],
)
def test_what_the_account_does_not_implement_is_named(
    account: Account, service: str, operation: str
) -> None:
    given = {"clusterName": "demo"} if service == "eks" else {}
    with pytest.raises(ClientError, match="the rehearsal's account does not implement") as caught:
        getattr(account.client(service), operation)(**given)
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 501
    assert service in str(caught.value)


def test_an_instance_gets_its_roles_credentials_and_may_do_what_the_role_allows(
    account: Account,
) -> None:
    profile(account, "node", "AmazonEKSWorkerNodePolicy")
    instance = launch(account, Network(account), "node")
    status, credentials = account.world("GET", f"instances/{instance}/credentials")
    assert status == 200
    arn = account.client("sts", credentials).get_caller_identity()["Arn"]
    assert arn == f"arn:aws:sts::{identity.ACCOUNT}:assumed-role/node/{instance}"
    assert account.client("ec2", credentials).describe_instances()["Reservations"]
    with refused("UnauthorizedOperation"):
        account.client("ec2", credentials).create_vpc(CidrBlock="10.0.0.0/16")
    with refused("AccessDeniedException"):
        account.client("eks", credentials).list_clusters()
    with refused("AccessDenied"):
        account.client("iam", credentials).list_roles()


def test_a_deny_wins_over_an_allow(account: Account) -> None:
    arn = role(account, "r", "ec2.amazonaws.com")
    statements = [
        {"Effect": "Allow", "Action": "ec2:Describe*", "Resource": "*"},
        {"Effect": "Deny", "Action": "ec2:DescribeVpcs", "Resource": "*"},
    ]
    policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
    account.client("iam").put_role_policy(RoleName="r", PolicyName="p", PolicyDocument=policy)
    document = json.loads(trust("ec2.amazonaws.com"))
    document["Statement"].append(
        {
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:aws:iam::{identity.ACCOUNT}:root"},
            "Action": "sts:AssumeRole",
        }
    )
    account.client("iam").update_assume_role_policy(
        RoleName="r", PolicyDocument=json.dumps(document)
    )
    credentials = account.client("sts").assume_role(RoleArn=arn, RoleSessionName="session")[
        "Credentials"
    ]
    assert account.client("ec2", credentials).describe_subnets()
    with refused("UnauthorizedOperation"):
        account.client("ec2", credentials).describe_vpcs()


def test_a_role_that_does_not_trust_the_caller_is_not_assumed(account: Account) -> None:
    arn = role(account, "r", "ec2.amazonaws.com")
    with refused("AccessDenied"):
        account.client("sts").assume_role(RoleArn=arn, RoleSessionName="session")


def test_an_instance_without_a_profile_has_no_credentials(account: Account) -> None:
    assert account.world("GET", "instances/i-0123456789abcdef0/credentials")[0] == 404


def test_the_creator_of_a_cluster_is_its_administrator(account: Account) -> None:
    create_cluster(account, Network(account))
    status = review(account, token(account, None, "demo"))
    assert status["authenticated"]
    assert status["user"]["groups"] == ["system:masters"]


def test_a_token_for_another_cluster_or_of_a_stranger_is_worth_nothing(account: Account) -> None:
    create_cluster(account, Network(account))
    stranger = {"AccessKeyId": identity.DEVELOPER_KEY, "SecretAccessKey": "guessed"}
    assert not review(account, token(account, None, "other"))["authenticated"]
    assert not review(account, token(account, stranger, "demo"))["authenticated"]
    assert not review(account, "k8s-aws-v1.rubbish")["authenticated"]


def test_a_node_is_let_in_only_by_an_access_entry_of_its_role(account: Account) -> None:
    network, arn = Network(account), profile(account, "node")
    create_cluster(account, network)
    instance = launch(account, network, "node")
    credentials = account.world("GET", f"instances/{instance}/credentials")[1]
    assert not review(account, token(account, credentials, "demo"))["authenticated"]
    account.client("eks").create_access_entry(
        clusterName="demo", principalArn=arn, type="EC2_LINUX"
    )
    name = network.ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][
        0
    ]["PrivateDnsName"]
    assert review(account, token(account, credentials, "demo"))["user"] == {
        "username": f"system:node:{name}",
        "groups": ["system:bootstrappers", "system:nodes"],
    }


def test_a_throttled_call_fails_once_and_then_works(account: Account) -> None:
    account.world(
        "POST", "faults", {"kind": "throttle", "service": "ec2", "action": "Describe*", "count": 1}
    )
    with refused("RequestLimitExceeded"):
        account.client("ec2").describe_vpcs()
    assert account.client("ec2").describe_vpcs()
    assert account.world("GET", "faults")[1] == []


def test_a_lost_answer_leaves_what_was_made(account: Account) -> None:
    account.world("POST", "faults", {"kind": "lose-answer", "action": "CreateVpc"})
    with refused("InternalFailure"):
        account.client("ec2").create_vpc(CidrBlock="10.0.0.0/16")
    assert "vpc" in account.types()


def test_a_retry_with_the_same_token_makes_nothing_twice(account: Account) -> None:
    network = Network(account)
    address = network.ec2.allocate_address(Domain="vpc")["AllocationId"]
    ids = {
        network.ec2.create_nat_gateway(
            SubnetId=network.subnets[0], AllocationId=address, ClientToken="once"
        )["NatGateway"]["NatGatewayId"]
        for _ in range(2)
    }
    assert len(ids) == 1


def test_an_unknown_kind_of_fault_is_refused(account: Account) -> None:
    status, answer = account.world("POST", "faults", {"kind": "earthquake"})
    assert status == 400
    assert "no fault of kind 'earthquake'" in answer["message"]


def test_an_empty_account_has_an_empty_inventory(account: Account) -> None:
    assert account.world("GET", "inventory") == (200, [])


def test_a_repository_is_in_the_inventory_with_its_tags(account: Account) -> None:
    """Without it no world of a stack with `registries` came up: its machines ask for the inventory."""
    account.client("ecr").create_repository(
        repositoryName="dev/train", tags=[{"Key": "team", "Value": "vision"}]
    )
    status, [found] = account.world("GET", "inventory")
    assert (status, found["type"], found["id"]) == (200, "ecr-repository", "dev/train")
    assert found["tags"] == {"team": "vision"}


def test_every_call_is_one_line_in_the_log(account: Account) -> None:
    with refused("InvalidVpcID.NotFound"):
        account.client("ec2").describe_vpcs(VpcIds=["vpc-0"])
    line = json.loads((paths.LOGS / "account.jsonl").read_text().splitlines()[-1])
    assert (line["call"], line["status"], line["region"]) == ("ec2:DescribeVpcs", 400, REGION)
    assert "vpc-0" in line["answer"]


def test_a_queue_cannot_be_made_again_right_after_it_was_deleted(account: Account) -> None:
    account.speed(NEVER)
    sqs = account.client("sqs")
    sqs.delete_queue(QueueUrl=sqs.create_queue(QueueName="q")["QueueUrl"])
    with pytest.raises(ClientError, match="60 seconds"):
        sqs.create_queue(QueueName="q")


@pytest.mark.parametrize(
    ("name", "document", "code"),
    [
        ("n" * 65, trust("ec2.amazonaws.com"), "ValidationError"),
        ("with space", trust("ec2.amazonaws.com"), "ValidationError"),
        ("r", trust("ec2"), "MalformedPolicyDocument"),
    ],
)
def test_a_role_that_iam_would_refuse_is_refused(
    account: Account, name: str, document: str, code: str
) -> None:
    with refused(code):
        account.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=document)


def test_an_inline_policy_has_a_largest_size_and_a_role_with_policies_stays(
    account: Account,
) -> None:
    iam, arn = (
        account.client("iam"),
        role(account, "r", "ec2.amazonaws.com", "AmazonEKSWorkerNodePolicy"),
    )
    statement = {"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::" + "b" * 10240}
    large = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    with refused("LimitExceeded"):
        iam.put_role_policy(RoleName="r", PolicyName="large", PolicyDocument=large)
    with refused("DeleteConflict"):
        iam.delete_role(RoleName="r")
    assert arn.endswith("role/r")


def test_instance_profiles_are_listed_by_path(account: Account) -> None:
    iam = account.client("iam")
    iam.create_instance_profile(InstanceProfileName="mine", Path="/")
    iam.create_instance_profile(InstanceProfileName="karpenters", Path="/karpenter/demo/")
    found = iam.list_instance_profiles(PathPrefix="/karpenter/")["InstanceProfiles"]
    assert [one["InstanceProfileName"] for one in found] == ["karpenters"]


def test_a_deployer_enters_the_cluster_that_it_has_made_and_its_caller_does_not(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The AWS provider makes the cluster as the role that `aws eks get-token --role-arn` asks as."""
    document = json.loads(trust("ec2.amazonaws.com"))
    document["Statement"][0]["Principal"] = {"AWS": f"arn:aws:iam::{identity.ACCOUNT}:root"}
    iam, anything = account.client("iam"), {"Effect": "Allow", "Action": "*", "Resource": "*"}
    made = iam.create_role(RoleName="deployer", AssumeRolePolicyDocument=json.dumps(document))
    policy = json.dumps({"Version": "2012-10-17", "Statement": [anything]})
    iam.put_role_policy(RoleName="deployer", PolicyName="all", PolicyDocument=policy)
    arn = made["Role"]["Arn"]
    keys = account.client("sts").assume_role(RoleArn=arn, RoleSessionName="up")["Credentials"]
    create_cluster(account, Network(account), keys)
    speak_to(account, monkeypatch)
    from awscli.customizations.eks.get_token import STSClientFactory, TokenGenerator

    asked = [
        review(account, TokenGenerator(client).get_token("demo"))
        for client in (
            STSClientFactory(Session()).get_sts_client(region_name=REGION, role_arn=arn),
            STSClientFactory(Session()).get_sts_client(region_name=REGION),
        )
    ]
    assert [one["authenticated"] for one in asked] == [True, False]
    assert asked[0]["user"]["groups"] == ["system:masters"]


def test_the_aws_command_line_gets_a_token_that_the_account_accepts(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_cluster(account, Network(account))
    speak_to(account, monkeypatch)
    from awscli.customizations.eks.get_token import STSClientFactory, TokenGenerator

    client = STSClientFactory(Session()).get_sts_client(region_name=REGION)
    assert review(account, TokenGenerator(client).get_token("demo"))["authenticated"]


def test_a_registry_holds_what_was_pushed(account: Account) -> None:
    manifest = json.dumps(
        {"schemaVersion": 2, "mediaType": "m", "config": {"size": 1}, "layers": []}
    )
    account.client("ecr").create_repository(repositoryName="train")
    account.client("ecr").put_image(repositoryName="train", imageTag="1", imageManifest=manifest)
    asked = {"repositoryName": "train", "imageIds": [{"imageTag": "1"}]}
    assert aws.Account(url=account.url, secret=paths.world().world_secret, region=REGION).ecr(
        "DescribeImages", asked
    )["imageDetails"]


def test_who_asks_is_of_the_account_whose_number_is_in_every_arn(account: Account) -> None:
    """trainyard.operations.recovery.repair compares the two."""
    cluster = create_cluster(account, Network(account))["arn"]
    numbers = {arn.split(":")[4] for arn in (cluster, role(account, "a", "ec2.amazonaws.com"))}
    assert {account.client("sts").get_caller_identity()["Account"]} == numbers


def test_nodeadm_and_image_pulls_ask_with_the_role_of_the_instance(account: Account) -> None:
    """A role without the policies of a node boots no node and pulls no image."""
    network = Network(account)
    profile(account, "bare")
    profile(account, "node", "AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly")
    world = aws.Account(url=account.url, secret=paths.world().world_secret, region=REGION)
    account.client("ecr").create_repository(repositoryName="train")
    manifest = json.dumps(
        {"schemaVersion": 2, "mediaType": "m", "config": {"size": 1}, "layers": []}
    )
    account.client("ecr").put_image(repositoryName="train", imageTag="1", imageManifest=manifest)
    asked = {"repositoryName": "train", "imageIds": [{"imageTag": "1"}]}
    node = world.as_instance(launch(account, network, "node"))
    assert node.ec2("DescribeInstances")["reservationSet"]
    assert node.ecr("BatchGetImage", asked)["images"]
    bare = world.as_instance(launch(account, network, "bare"))
    with pytest.raises(aws.AwsError, match="not authorized to perform: ec2:DescribeInstances"):
        bare.ec2("DescribeInstances")
    with pytest.raises(aws.AwsError, match=r"AccessDenied.* not authorized to perform: ecr:Batch"):
        bare.ecr("BatchGetImage", asked)
    with pytest.raises(aws.AwsError, match="no instance profile"):
        world.as_instance("i-0123456789abcdef0")
