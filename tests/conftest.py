"""What tests share: the graphs of the two stacks, as the recording engine sees them, and
goldens."""

from __future__ import annotations

import asyncio
import difflib
import gc
import json
import os
import sys
import warnings
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from pulumi.runtime import resource, settings
from pulumi.runtime.proto import source_pb2

from rehearsal import world
from tests.support import skips, workers
from tests.support.recording import CHECKOUT, Graph, deploy
from tests.support.stackfile import ENVIRONMENT, at
from tests.support.stacks import recorded
from tests.support.teams import with_queues
from tests.support.trainer_server import TrainerServer, installed
from trainyard.catalog import versions

GOLDEN = CHECKOUT / "tests" / "golden"

# `make test` hands the first three to the tests, and a make that a test starts would print other lines
# by them. The last, which containers set, makes every program that a test starts compile all of its
# modules anew: a fifth of the time of `make test`.
for inherited in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHONDONTWRITEBYTECODE"):
    os.environ.pop(inherited, None)
sys.dont_write_bytecode = False

# The same examples everywhere and every time; no deadline, because a busy machine is not a bug.
hypothesis.settings.register_profile(
    "steady",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=60,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("steady")

# No test reads which line made a resource. The SDK asks the whole stack, pytest's frames included, for
# each: a third of the time of a recorded graph.
resource._get_stack_trace = source_pb2.StackTrace


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden",
        action="store_true",
        help="write tests/golden/ anew instead of comparing with it",
    )


def pytest_sessionstart() -> None:
    """CI ends here on a machine that can hold no world: its tests would be skipped, and CI pass."""
    if os.environ.get("TRAINYARD_REQUIRE_WORLD") == "1" and (why := world.obstacle()):
        pytest.exit(f"TRAINYARD_REQUIRE_WORLD=1: {why}", returncode=2)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    workers.in_order(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> workers.Units | None:
    """`--dist loadfile` also keeps files together that share something."""
    return workers.Units(config, log) if config.option.dist == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skip that tests/allowed_skips.toml does not allow is a failure."""
    return skips.judged((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same of a whole file."""
    return skips.judged((yield))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """No test meets what Pulumi's runtime kept of an earlier one: a root stack and calls that
    belong to a loop now closed, or no event loop at all where asyncio.run has taken it away."""
    settings.ROOT.set(None)
    engine: Any = settings.SETTINGS
    engine.rpc_manager.clear()
    engine.outputs.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            asyncio.get_event_loop()
        except RuntimeError:
            asyncio.set_event_loop(asyncio.new_event_loop())


@pytest.fixture(scope="session")
def dev() -> Graph:
    """The graph of Pulumi.dev.yaml."""
    return recorded("dev")


@pytest.fixture(scope="session")
def most() -> Graph:
    """The graph of an environment with metrics, teams, queues, a bucket and a registry."""
    edits = (
        at("metrics", {}),
        at("repair", {}),
        with_queues,
        at("training_operator", {"version": "1.8.1"}),
        at("registries", {"images": {}}),
        at("storage.corpus", {"s3": {}, "data": "keep"}),
        at("priorities", {"high": 1000}),
    )
    return deploy("dev", lambda values: [edit(values[ENVIRONMENT]) for edit in edits])


@pytest.fixture(scope="session")
def contract(dev: Graph) -> dict[str, Any]:
    """What the dev environment tells its teams, deployed."""
    return dev.outputs["contract"]


@pytest.fixture(scope="session")
def team(contract: dict[str, Any]) -> Graph:
    """The graph of Pulumi.team-vision.yaml on the dev environment."""
    return deploy("team-vision", references={"organization/trainyard/dev": {"contract": contract}})


@pytest.fixture(scope="module", params=versions.TRAINERS)
def trainer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TrainerServer]:
    """Each release of the Trainer in turn, at an API server of its own."""
    with installed(request.param, tmp_path_factory.mktemp("trainer")) as made:
        yield made


@pytest.fixture
def uncollected() -> Iterator[None]:
    """No garbage is collected while a test sends itself a signal: Python drops a KeyboardInterrupt that comes
    in Hypothesis' callback of the collector, and the test would wait for ever."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, Graph], None]:
    """golden(name, graph): the graph is the one in tests/golden/<name>.graph.json; `pytest
    --golden` writes it."""

    def compare(name: str, graph: Graph) -> None:
        path, text = GOLDEN / f"{name}.graph.json", graph.golden()
        if request.config.getoption("--golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        if not path.exists() or path.read_text() != text:
            pytest.fail(
                f"{_difference(path, text)}\n\nIf that is meant: pytest --golden, and review the"
                " diff",
                pytrace=False,
            )

    return compare


@pytest.fixture
def golden_beside(request: pytest.FixtureRequest) -> Callable[..., None]:
    """golden_beside(name, graph, base): what the graph has that the base has not, and the other way
    round, is in tests/golden/<name>.changes.txt; `pytest --golden` writes it."""

    def compare(name: str, graph: Graph, base: Graph, *, names_only: bool = False) -> None:
        path = GOLDEN / f"{name}.changes.txt"
        lines = [one for one in _beside(base, graph) if not (names_only and one[0] == " ")]
        text = "\n".join(lines) + "\n"
        if request.config.getoption("--golden"):
            path.write_text(text)
        if not path.exists() or path.read_text() != text:
            was = path.read_text().splitlines() if path.exists() else []
            differ = difflib.unified_diff(was, text.splitlines(), lineterm="", n=1)
            pytest.fail(
                "\n".join([f"{path.name} is not what the program registers:", *[*differ][:120]])
                + "\n\nIf that is meant: pytest --golden, and review the diff",
                pytrace=False,
            )

    return compare


def _beside(base: Graph, graph: Graph) -> list[str]:
    """Resource by resource: what is new with all that it is, what is gone, and lines that differ."""
    before, after = (
        {f"{n['type']} {n['name']}": n for n in json.loads(one.golden())} for one in (base, graph)
    )
    lines: list[str] = []
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            lines.append(f"- {name}")
        elif name not in before:
            lines += [f"+ {name}", *_lines(after[name])]
        elif before[name] != after[name]:
            changed = difflib.ndiff(_lines(before[name]), _lines(after[name]))
            lines += [f"~ {name}", *(f"  {line}" for line in changed if line[0] in "+-")]
    return lines


def _lines(node: dict[str, Any]) -> list[str]:
    """A resource without its type, its name and the names that follow from them."""
    told = {key: value for key, value in node.items() if key not in ("type", "name", "parent")}
    return [f"  {line}" for line in json.dumps(told, indent=1).splitlines()[1:-1]]


def _difference(path: Path, text: str) -> str:
    """What changed, resource by resource: a line of JSON says little without the resource it
    belongs to."""
    before = (
        {f"{n['type']} {n['name']}": n for n in json.loads(path.read_text())}
        if path.exists()
        else {}
    )
    after = {f"{n['type']} {n['name']}": n for n in json.loads(text)}
    lines = [f"+ {name}" for name in after if name not in before]
    lines += [f"- {name}" for name in before if name not in after]
    for name in sorted(before.keys() & after.keys()):
        old, new = (
            json.dumps(side[name], indent=1, sort_keys=True).splitlines()
            for side in (before, after)
        )
        changed = [line for line in difflib.ndiff(old, new) if line[0] in "+-"]
        lines += [f"~ {name}", *(f"    {line}" for line in changed)] if changed else []
    return f"{path.name} is not what the program registers:\n" + "\n".join(lines[:120])
