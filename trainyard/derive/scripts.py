"""Starts of ranks in a script: every torchrun in it, with the options that decide who meets
whom."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

STARTS = re.compile(r"\b(?:torchrun|torch\.distributed\.(?:run|launch))(?=[ \t])([^\n;|&]*)")
SAVES = re.compile(
    r"--(?:(?:output|out|checkpoint|ckpt|save|results?|work|exp|default[-_]root)[-_](?:dir|path)|out(?:dir|put)?)"
    r"[= ](/[^\s$]+)"
)
"""Options that say where a script saves."""
SAVES_BESIDE = re.compile(
    SAVES.pattern.partition("(/")[0] + r"((?:\.{1,2}/)*\w[\w.-]*(?:/[\w.-]+)*/?)(?=[\s;|&\"')]|$)"
)
"""Options that say where a script saves, with a relative path: checkpoints, ./checkpoints."""
NOT_KEPT = re.compile(
    r"(?i)/dev/null$|cache|--out(?:put)? /tmp/|--(?:checkpoint|ckpt)\S+ \S+\.(?:pt|pth|ckpt|bin|safetensors)$"
)
"""An option for what nobody needs after the run, such as --out /tmp/run, or for one file of weights that is read."""
PROGRAM = re.compile(
    r"(?:^|[;&|]\s*)(?:exec\s+)?(python[\d.]*\s+(?:-u\s+)?(?:-m\s+[\w.]+|[\w./-]+\.py|-c))\b",
    re.MULTILINE,
)
LAUNCHERS = re.compile(
    r"torchrun|torch\.distributed|accelerate|deepspeed|mpirun|horovodrun|tune run|srun|PET_|JAX_"
    r"|\b(?:RANK|WORLD_SIZE)="
)
"""Words that start ranks on every node, or show that somebody thinks of them."""
LAUNCHER_ENV = re.compile(
    r"((NODE_|LOCAL_)?RANK|WORLD_SIZE|MASTER_(ADDR|PORT)|NNODES|NPROC_PER_NODE)$|PET_(?!RDZV_)"
)
"""Variables that only a controller or a launcher knows; others may come from the image."""
HANDED_ON = 'exec "$@"'
FLAGS = {"standalone", "m", "module", "no-python", "run-path"}
"""Options without a value."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One start."""

    text: str
    line: int
    """Line of the script, from 1."""
    at: int
    """Offset in the script behind the name, where options can be put in."""
    nodes: str = ""
    ranks: str = ""
    """Processes a node."""
    rank: str = ""
    """Rank of the node."""
    endpoint: str = ""
    backend: str = "static"
    conf: str = ""
    """Value of --rdzv_conf."""
    has_shell_variables: bool = False
    """Options may hide in a variable of the shell."""
    options: frozenset[str] = field(default_factory=frozenset)

    @property
    def is_standalone(self) -> bool:
        """Every node waits at its own localhost. Without options torchrun goes by PET_MASTER_ADDR,
        which works."""
        home = re.match(r"localhost\b|127\.", self.endpoint)
        nowhere = not self.endpoint and self.backend != "static" and not self.has_shell_variables
        return "standalone" in self.options or bool(home) or nowhere


def script_of(command: Sequence[str]) -> str:
    """Script that a command runs, as text: what follows a shell's -c, or the whole command. A shell
    that ends with exec "$@" runs the words behind its script, after the one for its name."""
    shell = bool(command) and command[0].endswith("sh")
    texts = [
        number
        for number, word in enumerate(command[:-1], 1)
        if shell and re.fullmatch(r"-[a-z]*c", word)
    ]
    if not texts:
        return " ".join(command)
    text, rest = command[texts[0]], command[texts[0] + 2 :]
    return script_of(rest) if rest and text.rstrip().endswith(HANDED_ON) else text


def saved_in(script: str) -> list[str]:
    """Folders and files in which a script saves what is needed after it."""
    return _saved(SAVES, script)


def saved_in_the_container(script: str) -> list[str]:
    """Relative paths in which a script saves: they begin where the container's program starts."""
    return _saved(SAVES_BESIDE, script)


def _saved(options: re.Pattern[str], script: str) -> list[str]:
    return [
        found[1]
        for found in options.finditer(script)
        if not NOT_KEPT.search(found[0].replace("=", " "))
    ]


def single_program(script: str) -> str:
    """The Python program that a script starts without anything that starts ranks; empty where
    there is none."""
    text = re.sub(r"(?m)^[ \t]*#.*", "", script)
    found = PROGRAM.search(text.strip())
    return " ".join(found[1].split()) if found and not LAUNCHERS.search(text) else ""


@functools.lru_cache(maxsize=64)
def launches(script: str) -> tuple[Launch, ...]:
    """Every start in a script, but not in its comments; a line that goes on behind a backslash is
    one. Several rules ask for those of one script."""
    joined = script.replace("\\\n", "  ")
    commented = [found.span() for found in re.finditer(r"(?m)^[ \t]*#.*", joined)]
    return tuple(
        _launch(script, found)
        for found in STARTS.finditer(joined)
        if not any(first <= found.start() < last for first, last in commented)
    )


def _launch(script: str, found: re.Match[str]) -> Launch:
    said: dict[str, str] = {}
    opaque, words = False, iter(found[1].split())
    for word in words:
        option, _, value = word.partition("=")
        name = option.strip("-").replace("_", "-")
        if word.startswith("$"):
            opaque = True
        elif not word.startswith("-"):
            break  # the program; what follows is its own
        else:
            said[name] = value or ("" if name in FLAGS else next(words, ""))
    return Launch(
        text=" ".join(found[0].split()),
        line=script.count("\n", 0, found.start()) + 1,
        at=found.start(1),
        nodes=said.get("nnodes", ""),
        ranks=said.get("nproc-per-node", ""),
        rank=said.get("node-rank", ""),
        endpoint=said.get("rdzv-endpoint") or said.get("master-addr", ""),
        backend=said.get("rdzv-backend", "static"),
        conf=said.get("rdzv-conf", ""),
        options=frozenset(said),
        has_shell_variables=opaque,
    )
