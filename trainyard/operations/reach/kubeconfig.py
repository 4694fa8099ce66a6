"""`trainyard kubeconfig STACK`: write the kubeconfig of a stack into a file, and print its path.

The file holds no secret: kubectl asks `aws eks get-token` each time.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from trainyard.operations.reach.target import answer_of, kubeconfig

FOLDER = Path(".kube")
"""In the current folder, and ignored by git."""


def main(options: argparse.Namespace) -> int:
    """Return 0, or 1 where the stack has no cluster or another one could be meant."""
    text = answer_of(lambda: kubeconfig(options.stack))
    if text is None:
        return 1
    file = FOLDER.absolute() / f"{options.stack}.yaml"
    file.parent.mkdir(exist_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        out.write(text)
    print(file)
    return 0
