"""What EC2 says of the instances of silent nodes. Who asks: repair.py.

EC2 API reference: DescribeInstanceStatus. EC2 checks an instance each minute, so its `ok` may be minutes
old; its `impaired`, and a state in which nothing runs, are not.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from xml.etree import ElementTree

import query
from api_server import say
from silence import Word

ASK_SECONDS = 10.0
"""Between two questions."""
FRESH_SECONDS = 30.0
"""How old an answer may be: after three questions without one EC2 has said nothing."""
MOST = 100
"""Instances in one question."""
GONE = ("shutting-down", "stopped", "stopping", "terminated")
"""States of an instance on which nothing runs."""
CHECKS = {
    "systemStatus": "system status",
    "instanceStatus": "instance status",
    "attachedEbsStatus": "status of attached EBS volumes",
}
"""Element of the answer → what EC2 calls the check."""
UNKNOWN = "InvalidInstanceID.NotFound"


class Instances:
    """Asks EC2 in a thread of its own: while EC2 does not answer, nodes are looked after."""

    def __init__(self, question: Callable[[Sequence[str]], Mapping[str, Word]]) -> None:
        """`question`: ids → what EC2 says of them. It raises query.AwsError."""
        self._question = question
        self._said: dict[str, tuple[Word, float]] = {}
        self._began = -ASK_SECONDS
        self._thread: threading.Thread | None = None
        self._trouble = ""

    def ask(self, ids: Iterable[str], now: float) -> None:
        """Begin to ask, where a question is due. `now`: in seconds of a clock that only counts on."""
        wanted = sorted(set(ids))
        busy = self._thread is not None and self._thread.is_alive()
        if not wanted or busy or now - self._began < ASK_SECONDS:
            return
        self._began = now
        self._thread = threading.Thread(target=self._hear, args=(wanted, now), daemon=True)
        self._thread.start()

    def says(self, instance: str, now: float) -> Word | None:
        """EC2's word; None where it has given none that is fresh."""
        word, at = self._said.get(instance, (None, now))
        return word if now - at <= FRESH_SECONDS else None

    def _hear(self, ids: Sequence[str], now: float) -> None:
        said, trouble = dict[str, tuple[Word, float]](), ""
        try:
            for first in range(0, len(ids), MOST):
                found = self._question(ids[first : first + MOST])
                said |= {id_: (word, now) for id_, word in found.items()}
        except query.AwsError as error:
            trouble = str(error)
        if trouble and trouble != self._trouble:
            say(f"EC2: {trouble}")
        self._trouble, self._said = trouble, {**self._said, **said}


def question(region: str) -> Callable[[Sequence[str]], Mapping[str, Word]]:
    """What asks EC2 in that region."""
    return lambda ids: statuses(region, ids)


def statuses(region: str, ids: Sequence[str]) -> dict[str, Word]:
    """EC2's word on instances, those that it does not know among them. Raises query.AwsError."""
    left = list(ids)
    unknown = dict[str, Word]()
    while left:
        fields = {f"InstanceId.{number}": id_ for number, id_ in enumerate(left, 1)}
        try:
            found = query.ask(
                query.EC2,
                region,
                "DescribeInstanceStatus",
                {"IncludeAllInstances": "true", **fields},
            )
        except query.AwsError as error:
            # One that is gone for an hour spoils the question for all.
            gone = set(re.findall(r"i-[0-9a-f]+", error.message)) & set(left)
            if error.code != UNKNOWN or not gone:
                raise
            unknown |= dict.fromkeys(gone, Word(works=False, words="EC2 has no such instance"))
            left = [id_ for id_ in left if id_ not in gone]
            continue
        return unknown | {
            item.findtext("instanceId") or "": _word(item)
            for item in found.iterfind("instanceStatusSet/item")
        }
    return unknown


def _word(item: ElementTree.Element) -> Word:
    state = item.findtext("instanceState/name")
    if state in GONE:
        return Word(works=False, words=f"EC2 says that its instance is {state}")
    for element, check in CHECKS.items():
        if item.findtext(f"{element}/status") == "impaired":
            return Word(works=False, words=f"EC2 says that its {check} is impaired")
    return Word(works=True, words="EC2 says that its instance runs")
