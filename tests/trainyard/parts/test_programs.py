"""The files of programs that run in pods: each pod has what its program imports, and no more."""

from __future__ import annotations

import re
import sys

import pytest

from tests.support.recording import CHECKOUT
from trainyard.parts.programs import LOGS, SHARED, program_files, program_paths

FOLDERS = [each for each in sorted(SHARED.parent.iterdir()) if each.is_dir()]
PROGRAMS = [each.name for each in FOLDERS if (each / f"{each.name}.py").exists()]


def test_no_two_folders_have_a_file_of_one_name() -> None:
    names = [file.name for file in (*SHARED.parent.glob("*/*.py"), *LOGS.glob("*.py"))]
    assert len(names) > 16 and len({*names}) == len(names)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_pod_has_every_file_of_ours_that_its_program_imports(program: str) -> None:
    files = program_files(program)
    ours = {file.stem for file in (*SHARED.parent.glob("*/*.py"), *LOGS.glob("*.py"))}
    imported = {
        name
        for text in files.values()
        for name in re.findall(r"^\s*(?:from|import) (\w+)", text, re.MULTILINE)
    }
    assert {f"{name}.py" for name in imported & ours} <= files.keys()


def test_a_pod_has_no_file_that_only_other_programs_import() -> None:
    there = {program: {p.parent.name for p in program_paths(program)} for program in PROGRAMS}
    assert there["repair"] > {"shared", "repair"} and there["passes"] == {"shared", "passes"}
    files = {path.name for path in program_paths("gangs") if path.parent.name == "runs"}
    assert files == {"watching.py"}
    assert [name for name in PROGRAMS if "logs" in there[name]] == ["told"]
    assert (CHECKOUT / "trainyard/in_cluster").samefile(SHARED.parent)


def test_a_file_of_the_brain_that_a_pod_has_imports_only_what_python_has() -> None:
    files = [each for each in program_paths("told") if each.parent == LOGS]
    assert len(files) == 6
    for file in files:
        named = re.findall(
            r"^\s*(?:from (\w+) import|import (\w+)$)", file.read_text(), re.MULTILINE
        )
        imported = {first or second for first, second in named}
        assert imported and imported <= sys.stdlib_module_names, file.name
