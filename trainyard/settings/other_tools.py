"""Settings of other tools, as people write them into a stack file, each with what serves instead: of those that
make EKS clusters and GPU nodes (terraform-aws-eks, eksctl, pulumi-eks, Karpenter), of Kubernetes' own jobs, of Slurm
and SageMaker, and of the Trainer of transformers."""

from __future__ import annotations

_VPC = "write network: {vpc_id: …, private_subnets: {…}} (docs/network.md)"
_SUBNETS = f"delete it; {_VPC}"
_NODES = "delete it; write system_nodes: {nodes: 2}: nodes of jobs are launched as jobs need them"
_POOLS = "delete it; write pools: {g6e: {instance_types: [g6e.48xlarge], max_nodes: 4}}"
_VERSION = 'delete it; write cluster: {version: "1.35"}'
_ENDPOINT = "delete it; write endpoint: public-and-private, or endpoint: private"
_FOLLOWS = "delete it; it follows from instance_types"
_EFA = "delete it; nodes have all the EFA devices of their type"
_RESERVED = "delete it; write capacity: reservation, and reservation: {id: cr-0123456789abcdef0, instances: 1}"
_CAPACITY = "delete it; write capacity: {}"
_NO_LABELS = (
    "delete it; a pool has no labels and taints of its own: a job names its pool (docs/limits.md)"
)
_NEVER = "delete it; nodes never expire, and no node is replaced while a job runs on it"
_DISK = "delete it; write root_volume_gib: 200"
_MOST = "did you mean max_nodes?"
_TYPES = "did you mean instance_types?"
_OF_SCRIPT = 'delete it; hand it to the script: torchrun: {arguments: [--lr, "0.1"]}'
_SHARED = (
    "delete it; write efs: {}, an NFS that AWS runs, or lustre: all pods of a job share a store"
)


def _rows(holder: str, hints: dict[str, str]) -> dict[tuple[str, str], str]:
    return {(holder, name): hint for names, hint in hints.items() for name in names.split()}


