"""The line of a log that says why its run failed: the last exception, `error:` line or signal before the
launcher's summary, of the rank that the summary blames.

It imports nothing of ours, so that a program in a pod can have it. Launchers, read on 2026-11-26: torch 1.13 to
2.11, torch.distributed.elastic; accelerate 1.2, commands/launch.py; deepspeed 0.16, launcher/launch.py; Open
MPI 4.1; Lightning 2.5, fabric/strategies/launchers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

COLOURS = re.compile(r"\x1b\[[\d;]*[A-Za-z]")
PREFIXES = re.compile(
    r"(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:[\d.,]+Z? (?=\[(?:rank|default)\d|Traceback))?"
    r"(?:\[(?:rank|default)(?P<torch>\d+)\]: ?|\[\d+,(?P<mpi>\d+)\]<std(?:out|err)>: ?"
    r"|\[rank (?P<ours>\d+)/\d+\] )"
)
"""Text that names the rank of a line: of torch or `torchrun --tee`, of `mpirun --tag-output`, of the samples."""
GROUP = re.compile(r"^ +\| ?")
"""Margin of an exception group."""
HOST = re.compile(r"^([\w.-]+): (?=Traceback \(most recent|\[\d{4}-\d\d-\d\d )", re.MULTILINE)
"""Name of a host before its lines: pdsh, by which deepspeed starts the ranks of other hosts."""
RESTARTS = re.compile(r"worker group FAILED\. .*will restart|Restarting worker group")
"""torchrun starts the ranks anew: what failed before has not ended the run."""
SUMMARY = re.compile(
    r"elastic[/.]multiprocessing[/.]api(?:\.py)?\S*[: ].*(?:Sending process|failed \(exitcode)"
    r"|elastic[/.]agent.*death signal"
    r"|ChildFailedError|sigkill_handler\]"
    r"|^Primary job +terminated|^mpi(?:run|exec) (?:detected|noticed)|^MPI_ABORT was invoked"
    r"|Child process with PID \d+ terminated with code"
)
"""The first lines of the summary of a launcher."""
LAUNCHER = re.compile(
    r"torch/distributed/(?:run|launch|launcher/api)\.py|bin/(?:torchrun|accelerate|deepspeed)\""
    r"|accelerate/commands/|deepspeed/launcher/"
)
"""Files in the traceback of a launcher."""
REPEATS = re.compile(r"ChildFailedError|CalledProcessError|ProcessRaisedException|SystemExit")
"""Exceptions by which a launcher says that a rank has failed, whose own exception is elsewhere."""
ROOT = re.compile(
    r"Root Cause \(first observed failure\):.*?\(local_rank: (?P<local>\d+)\)\s+exitcode +: (?P<code>-?\d+)"
    r".*?traceback : (?P<said>[^\n]*)(?P<rest>(?:\n  (?!\[)[^\n]*)*)",
    re.DOTALL,
)
"""torchrun's block about the rank that failed first."""
BLAMED = re.compile(r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<local>\d+)")
KILLED = re.compile(
    r"Signal \d+ \(SIG\w+\) received by PID \d+"
    r"|mpi(?:run|exec) noticed that .* exited on signal \d+ \([^)]*\)\.?"
    r"|\S*ProcessExitedException: process \d+ terminated with signal \w+"
    r"|exits with return code = -\d+"
    r"|died with <Signals\.SIG\w+: \d+>"
    r"|terminated with code -\d+"
)
"""A rank was ended by a signal."""
TRACEBACK = re.compile(
    r"^\s*(?:[+|] *)*(?:Original |Exception Group )?Traceback \(most recent call last\)"
)
NAMED = re.compile(
    r"^(?!nccl)(?:\w+\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|Timeout|NotFound|Refused)(?:: .*)?$"
    r"|^Exception: "
)
"""An exception, also where nothing says that a traceback begins."""
RAISED = re.compile(r"^(?:\w+\.)*[A-Za-z_]\w*(?:: ?.*)?$")
"""The line behind the frames of a traceback."""
REFUSED = re.compile(
    r"^\S+: error: .+|.*: can't open file '.*|.*: (?:command )?not found$|^exec: .*|.*: Permission denied$"
    r"|.*: No such file or directory$|.*exec format error$"
)
"""A program or a shell cannot begin."""
NATIVE = re.compile(
    r"^Fatal Python error: .+|.*\bSegmentation fault\b.*|^.*Bus error(?: \(core dumped\))?$"
    r"|^(?:free|malloc|munmap_chunk)\(\).+"
    r"|^double free or corruption.*|.*stack smashing detected.*|^\S+: line \d+: +\d+ \w+.*|^Killed$"
    r"|^Illegal instruction.*|^F\d{4} .*"
)
"""An end that Python has not seen."""
WHAT = re.compile(r"^\s*what\(\):\s+(.+)")
WATCHDOG = re.compile(
    r"\[Rank \d+\] (?:Watchdog caught collective operation timeout: "
    r"|Collective .* raised the following async exception: ).*"
)
IGNORED = re.compile(
    r"^(?:Exception ignored in|Error in atexit|Error in sys\.|--- Logging error|Exception in thread)"
)
"""The traceback behind it is that of a thread or of an end."""
CHAINED = re.compile(r"^(?:The above exception was the direct cause|During handling of the above)")
UNTOLD = "no log tells why"
LOST = re.compile(
    r"ncclRemoteError|remote process exited|Connection (?:was )?(?:reset|closed) by|Broken ?[Pp]ipe|KeyboardInterrupt"
    r"|NCCL communicator was aborted|[Ff]ailed to recv, got 0 bytes|got signal: |ConnectionResetError|socketProgress"
    r"|RendezvousConnectionError"
)
"""A rank ends because another one, or its pod, has ended."""
LOGGED = re.compile(r"\b(?:ERROR|FATAL|CRITICAL)\b|^[Ee]rror\b|\berror: ")
NOISE = re.compile(
    r"^\s*$|^[=\-*]{5,}|^wandb:|UserWarning|FutureWarning|warnings\.warn|\d+%\||^\S+ FAILED$|^\[rank"
    r"|exited with exit code|Warning: |^W\d{4} "
)
"""Lines that never say why."""
EXCEPTION, ENDED, WATCHED, SAID, THREAD, CONSEQUENCE = range(6)
"""Grades of lines, those that say why best first."""
MORE, SHOWN, WIDTH, LONGEST = 12, 20, 400, 4000
"""Lines of one message, lines that are shown, and characters of a line: those shown, and those that expressions see."""


