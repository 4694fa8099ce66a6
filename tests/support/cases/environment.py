"""Tables of edits that are refused, and of edits that are not: edits of the stack files, for
test_rules.py and as examples."""

from __future__ import annotations

import copy
from typing import Any

from tests.support.existing_cluster import IN_CLUSTER
from tests.support.existing_stores import EFS, LUSTRE
from tests.support.existing_vpc import EXISTING_VPC, SUBNETS, VPC
from tests.support.stackfile import Edit, at, without

JOB = "jobs.t5-large"
OWN = "trainer.own_runtimes.torch-distributed-resilient"
SCRIPT = f"{JOB}.script"
SUBNET = SUBNETS["ap-northeast-2a"]
P5 = {"instance_types": ["p5.48xlarge"], "max_nodes": 1}

KEY = "arn:aws:kms:ap-northeast-2:123456789012:key/0a1b2c3d-0000-4000-8000-000000000000"

MIRROR = "111122223333.dkr.ecr.ap-northeast-2.amazonaws.com/mirror"
ISOLATED = [
    at("network.internet", "none"),
    at("network.endpoints", "private"),
    at("artifacts.images", MIRROR),
]

BACKUP = "backup-0123456789abcdef0"
IN_CHINA = "arn:aws-cn:secretsmanager:cn-north-1:123456789012:secret:hf-AbCdEf"
REPOSITORIES = "storage.scratch.lustre.repositories"


def _linked(*repositories: dict[str, Any]) -> Edit:
    """Repositories r0, r1, … of the dev file's Lustre store."""
    whole = {"s3": "s3://sets/a/", "path": "/data"}
    return at(
        REPOSITORIES, {f"r{n}": {**whole, **each} for n, each in enumerate(repositories or ({},))}
    )