OTHER_TOOLS: dict[tuple[str, str], str] = {
    **_rows(
        "environment",
        {
            "vpcid vpc subnets subnetids privatesubnets privatesubnetids publicsubnetids": _SUBNETS,
            "vpccidr cidr": "delete it; write network: {cidr: 10.0.0.0/16}",
            "version eksversion kubernetesversion k8sversion clusterversion": _VERSION,
            "nodegroups managednodegroups eksmanagednodegroups nodepools nodegroup gpupools": _POOLS,
            "desiredcapacity desiredsize minsize nodecount": _NODES,
            "region awsregion": "delete it; write aws:region beside trainyard:environment",
            "name clustername": "delete it; the stack's name begins the name of each resource",
            "clusteradmins": "delete it; write cluster: {admins: {me: {role_arn: …}}}",
            "addons clusteraddons": "delete it; the add-ons that an environment needs follow from it",
            "fsx fsxlustre efs lustre s3": "delete it; write storage: {scratch: {lustre: {…}}}",
            "kueue": "did you mean queues?",
        },
    ),
    **_rows(
        "cluster",
        {
            "vpcid subnets subnetids vpcconfig": f"delete it; {_VPC}",
            "endpointprivateaccess endpointpublicaccess privateaccess publicaccess": _ENDPOINT,
            "clusterendpointpublicaccess clusterendpointprivateaccess": _ENDPOINT,
            "publicaccesscidr endpointpublicaccesscidrs clusterendpointpublicaccesscidrs": (
                "did you mean public_access_cidrs?"
            ),
            "authenticationmode accessconfig": "delete it; it is always API",
            "desiredcapacity desiredsize minsize maxsize nodecount instancetype": _NODES,
            "nodegroups managednodegroups": _POOLS,
            "kubernetesversion eksversion k8sversion": "did you mean version?",
            "enabledclusterlogtypes loggingtypes clusterlogtypes": "did you mean logs?",
            "kmskeyarn encryptionconfig": "delete it; write kms_key_arn in environment",
            "roles mastersroles accessentries": "did you mean admins, or viewers?",
        },
    ),
    **_rows(
        "pools",
        {
            "spot": _CAPACITY.format("spot"),
            "capacitytype purchaseoption": "did you mean capacity?",
            "ondemand": _CAPACITY.format("on_demand"),
            "efa efaenabled enableefa efasupport": _EFA,
            "capacityreservation capacityreservationid reservationid odcr": _RESERVED,
            "capacityblock": _RESERVED.replace("capacity: reservation", "capacity: block"),
            "taints labels nodelabels": _NO_LABELS,
            "expireafter ttlsecondsuntilexpired ttlsecondsafterempty consolidation": _NEVER,
            "disruption consolidateafter consolidationpolicy": _NEVER,
            "instancetype type instance": _TYPES,
            "maxsize max maxcount limits nodes": _MOST,
            "minsize minnodes min desiredsize desiredcapacity desired count size": (
                "delete it, or write replicas for nodes that run all the time"
            ),
            "gpus gpucount gputype": _FOLLOWS,
            "ami amiid amitype": "delete it; GPU nodes have AL2023, or Bottlerocket by ami_family (docs/limits.md)",
            "amifamily os": "did you mean ami_family?",
            "volumesize disksize rootvolumesize diskgib": _DISK,
            "placementgroup": "delete it; write placement: cluster",
            "zone zones availabilityzone availabilityzones subnets subnetids": (
                "delete it; nodes are in environment.zone, or write fallback_zones for jobs of one node"
            ),
        },
    ),
    **_rows(
        "storage",
        {
            "nfs smb": "delete it; write efs: {}, an NFS that AWS runs: no store is a server of yours",
            "ebs gp3 pvc persistentvolumeclaim claim volume hostpath": _SHARED,
            "fsx fsxlustre fsxforlustre filesystem": "did you mean lustre?",
            "bucket mountpoint": "did you mean s3?",
        },
    ),
    **_rows(
        "jobs",
        {
            "numnodes nodecount replicas numreplicas workers numworkers instancecount": "did you mean nodes?",
            "timeout timeoutseconds activedeadlineseconds maxruntime timelimit walltime": (
                "did you mean time_limit_minutes?"
            ),
            "entrypoint cmd": "did you mean command?",
            "args": "did you mean arguments?",
            "environment envvars environmentvariables": "did you mean env?",
            "nprocpernode ntaskspernode": "did you mean processes_per_node?",
            "shm shmsize sharedmemory": "did you mean shared_memory_gib?",
            "cpu cpus vcpus": "did you mean cpus_per_node?",
            "memory mem ram": "did you mean memory_gib?",
            "container containerimage dockerimage imageuri": "did you mean image?",
            "dataset datasets datadir datapath": "did you mean data?",
            "outputdir checkpointdir checkpointpath savedir": (
                "delete it; write checkpoints: {store: …, directory: …}"
            ),
            "resources limits requests": (
                "delete it: a pod asks for its whole node; gpus_per_node, cpus_per_node and memory_gib ask"
                " for less"
            ),
            "volumes volumemounts mounts nfs pvc": (
                "delete it; to mount the store home at /data, write storage: {home: {path: /data}} into the job"
            ),
            "queue queuename localqueue": (
                "delete it; with environment.queues each job of a team waits in the team's queue"
            ),
            "annotations": "delete it; use labels in its place: only the file of manifest has annotations",
            "requirements pip packages": "delete it; install them in the image, or in script",
            "workingdir workdir": "delete it; write cd /workspace into script",
            "learningrate lr epochs numepochs trainepochs numtrainepochs batchsize microbatchsize"
            " perdevicetrainbatchsize maxseqlength maxsteps steps warmupsteps weightdecay seed": _OF_SCRIPT,
            "gputype accelerator accelerators machinetype": "did you mean pool?",
            "kind framework": "delete it; write runtime for a TrainJob, or pytorch_job for a PyTorchJob",
            "name": "delete it; the name of the entry is that of the job",
            "namespace": "delete it; jobs are in environment.namespace, or in the namespace of their team",
        },
    ),
    **_rows(
        "torchrun",
        {
            "args": "did you mean arguments?",
            "nprocpernode": "delete it; write processes_per_node in the job",
            "nnodes": "delete it; write nodes in the job",
        },
    ),
    **_rows(
        "checkpoints",
        {
            "path dir folder prefix outputdir": "did you mean directory?",
            "interval intervalminutes saveinterval": "did you mean interval_minutes?",
            "keeplast savetotallimit maxtokeep": "did you mean keep?",
        },
    ),
    **_rows(
        "model",
        {
            "batchsize microbatchsize perdevicetrainbatchsize trainmicrobatchsizepergpu": (
                "did you mean batch_per_gpu?"
            ),
            "maxseqlength maxlength seqlen contextlength": "did you mean sequence?",
            "gradientcheckpointing activationcheckpointing": "did you mean checkpointing?",
            "optim": "did you mean optimizer?",
            "dtype torchdtype bf16 fp16": "did you mean precision?",
            "hiddensize": "did you mean hidden?",
            "numhiddenlayers numlayers": "did you mean layers?",
            "vocabsize": "did you mean vocabulary?",
            "fsdp deepspeed zerostage": "did you mean sharding?",
            "parameters numparameters parametersbillion": (
                "delete it; write parameters_billion in the job, beside model"
            ),
        },
    ),
    **_rows(
        "sweep",
        {
            "parameters params values grid matrix space": "did you mean over?",
            "maxparallel parallelism paralleltrialcount maxconcurrent maxconcurrenttrials": (
                "did you mean at_most?"
            ),
            "objective metrics": "did you mean metric?",
        },
    ),
    **_rows(
        "system_nodes",
        {
            "desiredsize desiredcapacity minsize maxsize count size replicas": "did you mean nodes?",
            "instancetypes type": "did you mean instance_type?",
        },
    ),
}
"""(The map, or the map of entries, that it stands in; its name in small letters without dashes) → what to
do instead."""
