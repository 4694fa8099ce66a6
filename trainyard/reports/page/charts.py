"""Drawings of a plan: its time line, what waits for what, dollars, goodput, nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from trainyard.derive.pools import PoolUse
from trainyard.reports.costs.amounts import Line
from trainyard.reports.minutes.timeline import Timeline
from trainyard.reports.page.drawing import ROW, box, drawing, path, text, wide
from trainyard.stores.goodput import Verdict, goodput_at

ACROSS = 560
"""Pixels of the widest bar."""
SHOWN_NODES = 64
"""Nodes of a pool that are drawn one by one."""


def gantt(timeline: Timeline, one_in_ten_seconds: float) -> str:
    """The stages as bars: their medians, and behind each what one creation in ten takes. Beside each bar the
    minute at which it begins and its seconds."""
    if not timeline.stages:
        return ""
    order = sorted(timeline.stages, key=lambda s: (timeline.start[s.name], timeline.end[s.name]))
    names = max(wide(stage.name) for stage in order) + 12
    slow = {s.name: max(s.seconds, s.slow_seconds) for s in order}
    last = max(one_in_ten_seconds, *(timeline.start[name] + slow[name] for name in slow), 1)
    scale, parts = ACROSS / last, list[str]()
    for minute in range(0, int(last / 60) + 1, 5):
        x = names + minute * 60 * scale
        parts += [path([(x, 14), (x, 18 + ROW * len(order))], "axis"), text(x, 10, f"{minute} min")]
    for number, stage in enumerate(order):
        y, x = 18 + number * ROW, names + timeline.start[stage.name] * scale
        said = f"{stage.seconds:,.0f} s, one in ten {slow[stage.name]:,.0f} s"
        parts += [
            text(names - 8, y + 14, stage.name, anchor="end"),
            box(x, y + 4, slow[stage.name] * scale, 12, "late", f"{stage.name}: {said}"),
            box(
                x,
                y + 4,
                stage.seconds * scale,
                12,
                "way" if stage.name in timeline.critical else "calm",
                f"{stage.name}: {said}",
            ),
            text(x + slow[stage.name] * scale + 6, y + 14, said, "soft"),
        ]
    width = names + ACROSS + wide("9,999 s, one in ten 9,999 s") + 20
    return drawing(width, 24 + ROW * len(order), "time line of the stages", parts)


def waits(timeline: Timeline) -> str:
    """The stages as boxes, each to the right of all that it waits for; the longest way is marked."""
    if not timeline.stages:
        return ""
    place = _places(timeline)
    on = set(zip(timeline.critical, timeline.critical[1:], strict=False))
    edges = [
        path(
            [
                (place[before][0] + place[before][2], place[before][1] + 12),
                (place[stage.name][0], place[stage.name][1] + 12),
            ],
            "on" if (before, stage.name) in on else "",
        )
        for stage in timeline.stages
        for before in stage.after
    ]
    boxes = [
        box(x, y, width, 24, "onway" if name in timeline.critical else "node")
        + text(x + 6, y + 16, name)
        for name, (x, y, width) in place.items()
    ]
    height = 34 + max(y for _, y, _ in place.values())
    right = 10 + max(x + width for x, _, width in place.values())
    return drawing(right, height, "stages and what each waits for", [*edges, *boxes])


def _places(timeline: Timeline) -> dict[str, tuple[float, float, float]]:
    """Left edge, top and width of the box of each stage, in columns by what it waits for."""
    depth: dict[str, int] = {}
    for stage in timeline.stages:
        depth[stage.name] = 1 + max((depth[name] for name in stage.after), default=-1)
    place, x = dict[str, tuple[float, float, float]](), 10.0
    for column in sorted(set(depth.values())):
        names = [name for name in depth if depth[name] == column]
        width = max(wide(name) for name in names) + 12
        place |= {name: (x, 10.0 + row * 40, width) for row, name in enumerate(names)}
        x += width + 46
    return place


def bars(rows: Iterable[tuple[str, float, str]]) -> str:
    """A bar for each row of a name, an amount and its words."""
    found = list(rows)
    if not found:
        return ""
    names = max(wide(name) for name, _, _ in found) + 12
    most, words = max(max(each for _, each, _ in found), 1e-9), max(wide(w) for _, _, w in found)
    parts = [
        text(names - 8, number * ROW + 15, name, anchor="end")
        + box(names, number * ROW + 4, amount / most * ACROSS / 2, 14, "main")
        + text(names + amount / most * ACROSS / 2 + 6, number * ROW + 15, said)
        for number, (name, amount, said) in enumerate(found)
    ]
    return drawing(names + ACROSS / 2 + words + 20, ROW * len(found) + 8, "bars", parts)


def by_line(
    lines: Sequence[Line], listed: Sequence[Line] | None = None, unit: str = "USD an hour"
) -> str:
    """Dollars of each line; a line without a price says so and has no length. `listed`: the same lines at
    list prices; None where these are the own ones."""
    beside = listed or [None] * len(lines)
    return bars(
        (
            line.what,
            float(line.usd_per_hour or 0),
            _dollars(line, other, unit),
        )
        for line, other in zip(lines, beside, strict=True)
    )


def _dollars(line: Line, listed: Line | None, unit: str) -> str:
    if line.usd_per_hour is not None:
        known = listed.usd_per_hour if listed else None
        beside = "" if known is None else f", list {known:,.4f}"
        return f"{line.usd_per_hour:,.4f} {unit}{beside}"
    if line.guess is None:
        return "no price"
    least, most = line.guess.usd, line.guess.most_usd
    return f"no price, a guess is {least:,.4f} to {most:,.4f} {unit}"


def curve(name: str, verdict: Verdict) -> str:
    """Goodput of a job against the interval between its saves, from a tenth to ten times of it, and the point
    that the plan has."""
    left, top, wide_, high = 56, 16, 460, 150
    minutes = verdict.interval_seconds / 60
    found = [(10 ** (n / 20 - 1), 0.0) for n in range(41)]
    points = [(each, goodput_at(verdict, each * verdict.interval_seconds)) for each, _ in found]
    least = min(value for _, value in points)
    span = max(verdict.goodput - least, 1e-3) * 1.1

    def at(position: int, value: float) -> tuple[float, float]:
        return left + wide_ * position / 40, top + high * (1 - (value - least) / span)

    x, y = at(20, verdict.goodput)
    said = f"{verdict.goodput:.1%} every {minutes:,.0f} min"
    parts = [
        path([(left, top), (left, top + high), (left + wide_, top + high)], "axis"),
        path([at(number, value) for number, (_, value) in enumerate(points)], "curve"),
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" class="way"/>',
        text(x + 10, y + 18, said),
        text(left - 6, top + high, f"{least:.0%}", "soft", "end"),
        text(left - 6, top + 10, f"{min(1, least + span):.0%}", "soft", "end"),
        *(
            text(
                at(number, 0)[0], top + high + 16, f"{minutes * factor:,.0f} min", "soft", "middle"
            )
            for number, factor in ((0, 0.1), (20, 1), (40, 10))
        ),
    ]
    width = left + wide_ + wide(said)
    return drawing(width, top + high + 26, f"goodput of {name} by its interval", parts)


def fleet(capacity: Mapping[str, PoolUse]) -> str:
    """A square for each node of each pool: filled where it always runs."""
    if not capacity:
        return ""
    names, parts = max(wide(name) for name in capacity) + 12, list[str]()
    for number, (name, use) in enumerate(capacity.items()):
        y, most = number * ROW, max(use.max_nodes, use.kept_nodes)
        shown = min(most, SHOWN_NODES)
        parts.append(text(names - 8, y + 15, name, anchor="end"))
        parts += [
            box(names + node * 12, y + 5, 9, 12, "kept" if node < use.kept_nodes else "empty")
            for node in range(shown)
        ]
        parts.append(
            text(
                names + shown * 12 + 6,
                y + 15,
                f"{most} x {' or '.join(use.instance_types)}, {use.gpus_per_node} GPUs each",
            )
        )
    words = max(wide(" or ".join(use.instance_types)) for use in capacity.values()) + 180
    width = names + SHOWN_NODES * 12 + words
    return drawing(width, ROW * len(capacity) + 8, "nodes of each pool", parts)
