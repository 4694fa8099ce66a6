"""Impossible and sound jobs: what tests/support/cases/environment.py is for the rest of a stack file."""

from __future__ import annotations

from tests.support.stackfile import Edit, at, without

JOB = "jobs.t5-large"
SCRIPT, RUNTIME, SECRETS = f"{JOB}.script", f"{JOB}.runtime", f"{JOB}.secrets"
OPERATOR = at("training_operator", {"version": "1.8.1"})
PRIORITIES = at("priorities", {"high": 1000})
SAMPLE = "workloads/training-on-eks/samples/fsdp/t5-fsdp.py"
TOKEN = {"HF_TOKEN": {"secret": "hf-token", "key": "token"}}


def pytorch_job(**more: object) -> list[Edit]:
    """The dev file's job, by the training-operator."""
    return [OPERATOR, without(RUNTIME), at(f"{JOB}.pytorch_job", more)]


def tune(**more: object) -> list[Edit]:
    """A job of one node on a runtime of kind torchtune."""
    fetched = {"model": "qwen2.5-1.5b", "store": "scratch", "directory": "tuned"}
    own = {"kind": "torchtune", "image": "registry/tune:1", "max_restarts": 0, "torchtune": fetched}
    return [
        at("trainer.own_runtimes.tune", own | more),
        at(RUNTIME, "tune"),
        at(f"{JOB}.nodes", 1),
        without(SCRIPT),
    ]


