"""The aws plugin makes objects with a key of the company: read back they are what the program asked
for, a key comes in place where AWS can set it, and another key replaces what AWS cannot change."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.rehearsal.aws_world import REGION, Account, Network, role, served, speak_to
from tests.rehearsal.providers.test_aws import Engine, Thing, configured
from trainyard.objects.iam.encryption import key_policy

SETTINGS = {
    "Queue": ("kmsMasterKeyId", {"messageRetentionSeconds": 300}),
    "Topic": ("kmsMasterKeyId", {}),
    "LogGroup": ("kmsKeyId", {"name": "/aws/eks/demo-a/cluster", "retentionInDays": 30}),
    "FileSystem": ("kmsKeyId", {"encrypted": True, "throughputMode": "elastic"}),
    "LustreFileSystem": (
        "kmsKeyId",
        {
            "deploymentType": "PERSISTENT_2",
            "storageCapacity": 1200,
            "dataCompressionType": "LZ4",
            "fileSystemTypeVersion": "2.15",
            "perUnitStorageThroughput": 125,
        },
    ),
}
"""Type → its input with a key, and other inputs."""
IN_PLACE = ("Queue", "Topic", "LogGroup")


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    with (
        pytest.MonkeyPatch.context() as patch,
        served(tmp_path_factory.mktemp("account"), patch) as account,
    ):
        speak_to(account, patch)
        yield account


@pytest.fixture(scope="module")
def engine(account: Account) -> Engine:
    return Engine(configured())


@pytest.fixture(scope="module")
def network(account: Account) -> Network:
    made = Network(account)
    both = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": made.group}]}
    made.ec2.authorize_security_group_ingress(GroupId=made.group, IpPermissions=[both])
    return made


@pytest.fixture(scope="module")
def key(account: Account) -> str:
    kms = account.client("kms")
    arn = kms.create_key()["KeyMetadata"]["Arn"]
    policy = json.dumps(key_policy(arn, "demo"))
    kms.put_key_policy(KeyId=arn, PolicyName="default", Policy=policy)
    return arn


def unchanged(engine: Engine, thing: Thing) -> bool:
    """Whether a refresh of it changes nothing."""
    found = engine.plugin.read(thing.call(), thing.inputs, thing.state)
    return bool(found) and found.inputs == thing.inputs and engine.diff(thing).changes == {}


def given(type_: str, network: Network) -> dict[str, object]:
    place = {"subnetIds": network.subnets[0], "securityGroupIds": [network.group]}
    return SETTINGS[type_][1] | (place if type_ == "LustreFileSystem" else {})


@pytest.mark.parametrize("type_", SETTINGS)
def test_an_object_with_the_key_is_read_back_as_it_was_asked_for(
    type_: str, engine: Engine, network: Network, key: str
) -> None:
    name = SETTINGS[type_][0]
    thing = engine.make(type_, **given(type_, network), **{name: key})
    assert thing.state[name] == key and unchanged(engine, thing)
    assert bool(engine.diff(thing, **{name: f"{key[:-12]}{'0' * 12}"}).replaces) == (
        type_ not in IN_PLACE
    )


@pytest.mark.parametrize("type_", IN_PLACE)
def test_a_key_comes_later_in_place(type_: str, engine: Engine, network: Network, key: str) -> None:
    name, more = SETTINGS[type_]
    other = more | ({"name": "/aws/eks/demo-b/cluster"} if type_ == "LogGroup" else {})
    thing = engine.make(type_, **other)
    assert engine.change(thing, **{name: key})[name] == key and unchanged(engine, thing)


@pytest.mark.parametrize("type_", ["FileSystem", "LustreFileSystem"])
def test_a_store_without_a_key_does_not_change_for_the_key_that_aws_tells(
    type_: str, engine: Engine, network: Network
) -> None:
    thing = engine.make(type_, **given(type_, network))
    assert unchanged(engine, thing)


def test_a_cluster_is_made_with_its_key_and_its_protection(
    account: Account, engine: Engine, network: Network, key: str
) -> None:
    sealed = {"provider": {"keyArn": key}, "resources": ["secrets"]}
    thing = engine.make(
        "Cluster",
        name="demo",
        roleArn=role(account, "control-plane", "eks.amazonaws.com"),
        version="1.34",
        bootstrapSelfManagedAddons=False,
        vpcConfig={"subnetIds": network.subnets, "endpointPrivateAccess": True},
        accessConfig={"authenticationMode": "API"},
        kubernetesNetworkConfig={"serviceIpv4Cidr": "172.20.0.0/16"},
        encryptionConfig=sealed,
        deletionProtection=True,
    )
    assert thing.state["encryptionConfig"] == sealed and unchanged(engine, thing)
    assert engine.change(thing, deletionProtection=False)["deletionProtection"] is False
    assert unchanged(engine, thing)
    assert thing.state["controlPlaneScalingConfig"] == {"tier": "standard"}
    large = {"tier": "tier-xl"}
    assert (
        engine.change(thing, controlPlaneScalingConfig=large)["controlPlaneScalingConfig"] == large
    )
    assert unchanged(engine, thing)
    engine.plugin.delete(thing.call(), thing.state)


def test_a_cluster_without_a_key_gets_one_in_place(
    account: Account, engine: Engine, network: Network, key: str
) -> None:
    thing = engine.make(
        "Cluster",
        name="later",
        roleArn=role(account, "control-plane-2", "eks.amazonaws.com"),
        version="1.34",
        bootstrapSelfManagedAddons=False,
        vpcConfig={"subnetIds": network.subnets, "endpointPrivateAccess": True},
        accessConfig={"authenticationMode": "API"},
        kubernetesNetworkConfig={"serviceIpv4Cidr": "172.20.0.0/16"},
    )
    sealed = {"provider": {"keyArn": key}, "resources": ["secrets"]}
    assert engine.change(thing, encryptionConfig=sealed)["encryptionConfig"] == sealed
    assert unchanged(engine, thing) and REGION in key
