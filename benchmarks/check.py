"""Measures `trainyard check` beside the time that its two libraries take to load."""

from __future__ import annotations

from benchmarks.measure import in_turns, table
from trainyard import command_line


def main(arguments: list[str]) -> int:
    """Measure, and print a table; 0."""
    command_line.parser(
        "benchmarks.check", "Measure how long `trainyard check` takes in a fresh process."
    ).parse_args(arguments)
    runs = in_turns(
        {
            "trainyard check dev": ["-m", "trainyard", "check", "dev"],
            "pydantic and yaml alone": ["-c", "import pydantic, yaml; pydantic.TypeAdapter(int)"],
        }
    )
    print(
        "check: a stack file checked in a fresh"
        f" process\n{table(runs, 'pydantic and yaml alone')}\n"
    )
    return 0


if __name__ == "__main__":
    command_line.run(main)
