"""Variables of a script have the values that bash gives them, or none where that is not sure."""

from __future__ import annotations

import subprocess

import pytest

from trainyard.derive.variables import values_at, with_values

KNOWN = {
    "A=1": {"A": "1"},
    "export A=1 B='x y'; C=\"$A $B\"": {"A": "1", "B": "x y", "C": "1 x y"},
    "declare -x A=1 # a comment": {"A": "1"},
    "A=(a 'b' \\\n  # no c\n  $HOME)": {"A": "a b $HOME"},
    'A=1\nB=(--n $A)\nC="${B[@]} ${A}"': {"A": "1", "B": "--n 1", "C": "--n 1 1"},
    "cd / && A=1": {"A": "1"},
    "A=$(date +%s)": {"A": "$(date +%s)"},
    'A=1; [ "$A" = 1 ] && B=2': {"A": "1"},
    "A=1\necho A=$A; printf 'A=2'": {"A": "1"},
}
UNKNOWN = (
    *("A=1; A=2", "if a; then A=1; fi", "f() { A=1; }", "(A=1)", "A=1 | b", "A=1 b"),
    *("[ a ] && A=1", "a || A=1", "A=1; A+=2", "A=1; read A", "for A in 1; do b; done"),
    *("A=1; source b", "eval A=1", 'A="$A 1"', "A=1; A[2]=3", "A=1; (( A++ ))", "A='x"),
    "cat > a <<EOF\nA=1\nEOF",
)


@pytest.mark.parametrize("script", KNOWN)
def test_a_variable_that_a_script_assigns_once_is_known(script: str) -> None:
    values = values_at(f"{script}\nb", len(script) + 1)
    assert {name: with_values(value, values) for name, value in values.items()} == KNOWN[script]


@pytest.mark.parametrize("script", UNKNOWN)
def test_a_variable_that_may_have_another_value_is_not_known(script: str) -> None:
    assert "A" not in values_at(f"{script}\nb", len(script) + 1)


def test_a_variable_is_not_known_before_it_is_assigned() -> None:
    assert values_at("b\nA=1", 1) == {}


def test_variables_in_a_circle_come_to_an_end() -> None:
    script = "A=$B; B=$C; C=$A; d"
    assert with_values("$A", values_at(script, len(script))) in ("$A", "$B", "$C")


def test_values_of_variables_take_their_places_as_in_bash() -> None:
    text = "$A ${A} ${A:-7} $AB \\$A ${#A} '${B[@]}' ${C:-7}"
    assert with_values(text, {"A": "1", "B": "2"}) == "1 1 1 $AB \\$A ${#A} '2' ${C:-7}"


def test_known_values_are_those_of_bash() -> None:
    begin = "HOME=h; date() { echo d; }"
    for script, values in KNOWN.items():
        for name, value in values.items():
            text = f'{begin}\n{{ {script}\n}} > /dev/null\nprintf %s "${{{name}[*]}}"'
            shown = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True)
            assert shown.stdout == value.replace("$HOME", "h").replace("$(date +%s)", "d"), script
