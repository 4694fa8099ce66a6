"""Paths of stores that cannot do what the program does there. Rows as in blanks.py."""

from __future__ import annotations

from tests.corpus.written.blanks import Row
from tests.corpus.written.owned import POD, SAVE, TORCHRUN, entry, env, line, saves

STORES: dict[str, Row] = {
    "saves on S3": (*saves("--output_dir /objects/out"), "command", "/objects/out", False),
    "checkpoints on S3": (*saves("--save-path=/objects/ckpt"), "command", "/objects/ckpt", False),
    "a log that grows on S3": (
        *saves("--resume 2>&1 | tee -a /objects/train.log"),
        "command",
        "/objects/train.log",
        False,
    ),
    "lines that are appended on S3": (
        *line("date >> /objects/starts.txt"),
        "command",
        "/objects/starts.txt",
        False,
    ),
    "a file that is renamed on S3": (
        *line("mv /objects/new /objects/old"),
        "command",
        "/objects/old",
        False,
    ),
    "a link on S3": (
        *line("ln -sfn /scratch/data /objects/data"),
        "command",
        "/objects/data",
        False,
    ),
    "a clone on S3": (
        *line(
            "git clone https://github.com/a/b /objects/b && git -C /objects/b checkout 0123456789abcdef"
        ),
        "command",
        "/objects/b",
        False,
    ),
    "packages on S3": (
        *line("pip install --no-index --find-links /wheels --target /objects/pkgs flash-attn"),
        "command",
        "/objects/pkgs",
        False,
    ),
    "a cache of models on S3": (*env("HF_HOME", "/objects/hf"), "env", "/objects/hf", False),
    "a database on S3": (
        *env("MLFLOW_TRACKING_URI", "sqlite:////objects/ml.db"),
        "env",
        "/objects/ml.db",
        False,
    ),
    "logs of TensorBoard on S3": (
        *saves("--logging_dir /objects/tb"),
        "command",
        "/objects/tb",
        False,
    ),
    "a relative folder of saves": (*saves("--output_dir ./out"), "command", "./out", False),
    "a save on what is mounted to be read": (
        "fsdp",
        "- {name: fast, mountPath: /scratch}\n                - {name: slow",
        "- {name: fast, mountPath: /scratch, readOnly: true}\n                - {name: slow",
        "command",
        "/scratch/out",
        False,
    ),
    "a user who may not write": (
        "exec",
        POD,
        f"          securityContext: {{runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000}}\n{POD}",
        "runAsUser",
        "1000",
        False,
    ),
    "packages of each start on EFS": (
        *line("pip install --no-index --find-links /wheels --target /home/team/pkgs flash-attn"),
        "command",
        "/home/team/pkgs",
        False,
    ),
    "compiled kernels on EFS": (
        *env("TRITON_CACHE_DIR", "/home/team/triton"),
        "env",
        "/home/team/triton",
        False,
    ),
    "a database on EFS": (
        *env("WANDB_DIR", "/home/team/wandb")[:1],
        SAVE,
        "--storage sqlite:////home/team/optuna.db",
        "command",
        "/home/team/optuna.db",
        False,
    ),
    "an archive of small files on EFS": (
        *line("tar xf /scratch/imagenet.tar -C /home/team/imagenet"),
        "command",
        "/home/team/imagenet",
        False,
    ),
    "checkpoints of an entry on S3": (
        "entry",
        "jobs.w.checkpoints",
        {"store": "results", "directory": "w"},
        "checkpoints",
        "results",
        True,
    ),
    "saves of an entry on S3": (
        *entry(f"{TORCHRUN} /app/train.py --checkpoint_dir /results/ckpt"),
        "script",
        "/results/ckpt",
        False,
    ),
    "one path twice": (
        "fsdp",
        "mountPath: /objects",
        "mountPath: /scratch",
        "mountPath",
        "/scratch",
        True,
    ),
}
