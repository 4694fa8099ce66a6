"""EKS: clusters whose control plane starts, access entries, Pod Identity, add-ons and node
groups."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rehearsal import paths
from rehearsal.aws import identity
from tests.rehearsal.aws_world import (
    NEVER,
    REGION,
    Account,
    Network,
    create_cluster,
    refused,
    role,
    served,
    trust,
)
from trainyard.catalog.versions import KUBERNETES

WORKERS = ("AmazonEKSWorkerNodePolicy",)


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with served(tmp_path, monkeypatch) as account:
        yield account


@pytest.fixture
def network(account: Account) -> Network:
    return Network(account)


@pytest.fixture
def eks(account: Account, network: Network) -> Any:
    """A client, with the cluster `demo` ACTIVE."""
    create_cluster(account, network)
    return account.client("eks")


def test_eks_refuses_subnets_in_zones_that_have_none_of_its_control_planes(
    account: Account,
) -> None:
    """In moto's account us-east-1e is use1-az3."""
    ec2, eks = (account.client(name, region="us-east-1") for name in ("ec2", "eks"))
    vpc = ec2.create_vpc(CidrBlock="10.20.0.0/16")["Vpc"]["VpcId"]
    a, e = (
        ec2.create_subnet(
            VpcId=vpc, CidrBlock=f"10.20.{number}.0/24", AvailabilityZone=f"us-east-1{zone}"
        )["Subnet"]["SubnetId"]
        for number, zone in enumerate("ae")
    )
    with refused("UnsupportedAvailabilityZoneException"):
        eks.create_cluster(
            name="demo",
            version="1.34",
            roleArn=role(account, "cluster", "eks.amazonaws.com"),
            resourcesVpcConfig={"subnetIds": [a, e]},
            accessConfig={"authenticationMode": "API"},
            kubernetesNetworkConfig={"serviceIpv4Cidr": "172.20.0.0/16"},
        )
    assert not eks.list_clusters()["clusters"]


def addon(name: str) -> dict[str, str]:
    return {
        "clusterName": "demo",
        "addonName": name,
        "addonVersion": "v1.2.3-eksbuild.1",
        "resolveConflicts": "OVERWRITE",
    }


def create_group(account: Account, network: Network, **more: Any) -> Any:
    arn = more.pop("nodeRole", None) or role(account, "workers", "ec2.amazonaws.com", *WORKERS)
    wanted = {
        "clusterName": "demo",
        "nodegroupName": "system",
        "subnets": network.subnets,
        "nodeRole": arn,
        "instanceTypes": ["m7i.large"],
        "scalingConfig": {"minSize": 1, "maxSize": 3, "desiredSize": 2},
        "labels": {"role": "system"},
    }
    return account.client("eks").create_nodegroup(**(wanted | more))["nodegroup"]


def members(network: Network) -> dict[str, Any]:
    running = [{"Name": "instance-state-name", "Values": ["running"]}]
    found = network.ec2.describe_instances(Filters=running)["Reservations"]
    return {one["InstanceId"]: one for reservation in found for one in reservation["Instances"]}


def test_a_cluster_is_active_when_its_time_has_passed_and_its_control_plane_is_ready(
    account: Account, network: Network
) -> None:
    made, eks = create_cluster(account, network), account.client("eks")
    assert made["status"] == "CREATING"
    assert account.planes[0].started == "1.34 172.20.0.0/16"
    found = eks.describe_cluster(name="demo")["cluster"]
    assert (found["status"], found["endpoint"]) == ("ACTIVE", "https://127.0.0.1:6443")
    assert base64.b64decode(found["certificateAuthority"]["data"]) == b"authority"
    assert found["kubernetesNetworkConfig"]["serviceIpv4Cidr"] == "172.20.0.0/16"
    assert found["tags"] == {"Name": "demo"}