# name → (edits of the dev file, path of the error, part of the message)
REFUSED: dict[str, tuple[list[Edit], str, str]] = {
    "two jobs that save in one directory": (
        [lambda s: s["jobs"].update(other={**s["jobs"]["t5-large"], "pool": "h100"})],
        "jobs.other.checkpoints.directory",
        "must be apart from t5-large, the directory of job t5-large; got t5-large. Fix: write a"
        " directory of the job's own, such as other",
    ),
    "a store called as another volume of the pod": (
        [
            at("storage.files", {"efs": {}}),
            at(f"{JOB}.storage.files", {"path": "/data"}),
            at(f"{JOB}.files", {"sources": ["workloads/checkpoints.py"]}),
        ],
        "jobs.t5-large.storage.files",
        "must be a store that is not called files: the pod has a volume of this name for "
        "files.sources; got files. Fix: rename the store, under environment.storage and here",
    ),
    "a folder of the node called as a store": (
        [at(f"{JOB}.host_paths", {"scratch": {"host": "/data", "path": "/data"}})],
        "jobs.t5-large.host_paths.scratch",
        "must not be called scratch: the pod has a volume of this name for a store of the job; "
        "got scratch. Fix: rename it, for example host-scratch",
    ),
    "a key of another region": (
        [at("kms_key_arn", KEY.replace("ap-northeast-2", "eu-west-1"))],
        "kms_key_arn",
        "must be a key of ap-northeast-2: EBS, EFS, FSx and EKS take none of another region",
    ),
    "a key of another account than the deployer's": (
        [
            at("kms_key_arn", KEY),
            at("cluster.deployer_role_arn", "arn:aws:iam::210987654321:role/deployer"),
        ],
        "kms_key_arn",
        "must be a key of the account that the stack works in, 210987654321",
    ),
    "an alias of a key": (
        [at("kms_key_arn", "alias/company")],
        "kms_key_arn",
        "must be the ARN of a KMS key",
    ),
    "a scratch store with a key": (
        [
            at("kms_key_arn", KEY),
            at(
                "storage.fast",
                {"lustre": {"capacity_gib": 2400, "deployment": "SCRATCH_2"}, "data": "delete"},
            ),
        ],
        "storage.fast.lustre.deployment",
        "must be PERSISTENT_2 with environment.kms_key_arn: FSx encrypts SCRATCH_2 with a key of its"
        " own only",
    ),
    "a retention that CloudWatch does not offer": (
        [at("cluster.log_retention_days", 42)],
        "cluster.log_retention_days",
        "as CloudWatch Logs offers; got 42. Fix: write 60",
    ),
    "a retention of flow logs that is longer than any": (
        [at("network.flow_logs", {"days": 9999})],
        "network.flow_logs.days",
        "got 9999. Fix: write 3653",
    ),
    "a retention of logs of pods that CloudWatch does not offer": (
        [at("logs", {"days": 21})],
        "logs.days",
        "got 21. Fix: write 30",
    ),
    "a retention of logs that are off": (
        [at("cluster.log_retention_days", 30), at("cluster.logs", [])],
        "cluster.log_retention_days",
        "must not be set beside logs: [], which writes no logs",
    ),
    "zone id of another region": (
        [at("zone_id", "use1-az3")],
        "zone_id",
        "must be a zone id of ap-northeast-2 (as of",
    ),
    "region as zone": (
        [at("zone", "ap-northeast-2")],
        "zone",
        "must be a zone, not a region; got ap-northeast-2. Fix: write one of ap-northeast-2a, "
        "ap-northeast-2b, ap-northeast-2c, ap-northeast-2d",
    ),
    "another region as zone": (
        [at("zone", "us-east-1")],
        "zone",
        "Fix: write one of ap-northeast-2a",
    ),
    "zone of another region": (
        [at("zone", "us-east-1a")],
        "zone",
        "must be a zone of aws:region (ap-northeast-2)",
    ),
    "zone that does not exist": (
        [at("zone", "ap-northeast-2f")],
        "zone",
        "must be a zone that ap-northeast-2 has",
    ),
    "network in another region's zone": (
        [at("network.zones", ["ap-northeast-2a", "us-east-1b"])],
        "network.zones",
        "must list zones of ap-northeast-2, each of them once; got [ap-northeast-2a, "
        "us-east-1b]. Fix: write [ap-northeast-2a, ap-northeast-2b]",
    ),
    "network in one zone twice": (
        [at("network.zones", ["ap-northeast-2c", "ap-northeast-2c"])],
        "network.zones",
        "Fix: write [ap-northeast-2c]",
    ),
    "network in one zone": (
        [at("network.zones", ["ap-northeast-2a"])],
        "network.zones",
        "a second zone beside environment.zone: EKS needs two; got [ap-northeast-2a]. "
        "Fix: write [ap-northeast-2a, ap-northeast-2b]",
    ),
    "no internet without endpoints": (
        [at("network.internet", "none"), at("artifacts.images", MIRROR)],
        "network.endpoints",
        "must be private with internet: none: nothing else leads to AWS APIs; got s3. Fix: write private",
    ),
    "no internet with NAT gateways": (
        [*ISOLATED, at("network.nat", "each_zone")],
        "network.nat",
        "must not be set with internet: none, which has no NAT gateway; got each_zone. Fix: delete it",
    ),
    "no internet without copies of images": (
        [at("network.internet", "none"), at("network.endpoints", "private")],
        "artifacts.images",
        "got nothing. Fix: write images: <account>.dkr.ecr.ap-northeast-2.amazonaws.com/mirror, and run"
        " trainyard mirror",
    ),
    "existing network without the internet and without copies of images": (
        [EXISTING_VPC, at("network.internet", "none")],
        "artifacts.images",
        "must name a registry of ECR with all images",
    ),
    "types without a price on demand, and no internet to ask": (
        [*ISOLATED, at("pools.g7", {"instance_types": ["g7.48xlarge"], "max_nodes": 1})],
        "pools.g7.instance_types",
        "must be types that Karpenter 1.14.1 has a price of: with internet: none it learns no other, and"
        " launches no node on demand without one; got g7.48xlarge. Fix: write karpenter.version: 1.15.2;"
        " or write capacity: spot; or name a reservation with capacity: reservation",
    ),
    "copies of images in another region": (
        [at("artifacts.images", MIRROR.replace("ap-northeast-2", "eu-west-1"))],
        "artifacts.images",
        "must be a registry of ap-northeast-2: nodes pull from ECR of their own region; got "
        "111122223333.dkr.ecr.eu-west-1.amazonaws.com/mirror. Fix: copy the images to "
        "ap-northeast-2, and write 111122223333.dkr.ecr.ap-northeast-2.amazonaws.com/mirror",
    ),
    "copies of images in a registry without a repository": (
        [at("artifacts.images", "https://111122223333.dkr.ecr.ap-northeast-2.amazonaws.com/")],
        "artifacts.images",
        "must be a registry of ECR, a slash and the first part of its repositories' names",
    ),
    "copies of images elsewhere than in ECR": (
        [at("artifacts.images", "registry.example.com/mirror")],
        "artifacts.images",
        "must be a registry of ECR, a slash and the first part of its repositories' names",
    ),
    "existing network without the training zone": (
        [at("network", {"vpc_id": VPC, "private_subnets": {"ap-northeast-2c": SUBNET}})],
        "network.private_subnets",
        "must have a subnet in environment.zone, ap-northeast-2a",
    ),
    "existing network in one zone": (
        [at("network", {"vpc_id": VPC, "private_subnets": {"ap-northeast-2a": SUBNET}})],
        "network.private_subnets",
        "must have a subnet in a second zone: EKS needs two; got {ap-northeast-2a: " + SUBNET + "}."
        " Fix: add ap-northeast-2b",
    ),
    "existing network in a zone of another region": (
        [at("network", {"vpc_id": VPC, "private_subnets": SUBNETS | {"us-east-1a": SUBNET}})],
        "network.private_subnets.us-east-1a",
        "must have the name of a zone of ap-northeast-2",
    ),
    "one subnet for two zones": (
        [
            at("network.vpc_id", VPC),
            at("network.private_subnets", dict.fromkeys(SUBNETS, SUBNET)),
        ],
        "network.private_subnets",
        f"got {SUBNET} for ap-northeast-2a, ap-northeast-2c",
    ),
    "fallback zone that the network leaves out": (
        [
            at("network.zones", ["ap-northeast-2c"]),
            at("pools.h100.fallback_zones", ["ap-northeast-2b"]),
        ],
        "pools.h100.fallback_zones",
        "Fix: write ap-northeast-2c",
    ),
    "store with the name of a mount target": (
        [
            at("pools.h100.fallback_zones", ["ap-northeast-2b"]),
            at("storage.home-b", {"efs": {}}),
        ],
        "storage.home-b",
        "must not have the name that the stack gives to the mount target of store home in "
        "ap-northeast-2b; got home-b. Fix: rename it to home-b-store",
    ),
    "no range": (
        [at("network.cidr", "10.0.0.0/99")],
        "network.cidr",
        "must be an IPv4 range ('99' is not a valid netmask); got 10.0.0.0/99. Fix: "
        "write 10.0.0.0/16",
    ),
    "a range with a mask": (
        [at("network.cidr", "10.0.0.0/255.255.0.0")],
        "network.cidr",
        "must be an IPv4 range (behind the address belongs /16, or another number); got"
        " 10.0.0.0/255.255.0.0. Fix: write 10.0.0.0/16",
    ),
    "a range of services with a mask": (
        [at("cluster.service_cidr", "172.20.0.0/255.255.0.0")],
        "cluster.service_cidr",
        "must be an IPv4 range",
    ),
    "host bits": (
        [at("network.cidr", "10.0.0.1/16")],
        "network.cidr",
        "has host bits set); got 10.0.0.1/16. Fix: write 10.0.0.0/16",
    ),
    "network too large": (
        [at("network.cidr", "10.0.0.0/12")],
        "network.cidr",
        "must be /16 to /20 (a VPC has at most a /16; GPU nodes need room); got "
        "10.0.0.0/12. Fix: write 10.0.0.0/16",
    ),
    "network too small": (
        [at("network.cidr", "10.0.0.0/24")],
        "network.cidr",
        "got 10.0.0.0/24. Fix: write 10.0.0.0/20",
    ),
    "public addresses": ([at("network.cidr", "8.8.0.0/16")], "network.cidr", "RFC 1918"),
    "unknown Kubernetes": (
        [at("cluster.version", "1.19")],
        "cluster.version",
        'must be a Kubernetes version whose add-ons this program knows; got 1.19. Fix: write "1.34"'
        " (standard support until 2026-12-02) or",
    ),
    "a patch of Kubernetes": (
        [at("cluster.version", "v1.35.2")],
        "cluster.version",
        'as EKS has it: without v and without a patch; got v1.35.2. Fix: write "1.35"',
    ),
    "a Kubernetes that EKS has and this program lacks": (
        [at("cluster.version", "1.37")],
        "cluster.version",
        "got 1.37, for which it lacks the builds of its add-ons, the patch release in its AMIs and the"
        " dates of its support. Fix: write",
    ),
    "a Karpenter that this program lacks": (
        [at("karpenter.version", "1.14.3")],
        "karpenter.version",
        "must be a Karpenter release that this program supports; got 1.14.3. Fix: write 1.14.1 or 1.15.2",
    ),
    "a Karpenter without its patch release": (
        [at("karpenter.version", "1.15")],
        "karpenter.version",
        "must be a Karpenter release that this program supports; got 1.15. Fix: write 1.15.2",
    ),
    "CIDRs of a private endpoint": (
        [at("cluster.endpoint", "private")],
        "cluster.public_access_cidrs",
        "must not be set with endpoint: private",
    ),
    "public endpoint for nobody": (
        [without("cluster.public_access_cidrs")],
        "cluster.public_access_cidrs",
        "must list who may reach the public endpoint",
    ),
    "a private range at the public endpoint": (
        [at("cluster.public_access_cidrs", ["192.168.1.0/24"])],
        "cluster.public_access_cidrs",
        "must list public addresses: EKS refuses reserved ranges; got 192.168.1.0/24",
    ),
    "a private endpoint that nobody reaches": (
        [at("cluster.endpoint", "private"), without("cluster.public_access_cidrs")],
        "cluster.endpoint",
        "add tunnel_port: 8443",
    ),
    "two ways into the VPC": (
        [at("cluster.tunnel_port", 8443), at("cluster.proxy_url", "http://proxy:3128")],
        "cluster.proxy_url",
        "must not be set beside tunnel_port",
    ),
    "inside the VPC, with a public endpoint": (
        [at("cluster.inside_vpc", True)],
        "cluster.inside_vpc",
        "must not be set with a public endpoint",
    ),
    "a proxy without a scheme": (
        [at("cluster.proxy_url", "proxy:3128")],
        "cluster.proxy_url",
        "must be the URL of a proxy",
    ),
    "a password in the proxy's URL": (
        [at("cluster.proxy_url", "http://me:secret@proxy:3128")],
        "cluster.proxy_url",
        "got a URL with an @",
    ),
    "no range at the endpoint": (
        [at("cluster.public_access_cidrs", ["my-house"])],
        "cluster.public_access_cidrs",
        "must list IPv4 ranges; got my-house",
    ),
    "an address alone at the endpoint": (
        [at("cluster.public_access_cidrs", ["81.2.69.160"])],
        "cluster.public_access_cidrs",
        "must list IPv4 ranges; got 81.2.69.160. Fix: write 81.2.69.160/32",
    ),
    "a mask at the endpoint": (
        [at("cluster.public_access_cidrs", ["81.2.69.160/255.255.255.255"])],
        "cluster.public_access_cidrs",
        "must list IPv4 ranges; got 81.2.69.160/255.255.255.255. Fix: write 81.2.69.160/32",
    ),
    "an address in a range at the endpoint": (
        [at("cluster.public_access_cidrs", ["81.2.69.160/24"])],
        "cluster.public_access_cidrs",
        "got 81.2.69.160/24. Fix: write 81.2.69.0/24 for 256 addresses, or 81.2.69.160/32 for one",
    ),
    "more ranges at the endpoint than EKS takes": (
        [at("cluster.public_access_cidrs", [f"81.2.69.{last}/32" for last in range(41)])],
        "cluster.public_access_cidrs",
        "must list at most 40 ranges: EKS takes no more; got 41",
    ),
    "namespace of the system": (
        [at("namespace", "kube-system")],
        "namespace",
        "must not be a namespace of the system: kube-… or that of a chart; got kube-system. Fix: write training",
    ),
    "no type in a pool": (
        [at("pools.g6e.instance_types", [])],
        "pools.g6e.instance_types",
        "must list an instance type; got an empty list. Fix: write [g6e.48xlarge]",
    ),
    "an instance type of HyperPod": (
        [at("pools.g6e.instance_types", ["ml.g6e.48xlarge"])],
        "pools.g6e.instance_types",
        "must list types of EC2: names with ml. are of SageMaker HyperPod; got ml.g6e.48xlarge."
        " Fix: write g6e.48xlarge",
    ),
    "unknown type": (
        [at("pools.g6e.instance_types", ["p7.48xlarge"])],
        "pools.g6e.instance_types",
        "must list instance types of EC2 that this program knows; got p7.48xlarge. Fix: write "
        "p5.48xlarge or p5e.48xlarge or p5.4xlarge, or add a row to "
        "trainyard/catalog/aws/instances.py",
    ),
    "type the region does not sell": (
        [at("pools.big", {**P5, "instance_types": ["p5e.48xlarge"]})],
        "pools.big.instance_types",
        "must list types that ap-northeast-2 has",
    ),
    "type the zone does not sell": (
        [at("zone_id", "apne2-az3")],
        "pools.h100.instance_types",
        "must list types that apne2-az3 has (as of 2026-10); got p5.48xlarge",
    ),
    "store of two kinds": (
        [at("storage.home.lustre", {"capacity_gib": 1200, "throughput_mbps_per_tib": 125})],
        "storage.home",
        "must have exactly one of lustre, efs, s3; got lustre and efs",
    ),
    "store of no kind": (
        [without("storage.home.efs")],
        "storage.home",
        "must have exactly one of lustre, efs, s3; got none",
    ),
    "bucket that is an address": (
        [at("storage.corpus", {"s3": {"bucket": "s3://our-corpus/text"}})],
        "storage.corpus.s3.bucket",
        "must be the name of a bucket alone: 3 to 63 of a-z, 0-9, - and .; got "
        "s3://our-corpus/text. Fix: write our-corpus; jobs find text/ below the path of the store",
    ),
    "alias for a key": (
        [at("storage.corpus", {"s3": {"kms_key_arn": "alias/ours"}})],
        "storage.corpus.s3.kms_key_arn",
        "must be the ARN of a KMS key",
    ),
    "key of another region for a bucket": (
        [
            at(
                "storage.corpus",
                {"s3": {"kms_key_arn": "arn:aws:kms:eu-west-1:111122223333:key/0a"}},
            )
        ],
        "storage.corpus.s3.kms_key_arn",
        "must be a key of ap-northeast-2, where the stack makes the bucket",
    ),
    "existing bucket that would be deleted": (
        [at("storage.corpus", {"s3": {"bucket": "our-corpus"}, "data": "delete"})],
        "storage.corpus.data",
        "must be keep with bucket: this program deletes no bucket that it did not create",
    ),
    "bucket of two stores": (
        [
            at("storage.corpus", {"s3": {"bucket": "our-corpus"}}),
            at("storage.text", {"s3": {"bucket": "our-corpus"}}),
        ],
        "storage.text.s3.bucket",
        "must be another bucket than that of corpus: a pod mounts a bucket once",
    ),
    "backup of a scratch file system": (
        [
            at(
                "storage.scratch.lustre",
                {"capacity_gib": 4800, "deployment": "SCRATCH_2", "restore_from": BACKUP},
            )
        ],
        "storage.scratch.lustre.restore_from",
        "must not be set with deployment: SCRATCH_2, of which FSx has no backups",
    ),
    "backup of a size that follows from a model": (
        [
            at(
                "storage.scratch.lustre",
                {"for_model": {"parameters_billion": 7, "nodes": 2}, "restore_from": BACKUP},
            )
        ],
        "storage.scratch.lustre.restore_from",
        "must not be set with for_model",
    ),
    "existing cluster in a network of the stack": (
        [at("cluster.name", "research"), without("cluster.public_access_cidrs")],
        "cluster.name",
        "must stand beside network.vpc_id: it names a cluster that exists, which has a VPC; got "
        "research",
    ),
    "add-ons of no existing cluster": (
        [at("cluster.existing_add_ons", ["aws-efs-csi-driver"])],
        "cluster.existing_add_ons",
        "must not be set without name",
    ),
    "public ranges of an existing cluster": (
        [*IN_CLUSTER, at("cluster.public_access_cidrs", ["203.0.113.7/32"])],
        "cluster.public_access_cidrs",
        "must not be set with name: this program changes no cluster that it did not make",
    ),
    "logs of an existing cluster": (
        [*IN_CLUSTER, at("cluster.logs", ["api"])],
        "cluster.logs",
        "must not be set with name",
    ),
    "a range of services of an existing cluster": (
        [*IN_CLUSTER, at("cluster.service_cidr", "192.168.0.0/16")],
        "cluster.service_cidr",
        "Fix: delete it; the owner of the cluster decides it",
    ),
    "a range of services with bits behind its prefix": (
        [at("cluster.service_cidr", "192.168.1.0/16")],
        "cluster.service_cidr",
        "must be an IPv4 range: an address, a slash and the length of its prefix, with no bits "
        "behind the prefix; got 192.168.1.0/16. Fix: write 192.168.0.0/16",
    ),
    "a range of services that is none": (
        [at("cluster.service_cidr", "services")],
        "cluster.service_cidr",
        "must be an IPv4 range: an address, a slash and the length of its prefix, with no bits "
        "behind the prefix; got services. Fix: write 172.20.0.0/16",
    ),
    "services with public addresses": (
        [at("cluster.service_cidr", "100.64.0.0/16")],
        "cluster.service_cidr",
        "must lie in 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16; got 100.64.0.0/16. Fix: write"
        " 172.20.0.0/16",
    ),
    "too small a range of services": (
        [at("cluster.service_cidr", "192.168.1.64/26")],
        "cluster.service_cidr",
        "must be /12 to /24; got 192.168.1.64/26. Fix: write 192.168.1.0/24",
    ),
    "too large a range of services": (
        [at("cluster.service_cidr", "10.0.0.0/8")],
        "cluster.service_cidr",
        "must be /12 to /24; got 10.0.0.0/8. Fix: write 172.20.0.0/16",
    ),
    "services at addresses of the VPC": (
        [at("cluster.service_cidr", "10.0.128.0/20")],
        "cluster.service_cidr",
        "must not overlap with environment.network.cidr, 10.0.0.0/16; got 10.0.128.0/20. Fix: delete",
    ),
    "deletion protection of an existing cluster": (
        [*IN_CLUSTER, at("cluster.deletion_protection", True)],
        "cluster.deletion_protection",
        "Fix: delete it; the owner of the cluster decides it",
    ),
    "a tier of an existing cluster": (
        [*IN_CLUSTER, at("cluster.scaling_tier", "tier-xl")],
        "cluster.scaling_tier",
        "Fix: delete it; the owner of the cluster decides it",
    ),
    "a tunnel into an existing cluster": (
        [*IN_CLUSTER, at("cluster.tunnel_port", 8443)],
        "cluster.tunnel_port",
        "must not be set with cluster.name: the first `pulumi up` must reach the cluster that "
        "exists before it makes the node through which the tunnel goes; got 8443. Fix: delete it;"
        " for a private endpoint write proxy_url: http://<host>:<port> or inside_vpc: true",
    ),
    "an unknown add-on of an existing cluster": (
        [*IN_CLUSTER, at("cluster.existing_add_ons", ["aws-efs-csi"])],
        "cluster.existing_add_ons",
        "must list add-ons that an environment uses: eks-pod-identity-agent, aws-fsx-csi-driver, "
        "aws-efs-csi-driver, aws-mountpoint-s3-csi-driver, aws-secrets-store-csi-driver-provider,"
        " eks-node-monitoring-agent; got aws-efs-csi. Fix: write aws-efs-csi-driver",
    ),
    "an add-on of an existing cluster that the stack must configure": (
        [
            *IN_CLUSTER,
            at("storage.sets", {"s3": {}}),
            at("cluster.existing_add_ons", ["aws-mountpoint-s3-csi-driver"]),
        ],
        "cluster.existing_add_ons",
        "must not list aws-mountpoint-s3-csi-driver, which environment.storage.sets needs with a "
        "role or a configuration of its own, so this stack installs it; got "
        "aws-mountpoint-s3-csi-driver",
    ),
    "existing file system in a network of the stack": (
        [at("storage.home.efs", {"file_system_id": EFS})],
        "storage.home.efs.file_system_id",
        "must stand beside network.vpc_id: it names a file system that exists, which has a VPC; "
        "got fs-0123456789abcdef2",
    ),
    "size of an existing file system": (
        [
            EXISTING_VPC,
            at("storage.scratch.lustre", {"file_system_id": LUSTRE, "capacity_gib": 4800}),
        ],
        "storage.scratch.lustre.capacity_gib",
        "must not be set with file_system_id: this program changes no file system that it did not"
        " make; got 4800. Fix: delete it",
    ),
    "repositories of an existing file system": (
        [
            EXISTING_VPC,
            _linked({"s3": "s3://sets", "path": "/sets"}),
            at("storage.scratch.lustre.file_system_id", LUSTRE),
        ],
        "storage.scratch.lustre.repositories",
        "must not be set with file_system_id",
    ),
    "existing file system that would be deleted": (
        [EXISTING_VPC, at("storage.home", {"efs": {"file_system_id": EFS}, "data": "delete"})],
        "storage.home.data",
        "must be keep with file_system_id: this program deletes no file system that it did not make",
    ),
    "existing file system of two stores": (
        [
            EXISTING_VPC,
            at("storage.code", {"efs": {"file_system_id": EFS}}),
            at("storage.sets", {"efs": {"file_system_id": EFS}}),
        ],
        "storage.sets.efs.file_system_id",
        "must be another file system than that of store code: a pod cannot mount one twice; got "
        "fs-0123456789abcdef2. Fix: delete sets, and mount code in its place",
    ),
    "goodput on an existing file system": (
        [
            EXISTING_VPC,
            at("storage.scratch.lustre", {"file_system_id": LUSTRE}),
            at(f"{JOB}.parameters_billion", 7),
            at(f"{JOB}.goodput_percent", 90),
        ],
        f"{JOB}.goodput_percent",
        "must not be set with checkpoints on scratch, whose speed the stack file does not say, as"
        " it exists already: the time of a save is not known; got 90. Fix: delete it, or name "
        "another store in checkpoints",
    ),
    "goodput on a store that bursts": (
        [
            at("storage.home.efs.throughput", "bursting"),
            at(f"{JOB}.checkpoints.store", "home"),
            at(f"{JOB}.parameters_billion", 7),
            at(f"{JOB}.goodput_percent", 90),
        ],
        f"{JOB}.goodput_percent",
        "must not be set with checkpoints on home, whose speed depends on how much it holds, with"
        " throughput: bursting: the time of a save is not known; got 90. Fix: delete it, or name "
        "another store in checkpoints",
    ),
    "provisioned throughput without a number": (
        [at("storage.home.efs.throughput", "provisioned")],
        "storage.home.efs.throughput_mibps",
        "must be set with throughput: provisioned; got nothing. Fix: write 128",
    ),
    "a number without provisioned throughput": (
        [at("storage.home.efs.throughput_mibps", 128)],
        "storage.home.efs.throughput_mibps",
        "must be set only with throughput: provisioned, and not with elastic; got 128. Fix: "
        "delete it, or write throughput: provisioned",
    ),
    "archive of a store that bursts": (
        [
            at(
                "storage.home.efs",
                {"throughput": "bursting", "lifecycle": {"archive_after_days": 90}},
            ),
        ],
        "storage.home.efs.lifecycle.archive_after_days",
        "must not be set with throughput: bursting: EFS archives with elastic only",
    ),
    "archive before infrequent access": (
        [
            at(
                "storage.home.efs.lifecycle",
                {"infrequent_after_days": 30, "archive_after_days": 30},
            )
        ],
        "storage.home.efs.lifecycle.archive_after_days",
        "must be more than infrequent_after_days, which is 30; got 30. Fix: write 60",
    ),
    "a lifecycle of nothing": (
        [at("storage.home.efs.lifecycle", {"back_on_access": True})],
        "storage.home.efs.lifecycle",
        "must say after how many days files move",
    ),
    "ages of objects in an existing bucket": (
        [at("storage.corpus", {"s3": {"bucket": "ours", "delete_after_days": {"tmp/": 3}}})],
        "storage.corpus.s3.delete_after_days",
        "must not be set with bucket: this program changes no bucket that it did not create",
    ),
    "a prefix that begins with a slash": (
        [at("storage.corpus", {"s3": {"delete_after_days": {"/tmp": 3}}})],
        "storage.corpus.s3.delete_after_days./tmp",
        "must be the beginning of keys, which ends with a slash and begins without one, such as "
        "checkpoints/; got /tmp. Fix: rename it to tmp/",
    ),
    "versions of an existing bucket": (
        [at("storage.corpus", {"s3": {"bucket": "ours", "versioning": True}})],
        "storage.corpus.s3.versioning",
        "must not be set with bucket",
    ),
    "days of versions that are not kept": (
        [at("storage.corpus", {"s3": {"old_versions_days": 3}})],
        "storage.corpus.s3.old_versions_days",
        "must not be set without versioning, which keeps old versions; got 3. Fix: delete it",
    ),
    "checkpoints in a bucket": (
        [at("storage.corpus", {"s3": {}}), at(f"{JOB}.checkpoints.store", "corpus")],
        f"{JOB}.checkpoints.store",
        "which Mountpoint for Amazon S3 cannot; got corpus. Fix: write the name of a Lustre or EFS"
        " store; lustre.repositories with auto_export",
    ),
    "logs in a bucket": (
        [
            at("storage.corpus", {"s3": {"writable": True}}),
            at(f"{JOB}.tensorboard", {"store": "corpus", "directory": "logs"}),
        ],
        f"{JOB}.tensorboard.store",
        "must be a store whose files can be renamed and appended to",
    ),
    "size FSx does not sell": (
        [at("storage.scratch.lustre.capacity_gib", 5000)],
        "storage.scratch.lustre.capacity_gib",
        "Fix: write 4800",
    ),
    "small size FSx does not sell": (
        [at("storage.scratch.lustre.capacity_gib", 1000)],
        "storage.scratch.lustre.capacity_gib",
        "Fix: write 1200",
    ),
    "speed FSx does not sell": (
        [at("storage.scratch.lustre.throughput_mbps_per_tib", 300)],
        "storage.scratch.lustre.throughput_mbps_per_tib",
        "must be one of 125, 250, 500, 1000 with deployment: PERSISTENT_2; got 300. Fix: "
        "write 250, or another of them",
    ),
    "no speed": (
        [without("storage.scratch.lustre.throughput_mbps_per_tib")],
        "storage.scratch.lustre.throughput_mbps_per_tib",
        "got nothing. Fix: write 500, or another of them",
    ),
    "speed of scratch": (
        [at("storage.scratch.lustre.deployment", "SCRATCH_2")],
        "storage.scratch.lustre.throughput_mbps_per_tib",
        "must not be set with deployment: SCRATCH_2, which has one speed",
    ),
    "a Trainer that upstream has and this program lacks": (
        [at("trainer.version", "2.4.0")],
        "trainer.version",
        "must be a Kubeflow Trainer release that this program supports; got 2.4.0, for which it "
        "lacks CRDs and runtimes, and whose controllers it has never run. Fix: write 2.1.0 or "
        "2.3.0",
    ),
    "unknown Trainer": (
        [at("trainer.version", "1.8.1")],
        "trainer.version",
        "must be a Kubeflow Trainer release that this program supports",
    ),
    "unknown runtime": (
        [at("trainer.runtimes", ["torch-distributed", "jax"])],
        "trainer.runtimes",
        "describe a runtime of your own under own_runtimes",
    ),
    "own runtime of an upstream name": (
        [at("trainer.own_runtimes.torch-distributed", {"image": "a@sha256:0"})],
        "trainer.own_runtimes.torch-distributed",
        "must not have the name of a runtime that the Trainer ships",
    ),
    "unknown pool": ([at(f"{JOB}.pool", "g6")], f"{JOB}.pool", "one of g6e, h100"),
    "gang larger than its pool": (
        [at(f"{JOB}.nodes", 5)],
        f"{JOB}.nodes",
        "raise pools.g6e.max_nodes to 5",
    ),
    "more GPUs than a node has": (
        [at(f"{JOB}.gpus_per_node", 9)],
        f"{JOB}.gpus_per_node",
        "be at most 8",
    ),
    "more ranks than GPUs": (
        [at(f"{JOB}.gpus_per_node", 4), at(f"{JOB}.processes_per_node", 8)],
        f"{JOB}.processes_per_node",
        "be at most the 4 GPUs of a pod",
    ),
    "more vCPUs than a node has for pods": (
        [at(f"{JOB}.cpus_per_node", 191)],
        f"{JOB}.cpus_per_node",
        "be at most 190",
    ),
    "more memory than a node has for pods": (
        [at(f"{JOB}.memory_gib", 1536)],
        f"{JOB}.memory_gib",
        "be at most 1414",
    ),
    "more shared memory than the pod has memory": (
        [at(f"{JOB}.memory_gib", 100), at(f"{JOB}.shared_memory_gib", 100)],
        f"{JOB}.shared_memory_gib",
        "must be at most 99 GiB, as the pod has 100 GiB: /dev/shm is a part of the pod's memory, "
        "and the ranks need the rest; got 100 GiB. Fix: write 50, or raise memory_gib",
    ),
    "all memory shared": (
        [at(f"{JOB}.shared_memory_gib", 1400)],
        f"{JOB}.shared_memory_gib",
        "must be at most 707 GiB, half of what a g6e.48xlarge has for pods: /dev/shm is a part of"
        " the pod's memory, and the ranks need the rest; got 1400 GiB. Fix: write 707 or less",
    ),
    "runtime that is not installed": (
        [at(f"{JOB}.runtime", "jax")],
        f"{JOB}.runtime",
        "be a runtime of the environment",
    ),
    "restarts from nothing": (
        [without(f"{JOB}.checkpoints")],
        f"{JOB}.checkpoints",
        "be set: without it each of 5 restarts begins from zero",
    ),
    "unknown store": (
        [at(f"{JOB}.storage.data", {"path": "/data"})],
        f"{JOB}.storage.data",
        "one of scratch, home",
    ),
    "two mounts at a path": (
        [at(f"{JOB}.storage", {"home": {"path": "/mnt/"}, "scratch": {"path": "/mnt"}})],
        f"{JOB}.storage.scratch.path",
        "must be a path of its own, and not that of storage.home.path; got /mnt. Fix: write another path",
    ),
    "mount where checkpoints are": (
        [at(f"{JOB}.storage.home", {"path": "/checkpoints"})],
        f"{JOB}.storage.home.path",
        "must be a path of its own, and not that of checkpoints",
    ),
    "mount on shared memory": (
        [at(f"{JOB}.storage.home", {"path": "/dev/shm"})],
        f"{JOB}.storage.home.path",
        "must be a path of its own, and not that of shared memory",
    ),
    "checkpoints on an unknown store": (
        [at(f"{JOB}.checkpoints.store", "data")],
        f"{JOB}.checkpoints.store",
        "be a store of the environment",
    ),
    "checkpoints where S3 deletes them": (
        [_linked({"path": "/t5-large"})],
        f"{JOB}.checkpoints.directory",
        "must not be in /t5-large, the path of repository r0: changes in s3://sets/a/ replace and"
        " delete checkpoints there; got t5-large",
    ),
    "checkpoints outside of their store": (
        [at(f"{JOB}.checkpoints.directory", "a/../../b")],
        f"{JOB}.checkpoints.directory",
        "be a path from the root of its store",
    ),
    "a run that no later one could go on from": (
        [
            at(f"{JOB}.checkpoints.directory", "t5/{run}"),
            at(f"{JOB}.checkpoints.when_changed", "afresh"),
        ],
        f"{JOB}.checkpoints.when_changed",
        "must not be afresh beside {run} in the directory: each run has a directory of its own "
        "there, empty at first; got afresh. Fix: write resume, and a new run still finds its "
        "directory empty; or delete {run} from checkpoints.directory",
    ),
    "a placeholder in a directory": (
        [at(f"{JOB}.checkpoints.directory", "t5/{job}")],
        f"{JOB}.checkpoints.directory",
        "must have no placeholder but {run}, which stands for the number of the run; got "
        "t5/{job}. Fix: write the text itself in its place; or {run}, and each run has a "
        "directory of its own",
    ),
    "no command": ([without(SCRIPT)], JOB, "got none"),
    "two commands": ([at(f"{JOB}.command", ["python", "train.py"])], JOB, "got script and command"),
    "ranks without a meeting place": (
        [at(SCRIPT, "cd /code\ntorchrun --rdzv_backend=c10d train.py\n")],
        f"{JOB}.script",
        "Fix: add --rdzv_endpoint=",
    ),
    "ranks without a meeting place, over lines": (
        [at(SCRIPT, "torchrun \\\n  --rdzv-backend c10d \\\n  train.py\n")],
        f"{JOB}.script",
        "rendezvous endpoint",
    ),
    "torchrun itself without a meeting place": (
        [without(SCRIPT), at(f"{JOB}.command", ["/usr/bin/torchrun", "--standalone", "train.py"])],
        f"{JOB}.command",
        "rendezvous",
    ),
    "blank after a backslash": (
        [at(SCRIPT, "torchrun --rdzv_endpoint=a:1 \\ \n  train.py\n")],
        f"{JOB}.script",
        "backslash",
    ),
    "comment after a backslash": (
        [at(SCRIPT, "torchrun --rdzv_endpoint=a:1 \\ # eight\n  train.py\n")],
        f"{JOB}.script",
        "backslash",
    ),
    "priority of the system": (
        [at("priorities", {"system-node-critical": 5})],
        "priorities.system-node-critical",
        "not begin with system-, which Kubernetes keeps",
    ),
    "keys of tags that differ by case": (
        [at("tags", {"owner": "x", "Owner": "y"})],
        "tags.Owner",
        "not differ from another key by case only",
    ),
    "variable that checkpoints set": (
        [at(f"{JOB}.env.CHECKPOINT_DIR", "/x")],
        f"{JOB}.env.CHECKPOINT_DIR",
        "not be set beside checkpoints",
    ),
    "name that is too long for a file system": (
        [at(f"{JOB}.checkpoints.directory", "a" * 300)],
        f"{JOB}.checkpoints.directory",
        "have names of at most 255 bytes",
    ),
    "name that S3 keeps for itself": (
        [at("storage.b", {"s3": {"bucket": "xn--a"}})],
        "storage.b.s3.bucket",
        "must be the name of a general purpose bucket, which never begins with xn--; got xn--a. "
        "Fix: name another bucket, or delete bucket, and the stack makes one",
    ),
    "system nodes that are Macs": (
        [at("system_nodes.instance_type", "mac2.metal")],
        "system_nodes.instance_type",
        "be a type for general use",
    ),
    "number without end": (
        [at(f"{JOB}.expected_hours", float("inf"))],
        f"{JOB}.expected_hours",
        "be a finite number",
    ),
    "blank behind a path": (
        [at(f"{JOB}.storage", {"scratch": {"path": "/data "}})],
        f"{JOB}.storage.scratch.path",
        "not begin or end with a blank",
    ),
    "role of another partition": (
        [at("cluster.deployer_role_arn", "arn:aws-cn:iam::123456789012:role/x")],
        "cluster.deployer_role_arn",
        "must begin with arn:aws:, the partition of ap-northeast-2 (aws:region); got "
        "arn:aws-cn:iam::123456789012:role/x. Fix: write the ARN of a role in an account of that "
        "partition: arn:aws:iam::<account>:role/x; or change aws:region",
    ),
    "secret of another partition": (
        [at(f"{JOB}.secrets", {"HF": {"secrets_manager": IN_CHINA, "key": "token"}})],
        f"{JOB}.secrets.HF.secrets_manager",
        "arn:aws:secretsmanager:ap-northeast-2:<account>:secret:hf-AbCdEf; or change aws:region",
    ),
    "a pool that begins as an ARN": (
        [at(f"{JOB}.pool", "arn:foo")],
        f"{JOB}.pool",
        "must be a pool of the environment; got arn:foo. Fix: write one of g6e, h100",
    ),
    "an image that begins as an ARN": (
        [at(f"{JOB}.image", "arn:b:1")],
        f"{JOB}.image",
        "must have one tag, and a tag has no colon; got arn:b:1. Fix: write arn:<version>, better"
        " arn@sha256:…",
    ),
    "address that is listed twice": (
        [at("budget", {"dollars_a_month": 10**6, "emails": ["a@b.co", "a@b.co"]})],
        "budget.emails",
        "list each once",
    ),
    "variable of the Trainer": (
        [at(f"{JOB}.env.PET_NNODES", "2")],
        f"{JOB}.env.PET_NNODES",
        "not be a variable that the Trainer sets",
    ),
    "token in the environment": (
        [at(f"{JOB}.env.HF_TOKEN", "hf_" + "a" * 34)],
        f"{JOB}.env.HF_TOKEN",
        "put a new one into a Kubernetes Secret",
    ),
    "token in the script": (
        [at(SCRIPT, "export AWS_ACCESS_KEY_ID=AKIA" + "A" * 16)],
        f"{JOB}.script",
        "not contain a secret in clear",
    ),
}

