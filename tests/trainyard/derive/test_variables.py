"""Variables of a script have the values that bash gives them, or none where that is not sure."""

from __future__ import annotations

import subprocess

import pytest

from trainyard.derive.variables import (
    in_arithmetic,
    is_assigned,
    is_assigned_first,
    is_used,
    values_at,
    with_values,
)

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


SETS = (
    *("A=1; b $A", "export A=$B", "A+=x; b $A", "A=(1 2); b ${A[0]}", "A=\\$A", "A=$((B * AB))"),
    *("A=$AB", "# b $A\nA=1", "A[0]=$B"),
)
NEEDS_ITSELF = ("A=$A", "export B=1 A=${A}", "A=$((A * 8))", 'A="x $A y"', "A=$(b $A)")
DEFAULTS = ("A=${A:-1}", 'export A="${A-$B}"', "A=${A:=1}")


@pytest.mark.parametrize("script", SETS)
def test_a_script_assigns_a_variable_of_which_it_needs_no_value(script: str) -> None:
    assert is_assigned("A", script) and is_assigned_first("A", script)


@pytest.mark.parametrize("script", NEEDS_ITSELF)
def test_a_script_that_makes_a_variable_of_itself_needs_a_value(script: str) -> None:
    assert is_used("A", script) and not is_assigned("A", f"{script}; {script}")
    assert _ends_where_none_is_set(script) and not is_assigned_first("A", script)


@pytest.mark.parametrize("script", DEFAULTS)
def test_a_default_is_a_value_but_not_where_there_would_be_another(script: str) -> None:
    assert is_assigned("A", script) and not is_assigned_first("A", script)
    assert not _ends_where_none_is_set(f"B=1; {script}")


def _ends_where_none_is_set(script: str) -> bool:
    text = f"b() {{ :; }}\n{script}"
    return bool(subprocess.run(["bash", "-uc", text], capture_output=True, check=False).returncode)


def test_a_variable_is_used_before_it_is_assigned() -> None:
    script = "f() { b $A; }; A=1; f"
    assert is_assigned("A", script) and not is_assigned_first("A", script)
    assert not is_assigned("A", "b --A=1 $A; BA=1; A==1")


@pytest.mark.parametrize(
    "script",
    [
        "trap 'echo \"A=$A\"' ERR\nA=1",
        'f() { echo "A=$A B=$B"; }\nexport B=2 A=1\nf',
        "f() { A=$((A + 1)); }\nA=0\nf",
        "(( A = 0 ))\nb $((A + 1))",
        ": $((A = 3))",
    ],
)
def test_what_is_said_of_a_variable_before_does_not_hide_that_it_gets_a_value(script: str) -> None:
    assert is_assigned("A", script)


def test_names_in_arithmetic_are_variables() -> None:
    assert in_arithmetic("$((AB * ${CD} + EF_1)) $((16#FF)) ((GH)) $(( ${#IJ} ))") == ["AB", "EF_1"]
    assert in_arithmetic("$(( $(nproc) / $(nvidia-smi -L | grep -c GPU) + `b CD` + EF ))") == ["EF"]
