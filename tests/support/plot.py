"""Series of Prometheus as a picture: small charts beside each other, in SVG."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT, ACROSS = 380, 190, 2
"""Of a chart, and charts in a row."""
LEFT, TOP, RIGHT, BOTTOM = 52, 34, 14, 26
COLOURS = ("#2563eb", "#b45309")
"""Of the first line of a chart, and of what it is compared with, which is dashed."""
INK, FAINT = "#374151", "#d1d5db"
Points = list[tuple[float, float]]
"""Unix seconds and value."""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """One chart: its lines by their titles, two at most."""

    lines: dict[str, Points]
    unit: str
    """In Grafana's words."""


def plot(charts: list[Chart]) -> str:
    """All of them over the same minutes, which begin with the first point."""
    times = [at for chart in charts for points in chart.lines.values() for at, _ in points]
    began, minutes = min(times), (max(times) - min(times)) / 60
    rows = -(-len(charts) // ACROSS)
    size = f"{ACROSS * WIDTH} {rows * HEIGHT}"
    width, height = size.split()
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {size}" font-family="sans-serif" font-size="11" fill="{INK}">',
        '<rect width="100%" height="100%" rx="6" fill="#ffffff"/>',
    ]
    for number, chart in enumerate(charts):
        row, column = divmod(number, ACROSS)
        parts += [
            f'<g transform="translate({column * WIDTH} {row * HEIGHT})">',
            *_chart(chart, began, minutes),
            "</g>",
        ]
    return "\n".join([*parts, "</svg>", ""])


def _chart(chart: Chart, began: float, minutes: float) -> Iterator[str]:
    across, down = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    most = _round_up(max(value for points in chart.lines.values() for _, value in points))
    for part in (0, 0.5, 1):
        y = TOP + down * (1 - part)
        yield f'<path d="M{LEFT} {y:g}h{across}" stroke="{FAINT}"/>'
        yield _text(LEFT - 6, y + 4, _value(most * part, chart.unit), "end")
        x = LEFT + across * part
        yield _text(x, HEIGHT - 8, f"{minutes * part:.0f} min", "middle" if part < 1 else "end")
    at = LEFT
    for number, (title, points) in enumerate(chart.lines.items()):
        colour, dashes = COLOURS[number], ' stroke-dasharray="5 3"' * number
        yield f'<path d="M{at} 18h14" stroke="{colour}" stroke-width="2"{dashes}/>'
        yield _text(at + 19, 22, title, "start")
        at += 19 + 7 * len(title)
        path = "L".join(
            f"{LEFT + across * (when - began) / 60 / minutes:.1f}"
            f" {TOP + down * (1 - value / most):.1f}"
            for when, value in points
        )
        yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def _round_up(value: float) -> float:
    """The next of 1, 2, 5, 10, 20 …, so that the axis has round figures."""
    step = 1.0
    while step < value:
        step *= 2.5 if f"{step:e}"[0] == "2" else 2
    while step / 2.5 >= value > 0:
        step /= 2.5 if f"{step:e}"[0] == "5" else 2
    return step


def _value(value: float, unit: str) -> str:
    if unit == "percentunit":
        return f"{value:.0%}"
    return f"{value:g} s" if unit == "s" else f"{value:g}"