# Pools: capacity that contradicts itself.

ODCR = {"id": "cr-0123456789abcdef0", "instances": 2}
BLOCK = {**ODCR, "starts": "2098-12-01T11:30:00Z", "ends": "2098-12-03T11:30:00Z"}
POOL = "pools.h100"


def _h100(**more: Any) -> Edit:
    return at(POOL, {**P5, "max_nodes": 2, **more})


def _job_on(pool: str, **more: Any) -> Edit:
    """A second job like the first, on another pool and with checkpoints of its own."""
    return lambda settings: settings["jobs"].update(
        {
            "other": {
                **settings["jobs"]["t5-large"],
                "pool": pool,
                "script": "accelerate launch t5.py",
                "checkpoints": {"store": "scratch", "directory": "other"},
                **more,
            }
        }
    )


def _over_efa(**more: Any) -> Edit:
    """The dev file's Lustre store, made for EFA."""
    return at(
        "storage.scratch.lustre",
        {"capacity_gib": 9600, "throughput_mbps_per_tib": 500, "efa": True, **more},
    )


CPU = at("pools.cpu", {"instance_types": ["m7i.48xlarge"], "max_nodes": 2})
MODEL = [at(f"{JOB}.parameters_billion", 70), at("storage.scratch.lustre.capacity_gib", 9600)]
"""9600 GiB at 500 MB/s per TiB: 840 GB take 3 minutes."""

