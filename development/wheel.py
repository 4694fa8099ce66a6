"""The build backend of pyproject.toml: flit, and in the wheel beside the tool the Pulumi program of this
checkout, as trainyard/_program. trainyard/cli/program.py runs it from there.

`components` and `stacks` are no packages of the wheel: other programs have packages of these names.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from flit_core.buildapi import (
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)
from flit_core.wheel import WheelBuilder

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]
CHECKOUT = Path(__file__).resolve().parents[1]
PROGRAM = (
    "__main__.py",
    "components",
    "stacks",
    "workloads/ddp/train.py",
    "workloads/checkpoints.py",
    "workloads/whole.py",
)
"""Files and folders of the program, the scripts that `trainyard new team` writes, and the one that `trainyard
checkpoint` runs."""
IN_WHEEL = "trainyard/_program"


class _Builder(WheelBuilder):
    def copy_module(self) -> None:
        super().copy_module()
        for file in program_files():
            self._add_file(file, f"{IN_WHEEL}/{file.relative_to(CHECKOUT).as_posix()}")


def program_files() -> Iterator[Path]:
    """Every file of PROGRAM, in an order that does not depend on the machine."""
    for part in PROGRAM:
        path = CHECKOUT / part
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                yield file


def build_wheel(
    wheel_directory: str,
    config_settings: Mapping[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Build the wheel into a folder; its name (PEP 517)."""
    folder = Path(wheel_directory)
    with tempfile.TemporaryDirectory(dir=folder) as own:
        unnamed = Path(own) / "wheel"
        with unnamed.open("w+b") as opened:
            builder = _Builder.from_ini_path(CHECKOUT / "pyproject.toml", opened)
            builder.build()
        unnamed.replace(folder / builder.wheel_filename)
    return builder.wheel_filename
