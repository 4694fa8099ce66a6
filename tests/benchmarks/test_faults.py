"""Which faults can be planted in a source."""

from __future__ import annotations

import pytest

from benchmarks.faults import faults, is_another_program


def _planted(source: str) -> set[str]:
    return {fault.planted(source) for fault in faults(source) if is_another_program(source, fault)}


@pytest.mark.parametrize(
    ("source", "faulty"),
    [
        ("a < b", "a <= b"),
        ("a not in b", "a in b"),
        ("a and b or c", "a or b or c"),
        ("n = x - 1", "n = x + 1"),
        ("n = 5", "n = 6"),
        ("on = True", "on = False"),
        ("name = 'gpu'", "name = 'gpux'"),
        ("f(a, b)", "f(b, a)"),
        ("f(a, depends_on=[b])", "f(a, )"),
        ("x = [a, b]", "x = [ b]"),
        ("x = {'é': 1, 'b': 2}", "x = { 'b': 2}"),
        ("x = any(y)", "x = all(y)"),
        ("x = a if b else c", "x = a if not (b) else c"),
        ("raise ValueError", "pass"),
        ("found.append(x)", "pass"),
        ("def f():\n    yield 1", "def f():\n    yield from ()"),
    ],
)
def test_a_fault_is_what_a_hurried_change_gets_wrong(source: str, faulty: str) -> None:
    assert faulty in _planted(source)


@pytest.mark.parametrize(
    "source",
    [
        '"""What it is."""',
        "import os",
        "x: int",
        "x: Literal['a']",
        "Names = Literal['a', 'b']",
        "@frozen(kw_only=True)\ndef f(): ...",
        "x = f'{y} is wrong'",
        "if __name__ == '__main__':\n    run('x')",
    ],
)
def test_what_no_program_does_gets_no_fault(source: str) -> None:
    assert _planted(source) == set()


def test_what_means_the_same_is_no_fault() -> None:
    assert "x = max(b, a)" not in _planted("x = max(a, b)")


def test_a_sentence_for_people_gets_no_fault() -> None:
    assert _planted("x = f(must='be a zone')") == set()
