"""The Pulumi program and the samples that the tool carries. `__main__.py` of a project outside a checkout
is `run()`."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from trainyard import HOME

LINK = Path("components")
"""Link in a project's folder to the components, whose charts the program names by a path from there. A path
of the virtual environment would be another one on each machine, and each would update the releases."""


def run() -> None:
    """Run the program in the folder of the project that the engine has started. Raises FileExistsError
    where something else than the link is called `components` there."""
    sys.path.insert(0, str(HOME))
    target = HOME / LINK
    if LINK.is_symlink() and LINK.resolve() != target.resolve():
        LINK.unlink()
    if not LINK.exists():
        LINK.symlink_to(target)
    elif LINK.resolve() != target.resolve():
        raise FileExistsError(
            f"{LINK.absolute()}: a link to the charts of Trainyard needs this name. Fix: rename it"
        )
    runpy.run_path(str(HOME / "__main__.py"), run_name="__main__")