REFUSED |= {
    "another accelerator": (
        [at(f"{POOL}.instance_types", ["trn1.32xlarge"])],
        f"{POOL}.instance_types",
        "must list types on which this program trains: CUDA GPUs, or no accelerator; got "
        "trn1.32xlarge. Fix: write another type; Trainium runs Neuron, not CUDA images and the "
        "NVIDIA plugin; nearest with GPUs: p5.48xlarge, p4d.24xlarge",
    ),
    "one letter wrong in a type": (
        [at(f"{POOL}.instance_types", ["p5.48xlrage"])],
        f"{POOL}.instance_types",
        "Fix: write p5.48xlarge",
    ),
    "a type twice": (
        [at(f"{POOL}.instance_types", ["p5.48xlarge", "p5.48xlarge"])],
        f"{POOL}.instance_types",
        "must list each type once; got [p5.48xlarge, p5.48xlarge]. Fix: write [p5.48xlarge]",
    ),
    "types with unlike GPUs": (
        [at("pools.mixed", {"instance_types": ["g6e.48xlarge", "g6e.12xlarge"], "max_nodes": 1})],
        "pools.mixed.instance_types",
        "got g6e.48xlarge with 8, g6e.12xlarge with 4. Fix: write [g6e.48xlarge], and",
    ),
    "reserved nodes of several types": (
        [
            _h100(
                instance_types=["p5.48xlarge", "p5en.48xlarge"],
                capacity="reservation",
                reservation=ODCR,
            )
        ],
        f"{POOL}.instance_types",
        "must list one type, as the pool has a reservation, which is of one; got [p5.48xlarge, "
        "p5en.48xlarge]. Fix: write that of the reservation, such as [p5.48xlarge], and another "
        "pool for the other types",
    ),
    "capacity nobody sells": (
        [at(f"{POOL}.capacity", "cheap")],
        f"{POOL}.capacity",
        'must be one of on_demand, spot, reservation, block; got "cheap"',
    ),
    "reservation without an id": (
        [_h100(capacity="reservation")],
        f"{POOL}.reservation",
        "must be set with capacity: reservation; got nothing. Fix: add reservation: {id:",
    ),
    "something that is no reservation's id": (
        [_h100(capacity="reservation", reservation={**ODCR, "id": "r-1"})],
        f"{POOL}.reservation.id",
        'cr- and 8 to 17 hexadecimal digits; got "r-1". Fix: write one such as cr-',
    ),
    "a reservation nothing uses": (
        [_h100(reservation=ODCR)],
        f"{POOL}.capacity",
        "must be reservation, or block for a Capacity Block, as the pool has the setting "
        "reservation; got on_demand. Fix: write reservation, or delete the setting reservation",
    ),
    "more nodes than are reserved": (
        [_h100(max_nodes=3, capacity="reservation", reservation=ODCR)],
        f"{POOL}.max_nodes",
        "must be at most 2, the instances of cr-0123456789abcdef0; got 3. Fix: write 2",
    ),
    "a block that AWS does not sell in one": (
        [_h100(capacity="block", reservation={**ODCR, "instances": 65})],
        f"{POOL}.reservation.instances",
        "must be one of 1, 2, 4, 8, 16, 32, 64, the sizes that EC2 sells as one block; got 65",
    ),
    "a block of a size between two that AWS sells": (
        [_h100(capacity="block", reservation={**BLOCK, "instances": 3})],
        f"{POOL}.reservation.instances",
        "the sizes that EC2 sells as one block; got 3",
    ),
    "a new placement group for a reservation": (
        [_h100(capacity="reservation", reservation=ODCR, placement="cluster")],
        f"{POOL}.placement",
        "a reservation has instances only in the group it was created in",
    ),
    "a block without its ends": (
        [_h100(capacity="block", reservation=ODCR)],
        f"{POOL}.reservation",
        "must have starts and ends, for a Capacity Block; got neither. Fix: copy StartDate as "
        "starts, and EndDate as ends, from what this prints in the region of the stack: aws ec2 "
        "describe-capacity-reservations --capacity-reservation-ids cr-0123456789abcdef0",
    ),
    "a block that ends before it starts": (
        [_h100(capacity="block", reservation={**BLOCK, "ends": "2098-11-30T11:30:00Z"})],
        f"{POOL}.reservation.ends",
        "must be later than starts, 2098-12-01T11:30:00Z",
    ),
    "a block that is over": (
        [
            _h100(
                capacity="block",
                reservation={
                    **ODCR,
                    "starts": "2024-01-01T00:00:00Z",
                    "ends": "2024-01-02T11:30:00Z",
                },
            )
        ],
        f"{POOL}.reservation.ends",
        "must be in the future: the reservation is over",
    ),
    "a time without its zone": (
        [_h100(capacity="block", reservation={**BLOCK, "starts": "2098-12-01T11:30:00"})],
        f"{POOL}.reservation.starts",
        'must be a time with a time zone; got "2098-12-01T11:30:00". Fix: write '
        '"2098-12-01T11:30:00Z"',
    ),
    "a block of a type that has none": (
        [
            at(
                "pools.g6e",
                {
                    "instance_types": ["g6e.48xlarge"],
                    "max_nodes": 2,
                    "capacity": "block",
                    "reservation": BLOCK,
                },
            )
        ],
        "pools.g6e.instance_types",
        "must list types that AWS sells as Capacity Blocks",
    ),
    "one reservation in two pools": (
        [
            _h100(capacity="reservation", reservation=ODCR),
            at("pools.more", {**P5, "capacity": "reservation", "reservation": ODCR}),
        ],
        "pools.more.reservation.id",
        "must not be the reservation of pool h100, too: each of the two counts all its instances;"
        " got cr-0123456789abcdef0. Fix: write the id of another reservation; or delete the pool,"
        " and name pool h100 in its jobs",
    ),
    "spares of nothing": (
        [_h100(warm_spares=1)],
        f"{POOL}.warm_spares",
        "must not be set without replicas: spares stand beside them; got 1. Fix: delete it, or "
        "set replicas too",
    ),
    "spot that was kept": (
        [_h100(replicas=0, capacity="spot")],
        f"{POOL}.replicas",
        "must not be set with capacity: spot",
    ),
    "more kept than the pool may have": (
        [_h100(replicas=2, warm_spares=1)],
        f"{POOL}.max_nodes",
        "must be at least 3: 2 replicas and 1 warm spares; got 2. Fix: write 3",
    ),
    "spot that is kept": (
        [_h100(replicas=1, capacity="spot")],
        f"{POOL}.replicas",
        "must not be set with capacity: spot",
    ),
    "an image to fetch without a tag": (
        [_h100(prefetch=["nvcr.io/nvidia/pytorch:24.12-py3", "registry.local:5000/train"])],
        f"{POOL}.prefetch",
        "must name images with a tag or a digest; got registry.local:5000/train. Fix:"
        " write registry/name:tag, better registry/name@sha256:…",
    ),
    "an image to fetch that is still a placeholder": (
        [_h100(prefetch=["<account>.dkr.ecr.us-east-1.amazonaws.com/train:1"])],
        f"{POOL}.prefetch.0",
        "must not contain a placeholder: nothing fills it in; got <account>. Fix: write what "
        "belongs there",
    ),
    "a fallback to the same zone": (
        [_h100(fallback_zones=["ap-northeast-2a"])],
        f"{POOL}.fallback_zones",
        "must list other zones than environment.zone",
    ),
    "a fallback to a zone without a subnet": (
        [_h100(fallback_zones=["ap-northeast-2d"])],
        f"{POOL}.fallback_zones",
        "one of ap-northeast-2b, ap-northeast-2c",
    ),
    "a fallback named twice": (
        [_h100(fallback_zones=["ap-northeast-2b", "ap-northeast-2b"])],
        f"{POOL}.fallback_zones",
        "must list each zone once; got [ap-northeast-2b, ap-northeast-2b]. Fix: write "
        "[ap-northeast-2b]",
    ),
    "a reservation with fallback zones": (
        [_h100(capacity="reservation", reservation=ODCR, fallback_zones=["ap-northeast-2b"])],
        f"{POOL}.fallback_zones",
        "is in one zone",
    ),
    "a placement group over zones": (
        [_h100(placement="cluster", fallback_zones=["ap-northeast-2b"])],
        f"{POOL}.fallback_zones",
        "is in one zone",
    ),
    "kept nodes over zones that are switched off": (
        [_h100(replicas=0, fallback_zones=["ap-northeast-2b"])],
        f"{POOL}.fallback_zones",
        "spread over the zones",
    ),
    "kept nodes over zones": (
        [_h100(replicas=1, fallback_zones=["ap-northeast-2b"])],
        f"{POOL}.fallback_zones",
        "spread over the zones",
    ),
    "two NodePools of one name": (
        [
            at("pools.a", {"instance_types": ["g6e.48xlarge", "g6.48xlarge"], "max_nodes": 1}),
            at("pools.a-2", P5),
        ],
        "pools.a",
        "must not create NodePool a-2, which pool a-2 also creates",
    ),
    "47 nodes and the rest need 1,020 addresses, and AWS keeps 5 of 1,024": (
        [
            at("network.cidr", "10.0.0.0/19"),
            at("pools.g6e.max_nodes", 45),
            at("storage.more", {"efs": {}}),
            at("storage.other", {"efs": {}}),
        ],
        "network.cidr",
        "must have room for all nodes, each with 21 addresses: its private subnet in "
        "ap-northeast-2a has 1019, an eighth of the range, and 1020 are needed: 945 for pool g6e,"
        " 42 for pool h100, 21 for system nodes, 3 for store scratch, 1 for store home, 1 for "
        "store more, 1 for store other, 6 for EKS; got 10.0.0.0/19",
    ),
    "504 of 507 addresses for pools, and none for anything else": (
        [at("network.cidr", "10.0.0.0/20"), at("pools.g6e.max_nodes", 22)],
        "network.cidr",
        "must have room for all nodes, each with 21 addresses: its private subnet in "
        "ap-northeast-2a has 507, an eighth of the range, and 535 are needed: 462 for pool g6e, "
        "42 for pool h100, 21 for system nodes, 3 for store scratch, 1 for store home, 6 for EKS;"
        " got 10.0.0.0/20",
    ),
    "a larger range that is too small for the same reason": (
        [at("network.cidr", "10.0.0.0/20"), at("pools.g6e.max_nodes", 47)],
        "network.cidr",
        "Fix: write 10.0.0.0/18, or",
    ),
    "more nodes than the subnet has addresses": (
        [at("network.cidr", "10.0.0.0/20"), at("pools.g6e.max_nodes", 40)],
        "network.cidr",
        "Fix: write 10.0.0.0/19, or write max_nodes: 20 under environment.pools.g6e",
    ),
    # The environment.
    "a zone id of another region": (
        [at("zone_id", "use1-az1")],
        "zone_id",
        "must be a zone id of ap-northeast-2",
    ),
    "GPUs for controllers": (
        [at("system_nodes.instance_type", "g6e.12xlarge")],
        "system_nodes.instance_type",
        "must have no GPUs: only controllers run there",
    ),
    "controllers on Arm": (
        [at("system_nodes.instance_type", "m7g.xlarge")],
        "system_nodes.instance_type",
        "must be x86",
    ),
    "a size that the family does not have": (
        [at("system_nodes.instance_type", "m7i.5xlarge")],
        "system_nodes.instance_type",
        "must have a size of m7i: large, xlarge,",
    ),
    "a type that is no type": (
        [at("system_nodes.instance_type", "big")],
        "system_nodes.instance_type",
        "must be an EC2 instance type: family, dot and size; got big. Fix: write m7i.xlarge",
    ),
    "controllers without memory": (
        [at("system_nodes.instance_type", "t3.small")],
        "system_nodes.instance_type",
        "at least 2 vCPUs and 8 GiB",
    ),
    "system nodes without CPU for Kueue": (
        [at("system_nodes.instance_type", "m7i.large"), at("queues", {})],
        "system_nodes.instance_type",
        "Fix: write m7i.xlarge, or set nodes to 3",
    ),
    "system nodes of another Kubernetes version": (
        [at("system_nodes.release", "1.34.11-20261012")],
        "system_nodes.release",
        "must be a release of environment.cluster.version, 1.35; got 1.34.11-20261012. Fix: write"
        " 1.35.8-20261012, or delete it",
    ),
    "system nodes whose kernel panics": (
        [at("system_nodes.release", "1.35.8-20261003")],
        "system_nodes.release",
        "must be a release whose kernel does not panic",
    ),
    "a tag of AWS": (
        [at("tags", {"aws:team": "a"})],
        "tags.aws:team",
        "must not have a key that AWS",
    ),
    "a tag of ours": (
        [at("tags", {"trainyard:stack": "a"})],
        "tags.trainyard:stack",
        "must not have a key that AWS",
    ),
    "a tag that Karpenter refuses": (
        [at("tags", {"karpenter.sh/nodepool": "a"})],
        "tags.karpenter.sh/nodepool",
        "must not have a key that AWS",
    ),
    "a tag value with signs that IAM refuses": (
        [at("tags", {"owner": "Smith, Jane (ML)"})],
        "tags.owner",
        "must have a value of letters, digits, spaces and _.:/=+-@: IAM, FSx and EFS take nothing else;"
        " got Smith, Jane (ML). Fix: write Smith Jane ML",
    ),
    "a tag value of nothing that IAM takes": (
        [at("tags", {"owner": "#"})],
        "tags.owner",
        "got #. Fix: write another value, or delete it",
    ),
    "a tag key with signs that IAM refuses": (
        [at("tags", {"a#b&c(d)": "1"})],
        "tags.a#b&c(d)",
        "must have a key of letters, digits, spaces and _.:/=+-@: IAM, FSx and EFS take nothing else;"
        " got a#b&c(d). Fix: delete it, or name it a-b-c-d",
    ),
    "a tag key of nothing that IAM takes": (
        [at("tags", {"#": "1"})],
        "tags.#",
        "Fix: delete it, or rename it",
    ),
    "a long tag": ([at("tags", {"why": "w" * 257})], "tags.why", "a value of at most 256"),
    "too many tags": (
        [at("tags", {f"t{n}": "1" for n in range(41)})],
        "tags",
        "must have at most 40 tags",
    ),
    "an admin twice": (
        [
            at(
                "cluster.admins",
                {n: {"role_arn": "arn:aws:iam::000000000000:role/ops"} for n in "ab"},
            )
        ],
        "cluster.admins.b",
        "EKS has one access entry for each role",
    ),
    "a namespace that looks like the system's": (
        [at("namespace", "kube-jobs")],
        "namespace",
        "must not be a namespace of the system",
    ),
    # Stores.
    "size and model": (
        [at("storage.scratch.lustre.for_model", {"parameters_billion": 7, "nodes": 2})],
        "storage.scratch.lustre.capacity_gib",
        "must not be set beside for_model",
    ),
    "speed and model": (
        [at("storage.scratch.lustre.for_model", {"parameters_billion": 7, "nodes": 2})],
        "storage.scratch.lustre.throughput_mbps_per_tib",
        "must not be set beside for_model",
    ),
    "neither size nor model": (
        [at("storage.scratch.lustre", {"throughput_mbps_per_tib": 500})],
        "storage.scratch.lustre.capacity_gib",
        "must be set, unless for_model is; got nothing. Fix: add capacity_gib: 4800,",
    ),
    "scratch for a model": (
        [
            at(
                "storage.scratch.lustre",
                {"deployment": "SCRATCH_2", "for_model": {"parameters_billion": 7, "nodes": 2}},
            )
        ],
        "storage.scratch.lustre.deployment",
        "SCRATCH_2 loses the checkpoints when a server fails",
    ),
    "a goodput nobody reaches": (
        [
            at(
                "storage.scratch.lustre",
                {"for_model": {"parameters_billion": 1000, "nodes": 2000, "goodput_percent": 99.9}},
            )
        ],
        "storage.scratch.lustre.for_model.goodput_percent",
        "must be a goodput that the fastest Lustre of FSx reaches for this model on these nodes; "
        "got 99.9. Fix: write 89",
    ),
    "backups of scratch": (
        [
            at(
                "storage.scratch.lustre",
                {"capacity_gib": 2400, "deployment": "SCRATCH_2", "backup_days": 7},
            )
        ],
        "storage.scratch.lustre.backup_days",
        "of which FSx makes no backups",
    ),
    "petabytes by mistake": (
        [at("storage.scratch.lustre.capacity_gib", 4800000)],
        "storage.scratch.lustre.capacity_gib",
        "must be at most 1046400, about 1 PiB",
    ),
    "checkpoints that do not fit": (
        [at(f"{JOB}.parameters_billion", 175)],
        f"{JOB}.checkpoints.store",
        "must have room for 3 checkpoints of 2,100 GB each, by the model's parameters: 2 that "
        "stay, and the one being written; got scratch, which has room for 2: a part of its size "
        "stays free. Fix: write capacity_gib: 7200 or more under environment.storage.scratch.lustre",
    ),
    "checkpoints that stay and do not fit": (
        [*MODEL, at(f"{JOB}.checkpoints.keep", 11)],
        f"{JOB}.checkpoints.store",
        "must have room for 12 checkpoints of 840 GB each, by the model's parameters: 11 that "
        "stay, and the one being written; got scratch, which has room for 11: a part of its size "
        "stays free",
    ),
    "fewer checkpoints than a damaged one leaves": (
        [at(f"{JOB}.checkpoints.keep", 1)],
        f"{JOB}.checkpoints.keep",
        "must be at least 2: the one before the newest is read where the newest cannot be; got 1."
        " Fix: write 2",
    ),
    "saves that take longer than their interval": (
        [*MODEL, at(f"{JOB}.checkpoints.interval_minutes", 2)],
        f"{JOB}.checkpoints.interval_minutes",
        "must be more than a save takes on scratch, which is 3.0 minutes; got 2. Fix: write 4",
    ),
    "asynchronous saves that never end": (
        [
            *MODEL,
            at(f"{JOB}.checkpoints.interval_minutes", 2),
            at(f"{JOB}.checkpoints.asynchronous", True),
        ],
        f"{JOB}.checkpoints.interval_minutes",
        "must be more than a save takes on scratch",
    ),
    "saves rarer than failures": (
        [*MODEL, at(f"{JOB}.checkpoints.interval_minutes", 200_000)],
        f"{JOB}.checkpoints.interval_minutes",
        "must be less than 1422 (23.7 hours), the mean time between stops of the job: "
        "other_stops_per_day (1) and failures of its 2 nodes; got 200000. Fix: write 93, at which"
        " saves and lost work cost least",
    ),
    "a goodput the store cannot keep": (
        [
            at(f"{JOB}.parameters_billion", 70),
            at("storage.scratch.lustre", {"capacity_gib": 2400, "throughput_mbps_per_tib": 125}),
            at(f"{JOB}.goodput_percent", 99.9),
        ],
        f"{JOB}.goodput_percent",
        "must be at most 70.4, as a save on scratch takes 2,867 s",
    ),
    "a goodput of nothing": (
        [at(f"{JOB}.goodput_percent", 95)],
        f"{JOB}.goodput_percent",
        "must not be set without parameters_billion and checkpoints",
    ),
    # Repositories.
    "backups of a linked store": (
        [_linked(), at("storage.scratch.lustre.backup_days", 7)],
        "storage.scratch.lustre.backup_days",
        "FSx makes no backups of a file system with links to S3",
    ),
    "backups of a linked store that was restored": (
        [
            _linked(),
            at("storage.scratch.lustre.backup_days", 7),
            at("storage.scratch.lustre.restore_from", BACKUP),
        ],
        "storage.scratch.lustre.backup_days",
        "links to S3; got 7. Fix: write 0; to copy new files to S3, write auto_export",
    ),
    "repository in a directory bucket": (
        [_linked({"s3": "s3://data--use1-az4--x-s3/sets/"})],
        f"{REPOSITORIES}.r0.s3",
        "be in a general purpose bucket, whose name never ends with --x-s3; got "
        "s3://data--use1-az4--x-s3/sets/. Fix: name another bucket",
    ),
    "repository in a bucket whose name S3 keeps for itself": (
        [_linked({"s3": "s3://xn--foo"})],
        f"{REPOSITORIES}.r0.s3",
        "be in a general purpose bucket, whose name never begins with xn--",
    ),
    "nine repositories": (
        [_linked(*({"s3": f"s3://sets-{n}", "path": f"/{n}"} for n in range(9)))],
        REPOSITORIES,
        "must have at most 8 repositories, as FSx allows for a file system; got 9",
    ),
    "no S3 URI": (
        [_linked({"s3": "https://sets.s3.amazonaws.com/a"})],
        f"{REPOSITORIES}.r0.s3",
        "must begin with s3:// and a bucket",
    ),
    "no bucket of S3": (
        [_linked({"s3": "s3://My_Sets/a"})],
        f"{REPOSITORIES}.r0.s3",
        "3 to 63 of a-z",
    ),
    "relative path": (
        [_linked({"path": "data"})],
        f"{REPOSITORIES}.r0.path",
        "must begin with /, the root of the file system; got data. Fix: write /data",
    ),
    "path with ..": (
        [_linked({"path": "/data/../x"})],
        f"{REPOSITORIES}.r0.path",
        "must be a directory without empty names, . and ..; got '/data/../x'. Fix: write /x",
    ),
    "directories in each other": (
        [_linked({}, {"s3": "s3://other", "path": "/data/more"})],
        f"{REPOSITORIES}.r1.path",
        "must not overlap with path /data of repository r0; got /data/more. Fix: write a "
        "directory of its own, such as /r1",
    ),
    "whole file system and a directory": (
        [_linked({"path": "/"}, {"s3": "s3://other"})],
        f"{REPOSITORIES}.r1.path",
        "must not overlap with path / of repository r0; got /data. Fix: delete one of the two, or"
        " write another path than /, which is the whole file system",
    ),
    "prefixes in each other": (
        [_linked({}, {"s3": "s3://sets/a/b", "path": "/more"})],
        f"{REPOSITORIES}.r1.s3",
        "must not overlap with s3://sets/a/ of repository r0; got s3://sets/a/b. Fix: delete one "
        "of the two, or write a prefix outside of s3://sets/a/",
    ),
    "one prefix twice": (
        [_linked({}, {"s3": "s3://sets/a", "path": "/more"})],
        f"{REPOSITORIES}.r1.s3",
        "must not overlap with s3://sets/a/ of repository r0; got s3://sets/a. Fix: delete one of"
        " the two, or write a prefix outside of s3://sets/a/",
    ),
    "two stores that export to one prefix": (
        [
            _linked({"auto_export": ["NEW"]}),
            lambda s: s["storage"].update(second=copy.deepcopy(s["storage"]["scratch"])),
        ],
        "storage.second.lustre.repositories.r0.s3",
        "must not overlap with s3://sets/a/, which repository r0 of store scratch exports to",
    ),
    "event twice": (
        [_linked({"auto_import": ["NEW", "NEW"]})],
        f"{REPOSITORIES}.r0.auto_import",
        "must list each event once; got [NEW, NEW]. Fix: write [NEW]",
    ),
    # Lustre over EFA.
    "EFA of scratch": (
        [
            at(
                "storage.scratch.lustre",
                {"capacity_gib": 2400, "deployment": "SCRATCH_2", "efa": True},
            )
        ],
        "storage.scratch.lustre.efa",
        "SCRATCH_2, which has no EFA",
    ),
    "size that is not sold with EFA": (
        [at("storage.scratch.lustre.efa", True)],
        "storage.scratch.lustre.capacity_gib",
        "must be a multiple of 9600 with efa: true and throughput_mbps_per_tib: 500; got 4800. "
        "Fix: write 9600, or write throughput_mbps_per_tib: 1000, or delete efa",
    ),
    "EFA for nodes that would hang": (
        [_over_efa(), without(POOL)],
        "storage.scratch.lustre.efa",
        "g6e.48xlarge, which loses packets over EFA and hangs",
    ),
    "EFA over zones": (
        [
            _over_efa(),
            without("pools.g6e"),
            without("jobs"),
            _h100(fallback_zones=["ap-northeast-2b"]),
        ],
        "storage.scratch.lustre.efa",
        "EFA does not cross zones",
    ),
    # Jobs on pools.
    "a gang on several types": (
        [at("pools.g6e.instance_types", ["g6e.48xlarge", "g6.48xlarge"])],
        f"{JOB}.nodes",
        "be 1 on pool g6e, which has several types",
    ),
    "a gang over zones": (
        [at("pools.g6e.fallback_zones", ["ap-northeast-2b"])],
        f"{JOB}.nodes",
        "EFA does not cross zones",
    ),
    "a gang larger than what is kept": (
        [_h100(replicas=1), _job_on("h100", nodes=2)],
        "jobs.other.nodes",
        "must be at most 1, the replicas of pool h100, which launches no others; got 2. Fix: "
        "write 1, or write replicas: 2 under environment.pools.h100",
    ),
    "a gang larger than what is reserved": (
        [
            _h100(max_nodes=2, capacity="reservation", reservation={**ODCR, "instances": 1}),
            _job_on("h100", nodes=2),
        ],
        "jobs.other.nodes",
        "has reserved",
    ),
    "a gang on spot that cannot resume": (
        [at("pools.g6e.capacity", "spot"), at(f"{JOB}.runtime", "torch-distributed")],
        f"{JOB}.nodes",
        "be 1 on pool g6e, which is spot",
    ),
    "a run longer than its block": (
        [_h100(capacity="block", reservation=BLOCK), _job_on("h100", expected_hours=48)],
        "jobs.other.expected_hours",
        "be at most the 47.3 h of cr-0123456789abcdef0",
    ),
    "more ranks in the script than GPUs": (
        [at(f"{JOB}.gpus_per_node", 4)],
        f"{JOB}.script",
        "start at most one process for each of the pod's 4 GPUs",
    ),
    "GPUs of a CPU": (
        [CPU, _job_on("cpu", gpus_per_node=1, processes_per_node=1)],
        "jobs.other.gpus_per_node",
        "must not be set: m7i.48xlarge of pool cpu has no GPUs",
    ),
    "ranks counted by GPUs on a CPU": (
        [CPU, _job_on("cpu")],
        "jobs.other.processes_per_node",
        "auto counts GPUs",
    ),
    "ranks counted by vCPUs beside GPUs": (
        [at(f"{JOB}.processes_per_node", "cpu")],
        f"{JOB}.processes_per_node",
        "be gpu or a number on g6e.48xlarge: each rank takes a GPU",
    ),
    "no image": ([at(f"{JOB}.image", " ")], f"{JOB}.image", "be the name of an image"),
    "an empty script": ([at(SCRIPT, "\n")], f"{JOB}.script", "run something"),
    # Bottlerocket.
    "Bottlerocket on a Kubernetes without a variant": (
        [at("cluster.version", "1.33"), at("pools.g6e.ami_family", "Bottlerocket")],
        "pools.g6e.ami_family",
        "must be Bottlerocket only on Kubernetes 1.34, 1.35, 1.36, 1.37, the releases for which "
        "this program knows its GPU variant; got Bottlerocket. Fix: write AL2023, or delete it",
    ),
    "Bottlerocket without GPUs": (
        [CPU, at("pools.cpu.ami_family", "Bottlerocket")],
        "pools.cpu.ami_family",
        "must be Bottlerocket only in a pool with GPUs: Bottlerocket without GPUs refuses the "
        "settings of GPUs in its user data; got Bottlerocket. Fix: write AL2023, or delete it",
    ),
    "Bottlerocket on a type that it does not boot": (
        [
            at("pools.g6e.instance_types", ["g7.48xlarge"]),
            at("pools.g6e.ami_family", "Bottlerocket"),
        ],
        "pools.g6e.ami_family",
        "without g7.48xlarge, which does not boot with it",
    ),
    "Bottlerocket with Lustre over EFA": (
        [_over_efa(), at(f"{POOL}.ami_family", "Bottlerocket")],
        f"{POOL}.ami_family",
        "without Lustre over EFA (scratch): a script at boot sets it up",
    ),
    "disks of AL2023 on Bottlerocket": (
        [
            at("pools.g6e.ami_family", "Bottlerocket"),
            at(f"{JOB}.host_paths", {"nvme": {"host": "/mnt/k8s-disks/0", "path": "/nvme"}}),
        ],
        f"{JOB}.host_paths.nvme",
        "not be in /mnt/k8s-disks on pool g6e",
    ),
    "a variable nobody can name": (
        [at(f"{JOB}.env", {"MY-VAR": "1"})],
        f"{JOB}.env.MY-VAR",
        "be the name of a variable",
    ),
    "NVLink where there is none": (
        [at(f"{JOB}.env", {"NCCL_P2P_LEVEL": "NVL"})],
        f"{JOB}.env.NCCL_P2P_LEVEL",
        "NVLink",
    ),
}