# name → (edits, path below `environment`, part of what it says)
REFUSED: dict[str, tuple[list[Edit], str, str]] = {
    "a command of its runtime that starts other nodes": (
        [
            at(
                "trainer.own_runtimes.torch-distributed-resilient.command",
                ["torchrun", "--nnodes=4", "/app/t.py"],
            ),
            without(SCRIPT),
        ],
        RUNTIME,
        "start the job's 2 nodes",
    ),
    "a Worker's label that is a sentence": (
        pytorch_job(worker_labels={"role": "the worker"}),
        f"{JOB}.pytorch_job.worker_labels.role",
        "be a label",
    ),
    "a pull policy in the words of Kubernetes": (
        pytorch_job(image_pull_policy="IfNotPresent"),
        f"{JOB}.pytorch_job.image_pull_policy",
        "if_not_present",
    ),
    "a variable of a runtime that is no name": (
        [at("trainer.own_runtimes.torch-distributed-resilient.env", {"A-B": "1"})],
        "trainer.own_runtimes.torch-distributed-resilient.env.A-B",
        "be the name of a variable",
    ),
    "a variable of a runtime that the Trainer sets": (
        [at("trainer.own_runtimes.torch-distributed-resilient.env", {"PET_NNODES": "2"})],
        "trainer.own_runtimes.torch-distributed-resilient.env.PET_NNODES",
        "not be a variable that the Trainer sets: it replaces the value",
    ),
    "a job of no controller": (
        [without(RUNTIME)],
        JOB,
        "exactly one of runtime (a TrainJob) and pytorch_job",
    ),
    "a job of two controllers": ([OPERATOR, at(f"{JOB}.pytorch_job", {})], JOB, "got both"),
    "a launcher of another image than its nodes": (
        [
            at("trainer.own_runtimes.torch-distributed-resilient.kind", "mpi"),
            at(f"{JOB}.image", "other:1"),
        ],
        f"{JOB}.image",
        "be the image of torch-distributed-resilient",
    ),
    "one node where MPI takes two": (
        [
            at("trainer.own_runtimes.torch-distributed-resilient.kind", "mpi"),
            at(f"{JOB}.nodes", 1),
        ],
        f"{JOB}.nodes",
        "be 2 or more on torch-distributed-resilient: with MPI the Trainer starts a launcher and at least one other"
        " pod, so one node takes two; got 1. Fix: write 2, or use a torch runtime",
    ),
    "torchtune on two nodes": (
        [*tune(), at(f"{JOB}.nodes", 2)],
        f"{JOB}.nodes",
        "be 1 with torchtune",
    ),
    "torchtune with a command that names no recipe": (
        [*tune(), at(f"{JOB}.command", ["tune", "run"])],
        f"{JOB}.command",
        "must not be `tune run`: the Trainer then reads the model from the name of the runtime, "
        "and the name tune has none; got tune run. Fix: delete it, and the recipe of the runtime "
        "runs; or write script: tune run …",
    ),
    "a mount where torchtune works": (
        [*tune(), at(f"{JOB}.storage", {"home": {"path": "/workspace"}})],
        f"{JOB}.storage.home.path",
        "must be a path of its own, and not that of the runtime's recipe; got /workspace",
    ),
    "torchtune on nothing": (
        [*tune(), without("trainer.own_runtimes.tune.torchtune")],
        "trainer.own_runtimes.tune.torchtune",
        "must be set with kind: torchtune, for one of llama3.2-1b, llama3.2-3b, qwen2.5-1.5b; got"
        " nothing. Fix: add torchtune: {model: llama3.2-1b, store: scratch, directory: tune}",
    ),
    "what torchtune needs, for torchrun": (
        tune(kind="torch"),
        "trainer.own_runtimes.tune.torchtune",
        "must not be set with kind: torch; got a model. Fix: delete it, or write kind: torchtune",
    ),
    "torchtune on a store that is not there": (
        tune(torchtune={"model": "qwen2.5-1.5b", "store": "nowhere", "directory": "tuned"}),
        "trainer.own_runtimes.tune.torchtune.store",
        "one of scratch, home",
    ),
    "torchtune outside its store": (
        tune(torchtune={"model": "qwen2.5-1.5b", "store": "home", "directory": "a/../../b"}),
        "trainer.own_runtimes.tune.torchtune.directory",
        "without `..`, which the API server refuses",
    ),
    "a model that upstream has no recipe for": (
        tune(torchtune={"model": "gpt-2", "store": "home", "directory": "a"}),
        "trainer.own_runtimes.tune.torchtune.model",
        "qwen2.5-1.5b",
    ),
    "another recipe in a torchtune runtime": (
        tune(command=["python"]),
        "trainer.own_runtimes.tune.command",
        "not be set with torchtune",
    ),
    "nothing to run on a torch runtime": (
        [without(SCRIPT)],
        JOB,
        "exactly one of script, command, arguments and torchrun",
    ),
    "a PyTorchJob that nobody runs": (
        [without(RUNTIME), at(f"{JOB}.pytorch_job", {})],
        f"{JOB}.pytorch_job",
        "training_operator: {version: 1.8.1}",
    ),
    "a training-operator without a chart": (
        [at("training_operator", {"version": "1.7.0"})],
        "training_operator.version",
        "write 1.8.1",
    ),
    "restarts of a PyTorchJob from nothing": (
        [*pytorch_job(restarts=3), without(f"{JOB}.checkpoints")],
        f"{JOB}.checkpoints",
        "be set: without it each of 3 restarts begins from zero",
    ),
    "a TrainJob's own priority": (
        [PRIORITIES, at(f"{JOB}.priority", "high")],
        f"{JOB}.priority",
        "the priority of a TrainJob is that of its runtime",
    ),
    "a priority that is not there": (
        [*pytorch_job(), at(f"{JOB}.priority", "high")],
        f"{JOB}.priority",
        "be one of environment.priorities",
    ),
    "a runtime's priority that is not there": (
        [at("trainer.own_runtimes.torch-distributed-resilient.priority", "high")],
        "trainer.own_runtimes.torch-distributed-resilient.priority",
        "be one of environment.priorities",
    ),
    "a runtime's pool that is not there": (
        [at("trainer.own_runtimes.torch-distributed-resilient.pool", "h101")],
        "trainer.own_runtimes.torch-distributed-resilient.pool",
        "be one of environment.pools",
    ),
    "a job of another pool than its runtime": (
        [at("trainer.own_runtimes.torch-distributed-resilient.pool", "h100")],
        f"{JOB}.pool",
        "must be h100, as its runtime torch-distributed-resilient has pool: h100",
    ),
    "a time limit that Trainer 2.1 drops": (
        [at(f"{JOB}.time_limit_minutes", 60)],
        f"{JOB}.time_limit_minutes",
        "drops it silently",
    ),
    "an elastic TrainJob": (
        [at(f"{JOB}.elastic", {"min_nodes": 1, "max_nodes": 4})],
        f"{JOB}.elastic",
        "JobSet cannot resize",
    ),
    "an elastic job that is coordinated": (
        [*pytorch_job(coordinator=True), at(f"{JOB}.elastic", {"min_nodes": 1, "max_nodes": 4})],
        f"{JOB}.elastic",
        "not be set beside coordinator",
    ),
    "an elastic job that begins outside its bounds": (
        [*pytorch_job(), at(f"{JOB}.elastic", {"min_nodes": 3, "max_nodes": 4})],
        f"{JOB}.elastic",
        "must have nodes, the size at the start, between min_nodes and max_nodes; got 3 to 4 "
        "nodes, nodes: 2. Fix: write min_nodes: 2 under environment.jobs.t5-large.elastic, or "
        "write nodes: 3 under environment.jobs.t5-large",
    ),
    "an elastic job larger than its pool": (
        [*pytorch_job(), at(f"{JOB}.elastic", {"min_nodes": 1, "max_nodes": 9})],
        f"{JOB}.elastic.max_nodes",
        "Fix: write 4 or less",
    ),
    "an up that ends before the run": (
        [at(f"{JOB}.wait", "complete"), at(f"{JOB}.expected_hours", 10)],
        f"{JOB}.wait_minutes",
        "630",
    ),
    "a script and torchrun": (
        [at(f"{JOB}.torchrun", {"script": "train.py"})],
        JOB,
        "got script and torchrun",
    ),
    "torchrun of a folder among files that have none": (
        [
            without(SCRIPT),
            at(f"{JOB}.files", {"sources": ["README.md"]}),
            at(f"{JOB}.torchrun", {"script": "/workspace/mine/train.py"}),
        ],
        f"{JOB}.torchrun.script",
        "must be a file that files.sources puts into /workspace: README.md; got "
        "/workspace/mine/train.py. Fix: add its path, from the folder of the stack file, to "
        "files.sources and write /workspace/train.py",
    ),
    "torchrun of a file by its path in the checkout": (
        [
            without(SCRIPT),
            at(f"{JOB}.files", {"sources": ["trainyard/operations/recovery/drain.py"]}),
            at(f"{JOB}.torchrun", {"script": "trainyard/operations/recovery/drain.py"}),
        ],
        f"{JOB}.torchrun.script",
        "Fix: write /workspace/drain.py",
    ),
    "torchrun of a file that the job does not bring": (
        [
            without(SCRIPT),
            at(f"{JOB}.files", {"sources": ["README.md"]}),
            at(f"{JOB}.torchrun", {"script": "/workspace/train.py"}),
        ],
        f"{JOB}.torchrun.script",
        "must be a file that files.sources puts into /workspace: README.md; got "
        "/workspace/train.py. Fix: add its path, from the folder of the stack file, to "
        "files.sources",
    ),
    "an image without a tag": (
        [at(f"{JOB}.image", "registry:5000/image")],
        f"{JOB}.image",
        "whatever is newest",
    ),
    "a store that hides the programs of the image": (
        [at(f"{JOB}.storage", {"home": {"path": "/usr/local/bin/"}})],
        f"{JOB}.storage.home.path",
        "must not hide /usr/local/bin of the container, which would lose the programs, libraries "
        "or devices there; got /usr/local/bin/. Fix: write a folder of its own, such as /data",
    ),
    "a folder of the node that hides processes": (
        [at(f"{JOB}.host_paths", {"data": {"host": "/data", "path": "/proc/1"}})],
        f"{JOB}.host_paths.data.path",
        "must not hide /proc/1",
    ),
    "files that hide the settings of the system": (
        [at(f"{JOB}.files", {"sources": ["README.md"], "path": "/etc"})],
        f"{JOB}.files.path",
        "must not hide /etc",
    ),
    "a folder on the node's disks with a way up": (
        [at(f"{JOB}.local_scratch", "/local/../scratch2")],
        f"{JOB}.local_scratch",
        "must not contain `..`; got /local/../scratch2. Fix: write /scratch2",
    ),
    "arguments for a recipe": (
        [*tune(), at(f"{JOB}.arguments", ["--epochs", "3"])],
        f"{JOB}.arguments",
        "must not be set with torchtune: the recipe of the runtime has arguments of its own, and "
        "takes no others; got --epochs 3. Fix: delete it, and the recipe runs as it is; or write "
        "script: tune run …, with arguments of your own",
    ),
    "arguments beside a coordinator": (
        [*pytorch_job(coordinator=True), without(SCRIPT), at(f"{JOB}.arguments", [])],
        f"{JOB}.arguments",
        "must not be set beside coordinator",
    ),
    "arguments beside a script": (
        [at(f"{JOB}.arguments", ["--epochs", "3"])],
        JOB,
        "got script and arguments",
    ),
    "an image in capitals": (
        [at(f"{JOB}.image", "registry.example.com/Team/Train:1")],
        f"{JOB}.image",
        "must be in small letters, but for the tag; got registry.example.com/Team/Train:1. Fix: "
        "write registry.example.com/team/train:1",
    ),
    "an image by its address": (
        [at(f"{JOB}.image", "https://ghcr.io/a/b:1")],
        f"{JOB}.image",
        "Fix: write ghcr.io/a/b:1",
    ),
    "a label whose name begins with a dash": (
        [at(f"{JOB}.labels", {"-a": "b"})],
        f"{JOB}.labels.-a",
        "must be a name, or a domain, a slash and a name; a name has at most 63 letters, digits, "
        "- _ . and begins and ends with a letter or a digit; got -a. Fix: rename it, or delete it",
    ),
    "an image with a blank": (
        [at(f"{JOB}.image", "a b:1")],
        f"{JOB}.image",
        "must have no blank in it: it is one word; got a b:1. Fix: delete the blank",
    ),
    "an image whose digest is cut off": (
        [at(f"{JOB}.image", "a/b@sha256:4f53cda18c2baa0c")],
        f"{JOB}.image",
        "must have 64 hex digits behind @sha256:; got 16 in a/b@sha256:4f53cda18c2baa0c. Fix: "
        "write the whole digest, which `docker buildx imagetools inspect a/b:<tag>` prints",
    ),
    "an image whose tag is missing behind its colon": (
        [at(f"{JOB}.image", "a/b:")],
        f"{JOB}.image",
        "must have a tag behind its colon; got a/b:. Fix: write a/b:<version>, better a/b@sha256:…",
    ),
    "no image": (
        [at(f"{JOB}.image", "")],
        f"{JOB}.image",
        "must be the name of an image",
    ),
    "a runtime's image that is none": (
        [at("trainer.own_runtimes.torch-distributed-resilient.image", "team/Train")],
        "trainer.own_runtimes.torch-distributed-resilient.image",
        "must have small letters, and a tag or a digest; got team/Train. Fix: write "
        "team/train:<version>, better team/train@sha256:…",
    ),
    "a path that is mounted twice": (
        [at(f"{JOB}.local_scratch", "/workspace/"), at(f"{JOB}.files", {"sources": ["README.md"]})],
        f"{JOB}.local_scratch",
        "must be a path of its own, and not that of files.path; got /workspace",
    ),
    "a job that spreads its pods": (
        [at(f"{JOB}.podAntiAffinity", {})],
        f"{JOB}.podAntiAffinity",
        "pods ask for whole nodes, so each has its own",
    ),
    "a job that selects its nodes": (
        [at(f"{JOB}.node_selector", {"a": "b"})],
        f"{JOB}.node_selector",
        "the pool decides where pods run",
    ),
    "checkpoints that a node copies to S3": (
        [at(f"{JOB}.checkpoints.copy_to", "s3://bucket/run")],
        f"{JOB}.checkpoints.copy_to",
        "whose lustre.repositories export to S3",
    ),
    "checkpoints on the node": (
        [at(f"{JOB}.checkpoints.store", "s3")],
        f"{JOB}.checkpoints.store",
        "one of scratch, home; to have them in S3, use a Lustre store",
    ),
    "checkpoints in a bucket": (
        [at(f"{JOB}.checkpoints.directory", "s3://bucket/run")],
        f"{JOB}.checkpoints.directory",
        "be a directory of its store",
    ),
    "events to a store that is not there": (
        [at(f"{JOB}.tensorboard", {"store": "logs", "directory": "a"})],
        f"{JOB}.tensorboard.store",
        "one of scratch, home",
    ),
    "events outside their store": (
        [at(f"{JOB}.tensorboard", {"store": "home", "directory": "a/../../b"})],
        f"{JOB}.tensorboard.directory",
        "without `..`, which the API server refuses",
    ),
    "a secret for nobody": (
        [at(SECRETS, {"HF-TOKEN": TOKEN["HF_TOKEN"]})],
        f"{SECRETS}.HF-TOKEN",
        "be the name of a variable",
    ),
    "a secret that the Trainer sets": (
        [at(SECRETS, {"PET_NNODES": TOKEN["HF_TOKEN"]})],
        f"{SECRETS}.PET_NNODES",
        "not be a variable that the Trainer sets",
    ),
    "a variable in clear and in a Secret": (
        [at(SECRETS, TOKEN), at(f"{JOB}.env", {"HF_TOKEN": "x"})],
        f"{SECRETS}.HF_TOKEN",
        "be set once",
    ),
    "a label that is a sentence": (
        [at(f"{JOB}.labels", {"note": "two words"})],
        f"{JOB}.labels.note",
        "must be a label: at most 63 letters, digits, - _ . with a letter or a digit at both "
        "ends; got two words. Fix: write two-words, or delete it",
    ),
    "in production, a clone of whatever is newest": (
        [at("production", True)],
        f"{JOB}.script",
        "a clone of whatever is newest",
    ),
    "in production, packages at start": (
        [at("production", True)],
        f"{JOB}.script",
        "whose packages may be others tomorrow",
    ),
    "in production, latest": (
        [at("production", True), at(f"{JOB}.image", "image:latest")],
        f"{JOB}.image",
        "take a version, or a digest",
    ),
    "a goodput as a fraction": (
        [at(f"{JOB}.goodput_percent", 0.95), at(f"{JOB}.parameters_billion", 0.8)],
        f"{JOB}.goodput_percent",
        "must be in percent, 1 or more; got 0.95. Fix: write 95",
    ),
    "a command that begins with nothing": (
        [without(SCRIPT), at(f"{JOB}.command", [""])],
        f"{JOB}.command",
        "must begin with a program; got nothing",
    ),
    "torchrun of nothing": (
        [without(SCRIPT), at(f"{JOB}.torchrun", {"script": ""})],
        f"{JOB}.torchrun.script",
        "must be the path of a script in the container; got nothing",
    ),
    "a secret in two places": (
        [at(SECRETS, {"A": {"secret": "a", "secrets_manager": "b", "key": "c"}})],
        f"{SECRETS}.A.secret",
        "must not be set beside secrets_manager; got",
    ),
}

