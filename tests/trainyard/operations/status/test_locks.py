"""Locks of a stack, in a folder and in a bucket."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from trainyard.operations.status.locks import Lock, locks_of

FOLDER = ".pulumi/locks/organization/trainyard/dev"
SINCE = "2026-11-28T20:00:00.123456789Z"
BUCKET = "my-states"


def _content(pid: int = 7, host: str = "another") -> str:
    return json.dumps({"pid": pid, "username": "ana", "hostname": host, "timestamp": SINCE})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\n")
    (tmp_path / FOLDER).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path}?metadata=skip")
    return tmp_path


def test_a_lock_in_a_folder_says_who_holds_it(folder: Path) -> None:
    assert locks_of("dev") == ()
    (folder / FOLDER / "one.json").write_text(_content())
    [lock] = locks_of("dev")
    assert lock == Lock(pid=7, user="ana", host="another", since=SINCE)
    assert lock.lives is None, "nobody here knows a process of another machine"
    assert locks_of("organization/trainyard/dev") == (lock,)
    assert locks_of("team") == locks_of("organization/other/dev") == ()


def test_a_lock_in_a_bucket_is_read_below_the_prefix_of_the_back_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket=BUCKET)
        for prefix, pid in (("", 1), ("team-a/", 2)):
            s3.put_object(Bucket=BUCKET, Key=f"{prefix}{FOLDER}/a.json", Body=_content(pid))
        monkeypatch.setenv("PULUMI_BACKEND_URL", f"s3://{BUCKET}?region=us-east-1")
        assert [each.pid for each in locks_of("dev")] == [1]
        monkeypatch.setenv("PULUMI_BACKEND_URL", f"s3://{BUCKET}/team-a")
        assert [each.pid for each in locks_of("dev")] == [2]
        monkeypatch.setenv("PULUMI_BACKEND_URL", "s3://not-there")
        assert locks_of("dev") == (), "who may not read locks knows of none"


def test_another_back_end_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", "https://api.pulumi.com")
    assert locks_of("dev") == ()


def test_an_engine_of_this_machine_lives_until_it_is_gone(folder: Path) -> None:
    engine = folder / "pulumi"
    shutil.copy("/bin/sleep", engine)
    with subprocess.Popen([engine, "1000"]) as process:
        (folder / FOLDER / "one.json").write_text(_content(process.pid, socket.gethostname()))
        [lock] = locks_of("dev")
        assert lock.lives
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert lock.lives is False, "a zombie updates nothing"
    assert lock.lives is False


def test_a_process_that_is_no_engine_has_only_the_number_of_one() -> None:
    host = socket.gethostname()
    assert Lock(pid=os.getpid(), user="ana", host=host, since=SINCE).lives is False


def test_a_lock_that_was_never_written_belongs_to_nobody_known(folder: Path) -> None:
    (folder / FOLDER / "one.json").write_text("")
    [lock] = locks_of("dev")
    assert (lock.pid, lock.lives) == (0, None)
