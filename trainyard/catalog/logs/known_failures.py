"""Lines with which runs fail: what each means, and what to do.

A new one is a new row. The first row whose pattern matches counts. It imports nothing of ours, so that a program
in a pod can have it. The messages were read in public issues on 2026-11-26, and in the sources of torch 2.9, NCCL
2.27, deepspeed 0.16 and CPython 3.11; issues beside a row are those where its cause was found. Rows with a mark
"(GPU)" were seen on a real one (tests/corpus/failures_on_a_gpu.txt).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Failure:
    """A way to fail. In both texts {0} is what the pattern's group matched."""

    pattern: str
    why: str
    do: str


NO_LOG = (
    "a log goes with its pod. Pods of a runtime of own_runtimes stay until their node goes; `pulumi up` of a job"
    " with wait: complete prints the reason when the run fails; logs: {} under environment keeps all logs"
)
"""The ways to have the log of a run whose pods are gone. Somebody may have taken one of them already."""
_MEMORY = "raise memory_gib of the job, or lower the number of its data loaders"
KNOWN = (
    Failure(
        r"OOMKilled",  # the reason of a container
        "its pods have too little memory: the kernel killed a rank (OOMKilled)",
        _MEMORY,
    ),
    Failure(
        # of kubelet 1.35, as the four below: pkg/kubelet/eviction/helpers.go, lifecycle/predicate.go, cm/devicemanager
        r"low on resource: (?:ephemeral-storage|inodes)|had condition: \[?DiskPressure",
        "the disk of the node was full, and kubelet ended the pod",
        "write to a store what the job keeps in the container, in /tmp or on local_scratch; where the type of the pool"
        " has no local disks, raise its root_volume_gib",
    ),
    Failure(
        r'EmptyDir volume "([^"]+)" exceeds the limit',
        "the pod wrote more into its volume {0} than the volume may have, and kubelet ended it",
        "write less there, or raise its limit: that of dshm, which is /dev/shm, is shared_memory_gib of the job",
    ),
    Failure(
        r"ephemeral local storage usage exceeds|exceeded its local ephemeral storage limit",
        "the pod wrote more to the disk of its node than its limit of ephemeral-storage, and kubelet ended it",
        "write to a store what the job keeps in the container or in /tmp, or raise the limit",
    ),
    Failure(
        r"low on resource: memory|had condition: \[?MemoryPressure",
        "the memory of the node was full, and kubelet ended the pod",
        "write memory_gib of the job, so that no other pod gets what it uses: `kubectl describe node` shows what the"
        " pods of the node request",
    ),
    Failure(
        r"Allocate failed|Node didn't have enough resource: (?:nvidia|vpc)\S+",
        "kubelet did not admit the pod: a GPU or EFA device of the node is lost, or another pod has it",
        "start the run again; `kubectl describe node` shows how many devices the node has left, and where it has too"
        " few, delete its NodeClaim: kubectl get nodeclaims",
    ),
    Failure(
        r"No space left on device|Errno 28\b|Disk quota exceeded|Errno 122\b",
        "a file system is full",
        "delete old checkpoints, or raise capacity_gib of the store; `df -h` in a pod shows which one is full."
        " While restarts are left, the run goes on by itself",
    ),
    Failure(
        r"CUDA out of memory|OutOfMemoryError|CUDA error: out of memory|CUBLAS_STATUS_ALLOC_FAILED",
        "a GPU has too little memory for the model and its batch",
        "lower the batch of a rank, or shard the model over more GPUs",
    ),
    Failure(
        # (GPU)
        r"DefaultCPUAllocator|\bMemoryError\b|Errno 12\b|Cannot allocate memory",
        "the memory of the pod is full: that of its CPUs, not of a GPU",
        _MEMORY,
    ),
    Failure(
        # pytorch/pytorch#31620; of a stream that was cut, of pickle, of JSON, of safetensors
        r"PytorchStreamReader failed|UnpicklingError|invalid load key|EOFError: Ran out of input"
        r"|JSONDecodeError|SafetensorError",
        "a checkpoint cannot be read",
        "move the newest checkpoint out of CHECKPOINT_DIR, and the run resumes from the one before;"
        " workloads/checkpoints.py does so by itself, and workloads/whole.py for other scripts",
    ),
    Failure(
        r"size mismatch for|Missing key\(s\) in state_dict|Unexpected key\(s\) in state_dict",
        "the checkpoint is that of another model than the one that the script makes",
        "give the job another checkpoints.directory, or the arguments with which the checkpoint was written",
    ),
    Failure(
        # hiyouga/LlamaFactory#1223, SWivid/F5-TTS#458; (GPU)
        r"PytorchStreamWriter failed|write\(\): fd \d+ failed|unexpected pos \d+ vs|basic_ios::clear: iostream error",
        "a checkpoint cannot be written, most often because its file system is full",
        "delete old checkpoints, or raise capacity_gib of the store; `df -h` in a pod shows which one is full",
    ),
    Failure(
        r"Errno 5\b|Errno 116\b|Input/output error|Stale file handle",
        "a file system or a disk of the node cannot be read or written",
        "`kubectl get events --namespace default` names a node with a broken disk; compare the mounts of the job"
        " with the state of its stores",
    ),
    Failure(
        # pytorch/pytorch#5040
        r"Bus error|SIGBUS|exit code 135\b|insufficient shared memory|out of shared memory"
        r"|unable to (?:open|allocate) shared memory",
        "/dev/shm is full",
        "raise shared_memory_gib of the job, or lower the number of its data loaders",
    ),
    Failure(
        r"(?:killed by signal: |\d )Killed\b|SIGKILL|signal 9\b|return code = -9\b|^Killed$"
        r"|exit code 137\b",
        "a process was killed from outside, most often by the kernel because memory ran out",
        _MEMORY,
    ),
    Failure(
        r"No module named '?([\w.]+)",
        "the image has no Python module {0}",
        "install {0} in the image (`trainyard image`), or add its file to files.sources",
    ),
    Failure(
        r"cannot open shared object file|undefined symbol",
        "a module of the image was built for another CUDA or torch than the image has",
        "install the module again in the image, or take an image whose versions fit",
    ),
    Failure(
        r"ImportError: cannot import name '(\w+)'",
        "a module of the image has no {0}: it has another version than the script expects",
        "pin the version of the module in the image",
    ),
    Failure(
        # pytorch-image-models#1724
        r"unrecognized arguments: --local[-_]rank",
        "the script was started by torch.distributed.launch, which passes --local-rank",
        "start it with torchrun, which sets LOCAL_RANK instead",
    ),
    Failure(
        r"^torchrun: error: ",
        "torchrun does not take an option as it is written",
        "correct the command of the job, or let `torchrun` of the job write it",
    ),
    Failure(
        r"^\S+: error: |argparse\.ArgumentError",
        "the script does not take an argument as it is written",
        "correct torchrun.arguments or arguments of the job",
    ),
    Failure(
        r"can't open file '([^']+)'",
        "there is no file {0} in the container",
        "correct its path in script, command or torchrun.script: files of files.sources lie in /workspace, and"
        " other files come with the image",
    ),
    Failure(
        r"([^\s:]+): (?:command )?not found\b|executable file not found",
        "the image has no program {0}",
        "correct the command of the job, or take an image that has the program",
    ),
    Failure(
        r"exit code 12[67]\b",
        "the image has no such program, or it cannot be executed",
        "correct the command of the job, or take an image that has the program",
    ),
    Failure(
        r"[Ee]xec format error",
        "the image is built for another kind of CPU than the node has",
        "build the image for the architecture of the pool",
    ),
    Failure(
        r"gated repo|401 Client Error|403 Client Error|Repository Not Found",
        "the Hugging Face Hub refuses the model or the data",
        "accept the licence with your account, and give the job its token: secrets: {HF_TOKEN: …}",
    ),
    Failure(
        r"couldn't connect to 'https://huggingface|Max retries exceeded with url|LocalEntryNotFoundError",
        "the container does not reach a host outside",
        "put model and data into a store before, or check that the pool's subnet has a NAT gateway",
    ),
    Failure(
        r"FileNotFoundError|No such file or directory|NotADirectoryError",
        "a file or folder that the program uses is not there",
        "compare its path with the mounts of the job (storage), and with what lies in the store",
    ),
    Failure(
        r"Read-only file system|Errno 30\b",
        "the program writes to a place that nobody can write to, such as a folder of `files`",
        "write checkpoints to $CHECKPOINT_DIR, and what ends with the pod to /tmp",
    ),
    Failure(
        r"PermissionError|Permission denied|Errno 13\b",
        "the user of the container cannot write or read a file",
        "write into a store or /tmp, and compare the owner of the folder with the user of the image",
    ),
    Failure(
        r"illegal memory access|misaligned address|unspecified launch failure",
        "a CUDA kernel used memory that is not its own",
        'set CUDA_LAUNCH_BLOCKING: "1" under env, and the traceback names the line; where it is always the same'
        " node, its GPU is broken",
    ),
    Failure(
        r"device-side assert",
        "an index is out of range on the GPU, such as a label or a token beyond the size of the model",
        "compare the numbers of classes and tokens of model and data",
    ),
    Failure(
        r"uncorrectable ECC|fallen off the bus|hardware error|Uncorrectable NVLink",
        "a GPU of the node is broken",
        "start the run again: `kubectl get events --namespace default` says whether the node was marked; repair"
        " under environment replaces such nodes",
    ),
    Failure(
        r"no NVIDIA driver|no CUDA-capable device|No CUDA GPUs are available|not compiled with CUDA|libcuda\.so",
        "the program finds no GPU",
        "take an image with torch for CUDA, and a pool with GPUs",
    ),
    Failure(
        r"no kernel image is available|CUDA driver version is insufficient|forward compatibility",
        "the CUDA of the image does not fit the GPU or the driver of the node",
        "take an image with a torch that knows the GPU of the pool",
    ),
    Failure(
        r"invalid device ordinal|But your machine only has|You requested gpu",
        "a node has more ranks than GPUs",
        "lower processes_per_node, or raise gpus_per_node of the job",
    ),
    Failure(
        # (GPU)
        r"no socket interface found",
        "the pod has no network interface of the name that NCCL_SOCKET_IFNAME gives",
        "leave NCCL_SOCKET_IFNAME out, or set it to eth0 under env: a pod has eth0 and lo",
    ),
    Failure(
        r"Duplicate GPU detected|ncclInvalidUsage",
        "two ranks use one GPU",
        "let each rank call torch.cuda.set_device with LOCAL_RANK before the first collective",
    ),
    Failure(
        r"Watchdog caught collective|collective operation timeout|wait timeout after \d+ms",
        "a collective timed out: a rank was late, hung or gone",
        "look at what the other ranks did (`trainyard logs --rank`): one of them waits for data, saves, or has"
        " ended; a longer timeout is an argument of init_process_group",
    ),
    Failure(
        # aws/aws-ofi-nccl#663, NVIDIA/nccl#1597
        r"NET/OFI",
        "EFA does not work: all nodes must be in one zone, and their security group must allow all traffic from and"
        " to itself",
        "pulumi refresh names rules that are gone; `kubectl get events --namespace default` shows a node whose"
        " device is broken",
    ),
    Failure(
        r"ncclRemoteError|remote process exited|[Cc]onnection (?:was )?(?:reset|closed) by|Broken ?[Pp]ipe",
        "another rank ended first, and this one lost its connection",
        "read the logs of the other ranks: `trainyard logs --rank`",
    ),
    Failure(
        # NVIDIA/nccl#975, hkproj/pytorch-transformer-distributed#1
        r"socketStartConnect|ncclSystemError|ncclUnhandledCudaError|ncclInternalError|NCCL error",
        "NCCL cannot reach every rank",
        "set NCCL_DEBUG: INFO and NCCL_SOCKET_IFNAME: eth0 under env, and the log of the next run names the"
        " address",
    ),
    Failure(
        # gpustack/gpustack#2125
        r"connectFullMesh failed|[Gg]loo.*[Tt]imed out",
        "gloo cannot reach every rank",
        "set GLOO_SOCKET_IFNAME: eth0 under env",
    ),
    Failure(
        r"RendezvousTimeoutError|RendezvousConnectionError|RendezvousClosedError|client socket has timed out",
        "the nodes did not meet: not all of them came in time, or nothing answers at the endpoint",
        "compare --nnodes, --rdzv_id and --rdzv_endpoint of the job; `trainyard status` says which node is missing",
    ),
    Failure(
        # pytorch/pytorch#126510
        r"EADDRINUSE|[Aa]ddress already in use",
        "another process of the pod listens at the port",
        "start one launcher in each pod; where two are meant, give each a port of its own",
    ),
    Failure(
        r"name resolution|Name or service not known|gaierror",
        "DNS does not know a host",
        "correct the name; `kubectl -n kube-system get pods -l k8s-app=kube-dns` shows whether DNS runs",
    ),
    Failure(
        r"got signal: (?:15|2|1)\b|imminent node shutdown|SIGTERM|SIGHUP|return code = -15\b|exit code 143\b",
        "the pod was ended from outside: its node was drained or taken away, a more urgent job came, or somebody"
        " stopped it",
        "`trainyard status` and `kubectl get events` say which; with checkpoints the next run resumes",
    ),
    Failure(
        r"Segmentation fault|SIGSEGV|signal 11\b|return code = -11\b|free\(\)|malloc\(\)|double free|SIGABRT"
        r"|stack smashing|return code = -6\b|exit code 13[49]\b",
        "a library in C crashed",
        'set PYTHONFAULTHANDLER: "1" under env, and the log names the line; modules that were built for another'
        " torch or CUDA crash so",
    ),
    Failure(
        r"Illegal instruction|SIGILL|exit code 132\b",
        "a library of the image is built for another CPU than the node has",
        "take an image that is built for the CPUs of the pool",
    ),
    Failure(
        r"Error building extension|CUDA_HOME environment variable is not set|nvcc.*not found",
        "an extension cannot be compiled: the image has no compiler, or lacks libraries of CUDA",
        "take an image of the kind -devel, or build the extension into the image",
    ),
    Failure(
        r"(?i)loss is nan|nan loss|nan or inf|Gradient overflow|returned nan values",
        "the loss is no number any more",
        "lower the learning rate, and let the run resume from a checkpoint before",
    ),
    Failure(
        # (GPU), as the four below
        r"Expected all tensors to be on the same device",
        "a tensor is on another device than the model, most often a batch on the CPU",
        'move it to the GPU of the rank: torch.device("cuda", int(os.environ["LOCAL_RANK"]))',
    ),
    Failure(
        r"must have the same dtype|expected scalar type",
        "two tensors have different types, such as float32 and bfloat16",
        "let torch.autocast cover the call, or convert the batch to the type of the model",
    ),
    Failure(
        r"Expected to have finished reduction in the prior iteration",
        "a parameter of the model took no part in the loss, and DistributedDataParallel waits for its gradient",
        "give DistributedDataParallel find_unused_parameters=True, or freeze the parameter",
    ),
    Failure(
        r"stack expects each tensor to be equal size",
        "the samples of a batch have different lengths",
        "pad or cut them: a collate_fn of the DataLoader, or a data collator of transformers",
    ),
    Failure(
        r"torch\._dynamo\.exc\.",
        "torch.compile cannot trace a line of the script",
        'leave fullgraph=True out, or set TORCH_COMPILE_DISABLE: "1" under env',
    ),
)
"""More than the 30 commonest ways to fail. What is nearer to the cause stands first."""
