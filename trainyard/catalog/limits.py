"""Time limits of the parts below, in seconds: how long each waits, gives up, or pauses between two tries.

A part that gives up before a slow start is over turns a slow day into a failure. LIMITS has one row for
each limit: `trainyard check` and `trainyard plan` compare the rows with the slowest start of a plan
(trainyard/reports/minutes/limits.py), and whatever sets a limit in the product takes its number from here.

Upstream sources were read in 2026-11: Kubernetes 1.35.8, Karpenter 1.14.1, Kueue 0.19.2, training-operator
1.8.1, Helm 3.22.0, pulumi-kubernetes 4.34, terraform-provider-aws 6, torch 2.9.

Waiting costs the nodes that are there. Giving up costs them too: the gang starts anew, spends one of
its restarts, and waits again. So the limits of a gang are long, and whoever watches is told while they
last: `trainyard status`, alert NodesCannotLaunch and `told` name a gang that waits, with what its nodes cost. Once
all nodes have joined, no limit of these counts any more: a node that dies later is noticed as before.
"""

from __future__ import annotations

from dataclasses import dataclass

MINUTE, HOUR = 60, 3600

TORCH_SECONDS = {"join_timeout": 600, "read_timeout": 60, "timeout": 900}
"""Times that torch by itself waits: for all nodes, for the node that hosts the rendezvous, and for
both with the static backend (torch, distributed: elastic/rendezvous/dynamic_rendezvous.py and
c10d_rendezvous_backend.py, launcher/api.py)."""

NODES_SECONDS = 24 * HOUR
"""For nodes that join. A day: on-demand GPUs that are sold out in the evening are mostly back within
it, and an error that keeps nodes away for ever is paid for a day at most. The slowest start that
`trainyard plan` prints takes less than an hour. torch hands the limit of the static backend to poll() as
milliseconds in 32 bits: 24 days are the most."""

FIRST_NODE_SECONDS = HOUR
"""For the node that hosts a rendezvous of the backend c10d. Shorter than NODES_SECONDS, because this
limit also ends another wait: under a name that only DNS knows, a first node that asks too early takes
itself for another one, and waits for itself (torch: rendezvous/utils.py, _matches_machine_hostname),
with all nodes there and paid for. No start that `trainyard plan` prints is slower.
Scripts and files name it so; trainyard/objects/jobs/rendezvous.py names it otherwise. After the limit the gang
starts anew, and the pod of its first node is created first: it gets a node that is there."""

INIT_POLL_SECONDS = 2
"""Between two lookups of a Master (training-operator 1.8.1, the template of init-pytorch)."""
INIT_TRIES = NODES_SECONDS // INIT_POLL_SECONDS
"""Number of times that a Worker of a PyTorchJob looks up its Master before its pod fails."""

COLLECTIVE_SECONDS = {"NCCL": 10 * MINUTE, "gloo": 30 * MINUTE}
"""Backend → how long a rank by default waits in a collective for the others. `init_process_group(timeout=…)`
sets another limit."""

BACKOFF_SECONDS, PAID_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS = MINUTE, 10 * MINUTE, HOUR
"""Between the first two attempts of a queued gang without its nodes, and the longest: of pools with replicas or a
reservation, which are paid for meanwhile, and of others. After a last attempt Kueue would deactivate the job."""

CRASH_BACKOFF_SECONDS, LONGEST_CRASH_BACKOFF_SECONDS = 10, 5 * MINUTE
"""Pause of kubelet before it starts a container of the same pod again: the first one, doubled each time up
to the longest. A new pod begins anew."""
STEADY_SECONDS = 2 * LONGEST_CRASH_BACKOFF_SECONDS
"""Run after which the pause begins anew with the shortest."""

LONGEST_IMAGE_BACKOFF_SECONDS = 5 * MINUTE
"""Longest pause of kubelet before it pulls an image again that it could not pull."""
NO_CAPACITY_SECONDS = 3 * MINUTE
"""For which Karpenter asks EC2 for no node of a type in a zone where EC2 had none."""

