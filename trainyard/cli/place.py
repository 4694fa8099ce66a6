"""Place in which a word acts: an AWS account, or a rehearsal of one.

One rule, and the first line that a word prints says what came of it. A shell whose variables lead
somewhere else than to AWS decides. Otherwise --live means the account, and --rehearsal the rehearsal
that runs in this folder. Without both, the rehearsal is meant where one runs here, and the account
where none does. A shell that names an account in a folder where a rehearsal runs could mean both:
then the word is refused.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trainyard.operations.reach.other_programs import PAGES
from trainyard.settings.reading.files import text_of

ELSEWHERE = ("AWS_ENDPOINT_URL", "PULUMI_OPTION_CONFIG_FILE")
"""Variables by which a shell reaches something that is no AWS account, or another stack file."""
NAMES_AN_ACCOUNT = (
    "AWS_PROFILE",
    "AWS_ACCESS_KEY_ID",
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "PULUMI_ACCESS_TOKEN",
    "PULUMI_BACKEND_URL",
)
"""Variables by which a shell names an AWS account, or a state of one."""
STATE = "TRAINYARD_REHEARSAL"
"""Variable that names the folder of a rehearsal's state, where it is not .rehearsal."""


class Unclear(RuntimeError):
    """It is not clear where a word should act; the message says what to type."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Place in which a word acts."""

    says: str
    """For the first line, after the name of the stack."""
    live: bool
    """It is an AWS account."""
    to_be_entered: bool = False
    """It is the rehearsal of this folder, and the variables of this shell do not lead there."""


def place_of(stack: str, *, live: bool, rehearsal: bool) -> Place:
    """Place in which a word about a stack acts. `live`, `rehearsal`: the options are given. Unclear
    where two places could be meant, or where the place that is meant is not there."""
    if elsewhere := _set(ELSEWHERE):
        return _elsewhere(elsewhere, live=live, rehearsal=rehearsal)
    here = _rehearsed()
    if rehearsal and not here:
        raise Unclear(
            "--rehearsal means the rehearsal of this folder, and none runs here. Fix: make up starts"
            " one; or write --live"
        )
    if not (live or here) and _could_rehearse() and shutil.which("pulumi") is None:
        raise Unclear(
            "no rehearsal runs in this folder, so there is nothing to look at. Fix: make up starts one; for an AWS"
            f" account install pulumi ({PAGES['pulumi']}), and write --live"
        )
    if live or not here:
        return Place(says=_account(stack) + ("" if live else _none_runs()), live=True)
    named = _set(NAMES_AN_ACCOUNT)
    if named and not rehearsal:
        raise Unclear(
            f"a rehearsal runs in this folder, and this shell has {', '.join(_names(named))}: both"
            " could be meant. Fix: write --rehearsal, or --live for the account"
        )
    return Place(says="the rehearsal of this folder", live=False, to_be_entered=True)


def _elsewhere(found: list[str], *, live: bool, rehearsal: bool) -> Place:
    """Place to which the variables of this shell lead. Unclear."""
    if live:
        raise Unclear(
            f"--live means an AWS account, but this shell has {' and '.join(found)}. Fix: unset"
            f" {' '.join(_names(found))} or open another shell; or leave out --live"
        )
    where = "the rehearsal" if rehearsal else "where the variables of this shell lead"
    return Place(says=f"{where}, {', '.join(found)}", live=False)


def _none_runs() -> str:
    """Words for somebody who has not started the rehearsal yet."""
    return "; no rehearsal runs in this folder (make up starts one)" if _could_rehearse() else ""


def _could_rehearse() -> bool:
    """True in a checkout of Trainyard; a project has no rehearsal."""
    return Path("development").is_dir()


def _set(names: tuple[str, ...]) -> list[str]:
    return [f"{name}={os.environ[name]}" for name in names if os.environ.get(name)]


def _names(found: list[str]) -> list[str]:
    """Without the values, which may be secrets."""
    return [each.partition("=")[0] for each in found]


def _rehearsed() -> bool:
    """True where a rehearsal has been started in this folder and not been ended."""
    return (Path(os.environ.get(STATE) or ".rehearsal") / "world.json").exists()


def _account(stack: str) -> str:
    """The account, as the stack file and this shell name it."""
    settings = _settings(stack)
    ids = settings.get("aws:allowedAccountIds")
    profile = settings.get("aws:profile") or os.environ.get("AWS_PROFILE")
    if isinstance(ids, list) and len(ids) == 1:
        account = f"AWS account {ids[0]}"
    else:
        whose = f"profile {profile}" if profile else "the credentials of this shell"
        account = f"the AWS account of {whose}"
    return ", ".join(filter(None, (account, settings.get("aws:region"))))


def _settings(stack: str) -> dict[str, Any]:
    """Settings of a stack file; empty where it cannot be read, which the word itself reports."""
    try:
        values = yaml.safe_load(text_of(Path(f"Pulumi.{stack}.yaml")))
        return {**values["config"]}
    except (OSError, yaml.YAMLError, RecursionError, ValueError, TypeError, KeyError):
        return {}
