"""A warning about variables of a job that its ranks on other pods do not have.

On a runtime of kind mpi those ranks are children of sshd, which gives its sessions nothing of the container's
environment. Launchers send what they are told: mpirun the names behind -x and those of mca_base_env_list
(docs.open-mpi.org, 5.0, mpirun, Exported Environment Variables), deepspeed some by their beginnings and what
.deepspeed_env says (0.16, launcher/runner.py, EXPORT_ENVS). horovodrun sends all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainyard.derive.job_view import ContainerView, JobView
from trainyard.derive.launchers import OtherLaunch, other_launches
from trainyard.derive.shell import READS_MORE
from trainyard.problems import InputError, InputWarning

SENT = {
    "mpirun": ("OMPI_", "PMIX_", "PRTE_"),
    "mpiexec": ("OMPI_", "PMIX_", "PRTE_"),
    "deepspeed": ("MLFLOW", "NCCL", "PYTHON", "MV2", "UCX"),
}
"""Launcher → beginnings of the variables that it sends unasked."""
NAME = re.compile(r"[A-Za-z_]\w*")
"""A variable of a shell: what is no name is refused elsewhere."""
ANOTHER_WAY = re.compile(
    r"mca_base_env_list|DS_ENV_FILE|\.deepspeed_env|-genv|--?(?:tune|am|bind-to-env)\b|\bexport -p\b"
    r"|\$\((?:env|printenv|compgen)\b|/proc/1/environ"
)
"""Words of a script that sends variables by a list, a file or the whole environment."""


def not_sent(view: JobView, container: ContainerView) -> Iterator[InputError | InputWarning]:
    """The variables of a job that a launcher does not send to the other pods. One that the script itself reads may
    be in the words of the program."""
    script = container.script
    if not view.mpi or view.nodes < 2 or ANOTHER_WAY.search(f"{script} {' '.join(container.env)}"):
        return
    for launch in other_launches(script):
        sent = SENT.get(launch.launcher)
        missing = [
            name
            for name in sorted({*container.env, *container.by_us})
            if sent and NAME.fullmatch(name) and not name.startswith(sent)
            if not _is_said(name, launch, script)
        ]
        if missing and not READS_MORE.search(script):
            yield container.where("script").warning(_text(launch.launcher, missing, view.nodes))


def _is_said(name: str, launch: OtherLaunch, script: str) -> bool:
    return bool(
        re.search(rf"-x[ \t]+[\"']?{name}\b", launch.text)
        or re.search(rf"\$\{{?{name}\b|\b{name}=", script)
    )


def _text(launcher: str, missing: list[str], nodes: int) -> str:
    names, others = ", ".join(missing), "another pod" if nodes == 2 else "other pods"
    way = (
        f"write {' '.join(f'{name}=${name}' for name in missing)}, each on a line, into ~/.deepspeed_env before"
        " deepspeed starts"
        if launcher == "deepspeed"
        else f"add {' '.join(f'-x {name}' for name in missing)} right behind {launcher}"
    )
    return (
        f"{launcher} starts the ranks on {others} by sshd, without {names}: they train with other values than the"
        f" ranks beside it; {way}"
    )
