"""Errors about a training job, whoever wrote it: an entry of a stack file, a YAML file, or an
object of a cluster. Each rule stands here once, and speaks at the place its view gives.

Sources: Kubeflow Trainer at v2.1.0 and v2.3.0, training-operator v1.8.1, torch's
distributed/elastic. Examples of each rule: tests/trainyard/rules/test_jobs.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from trainyard.catalog import fabric, versions
from trainyard.catalog.aws.instances import GPU_TYPES
from trainyard.catalog.job_kinds import JOB_KINDS, MORE_KINDS, job_kind
from trainyard.derive.job_view import (
    KEEPS_NOTHING,
    NODE_DISK,
    NODE_SYSTEM,
    POD_DISK,
    ContainerView,
    JobView,
)
from trainyard.derive.jobs import CHECKPOINTS, PLACE
from trainyard.derive.policies import reserved
from trainyard.derive.scripts import knows_s3, launches, saved_in, single_program
from trainyard.problems import InputError, InputWarning
from trainyard.rules import (
    buckets,
    clones,
    devices,
    endings,
    gang_waits,
    launchers,
    mpi_variables,
    one_node,
    owners,
    rendezvous,
    saves,
    scripts,
    unset,
)
from trainyard.rules.images import image_errors, is_untagged, sample_warnings, tag_errors
from trainyard.rules.pinning import PINNED, unpinned
from trainyard.settings.reading.placeholders import placeholder_error, placeholders

Problems = Iterator[InputError | InputWarning]


def controller_fix(kind: str) -> str:
    """Fix that installs the controller of a kind of job."""
    is_trainer = JOB_KINDS[kind].has_runtime
    release = next(iter(versions.TRAINERS if is_trainer else versions.TRAINING_OPERATORS))
    more = f", more_kinds: [{kind}]" if kind in MORE_KINDS else ""
    return f"add {JOB_KINDS[kind].controller_setting}: {{version: {release}{more}}}"


def job_problems(view: JobView) -> Problems:
    """Every error and warning of a job."""
    for of_job in OF_JOBS:
        yield from of_job(view)
    for container in view.containers:
        for of_container in OF_CONTAINERS:
            yield from of_container(view, container)


def _ranks(view: JobView) -> Problems:
    if view.ranks and 0 < view.gpus < view.ranks:
        place = view.where("ranks")
        most = f'"{view.gpus}"' if place.path.endswith("nprocPerNode") else view.gpus
        yield place.must(
            f"be at most the {view.gpus} GPUs of a pod", got=view.ranks, fix=f"write {most}"
        )


def _shared_memory(view: JobView) -> Problems:
    for memory in view.shared_memory:
        if memory.gib > memory.at_most_gib:
            yield memory.place.must(
                f"be at most {int(memory.at_most_gib)} GiB, {memory.limit}: /dev/shm is a part of the pod's memory, and"
                " the ranks need the rest",
                got=f"{memory.gib:g} GiB",
                fix=memory.fix,
            )


def _small_shared_memory(view: JobView) -> Problems:
    """A job of a file whose ranks have the 64 MiB of a container. Ranks of NCCL whose GPUs have no NVLink exchange data
    through /dev/shm, in 9 MiB for each connection, of which two GPUs need less (NVIDIA/nccl#342, #1518). A new NCCL
    that may pin memory of the host needs none, so this is a warning. An entry always has more."""
    kind, has_some = view.instance_type, any("/dev/shm/".startswith(path) for path in view.mounts)
    is_judged = view.runtime_known and view.starts_own_ranks and view.kind in JOB_KINDS
    if not is_judged or not kind or kind.nvlink or has_some or view.host_ipc:
        return
    if 2 < view.gpus <= kind.gpus:
        yield view.where("gpus").warning(
            "no volume is mounted at /dev/shm, so the ranks of a pod share 64 MiB, in which NCCL exchanges data between"
            f" the GPUs of a {kind.name}, and so do workers of a DataLoader: they fail where they need more; mount an"
            " emptyDir with medium: Memory there"
        )


def _split_nodes(view: JobView) -> Problems:
    """Pods with a part of a node's GPUs."""
    kind = view.instance_type
    is_split = kind and 0 < view.gpus < kind.gpus and view.nodes > 1
    if kind and is_split and not view.gpus_elsewhere and view.policy != "xgboost":
        inside = "NVLink" if kind.nvlink else "PCIe"
        yield view.where("gpus").warning(
            f"{view.nodes} pods with {view.gpus} of a node's {kind.gpus} GPUs each send over the network"
            f" what {inside} could carry within a node; take fewer pods, with all GPUs of a node"
        )


def _saves(view: JobView) -> Problems:
    """Directories that scripts save to and that end with their pod or its node."""
    if view.runtime_known and (view.nodes > 1 or view.restarts):
        for container in view.containers:
            for directory in dict.fromkeys(saved_in(container.script)):
                yield from _saved(view, container, directory)


def _saved(view: JobView, container: ContainerView, directory: str) -> Problems:
    """A directory that ends with its pod, or with its node: what is there, a script that knows S3 may copy, and one pod
    alone may find it when it starts again."""
    mounts = [path for path in view.mounts if f"{directory}/".startswith(path)]
    mount = max(mounts, key=len, default="")
    kinds = view.mounts[mount] if mount else POD_DISK
    is_lost, of_node = kinds & POD_DISK, kinds & {NODE_DISK, NODE_SYSTEM, "hostPath"}
    if not is_lost and knows_s3(container.script):
        return
    if is_lost or (of_node - {"hostPath"} and view.nodes > 1):
        yield container.where("script").must(
            f"save on shared storage: this directory is on {'the pod' if is_lost else 'the node'}'s own disk, and gone"
            " with it",
            got=directory,
            fix=f"save in {_kept(view, container)}",
        )
    elif of_node:
        yield container.where("script").warning(
            f"{directory} is in a folder of the node: unless shared storage is mounted there, what is saved in it is"
            " gone with the node, and ranks that start anew on another node do not find it"
        )


def _kept(view: JobView, container: ContainerView) -> str:
    """The directories that outlive the pod, in words."""
    if CHECKPOINTS in view.mounts and PLACE in (container.more_env or ()):
        return f"${PLACE}"
    kept = [path for path, kinds in view.mounts.items() if kinds - {"hostPath"} - KEEPS_NOTHING]
    any_store = "of a store or a persistentVolumeClaim that the job mounts"
    return f"a directory {'below ' + ' or '.join(kept) if kept else any_store}"


def _image(view: JobView, container: ContainerView) -> Problems:
    """An entry names an image. What people bring may have it from its runtime."""
    if container.image or view.origin == "entry":
        yield from image_errors(container.image, container.where("image"))
        yield from sample_warnings(container.image, container.where("image"))


def _tag(view: JobView, container: ContainerView) -> Problems:
    """An entry names a tag. What people bring may leave it out, which means latest."""
    if view.origin == "entry":
        yield from tag_errors(container.image, container.where("image"))


def _pinned(view: JobView, container: ContainerView) -> Problems:
    """Problems with an image, a clone or a package that can be another one tomorrow although nobody
    changed the job."""
    image = container.image
    if view.origin == "file" and is_untagged(image):
        image = f"{image}:latest"
    for name, what, fix in unpinned(image, container.script):
        if view.production:
            yield container.where(name).must(PINNED, got=what, fix=fix)
        else:
            yield container.where(name).warning(f"the job uses {what}: {fix}")


def _nothing_runs(view: JobView, container: ContainerView) -> Problems:
    script = container.script
    if re.fullmatch(r"\s*(?:#[^\n]*(?:\n\s*|\Z))+", script):
        yield container.where("script").must(
            "run something: it is one comment, and the job succeeds at once",
            got=_short(script),
            fix="write what runs below the comment, such as torchrun train.py; if the text stands behind > in the YAML,"
            " write | there, which keeps its lines apart",
        )
    elif re.fullmatch(r"[^\n]*\s#[^\n]*(?:\s--\w|\.py\b)[^\n]*\n?", script):
        yield container.where("script").must(
            "not go on behind a #: bash takes the rest of the line for a comment",
            got=_short(script),
            fix="delete the # before the options; if the text stands behind > in the YAML, write | there, which"
            " keeps its lines apart",
        )


def _is_cut_off(script: str) -> bool:
    """True where a comment stands within the lines of a command: it ends before its last argument. Behind the last
    one a comment does no harm."""
    commented, before = None, ""
    for line in script.splitlines():
        text = line.lstrip()
        indent = len(line) - len(text)
        if text.startswith("#"):
            commented = indent if commented is None and before.endswith("\\") else commented
        elif text:
            if commented is not None and (text[0] == "-" or 0 < commented <= indent):
                return True
            commented = None
        before = line if commented is None else ""
    return False


def _broken_continuation(view: JobView, container: ContainerView) -> Problems:
    script = container.script
    broken = re.search(r"\\[ \t]+(#|\n|$)", script)
    if broken or _is_cut_off(script):
        behind = "a comment" if broken is None or broken[1] == "#" else "a blank"
        begins = script.rfind("\n", 0, broken.start()) + 1 if broken else 0
        line = f" in: {script[begins : broken.end()].strip()}" if broken else ""
        yield container.where("script").must(
            "have nothing behind the backslash that continues a line, not even a blank: bash ends the command there",
            got=f"{behind} behind \\{line}",
            fix="delete all that is behind the \\",
        )


def _placeholder(view: JobView, container: ContainerView) -> Problems:
    texts = [("script", container.script)]
    texts += [(f"env.{name}", value) for name, value in container.env.items() if value]
    for name, text in texts:
        for found in placeholders(text):
            yield placeholder_error(container.where(name), found)


MCA = re.compile(r"--?g?mca\s+((?:btl|oob)_tcp_if_\w+)\s+([^\s;&|]+)")
"""Interfaces as options of mpirun, each of which is a variable OMPI_MCA_<name>, too."""


def _harmful_variable(view: JobView, container: ContainerView) -> Problems:
    kinds = [view.instance_type] if view.instance_type else list(GPU_TYPES.values())
    set_in_script = re.findall(
        r"\b((?:NCCL|FI|RDMAV|GLOO|TP|OMPI_MCA|UCX|HOROVOD)_\w+)=[\"']?([^\s;&|)\"']*)",
        container.script,
    )
    set_in_script += [(f"OMPI_MCA_{name}", value) for name, value in MCA.findall(container.script)]
    in_env = [(name, value or "", f"env.{name}") for name, value in container.env.items()]
    for name, value, at in [*in_env, *((n, v, "script") for n, v in set_in_script)]:
        harms = [fabric.harm(name, value, kind, has_devices=view.efa) for kind in kinds]
        if not harms or not (harm := harms[0]) or not all(harms) or _may_fit(view, harm, value):
            continue
        if harm.has_no_effect:
            yield container.where(at).warning(f"{name} {harm.reason}; delete it")
        else:
            kind = view.instance_type
            yield container.where(at).must(
                harm.rule_in_script(name, kind) if at == "script" else harm.rule(kind),
                got=f"{name}={value}",
                fix="delete it",
            )


def _may_fit(view: JobView, harm: fabric.Harm, value: str) -> bool:
    """True where a name of an interface is that of the node, or one that the script makes."""
    return harm.of_node and (view.host_network or "$" in value)


FROM = {
    "PET_NPROC_PER_NODE": {"entry": ", from processes_per_node", "file": ", from numProcPerNode"},
    "PET_NNODES": dict.fromkeys(("entry", "file"), ", from the number of nodes"),
}
"""Variable of the Trainer → origin of a job → the setting that it follows from."""


def _reserved_variable(view: JobView, container: ContainerView) -> Problems:
    if job_kind(view.kind).keeps_variables:
        return
    names = reserved(view.policy, view.controller)
    for name in container.env:
        if name in names:
            source = FROM.get(name, {}).get(view.origin, "")
            yield container.where(f"env.{name}").must(
                f"not be a variable that the Trainer sets{source}: its webhook refuses the job",
                got=name,
                fix="delete it" if container.env[name] is not None else "rename it, or delete it",
            )


def _ranks_of_a_launch(view: JobView, container: ContainerView) -> Problems:
    for launch in launches(container.script):
        if view.gpus and launch.ranks.isdecimal() and int(launch.ranks) > view.gpus:
            yield container.where("option.nproc_per_node").must(
                f"start at most one process for each of the pod's {view.gpus} GPUs",
                got=f"--nproc_per_node={launch.ranks}",
                fix=f"write --nproc_per_node={view.gpus}",
            )


def no_launcher(view: JobView, container: ContainerView) -> Problems:
    """Several nodes of a TrainJob and no launcher."""
    if container.own_entrypoint:
        return
    if view.torch and view.nodes > 1 and (program := single_program(container.script)):
        yield container.where("script").warning(
            f"`{program}` starts without torchrun on {view.nodes} nodes: {view.controller} only"
            " sets PET_* variables, so each node trains alone, unless the program reads them"
        )


OF_JOBS: tuple[Callable[[JobView], Problems], ...] = (
    _ranks,
    _shared_memory,
    _small_shared_memory,
    _split_nodes,
    _saves,
    devices.no_gpus,
    devices.fewer_ranks,
)
OF_CONTAINERS: tuple[Callable[[JobView, ContainerView], Problems], ...] = (
    _image,
    _tag,
    _pinned,
    _nothing_runs,
    _broken_continuation,
    scripts.characters,
    scripts.length,
    scripts.only_a_file,
    scripts.syntax,
    scripts.own_entrypoint,
    scripts.escaped_variable,
    scripts.variable_without_shell,
    scripts.ignored_words,
    scripts.several_words,
    scripts.process_id,
    launchers.other_launchers,
    endings.hidden_end,
    endings.ray_workers,
    endings.endless_tries,
    mpi_variables.not_sent,
    owners.owned_variable,
    owners.own_value,
    owners.hidden_plugin,
    owners.absent_devices,
    owners.hidden_devices,
    owners.exported_variable,
    devices.idle_gpus,
    devices.efa_variable,
    devices.visible_devices,
    _placeholder,
    clones.without_scheme,
    clones.without_key,
    clones.without_token,
    _harmful_variable,
    _reserved_variable,
    rendezvous.unknown_variable,
    unset.unset_variable,
    one_node.alone_by_default,
    one_node.alone_in_python,
    one_node.asked_by_default,
    rendezvous.no_meeting,
    gang_waits.short_wait,
    saves.lost_with_the_container,
    buckets.address_as_folder,
    _ranks_of_a_launch,
    no_launcher,
)
WHY_RANKS_DO_NOT_MEET: tuple[Callable[[JobView, ContainerView], Problems], ...] = (
    rendezvous.no_meeting,
    one_node.alone_by_default,
    one_node.alone_in_python,
    no_launcher,
)
"""Rules that explain a job that runs and does not train: `trainyard status` asks these."""


def _short(text: str) -> str:
    return " ".join(text.split())[:60]
