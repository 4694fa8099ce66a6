"""`trainyard notebook --pool POOL`: JupyterLab in a pod on a node of a pool, with the stores mounted."""

from __future__ import annotations

import argparse
import secrets

from trainyard.catalog.versions import NOTEBOOK_IMAGE
from trainyard.operations.nodes.look import Look, opened, words_of
from trainyard.operations.nodes.shell_job import STORES, Wanted, pool_of, stores_of
from trainyard.operations.reach.stack import Stack

PORT = 8888


def main(options: argparse.Namespace) -> int:
    """Return 0 where ctrl-C ends it; 1 where it does not start or ends by itself; 2 where there is no terminal to
    ask."""
    token = secrets.token_urlsafe(24)

    def look_of(stack: Stack) -> tuple[Look, Wanted]:
        folder = STORES if stores_of(stack) else "/"
        look = Look(
            title="JupyterLab",
            port=PORT,
            command=(
                *("jupyter", "lab", "--no-browser", "--allow-root"),
                *("--ServerApp.ip=127.0.0.1", f"--ServerApp.port={PORT}"),
                *("--ServerApp.port_retries=0", f"--ServerApp.root_dir={folder}"),
            ),
            path=f"/lab?token={token}",
            variables={"JUPYTER_TOKEN": token},
            says=("JupyterLab: what it writes outside of the stores goes with its pod",),
        )
        wanted = Wanted(
            pool=pool_of(stack, options.pool),
            image=options.image or NOTEBOOK_IMAGE,
            gpus=options.gpus,
            minutes=options.minutes,
            words=words_of(look, options.minutes),
        )
        return look, wanted

    return opened(options, look_of)
