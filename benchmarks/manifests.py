"""Measures how fast YAML files of jobs are read and judged: each of the tests' workloads, a thousand, and scripts
that say one word over and over, which a rule that looks back from each word judges in the square of their size."""

from __future__ import annotations

import json
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
LONG = 60_000
"""Characters of a script of one word."""
WORDS = (
    *" \n'\"\\$({[x,.#;|&é",
    *("${", "$(", "\\ ", "\\\n", "<<E\n", "A_", "a=", "- ", "--a=", "../", "# \n"),
    *("for i in ", "if ", "export A=", "torchrun ", "python ", "s3://"),
)
JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: long}}
spec:
  runtimeRef: {{name: torch-distributed}}
  trainer: {{numNodes: 2, command: [bash, -c, {}]}}
"""
RATIO = 3
"""Accepted of a script to one of half its size: 2 is linear, 4 is the square."""


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
        f" {time.perf_counter() - started:.1f} s (≤ {THOUSAND_S})"
    )
    seconds, word = max((_seconds(_of_one_word(word, LONG)), word) for word in WORDS)
    ratio = seconds / _seconds(_of_one_word(word, LONG // 2))
    print(
        f"  a script of one word, {LONG // 1000} kB: slowest {seconds:.2f} s, of {word!r}; {ratio:.1f} x one of half"
        f" its size (≤ {RATIO})\n"
    )
    return 0


def _of_one_word(word: str, characters: int) -> str:
    script = f"torchrun train.py {word * (characters // len(word))}"
    return JOB.format(json.dumps(script, ensure_ascii=False))


def _seconds(text: str) -> float:
    started = time.perf_counter()
    manifest_problems(contexts_of(read_manifest(text, "job.yaml")[0]))
    return time.perf_counter() - started


if __name__ == "__main__":
    command_line.run(main)
