"""A script that hides the end of its launcher is refused or warned about, and one that tells it is not."""

from __future__ import annotations

import pytest

from tests.support.stackfile import at, planned, without
from tests.trainyard.rules.test_jobs import JOB, SCRIPT, of_entry, of_file
from trainyard.manifests.context import contexts_of
from trainyard.manifests.document import read_manifest
from trainyard.problems import InputError
from trainyard.rules.jobs import job_problems

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


JOINS = "ray start --address=$PET_MASTER_ADDR:6379"
RAY = "if [ $PET_NODE_RANK = 0 ]; then ray start --head; python t.py; else {}; fi"
UNTIL_IT_ENDS = "while ray status --address $PET_MASTER_ADDR:6379 > /dev/null; do sleep 15; done"
RAY_STAYS, RAY_FAILS = (
    "keeps this pod after the Ray head has ended",
    "`ray start --block` ends with code 1",
)


def said_of_ray(problems: list[str]) -> list[str]:
    return [each for each in problems if RAY_STAYS in each or RAY_FAILS in each]


@pytest.mark.parametrize(
    ("worker", "says"),
    [
        (f"{JOINS}\nsleep infinity", f"`sleep infinity` {RAY_STAYS}"),
        (f"{JOINS} --num-gpus=8 && tail -f /dev/null", f"`tail -f /dev/null` {RAY_STAYS}"),
        (f"{JOINS}; while true; do sleep 3600; done", RAY_STAYS),
        (f"{JOINS} --block", f"{RAY_FAILS} a minute after the Ray head has ended: a complete run"),
        (f"exec {JOINS} --block || true", "delete exec, and write || true behind it"),
    ],
)
def test_a_node_of_ray_that_does_not_end_well_with_its_head_is_a_warning(
    worker: str, says: str
) -> None:
    for script in (RAY.format(worker), f'case "$PET_NODE_RANK" in 0) a ;; *) {worker} ;; esac'):
        for judged in (of_entry, of_file):
            [found] = said_of_ray(judged(script))
            assert says in found and "|| true behind" in found
            assert said_of_ray(judged(script, 1)) == []


@pytest.mark.parametrize(
    "script",
    [
        RAY.format(f"{JOINS}; {UNTIL_IT_ENDS}"),
        RAY.format(f"{JOINS} --block || true"),
        RAY.format(f"{JOINS} --block; exit 0"),
        RAY.format(f"{JOINS} --block & wait"),
        f"if [ $PET_NODE_RANK = 0 ]; then ray start --head --block & python t.py; else {JOINS}; bash wait.sh; fi",
        f"if [ $PET_NODE_RANK != 0 ]; then {JOINS}; bash wait.sh; else ray start --head; python t.py || sleep 1d; fi",
        "ray start --head --block",
    ],
)
def test_a_node_of_ray_that_ends_with_its_head_passes(script: str) -> None:
    assert said_of_ray(of_entry(script)) == said_of_ray(of_file(script)) == []


@pytest.mark.parametrize(
    ("worker", "more", "says"),
    [
        (f"{JOINS} --block", "", "this pod starts again for ever, on its node"),
        (f"{JOINS} --block", "restartPolicy: Never", ""),
        (f"{JOINS} --block", "cleanPodPolicy: Running", ""),
        (f"{JOINS}; sleep infinity", "restartPolicy: Never", RAY_STAYS),
        (f"{JOINS}; sleep infinity", "cleanPodPolicy: All", ""),
    ],
)
def test_workers_of_ray_in_a_pytorch_job_stay_unless_they_are_cleaned(
    worker: str, more: str, says: str
) -> None:
    restarts = "Never" if "Never" in more else "OnFailure"
    policy = f"{{{more}}}" if "clean" in more else "{}"
    template = (
        "{{replicas: 1, restartPolicy: {restarts}, template: {{spec: {{containers: [{{name: pytorch, image: 'a/b:1',"
        " command: [bash, -c, {script!r}], resources: {{limits: {{nvidia.com/gpu: 8}}}}}}]}}}}}}"
    )
    master = template.format(restarts=restarts, script="ray start --head; python t.py")
    text = (
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: a}\nspec:\n"
        f"  runPolicy: {policy}\n  pytorchReplicaSpecs:\n    Master: {master}\n"
        f"    Worker: {template.format(restarts=restarts, script=worker)}\n"
    )
    workloads, errors = read_manifest(text, "job.yaml")
    found = [str(each) for each in job_problems(contexts_of(workloads)[0].view)]
    found = said_of_ray(found)
    assert errors == () and len(found) == bool(says) and all(says in each for each in found)
    assert all("or add runPolicy: {cleanPodPolicy: Running}" in each for each in found)


FOR_EVER = {
    "until torchrun t.py; do sleep 10; done": "`until torchrun` goes on for ever, where each try fails",
    "until torchrun \\\n  --max_restarts=3 t.py\ndo\n  echo again\ndone": "`until torchrun` goes on",
    "while ! accelerate launch t.py; do sleep 1; done": "`while ! accelerate launch` goes on",
    "until timeout_is_off=1 torchrun t.py; do sleep 5; done": "`until torchrun` goes on",
    "while true; do torchrun t.py; sleep 5; done": "`while true` goes on for ever, also when torchrun has ended",
    "while :; do\n  torchrun test.py --timeout 30 || true\ndone": "`while :` goes on for ever",
    "cd /a && while true; do torchrun t.py; done": "`cd /a && while true` goes on",
}


@pytest.mark.parametrize("script", FOR_EVER)
def test_tries_of_a_launcher_without_an_end_are_a_warning(script: str) -> None:
    for problems in (of_entry(script), of_file(script)):
        [text] = [each for each in problems if "goes on for ever" in each]
        assert text.startswith(FOR_EVER[script])
        assert "count the tries, as `for try in 1 2 3; do torchrun … && break; done` does" in text


@pytest.mark.parametrize(
    "script",
    [
        "n=0; while [ $n -lt 5 ]; do torchrun t.py && break; n=$((n+1)); done",
        "while true; do torchrun t.py && break; sleep 5; done",
        "until torchrun t.py; do n=$((n+1)); [ $n -lt 5 ] || exit 1; done",
        "until torchrun t.py || [ $n -ge 5 ]; do sleep 1; done",
        "until timeout 3600 torchrun t.py; do sleep 1; done",
        "while true; do if torchrun t.py; then exit 0; fi; done",
        "for try in 1 2 3; do torchrun t.py && break; done",
        "until nc -z $PET_MASTER_ADDR 29500; do sleep 1; done; torchrun t.py",
        "while true; do nvidia-smi; sleep 60; done & torchrun t.py",
        "while read line; do torchrun t.py $line; done < runs",
    ],
)
def test_tries_that_end_and_other_loops_are_left_alone(script: str) -> None:
    assert [each for each in (*of_entry(script), *of_file(script)) if "goes on for" in each] == []
