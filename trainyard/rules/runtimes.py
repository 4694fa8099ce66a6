"""Errors and warnings about an entry of `jobs` on a runtime that is not for torch: its controller starts other pods, or
other ranks, than the entry says. What a runtime of torchtune needs: entries.py.

Sources: Kubeflow Trainer at v2.1.0 and v2.3.0, pkg/runtime/framework/plugins; manifests/base/runtimes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainyard.derive.commands import command_of
from trainyard.derive.job_view import policy_of
from trainyard.derive.policies import OTHERS
from trainyard.derive.pools import job_type
from trainyard.objects.jobs.runtime_objects import MPI_USER
from trainyard.objects.jobs.upstream_runtimes import upstream_runtimes
from trainyard.problems import At, InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import JobConfig, typed
from trainyard.stores.kinds import kinds_of

GIVES = re.compile(rf"\binstall\b.*-o ?{MPI_USER}\b|\bchown\b.*\b{MPI_USER}\b|\bchmod\b")
"""A command by which root lets the user of MPI's pods write to a directory."""


def runtime_errors(
    path: str, job: JobConfig, environment: EnvironmentConfig
) -> Iterator[InputError]:
    """Every error of a job whose runtime has a policy of its own."""
    policy = policy_of(job, environment)
    if policy in OTHERS and job.torchrun:
        yield At(f"{path}.torchrun").must(
            f"not be set on {job.runtime}: the Trainer sets no PET_* variables there, by which torchrun finds the other"
            " nodes",
            got=job.torchrun.script,
            fix="use a torch runtime",
        )
    if policy == "mpi":
        yield from _one_node(path, job)


def runtime_warnings(
    path: str, job: JobConfig, environment: EnvironmentConfig
) -> Iterator[InputWarning]:
    """Every warning of a job whose runtime has a policy of its own."""
    policy = policy_of(job, environment)
    if policy == "mpi":
        yield from _image_of_others(path, job, environment)
        yield from _not_root(path, job, environment)
    if policy == "xgboost":
        yield from _workers(path, job, environment)


def _one_node(path: str, job: JobConfig) -> Iterator[InputError]:
    """The launcher is one of the nodes, and the others are at least one (mpi.go, EnforceMLPolicy:
    `max(numNodes-1, 1)`), so the job of one node waits for a second, or pays for it."""
    if job.nodes == 1:
        yield At(f"{path}.nodes").must(
            f"be 2 or more on {job.runtime}: with MPI the Trainer starts a launcher and at least one other pod, so one"
            " node takes two",
            got=job.nodes,
            fix="write 2, or use a torch runtime",
            write=2,
        )


def _image_of_others(
    path: str, job: JobConfig, environment: EnvironmentConfig
) -> Iterator[InputWarning]:
    """The Trainer writes the image of a job into replicated jobs with the label of an ancestor step only
    (jobset/builder.go, Trainer), which `node` of upstream's runtimes for MPI lacks. A copy keeps the name of the image,
    and a program on a store may need no more than that one has. Of an own runtime: entries.py."""
    if environment.own_runtime(job):
        return
    _, spec = upstream_runtimes(environment.trainer.version)[job.runtime or ""]
    [node] = [each for each in spec["template"]["spec"]["replicatedJobs"] if each["name"] == "node"]
    image = node["template"]["spec"]["template"]["spec"]["containers"][0]["image"]
    if _repository(job.image) != _repository(image):
        yield At(f"{path}.image").warning(
            f"on {job.runtime} a job replaces the image of the launcher only: the other pods run {image}, and their"
            f" ranks fail on what only {job.image} has; {_own_way(job, environment)}"
        )


def _repository(image: str) -> str:
    """The last part of an image's name, without tag and digest."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def _own_way(job: JobConfig, environment: EnvironmentConfig) -> str:
    """The way by an own runtime: one that has the image, or a new one. Without checkpoints it starts no gang again,
    as upstream's does not."""
    own = environment.trainer.own_runtimes
    for name, runtime in own.items():
        if runtime.kind == "mpi" and runtime.image == job.image:
            return f"write runtime: {name}"
    name = next(
        each for each in ("mpi", *(f"mpi-{n}" for n in range(2, len(own) + 3))) if each not in own
    )
    once = "" if job.checkpoints else ", max_restarts: 0"
    return (
        f"write {name}: {{kind: mpi, image: {job.image}{once}}} under environment.trainer.own_runtimes and write"
        f" runtime: {name}"
    )


def _not_root(path: str, job: JobConfig, environment: EnvironmentConfig) -> Iterator[InputWarning]:
    """Stores whose new directories belong to root, and pods of MPI that run as another user, those of our runtimes as
    upstream's (deepspeed_distributed.yaml): kubelet makes a subPath that is missing, as root and with the mode of the
    volume's root, and leaves one that is there (kubernetes 1.35, kubelet_pods.go, makeMounts). Directories of a team
    are open to every user."""
    is_team = path.startswith("team.")
    if is_team or any(map(_gives, typed(environment.jobs).values())):
        return
    places = [(each, at) for each in ("checkpoints", "tensorboard") if (at := getattr(job, each))]
    wanted = [(each, at.store, job.in_run(at.directory)) for each, at in places]
    wanted += [(f"storage.{store}", store, "") for store in job.storage]
    for setting, store, directory in wanted:
        settings = environment.storage.get(store)
        if settings and any(kind.root_is_roots for kind, _ in kinds_of(settings)):
            yield At(f"{path}.{setting}").warning(_unwritable(store, directory, path))


def _unwritable(store: str, directory: str, path: str) -> str:
    """The warning about a directory of a store; about its root where there is none."""
    new = directory or path.rpartition(".")[2]
    return (
        f"with MPI the pods run as user {MPI_USER}, who cannot write to {directory or 'the root'} of store {store}:"
        " what is new there belongs to root, and fsGroup changes nothing; let a job that runs as root and mounts the"
        f" store make {'it' if directory else 'a directory'} first (install -d -o {MPI_USER} <its path>/{new}),"
        f" {'which keeps its owner' if directory else 'and write below it'}"
    )


def _gives(job: JobConfig) -> bool:
    return bool(GIVES.search(job.script or " ".join(command_of(job))))


def _workers(path: str, job: JobConfig, environment: EnvironmentConfig) -> Iterator[InputWarning]:
    """Workers of XGBoost, of which the Trainer counts one a GPU and starts one a pod, whatever numProcPerNode says
    (xgboost.go, EnforceMLPolicy: `numNodes * numWorkersPerNode`; docs/user-guides/xgboost.md). A program may start
    more of them itself."""
    kind = job_type(job, environment)
    gpus = (job.gpus_per_node or kind.gpus) if kind else 0
    if gpus > 1:
        yield At(f"{path}.gpus_per_node").warning(
            f"on {job.runtime} the Trainer counts a worker for each of the {gpus} GPUs of a pod (DMLC_NUM_WORKER is"
            f" {job.nodes * gpus}) and starts one in each pod: unless the program starts the others itself, the tracker"
            " waits for ever; write 1, and as many nodes as workers"
        )
