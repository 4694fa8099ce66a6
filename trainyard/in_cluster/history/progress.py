"""How far a run is, by what its ranks print: steps and their time, checkpoints, goodput. Pure; who asks
for the logs: follow.py."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields
from typing import Any

KEPT_SAMPLES = 31
"""Of a step's seconds; their median is that of a step."""
LONGEST = 4000
"""Characters of a line that expressions see, its last ones, as in trainyard/catalog/logs/log_words.py."""
COLOURS = re.compile(r"\x1b\[[\d;]*m")
STEP_OF_NAME = re.compile(r"(?:step|checkpoint|iter)\D{0,3}(\d+)|^(\d+)$", re.I)
"""In the name of a checkpoint."""


@dataclass(frozen=True)
class Words:
    """How scripts say it: trainyard/catalog/logs/log_words.py."""

    resumed: tuple[re.Pattern[str], ...]
    saved: tuple[re.Pattern[str], ...]
    steps: tuple[re.Pattern[str], ...]

    @staticmethod
    def read(text: Mapping[str, Iterable[tuple[str, bool]]]) -> Words:
        """As the settings of the program have them."""
        return Words(
            **{
                name: tuple(re.compile(word, 0 if cased else re.I) for word, cased in each)
                for name, each in text.items()
            }
        )


@dataclass
class Progress:
    """What a run has said. Moments are seconds since 1970, and 0 where nothing was said."""

    resumed: str = ""
    """What it resumed from, the last time."""
    saved: str = ""
    saved_at: float = 0.0
    saved_step: int | None = None
    first: int | None = None
    """Step with which the run began."""
    step: int | None = None
    """The newest one."""
    step_at: float = 0.0
    of: int = 0
    """Steps of the longest bar of progress; shorter ones are of an evaluation."""
    seconds: list[float] = field(default_factory=list)
    """Of one step each, the newest last."""
    unsaved_since: float = 0.0
    """What was computed since then is in no checkpoint; 0 before the first step of an attempt."""
    newest: dict[str, tuple[int, float | None, int]] = field(default_factory=dict)
    """Uid of a pod → the newest step that its ranks printed in this attempt, its moment, and how many steps it
    was from the one before. Pods print out of step. No moment: a save came after it."""
    attempt: str = ""
    """Uid of the pod whose log is read first."""
    read: dict[str, float] = field(default_factory=dict)
    """Uid of a pod → moment of the last line that was read."""
    final: bool = False
    """The job has ended, and its logs were read to their end."""

    @staticmethod
    def restored(said: Mapping[str, Any]) -> Progress:
        """From a record, also of another release of this program."""
        known = {each.name for each in fields(Progress)}
        return Progress(**deepcopy({name: of for name, of in said.items() if name in known}))

    def begin(self, attempt: str) -> None:
        """A look at the pods: other ones are another attempt; none are between two."""
        if attempt != self.attempt:
            self.attempt, self.newest, self.unsaved_since = attempt, {}, 0.0

    def hear(self, at: float, line: str, words: Words, pod: str = "") -> None:
        """A line of the log of a pod, by its uid."""
        line = COLOURS.sub("", line)[-LONGEST:]
        if said := _first(words.resumed, line):
            self.resumed, self.newest = said, {}
        elif said := _first(words.saved, line):
            self.saved, self.saved_at, self.unsaved_since = said, at, at
            number = STEP_OF_NAME.search(said)
            if number and (step := int(number[1] or number[2])) > (self.step or 0):
                self._reach(step, at)
            self.saved_step = self.step
            # The time of each pod's next step has the save in it.
            self.newest = {pod: (last, None, by) for pod, (last, _, by) in self.newest.items()}
        elif match := _last(words.steps, line):
            self._step({name: int(value) for name, value in match.groupdict().items()}, at, pod)

    def _step(self, said: Mapping[str, int], at: float, pod: str) -> None:
        of = said.get("of", 0)
        if of < self.of:
            return
        self.of, self.unsaved_since = of, self.unsaved_since or at
        step = said["step"] + of * said.get("epoch", 0)
        last, was, by = self.newest.get(pod, (None, None, 0))
        if last is None:
            self.newest[pod] = (step, at, 0)
            behind = len(self.newest) > 1 and step < (self.step or 0)
        elif step < last - by:  # the pod has begun again
            self.newest, behind = {pod: (step, at, 0)}, False
        elif step <= last:  # a rank of the same pod is behind
            return
        else:
            if was is not None:
                self.seconds = [*self.seconds, (at - was) / (step - last)][-KEPT_SAMPLES:]
            self.newest[pod], behind = (step, at, step - last), step < (self.step or 0)
        if not behind:
            self._reach(step, at)

    def _reach(self, step: int, at: float) -> None:
        if step != self.step:
            self.step, self.step_at = step, at
            self.first = step if self.first is None else min(self.first, step)

    @property
    def saves(self) -> bool:
        """Its script is one that says when it saves, or that it resumed."""
        return bool(self.saved or self.resumed)

    @property
    def step_seconds(self) -> float | None:
        """The median."""
        return sorted(self.seconds)[len(self.seconds) // 2] if self.seconds else None

    def goodput(self, began: float, now: float, *, lost: bool) -> float | None:
        """Share of the time since it had a node that its steps took which are not lost; None where
        nobody knows. `lost`: it has ended without success, so what is in no checkpoint is."""
        last, each = self.saved_step if lost else self.step, self.step_seconds
        if self.first is None or each is None or not 0 < began < now:
            return None
        kept = max(0, (self.first if last is None else last) - self.first)
        return min(1.0, kept * each / (now - began))


def _first(words: Iterable[re.Pattern[str]], line: str) -> str:
    return next((match[1] for word in words if (match := word.search(line))), "")


def _last(words: Iterable[re.Pattern[str]], line: str) -> re.Match[str] | None:
    """The last match: a bar of progress is one line, however often it was drawn."""
    for word in words:
        if found := [*word.finditer(line)]:
            return found[-1]
    return None
