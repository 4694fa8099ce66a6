"""Warnings about programs that write to a store what its kind cannot take. What each kind cannot do:
trainyard/stores/acts.py.

Sources: the commands' manuals (mv, ln, tee, rsync, sed -i); pip, conda and venv unpack thousands of files;
git writes a lock and renames it; SQLite locks and changes its file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trainyard.derive.job_view import ContainerView, JobView
from trainyard.derive.scripts import saved_in
from trainyard.problems import InputWarning
from trainyard.rules.one_node import expanded
from trainyard.settings.environment import EnvironmentConfig
from trainyard.stores.acts import APPEND, DATABASE, LINK, MANY, RENAME
from trainyard.stores.kinds import kinds_of

HUB, COMPILER, TRACKER = "the Hugging Face libraries", "the compiler of kernels", "the tracker"
CACHES: dict[str, tuple[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_DATASETS_CACHE"), (HUB, (RENAME,))
    ),
    **dict.fromkeys(
        ("HF_MODULES_CACHE", "HF_ASSETS_CACHE", "TRANSFORMERS_CACHE"), (HUB, (RENAME,))
    ),
    **dict.fromkeys(
        ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR"),
        (COMPILER, (RENAME, MANY)),
    ),
    **dict.fromkeys(("WANDB_DIR", "WANDB_CACHE_DIR"), (TRACKER, (RENAME,))),
    "MLFLOW_TRACKING_URI": (TRACKER, (RENAME,)),
    "TORCH_HOME": ("the cache", (RENAME,)),
    **dict.fromkeys(
        ("XDG_CACHE_HOME", "PIP_CACHE_DIR", "NUMBA_CACHE_DIR"), ("the cache", (RENAME, MANY))
    ),
    **dict.fromkeys(("HOME", "TMPDIR"), ("programs", (RENAME,))),
}
"""Variable with a folder → the one that writes there, and how."""
_PATH = r"(?P<path>/[^\s;&|)\"'$<>]+)"


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command that writes to a path."""

    shape: re.Pattern[str]
    by: str
    acts: tuple[str, ...]


def _command(by: str, shape: str, *acts: str) -> Command:
    return Command(shape=re.compile(shape.replace("PATH", _PATH)), by=by, acts=acts)


COMMANDS: tuple[Command, ...] = (
    _command(
        "the program",
        r"--(?:logging[-_]dir|log[-_]dir|cache[-_]dir|tensorboard[-_]dir)[= ]PATH",
        APPEND,
    ),
    _command("tee", r"\btee\s+(?:-a|--append)\s+PATH", APPEND),
    _command(">>", r">>[ \t]*PATH", APPEND),
    _command("mv", r"\bmv\s+(?:-\S+\s+)*(?P<first>/\S+)\s+PATH", RENAME),
    _command(
        "rsync",
        r"\brsync\s(?![^\n;&|]{0,300}--inplace)[^\n;&|]{0,300}\sPATH\s*(?=$|[\n;&|])",
        RENAME,
    ),
    _command("sed -i", r"\bsed\s+-\S*i\S*\s[^\n;&|]{0,300}?\sPATH", RENAME),
    _command("ln", r"\bln\s+-\S*s\S*\s+\S+\s+PATH", LINK),
    _command("git", r"\bgit\s+clone\b[^\n;&|]{0,300}\sPATH\s*(?=$|[\n;&|])", RENAME),
    _command(
        "pip", r"\bpip[\d.]*\s+install\b[^\n;&|]{0,300}?\s(?:--target|--prefix|-t)[= ]PATH", MANY
    ),
    _command(
        "conda", r"\bconda\s+(?:create|install)\b[^\n;&|]{0,300}?\s(?:--prefix|-p)[= ]PATH", MANY
    ),
    _command("venv", r"\b(?:-m\s+venv|virtualenv|uv\s+venv)\s+(?:-\S+\s+)*PATH", MANY),
    _command("tar", r"\btar\s[^\n;&|]{0,300}?\s(?:-C|--directory)[= ]?PATH", MANY),
    _command("unzip", r"\bunzip\s[^\n;&|]{0,300}?\s-d\s*PATH", MANY),
    _command("SQLite", r"\bsqlite:///PATH", DATABASE),
)
"""Commands of a script, each with the path to which it writes."""
WAYS = {
    MANY: "; write a folder of the node, such as /tmp, or bake the files into the image",
    DATABASE: "; write a folder of the node, such as /tmp, or use a database server",
}
_ELSEWHERE = "; write a folder of a Lustre or EFS store, or of the node, such as /tmp"


def weak_writes(
    view: JobView, mounts: Mapping[str, str], environment: EnvironmentConfig
) -> Iterator[InputWarning]:
    """Every act of a job that the store at its path cannot do. `mounts`: path, with a slash at its end →
    store."""

    def store_at(directory: str) -> str:
        """The store that is mounted at a path; empty for any other place."""
        paths = [path for path in {*mounts, *view.mounts} if f"{directory}/".startswith(path)]
        store = mounts.get(max(paths, key=len, default=""), "")
        return store if store in environment.storage else ""

    for container in view.containers:
        for directory in dict.fromkeys(saved_in(container.script)):
            if _weakness(environment, store := store_at(directory), RENAME):
                yield container.where("script").warning(
                    f"{directory} is on store {store}, whose files cannot be renamed or appended to:"
                    " programs that write under a temporary name and rename, as safetensors, transformers"
                    " and torch's checkpoints do, fail when they save; save on a Lustre or EFS store, and"
                    " copy"
                )
        for write in dict.fromkeys(_writes(container)):
            store = store_at(write.path)
            is_copy = write.first and store_at(write.first) != store
            act = "" if is_copy else _weak_act(environment, store, write, view.nodes)
            if act:
                words = _weakness(environment, store, act).replace("{by}", write.by)
                yield container.where(write.place).warning(
                    f"{write.path} is on store {store}, {words}{WAYS.get(act, _ELSEWHERE)}"
                )


def _weak_act(environment: EnvironmentConfig, store: str, write: Write, nodes: int) -> str:
    """The first act of a write that the store cannot do; empty where it can do all."""
    acts = [act for act in write.acts if act != DATABASE or nodes > 1]
    return next((act for act in acts if _weakness(environment, store, act)), "")


def _weakness(environment: EnvironmentConfig, store: str, act: str) -> str:
    """Words about an act on a store; empty where it works."""
    kinds = kinds_of(environment.storage[store]) if store else []
    return next((kind.weak_at[act] for kind, _ in kinds if act in kind.weak_at), "")


@dataclass(frozen=True, kw_only=True)
class Write:
    """A path to which a container writes, beside what its script saves."""

    place: str
    """As `ContainerView.where` takes it."""
    path: str
    by: str
    acts: tuple[str, ...]
    first: str
    """Path of the file that is moved; empty for any other command."""


def _writes(container: ContainerView) -> Iterator[Write]:
    text = expanded(container.script)
    for command in COMMANDS:
        for found in command.shape.finditer(text):
            yield Write(
                place="script",
                path=found["path"].rstrip("/"),
                by=command.by,
                acts=command.acts,
                first=found.groupdict().get("first") or "",
            )
    for name, value in container.env.items():
        path = re.sub(r"^(file|sqlite):/*/", "/", value or "")
        if name in CACHES and path.startswith("/"):
            by, acts = CACHES[name]
            yield Write(place=f"env.{name}", path=path, by=by, acts=acts, first="")