ROLE = "arn:aws:iam::123456789012:role/ops"

# Values of the wrong type: what pydantic refuses.
REFUSED |= {
    "text for a list": (
        [at(f"{POOL}.instance_types", "p5.48xlarge")],
        f"{POOL}.instance_types",
        'must be a list; got "p5.48xlarge". Fix: write [p5.48xlarge]',
    ),
    "an empty map": (
        [at("network", None)],
        "network",
        "must be settings, not empty; got null. Fix: delete the line, or write {cidr: 10.0.0.0/16}",
    ),
    "a path for a mount": (
        [at(f"{JOB}.storage.scratch", "/data")],
        f"{JOB}.storage.scratch",
        "Fix: write {path: /data}",
    ),
    "a dash for an underscore": (
        [at(f"{POOL}.capacity", "on-demand")],
        f"{POOL}.capacity",
        "Fix: write on_demand",
    ),
    "half of a choice": (
        [at("cluster.endpoint", "public")],
        "cluster.endpoint",
        "Fix: write public-and-private",
    ),
    "nothing where one is the least": (
        [at(f"{JOB}.nodes", 0)],
        f"{JOB}.nodes",
        "must be at least 1; got 0. Fix: write 1",
    ),
    "more than the most": (
        [at("system_nodes.nodes", 11)],
        "system_nodes.nodes",
        "must be at most 10: only controllers run there; got 11. Fix: write 10",
    ),
    "no parameters": (
        [at(f"{JOB}.parameters_billion", 0)],
        f"{JOB}.parameters_billion",
        "must be more than 0; got 0. Fix: write a value such as 70",
    ),
    "all of the time": (
        [at(f"{JOB}.goodput_percent", 100)],
        f"{JOB}.goodput_percent",
        "must be less than 100; got 100. Fix: write 99",
    ),
    "a number with a point": (
        [at(f"{POOL}.max_nodes", 4.0)],
        f"{POOL}.max_nodes",
        "must be a whole number; got 4.0. Fix: write 4",
    ),
    "a number with its unit": (
        [at("storage.scratch.lustre.capacity_gib", "4800GiB")],
        "storage.scratch.lustre.capacity_gib",
        'must be a whole number; got "4800GiB". Fix: write 4800',
    ),
    "a number with a larger unit of time": (
        [at(f"{JOB}.wait_minutes", "2h")],
        f"{JOB}.wait_minutes",
        'must be a whole number; got "2h". Fix: write 120',
    ),
    "a number of days that EFS does not have": (
        [at("storage.home.efs.lifecycle", {"infrequent_after_days": 10})],
        "storage.home.efs.lifecycle.infrequent_after_days",
        "must be one of 1, 7, 14, 30, 60, 90, 180, 270, 365; got 10. Fix: write 7",
    ),
    "more addresses than AWS Budgets takes": (
        [at("budget", {"dollars_a_month": 5000, "emails": [f"a{n}@b.co" for n in range(12)]})],
        "budget.emails",
        "must have at most 10 entries; got 12. Fix: delete 2 of them",
    ),
    "the type of a pool under another tool's name": (
        [at("pools.g6e.instance_type", "g6e.48xlarge"), without("pools.g6e.instance_types")],
        "pools.g6e.instance_type",
        "Fix: write instance_types: [g6e.48xlarge] in its place",
    ),
    "a number with another unit": (
        [at("storage.scratch.lustre.capacity_gib", "5TiB")],
        "storage.scratch.lustre.capacity_gib",
        "must be a whole number, 1200 or a multiple of 2400 as FSx sells it, and not 5120; got "
        '"5TiB". Fix: write 4800, or 7200',
    ),
    "a mount path without its slash": (
        [at(f"{JOB}.storage.scratch.path", "data")],
        f"{JOB}.storage.scratch.path",
        'must be an absolute path, below / and without a colon; got "data". Fix: write /data',
    ),
    "words of a command line as one text": (
        [at(f"{JOB}.command", "python train.py --name 'a b'")],
        f"{JOB}.command",
        "Fix: write [python, train.py, --name, a b]",
    ),
    "a type of nodes in the place of a pool": (
        [at(f"{JOB}.pool", "g6e.48xlarge")],
        f"{JOB}.pool",
        "must be a pool of the environment; got g6e.48xlarge. Fix: write one of g6e",
    ),
    "GPUs by a name that people expect": (
        [at(f"{JOB}.gpus", 8)],
        f"{JOB}.gpus",
        "must be the name of a setting; got gpus. Fix: did you mean gpus_per_node?",
    ),
    "the batch of a GPU by the name that transformers has": (
        [at(f"{JOB}.model", {"name": "Llama-2-7b", "per_device_train_batch_size": 4})],
        f"{JOB}.model.per_device_train_batch_size",
        "must be the name of a setting; got per_device_train_batch_size. Fix: did you mean batch_per_gpu?",
    ),
    "a store of a kind that people know from elsewhere": (
        [at("storage.home.nfs", {"server": "nfs.example.com"})],
        "storage.home.nfs",
        "must be the name of a setting; got nfs. Fix: delete it; write efs: {}, an NFS that AWS runs",
    ),
    "nodes by the name that torchrun has": (
        [at(f"{JOB}.num_nodes", 2)],
        f"{JOB}.num_nodes",
        "must be the name of a setting; got num_nodes. Fix: did you mean nodes?",
    ),
    "resources as a pod has them": (
        [at(f"{JOB}.resources", {"limits": {"nvidia.com/gpu": 8}})],
        f"{JOB}.resources",
        "got resources. Fix: delete it: a pod asks for its whole node; gpus_per_node, cpus_per_node and",
    ),
    "a setting of which nobody knows what is meant": (
        [at(f"{JOB}.frobnicate", True)],
        f"{JOB}.frobnicate",
        "got frobnicate. Fix: delete it; docs/stack-file.md lists the settings",
    ),
    "a figure of a sweep by its name alone": (
        [at(f"{JOB}.sweep", {"over": {"lr": [0.1, 0.2]}, "metric": "loss"})],
        f"{JOB}.sweep.metric",
        'must be settings; got "loss". Fix: write a value such as {name: loss, goal: minimize}',
    ),
    "a variable of somebody's own shell in env": (
        [at(f"{JOB}.env", {"HF_HOME": "${HF_HOME}"})],
        f"{JOB}.env.HF_HOME",
        "must not contain a placeholder: nothing fills it in; got ${HF_HOME}. Fix: write what "
        "belongs there",
    ),
    "a session of IAM Identity Center as an admin": (
        [
            at(
                "cluster.admins.me.role_arn",
                "arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_ops_0123456789abcdef/me",
            )
        ],
        "cluster.admins.me.role_arn",
        "Fix: write the ARN that `aws iam get-role --role-name AWSReservedSSO_ops_0123456789abcdef --query",
    ),
    "a role of IAM Identity Center without its path": (
        [
            at(
                "cluster.admins.me.role_arn",
                "arn:aws:iam::123456789012:role/AWSReservedSSO_ops_0123456789abcdef",
            )
        ],
        "cluster.admins.me.role_arn",
        "must have the path that IAM Identity Center gives its roles",
    ),
    "a role with a star": (
        [at("cluster.admins.me.role_arn", "arn:aws:iam::123456789012:role/ops*")],
        "cluster.admins.me.role_arn",
        "must be the ARN of one IAM role, of no session and without *; got "
        '"arn:aws:iam::123456789012:role/ops*". Fix: write one such as '
        "arn:aws:iam::123456789012:role/deployer",
    ),
    "options of the script as one argument": (
        [
            without(f"{JOB}.script"),
            at(f"{JOB}.torchrun", {"script": "/w/t.py", "arguments": ["--lr 0.1 --max-steps 100"]}),
        ],
        f"{JOB}.torchrun.arguments",
        "must have an item for each word: a program takes an item for the name of one option; got"
        ' [--lr 0.1 --max-steps 100]. Fix: put an item for each word in its place: [--lr, "0.1", '
        '--max-steps, "100"]',
    ),
    "a figure of the training as a setting of the job": (
        [at(f"{JOB}.learning_rate", 0.1)],
        f"{JOB}.learning_rate",
        "Fix: delete it; hand it to the script: torchrun: {arguments: [--lr",
    ),
    "a pool in capital letters": (
        [at(f"{JOB}.pool", "G6E")],
        f"{JOB}.pool",
        "must be a pool of the environment; got G6E. Fix: write g6e",
    ),
    "a directory with a slash": (
        [at(f"{JOB}.checkpoints.directory", "/ckpt/")],
        f"{JOB}.checkpoints.directory",
        "Fix: write ckpt",
    ),
    "the ARN of a session": (
        [
            at(
                "cluster.admins",
                {
                    "ops": {
                        "role_arn": ROLE.replace("iam", "sts").replace("role", "assumed-role")
                        + "/me"
                    }
                },
            )
        ],
        "cluster.admins.ops.role_arn",
        f"Fix: write {ROLE}",
    ),
    "the day of a time": (
        [_h100(capacity="block", reservation={**BLOCK, "starts": "2098-12-01"})],
        f"{POOL}.reservation.starts",
        'Fix: write the whole time, such as "2098-12-01T11:30:00Z"',
    ),
    "variables as a list": (
        [at(f"{JOB}.env", [{"name": "A", "value": "1"}])],
        f"{JOB}.env",
        'Fix: write {A: "1"}',
    ),
    "a version without quotes": (
        [at("cluster.version", 1.34)],
        "cluster.version",
        'must be text; got 1.34. Fix: write "1.34"',
    ),
    "a version without its end": (
        [at("trainer.version", 2.1)],
        "trainer.version",
        "must be a whole release; got 2.1. Fix: write 2.1.0",
    ),
    "a version without its end, quoted": (
        [at("trainer.version", "2.1")],
        "trainer.version",
        "got 2.1. Fix: write 2.1.0",
    ),
    "a word for true": (
        [at("karpenter.dry_run", "yes")],
        "karpenter.dry_run",
        'must be true or false; got "yes". Fix: write true',
    ),
    "an existing network": (
        [at("network.vpc", VPC)],
        "network.vpc",
        "Fix: delete it; an existing VPC is vpc_id, with private_subnets",
    ),
    "the type of a reservation": (
        [_h100(capacity="reservation", reservation={**ODCR, "instance_type": "p5.48xlarge"})],
        f"{POOL}.reservation.instance_type",
        "Fix: delete it; it follows from the pool's instance_types",
    ),
    "policies of the network, which each team gets": (
        [at("network_policies", True)],
        "network_policies",
        "Fix: delete it; each team under environment.teams gets a NetworkPolicy by itself: docs/teams.md",
    ),
    "registries, which teams and a policy restrict": (
        [at("allowed_registries", [])],
        "allowed_registries",
        "Fix: delete it; write image_prefixes in the entries of environment.teams, or turn on the policy"
        " images-from-allowed-registries (docs/policies.md)",
    ),
    "a setting that a kind of store does not have": (
        [at("storage.home.efs.uid", 0)],
        "storage.home.efs.uid",
        "Fix: delete it; the settings are file_system_id, throughput, throughput_mibps, lifecycle",
    ),
    "nodes of a job that is a file": (
        [at("jobs.theirs", {"manifest": "job.yaml", "pool": "h100", "nodes": 2})],
        "jobs.theirs.nodes",
        "must not be set beside manifest; got 2. Fix: delete it; the manifest file itself says numNodes",
    ),
    "claims of a job that is no file": (
        [at(f"{JOB}.claims", {})],
        f"{JOB}.claims",
        "must not be set without manifest",
    ),
    "an encrypted value": (
        [at("tags", {"team": {"secure": "v1:abc"}})],
        "tags.team",
        "must not be encrypted: AWS or the cluster shows it to others; got a secret",
    ),
    "a type in capital letters": (
        [at(f"{POOL}.instance_types", ["P5.48XLARGE"])],
        f"{POOL}.instance_types",
        "must list types in small letters, as EC2 has them; got P5.48XLARGE. Fix: write "
        "p5.48xlarge",
    ),
    "more nodes than any network has addresses": (
        [at("pools.g6e.max_nodes", 500)],
        "network.cidr",
        "Fix: write max_nodes: 386 under environment.pools.g6e",
    ),
    "a priority that nobody has": (
        [at(f"{OWN}.priority", "high")],
        f"{OWN}.priority",
        "Fix: delete it, or add high: 1000 under environment.priorities",
    ),
}

