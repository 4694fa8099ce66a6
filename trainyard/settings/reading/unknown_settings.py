"""Errors of settings that do not exist: what is meant, or what serves instead."""

from __future__ import annotations

import difflib
import re
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, get_origin

from trainyard.problems import REMOVE, SIMILAR, InputError
from trainyard.settings.aws import KEYS, REPLACEMENTS
from trainyard.settings.environment import SETTING_HINTS
from trainyard.settings.job import JobConfig, ManifestConfig
from trainyard.settings.reading.lookup import keys_at, types_at
from trainyard.settings.reading.mistake import Mistake, shown
from trainyard.settings.reading.yaml_file import as_yaml
from trainyard.settings.training.no_settings import NO_SETTINGS

_MEANT = re.compile(r"did you mean (\w+)\?")
_IN_ITS_PLACE = re.compile(r"write (\w+): .+ in its place", re.DOTALL)
LISTED = 20
"""Settings that an error lists at most."""


def unknown_setting(mistake: Mistake) -> InputError:
    """The error of a setting that does not exist, or not here."""
    if other := (
        _of_the_provider(mistake) or _setting_of_other_jobs(mistake) or _of_another_kind(mistake)
    ):
        return other
    fix = _hint(mistake) or _known_settings(mistake)
    if (meant := _MEANT.fullmatch(fix)) and _lists_one(mistake, meant[1]):
        fix = f"write {meant[1]}: {as_yaml([mistake.value])} in its place"
    return InputError(
        path=mistake.path,
        must="be the name of a setting",
        got=as_yaml(mistake.key)[:80],
        fix=fix,
        write=REMOVE if fix.startswith("delete it") else None,
    )


def setting_meant(error: InputError) -> str | None:
    """The path of the setting that an unknown one is taken for; None for other errors."""
    meant = _MEANT.fullmatch(error.fix) or _IN_ITS_PLACE.fullmatch(error.fix)
    return f"{error.path.rpartition('.')[0]}.{meant[1]}" if meant else None


def _hint(mistake: Mistake) -> str | None:
    """A setting in the place of one that people know from elsewhere."""
    plain = re.sub("[-_]", "", mistake.key).lower()
    above = mistake.steps[-2:-1] if "environment" in mistake.steps[-3:-2] else mistake.steps[-3:-1]
    if "jobs" in mistake.steps:
        if hint := NO_SETTINGS.get(plain):
            return hint
        above = mistake.steps[3:-1] or ["jobs"]
    return next(
        (SETTING_HINTS[each, plain] for each in reversed(above) if (each, plain) in SETTING_HINTS),
        None,
    )


def _of_the_provider(mistake: Mistake) -> InputError | None:
    """A setting of the AWS provider in whose place a stack file has another."""
    instead = REPLACEMENTS.get(mistake.key)
    if mistake.steps[0] != "aws" or len(mistake.steps) != 2 or not instead:
        return None
    return InputError(
        path=mistake.path,
        must="not be set in a stack file",
        got="a secret" if mistake.key in KEYS else shown(mistake.value),
        fix=instead,
        write=REMOVE,
    )


def is_needed(field: Field[Any]) -> bool:
    """True of a field of a dataclass without a default."""
    return field.default is MISSING and field.default_factory is MISSING


def _of_another_kind(mistake: Mistake) -> InputError | None:
    """A setting of one kind of entry beside one that only another kind has: secret beside secrets_manager."""
    kinds = [kind for kind in types_at(mistake.steps[:-1]) if is_dataclass(kind)]
    has = {kind: mistake.key in {field.name for field in fields(kind)} for kind in kinds}
    own = {field.name for kind in kinds if has[kind] for field in fields(kind)}
    needed = [
        field.name for kind in kinds if not has[kind] for field in fields(kind) if is_needed(field)
    ]
    beside = [name for name in needed if name not in own] if own else []
    if len(beside) != 1:
        return None
    return mistake.error(
        f"not be set beside {beside[0]}", f"delete it, or delete {beside[0]}", REMOVE
    )


def _lists_one(mistake: Mistake, name: str) -> bool:
    """True where another setting beside a wrong one would list its value, as instance_types lists that of
    instance_type."""
    kinds = types_at([*mistake.steps[:-1], name])
    return isinstance(mistake.value, str) and any(get_origin(each) is tuple for each in kinds)


def _setting_of_other_jobs(mistake: Mistake) -> InputError | None:
    """A setting that only a job described here has, in a job that is a file; or the reverse."""
    if len(mistake.steps) != 4 or mistake.steps[1] != "jobs":
        return None
    typed, from_file = ({field.name for field in fields(c)} for c in (JobConfig, ManifestConfig))
    if mistake.in_manifest and mistake.key in typed:
        says = "says numNodes or replicas" if mistake.key == "nodes" else "says it"
        return mistake.error(
            "not be set beside manifest", f"delete it; the manifest file itself {says}", REMOVE
        )
    if not mistake.in_manifest and mistake.key in from_file - typed:
        return mistake.error(
            "not be set without manifest, the file of a Kubernetes job: only such a job has it",
            "delete it",
            REMOVE,
        )
    return None


def _known_settings(mistake: Mistake) -> str:
    known = keys_at(mistake.steps[:-1]) if mistake.steps[:-1] else ["environment", "team"]
    lower = mistake.key.lower().replace("-", "_")
    near = difflib.get_close_matches(lower, known, n=1, cutoff=SIMILAR)
    near = near or [name for name in known if name.lower() == lower.replace("_", "")]
    if near:
        return f"did you mean {near[0]}?"
    if len(known) > LISTED:
        return "delete it; docs/stack-file.md lists the settings"
    return f"delete it; the settings are {', '.join(known)}"