SOUND: dict[str, list[Edit]] = {
    "labels of the roles, and a pull policy": pytorch_job(
        image_pull_policy="always", master_labels={"role": "master"}, worker_labels={"role": "w"}
    ),
    "a runtime with variables and a pull policy": [
        at("trainer.own_runtimes.torch-distributed-resilient.env", {"NCCL_DEBUG": "INFO"}),
        at("trainer.own_runtimes.torch-distributed-resilient.image_pull_policy", "never"),
        at(SCRIPT, "echo $(NCCL_DEBUG); torchrun --nproc_per_node=8 t.py"),
    ],
    "a PyTorchJob": pytorch_job(),
    "a PyTorchJob with everything": [
        *pytorch_job(clean_pods="all", restarts=2, coordinator=True),
        PRIORITIES,
        at(f"{JOB}.priority", "high"),
        at(f"{JOB}.time_limit_minutes", 600),
    ],
    "torchtune": tune(),
    "torchtune in the newest release, of a gated model, with a recipe of the job's": [
        *tune(
            torchtune={
                "model": "llama3.2-1b",
                "store": "home",
                "directory": "tuned",
                "token": TOKEN["HF_TOKEN"],
            }
        ),
        at("trainer.version", "2.3.0"),
        at(SCRIPT, "tune run lora_finetune_single_device --config a.yaml"),
    ],
    "an elastic PyTorchJob": [
        *pytorch_job(restarts=2),
        at(f"{JOB}.elastic", {"min_nodes": 1, "max_nodes": 4}),
    ],
    "a runtime with a priority": [
        PRIORITIES,
        at("trainer.own_runtimes.torch-distributed-resilient.priority", "high"),
    ],
    "a command of its runtime": [
        at("trainer.own_runtimes.torch-distributed-resilient.command", ["torchrun", "/app/t.py"]),
        without(SCRIPT),
    ],
    "the image's own entrypoint": [without(SCRIPT), at(f"{JOB}.arguments", ["--epochs", "3"])],
    "the image's own entrypoint without arguments": [without(SCRIPT), at(f"{JOB}.arguments", [])],
    "a script of this checkout": [
        without(SCRIPT),
        at(f"{JOB}.files", {"sources": ["README.md", SAMPLE]}),
        at(f"{JOB}.torchrun", {"script": "/workspace/t5-fsdp.py", "arguments": ["--epochs", "1"]}),
    ],
    "torchrun of a script in the image": [
        without(SCRIPT),
        at(f"{JOB}.torchrun", {"script": "train.py"}),
    ],
    "an etcd to meet at": [
        without(SCRIPT),
        at(f"{JOB}.torchrun", {"script": "a.py", "rendezvous": {"etcd": "etcd:2379"}}),
    ],
    "a folder of the node": [at(f"{JOB}.host_paths", {"data": {"host": "/data", "path": "/data"}})],
    "secrets, pulled by a secret": [
        at(SECRETS, TOKEN),
        at(f"{JOB}.pull_secrets", ["registry", "my.registry"]),
    ],
    "labels of other schedulers": [
        at(f"{JOB}.labels", {"kueue.x-k8s.io/queue-name": "team", "app": "llm"})
    ],
    "events beside checkpoints": [
        at(f"{JOB}.tensorboard", {"store": "scratch", "directory": "events"})
    ],
    "local NVMe": [at(f"{JOB}.local_scratch", "/local")],
    "an up that waits": [
        at(f"{JOB}.wait", "complete"),
        at(f"{JOB}.expected_hours", 1),
        at(f"{JOB}.wait_minutes", 90),
    ],
    "production": [
        at("production", True),
        at(SCRIPT, "torchrun --nproc_per_node=8 train.py"),
        at(f"{JOB}.image", "registry/image@sha256:" + "0" * 64),
    ],
    "a clone of a commit, in production": [
        at("production", True),
        at(SCRIPT, "git clone https://a/b\ngit -C b checkout 1a2b3c\npython b/a.py"),
    ],
}
