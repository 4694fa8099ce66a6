"""`trainyard contract`: what an environment promises a team, as a file that the team's stack file names.

It follows from the stack file alone. What is in it: trainyard/derive/contract.py."""

from __future__ import annotations

import argparse
import contextlib
import sys
from typing import Any

from trainyard.catalog.scalars import as_file
from trainyard.derive.contract import explained
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.problems import At, write_one_of
from trainyard.reports.stack_file import HAS_ERRORS, report_on
from trainyard.settings.reading.contracts import command
from trainyard.settings.reading.reader import Reading


def main(options: argparse.Namespace) -> int:
    """Print the contract of one team, or of all that the environment does not list; 1 where the stack is
    refused or has no such team, 2 where it has no file. Errors go to stderr, because what is printed is
    written to a file."""
    found: list[dict[str, Any]] = []

    def report(_: Reading, plan: EnvironmentPlan | TeamPlan) -> int:
        if isinstance(plan, TeamPlan):
            environment = At("--stack").must(
                "be an environment", got=options.stack, fix=f"write --stack {plan.environment}"
            )
            print(environment)
        elif options.team and options.team not in plan.teams:
            path = At("--team")
            otherwise = "leave it out: the environment lists no team"
            fix = write_one_of(plan.teams, otherwise)
            print(path.must("be a team under environment.teams", got=options.team, fix=fix))
        else:
            listed = plan.teams[options.team].contract if options.team else plan.contract
            found.append(explained(listed, plan.runtimes))
            return 0
        return HAS_ERRORS

    with contextlib.redirect_stdout(sys.stderr):
        code = report_on(options.stack, report)
    for contract in found:
        print(text(contract, options.team), end="")
    return code


def text(contract: dict[str, Any], team: str | None) -> str:
    """The file of a contract. `team`: that the environment lists."""
    whose = f"team {team}" if team else "every team that the environment does not list"
    return (
        f"# Environment {contract['stack']} as {whose} may use it: team.contract of a stack file names this"
        f" file.\n# Nobody edits it. Made by: {command(contract['stack'], team)}\n"
        + as_file(contract, width=100)
    )