# name → (edits of the team file, path, part of the message)
TEAM_REFUSED: dict[str, tuple[list[Edit], str, str]] = {
    "checkpoints inside those of the environment's job": (
        [at("jobs.vit-base.checkpoints.directory", "t5-large/vit")],
        "team.jobs.vit-base.checkpoints.directory",
        "must be apart from t5-large, the directory of job t5-large of dev; got t5-large/vit",
    ),
    "namespace of the environment": (
        [at("namespace", "training")],
        "team.namespace",
        "must be neither the environment's namespace nor one of the system",
    ),
    "namespace of the system": (
        [at("namespace", "default")],
        "team.namespace",
        "got default. Fix: write team-default",
    ),
    "more GPUs than its share": (
        [at("max_gpus", 4)],
        "team.jobs.vit-base.nodes",
        "must need at most the 4 GPUs of team.max_gpus; got 1, which need 8 GPUs. Fix: "
        "raise team.max_gpus to 8",
    ),
    "pool that the environment lacks": (
        [at("jobs.vit-base.pool", "a100")],
        "team.jobs.vit-base.pool",
        "one of g6e, h100",
    ),
    "store that the environment lacks": (
        [at("jobs.vit-base.storage.data", {"path": "/data"})],
        "team.jobs.vit-base.storage.data",
        "be a store of the environment",
    ),
    "environment without a file": (
        [at("environment", "prod")],
        "team.environment",
        "must be a stack with a stack file in this checkout; got prod. Fix: write dev",
    ),
    "environment that is a team": (
        [at("environment", "team-vision")],
        "team.environment",
        "must be an environment, not a team; got team-vision. Fix: write dev",
    ),
}

