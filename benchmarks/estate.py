"""Measures planning as an estate grows: a hundred teams on one environment, those that it lists and
those that it does not, and fifty pools with two hundred jobs."""

from __future__ import annotations

import contextlib
import copy
import gc
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from benchmarks.measure import CHECKOUT, in_turns, table
from tests.support.tool import run_word
from trainyard import command_line
from trainyard.catalog.scalars import as_file
from trainyard.decide import plan_stack
from trainyard.plan import EnvironmentPlan
from trainyard.reports.plan import as_json, data, text
from trainyard.settings.reading.reader import read, read_file

ME = ["-m", "benchmarks.estate"]


def main(arguments: list[str]) -> int:
    """All measurements, each in processes of this module; or one of those processes; 0."""
    parser = command_line.parser(
        "benchmarks.estate", "Measure what planning costs as teams, pools and jobs grow in number."
    )
    parser.add_argument(
        "estate",
        nargs="?",
        choices=ESTATES,
        metavar="ESTATE",
        help=f"plan one estate and measure nothing: {', '.join(ESTATES)}",
    )
    parser.add_argument(
        "count", nargs="?", type=int, metavar="COUNT", help="so many teams or pools of the estate"
    )
    options = parser.parse_args(arguments)
    if options.estate and options.count is None:
        parser.error("COUNT is missing: of an estate, how many?")
    if options.estate:
        ESTATES[options.estate](options.count)
    else:
        _measure()
    return 0


def _measure() -> None:
    runs = in_turns(
        {
            "1 team": [*ME, "teams", "1"],
            "100 teams": [*ME, "teams", "100"],
            "1 listed team": [*ME, "listed", "1"],
            "100 listed teams": [*ME, "listed", "100"],
            "stack of 1 of 1 team": [*ME, "of_one", "1"],
            "stack of 1 of 100": [*ME, "of_one", "100"],
            "check, 100 listed": [*ME, "checked", "100"],
            "50 pools, 200 jobs": [*ME, "pools", "50"],
            "50 pools, 200 jobs, shown": [*ME, "shown", "50"],
        }
    )
    print(f"estate: planned in a fresh process, its imports included\n{table(runs, '1 team')}\n")


def teams(count: int) -> None:
    """An environment and that many teams, each from its own stack file, each reading the
    environment's."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("Pulumi.yaml", "Pulumi.dev.yaml"):
            (folder / file).write_text((CHECKOUT / file).read_text())
        text = (CHECKOUT / "Pulumi.team-vision.yaml").read_text()
        for number in range(count):
            (folder / f"Pulumi.team-{number}.yaml").write_text(
                text.replace("namespace: team-vision", f"namespace: team-{number}").replace(
                    "directory: vit-base", f"directory: vit-base-{number}"
                )
            )
        plan_stack(read_file("dev", folder), folder).accepted()
        for number in range(count):
            plan_stack(read_file(f"team-{number}", folder), folder).accepted()


def listed(count: int) -> None:
    """An environment that lists that many teams, and the stack of one of them."""
    with _of_teams(count) as folder:
        for stack in ("dev", "team-vision"):
            plan_stack(read_file(stack, folder), folder).accepted()


def of_one(count: int) -> None:
    """The stack of one of that many teams, which reads the environment's file."""
    with _of_teams(count) as folder:
        plan_stack(read_file("team-vision", folder), folder).accepted()


def checked(count: int) -> None:
    """The work of `trainyard check` for an environment that lists so many teams."""
    with _of_teams(count) as folder, contextlib.chdir(folder):
        gc.disable()  # as the tool does
        assert run_word("check", ["dev"]) == 0


@contextlib.contextmanager
def _of_teams(count: int) -> Iterator[Path]:
    """A folder with the stack files of an environment of that many teams and of its team t0."""
    team = yaml.safe_load((CHECKOUT / "Pulumi.team-vision.yaml").read_text())
    said = team["config"]["trainyard:team"]
    del said["namespace"], said["max_gpus"]
    said["name"] = "t0"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
        for stack, value in {"dev": environment_of(count), "team-vision": team}.items():
            (folder / f"Pulumi.{stack}.yaml").write_text(as_file(value))
        yield folder


def environment_of(count: int) -> dict[str, Any]:
    """The dev stack with queues and that many teams, each with a directory of Lustre, of EFS and of
    S3, an AWS identity and a NetworkPolicy."""
    values: dict[str, Any] = yaml.safe_load((CHECKOUT / "Pulumi.dev.yaml").read_text())
    environment = values["config"]["trainyard:environment"]
    environment |= {"jobs": {}, "queues": {}, "teams": {}}
    environment["storage"]["sets"] = {"s3": {"bucket": "our-sets", "writable": True}}
    for store in environment["storage"].values():
        store["teams"] = "apart"
    for number in range(count):
        environment["teams"][f"t{number}"] = {
            "deployer": f"arn:aws:iam::111122223333:role/team-{number}",
            "s3_writes": [f"s3://results/t{number}/"],
        }
    return values


def shown(count: int) -> None:
    """The work of `trainyard plan` for an environment that lists so many teams."""
    plan = pools(count)
    print(text(plan), as_json(data(plan)))


def pools(count: int) -> EnvironmentPlan:
    """That many pools, four jobs for each."""
    values: dict[str, Any] = yaml.safe_load((CHECKOUT / "Pulumi.dev.yaml").read_text())["config"]
    settings = values["trainyard:environment"]
    job = settings["jobs"]["t5-large"]
    settings["pools"] = {f"p{n}": copy.deepcopy(settings["pools"]["g6e"]) for n in range(count)}
    settings["jobs"] = {
        f"j{n}": {
            **job,
            "pool": f"p{n % count}",
            "parameters_billion": 1 + n / 20,
            "checkpoints": {**job["checkpoints"], "directory": f"j{n}"},
        }
        for n in range(4 * count)
    }
    plan = plan_stack(read(values, stack="dev", project="trainyard")).accepted()
    assert isinstance(plan, EnvironmentPlan)
    return plan


ESTATES: dict[str, Callable[[int], object]] = {
    "teams": teams,
    "listed": listed,
    "of_one": of_one,
    "checked": checked,
    "pools": pools,
    "shown": shown,
}


if __name__ == "__main__":
    command_line.run(main)
