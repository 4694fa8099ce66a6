"""The questions that `trainyard check --live` asks an AWS account. They read and never write; AWS's policy
ReadOnlyAccess answers all of them, but those to the API server of a cluster (cluster_questions.py).
Those about stores: store_questions.py. What the answers mean: preflight.py."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from trainyard.catalog.aws.instances import ADDRESS_QUOTA, default_vcpus, quota_of
from trainyard.catalog.aws.quotas import VOLUME_QUOTA
from trainyard.catalog.upstream import al2023, bottlerocket
from trainyard.existing.cluster_faults import AddOnFound, ClusterFound
from trainyard.live.questions.caller import TIMEOUTS, Filters, NotAnswered, once
from trainyard.live.questions.cluster_questions import ClusterQuestions
from trainyard.live.questions.network_questions import tagged, tags_of
from trainyard.live.questions.store_questions import StoreQuestions
from trainyard.objects.iam.policies import same_role
from trainyard.objects.iam.pull_through import CacheRule, rules_of
from trainyard.plans.identity import Identity, cluster_tag
from trainyard.plans.images import parts

OWN_ADDRESS = "https://checkip.amazonaws.com"
"""Page of AWS that says from which address it is asked."""
EBS_ALIAS = "alias/aws/ebs"
"""AWS's own key of EBS, which encrypts disks until the account has another default."""
_KUBELET = re.compile(r"\(k8s: (\d+\.\d+\.\d+),")
"""The kubelet in the description of an AMI of EKS (awslabs/amazon-eks-ami,
`ami_component_description`; seen on AMIs from 2024-03-29 to 2026-09-03). Whether AWS keeps the
parameter release_version of a release that it no longer recommends, no public listing proves."""


