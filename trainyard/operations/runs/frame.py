"""A view of a cluster as lines of a terminal, and as a picture (SVG). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape

from trainyard.catalog.logs.waiting import WAITING
from trainyard.operations.runs import view
from trainyard.operations.runs.node_time import duration
from trainyard.operations.runs.view import Gang, Pool, View

Span = tuple[str, str]
"""Text and the name of its colour; "" is that of the terminal."""
Line = list[Span]
ANSI = {
    "": "",
    "bold": "\x1b[1m",
    "dim": "\x1b[2m",
    "good": "\x1b[32m",
    "wait": "\x1b[33m",
    "bad": "\x1b[31m",
}
RESET = "\x1b[0m"
COLOURS = {
    "": "#d4d4d4",
    "bold": "#ffffff",
    "dim": "#8a8a8a",
    "good": "#6bbf59",
    "wait": "#e0b252",
    "bad": "#e06c5f",
}
SYMBOLS = {
    view.RUNS: ("●", "good"),
    view.DONE: ("✔", "good"),
    view.STARTS: ("◐", "wait"),
    view.NO_NODE: ("◌", "wait"),
    view.GONE: ("·", "dim"),
    view.BROKEN: ("✖", "bad"),
}
"""State of a rank → its sign and colour."""
LEGEND: Line = [
    span
    for state, (sign, colour) in SYMBOLS.items()
    for span in ((f"{sign} ", colour), (f"{state}  ", "dim"))
]
STATES = {view.READY: "good", view.LAUNCHING: "wait", view.JOINING: "wait", view.LEAVING: "dim"}
"""State of a node → its colour; the others are bad."""
MOST_RANKS = 40
"""Most ranks that are shown one by one. Of a larger gang, each state is counted."""
MOST_ROWS = 12
"""Most rows of each list."""
CHARACTER, ROW, SIZE, EDGE = 8.4, 18, 14, 12
"""Measures of the picture, in pixels."""


def frame(shown: View) -> list[Line]:
    """The lines, without the width of a terminal."""
    return [
        _head(shown),
        [],
        *_section("POOLS", _pools(shown)),
        *_section("RUNS", _gangs(shown.gangs)),
        *(_section("QUEUE", _queue(shown)) if shown.queue else []),
        *_section("INTERRUPTED", [[("↺ ", "wait"), (what, "")] for what in shown.interrupted]),
        *_section("ALERTS", _alerts(shown)),
        *_section("PROBLEMS", [[("! ", "bad"), (what, "")] for what in shown.problems]),
        LEGEND,
    ]


def plain(lines: Iterable[Line]) -> list[str]:
    """Without colours."""
    return ["".join(text for text, _ in line).rstrip() for line in lines]


def coloured(lines: Iterable[Line], width: int) -> list[str]:
    """With the colours of a terminal, no wider than it."""
    shown = []
    for line in lines:
        left, parts = width, []
        for text, colour in line:
            cut, left = text[:left], left - len(text[:left])
            parts.append(f"{ANSI[colour]}{cut}{RESET}" if colour else cut)
        shown.append("".join(parts))
    return shown


def picture(lines: list[Line]) -> str:
    """As SVG: each character at its place, whatever font a browser has."""
    columns = max((sum(len(text) for text, _ in line) for line in lines), default=0)
    width, height = columns * CHARACTER + 2 * EDGE, len(lines) * ROW + 2 * EDGE
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}"'
        f' viewBox="0 0 {width:.0f} {height}" font-family="monospace" font-size="{SIZE}">',
        '<rect width="100%" height="100%" rx="6" fill="#1e1e1e"/>',
    ]
    for number, line in enumerate(lines):
        at = 0
        for text, colour in line:
            if text.strip():
                x, y = EDGE + at * CHARACTER, EDGE + number * ROW + SIZE
                rows.append(
                    f'<text x="{x:.1f}" y="{y}" textLength="{len(text) * CHARACTER:.1f}"'
                    f' fill="{COLOURS[colour]}" xml:space="preserve">{escape(text)}</text>'
                )
            at += len(text)
    return "\n".join([*rows, "</svg>", ""])


def _head(shown: View) -> Line:
    more = f", {shown.unpriced} nodes without a price" if shown.unpriced else ""
    money: Line = [
        (f"{shown.usd_per_hour:,.2f} USD an hour", "bold"),
        (f" for nodes of pools{more}", "dim"),
    ]
    return [
        (shown.stack, "bold"),
        (f"  {shown.taken_at:%Y-%m-%d %H:%M:%S} UTC  ", "dim"),
        *(money if shown.pools is not None else []),
    ]


def _section(name: str, rows: list[Line]) -> Iterator[Line]:
    if rows:
        yield [(name, "bold")]
        yield from ([("  ", ""), *row] for row in rows[:MOST_ROWS])
        if len(rows) > MOST_ROWS:
            yield [(f"  and {len(rows) - MOST_ROWS} more", "dim")]
        yield []


def _pools(shown: View) -> list[Line]:
    if shown.pools is None:
        return [[("not shown: a team that the environment lists cannot read nodes", "dim")]]
    if not shown.pools:
        return [[("no pool", "dim")]]
    widths = max(len(pool.name) for pool in shown.pools)
    return [_pool(pool, widths) for pool in shown.pools]


def _pool(pool: Pool, width: int) -> Line:
    total = sum(pool.nodes.values())
    most = f"/{pool.most}" if pool.most is not None else ""
    states: Line = []
    for state, count in pool.nodes.items():
        states += [(f"{count} {state}", STATES.get(state, "bad")), ("  ", "")]
    return [
        (pool.name.ljust(width), ""),
        (f"  {total}{most} nodes".ljust(14), ""),
        (f"{pool.gpus_used}/{pool.gpus} GPUs".ljust(14), "" if pool.gpus_used else "dim"),
        (f"{pool.usd_per_hour:>9,.2f} USD/h  ", "" if total else "dim"),
        *states,
        (", ".join(filter(None, pool.instance_types)), "dim"),
    ]


def _gangs(gangs: tuple[Gang, ...]) -> list[Line]:
    if not gangs:
        return [[("no job", "dim")]]
    width = max(len(gang.name) for gang in gangs)
    return [
        [
            (gang.name.ljust(width), ""),
            (f"  {gang.state}".ljust(12), _colour(gang.state)),
            (f"{_time(gang.seconds)}{' ago' * gang.ended}".ljust(13), "dim"),
            *_ranks(gang),
            (f"  {gang.restarts} restarts" if gang.restarts else "", "wait"),
            (f"  {gang.how_far}" if gang.how_far else "", "dim"),
        ]
        for gang in gangs
    ]


def _ranks(gang: Gang) -> Line:
    if len(gang.ranks) <= MOST_RANKS:
        return [SYMBOLS[state] for state in gang.ranks]
    line: Line = []
    for state, (sign, colour) in SYMBOLS.items():
        if count := gang.ranks.count(state):
            line += [(f"{sign} × {count}  ", colour)]
    return line


def _queue(shown: View) -> list[Line]:
    width = max(len(each.job) for each in shown.queue)
    return [
        [
            (each.job.ljust(width), ""),
            (f"  queue {each.queue}", ""),
            (f"  {_time(each.seconds)}", "dim"),
        ]
        for each in shown.queue
    ]


def _alerts(shown: View) -> list[Line]:
    return [[("▲ ", "bad"), (name, "")] for name in shown.alerts or ()]


def _colour(state: str) -> str:
    if state in ("Failed", "Deleted"):
        return "bad"
    return "wait" if state in ("Suspended", WAITING) else "good"


def _time(seconds: int | None) -> str:
    return "" if seconds is None else duration(seconds, to_the_second=True)
