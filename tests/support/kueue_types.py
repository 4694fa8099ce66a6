"""Writes trainyard/catalog/kueue_types.json from the Go types of the Kueue that goes with Trainer 2.3:
`python -m tests.support.kueue_types`. It takes two minutes where Go has compiled none of it yet."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from rehearsal import paths
from rehearsal.toolchain import go
from rehearsal.toolchain.programs import FOLDER
from trainyard import command_line
from trainyard.catalog.kueue_types import TYPES_FILE
from trainyard.catalog.versions import TRAINER_RELEASES

FOLDERS = {TRAINER_RELEASES["2.3.0"].kueue: "kueue-0.19"}
"""Release of Kueue → the folder of the toolchain that pins its types."""


def types_text() -> str:
    """kueue_types.json: a line for each type. CalledProcessError where Go cannot run the program."""
    releases = (
        f"{json.dumps(release)}: {_lines(_forms(folder))}" for release, folder in FOLDERS.items()
    )
    return "{\n" + ",\n".join(releases) + "\n}\n"


def _lines(forms: dict[str, object]) -> str:
    written = (f"{json.dumps(name)}: {json.dumps(form)}" for name, form in sorted(forms.items()))
    return "{\n" + ",\n".join(written) + "\n}"


def _forms(folder: str) -> dict[str, object]:
    """Output of kueue_types.go among the modules of a folder of the toolchain."""
    return json.loads(_run(folder))


def written_back(spec: Any, folder: str) -> Any:
    """TrainJob.spec as the types write it that they have read. `folder`: of the toolchain."""
    return json.loads(_run(folder, "write", given=json.dumps(spec)))


def _run(folder: str, *arguments: str, given: str = "") -> str:
    with tempfile.TemporaryDirectory() as made:
        for name in ("go.mod", "go.sum"):
            shutil.copy(FOLDER / folder / name, made)
        shutil.copy(Path(__file__).with_suffix(".go"), Path(made) / "main.go")
        done = subprocess.run(
            [go.executable(print), "run", ".", *arguments],
            cwd=made,
            env=go.environment(),
            input=given,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return done.stdout


def main(arguments: list[str]) -> int:
    """Write the file, and say which."""
    command_line.parser(
        "tests.support.kueue_types", "Write trainyard/catalog/kueue_types.json."
    ).parse_args(arguments)
    TYPES_FILE.write_text(types_text())
    print(TYPES_FILE.relative_to(paths.HOME))
    return 0


if __name__ == "__main__":
    command_line.run(main)