def test_a_cluster_waits_for_its_control_plane(
    account: Account, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.rehearsal.aws_world.Plane.ready", lambda self: self.up and False)
    create_cluster(account, network)
    account.planes[0].problem = "etcd ended with 1"
    found = account.client("eks").describe_cluster(name="demo")["cluster"]
    assert (found["status"], found["health"]["issues"][0]["message"]) == (
        "CREATING",
        "etcd ended with 1",
    )
    with refused("InvalidRequestException"):
        account.client("eks").create_addon(clusterName="demo", addonName="vpc-cni")


def test_a_cluster_in_the_making_takes_its_time(account: Account, network: Network) -> None:
    account.speed(NEVER)
    create_cluster(account, network)
    assert account.client("eks").describe_cluster(name="demo")["cluster"]["status"] == "CREATING"
    with refused("ResourceInUseException"):
        account.client("eks").delete_cluster(name="demo")


def test_services_keep_away_from_the_second_range_of_a_vpc(
    account: Account, network: Network
) -> None:
    network.ec2.associate_vpc_cidr_block(VpcId=network.vpc, CidrBlock="192.168.0.0/20")
    with refused("InvalidParameterException"):
        create_cluster(
            account, network, kubernetesNetworkConfig={"serviceIpv4Cidr": "192.168.8.0/24"}
        )


def test_services_have_the_range_that_is_asked_for(account: Account, network: Network) -> None:
    create_cluster(account, network, kubernetesNetworkConfig={"serviceIpv4Cidr": "192.168.8.0/24"})
    found = account.client("eks").describe_cluster(name="demo")["cluster"]
    assert found["kubernetesNetworkConfig"]["serviceIpv4Cidr"] == "192.168.8.0/24"


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"version": "9.99"}, "InvalidParameterException"),
        ({"roleArn": "arn:aws:iam::123456789012:role/nobody"}, "InvalidParameterException"),
        (
            {"resourcesVpcConfig": {"subnetIds": ["subnet-0", "subnet-1"]}},
            "InvalidParameterException",
        ),
        (
            {"kubernetesNetworkConfig": {"serviceIpv4Cidr": "10.20.0.0/16"}},
            "InvalidParameterException",
        ),
        (
            {"kubernetesNetworkConfig": {"serviceIpv4Cidr": "100.64.0.0/16"}},
            "InvalidParameterException",
        ),
        (
            {"kubernetesNetworkConfig": {"serviceIpv4Cidr": "192.168.0.0/25"}},
            "InvalidParameterException",
        ),
        ({"accessConfig": {"authenticationMode": "CONFIG_MAP"}}, "NotImplemented"),
        ({"bootstrapSelfManagedAddons": True}, "NotImplemented"),
    ],
)
def test_a_cluster_that_eks_would_refuse_is_refused(
    account: Account, network: Network, more: dict, code: str
) -> None:
    with refused(code):
        create_cluster(account, network, **more)


def test_a_cluster_needs_two_zones_and_the_right_trust(account: Account, network: Network) -> None:
    wrong = role(account, "wrong", "ec2.amazonaws.com")
    one_zone: dict[str, Any] = {"resourcesVpcConfig": {"subnetIds": network.subnets[:1]}}
    cases: tuple[dict[str, Any], ...] = (one_zone, {"roleArn": wrong})
    for number, more in enumerate(cases):
        arn = role(account, f"cluster{number}", "eks.amazonaws.com")
        with refused("InvalidParameterException"):
            wanted: dict[str, Any] = {"roleArn": arn} | more
            create_cluster(account, network, **wanted)


def test_a_second_cluster_is_refused_by_name(account: Account, network: Network, eks: Any) -> None:
    arn = account.client("iam").get_role(RoleName="cluster")["Role"]["Arn"]
    with refused("ResourceInUseException"):
        create_cluster(account, network, roleArn=arn)
    with refused("NotImplemented"):
        create_cluster(account, network, roleArn=arn, name="second")


def test_a_cluster_has_a_security_group_and_interfaces_until_it_is_deleted(
    account: Account, network: Network, eks: Any
) -> None:
    group = eks.describe_cluster(name="demo")["cluster"]["resourcesVpcConfig"][
        "clusterSecurityGroupId"
    ]
    found = network.ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]
    assert found["GroupName"].startswith("eks-cluster-sg-demo-")
    assert found["IpPermissions"][0]["UserIdGroupPairs"][0]["GroupId"] == group
    for subnet in network.subnets:
        with refused("DependencyViolation"):
            network.ec2.delete_subnet(SubnetId=subnet)
    eks.delete_cluster(name="demo")
    with refused("ResourceNotFoundException"):
        eks.describe_cluster(name="demo")
    assert account.planes[0].started == ""
    assert not account.types() & {"eks-cluster", "network-interface", "eks-access-entry"}
    for subnet in network.subnets:
        network.ec2.delete_subnet(SubnetId=subnet)


