"""Shapes and texts of a page, as HTML and SVG: plain strings, every text escaped.

Widths of texts are reckoned from their characters, as no browser is asked: a text gets more room than any
usual sans-serif needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

CHARACTER = 7.6
"""Pixels that a character of a text of 12 px takes at most on average; Arial and Helvetica take 6.2."""
ROW = 22
"""Pixels from one row of a drawing to the next."""


def wide(text: str) -> float:
    """Pixels that a text of 12 px needs."""
    return len(text) * CHARACTER


def text(x: float, y: float, said: str, kind: str = "", anchor: str = "start") -> str:
    """A text whose base line begins, ends or is centred at a point."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(said)}</text>'
    )


def box(x: float, y: float, width: float, height: float, kind: str, title: str = "") -> str:
    """A rectangle; `title` is shown where somebody points at it."""
    inner = f"<title>{escape(title)}</title>" if title else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{height:.1f}" rx="2"'
        f' class="{kind}">{inner}</rect>'
    )


def path(points: Sequence[tuple[float, float]], kind: str) -> str:
    """A line through points."""
    steps = " L".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<path d="M{steps}" class="{kind}"/>'


def drawing(width: float, height: float, says: str, parts: Iterable[str]) -> str:
    """A picture that scrolls where a phone is too narrow. `says`: what somebody hears who does not see it."""
    return (
        f'<div class="scroll"><svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}"'
        f' height="{height:.0f}" role="img" aria-label="{escape(says, quote=True)}">'
        f"{''.join(parts)}</svg></div>"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of texts."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f'<div class="scroll"><table><tr>{top}</tr>{body}</table></div>'


def section(title: str, *inside: str) -> str:
    """A part of the page under a title; nothing where there is nothing inside."""
    found = [each for each in inside if each]
    return f"<section><h2>{escape(title)}</h2>{''.join(found)}</section>" if found else ""


def paragraph(said: str) -> str:
    """A sentence below a title."""
    return f"<p>{escape(said)}</p>" if said else ""


def page(title: str, sections: Iterable[str]) -> str:
    """A whole file of HTML that needs no other file, no script and no network."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1>{''.join(sections)}</body></html>\n"
    )


STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#5a6370;--back:#fff;--card:#f5f6f8;--rule:#d5d9df;
--main:#1f6feb;--way:#c9372c;--late:#e8a49e;--calm:#9db8dd;--kept:#2a7f46}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ee;--soft:#9aa4b2;--back:#12151a;--card:#1c2128;
--rule:#39414d;--main:#6cabff;--way:#ff7a70;--late:#7c3a35;--calm:#4b6d9c;--kept:#5fc27e}}
body{font:15px/1.45 system-ui,Helvetica,Arial,sans-serif;color:var(--ink);background:var(--back);
max-width:1100px;margin:0 auto;padding:16px}
h1{font-size:1.5em}h2{font-size:1.15em;margin:1.6em 0 .4em}p{margin:.3em 0;color:var(--soft)}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:3px 14px 3px 0;border-bottom:1px solid var(--rule);vertical-align:top}
.scroll{overflow-x:auto;margin:.4em 0}.card{background:var(--card);padding:8px 14px;border-radius:6px}
li{overflow-wrap:anywhere;margin:.2em 0}
svg text{font:12px Helvetica,Arial,sans-serif;fill:var(--ink)}svg .soft{fill:var(--soft)}
.way{fill:var(--way)}.late{fill:var(--late)}.calm{fill:var(--calm)}.main{fill:var(--main)}
.kept{fill:var(--kept)}.empty{fill:none;stroke:var(--soft)}.node{fill:var(--card);stroke:var(--calm)}
.onway{fill:var(--card);stroke:var(--way);stroke-width:2}
path{fill:none;stroke:var(--soft)}path.curve{stroke:var(--main);stroke-width:2}
path.on{stroke:var(--way);stroke-width:2}path.axis{stroke:var(--rule)}
@media print{:root{--ink:#000;--soft:#333;--back:#fff;--card:#fff}body{max-width:none}
.scroll{overflow:visible}svg{max-width:100%;height:auto}section{break-inside:avoid}}
"""
"""Colours of a light and of a dark page; on paper ink on white, and drawings as wide as the paper."""