RELEASE_MINUTES = 10
"""For a Helm release whose nodes are there."""
RELEASE_BEFORE_NODES_MINUTES = 35
"""For a Helm release that may begin before there are nodes: its pods stay Pending until then. One node
group of 16 took 33 minutes (trainyard/catalog/aws/latencies.py)."""
POOL_MINUTES, POOL_DELETE_MINUTES = 15, 30
"""For an EC2NodeClass and its NodePool. Karpenter looks again at a class that was not Ready after 10 minutes at most
(unless EC2 refused it a permission: 30). Deleting a NodePool ends with its last node: a quarter of an hour of a p5."""
EMPTY_NODE_MINUTES = 15
"""For which a node without pods stays: longer than a gang takes to assemble or to restart."""
ADD_ON_UPDATE_MINUTES, NODE_UPDATE_MINUTES = 90, 15
"""For an add-on, whose pods move node by node, 40 for 100 nodes (aws/containers-roadmap#2650); for a system node."""
LINK_MINUTES = 30
"""For one link of a Lustre file system to S3: FSx took longer than the provider's own limit (aws-samples
amazon-eks-machine-learning…#112)."""
GROW_MINUTES = 120
"""For another size or speed of a Lustre file system. The provider's own limit is 30, in which 1200 GiB did not grow
to 2400 (NVIDIA/ai-cloud-validation#544); another speed takes up to an hour (managing-throughput-capacity)."""
AWAIT_SECONDS = 10 * MINUTE
"""For whatever Pulumi awaits in Kubernetes and no option says otherwise."""

WHOLE_START = ("whole start",)
"""In Limit.over: everything from nothing to the first step, as slow as `trainyard plan` says."""
GANG = ("job.batching", "ec2.instance-boot", "job.image-pull")
"""From the moment at which a job asks for nodes to its containers on a new node."""
FIRST_STEP = ("job.first-step",)
"""From the start of the ranks to their first step."""
RENEWED = ()
"""In Limit.over: no start waits for it. It is renewed, or asked again without an end."""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A time after which a part below stops waiting, or tries again."""

    part: str
    limit: str
    """The part's own name of the limit."""
    seconds: int | None
    """In every stack; None where the plan computes it."""
    default: int | None
    """Seconds of the part by itself; None: it waits for ever."""
    set_in: str
    """Place that sets the limit: a file of the product, a setting, or `nobody`."""
    over: tuple[str, ...]
    """Stages that must be over before the limit: rows of LATENCIES that come one after the other, WHOLE_START,
    or RENEWED."""
    then: str
    """Action of the part after the limit, from a verb on."""
    source: str
    """Place of the default, in the sources of the part."""


def _provider(kind: str, minutes: int, over: str, *, set_minutes: int | None = None) -> Limit:
    """Row for the creation of an AWS resource by the provider."""
    name = kind.removeprefix("aws_")
    return Limit(
        part="AWS provider",
        limit=f"creation of {kind}",
        seconds=(set_minutes or minutes) * MINUTE,
        default=minutes * MINUTE,
        set_in="components/stores/lustre.py" if set_minutes else "nobody",
        over=(over,),
        then="fails the update; the next `pulumi up` makes the resource anew",
        source=f"terraform-provider-aws, internal/service: {name}.go, Timeouts",
    )