def test_an_update_of_the_endpoints_keeps_the_rest_and_must_change_something(
    account: Account, network: Network, eks: Any
) -> None:
    eks.update_cluster_config(
        name="demo", resourcesVpcConfig={"publicAccessCidrs": ["203.0.113.0/24"]}
    )
    config = eks.describe_cluster(name="demo")["cluster"]["resourcesVpcConfig"]
    assert (config["publicAccessCidrs"], config["subnetIds"]) == (
        ["203.0.113.0/24"],
        network.subnets,
    )
    with refused("InvalidParameterException"):
        eks.update_cluster_config(
            name="demo", resourcesVpcConfig={"publicAccessCidrs": ["203.0.113.0/24"]}
        )


def test_an_update_of_the_subnets_moves_the_interfaces_of_the_control_plane(
    account: Account, network: Network, eks: Any
) -> None:
    others = [network.subnet(f"10.20.{128 + 16 * n}.0/20", zone) for n, zone in enumerate("ac")]
    eks.update_cluster_config(name="demo", resourcesVpcConfig={"subnetIds": others})
    told = network.ec2.describe_network_interfaces()["NetworkInterfaces"]
    assert sorted(one["SubnetId"] for one in told) == sorted(others)
    for subnet in network.subnets:
        network.ec2.delete_subnet(SubnetId=subnet)


def test_the_machine_reaches_a_public_endpoint_only(account: Account, eks: Any) -> None:
    private = {"endpointPublicAccess": False, "endpointPrivateAccess": True}
    assert not paths.private_endpoint().exists()
    eks.update_cluster_config(name="demo", resourcesVpcConfig=private)
    assert paths.private_endpoint().exists()
    eks.update_cluster_config(name="demo", resourcesVpcConfig={"endpointPublicAccess": True})
    assert not paths.private_endpoint().exists()


def test_one_access_entry_a_principal_and_the_admin_policy_for_people_only(
    account: Account, eks: Any
) -> None:
    people, nodes = (
        role(account, "people", "ec2.amazonaws.com"),
        role(account, "nodes", "ec2.amazonaws.com"),
    )
    admin = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    eks.create_access_entry(clusterName="demo", principalArn=people)
    eks.create_access_entry(clusterName="demo", principalArn=nodes, type="EC2_LINUX")
    with refused("ResourceInUseException"):
        eks.create_access_entry(clusterName="demo", principalArn=people)
    with refused("InvalidParameterException"):
        eks.create_access_entry(clusterName="demo", principalArn=f"{people}x")
    eks.update_access_entry(clusterName="demo", principalArn=people, kubernetesGroups=["team"])
    entry = eks.describe_access_entry(clusterName="demo", principalArn=people)["accessEntry"]
    assert entry["kubernetesGroups"] == ["team"]
    for group in ("system:masters", "eks:admins"):
        with refused("InvalidParameterException"):
            eks.update_access_entry(
                clusterName="demo", principalArn=people, kubernetesGroups=[group]
            )
    for principal, policy, code in (
        (nodes, admin, "InvalidRequestException"),
        (people, admin.replace("ClusterAdmin", "View"), "NotImplemented"),
    ):
        with refused(code):
            eks.associate_access_policy(
                clusterName="demo",
                principalArn=principal,
                policyArn=policy,
                accessScope={"type": "cluster"},
            )
    eks.associate_access_policy(
        clusterName="demo", principalArn=people, policyArn=admin, accessScope={"type": "cluster"}
    )
    found = eks.list_associated_access_policies(clusterName="demo", principalArn=people)[
        "associatedAccessPolicies"
    ]
    assert [one["policyArn"] for one in found] == [admin]
    assert set(eks.list_access_entries(clusterName="demo")["accessEntries"]) >= {people, nodes}


