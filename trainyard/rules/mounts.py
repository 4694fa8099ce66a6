"""Errors about what an entry of `jobs` mounts: two things at one path, two volumes of one name, a path that hides
what a container needs, and a script that torchrun looks for where it is not."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator

from trainyard.derive.jobs import CHECKPOINTS, TENSORBOARD, stores
from trainyard.objects.iam.secrets import FOLDER, VOLUME
from trainyard.objects.jobs.upstream_runtimes import WORKSPACE
from trainyard.problems import At, InputError, one_of
from trainyard.settings.job import JobConfig

SYSTEM = (
    *("/", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr"),
    *("/usr/bin", "/usr/lib", "/usr/local", "/usr/local/bin", "/usr/local/lib", "/usr/sbin"),
)
"""Folders in which a container has its programs and devices; folders below may be mounted."""
PROC = "/proc/"
"""runc refuses mounts below it (libcontainer, checkProcMount)."""


def mount_path_errors(path: str, place: At) -> Iterator[InputError]:
    """Every error of a path at which something is mounted; a relative one begins at /, as kubelet
    reads it."""
    plain = posixpath.normpath(f"/{path.lstrip('/')}")
    if plain in SYSTEM or plain.startswith(PROC):
        yield place.must(
            f"not hide {plain} of the container, which would lose the programs, libraries or devices there",
            got=path[:60],
            fix="write a folder of its own, such as /data",
        )
    elif ".." in path.split("/"):
        yield place.must("not contain `..`", got=path[:60], write=plain)


def mount_errors(path: str, job: JobConfig, *, recipe: bool) -> Iterator[InputError]:
    """Every error of the mounts of a job. `recipe`: its runtime has a command of its own."""
    yield from _one_thing_a_path(path, job, recipe)
    yield from _hidden_paths(path, job)
    yield from _volume_names(path, job)


def _one_thing_a_path(path: str, job: JobConfig, recipe: bool) -> Iterator[InputError]:
    of_runtime = [(WORKSPACE, "the runtime's recipe")] if recipe else []
    paths: dict[str, list[str]] = {}
    for mounted, what in (*_mounted(job), *of_runtime):
        paths.setdefault(mounted.rstrip("/"), []).append(what)
    for mounted, several in sorted(paths.items()):
        if len(several) > 1:
            moved = _movable(several)
            others = [what for what in several if what != moved]
            yield At(f"{path}.{moved}").must(
                f"be a path of its own, and not that of {' and '.join(others)}",
                got=mounted,
                fix=f"write another path, such as {_free(moved, paths)}",
            )


FIXED = ("shared memory", "the runtime's recipe", "secrets", "checkpoints", "tensorboard")
"""Mounts whose path no setting moves."""


def _movable(several: list[str]) -> str:
    """The setting of a path that can be another one."""
    return next((what for what in reversed(several) if what not in FIXED), "storage")


def _free(setting: str, paths: Collection[str]) -> str:
    """A path that nothing is mounted at, called as what `setting` mounts."""
    name = setting.removesuffix(".path").rpartition(".")[2].replace("_", "-")
    return f"/{name}" if f"/{name}" not in paths else f"/{name}-2"


def _hidden_paths(path: str, job: JobConfig) -> Iterator[InputError]:
    for name, mount in job.storage.items():
        yield from mount_path_errors(mount.path, At(f"{path}.storage.{name}.path"))
    for name, folder in job.host_paths.items():
        yield from mount_path_errors(folder.path, At(f"{path}.host_paths.{name}.path"))
    if job.files:
        yield from mount_path_errors(job.files.path, At(f"{path}.files.path"))
    if job.local_scratch:
        yield from mount_path_errors(job.local_scratch, At(f"{path}.local_scratch"))


def _volume_names(path: str, job: JobConfig) -> Iterator[InputError]:
    """The volumes of a pod are called by the stores and folders of the node, and by what else the
    job has: the API server refuses two of one name."""
    taken = {"dshm": "/dev/shm"}
    taken |= {"files": "files.sources"} if job.files else {}
    taken |= {"local-scratch": "local_scratch"} if job.local_scratch else {}
    taken |= {VOLUME: "secrets"} if job.managed_secrets else {}
    for store in stores(job):
        if store in taken:
            yield At(f"{path}.storage.{store}").must(
                f"be a store that is not called {store}: the pod has a volume of this name for {taken[store]}",
                got=store,
                fix="rename the store, under environment.storage and here: one that is deployed becomes a new, empty"
                f" store by another name; or leave {taken[store]} out of the job",
            )
    taken |= dict.fromkeys(stores(job), "a store of the job")
    for name in job.host_paths:
        if name in taken:
            yield At(f"{path}.host_paths.{name}").must(
                f"not be called {name}: the pod has a volume of this name for {taken[name]}",
                got=name,
                fix=f"rename it, for example host-{name}",
            )


def _mounted(job: JobConfig) -> Iterator[tuple[str, str]]:
    """Every path at which the container has a mount, and the setting that it is of."""
    yield "/dev/shm", "shared memory"
    for path, name, at in (
        (CHECKPOINTS, "checkpoints", job.checkpoints),
        (TENSORBOARD, "tensorboard", job.tensorboard),
    ):
        if at and at.store not in job.storage:  # else it is a folder of the whole store
            yield path, name
    yield from ((mount.path, f"storage.{name}.path") for name, mount in job.storage.items())
    yield from ((mount.path, f"host_paths.{name}.path") for name, mount in job.host_paths.items())
    yield from [(job.files.path, "files.path")] if job.files else []
    yield from [(job.local_scratch, "local_scratch")] if job.local_scratch else []
    yield from [(FOLDER, "secrets")] if job.managed_secrets else []


def torchrun_script_errors(path: str, job: JobConfig) -> Iterator[InputError]:
    """A script that torchrun looks for where the job's files are is one of them, by its path in the
    container."""
    if not (job.files and job.torchrun):
        return
    script, there = job.torchrun.script, job.files.path.rstrip("/")
    folders = [mounted.rstrip("/") for mounted, _ in _mounted(job)]
    holder = max((each for each in folders if script.startswith(f"{each}/")), key=len, default="")
    sources = [source.rpartition("/")[2] for source in job.files.sources]
    base = f"{there}/{script.rpartition('/')[2]}"
    if holder == there and script.removeprefix(f"{there}/") not in sources:
        programs = [f"{there}/{name}" for name in sources if name.endswith(".py")]
        yield At(f"{path}.torchrun.script").must(
            f"be a file that files.sources puts into {there}: {', '.join(sources)}",
            got=script,
            fix=_in_files(base, script, programs),
            write=base if base in programs else None,
        )
    if "/" in script and script in job.files.sources:
        where = f"{there}/{script.rpartition('/')[2]}"
        yield At(f"{path}.torchrun.script").must(
            "be a path in the container, where a file of `files` stands without its folders",
            got=script,
            write=where,
        )


def _in_files(base: str, script: str, programs: list[str]) -> str:
    """The way of a script into the files of a job. `base`: where it lies then. `programs`: those that are there."""
    if base in programs:
        return f"write {base}"
    add = (
        "add its path, from the folder of the stack file, to files.sources"
        + f" and write {base}" * (base != script)
    )
    return f"{add}; or write {one_of(programs, '')}" if programs else add