class Account(StoreQuestions, ClusterQuestions):
    """The account that the AWS provider would work in. Each method is a question."""

    def caller_arn(self) -> str:
        """The ARN of the caller; NotAssumed where AWS refuses a role of the stack file."""
        return self._ask("sts:GetCallerIdentity")["Arn"]

    def own_address(self) -> str:
        """The public IPv4 address of this machine, as AWS sees it. Whatever stands for AWS's services
        (AWS_ENDPOINT_URL) is asked instead of this one, too."""
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import HTTPClientError
        from botocore.httpsession import URLLib3Session

        aws = self._clients["sts"].meta.endpoint_url
        url = OWN_ADDRESS if ".amazonaws." in aws else f"{aws}/checkip"
        try:
            asked = AWSRequest(method="GET", url=url).prepare()
            answer = URLLib3Session(timeout=TIMEOUTS["read_timeout"]).send(asked)
        except HTTPClientError as error:
            raise NotAnswered(f"{url}: {type(error).__name__}") from error
        try:
            return str(ipaddress.IPv4Address(answer.text.strip()))
        except ValueError as error:
            raise NotAnswered(
                f"{url} has no IPv4 address for this machine (HTTP status {answer.status_code}), so whether"
                " public_access_cidrs contains it is not checked"
            ) from error

    def has_cluster(self, name: str) -> bool:
        return bool(self._ask("eks:DescribeCluster", unless="ResourceNotFound", name=name))

    def cluster(self, name: str, add_ons: Sequence[str], caller: str) -> ClusterFound | None:
        """A cluster with those of the add-ons that it has; None where there is none."""
        answer = self._ask("eks:DescribeCluster", unless="ResourceNotFound", name=name)
        if not answer:
            return None
        found, vpc = answer["cluster"], answer["cluster"]["resourcesVpcConfig"]
        entries = self._ask("eks:ListAccessEntries", clusterName=name)
        mine = [entry for entry in entries["accessEntries"] if same_role(entry, caller)]
        return ClusterFound(
            status=found["status"],
            version=found["version"],
            authentication_mode=found["accessConfig"]["authenticationMode"],
            vpc_id=vpc["vpcId"],
            public=vpc["endpointPublicAccess"],
            private=vpc["endpointPrivateAccess"],
            public_ranges=tuple(vpc.get("publicAccessCidrs", ())),
            ip_family=found["kubernetesNetworkConfig"].get("ipFamily", "ipv4"),
            auto_mode=found.get("computeConfig", {}).get("enabled", False),
            add_ons={one: it for one in add_ons if (it := self._add_on(name, one))},
            caller=mine[0] if mine else caller,
            caller_enters=bool(mine),
        )

    def cluster_groups(self, name: str) -> tuple[str, ...]:
        """The security group that EKS has made for a cluster, which all nodes of this program carry; empty
        where there is no such cluster."""
        answer = self._ask("eks:DescribeCluster", unless="ResourceNotFound", name=name)
        return (
            (answer["cluster"]["resourcesVpcConfig"]["clusterSecurityGroupId"],) if answer else ()
        )

    def _add_on(self, cluster: str, name: str) -> AddOnFound | None:
        answer = self._ask(
            "eks:DescribeAddon", unless="ResourceNotFound", clusterName=cluster, addonName=name
        )
        found = answer.get("addon")
        return found and AddOnFound(
            version=found["addonVersion"],
            configuration=found.get("configurationValues") or "",
            tags=found.get("tags", {}),
        )

    def access_policies(self, cluster: str, principal: str) -> list[str]:
        """ARNs of the access policies that hold for the whole cluster."""
        call = "eks:ListAssociatedAccessPolicies"
        found = self._ask(call, clusterName=cluster, principalArn=principal)
        every = found["associatedAccessPolicies"]
        return [one["policyArn"] for one in every if one["accessScope"]["type"] == "cluster"]

    def access_groups(self, cluster: str, principal: str) -> list[str]:
        """Groups of Kubernetes that the access entry of a role or user names."""
        call = "eks:DescribeAccessEntry"
        found = self._ask(call, clusterName=cluster, principalArn=principal)
        return found["accessEntry"].get("kubernetesGroups", [])

    def karpenter_nodes(self, cluster: str) -> list[dict[str, str]]:
        """The tags of each running node that some Karpenter has launched for the cluster."""
        filters: Filters = {
            "tag-key": ["karpenter.sh/nodepool"],
            f"tag:{cluster_tag(cluster)}": ["owned"],
        }
        return [{t["Key"]: t["Value"] for t in one["Tags"]} for one in self._running(filters)]

    def role_arn(self, name: str) -> str | None:
        """The ARN of a role, with its path; None where there is no such role."""
        answer = self._ask("iam:GetRole", unless="NoSuchEntity", RoleName=name)
        return answer["Role"]["Arn"] if answer else None

    def has_role(self, name: str) -> bool:
        return self.role_arn(name) is not None

    def has_policy(self, arn: str) -> bool:
        return bool(self._ask("iam:GetPolicy", unless="NoSuchEntity", PolicyArn=arn))

    def has_image(self, image: str) -> bool:
        """True where a registry of ECR in the region has an image, by its name there."""
        name = parts(image)
        answer = self._ask(
            "ecr:DescribeImages",
            unless=("RepositoryNotFound", "ImageNotFound"),
            registryId=name.registry.partition(".")[0],
            repositoryName=name.repository,
            imageIds=[name.in_ecr],
        )
        return bool(answer.get("imageDetails"))

    def pull_through_rules(self, registry: str) -> list[CacheRule]:
        """Rules of a registry of ECR. `registry`: the id of its account."""
        found = self._ask("ecr:DescribePullThroughCacheRules", registryId=registry)
        return rules_of(found["pullThroughCacheRules"])

    def has_entry(self, cluster: str, role: str) -> bool:
        """True where the role may enter the cluster."""
        return bool(
            self._ask(
                "eks:DescribeAccessEntry",
                unless="ResourceNotFound",
                clusterName=cluster,
                principalArn=role,
            )
        )

    def add_on_builds(self, kubernetes: str, name: str) -> list[str]:
        """The builds of an add-on that EKS offers for a minor release of Kubernetes."""
        found = self._ask(
            "eks:DescribeAddonVersions",
            unless="ResourceNotFound",
            kubernetesVersion=kubernetes,
            addonName=name,
        )
        add_ons = found.get("addons", ())
        return [build["addonVersion"] for one in add_ons for build in one["addonVersions"]]

    def kubelet_of_ami(self, kubernetes: str, variant: str, release: str) -> str:
        """Version of the kubelet in EKS's AMI of a release, v20261012: 1.35.8; empty where the region
        does not have the AMI. `variant`: standard or nvidia."""
        ami = {"kubernetes": kubernetes, "variant": variant}
        name = al2023.AMI_NAME.format(**ami, release=release)
        at = f"{al2023.AMI_PARAMETERS.format(**ami)}/{name}/image_id"
        parameter = self._ask("ssm:GetParameter", unless="ParameterNotFound", Name=at)
        if not parameter:
            return ""
        image = parameter["Parameter"]["Value"]
        found = self._ask("ec2:DescribeImages", unless="InvalidAMIID", ImageIds=[image])
        for described in found.get("Images", ()):
            text = described.get("Description", "")
            if named := _KUBELET.search(text):
                return named[1]
            raise NotAnswered(f"ec2:DescribeImages: {image} does not name its kubelet: {text}")
        return ""

    def has_bottlerocket(self, kubernetes: str, release: str) -> bool:
        """True where the region has the AMI of Bottlerocket with NVIDIA's driver. `release`: such as v1.68.1."""
        at = bottlerocket.IMAGE.format(kubernetes=kubernetes, release=release.removeprefix("v"))
        return bool(self._ask("ssm:GetParameter", unless="ParameterNotFound", Name=at))

    def newest_bottlerocket(self, kubernetes: str) -> str:
        """The newest release of Bottlerocket with NVIDIA's driver, such as v1.68.1."""
        at = bottlerocket.NEWEST.format(kubernetes=kubernetes)
        value = self._ask("ssm:GetParameter", Name=at)["Parameter"]["Value"]
        return f"v{value.partition('-')[0]}"

    def recommended_ami(self, kubernetes: str, variant: str) -> str:
        """Release of the AMI that EKS recommends, such as 1.35.8-20261012."""
        folder = al2023.AMI_PARAMETERS.format(kubernetes=kubernetes, variant=variant)
        at = f"{folder}/recommended/release_version"
        return self._ask("ssm:GetParameter", Name=at)["Parameter"]["Value"]

    def zones(self) -> dict[str, str]:
        """Name → id of the zones that are available."""
        found = self._ask("ec2:DescribeAvailabilityZones")["AvailabilityZones"]
        return {zone["ZoneName"]: zone["ZoneId"] for zone in found if zone["State"] == "available"}

    def offers(self, types: Sequence[str]) -> dict[str, list[str]]:
        """Instance type → names of the zones that have it."""
        found = self._ask(
            "ec2:DescribeInstanceTypeOfferings",
            LocationType="availability-zone",
            filters={"instance-type": types},
        )["InstanceTypeOfferings"]
        return {
            kind: [one["Location"] for one in found if one["InstanceType"] == kind]
            for kind in types
        }

    def quota(self, me: Identity, node_group: str, code: str) -> tuple[float, int]:
        """vCPUs, and how many of them instances of others than this stack take, of any type. Instances on
        Dedicated Hosts take none: those have quotas of their own."""
        quota = self._ask("servicequotas:GetServiceQuota", ServiceCode="ec2", QuotaCode=code)[
            "Quota"
        ]["Value"]
        return quota, sum(
            _vcpus(one)
            for one in self._every_instance()
            if quota_of(one["InstanceType"], one.get("InstanceLifecycle", "")) == code
            and one.get("Placement", {}).get("Tenancy") != "host"
            and not _is_of(one, me, node_group)
        )

    def disks(self, me: Identity) -> tuple[float, int]:
        """TiB of gp3 that the region gives the account, and GiB of gp3 that others than this stack have."""
        quota = self._ask(
            "servicequotas:GetServiceQuota", ServiceCode="ebs", QuotaCode=VOLUME_QUOTA
        )["Quota"]["Value"]
        every = self._ask("ec2:DescribeVolumes", filters={"volume-type": ["gp3"]})["Volumes"]
        return quota, sum(one["Size"] for one in every if not me.owns(tags_of(one)))

    @cached_property
    def _every_instance(self) -> Callable[[], list[dict[str, Any]]]:
        """The running instances of the region, of which each quota asks."""
        return once(lambda: self._running({}))

    def reservation(self, id_: str) -> dict[str, Any]:
        """As EC2 describes it; empty where it knows none."""
        found = self._ask(
            "ec2:DescribeCapacityReservations",
            unless="InvalidCapacityReservationId",
            CapacityReservationIds=[id_],
        )
        return next(iter(found.get("CapacityReservations", ())), {})

    def key(self, arn: str) -> dict[str, Any]:
        """As KMS describes the key; empty where it knows none."""
        found = self._ask("kms:DescribeKey", unless="NotFound", KeyId=arn)
        return found.get("KeyMetadata", {})

    def default_key(self) -> dict[str, Any]:
        """The account's default key of EBS, as KMS describes it; empty where it is AWS's own, by its alias."""
        key = self._ask("ec2:GetEbsDefaultKmsKeyId")["KmsKeyId"]
        return {} if key.endswith(EBS_ALIAS) else {"Arn": key, **self.key(key)}

    def key_policy(self, arn: str) -> str:
        """The policy of a key, as JSON; empty where KMS knows no such key."""
        found = self._ask("kms:GetKeyPolicy", unless="NotFound", KeyId=arn, PolicyName="default")
        return found.get("Policy", "")

    def secret(self, name: str) -> dict[str, Any]:
        """As Secrets Manager describes the secret, without its value; empty where it knows none."""
        return self._ask("secretsmanager:DescribeSecret", unless="ResourceNotFound", SecretId=name)

    def public_addresses(self, me: Identity) -> tuple[float, int]:
        """Number of public addresses that the region gives the account, and of those that others
        than this stack have."""
        quota = self._ask(
            "servicequotas:GetServiceQuota", ServiceCode="ec2", QuotaCode=ADDRESS_QUOTA
        )["Quota"]["Value"]
        every, own = (
            self._ask("ec2:DescribeAddresses", filters=filters)["Addresses"]
            for filters in ({}, tagged(me))
        )
        return quota, len(every) - len(own)

    def cost_tag(self, key: str) -> str:
        """Status of a tag by which bills can count: Active or Inactive; empty where AWS does not list
        the tag yet. Only the account that pays may ask."""
        found = self._ask("ce:ListCostAllocationTags", TagKeys=[key], Type="UserDefined")
        return next((one["Status"] for one in found.get("CostAllocationTags", ())), "")

    def log_group(self, name: str) -> dict[str, Any]:
        """As CloudWatch Logs describes the group; empty where there is none."""
        found = self._ask("logs:DescribeLogGroups", logGroupNamePrefix=name)
        same = [one for one in found.get("logGroups", ()) if one["logGroupName"] == name]
        return same[0] if same else {}

    def group_ids(self, vpc: str, name: str) -> tuple[str, ...]:
        """Ids of the security groups with that name."""
        asked: Filters = {"vpc-id": [vpc], "group-name": [name]}
        found = self._ask("ec2:DescribeSecurityGroups", filters=asked)["SecurityGroups"]
        return tuple(one["GroupId"] for one in found)


def _vcpus(instance: Mapping[str, Any]) -> int:
    """vCPUs by which an instance counts against a quota: those that its CPU options leave
    (thought-machine/aws-service-quotas-exporter, pkg/service_quotas, counts so)."""
    options = instance.get("CpuOptions", {})
    cores, threads = options.get("CoreCount", 0), options.get("ThreadsPerCore", 0)
    return cores * threads or default_vcpus(instance["InstanceType"])


def _is_of(instance: Mapping[str, Any], me: Identity, node_group: str) -> bool:
    """True of a node of the stack: of its pools by its tags, of the system nodes by EKS's tag."""
    tags = tags_of(instance)
    return me.owns(tags) or tags.get("eks:nodegroup-name") == node_group
