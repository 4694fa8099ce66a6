"""How long `make check` takes, beside what its two libraries take to load."""

from __future__ import annotations

from benchmarks.measure import in_turns, table


def main() -> None:
    runs = in_turns(
        {
            "make check STACK=dev": ["-m", "stacks.reports.check", "dev"],
            "pydantic and yaml alone": ["-c", "import pydantic, yaml; pydantic.TypeAdapter(int)"],
        }
    )
    print(
        "check: a stack file checked in a fresh"
        f" process\n{table(runs, 'pydantic and yaml alone')}\n"
    )


if __name__ == "__main__":
    main()
