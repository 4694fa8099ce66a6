"""A terminal for the tests of questions: somebody who answers, or nobody."""

from __future__ import annotations

import sys

import pytest


class Terminal:
    """Standard input. `answer` is what a person types; None is no terminal."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answer: str | None) -> None:
        self.answer, self.asked = answer, list[str]()
        monkeypatch.setattr(sys, "stdin", self)
        monkeypatch.setattr("builtins.input", self._input)

    def isatty(self) -> bool:
        return self.answer is not None

    def _input(self, question: str) -> str:
        self.asked.append(question)
        if not self.answer:
            raise EOFError
        return self.answer