def test_pod_identity_gives_a_pods_role_while_agent_association_and_trust_are_there(
    account: Account, network: Network, eks: Any
) -> None:
    network.lead_out()
    arn = role(account, "karpenter", "pods.eks.amazonaws.com")
    slot = {"clusterName": "demo", "namespace": "kube-system", "serviceAccount": "karpenter"}
    asked = "pod-identity?cluster=demo&namespace=kube-system&service_account=karpenter"
    made = eks.create_pod_identity_association(**slot, roleArn=arn)["association"]
    with refused("ResourceInUseException"):
        eks.create_pod_identity_association(**slot, roleArn=arn)
    assert account.world("GET", asked)[0] == 404
    eks.create_addon(**addon("eks-pod-identity-agent"))
    credentials = account.world("GET", asked)[1]
    assert (
        ":assumed-role/karpenter/"
        in account.client("sts", credentials).get_caller_identity()["Arn"]
    )
    for cluster, status in (("demo", 200), ("other", 404)):
        source = f"arn:aws:eks:{REGION}:{identity.ACCOUNT}:cluster/{cluster}"
        document = json.loads(trust("pods.eks.amazonaws.com"))
        document["Statement"][0]["Condition"] = {"ArnEquals": {"aws:SourceArn": source}}
        account.client("iam").update_assume_role_policy(
            RoleName="karpenter", PolicyDocument=json.dumps(document)
        )
        assert account.world("GET", asked)[0] == status, cluster
    account.client("iam").update_assume_role_policy(
        RoleName="karpenter", PolicyDocument=trust("pods.eks.amazonaws.com")
    )
    eks.delete_pod_identity_association(clusterName="demo", associationId=made["associationId"])
    assert account.world("GET", asked)[0] == 404


def test_an_add_on_is_active_when_its_workloads_are_available(
    account: Account, eks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rehearsal.aws.clock.PATIENCE", 0.0)
    account.kubernetes.available = False
    eks.create_addon(**addon("coredns"))
    account.keep()
    assert account.kubernetes.objects["Deployment/coredns"]["spec"]["replicas"] == 2
    assert account.kubernetes.objects["Service/kube-dns"]["spec"]["clusterIP"] == "172.20.0.10"
    assert (
        eks.describe_addon(clusterName="demo", addonName="coredns")["addon"]["status"] == "DEGRADED"
    )
    account.kubernetes.available = True
    account.kubernetes.apply(account.kubernetes.objects["Deployment/coredns"], manager="eks")
    account.keep()
    assert (
        eks.describe_addon(clusterName="demo", addonName="coredns")["addon"]["status"] == "ACTIVE"
    )


def test_an_add_on_that_must_not_overwrite_leaves_what_is_there_and_fails(
    account: Account, eks: Any
) -> None:
    kind = {"apiVersion": "apps/v1", "kind": "DaemonSet"}
    theirs = {**kind, "metadata": {"name": "eks-pod-identity-agent", "labels": {"made": "by hand"}}}
    account.kubernetes.apply(theirs, manager="somebody")
    kept = account.kubernetes.objects["DaemonSet/eks-pod-identity-agent"]
    eks.create_addon(**addon("eks-pod-identity-agent") | {"resolveConflicts": "NONE"})
    account.keep()
    which = {"clusterName": "demo", "addonName": "eks-pod-identity-agent"}
    told = eks.describe_addon(**which)["addon"]
    assert told["status"] == "CREATE_FAILED"
    assert told["health"]["issues"][0]["code"] == "ConfigurationConflict"
    assert account.kubernetes.objects["DaemonSet/eks-pod-identity-agent"] is kept
    eks.create_addon(**addon("kube-proxy") | {"resolveConflicts": "NONE"})
    account.keep()
    assert "DaemonSet/kube-proxy" in account.kubernetes.objects, "where nothing is in its way"


def test_a_deleted_add_on_takes_its_workloads_with_it(account: Account, eks: Any) -> None:
    eks.create_addon(**addon("aws-fsx-csi-driver"))
    account.keep()
    assert "CSIDriver/fsx.csi.aws.com" in account.kubernetes.objects
    eks.describe_addon(clusterName="demo", addonName="aws-fsx-csi-driver")
    eks.delete_addon(clusterName="demo", addonName="aws-fsx-csi-driver")
    account.keep()
    assert account.kubernetes.objects == {}
    assert "eks-addon" not in account.types()


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"addonName": "aws-load-balancer"}, "InvalidParameterException"),
        ({"addonVersion": "latest"}, "InvalidParameterException"),
    ],
)
def test_an_add_on_that_eks_would_refuse_is_refused(
    eks: Any, more: dict[str, str], code: str
) -> None:
    with refused(code):
        eks.create_addon(**(addon("vpc-cni") | more))


