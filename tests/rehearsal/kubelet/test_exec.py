"""`kubectl exec`: the frames of SPDY, and a command with its streams, exit code and terminal."""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rehearsal.kubelet.exec import ExecRefused, Session, Wanted, status, wanted
from rehearsal.kubelet.process import Simulated
from rehearsal.kubelet.spdy import DICTIONARY, Data, Frames, Left, Opened, data
from tests.support.patience import PATIENCE, until

PYTHON = (sys.executable, "-c")


def test_the_dictionary_is_that_of_the_draft() -> None:
    assert len(DICTIONARY) == 1423 and zlib.adler32(DICTIONARY) == 0xE3C6A7C2


def test_frames_come_whole_however_the_bytes_are_cut() -> None:
    ours, theirs = Frames(), Frames()
    sent = theirs.open(1, {"streamtype": "error"}) + theirs.open(3, {"streamtype": "stdout"})
    sent += data(3, b"hello", last=True) + struct.pack(">HHIII", 0x8003, 3, 8, 3, 5)
    events = [event for byte in sent for event in ours.feed(bytes([byte]))]
    assert events == [
        Opened(1, {"streamtype": "error"}),
        Opened(3, {"streamtype": "stdout"}),
        Data(3, b"hello", True),
        Left(3),
    ]


def test_a_ping_is_answered_and_a_farewell_ends_the_connection() -> None:
    frames, ping = Frames(), struct.pack(">HHII", 0x8003, 6, 4, 7)
    assert [*frames.feed(ping)] == [] and frames.answers == [ping]
    assert [*frames.feed(struct.pack(">HHIII", 0x8003, 7, 8, 3, 0))] == [Left(0)]


class Client:
    """What the API server does: opens the streams, types, and reads until all have ended."""

    def __init__(self, ours: socket.socket, streams: set[str]) -> None:
        self._socket, self.frames = ours, Frames()
        self._ids = {name: 2 * number + 1 for number, name in enumerate(sorted(streams))}
        self.said = dict.fromkeys(streams, b"")
        for name, number in self._ids.items():
            ours.sendall(self.frames.open(number, {"streamtype": name}))

    def types(self, text: bytes, *, last: bool = False, stream: str = "stdin") -> None:
        self._socket.sendall(data(self._ids[stream], text, last=last))

    def leaves(self) -> None:
        self._socket.close()

    def reads(self, until: bytes | None = None) -> dict[str, bytes]:
        """Everything, or what has come when `until` is there."""
        names, ended = {number: name for name, number in self._ids.items()}, set[int]()
        while ended != {*names} and (content := self._socket.recv(65536)):
            for event in self.frames.feed(content):
                if isinstance(event, Data):
                    self.said[names[event.stream]] += event.content
                    ended |= {event.stream} if event.last else set()
            if until is not None and until in self.said["stdout"]:
                break
        return self.said


@pytest.fixture
def open_session() -> Iterator[Any]:
    """A function that starts a command, and returns its client."""
    opened: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def begin(*argv: str, streams: set[str], tty: bool = False) -> Client:
        ours, theirs = socket.socketpair()
        ours.settimeout(PATIENCE)
        asked = Wanted(argv=[*argv], env=dict(os.environ), tty=tty, streams=frozenset(streams))
        server: Any = SimpleNamespace(
            recv=theirs.recv,
            sendall=theirs.sendall,
            fileno=theirs.fileno,
            pending=lambda: 0,
            settimeout=theirs.settimeout,
        )
        threads.append(threading.Thread(target=Session(server, asked).run, daemon=True))
        threads[-1].start()
        opened.extend((ours, theirs))
        return Client(ours, streams)

    yield begin
    for ours in opened[::2]:
        ours.close()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    for theirs in opened[1::2]:
        theirs.close()


OUTPUTS = {"error", "stdout", "stderr"}


def test_a_command_has_its_output_its_errors_and_its_exit_code(open_session: Any) -> None:
    script = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    said = open_session(*PYTHON, script, streams=OUTPUTS).reads()
    assert (said["stdout"], said["stderr"]) == (b"out\n", b"err\n")
    assert json.loads(said["error"])["details"]["causes"][0]["message"] == "3"


def test_what_is_typed_reaches_the_command_until_its_end(open_session: Any) -> None:
    client = open_session("cat", streams={*OUTPUTS, "stdin"})
    client.types(b"one\n")
    client.types(b"two\n", last=True)
    said = client.reads()
    assert said["stdout"] == b"one\ntwo\n" and json.loads(said["error"])["status"] == "Success"


def test_much_output_comes_whole(open_session: Any) -> None:
    said = open_session(*PYTHON, "print('x' * 300_000)", streams=OUTPUTS).reads()
    assert len(said["stdout"]) == 300_001


def test_a_terminal_has_a_size_and_echoes(open_session: Any) -> None:
    client = open_session("/bin/sh", streams={"error", "stdin", "stdout", "resize"}, tty=True)
    client.types(json.dumps({"Width": 97, "Height": 31}).encode(), stream="resize")
    client.types(b"tty && stty size\n")
    client.reads(until=b"31 97")
    client.types(b"exit 4\n")
    said = client.reads()
    assert b"/dev/pts" in said["stdout"]
    assert json.loads(said["error"])["details"]["causes"][0]["message"] == "4"


def test_a_command_whose_child_goes_on_ends_all_the_same(open_session: Any) -> None:
    said = open_session("/bin/sh", "-c", "sleep 30 & echo done", streams=OUTPUTS).reads()
    assert said["stdout"] == b"done\n"


def test_a_client_that_leaves_ends_the_command(open_session: Any) -> None:
    client = open_session("/bin/sh", "-c", "echo $$; exec sleep 100", streams=OUTPUTS)
    pid = int(client.reads(until=b"\n")["stdout"])
    client.leaves()
    assert until(lambda: not Path(f"/proc/{pid}").exists())


def test_success_and_failure_are_said_as_kubelets_say_them() -> None:
    assert json.loads(status(0)) == {"metadata": {}, "status": "Success"}
    assert json.loads(status(137))["reason"] == "NonZeroExitCode"


def _pod(process: Any) -> Any:
    container = SimpleNamespace(name="node", process=process, spec={"image": "trainer:1"})
    return SimpleNamespace(containers=[container])


def test_what_does_not_run_cannot_be_entered() -> None:
    with pytest.raises(ExecRefused, match='"node" is not on this node'):
        wanted(None, "node", [])
    with pytest.raises(ExecRefused, match="does not run"):
        wanted(_pod(None), "node", [])
    with pytest.raises(ExecRefused, match="nothing of trainer:1 runs"):
        wanted(_pod(Simulated(None)), "node", [])


def test_only_this_protocol_is_spoken() -> None:
    assert Session.PROTOCOL == "v4.channel.k8s.io"
