"""Warnings about the places in which a job saves: those whose files are lost, and stores that cannot do
what programs do when they save."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from trainyard.derive.job_view import ContainerView, JobView
from trainyard.derive.scripts import saved_in, saved_in_the_container
from trainyard.problems import InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.stores.kinds import kinds_of


def lost_with_the_container(view: JobView, container: ContainerView) -> Iterator[InputWarning]:
    """A relative path, which is one of the image. A cd or a working directory may lead to a store."""
    if not view.runtime_known or re.search(r"\b(?:cd|pushd)\s", container.script):
        return
    if container.in_directory or not (view.nodes > 1 or view.restarts or view.pods_restart):
        return
    for directory in dict.fromkeys(saved_in_the_container(container.script)):
        yield container.where("script").warning(
            f"what is saved in {directory} is lost when the container starts again: the path is relative,"
            " so it is one of the image; write a path of a mounted store"
        )


HUB, COMPILER, TRACKER = "the Hugging Face libraries", "the compiler of kernels", "the tracker"
WRITES: dict[str, str] = {
    **dict.fromkeys(("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_DATASETS_CACHE"), HUB),
    **dict.fromkeys(("HF_MODULES_CACHE", "HF_ASSETS_CACHE", "TRANSFORMERS_CACHE"), HUB),
    **dict.fromkeys(
        ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR"), COMPILER
    ),
    **dict.fromkeys(("WANDB_DIR", "WANDB_CACHE_DIR", "MLFLOW_TRACKING_URI"), TRACKER),
    **dict.fromkeys(
        ("TORCH_HOME", "XDG_CACHE_HOME", "PIP_CACHE_DIR", "NUMBA_CACHE_DIR"), "the cache"
    ),
    **dict.fromkeys(("HOME", "TMPDIR"), "programs"),
}
"""Variable with a folder → the one that writes there under temporary names, appends, or takes locks."""
LOGGED = re.compile(
    r"--(?:logging[-_]dir|log[-_]dir|cache[-_]dir|tensorboard[-_]dir)[= ](/[^\s$]+)"
)
"""Options of folders to which a program appends, or which it shares with others by locks."""
_ELSEWHERE = "; write a folder of a Lustre or EFS store, or of the node, such as /tmp"


def cannot_rename(
    view: JobView, mounts: Mapping[str, str], environment: EnvironmentConfig
) -> Iterator[InputWarning]:
    """Paths of stores whose files cannot be renamed. `mounts`: path, with a slash at its end → store."""

    def store_at(directory: str) -> str:
        """The store with such files at a path; empty for any other place."""
        paths = [path for path in {*mounts, *view.mounts} if f"{directory}/".startswith(path)]
        store = mounts.get(max(paths, key=len, default=""), "")
        kinds = kinds_of(environment.storage[store]) if store in environment.storage else []
        return store if any([*kind.write_errors("", store)] for kind, _ in kinds) else ""

    for container in view.containers:
        for directory in dict.fromkeys(saved_in(container.script)):
            if store := store_at(directory):
                yield container.where("script").warning(
                    f"{directory} is on store {store}, whose files cannot be renamed or appended to:"
                    " programs that write under a temporary name and rename, as safetensors, transformers"
                    " and torch's checkpoints do, fail when they save; save on a Lustre or EFS store, and"
                    " copy"
                )
        for place, directory, writer in _written(container):
            if store := store_at(directory):
                yield container.where(place).warning(
                    f"{directory} is on store {store}, whose files cannot be renamed, appended to or locked,"
                    f" which {writer} must do there{_ELSEWHERE}"
                )


def _written(container: ContainerView) -> Iterator[tuple[str, str, str]]:
    """Place, folder, and the one that writes there, beside what the script saves."""
    for found in LOGGED.finditer(container.script):
        yield "script", found[1], "the program"
    for name, value in container.env.items():
        folder = re.sub(r"^(file|sqlite):/*/", "/", value or "")
        if name in WRITES and folder.startswith("/"):
            yield f"env.{name}", folder, WRITES[name]
