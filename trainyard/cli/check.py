"""`trainyard check`: the errors of a stack file; with --policies also what violates a policy."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from trainyard.reports import check

JUDGE = "policy_pack.check"
"""Module that judges by the policies. It loads Pulumi, so that the tool knows only its name."""


def main(options: argparse.Namespace) -> int:
    """The exit code of the check, and then that of the policies."""
    if options.deadline is not None and not options.asks:
        print(
            "--deadline limits the questions to an account. Fix: add --live, or --rehearsal",
            file=sys.stderr,
        )
        return 2
    code = check.main(options)
    return code or (_judge(options.stack) if options.policies else 0)


def _judge(stack: str) -> int:
    try:
        judges = import_module(JUDGE)
    except ModuleNotFoundError as missing:
        print(
            f"--policies needs {missing.name}. Fix: pip install --no-deps --require-hashes -r requirements/policy.txt,"
            " in a clone of Trainyard",
            file=sys.stderr,
        )
        return 1
    return judges.judge_by(stack)
