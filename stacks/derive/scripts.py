"""How a script starts its ranks: every torchrun in it, with the options that decide who meets
whom."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

STARTS = re.compile(r"\b(?:torchrun|torch\.distributed\.(?:run|launch))(?=[ \t])([^\n;|&]*)")
FLAGS = {"standalone", "m", "module", "no-python", "run-path"}
"""Options without a value."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One start."""

    text: str
    line: int
    """Of the script, from 1."""
    at: int
    """Where in the script options can be put in: right behind the name."""
    nodes: str = ""
    ranks: str = ""
    """Processes a node."""
    rank: str = ""
    """Of the node."""
    endpoint: str = ""
    backend: str = "static"
    opaque: bool = False
    """A variable of the shell stands among them, which may hold any."""
    options: frozenset[str] = field(default_factory=frozenset)

    @property
    def alone(self) -> bool:
        """Every node waits at its own localhost. Without options torchrun goes by PET_MASTER_ADDR,
        which works."""
        home = re.match(r"localhost\b|127\.", self.endpoint)
        nowhere = not self.endpoint and self.backend != "static" and not self.opaque
        return "standalone" in self.options or bool(home) or nowhere


def launches(script: str) -> list[Launch]:
    """Every start in a script, but not in its comments; a line that goes on behind a backslash is
    one."""
    joined = script.replace("\\\n", "  ")
    commented = [found.span() for found in re.finditer(r"(?m)^[ \t]*#.*", joined)]
    return [
        _launch(script, found)
        for found in STARTS.finditer(joined)
        if not any(first <= found.start() < last for first, last in commented)
    ]


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
        options=frozenset(said),
        opaque=opaque,
    )