SOUND: dict[str, list[Edit]] = {
    "as it is": [],
    "another zone": [at("zone", "ap-northeast-2c")],
    "with its zone id": [at("zone_id", "apne2-az1")],
    "zones of its own, in any order": [
        at("network.zones", ["ap-northeast-2d", "ap-northeast-2a"]),
        at("pools.h100.fallback_zones", ["ap-northeast-2d"]),
    ],
    "existing file systems": [
        EXISTING_VPC,
        at("storage.scratch", {"lustre": {"file_system_id": LUSTRE}}),
        at("storage.home", {"efs": {"file_system_id": EFS}, "teams": "apart"}),
        at("storage.more", {"efs": {}}),
    ],
    "an existing cluster": [*IN_CLUSTER],
    "a private existing cluster": [
        *IN_CLUSTER,
        at("cluster.endpoint", "private"),
        at("cluster.proxy_url", "http://proxy.example.com:3128"),
        at("cluster.admins", {"ops": {"role_arn": "arn:aws:iam::123456789012:role/ops"}}),
    ],
    "two stores whose mount targets have names of their own": [
        at("pools.h100.fallback_zones", ["ap-northeast-2b"]),
        at("storage.home-c", {"efs": {}}),
    ],
    "47 nodes in a network that has just as many addresses": [
        at("network.cidr", "10.0.0.0/19"),
        at("pools.g6e.max_nodes", 45),
        at("storage.more", {"efs": {}}),
    ],
    "a small private network": [at("network.cidr", "192.168.16.0/20")],
    "a private endpoint": [
        at("cluster.endpoint", "private"),
        without("cluster.public_access_cidrs"),
        at("cluster.tunnel_port", 8443),
    ],
    "a private endpoint behind a proxy": [
        at("cluster.endpoint", "private"),
        without("cluster.public_access_cidrs"),
        at("cluster.proxy_url", "socks5://proxy.example.com:1080"),
    ],
    "a private endpoint of somebody inside": [
        at("cluster.endpoint", "private"),
        without("cluster.public_access_cidrs"),
        at("cluster.inside_vpc", True),
    ],
    "a tunnel that is prepared": [at("cluster.tunnel_port", 8443)],
    "one's own address": [at("cluster.public_access_cidrs", ["81.2.69.142/32"])],
    "the smallest Lustre": [at("storage.scratch.lustre.capacity_gib", 1200)],
    "scratch Lustre": [
        at("storage.scratch.lustre", {"capacity_gib": 2400, "deployment": "SCRATCH_2"})
    ],
    "eight directories that show S3": [
        _linked(*({"s3": f"s3://sets/{n}-{n}/", "path": f"/{n}"} for n in range(8)))
    ],
    "names that begin alike": [_linked({}, {"s3": "s3://sets/ab", "path": "/database/"})],
    "a whole bucket as the whole file system": [
        _linked({"s3": "s3://sets", "path": "/", "auto_export": ["NEW"]})
    ],
    "scratch that shows S3": [
        _linked(),
        at("storage.scratch.lustre.deployment", "SCRATCH_2"),
        without("storage.scratch.lustre.throughput_mbps_per_tib"),
    ],
    "data that is kept": [at("storage.scratch.data", "keep"), without("storage.home.data")],
    "half a node": [
        at(f"{JOB}.gpus_per_node", 4),
        at(f"{JOB}.processes_per_node", 4),
        at(SCRIPT, "accelerate launch a.py"),
    ],
    "torchrun that goes by PET_MASTER_ADDR": [at(SCRIPT, "torchrun --nproc_per_node=8 train.py")],
    "the static backend, named": [at(SCRIPT, "torchrun --rdzv_backend=static train.py")],
    "one node without a meeting place": [at(f"{JOB}.nodes", 1), at(SCRIPT, "torchrun train.py")],
    "master_addr as the meeting place": [
        at(SCRIPT, "exec torchrun --master-addr=$PET_MASTER_ADDR train.py")
    ],
    "another launcher": [at(SCRIPT, "accelerate launch train.py")],
    "a command": [
        without(SCRIPT),
        at(f"{JOB}.command", ["python", "-m", "train", "--note=a \\ b"]),
    ],
    "no restarts and no checkpoints": [at(f"{OWN}.max_restarts", 0), without(f"{JOB}.checkpoints")],
    "restarts that may start over": [
        without(f"{JOB}.checkpoints"),
        at(f"{JOB}.allow_no_checkpoint", True),
    ],
    "an upstream runtime": [
        at(f"{JOB}.runtime", "torch-distributed"),
        without(f"{JOB}.checkpoints"),
    ],
    "no jobs": [without("jobs")],
    "no pools and no jobs": [at("pools", {}), without("jobs")],
    "no storage": [
        without("storage"),
        at(f"{JOB}.storage", {}),
        without(f"{JOB}.checkpoints"),
        at(f"{JOB}.allow_no_checkpoint", True),
    ],
    "charts from a folder": [at("artifacts.charts", "/mirror/charts")],
    "images from the account": [at("artifacts.images", MIRROR)],
    "endpoints beside a NAT gateway": [at("network.endpoints", "private")],
    "no way to the internet": ISOLATED,
    "an existing network without a way to the internet": [
        EXISTING_VPC,
        at("network.internet", "none"),
        at("artifacts.images", MIRROR),
    ],
    "ordinary words that begin like tokens": [at(f"{JOB}.env", {"NAME": "hf_hub", "KIND": "AKIA"})],
    "tags": [at("tags", {"cost-center": "17"})],
    "a bucket of another region, with a key of that region": [
        at(
            "storage.corpus",
            {"s3": {"bucket": "theirs", "kms_key_arn": KEY.replace("ap-northeast-2", "eu-west-1")}},
        )
    ],
    "tags of every kind of letter": [at("tags", {"팀/team": "ops@example.com: größe=1+2_3-4"})],
}

