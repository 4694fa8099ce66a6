"""`trainyard watch STACK [--once]`: nodes by pool and state, runs with their ranks, the queue, dollars an
hour, alerts and problems, read anew every few seconds.

What is shown: view.py; how: frame.py. Nothing on the cluster is changed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from trainyard.catalog.aws.own_prices import LIST, OwnPrices
from trainyard.objects.metrics.metrics import PORT
from trainyard.operations.reach.kubectl import Kubectl
from trainyard.operations.reach.proxy import asking
from trainyard.operations.reach.snapshot import snapshot_of
from trainyard.operations.reach.stack import own_prices
from trainyard.operations.reach.target import answer_of, kubeconfig
from trainyard.operations.runs.frame import Line, coloured, frame, picture, plain
from trainyard.operations.runs.rank_lines import ReachedLately
from trainyard.operations.runs.view import View, view
from trainyard.operations.status.by_hand import Changes
from trainyard.plans.push_gateway import NAMESPACE
from trainyard.reports.plan import as_json

ALERTS = f"/api/v1/namespaces/{NAMESPACE}/services/prometheus:{PORT}/proxy/api/v1/alerts"
FRAME_SECONDS = 20
"""Longest time of one question: somebody waits for the next frame."""
ENTER, LEAVE, HOME, CLEAR_LINE, CLEAR_BELOW = (
    "\x1b[?1049h\x1b[?25l",
    "\x1b[?25h\x1b[?1049l",
    "\x1b[H",
    "\x1b[K",
    "\x1b[J",
)
"""Control sequences of a terminal: another screen without a cursor, and back; begin at the top."""


def main(options: argparse.Namespace) -> int:
    """Return 0, or 1 where the cluster does not answer at first, or another one could be meant."""
    once = options.once or options.json or options.svg or not sys.stdout.isatty()

    def read() -> View | int:
        with asking(kubeconfig(options.stack), FRAME_SECONDS) as kubectl:
            changes = Changes(options.stack, kubectl)
            prices = own_prices(options.stack)
            again = partial(look, options.stack, kubectl, changes, prices, ReachedLately())
            first = again()
            return first if once else _follow(again, first, options.every)

    first = answer_of(read)
    if first is None:
        return 1
    if isinstance(first, int):
        return first
    lines = frame(first)
    if options.svg:
        return _drawn(Path(options.svg), picture(lines))
    if options.json:
        print(as_json({"view": first, "usd_per_hour": first.usd_per_hour}))
    else:
        print("\n".join(_on(lines)))
    return 0


def _drawn(file: Path, text: str) -> int:
    """Write the picture; 0 where that was possible."""
    try:
        file.write_text(text)
    except OSError as error:
        fix = "name a file in a folder that exists and that you can write to"
        print(f"{file} cannot be written: {error.strerror}. Fix: {fix}", file=sys.stderr)
        return 1
    print(file)
    return 0


def look(
    stack: str,
    kubectl: Kubectl,
    changes: Changes,
    prices: OwnPrices = LIST,
    far: ReachedLately | None = None,
) -> View:
    """One look at the cluster. `prices`: of the stack. `far`: reads in logs how far runs are."""
    snapshot = snapshot_of(stack, kubectl)
    reached = far(kubectl, snapshot) if far else {}
    return view(stack, snapshot, alerts(kubectl), changes(), prices, reached)


def alerts(kubectl: Kubectl) -> tuple[str, ...] | None:
    """Alerts that fire, as Prometheus says; None where there is no Prometheus, or this caller cannot
    ask it."""
    try:
        found = json.loads(kubectl("get", "--raw", ALERTS))["data"]["alerts"]
    except (RuntimeError, ValueError, KeyError):
        return None
    return tuple(
        f"{each['labels']['alertname']}: {each.get('annotations', {}).get('summary', '')}".rstrip(
            ": "
        )
        for each in found
        if each.get("state") == "firing" and each["labels"].get("alertname") != "Watchdog"
    )


def _follow(again: Callable[[], View], shown: View, every: float) -> int:
    """Draw until ctrl-C. A cluster that does not answer leaves the last frame, with its age."""
    trouble = ""
    sys.stdout.write(ENTER)
    try:
        while True:
            _draw(frame(shown), trouble)
            time.sleep(every)
            try:
                shown, trouble = again(), ""
            except RuntimeError as error:
                trouble = f"the cluster does not answer; this is old: {error}".splitlines()[0]
    except KeyboardInterrupt:
        return 0
    finally:
        sys.stdout.write(LEAVE)
        sys.stdout.flush()


def _draw(lines: list[Line], trouble: str) -> None:
    size = shutil.get_terminal_size()
    whole: list[Line] = [*([[(trouble, "bad")]] if trouble else []), *lines]
    fitting = coloured(whole[: size.lines - 1], size.columns)
    sys.stdout.write(HOME + "\n".join(f"{line}{CLEAR_LINE}" for line in fitting) + CLEAR_BELOW)
    sys.stdout.flush()


def _on(lines: list[Line]) -> list[str]:
    """As the standard output takes it: colours for a person at a terminal."""
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        return coloured(lines, shutil.get_terminal_size().columns)
    return plain(lines)