def test_offered_are_the_builds_that_the_catalogue_has_for_a_minor_release(
    account: Account,
) -> None:
    ask = account.client("eks").describe_addon_versions
    [coredns] = ask(kubernetesVersion="1.34", addonName="coredns")["addons"]
    [build] = coredns["addonVersions"]
    assert build["addonVersion"] == KUBERNETES["1.34"].add_ons["coredns"]
    assert {one["addonName"] for one in ask(kubernetesVersion="1.35")["addons"]} == set(
        KUBERNETES["1.35"].add_ons
    )
    assert ask(kubernetesVersion="1.29")["addons"] == []


def test_an_updated_add_on_is_updating_until_its_workloads_are_available_again(
    account: Account, eks: Any
) -> None:
    eks.create_addon(**addon("coredns"))
    account.keep()
    assert (
        eks.describe_addon(clusterName="demo", addonName="coredns")["addon"]["status"] == "ACTIVE"
    )
    which = {"name": "demo", "addonName": "coredns"}
    update = eks.update_addon(**(addon("coredns") | {"addonVersion": "v1.12.4-eksbuild.1"}))[
        "update"
    ]["id"]
    assert eks.describe_update(updateId=update, **which)["update"]["status"] == "InProgress"
    account.keep()
    assert eks.describe_update(updateId=update, **which)["update"]["status"] == "Successful"


def test_a_node_group_is_active_when_its_nodes_are_ready(
    account: Account, network: Network, eks: Any
) -> None:
    create_group(account, network)
    account.keep()
    assert (
        eks.describe_nodegroup(clusterName="demo", nodegroupName="system")["nodegroup"]["status"]
        == "CREATING"
    )
    nodes = members(network)
    assert len({node["SubnetId"] for node in nodes.values()}) == 2
    account.kubernetes.join(*nodes)
    account.keep()
    assert (
        eks.describe_nodegroup(clusterName="demo", nodegroupName="system")["nodegroup"]["status"]
        == "ACTIVE"
    )
    with refused("ResourceInUseException"):
        eks.delete_cluster(name="demo")


def test_a_nodes_user_data_says_how_to_join(account: Account, network: Network, eks: Any) -> None:
    eks.describe_cluster(name="demo")
    create_group(account, network)
    data = network.ec2.describe_instance_attribute(
        InstanceId=next(iter(members(network))), Attribute="userData"
    )
    text = base64.b64decode(data["UserData"]["Value"]).decode()
    spec = json.loads(text.split("application/node.eks.aws\n\n")[1].split("\n--//")[0])["spec"]
    assert spec["cluster"]["name"] == "demo"
    assert spec["cluster"]["apiServerEndpoint"] == "https://127.0.0.1:6443"
    assert "role=system" in spec["kubelet"]["flags"][0]


def test_the_role_of_a_node_group_may_enter_and_cannot_be_deleted(
    account: Account, network: Network, eks: Any
) -> None:
    arn = create_group(account, network)["nodeRole"]
    assert (
        eks.describe_access_entry(clusterName="demo", principalArn=arn)["accessEntry"]["type"]
        == "EC2_LINUX"
    )
    account.client("iam").detach_role_policy(
        RoleName="workers", PolicyArn=f"arn:aws:iam::aws:policy/{WORKERS[0]}"
    )
    with refused("DeleteConflict"):
        account.client("iam").delete_role(RoleName="workers")


