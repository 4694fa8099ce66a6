"""The script of a job as Trainer v2 needs it: torchrun finds its peers, and the variables that
training-operator v1 set are exported."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from trainyard.derive.job_view import RESERVED_ENV
from trainyard.derive.scripts import Launch, launches
from trainyard.manifests.document import Container, Workload

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
PLAIN_WORD = re.compile(r"[\w@%+=:,./$(){}-]+")
"""A word that a shell takes as it is, but for variables."""


@dataclass(frozen=True, kw_only=True)
class Script:
    """A script, and a sentence for each change of it."""

    text: str
    changes: tuple[str, ...]


def v2_script(job: Workload, container: Container, nodes: int) -> Script:
    """The script of the container of a job with so many nodes."""
    text, added = _with_rendezvous(_shell_text(container), nodes)
    exports = _exports(job, text) if job.kind == "PyTorchJob" else {}
    return Script(
        text="".join(f"export {name}={value}\n" for name, value in exports.items()) + text,
        changes=(
            *added,
            *(f"script: exports {name} from PET_*: Trainer v2 does not set it" for name in exports),
        ),
    )


def _shell_text(container: Container) -> str:
    """The script with variables of Kubernetes, $(NAME), as variables of the shell."""
    text, command = container.script, container.command
    if len(command) > 1 and text == " ".join(command):  # a single word is a script, not a program
        text = " ".join(
            word if PLAIN_WORD.fullmatch(word) else shlex.quote(word) for word in command
        )
    text = text.replace("$(PYTORCH_JOB_MASTER_SERVICE_HOST)", "$(MASTER_ADDR)").strip() + "\n"
    return re.sub(r"(?<!\$)\$\(([A-Z][A-Z0-9_]*)\)", r"${\1}", text)


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
    else those that it names. A variable that the script sets itself is left out."""
    ranks = str(job.get("spec", "nprocPerNode"))
    world_size = f"$((PET_NNODES * {ranks if ranks.isdecimal() else 1}))"
    values = {**EXPORTS, "WORLD_SIZE": world_size}
    return {
        name: value
        for name, value in values.items()
        if not re.search(rf"\b{name}=", text)
        and ("torchrun" not in text or re.search(rf"\$\{{?{name}\b", text))
    }
