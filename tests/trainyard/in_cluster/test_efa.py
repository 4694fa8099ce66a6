"""trainyard/in_cluster/efa: what it serves of a node's EFA devices, and how it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.metrics import RECORDED
from tests.support.patience import PATIENCE, until
from tests.support.ports import free_port
from tests.support.programs import program_fixture
from trainyard.parts.programs import program_files

DEVICES = ("rdmap79s0", "rdmap80s0")
program = program_fixture("efa")


def device(system: Path, name: str, **counters: int | str) -> Path:
    """An EFA device, as a link in /sys leads to it; its folder of counters."""
    place = f"devices/pci0000:44/{name}/infiniband/{name}"
    counted = system / place / "ports/1/hw_counters"
    counted.mkdir(parents=True)
    known = system / "class/infiniband"
    known.mkdir(parents=True, exist_ok=True)
    (known / name).symlink_to(f"../../{place}")
    for counter, value in {"lifespan": 10, "tx_pkts": 9, **counters}.items():
        (counted / counter).write_text(f"{value}\n")
    return counted


@pytest.fixture
def node(tmp_path: Path, program: ModuleType) -> Path:
    """/sys of a node with two devices."""
    for name in DEVICES:
        device(tmp_path, name, **{each: 2**40 + n for n, each in enumerate(program.COUNTERS)})
    return tmp_path


def test_each_counter_of_each_device_is_served(program: ModuleType, node: Path) -> None:
    recorded = (RECORDED / "efa.prom").read_text().splitlines()[2:]
    assert program.metrics(node).splitlines() == recorded
    assert len(recorded) == len(program.COUNTERS) * (1 + len(DEVICES))


def test_what_a_device_does_not_count_is_left_out(program: ModuleType, tmp_path: Path) -> None:
    device(tmp_path, "rdmap0s6", tx_bytes=5, rx_bytes="")
    found = program.metrics(tmp_path)
    assert found.splitlines() == [
        "# TYPE node_amazonefa_tx_bytes counter",
        'node_amazonefa_tx_bytes{device="rdmap0s6",port="1"} 5',
    ]


def test_a_node_without_devices_serves_nothing(program: ModuleType, tmp_path: Path) -> None:
    assert program.metrics(tmp_path) == ""


def test_a_scrape_sees_the_counters_of_its_moment_until_sigterm(tmp_path: Path) -> None:
    """Its own process, with the files of its pod."""
    for name, text in program_files("efa").items():
        (tmp_path / name).write_text(text)
    counted, port = device(tmp_path, "rdmap0s6", tx_bytes=5), free_port()
    command = [sys.executable, "-B", "efa.py", ".", str(port)]
    process = subprocess.Popen(command, cwd=tmp_path)
    try:
        assert until(lambda: _served(port).endswith(" 5\n"))
        (counted / "tx_bytes").write_text("6\n")
        assert _served(port).endswith(" 6\n")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
    finally:
        process.kill()
        process.wait()


def _served(port: int) -> str:
    try:
        url = f"http://127.0.0.1:{port}/metrics"
        return urllib.request.urlopen(url, timeout=PATIENCE).read().decode()
    except OSError:
        return ""