def test_nodes_that_never_join_fail_the_node_group(
    account: Account, network: Network, eks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rehearsal.aws.clock.PATIENCE", 0.0)
    create_group(account, network)
    found = eks.describe_nodegroup(clusterName="demo", nodegroupName="system")["nodegroup"]
    assert (found["status"], found["health"]["issues"][0]["code"]) == (
        "CREATE_FAILED",
        "NodeCreationFailure",
    )


def test_a_node_group_without_capacity_says_why(
    account: Account, network: Network, eks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rehearsal.aws.clock.PATIENCE", 0.0)
    account.world(
        "POST", "faults", {"kind": "no-capacity", "instance_type": "m7i.large", "count": -1}
    )
    create_group(account, network)
    issue = eks.describe_nodegroup(clusterName="demo", nodegroupName="system")["nodegroup"][
        "health"
    ]["issues"][0]
    assert issue["code"] == "AsgInstanceLaunchFailures"
    assert "InsufficientInstanceCapacity" in issue["message"]


def test_a_lost_node_is_replaced_and_scaling_down_ends_one(
    account: Account, network: Network, eks: Any
) -> None:
    create_group(account, network)
    lost, kept = members(network)
    account.kubernetes.join(lost, kept)
    account.keep()
    account.world("POST", f"instances/{lost}/vanish")
    account.keep()
    assert len(members(network)) == 2
    account.kubernetes.join(*members(network))
    account.keep()
    eks.update_nodegroup_config(
        clusterName="demo",
        nodegroupName="system",
        scalingConfig={"minSize": 1, "maxSize": 3, "desiredSize": 1},
    )
    assert len(members(network)) == 1


def test_a_deleted_node_group_leaves_nothing(account: Account, network: Network, eks: Any) -> None:
    create_group(account, network)
    eks.delete_nodegroup(clusterName="demo", nodegroupName="system")
    eks.list_clusters()
    assert not account.types() & {"instance", "volume", "iam-instance-profile", "eks-nodegroup"}


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"instanceTypes": ["p6-b200.48xlarge"]}, "InvalidParameterException"),
        ({"nodeRole": "arn:aws:iam::123456789012:role/nobody"}, "InvalidParameterException"),
        ({"subnets": ["subnet-0"]}, "InvalidParameterException"),
        ({"amiType": "AL2_x86_64"}, "NotImplemented"),
    ],
)
def test_a_node_group_that_eks_would_refuse_is_refused(
    account: Account, network: Network, eks: Any, more: dict, code: str
) -> None:
    with refused(code):
        create_group(account, network, **more)


def test_a_control_plane_goes_up_one_minor_version_at_a_time(account: Account, eks: Any) -> None:
    for wrong in ("1.36", "1.33", "1.34"):
        with refused("InvalidParameterException"):
            eks.update_cluster_version(name="demo", version=wrong)
    eks.update_cluster_version(name="demo", version="1.35")
    found = eks.describe_cluster(name="demo")["cluster"]
    assert (found["status"], found["version"]) == ("ACTIVE", "1.35")
    assert account.planes[0].started == "1.35 172.20.0.0/16"
    with refused("InvalidParameterException"):
        eks.update_cluster_version(name="demo", version="1.37")


def test_a_node_group_behind_its_cluster_holds_back_the_next_version(
    account: Account, network: Network, eks: Any
) -> None:
    create_group(account, network, version="1.34", releaseVersion="1.34.11-20261012")
    eks.update_cluster_version(name="demo", version="1.35")
    with refused("InvalidParameterException"):
        eks.update_cluster_version(name="demo", version="1.36")


def test_a_cluster_changes_its_logs_and_its_upgrade_policy_one_a_call(eks: Any) -> None:
    logging = {"clusterLogging": [{"types": ["audit"], "enabled": True}]}
    policy = {"supportType": "STANDARD"}
    with refused("InvalidParameterException"):
        eks.update_cluster_config(name="demo", logging=logging, upgradePolicy=policy)
    eks.update_cluster_config(name="demo", logging=logging)
    eks.describe_cluster(name="demo")
    eks.update_cluster_config(name="demo", upgradePolicy=policy)
    found = eks.describe_cluster(name="demo")["cluster"]
    assert (found["logging"], found["upgradePolicy"]) == (logging, policy)


def template(network: Network, **data: Any) -> dict[str, str]:
    disk = {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 30, "Encrypted": True}}
    wanted = {
        "BlockDeviceMappings": [disk],
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
    }
    made = network.ec2.create_launch_template(
        LaunchTemplateName="system", LaunchTemplateData=wanted | data
    )["LaunchTemplate"]
    return {"id": made["LaunchTemplateId"], "version": "1"}


def test_instances_of_a_node_group_are_as_its_launch_template_says(
    account: Account, network: Network, eks: Any
) -> None:
    # Terraform's provider, of which pulumi-aws is made, sends UserData without any.
    create_group(account, network, launchTemplate=template(network, UserData=""))
    for instance in members(network).values():
        assert instance["MetadataOptions"]["HttpPutResponseHopLimit"] == 1
        volume = instance["BlockDeviceMappings"][0]["Ebs"]["VolumeId"]
        found = network.ec2.describe_volumes(VolumeIds=[volume])["Volumes"][0]
        assert (found["Size"], found["Encrypted"]) == (30, True)


