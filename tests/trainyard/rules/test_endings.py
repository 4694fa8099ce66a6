"""A script that hides the end of its launcher is refused or warned about, and one that tells it is not."""

from __future__ import annotations

import pytest

from tests.support.stackfile import at, planned, without
from tests.trainyard.rules.test_jobs import JOB, SCRIPT, of_entry, of_file
from trainyard.problems import InputError

ENDS = ("wait for ", "end when ", "a failure of ", "after a failure ")


def said(problems: list[str]) -> list[str]:
    return [each for each in problems if each.startswith(ENDS)]


NEVER = "end when torchrun ends: as it stands the pods stay"
REFUSED = {
    "in the background": (
        "torchrun t.py &\necho started",
        "wait for torchrun: it starts in the background",
    ),
    "in the background by nohup": ("nohup torchrun t.py > /tmp/log 2>&1 &", "wait for torchrun"),
    "in the background with a pipe": ("torchrun t.py | tee log & PID=$!", "wait for torchrun"),
    "then for ever": ("torchrun t.py\nsleep infinity", NEVER),
    "then for ever on a line": ("cd /a && torchrun t.py; tail -f /dev/null", NEVER),
    "then for ever where it worked": ("torchrun t.py && sleep infinity", NEVER),
    "its log for ever": ("torchrun t.py > log 2>&1 &\ntail -f log", NEVER),
    "another launcher": (
        "accelerate launch --config_file a.yaml t.py &",
        "wait for accelerate launch",
    ),
}
LOST_BEHIND_SET_E = {
    "|| true": "a failure of torchrun is lost: || goes on with `true`",
    "|| echo failed": "a failure of torchrun is lost: || goes on with `echo failed`",
    "&& echo good || echo bad": "a failure of torchrun is lost: || goes on with `echo bad`",
    "|| sleep infinity": "after a failure of torchrun `sleep infinity` keeps the pods",
    "&& cp a b\necho done": "write what stands behind && on a line of its own",
}
LOST = {
    "| tee log": "the exit code of a pipe is that of its last command, tee, so",
    "2>&1 | tee log; echo done": "write set -euo pipefail on its first line",
    "; echo done": "the script goes on with `echo done`, whose exit code becomes that of the pod",
    "\necho done": "the script goes on with `echo done`",
    "\nexit 0": "the script goes on with `exit 0`",
    **LOST_BEHIND_SET_E,
}
"""What stands behind torchrun → what is said."""


@pytest.mark.parametrize("name", REFUSED)
def test_a_launcher_whose_end_nobody_sees_is_refused(name: str) -> None:
    script, says = REFUSED[name]
    for judged in (of_entry, of_file):
        for nodes in (1, 2):
            [found] = said(judged(script, nodes))
            assert says in found


@pytest.mark.parametrize("behind", LOST)
def test_a_failure_that_the_script_forgets_is_warned_about(behind: str) -> None:
    [found] = said(of_file(f"cd /a\ntorchrun t.py {behind}"))
    assert LOST[behind] in found


@pytest.mark.parametrize("behind", LOST)
def test_a_script_of_an_entry_ends_at_the_first_failure(behind: str) -> None:
    """Trainyard writes set -euo pipefail before it."""
    found = said(of_entry(f"cd /a\ntorchrun t.py {behind}"))
    assert [LOST_BEHIND_SET_E[behind] in each for each in found] == [True] * (
        behind in LOST_BEHIND_SET_E
    )


def test_an_entry_that_takes_set_e_back_is_told_to_delete_that() -> None:
    [found] = said(of_entry("set +e\ntorchrun t.py\necho done"))
    assert found.endswith("delete set +e")


def test_sh_has_no_pipefail_everywhere() -> None:
    words = ["sh", "-c", "torchrun t.py | tee log"]
    made = planned(at(f"{JOB}.command", words), without(SCRIPT))
    [found] = said([each.text for each in made.warnings])
    assert found.endswith("start bash, and write set -euo pipefail on its first line")


SOUND = (
    "torchrun t.py",
    "torchrun t.py &\nwait $!",
    "torchrun t.py & PID=$!\ntrap 'kill -TERM $PID' TERM\nwait $PID",
    "torchrun t.py & P=$!; tail -f --pid=$P log",
    "torchrun t.py & python watch.py",
    "torchrun a.py & torchrun b.py; wait",
    "tensorboard --logdir /a & torchrun t.py",
    "set -o pipefail; torchrun t.py 2>&1 | tee log",
    "torchrun t.py | tee log; exit ${PIPESTATUS[0]}",
    "exec > >(tee log) 2>&1\ntorchrun t.py",
    "cd /a && torchrun t.py && python export.py",
    "torchrun t.py || exit 1",
    "torchrun t.py || { echo failed; exit 1; }",
    "torchrun t.py || fail\n",
    "set -e\ntorchrun t.py\necho done",
    "set -euxo pipefail\ntorchrun t.py | tee log\necho done",
    "torchrun t.py\nrc=$?\necho done\nexit $rc",
    "torchrun t.py; rc=$?; cp log /a; exit $rc",
    "trap cleanup EXIT\ntorchrun t.py; trap - EXIT",
    "while ! torchrun t.py; do sleep 10; done",
    "for seed in 1 2; do torchrun t.py --seed $seed; done",
    "if torchrun t.py; then echo good; else exit 1; fi",
    'torchrun t.py\n[ -n "$DEBUG" ] && sleep infinity || exit 1',
    "torchrun t.py\nif [ $? -ne 0 ]; then sleep infinity; fi",
    "echo torchrun t.py | tee log",
    "cat > run.sh <<EOF\ntorchrun t.py &\nEOF\nbash run.sh",
    "sleep infinity & torchrun t.py",
    "exec torchrun t.py",
    "exec torchrun t.py\nsleep infinity",
    "torchrun t.py | tee log; grep -q finished log",
    "torchrun t.py || true\n[ -f /a/done ]",
    "tail -f log & torchrun t.py",
    'torchrun t.py --prompt "a & b; sleep infinity | c"',
)


@pytest.mark.parametrize("script", SOUND)
def test_a_script_that_tells_how_its_launcher_ends_passes(script: str) -> None:
    assert said(of_entry(script)) == said(of_file(script)) == []


@pytest.mark.parametrize(
    "words",
    [
        ["bash", "-ec", "torchrun t.py; echo done"],
        ["bash", "-euo", "pipefail", "-c", "torchrun t.py | tee log\necho done"],
        ["bash", "-o", "errexit", "-c", "torchrun t.py\necho done"],
        ["torchrun", "t.py", "&"],
    ],
)
def test_options_of_the_shell_are_those_of_its_script(words: list[str]) -> None:
    made = planned(at(f"{JOB}.command", words), without(SCRIPT))
    problems = [
        p.must if isinstance(p, InputError) else p.text for p in (*made.errors, *made.warnings)
    ]
    assert said(problems) == []
