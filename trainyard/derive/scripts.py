"""Starts of ranks in a script: every torchrun in it, with the options that decide who meets
whom."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trainyard.derive.branches import conditions_at
from trainyard.derive.shell import text_at, words_of
from trainyard.derive.variables import values_at, with_values

STARTS = re.compile(
    r"\b(?:torchrun|torch\.distributed\.(?:run|launch))(?=[ \t])((?:\$\([^()\n]*\)|[^\n;|&])*)"
)
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
AWS_S3 = r"aws\s+(?:--\S+\s+(?:[^-\s]\S*\s+)?)*s3"
"""Pattern of the command of the AWS CLI for S3, with options before its word."""
READS_S3 = re.compile(
    rf"\b(?:{AWS_S3}|s5cmd(?:\s+--?\S+)*)\s+(?:cp|sync|mv|ls|du|cat)\s+"
    r"(?:--?[\w-]+(?:=\S+)?\s+)*[\"']?s3://[^\n;&|]*"
    r"|--[\w-]*(?:data|train|dataset|input|model|eval|valid|tokenizer|corpus)[\w-]*[= ][\"']?s3://\S+"
)
"""Words by which a script reads from S3: a command whose first place is there, and an option for what is read."""
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
_OWN_HOST = (
    r"\$(?:HOSTNAME|POD_NAME|POD_IP)\b|\$[{(](?:HOSTNAME|POD_NAME|POD_IP)[})]"
    r"|(?:\$\(|`)[ \t]*hostname(?:[ \t]+-[-\w]+)*[ \t]*(?:\|[ \t]*(?:awk[ \t]+'\{[ \t]*print[ \t]+\$1;?[ \t]*\}'"
    r"|cut[ \t][^|)]*-f[ \t]*1|head[ \t]+-n?[ \t]*1)[ \t]*)?[)`]"
)
OF_EACH_POD = re.compile(
    rf"{_OWN_HOST}|\$\{{?RANDOM\b|\$\(\(.*?\bRANDOM\b|\$\((?:uuidgen|shuf|openssl[ \t]+rand)\b|random/uuid"
    r"|(?:\$\(|`)[ \t]*date\b(?![^)`]*(?:-d|--date))(?![^)`]*\+(?:(?!%[sNSTMcrR])[^)`])*[)`])"
)
"""A value that is another one in each pod: its name, its address, a random number, the second of its start."""


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
    said: Mapping[str, str] = field(default_factory=dict)
    """Option, without its dashes → value, with the values of variables that the script assigns."""
    written: Mapping[str, str] = field(default_factory=dict)
    """Option → option and value as the script has them."""
    conf: str = ""
    """Value of --rdzv_conf."""
    has_shell_variables: bool = False
    """Options may hide in a variable of the shell that the script does not assign."""
    conditions: str = ""
    """Conditions under which it starts, a line each."""

    @property
    def options(self) -> frozenset[str]:
        return frozenset(self.said)

    @property
    def is_standalone(self) -> bool:
        """Every node waits at its own address. Without options torchrun goes by PET_MASTER_ADDR,
        which works."""
        home = re.match(rf"localhost\b|127\.|(?:{_OWN_HOST})(?::|$)", self.endpoint)
        nowhere = not self.endpoint and self.backend != "static" and not self.has_shell_variables
        return "standalone" in self.options or bool(home) or nowhere


def script_of(command: Sequence[str]) -> str:
    """Script that a command runs, as text: what follows a shell's -c, or the whole command. A shell
    that ends with exec "$@" runs the words behind its script, after the one for its name."""
    at = text_at(command)
    if at is None:
        return " ".join(command)
    text, rest = command[at], command[at + 2 :]
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


def knows_s3(script: str) -> bool:
    """True where a script may copy to S3 what it saves: it names S3 otherwise than to read from there."""
    return bool(re.search(r"\bs3\b|\bs5cmd\b", READS_S3.sub(" ", re.sub(r"\\\n", " ", script))))


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
    values = values_at(script, found.start())
    written, is_open = _options(found[1], values)
    said = {
        name: with_values((*re.split("[= ]", option, maxsplit=1), "")[1], values).replace('"', "")
        for name, option in written.items()
    }
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
        said=said,
        written=written,
        has_shell_variables=is_open,
        conditions=conditions_at(script, found.start(1)),
    )


def _options(text: str, values: Mapping[str, str]) -> tuple[dict[str, str], bool]:
    """Option → how it is written, of those before the program; True where others may hide in a variable."""
    written: dict[str, str] = {}
    is_open, spread, words = False, set[str](), words_of(text)[::-1]
    while words:
        word = words.pop()
        found = re.fullmatch(r"\"?\$\{?(\w+)(?:\[[@*]\])?\}?\"?", word)
        if found and found[1] in {*values} - spread:
            spread.add(found[1])
            words += words_of(values[found[1]])[::-1]
        elif word.startswith(("$", '"$')):
            is_open = True
        elif not word.startswith("-"):
            break  # the program; what follows is its own
        else:
            option, joined, _ = word.partition("=")
            name = option.strip("-").replace("_", "-")
            value = "" if joined or name in FLAGS or not words else words.pop()
            written[name] = f"{word} {value}".strip()
    return written, is_open
