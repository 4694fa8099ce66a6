"""The loader reads a bucket of the account, signed by itself, as the role that its pod has."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.rehearsal.aws.test_permissions import Somebody
from tests.rehearsal.aws_world import REGION, Account, served
from tests.support.programs import program_fixture
from trainyard.objects.iam.policies import document
from trainyard.objects.teams.team_identity import s3_statements

program = program_fixture("loader")
FILES = {f"tokens/{n:04}.bin": bytes([n % 251]) * 17 for n in range(1003)}
"""More than one answer lists."""


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with served(tmp_path, monkeypatch) as account:
        yield account


class Pod:
    """A pod that loads prefixes of one bucket into directories."""

    def __init__(self, account: Account, program: ModuleType, folder: Path) -> None:
        self.s3, self._load, self._folder = account.client("s3"), program.load, folder
        where = {"LocationConstraint": REGION}
        self.s3.create_bucket(Bucket="our-sets", CreateBucketConfiguration=where)
        self.role = Somebody(account, "loads")

    def put(self, files: Mapping[str, bytes]) -> None:
        for name, content in files.items():
            self.s3.put_object(Bucket="our-sets", Key=name, Body=content)

    def may_read(self, prefix: str) -> None:
        may = s3_statements(reads=[f"s3://our-sets/{prefix}"], writes=(), keys=())
        self.role.may(*document(*may)["Statement"])

    def load(self, prefix: str, to: str) -> None:
        bucket = sys.modules["sources"].Bucket("our-sets", prefix, REGION, ())
        place = sys.modules["place"].Place(self._folder / to, f"s3://our-sets/{prefix}")
        self._load(bucket, place, {}, pause=0.0)

    def has(self, to: str) -> dict[str, bytes]:
        """The files of a directory, without those of the loader."""
        found = {
            str(each.relative_to(self._folder / to)): each
            for each in (self._folder / to).rglob("*")
            if each.is_file()
        }
        return {name: each.read_bytes() for name, each in found.items() if not name.startswith(".")}


@pytest.fixture
def pod(
    account: Account, program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Pod:
    pod = Pod(account, program, tmp_path)
    monkeypatch.setenv("AWS_ENDPOINT_URL", account.url)
    for name, value in pod.role.keys.items():
        monkeypatch.setenv(name, value)
    return pod


def test_it_lists_and_reads_a_prefix_and_nothing_else(pod: Pod, tmp_path: Path) -> None:
    pod.put({f"corpus/{name}": content for name, content in FILES.items()})
    pod.put({"corpus/tokens/": b"", "secret/x": b"no"})
    broken = sys.modules["sources"].Broken
    with pytest.raises(broken, match="S3 answers 403"):
        pod.load("corpus/", "to")
    pod.may_read("corpus/")
    pod.load("corpus/", "to")
    assert pod.has("to") == FILES
    with pytest.raises(broken, match="S3 answers 403"):
        pod.load("secret/", "other")
    assert not (tmp_path / "other/.trainyard-whole").exists()


OLD = {"corpus/a.bin": b"a" * 70_000, "corpus/b.bin": b"b" * 70_000}
NEW = {name: content.upper() for name, content in OLD.items()}


def in_the_directory(objects: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name.removeprefix("corpus/"): content for name, content in objects.items()}


def test_an_object_that_is_replaced_between_two_tries_is_never_glued(
    pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first file is there as a whole by then, and a half of the second."""
    pod.put(OLD)
    pod.may_read("corpus/")
    sources = sys.modules["sources"]
    read = sources.Bucket.read

    def cut(bucket: Any, file: Any, offset: int) -> tuple[Any, int]:
        opened, start = read(bucket, file, offset)
        return (io.BytesIO(opened.read(10_000)) if file.path == "b.bin" else opened), start

    with monkeypatch.context() as patch, pytest.raises(sources.Broken, match="of 70000 bytes came"):
        patch.setattr(sources.Bucket, "read", cut)
        pod.load("corpus/", "to")
    assert pod.has("to") == in_the_directory({"corpus/a.bin": OLD["corpus/a.bin"]})
    pod.put(NEW)
    pod.load("corpus/", "to")
    assert pod.has("to") == in_the_directory(NEW)


def test_an_object_that_is_replaced_after_the_list_is_loaded_by_the_next_try(
    pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod.put(OLD)
    pod.may_read("corpus/")
    sources = sys.modules["sources"]
    files = sources.Bucket.files

    def replaced(bucket: Any) -> Any:
        found = files(bucket)
        pod.put(NEW)
        return found

    with monkeypatch.context() as patch, pytest.raises(sources.Broken, match="was replaced"):
        patch.setattr(sources.Bucket, "files", replaced)
        pod.load("corpus/", "to")
    assert pod.has("to") == {}
    pod.load("corpus/", "to")
    assert pod.has("to") == in_the_directory(NEW)
