"""Lines of a log that say which part of the training is done: a step of so many, a bar of progress, an epoch.

Sources, read on 2026-11-27: those of log_words.py; of epochs transformers' `TrainingArguments.num_train_epochs` and
`Trainer` ("Num Epochs = 3"), Lightning's `Trainer(max_epochs=…)` and `RichProgressBar`, whose last epoch has the number
of epochs less one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

_OF_EPOCHS = (
    re.compile(
        r"\bEpoch (?P<epoch>\d+)/(?P<last>\d+) +[━╸╺ ]+(?P<step>\d+)/(?P<of>\d+) \d+:\d\d:\d\d"
    ),
    re.compile(r"\bEpoch (?P<epoch>\d+): +\d+%\|[^|]*\| *(?P<step>\d+)/(?P<of>\d+) \["),
    re.compile(r"['\"]epoch['\"]: ['\"]?(?P<epoch>\d+(?:\.\d+)?)['\"]?[,}]"),
)
"""Lightning's two bars, of one epoch each, and the line of transformers' Trainer. `last`: number of the last epoch."""
_OF_STEPS = (
    re.compile(r"\biteration +(?P<step>\d+)/ *(?P<of>\d+) \|"),
    re.compile(r"(?:^|\r) *\d+%\|[^|]*\| *(?P<step>\d+)/(?P<of>\d+) \["),
    re.compile(
        r"(?<![\w-])(?:global_)?steps?[\"']?[:=]? *\[?(?P<step>[\d,]+)(?: */ *| of )(?P<of>[\d,]+)",
        re.I,
    ),
)
"""Megatron-LM, tqdm, and what people write: step 43/100, Step [43/100], step 43 of 100."""
_EPOCHS = re.compile(
    r"(?:--(?:trainer\.)?(?:num_train_epochs|num_epochs|max_epochs|epochs)[ =]|\bNum Epochs = )"
    r"(?P<of>\d[\d.,]*)"
)
"""Number of epochs, in arguments or in a log."""
_MOST_STEPS = re.compile(r"--max_steps[ =][1-9]")
"""With it the number of epochs is not the end."""


@dataclass(frozen=True, kw_only=True)
class Done:
    """A part of the training."""

    step: float
    of: float
    """Steps, or epochs, of the whole training."""

    @property
    def share(self) -> float:
        """0 to 1."""
        return min(1.0, self.step / self.of)


@dataclass(frozen=True, kw_only=True)
class Reached:
    """Part of its training that a run says is done, and how fast it came there."""

    share: float
    """0 to 1."""
    at: datetime
    """Moment at which it said so."""
    share_a_second: float | None
    """Since its log begins, or since it was last set back; None where it said it once."""


def epochs_said(texts: Iterable[str]) -> float | None:
    """Number of epochs that arguments or lines of a log say; None where they say none, or a number of steps."""
    found: float | None = None
    for text in texts:
        if _MOST_STEPS.search(text):
            return None
        if match := _EPOCHS.search(text):
            found = _number(match["of"].rstrip(".,"))
    return found or None


def done(line: str, epochs: float | None = None) -> Done | None:
    """The part that a line says is done; None where it says nothing, or where nobody knows of how many epochs.
    `epochs`: of the whole training."""
    for word in _OF_EPOCHS:
        if match := _last(word, line):
            said = match.groupdict()
            whole = float(said["last"]) + 1 if said.get("last") else epochs
            within = _number(said["step"]) / _number(said["of"]) if said.get("of") else 0.0
            return Done(step=float(said["epoch"]) + within, of=whole) if whole else None
    for word in _OF_STEPS:
        match = _last(word, line)
        if match and _number(match["of"]):
            return Done(step=_number(match["step"]), of=_number(match["of"]))
    return None


def _last(word: re.Pattern[str], line: str) -> re.Match[str] | None:
    """The last match: a bar of progress is one line, however often it was drawn."""
    found = [*word.finditer(line)]
    return found[-1] if found else None


def _number(text: str) -> float:
    return float(text.replace(",", ""))