SOUND |= {
    "Lustre over EFA for one pool of two": [_over_efa()],
    "Lustre over EFA for a model": [
        at(
            "storage.scratch.lustre",
            {"efa": True, "for_model": {"parameters_billion": 70, "nodes": 16}},
        )
    ],
    "several types for jobs of one node": [
        at("pools.g6e.instance_types", ["g6e.48xlarge", "g6.48xlarge"]),
        at(f"{JOB}.nodes", 1),
    ],
    "fallback zones for jobs of one node": [
        at("pools.g6e.fallback_zones", ["ap-northeast-2c"]),
        at(f"{JOB}.nodes", 1),
    ],
    "spot for a gang that resumes": [at("pools.g6e.capacity", "spot")],
    "spot for one node": [at("pools.g6e.capacity", "spot"), at(f"{JOB}.nodes", 1)],
    "a reservation": [_h100(capacity="reservation", reservation=ODCR), _job_on("h100")],
    "a reservation and the group it was made in": [
        _h100(capacity="reservation", reservation={**ODCR, "placement_group": "theirs"})
    ],
    "a reservation with an end": [
        _h100(capacity="reservation", reservation={**ODCR, "ends": BLOCK["ends"]})
    ],
    "a block": [_h100(capacity="block", reservation=BLOCK), _job_on("h100", expected_hours=47)],
    "a block of which some is used": [_h100(max_nodes=1, capacity="block", reservation=BLOCK)],
    "nodes that are kept": [_h100(replicas=2), _job_on("h100")],
    "nodes that are switched off": [
        _h100(replicas=0, warm_spares=1),
        _job_on("h100", nodes=2),
    ],
    "kept nodes and a spare": [_h100(max_nodes=3, replicas=2, warm_spares=1), _job_on("h100")],
    "kept nodes of a reservation": [_h100(replicas=2, capacity="reservation", reservation=ODCR)],
    "a placement group": [_h100(placement="cluster")],
    "a CPU pool": [CPU, _job_on("cpu", processes_per_node=2)],
    "a job that shares a node": [
        at(f"{JOB}.gpus_per_node", 4),
        at(f"{JOB}.nodes", 1),
        at(SCRIPT, "python t5.py"),
    ],
    "ranks by variable": [
        at(SCRIPT, "torchrun --nproc_per_node=${PET_NPROC_PER_NODE} --rdzv_endpoint=a:1 t5.py")
    ],
    "a store by model": [
        at("storage.scratch.lustre", {"for_model": {"parameters_billion": 70, "nodes": 16}})
    ],
    "backups": [at("storage.scratch.lustre.backup_days", 7)],
    "a deployed store that may go": [at("allow_replace", ["storage.old"])],
    "a model and its interval": [*MODEL, at(f"{JOB}.checkpoints.interval_minutes", 30)],
    "asynchronous saves": [
        *MODEL,
        at(f"{JOB}.checkpoints.interval_minutes", 4),
        at(f"{JOB}.checkpoints.asynchronous", True),
    ],
    "a goodput that is kept": [*MODEL, at(f"{JOB}.goodput_percent", 93)],
    "small models on EFS": [
        at(f"{JOB}.checkpoints.store", "home"),
        at(f"{JOB}.parameters_billion", 0.7),
    ],
    "NCCL settings that do something": [
        at(f"{JOB}.env", {"NCCL_DEBUG": "INFO", "FI_LOG_LEVEL": "warn"})
    ],
    "another x86 type for controllers": [at("system_nodes.instance_type", "c7i.2xlarge")],
    "a Karpenter that makes no dry runs": [at("karpenter.dry_run", False)],
    "admins": [at("cluster.admins", {"ops": {"role_arn": "arn:aws:iam::000000000000:role/ops"}})],
}

TRAINED = {"precision": "mixed", "optimizer": "adamw", "sharding": "zero2"}
P5_NODES = at("pools.g6e.instance_types", ["p5.48xlarge"])

REFUSED |= {
    "a model that does not fit its GPUs": (
        [P5_NODES, at(f"{JOB}.model", {"name": "Qwen/Qwen3-30B-A3B", **TRAINED})],
        f"{JOB}.model",
        "must fit the 85.9 GB of a GPU; got 30.5 billion parameters, mixed precision, adamw, ZeRO-2, 16"
        " GPUs: at least 87.8 GB of each GPU (weights 61.1, gradients 3.8, optimizer 22.9) before"
        " activations. Fix: write sharding: zero3, likely 43.7 GB; or",
    ),
    "a model that fits no sharding": (
        [P5_NODES, at(f"{JOB}.model", {"name": "meta-llama/Llama-3.1-405B"})],
        f"{JOB}.model",
        "before activations. Fix: name the optimizer, whose states the check counts then: weights and"
        " gradients alone take 3 nodes",
    ),
    "a model that nobody knows": (
        [at(f"{JOB}.model", {"name": "mine"})],
        f"{JOB}.model",
        "must have a size: a name that docs/jobs.md lists, or parameters_billion of the job; got "
        "mine. Fix: add parameters_billion to the job, the size of the model in billions",
    ),
    "a model without a size": (
        [at(f"{JOB}.model", {"sharding": "zero3"})],
        f"{JOB}.model",
        "must have a size: a name that docs/jobs.md lists, or parameters_billion of the job; got "
        "neither. Fix: add parameters_billion to the job, the size of the model in billions",
    ),
    "two sizes of a model": (
        [at(f"{JOB}.parameters_billion", 30), at(f"{JOB}.model", {"name": "Qwen/Qwen3-8B"})],
        f"{JOB}.parameters_billion",
        "must be 8.191, the size of Qwen/Qwen3-8B in model.name; got 30. Fix: write 8.191",
    ),
    "more parameters trained than there are": (
        [at(f"{JOB}.model", {"name": "Qwen/Qwen3-8B", "trainable_billion": 9})],
        f"{JOB}.model.trainable_billion",
        "must be at most the 8.191 billion parameters of the model; got 9",
    ),
    "a part of a shape": (
        [at(f"{JOB}.parameters_billion", 1), at(f"{JOB}.model", {"layers": 16, "hidden": 2048})],
        f"{JOB}.model",
        "must have a public name, or all of layers, hidden and vocabulary, and not both; got "
        "layers and hidden without vocabulary. Fix: add vocabulary",
    ),
    "the shape of a public model": (
        [at(f"{JOB}.model", {"name": "gpt2", "layers": 1, "hidden": 8, "vocabulary": 8})],
        f"{JOB}.model",
        "must have a public name, or all of layers, hidden and vocabulary, and not both; got gpt2"
        " and sizes. Fix: delete all of layers, hidden, vocabulary; or delete the name",
    ),
    "offload without sharding": (
        [at(f"{JOB}.model", {"name": "gpt2", "sharding": "none", "offload": "all"})],
        f"{JOB}.model.offload",
        "must not be set with sharding: none: DDP keeps everything on the GPU; got all",
    ),
}
