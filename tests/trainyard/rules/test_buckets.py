"""What is said about scripts that name S3."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cases.environment import JOB
from tests.support.stackfile import Edit, at, planned
from trainyard.derive.scripts import knows_s3

RUN = "torchrun run_clm.py"


def said(words: str, script: str, *edits: Edit) -> list[str]:
    """Warnings with these words about the dev file's job with another script."""
    found = planned(at(f"{JOB}.script", script), *edits).warnings
    assert all(each.path == f"environment.{JOB}.script" for each in found if words in each.text)
    return [each.text for each in found if words in each.text]


def test_an_address_where_transformers_expects_a_folder_is_a_warning() -> None:
    for option in ("--output_dir s3://bucket/out", '--output-dir="s3://bucket/out"'):
        [text] = said("makes a folder", f"{RUN} {option}")
        assert text.startswith(
            "transformers makes a folder s3:/bucket/out in the container for s3://bucket/out, and the model is gone"
        )
        assert text.endswith("save below /checkpoints, and let a Lustre store export to S3")


@pytest.mark.parametrize(
    "script",
    [
        f"{RUN} --output_dir /checkpoints/a",
        f"{RUN} --data_dir s3://bucket/in",
        "litgpt pretrain --output_dir s3://bucket/out",
        "torchrun lightning_train.py --output_dir s3://bucket/out",
        f"pip install s3fs fsspec; {RUN} --output_dir s3://bucket/out",
    ],
)
def test_a_program_that_may_write_to_an_address_is_left_alone(script: str) -> None:
    assert said("makes a folder", script) == []


@pytest.mark.parametrize("command", ["aws s3 sync", "aws --region us-east-1 s3 cp", "s5cmd cp"])
def test_a_command_for_s3_without_an_identity_is_a_warning(command: str) -> None:
    script = f"{command} s3://bucket/in /data\ntorchrun t.py"
    [text] = said("finds no AWS identity", script)
    assert text.startswith(f"`{command.rpartition(' ')[0]}` finds no AWS identity in its pod")
    assert "write data: {<name>: {from_s3: …}}" in text


@pytest.mark.parametrize(
    ("script", "more"),
    [
        ("aws s3 cp --no-sign-request s3://public/in /data", {}),
        ("aws --endpoint-url http://minio s3 cp s3://b/in /data", {}),
        ("export AWS_ACCESS_KEY_ID=$(cat /k/id); aws s3 ls s3://b", {}),
        ("aws s3 ls s3://b", {"env": {"AWS_PROFILE": "a"}}),
        ("aws s3 ls s3://b", {"secrets": {"AWS_ACCESS_KEY_ID": {"secret": "a", "key": "b"}}}),
        ("# aws s3 ls s3://b\ntorchrun t.py", {}),
        ("torchrun t.py", {}),
    ],
)
def test_a_command_that_brings_an_identity_or_needs_none_is_left_alone(
    script: str, more: dict[str, Any]
) -> None:
    edits = [at(f"{JOB}.{name}", value) for name, value in more.items()]
    assert said("finds no AWS identity", script, *edits) == []


@pytest.mark.parametrize(
    ("script", "knows"),
    [
        ("aws s3 sync /out s3://bucket/out", True),
        ("aws s3 cp - s3://bucket/out < log", True),
        ("s5cmd --numworkers 8 cp '/out/*' s3://bucket/out/", True),
        ("python -c \"import boto3; boto3.client('s3')\"", True),
        ("torchrun t.py --upload_to s3://bucket/out", True),
        ("aws s3 sync --quiet s3://bucket/in /data", False),
        ("aws s3 sync \\\n  s3://bucket/in \\\n  /data", False),
        ("s5cmd cp 's3://bucket/in/*' /data", False),
        ("torchrun t.py --train_data s3://bucket/in", False),
        ("aws s3 cp s3://bucket/in /data; aws s3 cp /out s3://bucket/out", True),
        ("torchrun t.py", False),
    ],
)
def test_a_script_that_only_reads_from_s3_copies_nothing_there(script: str, knows: bool) -> None:
    assert knows_s3(script) == knows


def test_a_relative_path_is_lost_where_s3_is_only_read() -> None:
    reads, writes = "aws s3 sync s3://b/in /data", "aws s3 sync out s3://b/out"
    lost = "is lost when the container starts again"
    assert len(said(lost, f"{reads}\ntorchrun t.py --output_dir out")) == 1
    assert said(lost, f"torchrun t.py --output_dir out\n{writes}") == []