class Failure(Protocol):
    """A row of known_failures.py."""

    @property
    def pattern(self) -> str: ...
    @property
    def why(self) -> str: ...
    @property
    def do(self) -> str: ...


class End(Protocol):
    """The end of a rank, as first_end.py knows it."""

    @property
    def rank(self) -> int: ...
    @property
    def node(self) -> str: ...
    @property
    def code(self) -> int | None: ...


@dataclass(frozen=True)
class Reason:
    """The reason why a run failed."""

    line: str
    """The line of its log that says why; empty where there is no log."""
    why: str
    """Meaning of that line, or of the exit code; empty where it is not known."""
    do: str
    """Advice; empty where none is known."""
    shown: Sequence[str] = ()
    """The lines of the log that end with the message."""
    is_error: bool = False  # and not just the last line


@dataclass
class _Found:
    """A line that may say why."""

    at: int
    line: str
    grade: int
    message: str
    rank: int | None = None
    before: _Found | None = None
    """The exception that it is about."""


@dataclass
class _Log:
    """A log without prefixes, with the rank of each line."""

    lines: list[str]
    ranks: list[int | None]
    begin: int = 0
    """Line at which the last attempt begins."""
    end: int = 0
    """Line at which the launcher's summary begins."""
    code: int | None = None
    rank: int | None = None
    killed: str = ""
    recorded: str = ""
    """The exception that torch has recorded of the rank."""
    found: list[_Found] = field(default_factory=list)


