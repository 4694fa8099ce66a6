"""Measures how fast YAML files of jobs are read and judged: each of the tests' workloads, and a
thousand."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from trainyard import command_line
from trainyard.manifests.context import contexts_of
from trainyard.manifests.document import read_manifest
from trainyard.manifests.rules import manifest_problems

WORKLOADS = Path(__file__).resolve().parent.parent / "tests" / "workloads"
ONE_MS, THOUSAND_S = 20, 5
"""Seconds accepted for the slowest file, and for a thousand."""


def main(arguments: list[str]) -> int:
    """Measure, and print what was taken; 0."""
    command_line.parser(
        "benchmarks.manifests", "Measure how long YAML files of jobs take to be read and judged."
    ).parse_args(arguments)
    texts = [path.read_text() for path in sorted(WORKLOADS.glob("**/*.yaml"))]
    medians = [statistics.median(_seconds(text) for _ in range(9)) for text in texts]
    started = time.perf_counter()
    for number in range(1000):
        _seconds(texts[number % len(texts)])
    print(
        f"manifests: {len(texts)} files read and judged, of {sum(map(len, texts)) / len(texts):.0f}"
        f" bytes\n  median {statistics.median(medians) * 1000:.1f} ms, slowest"
        f" {max(medians) * 1000:.1f} ms (≤ {ONE_MS}), a thousand"
        f" {time.perf_counter() - started:.1f} s (≤ {THOUSAND_S})\n"
    )
    return 0


def _seconds(text: str) -> float:
    started = time.perf_counter()
    manifest_problems(contexts_of(read_manifest(text, "job.yaml")[0]))
    return time.perf_counter() - started


if __name__ == "__main__":
    command_line.run(main)
