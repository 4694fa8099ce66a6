"""What a pod of a team tries in AWS with its own credentials: each attack is refused by IAM, and
passes when its control is taken away."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from rehearsal.aws import identity
from tests.rehearsal.aws_world import REGION, Account, Network, create_cluster, served
from trainyard.objects.deployer import team_policies
from trainyard.objects.iam.policies import Document, document, pod_identity_trust
from trainyard.objects.iam.secrets import secret_statements
from trainyard.objects.teams.team_identity import pod_trust, s3_statements
from trainyard.objects.teams.teams import parameter_name

ROLE, NAMESPACE = "team-vision-pods", "team-vision"
READS, WRITES = ["s3://data-sets/imagenet/"], ["s3://results/teams/vision/"]
OBJECTS = {
    "data-sets": ("imagenet/a", "private/a"),
    "results": ("teams/vision/a", "teams/vision2/a", "teams/nlp/a"),
    "elsewhere": ("a",),
}
KEY = f"arn:aws:kms:{REGION}:{identity.ACCOUNT}:key/0a1b2c3d-0000-4000-8000-000000000000"
Call = Callable[[Any], Any]


def _get(bucket: str, key: str) -> Call:
    return lambda s3: s3.get_object(Bucket=bucket, Key=key)


def _put(bucket: str, key: str) -> Call:
    return lambda s3: s3.put_object(Bucket=bucket, Key=key, Body=b"")


def _list(bucket: str, **prefix: str) -> Call:
    return lambda s3: s3.list_objects_v2(Bucket=bucket, **prefix)


def _delete(bucket: str, key: str) -> Call:
    return lambda s3: s3.delete_object(Bucket=bucket, Key=key)


NEEDED: dict[str, Call] = {
    "read a data set": _get("data-sets", "imagenet/a"),
    "list a data set": _list("data-sets", Prefix="imagenet/"),
    "write a result": _put("results", "teams/vision/b"),
    "read a result": _get("results", "teams/vision/a"),
    "list results": _list("results", Prefix="teams/vision/run-1/"),
    "delete a result": _delete("results", "teams/vision/b"),
}
ATTACKS: dict[str, Call] = {
    "A7 read another team's object": _get("results", "teams/nlp/a"),
    "A7 read a team's whose name begins alike": _get("results", "teams/vision2/a"),
    "A7 list another team's checkpoints": _list("results", Prefix="teams/nlp/"),
    "A7 list a prefix that begins alike": _list("results", Prefix="teams/vision"),
    "A7 list the whole bucket": _list("results"),
    "A7 overwrite another team's object": _put("results", "teams/nlp/a"),
    "A7 delete another team's object": _delete("results", "teams/nlp/a"),
    "A7 write into a data set": _put("data-sets", "imagenet/a"),
    "A7 delete from a data set": _delete("data-sets", "imagenet/a"),
    "A7 read beside the data set": _get("data-sets", "private/a"),
    "A7 read another bucket": _get("elsewhere", "a"),
}


class Pods:
    """A cluster whose agent gives a role to pods."""

    def __init__(self, account: Account) -> None:
        self.account, self._iam = account, account.client("iam")
        eks, s3 = account.client("eks"), account.client("s3")
        create_cluster(account, Network(account).lead_out(), name="demo")
        eks.create_addon(
            clusterName="demo",
            addonName="eks-pod-identity-agent",
            addonVersion="v1.2.3-eksbuild.1",
            resolveConflicts="OVERWRITE",
        )
        for bucket, keys in OBJECTS.items():
            place = {"LocationConstraint": REGION}
            s3.create_bucket(Bucket=bucket, CreateBucketConfiguration=place)
            for key in keys:
                s3.put_object(Bucket=bucket, Key=key, Body=b"")
        self.of_cluster = pod_identity_trust(
            account=identity.ACCOUNT, region=REGION, cluster="demo"
        )
        made = self._iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument="{}")
        self.arn = made["Role"]["Arn"]
        self.trusted(pod_trust(self.of_cluster, NAMESPACE))
        for namespace in (NAMESPACE, "team-nlp"):
            eks.create_pod_identity_association(
                clusterName="demo",
                namespace=namespace,
                serviceAccount="default",
                roleArn=self.arn,
            )

    def trusted(self, by: Document) -> None:
        self._iam.update_assume_role_policy(RoleName=ROLE, PolicyDocument=json.dumps(by))

    def may(self, reads: list[str], writes: list[str]) -> None:
        allowed = document(*s3_statements(reads=reads, writes=writes, keys=()))
        self._iam.put_role_policy(
            RoleName=ROLE, PolicyName="s3", PolicyDocument=json.dumps(allowed)
        )

    def credentials(self, namespace: str, account_name: str = "default") -> Any:
        """Of a pod; None where EKS gives it none."""
        asked = f"cluster=demo&namespace={namespace}&service_account={account_name}"
        status, found = self.account.world("GET", f"pod-identity?{asked}")
        return found if status == 200 else None

    def refused(self, calls: dict[str, Call]) -> set[str]:
        """Names of the calls that IAM refuses a pod of the team."""
        s3, found = self.account.client("s3", self.credentials(NAMESPACE)), set[str]()
        for name, call in calls.items():
            try:
                call(s3)
            except ClientError as error:
                assert error.response["Error"]["Code"].startswith("AccessDenied"), (name, error)
                found.add(name)
        return found


@pytest.fixture(scope="module")
def pods(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pods]:
    with (
        pytest.MonkeyPatch.context() as patch,
        served(tmp_path_factory.mktemp("account"), patch) as account,
    ):
        yield Pods(account)


def test_pods_do_what_their_entry_says_and_nothing_else(pods: Pods) -> None:
    pods.may(READS, WRITES)
    assert pods.refused(NEEDED) == set()
    assert pods.refused(ATTACKS) == ATTACKS.keys()


def test_with_whole_buckets_instead_of_parts_each_attack_passes(pods: Pods) -> None:
    buckets = [f"s3://{bucket}/" for bucket in OBJECTS]
    pods.may(buckets, [])
    assert {name.split()[1] for name in pods.refused(ATTACKS)} == {"overwrite", "delete", "write"}
    pods.may([], buckets)
    assert pods.refused(ATTACKS) == set()


def test_a_role_is_of_no_use_to_another_namespace_or_service_account(pods: Pods) -> None:
    """A8: an association of another namespace with the role gives nothing, until the trust policy
    names no namespace."""
    assert pods.credentials(NAMESPACE) and not pods.credentials("team-nlp")
    assert not pods.credentials(NAMESPACE, "trainer")
    pods.trusted(pods.of_cluster)
    assert pods.credentials("team-nlp")
    pods.trusted(pod_trust(pods.of_cluster, NAMESPACE))


SECRETS = ("vision/hf", "vision/keyed", "vision2/hf", "nlp/hf", "shared/hf", "shared/hf-2")


@pytest.fixture(scope="module")
def secrets(pods: Pods) -> dict[str, str]:
    """Name → ARN of each secret. One has a KMS key of the account."""
    client, keyed = pods.account.client("secretsmanager"), {"vision/keyed": {"KmsKeyId": KEY}}
    return {
        name: client.create_secret(Name=name, SecretString="planted", **keyed.get(name, {}))["ARN"]
        for name in SECRETS
    }


def _unread(pods: Pods, secrets: dict[str, str], granted: list[str], *keys: str) -> set[str]:
    """The secrets that IAM refuses the pods of a team, by name and by ARN alike."""
    allowed = secret_statements(granted, keys, region=REGION, account=identity.ACCOUNT)
    pods.account.client("iam").put_role_policy(
        RoleName=ROLE, PolicyName="secrets", PolicyDocument=json.dumps(document(*allowed))
    )
    client, found = pods.account.client("secretsmanager", pods.credentials(NAMESPACE)), set[str]()
    for name, arn in secrets.items():
        for wanted in (name, arn):
            try:
                client.get_secret_value(SecretId=wanted)
            except ClientError as error:
                assert error.response["Error"]["Code"] == "AccessDeniedException", error
                found.add(name)
    return found


def test_pods_read_the_secrets_of_their_entry_and_no_others(
    pods: Pods, secrets: dict[str, str]
) -> None:
    """A7. A name is one secret, though AWS ends its ARN with a dash and six characters."""
    read = {"vision/hf", "shared/hf"}
    assert _unread(pods, secrets, ["vision/", "shared/hf"]) == {*SECRETS} - read
    assert _unread(pods, secrets, [secrets["nlp/hf"]]) == {*SECRETS} - {"nlp/hf"}
    assert _unread(pods, secrets, ["vision/"], KEY) == {*SECRETS} - {"vision/hf", "vision/keyed"}


def test_without_the_limit_of_its_policy_each_secret_is_read(
    pods: Pods, secrets: dict[str, str]
) -> None:
    assert _unread(pods, secrets, ["/"], KEY) == {*SECRETS}
    assert _unread(pods, secrets, ["vision/", "vision2/", "nlp/", "shared/"], KEY) == set()


def test_nobody_learns_whether_a_secret_of_others_exists(pods: Pods) -> None:
    client = pods.account.client("secretsmanager", pods.credentials(NAMESPACE))
    with pytest.raises(ClientError, match="AccessDenied"):
        client.get_secret_value(SecretId="nlp/there-is-none")


def test_credentials_of_a_pod_lead_to_no_other_role(pods: Pods) -> None:
    """A8: assume the own role again, and another one."""
    sts = pods.account.client("sts", pods.credentials(NAMESPACE))
    for arn in (pods.arn, f"arn:aws:iam::{identity.ACCOUNT}:role/cluster"):
        with pytest.raises(ClientError, match="AccessDenied"):
            sts.assume_role(RoleArn=arn, RoleSessionName="attack")


def test_the_deployer_of_a_team_reads_its_own_contract_and_no_state(pods: Pods) -> None:
    """A25: the state of the environment, as a StackReference would, and the contract of another
    team."""
    account, iam = pods.account, pods.account.client("iam")
    own, foreign = (parameter_name("dev", team) for team in ("vision", "nlp"))
    for name in (own, foreign):
        account.client("ssm").put_parameter(Name=name, Value="{}", Type="String")
    made = iam.create_role(
        RoleName="vision-deployer",
        AssumeRolePolicyDocument=json.dumps(
            document({"Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"})
        ),
    )
    keys = account.client("sts").assume_role(RoleArn=made["Role"]["Arn"], RoleSessionName="up")[
        "Credentials"
    ]
    ssm, s3 = (account.client(service, keys) for service in ("ssm", "s3"))
    calls: dict[str, Callable[[], Any]] = {
        "own contract": lambda: ssm.get_parameter(Name=own),
        "contract of another team": lambda: ssm.get_parameter(Name=foreign),
        "state of the environment": lambda: s3.get_object(Bucket="elsewhere", Key="a"),
    }

    def refused(allowed: Document) -> list[str]:
        iam.put_role_policy(
            RoleName="vision-deployer", PolicyName="p", PolicyDocument=json.dumps(allowed)
        )
        found: list[str] = []
        for name, call in calls.items():
            try:
                call()
            except ClientError as error:
                assert error.response["Error"]["Code"].startswith("AccessDenied"), error
                found.append(name)
        return found

    [limited] = team_policies("team-vision", REGION, own).values()
    assert refused(limited) == ["contract of another team", "state of the environment"]
    assert (
        refused(document({"Action": ["ssm:GetParameter", "s3:GetObject"], "Resource": "*"})) == []
    )