def reason_of(
    log: str, known: Sequence[Failure], code: int | None = None, ended: str = "", said: str = ""
) -> Reason:
    """Find out why the program of a log failed. `known`: rows of known_failures.py. `code`: exit code of its container.
    `ended`: reason why its container ended, as Kubernetes says it. `said`: the reason why kubelet ended its pod, which
    no log knows."""
    read, outside = _read(log), meaning(ended, known)
    if said:
        shown = [line[:WIDTH] for line in read.lines[-SHOWN + 1 :] if line.strip()]
        return Reason(said[:WIDTH], *meaning(said, known), (*shown, said[:WIDTH]), True)
    if not any(read.lines):
        return Reason("", *(outside if outside[0] else meaning(f"exit code {code}", known)))
    chosen = _chosen(read, known, code)
    line, message, at = chosen.line, chosen.message, chosen.at
    shown = [each[:WIDTH] for each in read.lines[: at + 1][-SHOWN:] if each.strip()]
    rest = [each[:WIDTH] for each in message.split("\n") if each.strip()]
    tail = [each for each in rest if each not in shown]
    every = (outside, *(meaning(text, known) for text in (line, message)))
    means = next((each for each in every if each[0]), ("", ""))
    lines = tuple([*shown, *tail[: SHOWN // 2]][-SHOWN:])
    return Reason(line[:WIDTH].strip(), *means, lines, chosen.grade != SAID)


def sentence(end: End | None, reason: Reason) -> str:
    """The one sentence about a run that failed: rank, node, exit code, the line of its log, and what that means. None:
    no rank is known to have ended with an error. It is torchrun's node rank: torch's RANK counts processes."""
    means = f" ({reason.why})" if reason.line and reason.why else reason.why
    said = f"{reason.line}{means}" or UNTOLD
    if end is None:
        return said
    node = f" on {end.node}" if end.node else ""
    first = f" first, with exit code {end.code}" * (end.code is not None)
    return f"node rank {end.rank}{node} ended{first}: {said}"


def meaning(text: str, known: Sequence[Failure]) -> tuple[str, str]:
    """The meaning of a message, and advice; both empty where nothing is known of it."""
    for row in known:
        if match := re.search(row.pattern, text):
            value = next(filter(None, match.groups()), "")
            return row.why.replace("{0}", value), row.do.replace("{0}", value)
    return "", ""


def _read(log: str) -> _Log:
    hosts = "|".join({re.escape(host) for host in HOST.findall(log)})
    host = re.compile(f"^(?:{hosts}): ") if hosts else None
    lines, ranks = list[str](), list[int | None]()
    for raw in COLOURS.sub("", log).split("\n"):
        # A bar of progress is one line that was drawn often.
        line = raw.rstrip().rpartition("\r")[2].rstrip()
        line = host.sub("", line) if host else line
        match, rank = PREFIXES.match(line), None
        if match:
            rank = int(match["torch"] or match["mpi"] or match["ours"])
            line = line[match.end() :]
        lines.append(GROUP.sub("", line)[:LONGEST])
        ranks.append(rank)
    read = _Log(lines, ranks, end=len(lines))
    _blame(read)
    return read


def _blame(read: _Log) -> None:
    """Find where the last attempt and its summary begin, and whom the summary blames."""
    starts = [at for at, line in enumerate(read.lines) if RESTARTS.search(line)]
    ends = [at for at, line in enumerate(read.lines) if SUMMARY.search(line)]
    read.begin = max((at + 1 for at in starts if at < max(ends, default=0)), default=0)
    read.end = min((at for at in ends if at >= read.begin), default=len(read.lines))
    rest = "\n".join(read.lines[read.begin :])
    root = ROOT.match(rest, max(0, rest.find("Root Cause (first observed failure):")))
    if blamed := root or BLAMED.search(rest):
        read.code, read.rank = int(blamed["code"]), int(blamed["local"])
    killed = KILLED.search(f"{root['said']}{root['rest']}" if root else rest)
    read.killed = killed[0] if killed else ""
    read.recorded = _recorded(root) if root else ""


def _recorded(root: re.Match[str]) -> str:
    """The exception in torchrun's block about the rank that failed first; empty where it has none."""
    lines = [line.strip() for line in root["rest"].split("\n")]
    named = [line for line in lines if NAMED.match(line)]
    return named[-1] if named and root["said"].startswith("Traceback") else ""


def _chosen(read: _Log, known: Sequence[Failure], code: int | None) -> _Found:
    """The line that says why."""
    last = read.end - 1
    if read.recorded:
        return _Found(last, read.recorded, EXCEPTION, read.recorded)
    read.found = [*_exceptions(read), *_other(read)]
    signal = _Found(last, read.killed, ENDED, read.killed)
    if read.killed and re.search(r"\b9\b|SIGKILL|-9\b", read.killed):
        return signal  # it had no time to say anything
    crashed = read.code in (-4, -6, -7, -8, -11) or code in (132, 134, 135, 136, 139)
    best = min(read.found, key=lambda each: _order(each, read, crashed), default=None)
    if best is None or (read.killed and best.grade > WATCHED):
        return signal if read.killed else best or _last_line(read)
    return _known(best, known)


def _order(found: _Found, read: _Log, crashed: bool) -> tuple[int, bool, bool, int]:
    """The best first: by its grade, before the summary, of the rank that is blamed, the last one."""
    grade = found.grade
    if crashed and grade == ENDED:
        grade = EXCEPTION - 1  # an exception before it was caught
    return grade, found.at >= read.end, read.rank is None or found.rank != read.rank, -found.at


def _known(found: _Found, known: Sequence[Failure]) -> _Found:
    """The last of exceptions that are about each other of which something is known; else the last one."""
    each: _Found | None = found
    while each and not meaning(each.message, known)[0]:
        each = each.before
    return each or found


def _last_line(read: _Log) -> _Found:
    """The last line before the summary that says anything; else that of the log."""
    for lines in (read.lines[: read.end], read.lines):
        said = [at for at, line in enumerate(lines) if not NOISE.search(line)]
        if said:
            return _Found(said[-1], lines[said[-1]], SAID, lines[said[-1]])
    said = [at for at, line in enumerate(read.lines) if line.strip()]
    return _Found(said[-1], read.lines[said[-1]], SAID, read.lines[said[-1]])


def _exceptions(read: _Log) -> Iterator[_Found]:
    """Each exception, of each rank for itself: the lines of many ranks are mixed."""
    streams: dict[int | None, list[int]] = {}
    for at in range(read.begin, len(read.lines)):
        streams.setdefault(read.ranks[at], []).append(at)
    for rank, places in streams.items():
        yield from _of_rank(read.lines, places, rank)


@dataclass
class _Traceback:
    """Frames and circumstances of the exception that comes next."""

    frames: list[str] = field(default_factory=list)
    inside: bool = False
    ignored: bool = False
    """It is that of a thread or of an end, which ends no program."""
    chained: bool = False
    """It is about the exception before it."""

    def takes(self, line: str) -> bool:
        """Read a line. Returns whether the line belongs to the traceback and is no exception."""
        self.ignored = self.ignored or bool(IGNORED.match(line))
        self.chained = self.chained or bool(CHAINED.match(line))
        if TRACEBACK.match(line):
            self.frames, self.inside = [], True
            return True
        if self.inside and (not line or line[0] in " \t│╭╰"):
            self.frames.append(line)
            return True
        return not (self.inside and RAISED.match(line)) and not NAMED.match(line)

    def repeats(self, line: str) -> bool:
        """True for an exception by which a launcher says that a rank has failed."""
        own = "Raised" in line or "Child" in line
        return bool(REPEATS.search(line)) and (own or any(map(LAUNCHER.search, self.frames)))


def _of_rank(lines: Sequence[str], places: Sequence[int], rank: int | None) -> Iterator[_Found]:
    """The exceptions in the lines of one rank."""
    before, traceback = None, _Traceback()
    for number, at in enumerate(places):
        line = lines[at]
        if traceback.takes(line):
            continue
        if not traceback.repeats(line):
            message = _message(lines, places[number : number + MORE])
            grade = THREAD if traceback.ignored else _grade(message)
            origin = before if traceback.chained else None
            before = _Found(at, _telling(message), grade, message, rank, origin)
            yield before
        traceback = _Traceback()


def _grade(message: str, best: int = EXCEPTION) -> int:
    return CONSEQUENCE if LOST.search(message) else best


def _message(lines: Sequence[str], places: Sequence[int]) -> str:
    """The lines of an exception: up to an empty line, or another traceback."""
    said = [lines[places[0]]]
    for at in places[1:]:
        line = lines[at]
        if not line.strip() or TRACEBACK.match(line) or SUMMARY.search(line) or NAMED.match(line):
            break
        said.append(line)
    return "\n".join(said)


def _telling(message: str) -> str:
    """The line of a message that tells most: NCCL and load_state_dict say it last."""
    first, *rest = message.split("\n")
    if "NCCL error" in first and "Last error:" in rest[:-1]:
        return rest[rest.index("Last error:") + 1].strip() or first
    return rest[0].strip() if rest and "in loading state_dict" in first else first


def _other(read: _Log) -> Iterator[_Found]:
    """Lines that say why without an exception."""
    for at in range(read.begin, len(read.lines)):
        line, rank = read.lines[at], read.ranks[at]
        if watched := WATCHDOG.search(line):
            yield _Found(at, watched[0], _grade(watched[0], WATCHED), watched[0], rank)
        elif (what := WHAT.match(line)) and not any(what[1][:60] in one.line for one in read.found):
            yield _Found(at, what[1], WATCHED, what[1], rank)
        elif REFUSED.match(line) and not LOGGED_ONLY.search(line):
            yield _Found(at, line, EXCEPTION, line, rank)
        elif NATIVE.match(line):
            yield _Found(at, line, ENDED, line, rank)
        elif LOGGED.search(line) and not SUMMARY.search(line) and not NOISE.search(line):
            yield _Found(at, line, SAID, line, rank)


LOGGED_ONLY = re.compile(r"^(?:/usr/bin/)?ld: |^ninja: |^\S+\.(?:c|cpp|cu|h)\S*: ")
"""A compiler speaks: the exception behind it says what it was for."""
