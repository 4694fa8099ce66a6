"""Before something ends, somebody is asked."""

from __future__ import annotations

import pytest

from tests.trainyard.operations.terminal import Terminal
from trainyard.operations.reach.consent import ask


@pytest.mark.parametrize(
    ("answer", "code"), [("y", 0), ("Yes ", 0), ("n", 3), ("\n", 3), ("yy", 3), ("", 3)]
)
def test_only_a_clear_yes_is_a_yes(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: str,
    code: int,
) -> None:
    terminal = Terminal(monkeypatch, answer)
    assert ask("End it?", yes=False, otherwise="Nothing was ended.") == code
    assert terminal.asked == ["End it? [y/N] "]
    assert ("Nothing was ended." in capsys.readouterr().out) == bool(code)


def test_without_a_terminal_and_without_yes_it_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal(monkeypatch, None)
    assert ask("End it?", yes=False, otherwise="Nothing was ended.") == 2
    assert capsys.readouterr().err == (
        "End it? There is no terminal to answer this question, and --yes is not given."
        " Nothing was ended.\n"
    )
    assert ask("End it?", yes=True, otherwise="") == 0 and terminal.asked == []
