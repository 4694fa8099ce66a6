"""Tables of error messages of schedulers, kubelets and ranks: the cause of a message, and the
command to type next.

A new symptom is a new row. The first row whose pattern matches counts. The messages are those of
Kubernetes 1.34 (pkg/scheduler, pkg/kubelet, pkg/volume), of Karpenter 1.14
(pkg/controllers/provisioning/scheduling) and of the issues named beside a row. How a message is read: symptom.py.
"""

from __future__ import annotations

from trainyard.catalog.limits import NODES_SECONDS, TORCH_SECONDS
from trainyard.catalog.logs.missing_secrets import CREATION, MISSING, NO_KEY
from trainyard.catalog.logs.symptom import Symptom

GRACE_SECONDS = 20
"""Shorter delays are normal and are not reported."""

PENDING = (
    Symptom(
        pattern=r'(?i)persistentvolumeclaims? "([^"]+)" not found',
        why="claim: there is no PersistentVolumeClaim {0}",
        do="kubectl -n {namespace} get persistentvolumeclaims, and mount one that exists",
    ),
    Symptom(
        pattern=(
            r"(?i)unbound|claim is being deleted|non-existent persistentvolume|failed to"
            r" validate pvc"
        ),
        why="claim: a PersistentVolumeClaim is not bound",
        do="kubectl -n {namespace} describe persistentvolumeclaims",
    ),
    Symptom(
        pattern=r"reserved offerings? (?:is|are) full",
        why="capacity: all instances of the pool's reservation are in use",
        do="wait until another job ends, or write a larger reservation: kubectl get nodeclaims",
    ),
    Symptom(
        pattern=r"(VcpuLimitExceeded|MaxSpotInstanceCountExceeded)",
        why="quota: the account's vCPU quota of EC2 for the pool's instance types is used up ({0})",
        do=(
            "waiting does not help: `trainyard plan{of_stack}` prints the quota that the stack needs, and"
            " `trainyard check --live{of_stack}` the command that asks AWS for it; or end other instances"
        ),
    ),
    Symptom(
        pattern=r"(?i)insufficient.?free.?addresses",
        why="addresses: the subnet of the zone has no free address for another node",
        do="end what is not needed in the subnet, or take a larger one: docs/network.md says what a node takes",
    ),
    Symptom(
        pattern=(
            r"(?i)insufficient.?capacity|unfulfillable|types were unavailable|(?:has the|es, had a)"
            r" required offer"
        ),
        why="capacity: AWS has no capacity for the pool's instance types in its zone now",
        do="wait (Karpenter tries again every 3 minutes), use a reservation, or ask for fewer nodes",
    ),
    Symptom(
        pattern=r"(?:limits have been exhausted|exceed limits) for nodepool \(NodePool=([^)]+)\)",
        why="resources: pool {0} already has max_nodes nodes",
        do="raise pools.{0}.max_nodes, or wait until another job ends: kubectl get nodeclaims",
    ),
    Symptom(
        pattern=r"no instance type [^;]*resources=([^;]*)|Insufficient ([\w./-]+)",
        why="resources: no node has {0}",
        do="request no more than a node of the pool has: kubectl describe nodes, trainyard plan{of_stack}",
    ),
    Symptom(
        pattern=(
            r'label ("[^"]+") does not have known|ments, key'
            r" (?!trainyard.io/pool|karpenter.sh/nodepool)([^,]+)"
            r"|(affinity/selector)"
        ),
        why="label: no pool has nodes with the label that the pods select: {0}",
        do="kubectl get nodepools --output yaml, and select a label that exists",
    ),
    Symptom(
        pattern=r"did not tolerate taint \(taint=([^)]+)\)|(untolerated taint[^,]*)",
        why="taint: the pods lack a toleration: {0}",
        do="add a toleration to the pods: kubectl get nodepools --output yaml shows all taints",
    ),
    Symptom(
        pattern=r"requirements, key ([^,]+)",
        why="label: no pool has the value of {0} that the pods select",
        do="kubectl get nodepools",
    ),
)
"""Causes why pods have no node. Karpenter's later checks stand first: the pods want the pool that
passed the earlier checks."""
STARTING = (
    Symptom(
        pattern=r"InvalidImageName",
        why="the image name is not valid",
        do="write the image as registry/repository:tag, in lower case, without https://",
    ),
    Symptom(
        # FoundationDB/fdb-kubernetes-operator#2294, codefactoryhu/manifest#11, aws-samples/bottlerocket-images-cache#7
        pattern=r"ImagePull[^\n]*(?:no match for platform in manifest|no matching manifest for)",
        why=(
            "the image is built for another kind of CPU than the nodes have, as one that is built on a Mac with an"
            " Apple chip"
        ),
        do=(
            "build it again and push it: `trainyard image` builds for the CPUs of the pools, and so does docker buildx"
            " build --platform linux/amd64 --push (linux/arm64 for pools of Graviton)"
        ),
    ),
    Symptom(
        # containerd: the answer of Docker Hub, kata-containers/kata-containers#10109; ECR Public: Rate exceeded
        pattern=r"ImagePull[^\n]*(?:toomanyrequests|429 Too Many Requests)",
        why="the registry permits no more pulls for now: Docker Hub counts those of an address that does not log in",
        do=(
            "copy the image into ECR and name it there, or give the job pull_secrets of an account; kubelet pulls"
            " again by itself"
        ),
    ),
    Symptom(
        pattern=r"ImagePull[^\n]*no space left on device",
        why="the disk of the node has no room for the image",
        do=(
            "where the type of the pool has no local disks, raise its root_volume_gib, and pulumi up; else kubectl"
            " describe node says what fills the disk"
        ),
    ),
    Symptom(
        # kubernetes/kops#16762
        pattern=r"ImagePull[^\n]*(?:\b40[13]\b|denied|authoriz|no basic auth)",
        why="the image cannot be pulled: the node's role or the pull secret does not permit it",
        do=(
            "compare the node role with AmazonEC2ContainerRegistryPullOnly, and the job's"
            " pull_secrets with its registry"
        ),
    ),
    Symptom(
        pattern=(
            r'ImagePull[^\n]*image "(?P<image>(?:[^"/]*[.:][^"/]*/)?(?P<repository>[^":@]+)[^"]*)"[^\n]*'
            "not found"
        ),
        why="the image cannot be pulled: {0} does not exist",
        do=(
            "aws ecr describe-images --repository-name {repository}; push it, or correct the job's"
            " image"
        ),
    ),
    Symptom(
        pattern=r"ImagePull[^\n]*(?:timeout|no such host|refused)",
        why="the node cannot reach the registry",
        do="check that its subnet has a NAT gateway, or endpoints for ecr.api, ecr.dkr and s3",
    ),
    Symptom(
        pattern=MISSING,
        why="Secret {secret} does not exist",
        do=f"{CREATION}; its pods start by themselves then",
    ),
    Symptom(
        pattern=NO_KEY,
        why="Secret {secret} has no key {key}",
        do=(
            'kubectl -n {namespace} patch secret {secret} --patch \'{{"stringData": {{"{key}": "…"}}}}\';'
            " its pods start by themselves then"
        ),
    ),
    Symptom(
        pattern=(
            r'(key \S+ in \w+ \S+|(?:config|secret) key: \S+|(?:configmap|secret)s? "[^"]+"(?= not'
            r" found))"
        ),
        why="{0} does not exist",
        do="kubectl -n {namespace} get configmaps,secrets; create it, or use one that exists",
    ),
    Symptom(
        pattern=r"Failed fetching secret (\S+): [^\n]*AccessDenied",
        why=(
            "Secrets Manager refuses {0}: the role of the pods does not permit it, or there is no"
            " such secret"
        ),
        do=(
            "aws secretsmanager describe-secret --secret-id {0}; compare its name with the job's"
            " secrets, and with secrets in the environment's entry of the team"
        ),
    ),
    Symptom(
        pattern=r"Failed fetching secret (\S+): [^\n]*ResourceNotFound",
        why="Secrets Manager has no secret {0} in the region of the stack",
        do="aws secretsmanager list-secrets; create it, or name one that exists",
    ),
    Symptom(
        pattern=r"Failed to fetch secret from all regions[^\n]*granted for: (\S+)",
        why="the pods have no identity in AWS with which {0} could be read",
        do=(
            "aws eks list-pod-identity-associations; kubectl -n kube-system get daemonsets"
            " eks-pod-identity-agent"
        ),
    ),
    Symptom(
        pattern=r"Invalid JSON used with jmesPath in secret: (\S+)\.",
        why="the secret {0} is no JSON object, so it has no keys",
        do="delete `key` of the job's secret, or store a JSON object in {0}",
    ),
    Symptom(
        pattern=r"JMES Path - \"?([^\s\"]+)\"? for[^\n]*valid object",
        why="the secret has no key {0}",
        do="correct `key` of the job's secret, or add the key to the secret",
    ),
    Symptom(
        pattern=r"search result type for path:\"?([^\s\"]+)\"?\. Only string",
        why="the value of key {0} is no text, and AWS's provider mounts text only",
        do="store the value as text, in quotes",
    ),
    Symptom(
        pattern=r"(secretproviderclass \S+), error: [^\n]*not found",
        why="{0} does not exist: the stack of the job makes it",
        do="pulumi up; kubectl -n {namespace} get secretproviderclasses",
    ),
    Symptom(
        pattern=r'(secrets-store\.csi\.k8s\.io not found in the list|provider not found: provider "[^"]+")',
        why="the add-on that mounts secrets of Secrets Manager does not run on the node: {0}",
        do="kubectl -n aws-secrets-manager get pods --output wide",
    ),
    Symptom(
        pattern=r"hostPath type check failed: (.+)",
        why="the node has no such path: {0}",
        do=(
            "a node has only the files of its AMI and user data: use a ConfigMap, shared storage,"
            " or type DirectoryOrCreate"
        ),
    ),
    Symptom(
        pattern=r"init container (\S+) still runs",
        why=(
            "init container {0} has not ended (init-pytorch waits until DNS knows the master:"
            f" {NODES_SECONDS // 3600} hours at most, then its pod fails)"
        ),
        do=(
            "kubectl -n {namespace} get pods,services -l {job}; kubectl -n {namespace} logs -l {job}"
            " --container {0}"
        ),
    ),
    Symptom(
        # FSx user guide: mount-failure; EFS user guide: troubleshooting-efs-mounting
        pattern=(
            r'MountVolume\.\w+ failed for volume "([^"]+)"[^\n]*(?:timed out|No route to host'
            r"|Is the MGS|Connection refused)"
        ),
        why=(
            "volume {0} cannot be mounted: the node cannot reach the file system, which is away, or a"
            " rule of a security group is missing"
        ),
        do=(
            "aws fsx describe-file-systems; aws efs describe-file-systems: it must be available."
            " pulumi refresh names rules that are gone, and pulumi up makes them; ports: 988 and"
            " 1018-1023 for Lustre, both ways, 2049 for EFS. The pods start by themselves then"
        ),
    ),
    Symptom(
        pattern=r"assign an IP address",
        why="the node's subnet has no free IP address",
        do="aws ec2 describe-subnets",
    ),
)
"""Causes why a pod that has a node does not run. They are read in the reasons of its waiting
containers, and in the last event about it."""
RENDEZVOUS = (
    Symptom(
        pattern=r"RendezvousTimeoutError",  # pytorch/tutorials#2209, ymcui/Chinese-LLaMA-Alpaca-2#274
        why=(
            "not all nodes joined the rendezvous in time (torch waits"
            f" {TORCH_SECONDS['join_timeout']} s where neither --rdzv_conf nor PET_RDZV_CONF says more)"
        ),
        do=(
            "compare --nnodes, --rdzv_id and --rdzv_endpoint: kubectl -n {namespace} logs -l {job}"
            " --prefix --tail=20"
        ),
    ),
    Symptom(
        # OFA-Sys/OFA#307
        pattern=(
            r"(?:gai ?error|Name or service not known|failure in name resolution)"
            r"(?:[^\n]*\n?\Z|(?s:.*)RendezvousConn)"
        ),
        why="DNS does not know the endpoint: its headless service or CoreDNS is missing",
        do="kubectl -n {namespace} get services; kubectl -n kube-system get pods -l k8s-app=kube-dns",
    ),
    Symptom(
        # aws/aws-ofi-nccl#663, NVIDIA/nccl#1597
        pattern=r"NET/OFI[^\n]*(?:nable|rror|nresponsive|ouldn't)",
        why=(
            "EFA does not work: all nodes must be in one zone, and their security group must allow"
            " all traffic from and to itself"
        ),
        do=(
            "aws ec2 describe-security-groups; kubectl get nodes -L topology.kubernetes.io/zone; where it"
            " worked before, kubectl get events --namespace default shows a node whose device is broken"
        ),
    ),
    Symptom(
        pattern=(
            r"RendezvousConnectionError|has timed out after|failed to connect to[^\n]*errno:"
            r" 1[01][^\n]*\n?\Z"
        ),
        why=(
            "nothing answers at the endpoint: its host or port is wrong, its pod does not run, or a"
            " security group blocks it"
        ),
        do="kubectl -n {namespace} get pods -l {job} --output wide, and compare with --rdzv_endpoint",
    ),
    Symptom(
        # gpustack/gpustack#2125, meta-pytorch/torchtune#2676
        pattern=r"connectFullMesh failed|gloo[^\n]*Timed out",
        why=(
            "gloo cannot reach every rank: it uses an address that other nodes cannot reach, or a"
            " rank has ended"
        ),
        do=(
            "set GLOO_SOCKET_IFNAME=eth0; to see which rank ended first: kubectl -n {namespace}"
            " logs -l {job} --prefix --tail=20"
        ),
    ),
    Symptom(
        # NVIDIA/nccl#975, nccl-tests#166
        pattern=r"NCCL WARN[^\n]*(?:onnect|peer)|ncclSystemError|ncclRemoteError",
        why=(
            "NCCL cannot reach every rank: a rank has ended, or the security group or the network"
            " interface is wrong"
        ),
        do=(
            "set NCCL_DEBUG=INFO and NCCL_SOCKET_IFNAME=eth0: kubectl -n {namespace} logs -l {job}"
            " --prefix --tail=20"
        ),
    ),
)
"""Causes why ranks cannot connect to each other, read in their logs. Of the endpoint:
pytorch/pytorch#107021, #79388, gensyn-ai/rl-swarm#197."""
