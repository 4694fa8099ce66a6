"""Starts of ranks with another launcher than torchrun, and their options about nodes and processes.
torchrun: scripts.py."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from trainyard.derive.branches import conditions_at


@dataclass(frozen=True, kw_only=True)
class Options:
    """Names of the options of a launcher, as it prints them; empty where it has none."""

    nodes: str = ""
    per_node: str = ""
    """Processes of a node."""
    total: str = ""
    """Processes of all nodes together."""
    rank: str = ""
    """Rank of the node."""
    hosts: str = ""
    """Options by which it finds the other nodes, as a regular expression. Empty where it reads PET_* variables, as
    accelerate does by torchrun."""
    variables: tuple[str, ...] = ()
    """Variables by which it finds the other nodes, or options of their names."""
    instead: Mapping[str, str] = field(default_factory=dict)
    """Another variable → that of `variables` which it replaces."""
    told: str = ""
    """Variables or options with which it finds the other nodes, {ranks} being the processes of a pod."""
    conf: str = ""
    """Time for which nodes wait for each other, in the words of torchrun's --rdzv_conf."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.nodes, self.per_node, self.total, self.rank, self.conf)))


_FABRIC = Options(
    nodes="--num-nodes",
    per_node="--devices",
    rank="--node-rank",
    hosts="(?=.*--num[-_]nodes)(?=.*--node[-_]rank)(?=.*--main[-_]address)",
    told="--num-nodes=${PET_NNODES} --node-rank=${PET_NODE_RANK} --main-address=${PET_MASTER_ADDR}"
    " --main-port=${PET_MASTER_PORT}",
)
_MPI = Options(total="-np", hosts="host|machine-?file|-H\\b")
_RANK = "NODE_RANK=$PET_NODE_RANK MASTER_ADDR=$PET_MASTER_ADDR MASTER_PORT=$PET_MASTER_PORT"
_LLAMA_FACTORY = Options(
    variables=("NNODES", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT"),
    instead={"RDZV_ID": "NODE_RANK"},
    told=f"FORCE_TORCHRUN=1 NNODES=$PET_NNODES {_RANK}",
)
_SWIFT = Options(
    variables=("NPROC_PER_NODE",),
    instead={"NNODES": "NPROC_PER_NODE"},
    told="NPROC_PER_NODE={ranks}",
    hosts=r"swift \w+[ \t]+[^-\s]\S*\.(?:ya?ml|json)\b",
)
LAUNCHERS: dict[str, Options] = {
    "accelerate launch": Options(
        nodes="--num_machines",
        total="--num_processes",
        rank="--machine_rank",
        conf="--rdzv_conf",
        hosts="(?=.*--main[_-]process[_-]ip)(?=.*--machine[_-]rank)",
    ),
    "deepspeed": Options(
        nodes="--num_nodes", per_node="--num_gpus", rank="--node_rank", hosts="hostfile|-H\\b"
    ),
    "fabric run": _FABRIC,
    "lightning run": _FABRIC,
    "tune run": Options(
        nodes="--nnodes",
        per_node="--nproc_per_node",
        rank="--node_rank",
        hosts="--rdzv[_-]endpoint",
    ),
    "colossalai run": Options(
        nodes="--num_nodes", per_node="--nproc_per_node", hosts="host|-H\\b|extra_launch_args"
    ),
    "composer": Options(
        per_node="-n",
        total="--world_size",
        rank="--node_rank",
        variables=("WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT"),
        instead={"BASE_RANK": "NODE_RANK"},
        told=f"WORLD_SIZE=$((PET_NNODES * {{ranks}})) {_RANK}",
    ),
    "swift pt": _SWIFT,
    "swift rlhf": _SWIFT,
    "swift sft": _SWIFT,
    "llamafactory-cli train": _LLAMA_FACTORY,
    "lmf train": _LLAMA_FACTORY,
    "mpirun": _MPI,
    "mpiexec": _MPI,
    "horovodrun": _MPI,
}
"""Launcher → its options. Sources: --help of accelerate 1.10, deepspeed 0.17, lightning 2.5, Open MPI
5.0 and horovod 0.28; deepspeed's launcher/runner.py, which takes its own node where no file lists hosts; torchtune 0.6,
_cli/run.py, which starts torchrun with --standalone where no endpoint is given; LLaMA-Factory 0.9, launcher.py, which
starts torchrun with --nnodes 1 --node_rank 0 --master_addr 127.0.0.1 where these variables are not set; lightning 2.5,
fabric/cli.py, whose --main-address is 127.0.0.1 by default; composer 0.32, cli/launcher.py, _parse_args; ColossalAI
0.5, cli/launcher/run.py, which takes 127.0.0.1 where no host is given; ms-swift 4.5, swift/cli/main.py, which starts
plain Python without NPROC_PER_NODE and NNODES, and may read them from a file that is its first argument."""
MPI = tuple(name for name, options in LAUNCHERS.items() if options is _MPI)
ACCELERATE = LAUNCHERS["accelerate launch"]
TUNE = LAUNCHERS["tune run"]
BY_TORCHRUN = Options(per_node="--num_processes", conf="--rdzv_conf")
"""Options of accelerate where it is told no machines, or one: it hands torchrun its processes as those of a node,
and the nodes are those of PET_NNODES (accelerate 1.10 and 1.15, utils/launch.py, prepare_multi_gpu_env and
_filter_args)."""
BY_FILE = Options(conf="--rdzv_conf")
"""Options of accelerate beside a file that may say the machines."""
OF_ACCELERATE = (ACCELERATE, BY_TORCHRUN, BY_FILE)
TRAINER = Options(nodes="trainer.num_nodes", per_node="trainer.devices")
"""Options of LightningCLI and of NeMo, in the arguments of any program."""
_BEFORE = (
    r"exec|time|then|do|else|nohup|(?:uv|poetry|pipenv|pixi) run|(?:conda|mamba) run -n [\w.-]+"
)
"""Words before a command that starts all the same."""
_ASSIGNED = r"(?:[A-Za-z_]\w*=(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'])*[ \t]+)*"
_OPTIONS = r"(?:[ \t]+-\S+(?:[ \t]+(?:\d\S*|[A-Z]\w*|all)(?=[ \t]))?)*"
_WRAPPER = rf"(?:(?:timeout|taskset){_OPTIONS}[ \t]+\w\S*|(?:env|numactl|nice|ionice|stdbuf|setsid){_OPTIONS})"
"""A program that starts the command behind its options."""
_MODULE = r"python[\d.]*[ \t]+(?:-u[ \t]+)?-m[ \t]+"
_AS_MODULE = {
    "accelerate.commands.launch": "accelerate launch",
    "deepspeed.launcher.runner": "deepspeed",
}
"""Module of Python → its launcher."""
_TORCHRUN = rf"torchrun|{_MODULE}torch\.distributed\.(?:run|launch)"
_OTHER = (
    rf"(?:{'|'.join(LAUNCHERS)}|accelerate-launch|{_MODULE}(?:{'|'.join(_AS_MODULE)}))"
    r"(?![ \t]+(?:--version|--help|-h)\b)"
)
_WRAPPED = rf"{_ASSIGNED}(?:{_WRAPPER}[ \t]+{_ASSIGNED})*(?:/[\w./-]*/)?"
_START = re.compile(
    rf"(?:^|[;&|(]|\b(?:{_BEFORE})[ \t])[ \t]*{_WRAPPED}({_OTHER})(?=[ \t])([^\n;|&]*)",
    re.MULTILINE,
)
_COMMAND = re.compile(
    rf"(?:{_ASSIGNED}(?:{_BEFORE})[ \t]+)*{_WRAPPED}({_TORCHRUN}|{_OTHER})(?=[ \t])"
)


def _named(written: str) -> str:
    """The launcher as LAUNCHERS has it."""
    if written.startswith("python"):
        return _AS_MODULE.get(written.split()[-1], "torchrun")
    return "accelerate launch" if written == "accelerate-launch" else written


@dataclass(frozen=True, kw_only=True)
class OtherLaunch:
    """One start."""

    launcher: str
    """Its name; empty for options in the arguments of another program."""
    text: str
    """The launcher with what follows it on its line, as it is written."""
    names: Options
    said: Mapping[str, str]
    """Option → its value."""
    options: frozenset[str] = frozenset()
    """Names of all options before the program, without the dashes at their beginning, and with - for _."""
    conditions: str = ""
    """Conditions under which it starts, a line each."""

    def number(self, option: str) -> int | None:
        """The value of an option; None where it is not a number, or not there."""
        value = self.said.get(option, "")
        return int(value) if value.isdecimal() else None


def launcher_of(command: str) -> str:
    """The launcher that a simple command of a shell starts, torchrun or another; empty where it starts none."""
    found = _COMMAND.match(command)
    return _named(found[1]) if found else ""


def other_launches(script: str) -> Iterator[OtherLaunch]:
    """Every start in a script, but not in its comments."""
    text = re.sub(r"(?m)^[ \t]*#.*", "", script.replace("\\\n", "  "))
    for found in _START.finditer(text):
        written, rest = found.groups()
        launcher = _named(written)
        said, options = _said(rest, LAUNCHERS[launcher])
        names = _names(LAUNCHERS[launcher], said, rest)
        yield OtherLaunch(
            launcher=launcher,
            text=(written + rest).rstrip(),
            names=names,
            said=said,
            options=options,
            conditions=conditions_at(text, found.end(1)),
        )
    said = dict(re.findall(r"(?<![\w.])(?:--)?(trainer\.\w+)[= ]+(\d+)\b", text))
    if said:
        yield OtherLaunch(launcher="", text="", names=TRAINER, said=said)


def _names(names: Options, said: Mapping[str, str], text: str) -> Options:
    """The options of a launcher that count, by what it is told."""
    if names is not ACCELERATE or said.get(names.nodes, "1") != "1":
        return names
    return BY_FILE if re.search("--config[_-]file", text) else BY_TORCHRUN


_CONFIGURATION = re.compile(r"\.(?:ya?ml|json|conf|cfg|txt)[\"']?$")
"""A file that a launcher reads: what stands behind it are options of the launcher, too."""


def _said(text: str, names: Options) -> tuple[dict[str, str], frozenset[str]]:
    """The options of a launcher, as `names` spells them, and the names of all. Those of the program behind it are its
    own."""
    wanted = {_plain(option): option for option in names.names}
    said: dict[str, str] = {}
    options = set()
    words = iter(text.split())
    for word in words:
        name, _, value = word.partition("=")
        if not word.startswith("-"):
            if ("/" in word and not _CONFIGURATION.search(word)) or word.endswith(".py"):
                break
            continue
        options.add(_plain(name))
        if option := wanted.get(_plain(name)):
            said[option] = value or next(words, "")
    return said, frozenset(options)


def _plain(option: str) -> str:
    return {"-n": "np"}.get(option, option.strip("-").replace("_", "-"))
