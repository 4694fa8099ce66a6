"""Files that a job brings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.stackfile import at, planned, values
from trainyard.rules.job_files import file_errors
from trainyard.settings.job import JobConfig
from trainyard.settings.training.files import FilesConfig


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            None,
            "must list files in the folder of the stack file; got train.py, which is not there. Fix: write paths",
        ),
        (b"\0binary", "must list text files; got train.py, which is not UTF-8 text"),
        (b"\xff\xfe", "must list text files; got train.py"),
        (
            b"a" * ((1 << 20) + 1),
            "must have at most 1 MiB in all, as a ConfigMap takes; got 1.0 MiB",
        ),
    ],
)
def test_files_that_no_config_map_takes_are_refused(
    tmp_path: Path, content: bytes | None, says: str
) -> None:
    if content is not None:
        (tmp_path / "train.py").write_bytes(content)
    [error] = file_errors("jobs.a", _bringing("train.py"), tmp_path)
    assert error.path == "jobs.a.files.sources" and says in str(error)


def test_a_name_that_no_config_map_has_as_a_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "my train.py").write_text("print(1)")
    [error] = file_errors("jobs.a", _bringing("my train.py"), tmp_path)
    assert error.path == "jobs.a.files.sources" and error.got == "my train.py"
    assert error.fix == "rename the file to my_train.py, also where the job runs it"


@pytest.mark.parametrize(
    ("name", "content"), [("run.sh", b"cd /data\r\n"), ("run", b"#!/bin/bash\r\ncd /data\r\n")]
)
def test_a_script_with_the_line_ends_of_windows_is_refused(
    name: str, content: bytes, tmp_path: Path
) -> None:
    """Python reads them, bash does not."""
    for file in (name, "train.py"):
        (tmp_path / file).write_bytes(content if file == name else b"import os\r\n")
    [error] = file_errors("jobs.a", _bringing(name, "train.py"), tmp_path)
    assert error.got == f"{name}, whose lines end with CR LF"
    assert error.fix == f"change the file: perl -pi -e 's/\\r$//' {name}"


def test_a_name_with_a_slip_proposes_the_file_that_is_nearest(tmp_path: Path) -> None:
    (tmp_path / "train_mine.py").write_text("print(1)")
    (tmp_path / "__main__.py").write_text("print(1)")
    for source in ("trian_mine.py", "/home/me/train_mine.py"):
        [error] = file_errors("jobs.a", _bringing(source), tmp_path)
        assert error.fix.endswith("such as train_mine.py")
    [error] = file_errors("jobs.a", _bringing("other.sh"), tmp_path)
    assert error.fix.endswith("such as scripts/train.py")


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "train.py").write_text("")
    [error] = file_errors("jobs.a", _bringing("a/train.py", "b/train.py"), tmp_path)
    assert "because the folders are left out in the container; got train.py" in str(error)


def test_a_file_that_lies_in_another_folder_is_proposed(tmp_path: Path) -> None:
    (tmp_path / "scripts" / "a").mkdir(parents=True)
    (tmp_path / "scripts" / "a" / "train.py").write_text("")
    (error,) = file_errors("jobs.a", _bringing("train.py"), tmp_path)
    assert error.fix == "write paths from that folder, such as scripts/a/train.py"


@pytest.mark.parametrize("name", ["a" * 300, "b/" * 3000, "a**b", "[", "a\0b", "..", ""])
def test_a_name_that_no_file_can_have_is_an_error_and_no_traceback(
    tmp_path: Path, name: str
) -> None:
    for place in ("scripts", "workloads"):
        (tmp_path / place).mkdir()
    [error] = file_errors("jobs.a", _bringing(name), tmp_path)
    assert error.fix.endswith("such as scripts/train.py") and len(error.got) < 120


def test_thousands_of_files_that_are_not_there_look_for_others_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []
    monkeypatch.setattr(Path, "rglob", lambda place, _: asked.append(place) or [])
    wrong = [f"{number}.py" for number in range(2000)]
    assert len([*file_errors("jobs.a", _bringing(*wrong), tmp_path)]) == 2000
    assert len(asked) == 2


def _bringing(*sources: str) -> JobConfig:
    return JobConfig(
        nodes=1, pool="g6e", image="i:1", runtime="r", files=FilesConfig(sources=sources)
    )


def test_a_secret_in_a_file_that_everybody_could_read_in_the_config_map_is_refused(
    tmp_path: Path,
) -> None:
    token = "hf_" + "QwErTyUiOpAsDfGhJkLzXcVbNm12345678"
    (tmp_path / "train.py").write_text(f'login("{token}")\npassword = "hunter22"\n')
    [error] = file_errors("jobs.a", _bringing("train.py"), tmp_path)
    assert error.must == "list files without a secret in clear" and token not in str(error)
    (tmp_path / "train.py").write_text('password = "hunter22"\n')
    assert [*file_errors("jobs.a", _bringing("train.py"), tmp_path)] == [], "a name proves nothing"


def test_a_folder_is_one_error_that_names_the_files_in_it(tmp_path: Path) -> None:
    """The script of torchrun is one of them: it is no second fault."""
    for name in ("train.py", "model.py", "__pycache__/model.pyc"):
        (tmp_path / "lab" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "lab" / name).write_text("")
    entry = {
        **{
            key: it
            for key, it in values()["trainyard:environment"]["jobs"]["t5-large"].items()
            if key != "script"
        },
        "torchrun": {"script": "/workspace/train.py"},
        "files": {"sources": ["lab"]},
    }
    [error] = planned(at("jobs", {"t5": entry}), folder=tmp_path).errors
    assert str(error).endswith(
        "must list files in the folder of the stack file; got lab, which is a folder. Fix: write the files in it:"
        " [lab/model.py, lab/train.py]"
    )
    for number in range(9):
        (tmp_path / "lab" / f"{number}.py").write_text("")
    [error] = planned(at("jobs", {"t5": entry}), folder=tmp_path).errors
    assert error.fix.startswith("write those of its files that the job needs: lab/0.py, ")
    (tmp_path / "empty").mkdir()
    entry["files"] = {"sources": ["empty"]}
    [error] = planned(at("jobs", {"t5": entry}), folder=tmp_path).errors
    assert error.fix == "put files into empty, and write their paths"
    entry["files"] = {"sources": ["lab/model.py"]}
    [error] = planned(at("jobs", {"t5": entry}), folder=tmp_path).errors
    assert error.path.endswith(".torchrun.script"), "a script that is in no source is a fault"
