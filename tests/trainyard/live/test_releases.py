"""A build or an AMI that AWS does not have is refused before anything is created."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from botocore.stub import Stubber
from moto import mock_aws

from tests.support.stackfile import at, environment_plan
from tests.trainyard.live.test_preflight import errors, found
from trainyard.catalog.versions import BOTTLEROCKET_RELEASE
from trainyard.live import releases
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.plans.access import AccessPlan
from trainyard.problems import InputError

DNS = "v1.13.2-eksbuild.31"
OWN = at("system_nodes.release", "1.35.7-20260912")
DESCRIBED = (
    "EKS-optimized Kubernetes node based on Amazon Linux 2023, (k8s: 1.35.8, containerd:"
    " 2.2.5-1.amzn2023.0.4)"
)
AMIS = "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/nvidia"


def test_every_add_on_and_every_ami_of_a_stack_is_asked_for() -> None:
    plan = environment_plan()
    assert {"vpc-cni", "coredns", "aws-fsx-csi-driver"} <= {
        add_on.name for add_on in plan.add_ons.every
    }
    assert releases.amis(plan) == [("nvidia", "v20261012"), ("standard", "v20261012")]
    assert ("standard", "v20260912") in releases.amis(environment_plan(OWN))
    own = [at(f"pools.{pool}.ami_family", "Bottlerocket") for pool in plan.pools]
    assert releases.amis(environment_plan(*own)) == [("standard", "v20261012")]


def test_builds_are_compared_by_their_numbers() -> None:
    assert releases.newest(["v1.9.0-eksbuild.9", DNS, "v1.13.2-eksbuild.4"]) == DNS


def test_a_build_that_eks_does_not_offer_is_refused_with_the_newest_that_it_does() -> None:
    said = errors(add_on_builds=["v1.13.2-eksbuild.4", DNS])
    assert len(said) == len(environment_plan().add_ons.every) - 1, "all but coredns"
    assert said[0] == (
        "environment.cluster.version: must be a version for which EKS offers vpc-cni"
        f" v1.22.4-eksbuild.3 in ap-northeast-2; got 1.35, for which it offers {DNS}. Fix: write"
        f' {DNS} in trainyard/catalog/versions.py, KUBERNETES["1.35"].add_ons'
    )


def test_an_add_on_without_any_build_is_refused() -> None:
    [*said] = errors(add_on_builds=[])
    assert "got 1.35, for which it offers no build of it. Fix: another Kubernetes" in said[0]


def test_an_ami_that_the_region_does_not_have_is_refused_with_the_recommended_one() -> None:
    nvidia, standard = errors(kubelet_of_ami="")
    assert nvidia == (
        "environment.cluster.version: must have an AMI of EKS, variant nvidia, in ap-northeast-2;"
        " got 1.35, which has none of release v20261012. Fix: write v20261101 in"
        " trainyard/catalog/versions.py, AMI_RELEASE"
    )
    assert "variant standard" in standard
    [*_, own] = errors(OWN, kubelet_of_ami="")
    assert own.startswith("environment.system_nodes.release: must have an AMI of EKS")
    assert own.endswith("got 1.35, which has none of release v20260912. Fix: write 1.35.8-20261101")


def test_a_bottlerocket_that_the_region_does_not_have_is_refused_at_its_pool() -> None:
    own = at("pools.h100.ami_family", "Bottlerocket")
    assert errors(own) == errors(has_bottlerocket=False) == []
    [said] = errors(own, has_bottlerocket=False)
    assert said == (
        "environment.pools.h100.ami_family: must have an AMI in ap-northeast-2 for Kubernetes 1.35; got"
        f" Bottlerocket, of which it has no {BOTTLEROCKET_RELEASE} with NVIDIA's driver."
        " Fix: write AL2023, or delete it"
    )


@pytest.mark.parametrize("recommended", ["1.35.8-20261012", "1.35.9-20261101", "1.35.10-20270301"])
def test_another_kubelet_in_the_ami_of_the_pinned_day_is_refused_whatever_eks_recommends(
    recommended: str,
) -> None:
    [said] = errors(kubelet_of_ami="1.35.9", recommended_ami=recommended)
    assert said == (
        "environment.cluster.version: must have the patch release of the kubelet in EKS's AMI of"
        " v20261012; got 1.35.8-20261012. Fix: write system_nodes: {release: 1.35.9-20261012}"
    )
    assert errors(kubelet_of_ami="1.35.8", recommended_ami=recommended) == []


def test_a_release_of_the_stack_file_with_another_kubelet_is_refused_with_the_value_to_write() -> (
    None
):
    [said] = found(OWN)[2:]
    assert str(said) == (
        "environment.system_nodes.release: must have the patch release of the kubelet in EKS's AMI"
        " of v20260912; got 1.35.7-20260912. Fix: write 1.35.8-20260912"
    )
    assert isinstance(said, InputError) and said.write == "1.35.8-20260912"
    assert errors(at("system_nodes.release", said.write)) == []


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield Account(AccessPlan(region="us-east-1"))


def test_eks_is_asked_for_the_builds_of_one_add_on(account: Account) -> None:
    asked = {"kubernetesVersion": "1.35", "addonName": "coredns"}
    offered = {"addons": [{"addonName": "coredns", "addonVersions": [{"addonVersion": DNS}]}]}
    with Stubber(account._clients["eks"]) as stub:
        stub.add_response("describe_addon_versions", offered, asked)
        stub.add_client_error("describe_addon_versions", "ResourceNotFoundException")
        assert account.add_on_builds("1.35", "coredns") == [DNS]
        assert account.add_on_builds("1.35", "coredns") == []


def test_the_kubelet_of_an_ami_is_read_in_the_description_of_the_image_of_its_release(
    account: Account,
) -> None:
    name = {"Name": f"{AMIS}/amazon-eks-node-al2023-x86_64-nvidia-1.35-v20261012/image_id"}
    image = {"ImageIds": ["ami-0123456789abcdef0"]}
    kubelet = partial(account.kubelet_of_ami, "1.35", "nvidia", "v20261012")
    with Stubber(account._clients["ssm"]) as ssm, Stubber(account._clients["ec2"]) as ec2:
        for _ in range(3):
            ssm.add_response("get_parameter", {"Parameter": {"Value": image["ImageIds"][0]}}, name)
        ssm.add_client_error("get_parameter", "ParameterNotFound")
        ec2.add_response("describe_images", {"Images": [{"Description": DESCRIBED}]}, image)
        ec2.add_client_error("describe_images", "InvalidAMIID.NotFound")
        ec2.add_response("describe_images", {"Images": [{"Description": "an image"}]}, image)
        assert kubelet() == "1.35.8"
        assert kubelet() == "", "the parameter names an image that the region lacks"
        with pytest.raises(NotAnswered, match=r"ami-0\w+ does not name its kubelet: an image"):
            kubelet()
        assert kubelet() == "", "no parameter, no image"


def test_the_ami_of_bottlerocket_is_looked_for_where_karpenter_looks(account: Account) -> None:
    """karpenter-provider-aws 1.14.1, pkg/providers/amifamily/bottlerocket.go."""
    name = {"Name": "/aws/service/bottlerocket/aws-k8s-1.35-nvidia/x86_64/1.68.1/image_id"}
    with Stubber(account._clients["ssm"]) as ssm:
        ssm.add_response("get_parameter", {"Parameter": {"Value": "ami-0123456789abcdef0"}}, name)
        ssm.add_client_error("get_parameter", "ParameterNotFound")
        assert account.has_bottlerocket("1.35", "v1.68.1")
        assert not account.has_bottlerocket("1.35", "v1.68.1")


def test_the_newest_bottlerocket_is_read_without_its_commit(account: Account) -> None:
    name = "/aws/service/bottlerocket/aws-k8s-1.35-nvidia/x86_64/latest/image_version"
    with Stubber(account._clients["ssm"]) as stub:
        said = {"Parameter": {"Value": "1.70.0-104f8e0f"}}
        stub.add_response("get_parameter", said, {"Name": name})
        assert account.newest_bottlerocket("1.35") == "v1.70.0"


def test_the_release_that_eks_recommends_is_read_in_its_parameter(account: Account) -> None:
    with Stubber(account._clients["ssm"]) as stub:
        said = {"Parameter": {"Name": "x", "Value": "1.35.8-20261101"}}
        stub.add_response("get_parameter", said, {"Name": f"{AMIS}/recommended/release_version"})
        assert account.recommended_ami("1.35", "nvidia") == "1.35.8-20261101"
