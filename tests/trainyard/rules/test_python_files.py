"""Python files that a job brings, without what they import."""

from __future__ import annotations

from pathlib import Path

from trainyard.rules.python_files import python_warnings
from trainyard.settings.job import FilesConfig, JobConfig

MODULE = "unless the image has that module, the job ends with ModuleNotFoundError"


def _said(folder: Path, *sources: str) -> list[str]:
    job = JobConfig(
        nodes=1,
        pool="g6e",
        image="registry.example.com/train:1",
        files=FilesConfig(sources=sources),
    )
    return [str(warning) for warning in python_warnings("jobs.a", job, folder)]


def _written(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        file = folder / name.replace("__", "/").replace("_py", ".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def test_a_module_that_stays_in_the_checkout_is_named(tmp_path: Path) -> None:
    text = "import os, torch\nfrom mydata import rows\nimport common.io\n"
    _written(tmp_path, lab__train_py=text, lab__mydata_py="", common_py="")
    assert _said(tmp_path, "lab/train.py") == [
        f"jobs.a.files.sources: lab/train.py imports common, and does not bring common.py: {MODULE}; add common.py",
        f"jobs.a.files.sources: lab/train.py imports mydata, and does not bring lab/mydata.py: {MODULE}; add"
        " lab/mydata.py",
    ]
    assert _said(tmp_path, "lab/train.py", "lab/mydata.py", "common.py") == []


def test_a_package_that_stays_in_the_checkout_belongs_into_the_image(tmp_path: Path) -> None:
    _written(tmp_path, train_py="def f():\n    from data.sets import x\n")
    (tmp_path / "data").mkdir()
    assert _said(tmp_path, "train.py") == []
    (tmp_path / "data" / "__init__.py").write_text("")
    [said] = _said(tmp_path, "train.py")
    assert said.endswith("put the package into the image") and "a package of this checkout" in said


def test_a_file_that_python_cannot_read_is_named(tmp_path: Path) -> None:
    _written(tmp_path, train_py="x = 1\nprint('a'\n")
    [said] = _said(tmp_path, "train.py")
    assert "cannot read train.py: '(' was never closed" in said and "line 2" in said