@pytest.mark.parametrize(
    "more",
    [
        {"version": "1.35"},
        {"releaseVersion": "1.35.8-20261012"},
        {"version": "1.34", "releaseVersion": "1.34-20261012"},
        {"version": "1.34", "releaseVersion": "1.34.10-20261012"},
    ],
)
def test_nodes_cannot_be_newer_than_their_cluster_nor_their_release_of_another_kubelet(
    account: Account, network: Network, eks: Any, more: dict[str, str]
) -> None:
    with refused("InvalidParameterException"):
        create_group(account, network, **more)


def test_a_node_group_takes_the_size_of_disks_from_its_launch_template_alone(
    account: Account, network: Network, eks: Any
) -> None:
    with refused("InvalidParameterException"):
        create_group(account, network, launchTemplate=template(network), diskSize=50)


def test_a_new_release_replaces_nodes_one_by_one_after_their_pods_have_left(
    account: Account, network: Network, eks: Any
) -> None:
    create_group(account, network, version="1.34", releaseVersion="1.34.11-20260923")
    old = [*members(network)]
    account.kubernetes.join(*old)
    account.keep()
    which = {"clusterName": "demo", "nodegroupName": "system"}
    assert eks.describe_nodegroup(**which)["nodegroup"]["status"] == "ACTIVE"
    pod = {"metadata": {"name": "karpenter", "namespace": "kube-system"}}
    account.kubernetes.pods = [pod | {"spec": {"nodeName": old[0]}}]
    update = eks.update_nodegroup_version(**which, releaseVersion="1.34.11-20261012")["update"]
    for _ in old:
        account.keep()  # a node more
        assert set(old) & {*members(network)} and len(members(network)) == 3
        account.kubernetes.join(*members(network).keys() - set(old))
        account.keep()  # its pods leave
        account.keep()  # it ends
    about = {"name": "demo", "nodegroupName": "system", "updateId": update["id"]}
    account.keep()
    assert not set(old) & members(network).keys() and len(members(network)) == 2
    assert account.kubernetes.pods == []
    assert eks.describe_update(**about)["update"]["status"] == "Successful"
    found = eks.describe_nodegroup(**which)["nodegroup"]
    assert (found["status"], found["releaseVersion"]) == ("ACTIVE", "1.34.11-20261012")


def test_tags_of_whatever_belongs_to_a_cluster_can_change(account: Account, eks: Any) -> None:
    arn = eks.create_addon(**addon("vpc-cni"), tags={"a": "1"})["addon"]["addonArn"]
    eks.tag_resource(resourceArn=arn, tags={"b": "2"})
    eks.untag_resource(resourceArn=arn, tagKeys=["a"])
    assert eks.describe_addon(clusterName="demo", addonName="vpc-cni")["addon"]["tags"] == {
        "b": "2"
    }


@pytest.mark.parametrize(
    ("vpc", "services"), [("10.20.0.0/16", "10.100.0.0/16"), ("10.96.0.0/12", "172.20.0.0/16")]
)
def test_eks_takes_a_range_of_services_that_the_vpc_does_not_have(
    account: Account, vpc: str, services: str
) -> None:
    ec2 = account.client("ec2")
    id_ = ec2.create_vpc(CidrBlock=f"{vpc.partition('/')[0]}/16")["Vpc"]["VpcId"]
    if vpc != "10.20.0.0/16":
        ec2.associate_vpc_cidr_block(VpcId=id_, CidrBlock="10.100.0.0/16")
    first = vpc.rpartition(".0.0/")[0]
    subnets = [
        ec2.create_subnet(
            VpcId=id_, CidrBlock=f"{first}.{number}.0/24", AvailabilityZone=f"{REGION}{zone}"
        )["Subnet"]["SubnetId"]
        for number, zone in enumerate("ac")
    ]
    made = account.client("eks").create_cluster(
        name="demo",
        version="1.34",
        roleArn=role(account, "cluster", "eks.amazonaws.com"),
        resourcesVpcConfig={"subnetIds": subnets},
        accessConfig={"authenticationMode": "API"},
    )["cluster"]
    assert made["kubernetesNetworkConfig"]["serviceIpv4Cidr"] == services


def test_eks_chooses_the_build_of_an_add_on_where_the_caller_names_none(eks: Any) -> None:
    made = eks.create_addon(clusterName="demo", addonName="coredns")["addon"]
    assert made["addonVersion"] == KUBERNETES["1.34"].add_ons["coredns"]
