"""Stand-ins for wrong values, so that the rest of a stack file can be judged all the same.

Each wrong value gets two stand-ins. The rules run once with the first and once with the second, and
a problem is reported only if it is there both times: what depends on the wrong value is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar, get_args, get_origin

from trainyard.catalog import versions
from trainyard.problems import REMOVE, InputWarning, Problem
from trainyard.settings.reading.derived import Derived, in_the_file
from trainyard.settings.reading.examples import EXAMPLES, keys_of, rows_of_sections
from trainyard.settings.reading.lookup import defaults_at, is_required, settings_of, types_at

P = TypeVar("P", bound=Problem)
_KUBERNETES, _TRAINER = [*versions.KUBERNETES][0], [*versions.TRAINERS][-1]
_ROLE = "arn:aws:iam::123456789012:role/other"
OTHERS: dict[str, Any] = {
    **rows_of_sections("OTHERS"),
    "zone": "ap-northeast-2c",
    "cluster": {"version": _KUBERNETES},
    "cluster.version": _KUBERNETES,
    "deployer_role_arn": _ROLE,
    "duration": "30m",
    "vpc_id": "vpc-0123456789abcdef1",
    "private_subnets": {
        "ap-northeast-2a": "subnet-0123456789abcdef2",
        "ap-northeast-2b": "subnet-0123456789abcdef3",
    },
    "private_subnets.*": "subnet-0123456789abcdef4",
    "permissions_boundary": "arn:aws:iam::123456789012:policy/other",
    "kms_key_arn": "arn:aws:kms:eu-west-1:210987654321:key/76543210-01ab-23cd-45ef-0123456789ab",
    "log_retention_days": 30,
    "flow_logs": {"days": 7},
    "flow_logs.days": 7,
    "role_arn": _ROLE,
    "deployer": _ROLE,
    "roleArn": _ROLE,
    "assumeRole": {"roleArn": _ROLE},
    "environment.pools": {},
    "pools.*": {"instance_types": ["p4d.24xlarge"], "max_nodes": 64},
    "instance_types": ["m7i.4xlarge"],
    "max_nodes": 64,
    "reservation.id": "cr-0123456789abcdef1",
    "trainer": {"version": _TRAINER, "runtimes": []},
    "trainer.version": _TRAINER,
    "trainer.runtimes": [],
    "system_nodes.nodes": 3,
    "tunnel_port": 8443,
    "root_volume_gib": 300,
    "starts": "2027-01-01T11:30:00Z",
    "ends": "2027-01-02T11:30:00Z",
    "path": "/other",
    "host": "/other",
    "local_scratch": "/other",
    "etcd": "other:2379",
    "sweep.over": {"seed": [1, 2]},
    "sources": ["other.py"],
    "image": "registry.example.com/other:2",
    "nodes": 64,
    "repositories.*.s3": "s3://other/prefix/",
    "storage.*.s3": {"writable": True},
}
"""Setting, as in EXAMPLES → a second stand-in, about which the rules say other things than about its
example."""
DECIDES = ".runtime"
"""Setting of a job that decides what else the job must have: a runtime of kind torchtune brings a recipe."""
DEPTH = 4
"""Levels of settings in a stand-in that is made from types, at most."""


@dataclass(frozen=True, kw_only=True)
class StandIns:
    """Values of a stack file that are not its own."""

    paths: tuple[str, ...] = ()
    """Paths of the stand-ins, as problems name them."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Path of an entry whose name is wrong, under the name that stands in → its path in the file."""
    runs: Mapping[str, Derived] = field(default_factory=dict)
    """Path of an entry that is derived → the entry in the file that it is a run of."""

    def agreed(self, first: Sequence[P], second: Sequence[P]) -> tuple[P, ...]:
        """The problems that both stand-ins have, but for those at the stand-ins themselves."""
        also = {*self._in_the_file(second)}
        both = dict.fromkeys(each for each in self._in_the_file(first) if each in also)
        return tuple(problem for problem in both if not self.covers(problem.path))

    def not_checked(self) -> Iterator[InputWarning]:
        """Warnings about values that cannot be checked before the wrong ones are corrected."""
        if paths := [*self.paths, *self.renamed.values()]:
            first = paths[0].partition(".")[0]
            names = [path.removeprefix(f"{first}.") for path in dict.fromkeys(paths)]
            depends = f"what depends on {', '.join(names)} was not checked"
            yield InputWarning(path=first, text=f"{depends}; correct the errors first")

    def covers(self, path: str) -> bool:
        """True where a path is that of a stand-in, or below it, or that of a job whose runtime is one."""
        deciding = [each.removesuffix(DECIDES) for each in self.paths if each.endswith(DECIDES)]
        return path in deciding or any(
            path == each or path.startswith(f"{each}.") for each in self.paths
        )

    def _in_the_file(self, problems: Sequence[P]) -> list[P]:
        renamed = {name: Derived(path=path) for name, path in self.renamed.items()}
        return in_the_file(problems, {**self.runs, **renamed})


def stand_ins(steps: Sequence[str], meant: Any) -> tuple[Any, Any]:
    """Two values for the setting at a path, REMOVE for none. `meant`: what the file means, if it is
    known; None or REMOVE if not."""
    if list(steps[1:2]) == ["jobs"] and len(steps) < 4:
        return REMOVE, REMOVE  # nothing depends on a job
    kinds = [kind for kind in types_at(steps) if kind is not None]
    candidates = [
        *([] if meant is None else [meant]),
        *([] if is_required(steps) else [REMOVE]),
        *(table[key] for table in (EXAMPLES, OTHERS) for key in keys_of(steps) if key in table),
        *(_chosen(kind, steps) for kind in kinds if get_origin(kind) is Literal),
        *(_made(kind) for kind in kinds),
        *(_changed(_made(kind)) for kind in kinds),
        REMOVE,
    ]
    first = candidates[0]
    return first, next((value for value in candidates[1:] if value != first), first)


def _chosen(kind: Any, steps: Sequence[str]) -> Any:
    """The last of several words that is not the default, which is what no value at all means."""
    words, defaults = get_args(kind), defaults_at(steps)
    return next((word for word in reversed(words) if word not in defaults), words[-1])


def _made(kind: Any, depth: int = 0) -> Any:
    """A value of a type."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Literal:
        return inside[0]
    if origin in (dict, Mapping):
        return {"stand-in": _made(inside[1], depth + 1)} if depth < DEPTH else {}
    if is_dataclass(kind) and isinstance(kind, type):
        hints = settings_of(kind)
        required = [
            each.name
            for each in fields(kind)
            if each.default is MISSING and each.default_factory is MISSING
        ]
        return {
            name: EXAMPLES.get(name, None) or _made(hints[name], depth + 1) for name in required
        }
    values = {
        bool: True,
        int: 1,
        float: 1.0,
        str: "stand-in",
        datetime: datetime(2027, 1, 1, tzinfo=UTC),
    }
    return values.get(kind, [])


def _changed(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value}-2" if isinstance(value, str) else value
