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
from trainyard.derive.shell import Command, Script, read_script
from trainyard.problems import InputError, InputWarning
from trainyard.rules.one_node import READS_MORE
from trainyard.rules.scripts import SHELLS

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


def _text(container: ContainerView) -> str:
    """The text that a shell gets by -c, behind the options of the shell as commands; empty where there is none."""
    words = container.words
    flags = [n for n, word in enumerate(words[:-1]) if re.fullmatch(r"-[a-z]*c", word)]
    if not flags or PurePosixPath(words[0]).name not in SHELLS:
        return ""
    options = " ".join(words[1 : flags[0] + 1])
    errexit = "set -e\n" if re.search(r"(?:^| )-[a-z]*e|errexit", options) else ""
    pipefail = "set -o pipefail\n" if "pipefail" in options else ""
    return f"{errexit}{pipefail}{words[flags[0] + 1]}"


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
