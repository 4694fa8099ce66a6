"""trainyard/in_cluster/while_watched: a program runs while somebody is at its door, and gets its variables there."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.patience import PATIENCE, until
from tests.support.ports import free_port
from trainyard.parts.programs import program_files

TEXT = program_files("while_watched")["while_watched.py"]
SERVES = """
import os, signal, socket, sys
signal.alarm(120)
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    print("token", len(os.environ["TOKEN"]), flush=True)
    while True:
        server.accept()[0].close()
"""


@contextmanager
def watched(**more: Any) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The program as the pod starts it, and its door."""
    port, door = free_port(), free_port()
    settings = {
        "command": [sys.executable, "-c", SERVES, str(port)],
        "port": port,
        "door": door,
        "seconds": 60,
        "alone_seconds": 60,
    }
    words = [sys.executable, "-c", TEXT, json.dumps(settings | more)]
    started = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert until(lambda: _open(door))
        yield started, door
    finally:
        started.terminate()  # by SIGKILL it would leave its program, as no pod ends here
        started.wait(PATIENCE)


def _open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def at(door: int, said: bytes = b'{"TOKEN": "a token"}\n') -> socket.socket:
    talk = socket.create_connection(("127.0.0.1", door), PATIENCE)
    talk.sendall(said)
    return talk


def test_it_says_when_its_program_listens_and_again_to_the_next_connection() -> None:
    with watched() as (_, door):
        first = at(door)
        assert first.recv(64) == b"ready\n"
        first.close()
        assert at(door).recv(64) == b"ready\n", "a tool that has lost its connection"


def test_its_variables_come_through_the_door_and_into_no_log() -> None:
    with watched() as (program, door):
        assert program.stdout and at(door).recv(64)
        assert program.stdout.readline() == "token 7\n"
        os.kill(program.pid, signal.SIGTERM)
        assert "a token" not in program.stdout.read() and program.wait() == 0


def test_nothing_starts_before_the_whole_first_line() -> None:
    with watched() as (_, door), at(door, b'{"TOKEN": ') as talk:
        talk.settimeout(1.0)
        with pytest.raises(TimeoutError):
            talk.recv(64)
        talk.settimeout(PATIENCE)
        talk.sendall(b'"b"}\n.')
        assert talk.recv(64) == b"ready\n"


def test_it_ends_where_nobody_is_there_any_more() -> None:
    with watched(alone_seconds=5) as (program, door):
        talk = at(door)
        for _ in range(12):
            talk.sendall(b".")
            time.sleep(0.5)
        assert program.poll() is None, "somebody was there"
        talk.close()
        assert program.stdout and "nobody was connected for 5 s" in program.stdout.read()
        assert program.wait() == 0


def test_it_ends_where_nobody_has_ever_come_and_when_its_time_is_over() -> None:
    with watched(alone_seconds=5) as (program, _):
        assert program.stdout and program.stdout.read() == "[nobody was connected for 5 s]\n"
    with watched(seconds=5) as (program, door), at(door):
        assert program.stdout and "its time is over: 5 s" in program.stdout.read()


def test_it_ends_with_its_program_and_with_exit_code_0() -> None:
    """A pod that fails would be started again."""
    with watched(command=["/bin/sh", "-c", "exit 3"]) as (program, door), at(door):
        assert program.stdout and "the program ended with exit code 3" in program.stdout.read()
        assert program.wait() == 0


def test_an_image_without_the_program_is_named_with_the_way_out() -> None:
    with watched(command=["no-tensorboard"]) as (program, door), at(door):
        assert program.stdout
        assert program.stdout.read() == (
            "[the image has no program no-tensorboard: take an image that has it with --image (docs/runs.md,"
            " TensorBoard and notebooks)]\n"
        )
        assert program.wait() == 0


def test_processes_that_the_program_has_started_end_with_it() -> None:
    command = ["/bin/sh", "-c", "sleep 300 & echo $!; wait"]
    with watched(command=command, alone_seconds=5) as (program, door):
        at(door).close()
        assert program.stdout
        pid = int(program.stdout.readline())
        assert "nobody" in program.stdout.read()
        assert until(lambda: not _runs(pid))


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
