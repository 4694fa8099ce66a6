"""`mirror`: fill the account's registry with what the nodes of a stack pull."""

from __future__ import annotations

import argparse
import os
import subprocess
from pathlib import Path

from development import engine
from development.progress import Display
from development.steps import build_programs, in_full, open_world
from rehearsal import paths
from rehearsal.terminal import REFUSED

CRANE = """\
#!/bin/sh
# Public registries are not part of the rehearsal: the copy of an image is a file with its name.
set -e
case "$1" in
copy) ;;
manifest) echo "no public registry is part of the rehearsal" >&2; exit 1 ;;
*) exec {crane} "$@" ;;
esac
case "${{2%%/*}}" in
*.dkr.ecr.*)
  # As ECR answers a pull of somebody whom it does not know.
  if ! grep --quiet --fixed-strings "\\"${{2%%/*}}\\":" "$DOCKER_CONFIG/config.json"; then
    echo "GET https://${{2%%/*}}/v2/: unexpected status code 401 Unauthorized: Not Authorized" >&2
    exit 1
  fi ;;
esac
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
printf '%s\\n' "$2" > "$folder/image"
tar --create --file "$folder/layer.tar" --directory "$folder" image
{crane} append --new_layer "$folder/layer.tar" --new_tag "$3" > "$folder/said"
"""


def mirror(options: argparse.Namespace) -> int:
    """List the images that nodes pull, and copy those that the account's registry lacks."""
    stack, display = engine.find(options.stack), Display()
    if not open_world(stack, display, speed=options.speed):
        return REFUSED
    build_programs(display, ["crane"])
    variables = engine.complete(stack)
    path = f"{_stand_in()}:{variables['PATH']}"
    command = in_full("mirror", options)
    return subprocess.call(command, cwd=engine.CHECKOUT, env={**variables, "PATH": path})


def _stand_in() -> Path:
    """A folder with a crane that needs no public registry."""
    crane, folder = paths.BIN / "crane", paths.STATE / "mirror"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "crane"
    file.write_text(CRANE.format(crane=os.fspath(crane)))
    file.chmod(0o755)
    return folder
