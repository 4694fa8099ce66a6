"""`trainyard prove` in a rehearsal: killed in the middle, resumed to its end, and the account is empty after."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator

import pytest
import yaml

from rehearsal.aws.identity import ACCOUNT
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import Harness, Object, rehearsing
from trainyard.catalog.versions import TRAINYARD

pytestmark = [pytest.mark.world, pytest.mark.apart, NEEDS_A_WORLD]
ADDRESS = "203.0.113.7"
STACK: Object = {
    "aws:region": "us-east-1",
    "aws:allowedAccountIds": [ACCOUNT],
    "trainyard:environment": {
        "zone": "us-east-1a",
        "cluster": {
            "version": "1.35",
            "endpoint": "public-and-private",
            "public_access_cidrs": [f"{ADDRESS}/32"],
            "log_retention_days": 1,
        },
        "trainer": {"version": "2.1.0", "runtimes": ["torch-distributed"]},
    },
}
"""An environment without pools and stores: the steps write theirs."""
SPEED = "120"
WORDS = ("--image", "trainer:1", "--look-after", "0.05", "--yes", "--rehearsal")
KILL_SECONDS = 400
"""How long it may take until the second stack is being made."""
GONE = ("deleted", "terminated")


@pytest.fixture(scope="module")
def proved() -> Iterator[Harness]:
    """A world with the stack file, in which nothing is made yet."""
    with rehearsing("prove", {"Pulumi.prove.yaml": yaml.safe_dump({"config": STACK})}) as made:
        yield made


def _words(*more: str) -> tuple[str, ...]:
    typed = ("prove", "--stack", "prove", *WORDS, *more)
    return ("prove", "--stack", "prove", "--speed", SPEED, "--", *typed)


def _proof(proved: Harness) -> Object:
    return json.loads((proved.checkout / "prove.json").read_text())


def _left(proved: Harness) -> list[Object]:
    return [each for each in proved.inventory() if each["state"] not in GONE]


def _states(proof: Object) -> dict[str, str]:
    return {step["name"]: step["state"] for step in proof["steps"]}


def _makes_lustre(proved: Harness) -> bool:
    """True while the step `gpu` has begun to make its file system. Before that no world may be there."""
    file = proved.checkout / "prove.json"
    if not file.exists() or _states(_proof(proved)).get("gpu") != "running":
        return False
    return any(each["type"] == "fsx-file-system" for each in _left(proved))


def _kill_while_lustre_is_made(proved: Harness, *words: str) -> None:
    """Begin, and kill the program and its engine in the middle of the step `gpu`."""
    begun = proved.start(*words)
    deadline = time.monotonic() + KILL_SECONDS
    while not _makes_lustre(proved):
        assert time.monotonic() < deadline and begun.poll() is None, proved.log.read_text()
        time.sleep(1)
    assert proved.kill("-m trainyard prove") and proved.kill("bin/pulumi")
    begun.wait()
    assert _states(_proof(proved)) == {"questions": "done", "small": "done", "gpu": "running"}


def test_killed_in_the_middle_it_goes_on_to_its_end_and_leaves_nothing(proved: Harness) -> None:
    _kill_while_lustre_is_made(proved, *_words("--at-most-dollars", "15"))
    assert proved.do(*_words()) == 0, proved.log.read_text()
    proof = _proof(proved)
    every = ("questions", "small", "gpu", "run", "destroy", "left")
    assert _states(proof) == dict.fromkeys(every, "done"), proof
    assert proof["left"] == [] and _left(proved) == []
    assert 0 < float(proof["usd"]) < 15 and proof["versions"]["Trainyard"] == TRAINYARD


def test_it_has_seen_times_nodes_and_what_was_refused(proved: Harness) -> None:
    proof = _proof(proved)
    rows = {one["row"] for one in proof["seen"]}
    assert {"eks.cluster", "all of small", "ec2.instance-boot", "eks.cluster.delete"} <= rows
    assert {node["instance_type"] for node in proof["nodes"]} >= {"g6.8xlarge", "m7i.4xlarge"}
    assert any(node["efa"] for node in proof["nodes"])
    assert {*proof["probes"]} == {"cpu", "gpu"} and "kernel" in proof["probes"]["gpu"][0]
    [run] = [step for step in proof["steps"] if step["name"] == "run"]
    assert "without all of its results" in run["refusals"][0], "there is no torch in the image"
    page = (proved.checkout / "prove.txt").read_text()
    assert "where the plan erred\n  VPC: " in page, "the account of a rehearsal is faster"


def test_its_file_names_nothing_of_the_account(proved: Harness) -> None:
    now = json.loads((proved.state / "world.json").read_text())
    for name in ("prove.json", "prove.txt"):
        text = (proved.checkout / name).read_text()
        secrets = (ACCOUNT, "arn:aws", ADDRESS, str(proved.checkout), now["developer_secret"])
        assert [each for each in secrets if each in text] == []
        assert not re.search(r"\b\d+\.\d+\.\d+\.\d+\b|ip-\d+-\d+|\b(i|vpc|fs)-[0-9a-f]{8,}", text)
