"""Variables of a rendezvous that nobody sets, and whose default in a script makes every node the first
and only one: all train the same, and overwrite each other's checkpoints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trainyard.catalog.job_kinds import job_kind
from trainyard.derive.job_view import ContainerView, JobView
from trainyard.derive.scripts import LAUNCHERS, launches
from trainyard.derive.shell import READS_MORE
from trainyard.problems import InputError, InputWarning
from trainyard.rules.scripts import has_shell


@dataclass(frozen=True, kw_only=True)
class Variable:
    """A variable that says how nodes meet, by the habits of scripts."""

    alone: str
    """Pattern of the values with which a node is alone."""
    given: str
    """The Trainer's variable in its place."""


_RANK = Variable(alone=r"\d+", given="PET_NODE_RANK")
_NODES = Variable(alone="1", given="PET_NNODES")
VARIABLES = {
    "RANK": _RANK,
    "NODE_RANK": _RANK,
    "WORLD_SIZE": _NODES,
    "NNODES": _NODES,
    "MASTER_ADDR": Variable(alone=r"localhost|127\.[\d.]+|0\.0\.0\.0", given="PET_MASTER_ADDR"),
}
"""LOCAL_RANK is none of them: 0 is right for a program that starts alone on its node."""
DEFAULT = r":?[-=]\"?([^}$\"]*)\"?\}"
"""Text that follows the name in ${NAME:-0}, where the default is no variable itself."""
_NOT_EXPANDED = re.compile(
    r"""(?P<kept>"(?:\\.|[^"\\])*")|'[^']*'|(?<!\S)\#[^\n]*"""
    r"""|<<-?[ ]*(?P<quote>['"])(?P<end>\w+)(?P=quote).*?^\s*(?P=end)$""",
    re.DOTALL | re.MULTILINE,
)
"""Comments, and what a shell hands on as it is: words in single quotes and heredocs of a quoted end."""
_SHOWN = re.compile(
    r"(?m)(?:^|[;&|]|\b(?:then|do|else)\b)[ \t]*(?:echo|printf)\b[^\n;&|>]*+(?:>&2)?(?!>)"
)
_TESTS = re.compile(r"\[\[?\s[^\n]*?\s\]|\(\([^\n]*?\)\)|\bcase\s[^\n]*?\sin\b|\btest\s[^\n;&|]*")
_IN_PYTHON = re.compile(
    r"""os\.(?:environ\.get|getenv)\(\s*['"](?P<name>\w+)['"]\s*,\s*['"]?(?P<value>[\w.]+)['"]?\s*\)"""
)


def alone_by_default(view: JobView, container: ContainerView) -> Iterator[InputError]:
    """Such variables, where they decide who meets whom."""
    text, names = _unset(view, container)
    found = _defaults(names, _TESTS.sub(" ", text)) if names else {}
    used = {there: name for there, name in found.items() if _reaches_a_start(name, text)}
    yield from _alone(view, container, used, "${{{}}}")


def alone_in_python(view: JobView, container: ContainerView) -> Iterator[InputError]:
    """Errors about variables by which each node trains alone, in Python code of the script.
    Launchers set them for the ranks that they start."""
    text = re.sub(r"(?m)^[ \t]*#.*", "", container.script)
    if view.nodes < 2 or not view.runtime_known or LAUNCHERS.search(text):
        return
    used = {
        found[0]: found["name"]
        for found in _IN_PYTHON.finditer(text)
        if found["name"] in _unknown(view, container)
        and re.fullmatch(VARIABLES[found["name"]].alone, found["value"])
        and not re.search(rf"environ(?:\[|\.setdefault\()\s*['\"]{found['name']}", text)
    }
    yield from _alone(view, container, used, 'os.environ["{}"]')


def _alone(
    view: JobView, container: ContainerView, used: dict[str, str], read: str
) -> Iterator[InputError]:
    """`used`: each default → its variable. `read`: how a script reads a variable."""
    if used:
        yield container.where("script").must(
            f"not go on with a default where {view.controller} sets no {_listed(used.values())}:"
            f" each of {view.nodes} nodes would be the first of its own, and all would save over"
            " each other",
            got=", ".join(used),
            fix=_way_out(view, used, read),
        )


def asked_by_default(view: JobView, container: ContainerView) -> Iterator[InputWarning]:
    """Such variables, where the script decides by them what a node does."""
    text, names = _unset(view, container)
    asked = _defaults(names, " ".join(_TESTS.findall(text))) if names else {}
    if asked:
        yield container.where("script").warning(
            f"{view.controller} sets no {_listed(asked.values())}, so {', '.join(asked)} is the"
            f" same on all {view.nodes} nodes, and each does what is meant for one"
        )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def expanded(script: str) -> str:
    """Parts of a script that its shell expands, without those that it only shows; a continued line
    is one."""
    text = _NOT_EXPANDED.sub(lambda found: found["kept"] or " ", script)
    return _SHOWN.sub(" ", text.replace("\\\n", "  "))


def _unset(view: JobView, container: ContainerView) -> tuple[str, list[str]]:
    """Text that the shell expands, and the variables of it that nobody sets; none where somebody may, or
    where there is one node."""
    text = expanded(container.script)
    open_end = not has_shell(container) or READS_MORE.search(text)
    if view.nodes < 2 or not view.runtime_known or open_end:
        return text, []
    there = [name for name in _unknown(view, container) if f"${{{name}" in text]
    return text, [name for name in there if not _is_set(name, text)]


def _unknown(view: JobView, container: ContainerView) -> list[str]:
    """The variables that neither the job nor its controller sets; none where that is not known."""
    if container.more_env is None:
        return []
    known = {*container.more_env, *(name for each in view.containers for name in each.env)}
    return [name for name in VARIABLES if name not in known]


def _defaults(names: list[str], text: str) -> dict[str, str]:
    """Each default with which a node is alone, as the script has it → its variable."""
    return {
        found[0].replace('"', ""): name
        for name in names
        for found in re.finditer(rf"(?<!\\)\$\{{{name}{DEFAULT}", text)
        if re.fullmatch(VARIABLES[name].alone, found[1].strip())
    }


def _reaches_a_start(name: str, text: str) -> bool:
    """True where a start of ranks goes by the variable, or by one that its default was put in.
    torchrun reads PET_*, and none of these; what others read is not known."""
    starts = launches(text)
    assigned = re.finditer(rf"\b(\w+)=\"?\$\{{{name}{DEFAULT}", text)
    said = re.compile(rf"\$\{{?({'|'.join({name, *(found[1] for found in assigned)})})\b")
    return not starts or any(
        start.has_shell_variables or said.search(" ".join((start.text, *start.written.values())))
        for start in starts
    )


def _is_set(name: str, text: str) -> bool:
    """True where the script gives the variable another value than its own default."""
    own = rf"\"?\$\{{{name}{DEFAULT}"
    return bool(
        re.search(rf"(?<![\w$-]){name}=(?!{own})", text)
        or re.search(rf"\b(?:read|for)\b[^\n;&|]*\b{name}\b", text)
    )


def _way_out(view: JobView, used: dict[str, str], read: str) -> str:
    if view.torch or view.origin == "entry":
        return "write " + ", ".join(
            f"{read.format(VARIABLES[name].given)} for {there}" for there, name in used.items()
        )
    if job_kind(view.kind).has_runtime:
        return "write ${JOB_COMPLETION_INDEX} for the rank, and what the job says for the others"
    return "add a Master, with which the operator sets RANK, WORLD_SIZE and MASTER_ADDR"