LIMITS: tuple[Limit, ...] = (
    Limit(
        part="torch",
        limit="join_timeout of c10d and etcd-v2",
        seconds=NODES_SECONDS,
        default=TORCH_SECONDS["join_timeout"],
        set_in="trainyard/objects/jobs/rendezvous.py",
        over=WHOLE_START,
        then="fails the pods of the gang, which costs a restart",
        source="torch/distributed/elastic/rendezvous/dynamic_rendezvous.py, RendezvousTimeout",
    ),
    Limit(
        part="torch",
        limit="read_timeout of c10d",
        seconds=FIRST_NODE_SECONDS,
        default=TORCH_SECONDS["read_timeout"],
        set_in="trainyard/objects/jobs/rendezvous.py",
        over=WHOLE_START,
        then="fails the pods of the gang, which costs a restart",
        source="torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py, _create_tcp_store",
    ),
    Limit(
        part="torch",
        limit="timeout of the static rendezvous",
        seconds=NODES_SECONDS,
        default=TORCH_SECONDS["timeout"],
        set_in="trainyard/objects/jobs/rendezvous.py",
        over=WHOLE_START,
        then="fails the pods of the gang, which costs a restart",
        source="torch/distributed/launcher/api.py, rdzv_configs",
    ),
    *(
        Limit(
            part="torch",
            limit=f"timeout of a collective of {backend}",
            seconds=seconds,
            default=seconds,
            set_in="nobody: init_process_group(timeout=…) of the script",
            over=FIRST_STEP,
            then="ends the rank",
            source="torch/csrc/distributed/c10d/Backend.hpp, ProcessGroupNCCL.hpp",
        )
        for backend, seconds in COLLECTIVE_SECONDS.items()
    ),
    Limit(
        part="training-operator",
        limit="tries of the init container init-pytorch",
        seconds=INIT_TRIES * INIT_POLL_SECONDS,
        default=100 * INIT_POLL_SECONDS,
        set_in="components/jobs/training_operator.py",
        over=WHOLE_START,
        then="fails the pod of a Worker",
        source="pkg/config/config.go, PyTorchInitContainerMaxTriesDefault",
    ),
    Limit(
        part="Kueue",
        limit="waitForPodsReady.timeout",
        seconds=None,
        default=30 * MINUTE,
        set_in="trainyard/derive/queues.py",
        over=GANG,
        then="takes the nodes of the gang away; it waits in the queue again",
        source="apis/config/v1beta2/defaults.go, DefaultWaitForPodsReadyTimeout; 0.16: off",
    ),
    Limit(
        part="Kueue",
        limit="requeuingStrategy.backoffMaxSeconds",
        seconds=LONGEST_BACKOFF_SECONDS,
        default=HOUR,
        set_in="trainyard/objects/queues/queues.py",
        over=RENEWED,
        then="admits the gang again",
        source="apis/config/v1beta2/defaults.go, DefaultRequeuingBackoffMaxSeconds",
    ),
    Limit(
        part="JobSet",
        limit="time until all pods run",
        seconds=None,
        default=None,
        set_in="nobody: JobSet waits for ever, and time_limit_minutes ends a job",
        over=RENEWED,
        then="does nothing",
        source="JobSet 0.12.0, pkg/controllers: no time but that of ttlSecondsAfterFinished",
    ),
    Limit(
        part="job controller",
        limit="pause before a Job makes a failed pod anew",
        seconds=10 * MINUTE,
        default=10 * MINUTE,
        set_in="nobody; with failurePolicy of own_runtimes JobSet makes Jobs anew at once",
        over=RENEWED,
        then="makes the pod: 10 s after its first failure, twice as long after each further one",
        source="kubernetes, pkg/controller/job/job_controller.go, MaxJobPodFailureBackOff",
    ),
    Limit(
        part="Karpenter",
        limit="launch of a NodeClaim",
        seconds=5 * MINUTE,
        default=5 * MINUTE,
        set_in="nobody",
        over=("job.batching",),
        then="deletes the NodeClaim and launches another one",
        source="karpenter, pkg/controllers/nodeclaim/lifecycle/liveness.go, LaunchTimeout",
    ),
    Limit(
        part="Karpenter",
        limit="registration of a node",
        seconds=15 * MINUTE,
        default=15 * MINUTE,
        set_in="nobody",
        over=("ec2.instance-boot",),
        then="deletes the instance and launches another one",
        source="karpenter, pkg/controllers/nodeclaim/lifecycle/liveness.go, registrationTimeout",
    ),
    Limit(
        part="Karpenter",
        limit="pause after EC2 had no capacity",
        seconds=NO_CAPACITY_SECONDS,
        default=3 * MINUTE,
        set_in="nobody",
        over=RENEWED,
        then="asks EC2 again for the type in that zone",
        source="karpenter-provider-aws, pkg/cache/cache.go, UnavailableOfferingsTTL",
    ),
    Limit(
        part="Karpenter",
        limit="disruption.consolidateAfter of an empty node",
        seconds=EMPTY_NODE_MINUTES * MINUTE,
        default=0,
        set_in="components/nodes/gpu_pool.py",
        over=GANG,
        then="deletes the node",
        source="karpenter, pkg/apis/v1/nodepool.go",
    ),
    Limit(
        part="kubelet",
        limit="pause before a failed image is pulled again",
        seconds=LONGEST_IMAGE_BACKOFF_SECONDS,
        default=5 * MINUTE,
        set_in="nobody",
        over=RENEWED,
        then="pulls again: 10 s after the first failure, twice as long after each further one",
        source="kubernetes, pkg/kubelet/kubelet.go, MaxImageBackOff",
    ),
    Limit(
        part="containerd",
        limit="image_pull_progress_timeout",
        seconds=5 * MINUTE,
        default=5 * MINUTE,
        set_in="nobody; a pull that moves on has no limit",
        over=RENEWED,
        then="ends a pull of which no byte came, and kubelet pulls again",
        source="containerd 2, internal/cri/config, defaultImagePullProgressTimeoutDuration",
    ),
    Limit(
        part="kubelet",
        limit="wait for the volumes of a pod",
        seconds=2 * MINUTE + 3,
        default=2 * MINUTE + 3,
        set_in="nobody",
        over=RENEWED,
        then="says FailedMount and waits again, without an end",
        source="kubernetes, pkg/kubelet/volumemanager/volume_manager.go, podAttachAndMountTimeout",
    ),
    Limit(
        part="CSI",
        limit="one call of a driver",
        seconds=2 * MINUTE,
        default=2 * MINUTE,
        set_in="nobody",
        over=RENEWED,
        then="calls again after half a second, twice as long after each failure, 2 minutes at most",
        source="kubernetes, pkg/volume/csi/csi_plugin.go, csiTimeout; util/goroutinemap",
    ),
    Limit(
        part="kubelet",
        limit="crash back-off of a container",
        seconds=LONGEST_CRASH_BACKOFF_SECONDS,
        default=5 * MINUTE,
        set_in="nobody; from Kubernetes 1.35 on crashLoopBackOff of kubelet's configuration",
        over=RENEWED,
        then="starts the container in the same pod again",
        source="kubernetes, pkg/kubelet/kubelet.go, MaxCrashLoopBackOff",
    ),
    Limit(
        part="API server",
        limit="timeoutSeconds of a webhook",
        seconds=10,
        default=10,
        set_in="nobody; a webhook is asked only once its release is ready",
        over=RENEWED,
        then="refuses the object",
        source="kubernetes, pkg/apis/admissionregistration/v1/defaults.go",
    ),
    Limit(
        part="API server",
        limit="tolerationSeconds of a pod on a silent node",
        seconds=5 * MINUTE,
        default=5 * MINUTE,
        set_in="nobody; with `repair` trainyard/in_cluster/repair decides sooner or later",
        over=RENEWED,
        then="ends the pod",
        source="kubernetes, plugin/pkg/admission/defaulttolerationseconds/admission.go",
    ),
    Limit(
        part="Helm",
        limit="timeout of a release on nodes that are there",
        seconds=RELEASE_MINUTES * MINUTE,
        default=5 * MINUTE,
        set_in="components/base/chart.py",
        over=("helm.controller",),
        then="fails the update, and the next `pulumi up` installs the release anew",
        source="helm, cmd/helm/install.go, --timeout",
    ),
    Limit(
        part="Helm",
        limit="timeout of a release that begins before its nodes",
        seconds=RELEASE_BEFORE_NODES_MINUTES * MINUTE,
        default=5 * MINUTE,
        set_in="components/base/chart.py",
        over=("eks.nodegroup", "helm.controller"),
        then="fails the update, and the next `pulumi up` installs the release anew",
        source="helm, cmd/helm/install.go, --timeout",
    ),
    Limit(
        part="Pulumi",
        limit="creation of an EC2NodeClass or a NodePool",
        seconds=POOL_MINUTES * MINUTE,
        default=AWAIT_SECONDS,
        set_in="components/nodes/gpu_pool.py",
        over=("kubernetes.pools",),
        then="fails the update; the object stays, and the next `pulumi up` goes on",
        source="pulumi-kubernetes, provider/pkg/await",
    ),
    Limit(
        part="Pulumi",
        limit="creation of a Deployment or StatefulSet",
        seconds=AWAIT_SECONDS,
        default=AWAIT_SECONDS,
        set_in="nobody",
        over=("helm.controller",),
        then="fails the update; the object stays, and the next `pulumi up` goes on",
        source="pulumi-kubernetes, provider/pkg/await/deployment.go, DefaultDeploymentTimeoutMins",
    ),
    Limit(
        part="EKS Pod Identity",
        limit="expirationSeconds of the token of a pod",
        seconds=24 * HOUR,
        default=24 * HOUR,
        set_in="nobody; kubelet renews it when 80 % of its time has passed",
        over=RENEWED,
        then="refuses the token",
        source="EKS user guide, pod-id-how-it-works; kubernetes, pkg/kubelet/token/token_manager.go",
    ),
    _provider("aws_eks_cluster", 30, "eks.cluster"),
    _provider("aws_eks_node_group", 60, "eks.nodegroup"),
    _provider("aws_eks_addon", 20, "eks.addon"),
    _provider("aws_nat_gateway", 10, "ec2.nat-gateway"),
    _provider("aws_vpc_endpoint", 10, "ec2.interface-endpoint"),
    _provider("aws_efs_mount_target", 30, "efs.mount-target"),
    _provider("aws_fsx_lustre_file_system", 30, "fsx.lustre"),
    _provider("aws_fsx_lustre_file_system", 30, "fsx.lustre.large"),
    _provider("aws_fsx_lustre_file_system", 30, "fsx.lustre.efa"),
    _provider(
        "aws_fsx_data_repository_association", 10, "fsx.association", set_minutes=LINK_MINUTES
    ),
)
"""Every limit that a start meets, in the order of torch, controllers, nodes, pods, releases and AWS."""
