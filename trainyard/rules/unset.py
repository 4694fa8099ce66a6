"""Variables that a script uses under `set -u` and that nobody sets: bash ends the script there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainyard.derive.job_view import ContainerView, JobView
from trainyard.derive.scripts import LAUNCHER_ENV
from trainyard.derive.shell import READS_MORE
from trainyard.derive.variables import in_arithmetic, is_assigned
from trainyard.problems import InputWarning
from trainyard.rules.one_node import expanded
from trainyard.settings.reading.secrets.names import NAME

STRICT = re.compile(r"\bset\s+-[a-tv-z]*u|\bset\s+-o\s+nounset|\bbash\s+-[a-tv-z]*u")
"""Words by which a script asks bash to end at an unset variable; each script of an entry does."""
USED = re.compile(r"(?<![\\$])\$(?:\{([A-Z][A-Z0-9_]{1,})\}|([A-Z][A-Z0-9_]{1,})\b)")
"""A use without a default; names of one letter, as in loops, are short-lived."""
OF_IMAGES = re.compile(
    r"(HOME|PATH|PWD|OLDPWD|USER|LOGNAME|SHELL|HOSTNAME|TMPDIR|LANG|TERM|RANDOM|SECONDS|LINENO|UID|EUID|PPID"
    r"|IFS|OSTYPE|REPLY|OPTARG|OPTIND|BASH\w*|PIPESTATUS|FUNCNAME|DEBIAN_FRONTEND)$"
    r"|(LC|CONDA|CUDA|NVIDIA|NCCL|FI|EFA|OMPI|OPAL|MPI|HF|TORCH|PYTORCH|PYTHON|LD|LIBRARY|VIRTUAL|KUBERNETES|JOB"
    r"|AWS|OPEN_MPI|UCX|OMP|SLURM|HOROVOD|DEEPSPEED|XLA|JAX|NEURON|PIP)(_\w+|PATH)?$"
)
"""Variables that a shell, Kubernetes or an image sets."""


def _way_out(names: list[str], view: JobView) -> str:
    """The setting for the value of a variable. A token must not stand in clear."""
    if any(NAME.fullmatch(name) or name.endswith("PAT") for name in names):
        is_entry = view.origin == "entry"
        return (
            "write it into secrets"
            if is_entry
            else "write it into env, with valueFrom: {secretKeyRef: …}"
        )
    return f"write it into env, or a default: ${{{names[0]}:-…}}"


def unset_variable(view: JobView, container: ContainerView) -> Iterator[InputWarning]:
    """Every name that the script uses without a default, and that nobody is known to set. The image may."""
    text = expanded(container.script)
    strict = view.origin == "entry" or STRICT.search(" ".join(container.words))
    if (
        not strict
        or container.more_env is None
        or not view.runtime_known
        or READS_MORE.search(text)
    ):
        return
    known = {*container.more_env, *(name for each in view.containers for name in each.env)}
    used = [found[1] or found[2] for found in USED.finditer(text)]
    names = dict.fromkeys([*used, *(name for name in in_arithmetic(text) if name[1:])])
    unknown = [
        name
        for name in names
        if name not in known
        and not OF_IMAGES.match(name)
        and not LAUNCHER_ENV.match(name)
        and not is_assigned(name, text)
        and not re.search(
            rf"\b(?:read|for|mapfile|readarray|getopts|local|declare|printf)\b[^\n;&|]*\b{name}\b",
            text,
        )
        and not re.search(rf"\$\{{{name}:?[-+?=]", text)
    ]
    if unknown:
        yield container.where("script").warning(
            f"the script uses {', '.join(unknown)}, which neither the job nor {view.controller} sets: where"
            f" the image does not either, bash ends there, because of set -u; {_way_out(unknown, view)}"
        )
