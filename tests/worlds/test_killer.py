"""What the crawl kills with: an engine and its plugin end at the boundary that it aims at, and not
before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2 as pb
from pulumi.runtime.proto import provider_pb2_grpc as rpc

from rehearsal import processes
from tests.worlds.crawl import KILLER, Crawl

PLUGIN = """
import os
from rehearsal.providers.plugin import Plugin
from rehearsal.providers.protocol import serve

class Maker(Plugin):
    name, version = "maker", "1.0.0"

    def create(self, call, inputs):
        if not call.preview:
            open(os.environ["MADE"], "a").write(call.urn)
        return "id", {}

serve(Maker())
"""
URN = "urn:pulumi:dev::project::pkg:index:Thing::one"


class Engine:
    """A process that leads a session and has started a plugin, as an engine does."""

    def __init__(self, folder: Path) -> None:
        self.made = folder / "made"
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", f"{sys.executable} -c '{PLUGIN}' & wait"],
            env=os.environ
            | {
                "PYTHONPATH": f"{KILLER}:{Path.cwd()}",
                "TRAINYARD_CRAWL": str(folder),
                "MADE": str(self.made),
            },
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        assert self.process.stdout
        port = int(self.process.stdout.readline())
        self.plugin = rpc.ResourceProviderStub(grpc.insecure_channel(f"127.0.0.1:{port}"))

    def create(self, *, preview: bool = False) -> str:
        """The id of what it makes; "lost" where no answer comes."""
        try:
            return self.plugin.Create(pb.CreateRequest(urn=URN, preview=preview)).id
        except grpc.RpcError:
            return "lost"

    def ended(self) -> bool:
        return bool(processes.wait(lambda: self.process.poll() is not None, 10))


@pytest.mark.parametrize(("when", "answer"), [("before", "lost"), ("after", "id")])
def test_an_operation_is_hit_once_before_or_after_its_answer(
    when: str, answer: str, tmp_path: Path
) -> None:
    crawl = Crawl(folder=tmp_path)
    crawl.aim(when, 0, 8)
    first = Engine(tmp_path)
    assert first.create(preview=True) == "id"
    assert not first.made.exists()
    assert (first.create(), first.ended(), first.made.read_text()) == (answer, True, URN)
    assert crawl.hits() == [f"Create {URN}"]
    second = Engine(tmp_path)
    assert (second.create(), second.process.poll(), crawl.hits()) == ("id", None, [])
    second.process.kill()


def test_operations_before_the_first_one_are_left_out(tmp_path: Path) -> None:
    crawl = Crawl(folder=tmp_path)
    crawl.aim("before", 1, 8)
    engine = Engine(tmp_path)
    assert (engine.create(), engine.create(), engine.ended()) == ("id", "lost", True)
