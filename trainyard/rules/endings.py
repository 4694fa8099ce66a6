"""Errors about scripts that hide how their launcher ends: a pod that is complete before it has trained, or although
it failed, and one that never ends.

A pod ends with the exit code of its script, which is that of the last command (POSIX.1-2024, Shell Command Language,
2.8.2 and 2.9; bash 5.2, doc/bashref.texi, Pipelines, Lists, The Set Builtin). Kubernetes counts code 0 as success.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from trainyard.derive.job_view import ContainerView, JobView
from trainyard.derive.launchers import launcher_of
from trainyard.derive.shell import READS_MORE, Command, Script, read_script, text_at
from trainyard.problems import InputError, InputWarning

Problems = Iterator[InputError | InputWarning]
FOREVER = re.compile(
    r"sleep\s+(?:inf(?:inity)?|\d+d)$|tail\s+(?!.*--pid)(?:.*\s)?(?:-[fF]|--follow)\b"
)
"""A command that never ends."""
BRIEF = re.compile(
    r"(?:echo|printf|date|true|:|exit|set|export|cd|disown|touch|ls|sleep\s+\d+[sm]?$)(?:\s|$)|\w+=\S*$"
)
"""A command that ends at once."""
NO_FAILURE = re.compile(r"(?:echo|printf|date|true|:|touch|sleep|logger|exit\s+0\b)(?:\s|$)")
"""A command behind || that forgets the failure."""
WAITS = re.compile(r"\b(?:wait|fg|jobs|kill|pgrep|ps|trap)\b|--pid")
"""Words by which a script waits for what it has started, or may do so."""
RAY_WORKER = re.compile(
    r"(exec\s+)?(?:\S*/)?ray\s+start\s(?!.*--head\b)(?=.*--address\b)", re.DOTALL
)
"""A command by which a node joins a Ray head."""
LOOPS = re.compile(r"\bwhile\s+(?:true|:)\s*[;\n]\s*do\s+sleep\s+\S+\s*[;\n]\s*done\b")
"""A loop that never ends."""
TRIES = re.compile(r"(?:.*\s)?(?P<word>until|while\s+!)\s+(?P<command>.*)")
"""A loop, as a condition of the commands in it, that goes on as long as a command fails."""
ALWAYS = re.compile(r"(?:.*\s)?(?:while\s+(?:true|:)|until\s+false)\s*$")
"""A loop that goes on whatever happens."""
BOUNDS = re.compile(
    r"(?<![\w./-])(?:break|exit|return|kill|let|expr|exec)\b(?![.\w=])|(?<![\w-])timeout\s+[-\d$]|\btest\s+[-$\"']"
    r"|\(\(|\[ |\b(?:SECONDS|date)\b"
)
"""Words by which a loop ends: a jump out of it, a number of tries, or a time."""
BRANCH_ENDS = re.compile(r"(?:^|[\s;])(?:else|elif|fi|esac)(?=[\s;]|$)|;;")
"""Words between which the commands of an if or a case stand."""
ASKS = re.compile(
    r"\$\?|PIPESTATUS|\b(?:trap|wait)\b|\b(?:exit|return)\b(?!\s+0\b)|\b(?:false|kill|eval|grep|test)\b|\[ "
)
"""Words by which a script ends with a code of its own."""


def hidden_end(view: JobView, container: ContainerView) -> Problems:
    """Every launcher of a script whose end the script hides. One inside of if, a loop or a function is not judged:
    what the script does with its code is not known. bash ends where exec starts one."""
    script = read_script(_text(container))
    for number, command in enumerate(script.commands):
        launcher = launcher_of(command.text)
        if launcher and command.depth == 0 and not command.text.startswith("exec "):
            yield from _of_launch(container, script, number, launcher)


def endless_tries(view: JobView, container: ContainerView) -> Problems:
    """Loops that start a launcher again for ever: one that fails in each try, or that has ended well, keeps its nodes.
    bash asks for the end of neither (POSIX.1-2024, Shell Command Language, 2.9.4, The while Loop, The until Loop)."""
    script = read_script(_text(container))
    lines = dict.fromkeys(line for each in script.commands for line in each.under.splitlines())
    for line in lines:
        inside = [each for each in script.commands if line in each.under.splitlines()]
        body = script.text[inside[0].end - len(inside[0].text) : inside[-1].end]
        if BOUNDS.search(f"{line}\n{body}"):
            continue
        tries = TRIES.match(line)
        if tries and (launcher := launcher_of(tries["command"])):
            loop = f"{' '.join(tries['word'].split())} {launcher}"
            yield container.where("script").warning(_goes_on_for_ever(loop, "where each try fails"))
        elif ALWAYS.match(line):
            for launcher in [found for each in inside if (found := launcher_of(each.text))][:1]:
                text = _goes_on_for_ever(" ".join(line.split()), f"also when {launcher} has ended")
                yield container.where("script").warning(text)


def _goes_on_for_ever(loop: str, when: str) -> str:
    return (
        f"`{loop}` goes on for ever, {when}, and the nodes are paid for until somebody deletes the job; count the"
        " tries, as `for try in 1 2 3; do torchrun … && break; done` does, or let restarts of the gang do it"
    )


def ray_workers(view: JobView, container: ContainerView) -> Problems:
    """Nodes of Ray that do not end when its head has ended, or that end with an error then. `ray start --block` ends
    with code 1 when the raylet has died (ray 2.9 and later, python/ray/scripts/scripts.py), which dies when it has
    found no head for 60 s (gcs_rpc_client.h). A PyTorchJob is complete when its Master is, and its other pods then
    go on, unless a cleanPodPolicy deletes them (training-operator v1.8.1, pytorchjob_controller.go; common/job.go,
    DeletePodsAndServices)."""
    if view.nodes < 2 or view.mpi or view.deletes_others:
        return
    script = read_script(_text(container))
    for command in script.commands:
        worker = RAY_WORKER.match(command.text)
        if not worker or command.operator in (("&", "|") if worker[1] else ("&", "|", "||")):
            continue
        branch = BRANCH_ENDS.split(script.text[command.end :])[0]
        if stays := _stays(branch):
            yield container.where("script").warning(
                f"`{stays}` keeps this pod after the Ray head has ended, and its node is paid for, until somebody"
                f" deletes the job; write --block || true behind `ray start` in its place{_or_cleaned(view)}"
            )
        elif "--block" in command.text and (worker[1] or not read_script(branch).commands):
            yield from _fails_with_its_head(view, container, bool(worker[1]))


def _fails_with_its_head(view: JobView, container: ContainerView, by_exec: bool) -> Problems:
    """A pod that fails when the Ray head has ended, which does no harm where the job is complete and the pod does not
    start again. `by_exec`: bash runs nothing behind it."""
    if view.first_decides and not (view.restarts or view.pods_restart):
        return
    then = "a complete run counts as failed, and starts again if it may restart"
    if view.first_decides:
        then = "the job is complete, and this pod starts again for ever, on its node"
    yield container.where("script").warning(
        f"`ray start --block` ends with code 1 a minute after the Ray head has ended: {then};"
        f" {'delete exec, and ' if by_exec else ''}write || true behind it{_or_cleaned(view)}"
    )


def _or_cleaned(view: JobView) -> str:
    """The other way, where the end of one pod is that of the job."""
    if not view.first_decides:
        return ""
    entry = view.origin == "entry"
    return f", or add {'clean_pods: running' if entry else 'runPolicy: {cleanPodPolicy: Running}'}"


def _stays(branch: str) -> str:
    """The first command that never ends, or a loop of them; empty where there is none."""
    stays = [each.text for each in read_script(branch).commands if FOREVER.match(each.text)]
    stays += [" ".join(loop.split()) for loop in LOOPS.findall(branch)]
    return stays[0][:60] if stays else ""


def _text(container: ContainerView) -> str:
    """The text that a shell gets by -c, behind the options of the shell as commands; empty where there is none."""
    words, at = container.words, text_at(container.words)
    if at is None:
        return ""
    options = " ".join(words[1:at])
    errexit = "set -e\n" if re.search(r"(?:^| )-[a-z]*e|errexit", options) else ""
    pipefail = "set -o pipefail\n" if "pipefail" in options else ""
    return f"{errexit}{pipefail}{words[at]}"


def _of_launch(container: ContainerView, script: Script, number: int, launcher: str) -> Problems:
    """The problem of one launcher, the most costly one."""
    commands, place = script.commands, container.where("script")
    last = _end_of_pipe(commands, number)
    in_background = commands[last].operator == "&"
    if in_background and WAITS.search(script.text, commands[last].end):
        return
    stays, before = _for_ever(commands, last)
    if stays and before == "||" and not in_background:
        yield place.warning(
            f"after a failure of {launcher} `{stays}` keeps the pods, and their nodes are paid for, until somebody"
            " deletes the job"
        )
    elif stays:
        yield place.must(
            f"end when {launcher} ends: as it stands the pods stay, and their nodes are paid for, until somebody"
            " deletes the job",
            got=stays,
            fix="put wait $! in its place" if in_background else f"delete the command {stays}",
        )
    elif in_background and all(BRIEF.match(each.text) for each in commands[last + 1 :]):
        yield place.must(
            f"wait for {launcher}: it starts in the background, so the script ends at once, and the pod is complete"
            " before it has trained",
            got=f"{' '.join(commands[last].text.split())[:57]} &",
            fix="put wait $! on the last line; or delete the & behind it",
        )
    elif not in_background and (text := _lost(container, script, number, last)):
        yield place.warning(f"a failure of {launcher} is lost: {text}")


def _end_of_pipe(commands: Sequence[Command], number: int) -> int:
    """The last command of the pipe that a command begins."""
    while commands[number].operator == "|" and number + 1 < len(commands):
        number += 1
    return number


def _for_ever(commands: Sequence[Command], last: int) -> tuple[str, str]:
    """A command that never ends, where it comes when the launcher has ended, and the operator before it. One behind
    the && or || of another command may be for whoever debugs."""
    is_own, is_joined = True, False
    for number in range(last + 1, len(commands)):
        command, before = commands[number], commands[number - 1].operator
        is_own &= before in ("&&", "||")
        is_joined = not is_own and before in ("&&", "||")
        if command.depth or is_joined:
            continue
        if FOREVER.match(command.text) and command.operator not in ("&", "|"):
            return command.text[:60], before
        if re.match("ex(?:it|ec)\\b", command.text):
            break
    return "", ""


def _lost(container: ContainerView, script: Script, number: int, last: int) -> str:
    """The reason for which the code of a launcher is not that of its script, and what ends that; empty where it is,
    or where that is not known."""
    commands = script.commands
    if READS_MORE.search(script.text) or ASKS.search(script.text, commands[last].end):
        return ""
    if last > number and not re.search("pipefail|PIPESTATUS", script.text):
        program = commands[last].text.split()[0]
        return (
            f"the exit code of a pipe is that of its last command, {program}, so the run counts as complete;"
            f" {_strict(container, script)}"
        )
    guarded = commands[last].operator == "&&"
    while commands[last].operator == "&&" and last + 1 < len(commands):
        last = _end_of_pipe(commands, last + 1)
    operator, *then = commands[last].operator, *commands[last + 1 : last + 2]
    if not then:
        return ""
    shown = f"`{' '.join(then[0].text.split())[:40]}`"
    if operator == "||":
        forgets = then[0].depth == 0 and NO_FAILURE.match(then[0].text)
        text = (
            f"|| goes on with {shown}, so the run counts as complete; write || exit 1 in its place"
        )
        return text if forgets else ""
    ways = ["write what stands behind && on a line of its own"] * guarded
    ways += [_strict(container, script)] * (not _has_errexit(script.text[: commands[number].end]))
    return _goes_on(shown, ways) if operator in (";", "\n") else ""


def _goes_on(shown: str, ways: Sequence[str]) -> str:
    """A script that goes on behind a failure. bash does so with set -e, too, behind && of the same line."""
    return (
        f"the script goes on with {shown}, whose exit code becomes that of the pod; {', and '.join(ways)}"
        if ways
        else ""
    )


def _has_errexit(text: str) -> bool:
    """True where bash ends at the first command that fails, behind this text."""
    said = re.findall(r"\bset\s+(?:[-+]\w+\s+)*?([-+])(?:[a-z]*e[a-z]*|o\s+errexit)\b", text)
    return bool(said) and said[-1] == "-"


def _strict(container: ContainerView, script: Script) -> str:
    """The way to make a failure end the script. Not every sh has pipefail."""
    if re.search(r"\bset\s+\+\w*e", script.text):
        return "delete set +e"
    is_bash = PurePosixPath(container.words[0]).name == "bash"
    return f"{'' if is_bash else 'start bash, and '}write set -euo pipefail on its first line"
