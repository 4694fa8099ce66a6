"""What is said of a run: pure. Who asks and who publishes: told.py."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from first_end import End
from known_failures import KNOWN
from last_error import COLOURS, reason_of, sentence
from not_started import Wait
from record import Object, Record, seconds

COMPLETE, FAILED, DELETED, STILL = "Complete", "Failed", "Deleted", "StandsStill"
WAITS = "DoesNotStart"
"""What becomes of a run."""
VERBS = {
    COMPLETE: "is complete",
    FAILED: "failed",
    DELETED: "was deleted before it ended",
    STILL: "stands still",
    WAITS: "does not start",
}
OF_BARS = "A bar of progress is no line before it has drawn 16 KiB, about 250 steps."
"""Why a healthy run may be silent: containerd writes what has no newline in parts of that size."""
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
LINES, WIDTH, READ = 20, 400, 1 << 17
"""Lines of the last words, characters of a line, and characters of the log in which they are."""
SUBJECT = 100
"""Characters of ASCII that SNS takes as a subject (API reference, Publish)."""
NODES = 4
"""Names of nodes in a message."""
KEY_LINE = re.compile(r"^[ \t]*[A-Za-z0-9+/]{40,}={0,2}[ \t]*$", re.MULTILINE)
"""A line of a private key whose first line is not in the text."""


@dataclass(frozen=True)
class Settings:
    """What trainyard/objects/programs/told.py writes."""

    namespace: str
    stack: str
    region: str
    topic: str
    record: str
    left: str
    nodes_label: str
    pool_label: str
    shell_label: str
    team_label: str
    run_note: str
    gpu: str
    look_seconds: float
    hung_minutes: int
    starts_anew: bool
    keeps_logs: bool
    prices: Mapping[str, Mapping[str, tuple[str, int]]]
    as_of: str
    secrets: Mapping[str, str]
    symptoms: Sequence[Mapping[str, str]] = ()
    """Rows of trainyard/catalog/logs/symptoms.py about pods that do not start on their nodes."""
    placement: Sequence[Mapping[str, str]] = ()
    """Such rows about pods that have no node."""
    more_kinds: tuple[str, ...] = ()
    """Kinds of jobs beside TrainJobs and PyTorchJobs."""


@dataclass
class Words(End):
    """How a rank ended, or is silent, and its last words."""

    text: str = ""
    """What it logged last, without secrets."""
    why: str = ""
    """Why the run failed, in one sentence without secrets."""
    do: str = ""
    """What to do about it; empty where nothing is known."""


def explain(words: Words, log: str, secrets: Mapping[str, str]) -> None:
    """Say why the rank ended, and its last words: the lines that end with the one that says why."""
    said = hidden(words.said, secrets)
    reason = reason_of(_without_secrets(log, secrets), KNOWN, words.code, words.reason, said)
    words.why, words.do = sentence(words, reason), reason.do
    words.text = "\n".join(reason.shown)


def last_words(log: str, secrets: Mapping[str, str]) -> str:
    """The end of a log without its secrets."""
    # A bar of progress is one line that was drawn often.
    every = _without_secrets(log, secrets).split("\n")
    lines = [line.rstrip().rpartition("\r")[2].rstrip() for line in every]
    return "\n".join(line[-WIDTH:] for line in [line for line in lines if line][-LINES:])


def _without_secrets(log: str, secrets: Mapping[str, str]) -> str:
    """The part of a log that is read. What is cut in its middle is no line, and can hide the beginning of a
    secret."""
    if len(log) > READ:
        log = log[-READ:].partition("\n")[2]
    return hidden(COLOURS.sub("", log), secrets)


def hidden(text: str, secrets: Mapping[str, str]) -> str:
    """A text without what looks like a secret. Here each value of a name that means a secret is hidden,
    also one that a stack file may have: in a log nobody needs it."""
    mark = secrets["hidden"]
    text = KEY_LINE.sub(mark, re.sub(secrets["private_key"], mark, text))
    for kind in ("token", "in_url", "login"):
        text = re.sub(secrets[kind], lambda found: _covered(found, mark), text)
    name, no_name = re.compile(secrets["name"]), re.compile(secrets["no_name"])
    assigned, at = re.compile(secrets["assigned"], re.MULTILINE), 0
    while found := assigned.search(text, at):
        called = found["name"]
        at = found.end("name")
        if name.fullmatch(called) and not no_name.match(called):
            group = "quoted" if found["quoted"] else "bare"
            text = text[: found.start(group)] + mark + text[found.end(group) :]
            at = found.start(group) + len(mark)
    return text


def _covered(found: re.Match[str], mark: str) -> str:
    """What was found, without the groups of it that are secrets; all of it where it has none."""
    said, start = found[0], found.start()
    groups = [key for key, value in found.groupdict().items() if value]
    for key in sorted(groups, key=found.start, reverse=True):
        said = said[: found.start(key) - start] + mark + said[found.end(key) - start :]
    return said if groups else mark


@dataclass(frozen=True)
class Cost:
    """What a run took."""

    gpu_hours: float
    usd: float
    known: str
    """How well: empty, or "at least"."""


def cost(record: Record, settings: Settings, now: float) -> Cost:
    """The nodes of a run until now, at the prices of its pools. A node that pods share is divided by its
    GPUs; one without GPUs counts wholly for each pod."""
    until = float(seconds(record.ended)) if record.ended else now
    gpu_hours = usd = 0.0
    lacks = not record.complete and record.restarts > 0
    for pod in record.pods.values():
        pool = pod["spec"]["nodeSelector"].get(settings.pool_label, "")
        gpus = sum(_gpus(each, settings.gpu) for each in pod["spec"]["containers"])
        if not (pool or gpus):
            continue  # the launcher of an MPI job takes no node of a pool
        hours = max(0.0, _end(pod, settings.left, until) - _begin(pod)) / 3600
        gpu_hours += gpus * hours
        price, of_node = _price(record, pod, settings.prices.get(pool, {}))
        if price is None:
            lacks = True
            continue
        usd += price * hours * (min(gpus, of_node) / of_node if of_node else 1)
    return Cost(gpu_hours, usd, "at least " if lacks else "")


def _price(
    record: Record, pod: Object, of_pool: Mapping[str, tuple[str, int]]
) -> tuple[float | None, int]:
    """USD an hour of the pod's node, and its GPUs. A node that was gone before it was seen is of the one
    type of its pool."""
    node = record.nodes.get(pod["spec"]["nodeName"])
    kind = node["metadata"]["labels"].get(INSTANCE_TYPE) if node else None
    if kind is None and len(of_pool) == 1:
        kind = next(iter(of_pool))
    usd, gpus = of_pool.get(kind or "", (None, 0))
    return (None if usd is None else float(usd)), gpus


def _gpus(container: Object, name: str) -> int:
    return int((container["resources"].get("limits") or {}).get(name, 0))


def _begin(pod: Object) -> float:
    """When the pod got its node."""
    conditions = pod["status"]["conditions"]
    scheduled = [each["lastTransitionTime"] for each in conditions if each["status"] == "True"]
    return float(seconds(scheduled[0] if scheduled else pod["metadata"]["creationTimestamp"]))


def _end(pod: Object, left: str, until: float) -> float:
    """The moment at which the pod gave its node back; `until` where it has it still. `left`: annotation of one
    that went without saying when it ended."""
    if missed := (pod["metadata"].get("annotations") or {}).get(left):
        return float(seconds(missed))
    if pod["status"]["phase"] == "Running":
        return until
    ends = [
        each["state"]["terminated"].get("finishedAt") for each in pod["status"]["containerStatuses"]
    ]
    return float(seconds(max(filter(None, ends)))) if any(ends) else until


@dataclass(frozen=True)
class Story:
    """What becomes of one run, and what is known of it."""

    what: str
    record: Record
    team: str
    """Empty: it is a run of the environment itself."""
    words: Words | None
    id: str
    nothing: str
    """Why it had nothing to do; empty for a run that had."""
    again: bool
    """A program ended while it published this, so that nobody knows whether it did."""
    wait: Wait | None = None
    """Of a run that does not start."""


def subject(story: Story, settings: Settings) -> str:
    """The subject of an e-mail."""
    meta = story.record.job["metadata"]
    verb = "had nothing to do" if story.nothing else VERBS[story.what]
    text = f"{settings.stack}: {meta['namespace']}/{meta['name']} {verb}"
    return text.encode("ascii", "replace").decode()[:SUBJECT]


def body(story: Story, settings: Settings, now: float) -> str:
    """The message."""
    parts = [
        *_about(story, settings),
        *_taken(story, settings, now),
        "",
        *_spoken(story),
        *_next(story, settings),
        "",
        f"Message {story.id}. Each message has its own number: a second one with this number is a copy.",
    ]
    if story.again:
        parts.append(
            "The program ended while it sent this message, so a first copy may have come before."
        )
    return "\n".join(parts)


def _about(story: Story, settings: Settings) -> Iterator[str]:
    job, meta = story.record.job, story.record.job["metadata"]
    of_team = f" of team {story.team}" if story.team else ""
    at = f" at {story.record.ended}" if story.record.ended else ""
    yield f"Run {meta['name']}{of_team} {VERBS[story.what]}{at}."
    identity = meta["annotations"].get(settings.run_note)
    run = f", run {identity}" if identity else ", sent by hand"
    yield (
        f"{job['kind']} {meta['name']} in namespace {meta['namespace']} of environment {settings.stack},"
        f" {settings.region}{run}."
    )
    if story.what == FAILED and (reason := _reason(story.record)):
        yield f"Reason: {hidden(reason, settings.secrets)[:WIDTH]}"
    if story.what == FAILED and story.words and story.words.why:
        yield f"Why: {story.words.why}"
        yield from (f"Fix: {story.words.do}",) if story.words.do else ()
    if story.nothing:
        yield f"But {hidden(story.nothing, settings.secrets)}."
    if story.what == STILL:
        anew = "; repair.hung_minutes starts the gang anew" if settings.starts_anew else ""
        yield (
            f"All its pods run, and none has logged a line for {settings.hung_minutes} minutes{anew}."
            f" {OF_BARS}"
        )
    if story.wait:
        yield from _waiting(story.wait, settings.secrets)


def _waiting(wait: Wait, secrets: Mapping[str, str]) -> Iterator[str]:
    """What keeps pods from their start."""
    if wait.homeless:
        yield (
            f"{wait.homeless} of its {wait.every} pods have had no node for {wait.minutes} minutes, while nodes"
            f" of others are paid for; the first is {wait.pod}."
        )
    if wait.pods:
        first = "" if wait.homeless else f"; the first is {wait.pod}"
        yield (
            f"{wait.pods} of its {wait.every} pods have had a node for {wait.minutes} minutes and have not"
            f" started{first}."
        )
    cause, *shown = hidden(wait.why, secrets).splitlines() or [""]
    yield f"Why: {cause[:WIDTH]}"
    yield from (line[:WIDTH] for line in shown)
    yield f"Fix: {hidden(wait.do, secrets)}"


def _reason(record: Record) -> str:
    """Why the job failed, as its controller says it."""
    for condition in record.job["status"]["conditions"]:
        if condition["type"] == FAILED and condition["status"] == "True":
            said = (condition.get("reason") or "", condition.get("message") or "")
            return " ".join(": ".join(filter(None, said)).split())
    return ""


def _taken(story: Story, settings: Settings, now: float) -> Iterator[str]:
    """Nodes, time and cost."""
    record = story.record
    if not record.began:
        yield "None of its pods got a node, so it cost nothing."
        return
    until = seconds(record.ended) if record.ended else now
    nodes = sorted({pod["spec"]["nodeName"] for pod in record.pods.values()})
    more = f" and {len(nodes) - NODES} more" if len(nodes) > NODES else ""
    held = "has waited" if story.wait else "ran"
    yield (
        f"It {held} for {_duration(until - record.began)} on {', '.join(nodes[:NODES])}{more}, with"
        f" {record.restarts} restarts of the gang."
    )
    took = cost(record, settings, now)
    of = f", at the prices of {settings.as_of} or later" if settings.as_of else ""
    usd = f"{took.known}{took.usd:,.2f} USD" if took.usd or not took.known else "no price is known"
    yield f"Cost so far: {took.gpu_hours:,.2f} GPU-hours, {usd}{of} (nodes alone, without tax)."


def _duration(seconds_: float) -> str:
    hours, minutes = divmod(int(seconds_) // 60, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min"


def _spoken(story: Story) -> Iterator[str]:
    """The rank that failed, or that is silent for longest, and its last words."""
    words = story.words
    if words is None:
        if story.what == FAILED:
            yield "No rank is known to have ended with an error."
            yield ""
        return
    how = f"ended first, with exit code {words.code}" if words.code else "is silent for longest"
    how = "ended first" if words.said and not words.code else how
    why = f" ({words.reason})" if words.reason else ""
    yield f"Node rank {words.rank} {how}{why}, at {words.at}, on node {words.node or 'not known'}:"
    yield f"pod {words.pod}, container {words.container}."
    said = words.text or "(its log is empty, or went with its pod)"
    yield from ("Its last words:", *(f"    {line}" for line in said.split("\n")), "")


def _next(story: Story, settings: Settings) -> Iterator[str]:
    """The command that goes on."""
    meta = story.record.job["metadata"]
    name, stack = f"{meta['namespace']}/{meta['name']}", f"--stack {settings.stack}"
    one = f" --rank {story.words.rank}" if story.words else ""
    if story.what == WAITS:
        yield f"To see why each pod waits: trainyard status {stack}"
        yield f"To end it, so that its nodes go: trainyard stop {name} {stack}"
        return
    if story.what == STILL:
        yield f"To see what it waits for: trainyard logs {name}{one} {stack}"
        yield f"To end it: trainyard stop {name} {stack}"
        return
    if story.what == FAILED:
        yield f"To read the whole log: trainyard logs {name}{one} {stack}"
    if settings.keeps_logs:
        yield f"Logs of pods that are gone: trainyard logs {name}{one} --past {stack}"
    if story.what == COMPLETE:
        yield f"To see what it took: trainyard runs {settings.stack}"
    if not meta["annotations"].get(settings.run_note):
        yield "To run it again: send the job again, since no stack file has it."
        return
    own = f"<stack of team {story.team}>" if story.team else settings.stack
    yield (
        f"To run it again, from its last checkpoint: trainyard again {meta['name']} --stack {own}, then"
        f" pulumi up --stack {own}"
    )
