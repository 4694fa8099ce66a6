"""workloads/whole.py: a checkpoint that lacks a byte is not resumed from."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.recording import CHECKOUT

PROGRAM = CHECKOUT / "workloads" / "whole.py"
METADATA = CHECKOUT / "tests" / "support" / "checkpoints" / "dcp.metadata"
"""Of torch 2.15: two tensors and a number in __0_0.distcp, as torch.distributed.checkpoint.save wrote it."""
SHARD_BYTES = 4415


def named(folder: Path, *words: str) -> tuple[str, str]:
    """The name of the newest whole checkpoint, and what is said of others."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder), *words], capture_output=True, text=True
    )
    assert done.returncode == (0 if done.stdout else 1), done.stderr
    return Path(done.stdout.strip()).name, done.stderr


def distributed(folder: Path) -> Path:
    folder.mkdir()
    shutil.copy(METADATA, folder / ".metadata")
    (folder / "__0_0.distcp").write_bytes(bytes(SHARD_BYTES))
    return folder / "__0_0.distcp"


def safetensors(folder: Path) -> Path:
    folder.mkdir()
    header = json.dumps(
        {
            "__metadata__": {"format": "pt"},
            "w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        }
    ).encode()
    file = folder / "model-00001-of-00001.safetensors"
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    index = {"weight_map": {"w": file.name}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return file


def by_torch(folder: Path) -> Path:
    folder.mkdir()
    file = folder / "optimizer.pt"
    with zipfile.ZipFile(file, "w") as parts:
        parts.writestr("archive/data.pkl", b"x" * 100)
    return file


KINDS = pytest.mark.parametrize("kind", [distributed, safetensors, by_torch])


@KINDS
def test_the_newest_one_is_named_though_an_older_one_is_touched(
    tmp_path: Path, kind: Callable[[Path], Path]
) -> None:
    for step in (5, 10, 100):
        kind(tmp_path / f"checkpoint-{step}")
    os.utime(tmp_path / "checkpoint-5")
    assert named(tmp_path) == ("checkpoint-100", "")


@KINDS
def test_one_that_lacks_a_byte_is_passed_over(tmp_path: Path, kind: Callable[[Path], Path]) -> None:
    kind(tmp_path / "checkpoint-5")
    damaged = kind(tmp_path / "checkpoint-10")
    os.truncate(damaged, damaged.stat().st_size - 1)
    name, says = named(tmp_path)
    assert name == "checkpoint-5" and "checkpoint-10 is not whole" in says


@KINDS
def test_one_whose_file_is_empty_is_put_aside(tmp_path: Path, kind: Callable[[Path], Path]) -> None:
    os.truncate(kind(tmp_path / "checkpoint-10"), 0)
    assert named(tmp_path, "--aside")[0] == ""
    assert [each.name for each in tmp_path.iterdir()] == ["broken-checkpoint-10"]
    assert "no whole checkpoint" in named(tmp_path)[1]


def test_a_distributed_one_without_its_last_file_did_not_end(tmp_path: Path) -> None:
    distributed(tmp_path / "step-5")
    distributed(tmp_path / "step-10").with_name(".metadata").unlink()
    name, says = named(tmp_path)
    assert name == "step-5" and "has no .metadata: the save did not end" in says


def test_a_shard_that_is_gone_is_named(tmp_path: Path) -> None:
    distributed(tmp_path / "step-10").unlink()
    assert "__0_0.distcp is not there" in named(tmp_path)[1]


def test_nothing_of_a_pickle_is_run(tmp_path: Path) -> None:
    class Deletes:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, (f"touch {tmp_path}/ran",)

    distributed(tmp_path / "step-10").with_name(".metadata").write_bytes(pickle.dumps(Deletes()))
    assert named(tmp_path)[0] == "step-10", "nobody knows what it must have; its shard is there"
    assert not (tmp_path / "ran").exists()


def test_a_save_that_goes_on_and_other_files_are_no_checkpoints(tmp_path: Path) -> None:
    by_torch(tmp_path / "checkpoint-5")
    (tmp_path / "step-00000010.pt.new").write_bytes(b"")
    (tmp_path / "latest").write_text("checkpoint-5")
    assert named(tmp_path) == ("checkpoint-5", "")


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="real checkpoints need torch: make train-real"
)
def test_what_torch_writes_is_whole_and_without_its_end_it_is_not(tmp_path: Path) -> None:
    write = (
        "import sys, torch, torch.distributed.checkpoint as dcp\n"
        "state = {'w': torch.ones(1000), 'step': 3}\n"
        "dcp.save(state, checkpoint_id=f'{sys.argv[1]}/step-10', no_dist=True)\n"
        "torch.save(state, f'{sys.argv[1]}/step-5.pt')\n"
    )
    subprocess.run([sys.executable, "-c", write, str(tmp_path)], check=True, capture_output=True)
    assert named(tmp_path)[0] == "step-10"
    shard = tmp_path / "step-10" / "__0_0.distcp"
    os.truncate(shard, shard.stat().st_size - 1)
    assert named(tmp_path)[0] == "step-5.pt"
    os.truncate(tmp_path / "step-5.pt", 500)
    assert named(tmp_path)[0] == ""
