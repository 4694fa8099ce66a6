"""The script of a job as Trainer v2 needs it: torchrun finds its peers, and the variables that
training-operator v1 set are exported."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass

from trainyard.derive.policies import RESERVED_ENV
from trainyard.derive.scripts import Launch, launches
from trainyard.derive.shell import text_at
from trainyard.derive.variables import is_assigned_first, is_used
from trainyard.manifests.document import Container, Workload
from trainyard.migrate.hosts import meeting_of_script

NOT_DONE = (
    f"Trainer v2 sets only {', '.join(RESERVED_ENV)}.",
    "Start programs that read RANK, WORLD_SIZE or MASTER_ADDR with torchrun, or export these"
    " variables from PET_*.",
    "Scripts run with set -euo pipefail: a failed command or an unset variable ends them.",
)
"""Work that training-operator v1 did for a script, and Trainer v2 does not."""
EXPORTS = {
    "MASTER_ADDR": "${PET_MASTER_ADDR}",
    "MASTER_PORT": "${PET_MASTER_PORT}",
    "RANK": "${PET_NODE_RANK}",
}
"""Variable that training-operator v1 set → its value from what Trainer v2 sets."""
SET_BY_V1 = (*EXPORTS, "WORLD_SIZE")
RENDEZVOUS = {"rdzv_backend": "c10d", "rdzv_endpoint": "${PET_MASTER_ADDR}:${PET_MASTER_PORT}"}
"""Options without which the torchrun of a node waits at its own localhost."""
MASTER_HOST = "PYTORCH_JOB_MASTER_SERVICE_HOST"
"""Variable of a Service that training-operator v1 made; here it is MASTER_ADDR."""
REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")
"""$$ or $(NAME), all that Kubernetes replaces in a command and its arguments (kubernetes/kubernetes,
third_party/forked/golang/expansion/expand.go). $$ is the one before a text that is no variable."""
OF_THE_TRAINER = re.compile(r"MASTER_(ADDR|PORT)|RANK|WORLD_SIZE|PET_[A-Z0-9_]+")
"""Variables that the Trainer or the script sets: numbers and hosts, which need no quotes."""
OF_SERVICES = re.compile(r"[A-Z0-9_]+_(SERVICE_HOST|(SERVICE_)?PORT(_[A-Z0-9_]+)?)")
"""Variables that Kubernetes sets for the Services of a namespace."""


@dataclass(frozen=True, kw_only=True)
class Script:
    """A script, and a sentence for each change of it."""

    text: str
    changes: tuple[str, ...]


def v2_script(
    job: Workload, container: Container, nodes: int, is_defined: Callable[[str], bool]
) -> Script:
    """The script of the container of a job with so many nodes. `is_defined`: True for the name of a variable that
    the container may have."""
    text, met = meeting_of_script(job, _shell_text(container, is_defined))
    text, added = _with_rendezvous(text, nodes)
    exports = _exports(job, text) if job.kind == "PyTorchJob" else {}
    return Script(
        text="".join(f"export {name}={value}\n" for name, value in exports.items()) + text,
        changes=(
            *_options(job, container),
            *met,
            *added,
            *(f"script: exports {name} from PET_*: Trainer v2 does not set it" for name in exports),
        ),
    )


def _shell_text(container: Container, is_defined: Callable[[str], bool]) -> str:
    """The script with variables of Kubernetes, $(NAME), as variables of the shell."""
    text, command = container.script, container.command
    if len(command) > 1 and text == " ".join(command):  # a single word is a script, not a program
        return " ".join(_shell_word(word, is_defined) for word in command) + "\n"
    text = text.replace(f"$({MASTER_HOST})", "$(MASTER_ADDR)").strip() + "\n"
    return re.sub(r"(?<!\$)\$\(([A-Z][A-Z0-9_]*)\)", r"${\1}", text)


def _options(job: Workload, container: Container) -> list[str]:
    """A sentence about the options of the shell that runs the text. A login shell and an interactive one read files of
    the image first, which may set PATH (bash 5.2, Bash Startup Files)."""
    options = container.command[1 : text_at(container.command) or 1]
    if options in ((), ("-c",)):
        return []
    place = f"{job.where(*container.runs)}: {' '.join(options)}"
    if any(re.fullmatch("--login|-[a-zA-Z]*[li][a-zA-Z]*", option) for option in options):
        shell = " ".join((container.command[0], *options))
        return [
            f"{place}: bash reads no profile of the image for the script of an entry, and torchrun may be missing in"
            f" PATH; where it is, write the script as {shell} '…'"
        ]
    return [f"{place}: in the place of these options of the shell the script has set -euo pipefail"]


def _shell_word(word: str, is_defined: Callable[[str], bool]) -> str:
    """A word of a command in quotes, with its variables between them. What Kubernetes takes for no variable stays as
    it is written: Kubernetes reads the script of the entry, too."""
    parts, start = list[str](), 0
    for found in REFERENCE.finditer(word):
        if variable := _shell_variable(found[1] or "", is_defined):
            parts += [word[start : found.start()], variable]
            start = found.end()
    parts.append(word[start:])
    quoted = (part if n % 2 else part and shlex.quote(part) for n, part in enumerate(parts))
    return "".join(quoted) or "''"


def _shell_variable(name: str, is_defined: Callable[[str], bool]) -> str:
    """A variable of Kubernetes as one of the shell; empty where it is none."""
    name = "MASTER_ADDR" if name == MASTER_HOST else name
    if OF_THE_TRAINER.fullmatch(name):
        return f"${{{name}}}"
    is_variable = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and (
        OF_SERVICES.fullmatch(name) or is_defined(name)
    )
    return f'"${{{name}}}"' if is_variable else ""


def _with_rendezvous(text: str, nodes: int) -> tuple[str, list[str]]:
    """The script with the options of RENDEZVOUS that its torchruns lack, and the changes."""
    changes: list[str] = []
    for launch in reversed(launches(text)) if nodes > 1 else ():
        options = " ".join(_missing_options(launch))
        if options and not launch.has_shell_variables:
            text = f"{text[: launch.at]} {options}{text[launch.at :]}"
            changes.append(
                f"script: torchrun has {options}: otherwise every node waits at its own localhost"
            )
    return text, changes


def _missing_options(launch: Launch) -> list[str]:
    return [
        f"--{name}={value}"
        for name, value in RENDEZVOUS.items()
        if not {name.replace("_", "-"), "master-addr"} & launch.options
    ]


def _exports(job: Workload, text: str) -> dict[str, str]:
    """The variables of training-operator v1 that the script needs: all of them without a torchrun,
    else those that it names. A variable is left out that the script sets before it reads it."""
    ranks = str(job.get("spec", "nprocPerNode"))
    world_size = f"$((PET_NNODES * {ranks if ranks.isdecimal() else 1}))"
    values = {**EXPORTS, "WORLD_SIZE": world_size}
    return {
        name: value
        for name, value in values.items()
        if not is_assigned_first(name, text) and ("torchrun" not in text or is_used(name, text))
    }
