"""File systems that are full or away, and checkpoints that are cut."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rehearsal import paths
from rehearsal.kubelet import broken_stores
from rehearsal.kubelet.environment import NotReady

NAMESPACE = ("unshare", "-U", "-r", "-m")
FULL = """
import sys
from pathlib import Path
from rehearsal import paths
from rehearsal.kubelet import broken_stores
folder, store = Path(sys.argv[1]), paths.FILE_SYSTEMS / "fs-1"
(store / "run").mkdir(parents=True)
(store / "run/old").write_text("here")
broken_stores.break_down(folder, broken_stores.FULL)
seen = Path(broken_stores.seen(folder, f"{store}/run"))
print((seen / "old").read_text())
try:
    (seen / "new").write_text("x")
except OSError as error:
    print(error.strerror)
broken_stores.mend(folder)
print(broken_stores.seen(folder, str(store)) == str(store), [*(folder / "full").iterdir()])
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "FILE_SYSTEMS", tmp_path / "file-systems")
    (paths.FILE_SYSTEMS / "fs-1/run").mkdir(parents=True)
    return paths.FILE_SYSTEMS / "fs-1"


def test_in_a_full_file_system_old_files_are_read_and_no_new_one_is_written(tmp_path: Path) -> None:
    if subprocess.run([*NAMESPACE, "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs user namespaces")
    imports = os.pathsep.join([str(paths.HOME), *sys.path])
    environment = os.environ | {"TRAINYARD_REHEARSAL": str(tmp_path / "s"), "PYTHONPATH": imports}
    (tmp_path / "node").mkdir()
    done = subprocess.run(
        [*NAMESPACE, sys.executable, "-c", FULL, str(tmp_path / "node")],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines() == ["here", "No space left on device", "True []"], done.stderr


def test_a_file_system_that_is_away_is_mounted_by_nobody_until_it_is_back(
    store: Path, tmp_path: Path
) -> None:
    broken_stores.break_down(tmp_path, broken_stores.AWAY)
    with pytest.raises(NotReady, match=r"mount.lustre: fs-1: Connection timed out"):
        broken_stores.reached(tmp_path, store / "run", "fsx.csi.aws.com")
    broken_stores.mend(tmp_path)
    broken_stores.reached(tmp_path, store / "run", "fsx.csi.aws.com")


def test_a_folder_of_the_node_is_never_full(store: Path, tmp_path: Path) -> None:
    broken_stores.break_down(tmp_path, broken_stores.FULL)
    assert broken_stores.seen(tmp_path, "/var/log") == "/var/log"


def test_the_newest_file_of_checkpoints_is_cut_in_half(store: Path, tmp_path: Path) -> None:
    for at, name in enumerate(("old", "new")):
        (store / "run" / name).write_text("12345678")
        os.utime(store / "run" / name, (at, at))
    mount = {"target": "/mnt/home", "source": str(store), "inside": "run"}
    root = {"target": "/mnt", "source": "/nowhere", "inside": ""}
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"env": {"CHECKPOINT_DIR": "/mnt/home"}, "mounts": [root, mount]}))
    assert broken_stores.damage_checkpoint(plan) == "new"
    assert (store / "run/new").read_text() == "1234" and (store / "run/old").stat().st_size == 8
    plan.write_text(json.dumps({"env": {}, "mounts": [mount]}))
    assert broken_stores.damage_checkpoint(plan) == "", "a job without checkpoints"
