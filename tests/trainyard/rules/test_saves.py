"""What is said about the place in which a job saves, and about the number of checkpoints that stay."""

from __future__ import annotations

from pathlib import Path

from tests.support.cases.environment import JOB
from tests.support.recording import CHECKOUT
from tests.support.stackfile import Edit, at, planned, without


def warnings(*edits: Edit, folder: Path = CHECKOUT) -> str:
    return "\n".join(str(n) for n in planned(*edits, folder=folder).warnings)


def test_a_job_that_mounts_nothing_that_outlives_its_pods_is_a_warning() -> None:
    says, upstream = (
        "t5-large: it mounts no store: all that it writes ends",
        at(f"{JOB}.runtime", "torch-distributed"),
    )
    bare = (upstream, without(f"{JOB}.checkpoints"))
    assert says in warnings(*bare)
    for edit in (
        at(f"{JOB}.storage", {"home": {"path": "/home/me"}}),
        at(f"{JOB}.allow_no_checkpoint", True),
        at(f"{JOB}.tensorboard", {"store": "home", "directory": "events"}),
    ):
        assert says not in warnings(*bare, edit)
    assert says not in warnings(upstream)


def test_a_number_that_nothing_reads_is_a_warning() -> None:
    keep, says = at(f"{JOB}.checkpoints.keep", 4), "names CHECKPOINT_KEEP"
    assert says in warnings(keep)
    assert says not in warnings()
    handed = at(f"{JOB}.env", {"FLAGS": "--save_total_limit $(CHECKPOINT_KEEP)"})
    assert says not in warnings(keep, handed)
    files = at(f"{JOB}.files", {"sources": ["workloads/checkpoints.py"]})
    assert says not in warnings(keep, files)
    assert says in warnings(keep, at(f"{JOB}.files", {"sources": ["workloads/ddp/train.py"]}))


def test_a_script_that_knows_no_place_for_checkpoints_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("torch.save(model, args.out)\n")
    brings, says = (
        at(f"{JOB}.files", {"sources": ["train.py"]}),
        "names CHECKPOINT_DIR or /checkpoints",
    )

    def said(*edits: Edit) -> str:
        return warnings(*edits, folder=tmp_path)

    starts = "torchrun --rdzv_backend=c10d --rdzv_endpoint=${PET_MASTER_ADDR}:29500 /workspace/train.py --out "
    assert says in said(brings, at(f"{JOB}.script", f"{starts}/tmp/ckpt"))
    assert says not in said(brings, at(f"{JOB}.script", f"{starts}$CHECKPOINT_DIR"))
    assert says not in said(brings, at(f"{JOB}.script", f"{starts}/checkpoints"))
    assert says not in said(), "what the image has, nobody reads"
    mount = at(f"{JOB}.storage", {"scratch": {"path": "/data"}})
    assert says not in said(brings, mount, at(f"{JOB}.script", f"{starts}/data/mine"))
    assert "CHECKPOINT_DIR or /data" in said(
        brings, mount, at(f"{JOB}.script", f"{starts}/tmp/ckpt")
    )
    (tmp_path / "train.py").write_text("torch.save(model, os.environ['CHECKPOINT_DIR'])\n")
    assert says not in said(brings, at(f"{JOB}.script", f"{starts}/tmp/ckpt"))
