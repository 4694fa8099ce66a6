"""Errors about parts of S3 buckets that the entry of a team gives to its pods: objects of another team, and what stores
of the environment keep from it.

Objects in the bucket of a store, and in a prefix that FSx imports from, are files of the store (FSx for Lustre user
guide, autoimport-data-repo-dra).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainyard.plans.directories import PARENT, path_of
from trainyard.plans.identity import Identity
from trainyard.problems import REMOVE, At, InputError
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.team_entry import TeamEntryConfig
from trainyard.stores.kind import Shown
from trainyard.stores.kinds import shown_parts


def bucket_errors(wanted: EnvironmentConfig, me: Identity) -> Iterator[InputError]:
    """Every prefix of a team that is not the team's own. `me`: the environment."""
    shown = {
        name: shown_parts(me, name, store)
        for name, store in wanted.storage.items()
        if store.teams != "together"
    }
    owners: dict[str, str] = {}
    for name, entry in wanted.teams.items():
        at = f"environment.teams.{name}"
        for prefix in entry.s3_writes:
            for other, owner in owners.items():
                if owner != name and (prefix.startswith(other) or other.startswith(prefix)):
                    yield At(f"{at}.s3_writes").must(
                        f"not overlap with {other}, which team {owner} writes to",
                        got=prefix,
                        fix=f"write a part of its own, such as {_own_part(prefix, name)}",
                    )
        owners |= dict.fromkeys(entry.s3_writes, name)
        for store, parts in shown.items():
            apart = wanted.storage[store].teams == "apart"
            yield from _past_store(name, entry, store, parts, apart=apart)


def _past_store(
    team: str, entry: TeamEntryConfig, store: str, parts: tuple[Shown, ...], *, apart: bool
) -> Iterator[InputError]:
    """Prefixes by which pods reach files that the store keeps from the team. `apart`: it shows each team its own
    directory alone; otherwise teams only read it."""
    why = f"shows team {team} its own {path_of(team)} alone" if apart else "teams only read"
    said = {"s3_writes": entry.s3_writes} | ({"s3_reads": entry.s3_reads} if apart else {})
    for setting, prefixes in said.items():
        for prefix in prefixes:
            places = [place for part in parts if (place := _place(prefix, part)) is not None]
            if not [each for each in places if not apart or _kept_from(team, each)]:
                continue
            others = [each for each in prefixes if each != prefix]
            yield At(f"environment.teams.{team}.{setting}").must(
                f"lie outside of store {store}, which {why}: objects there are files of the store",
                got=prefix,
                fix="delete it, or write another part of S3",
                write=others or REMOVE,
            )


def _place(prefix: str, part: Shown) -> str | None:
    """The directory of the store with the objects under the prefix, without slashes at its ends; None where the store
    shows none of them."""
    bucket, _, key = prefix.removeprefix("s3://").partition("/")
    if not re.fullmatch(part.bucket, bucket):
        return None
    if part.prefix.startswith(key):
        return part.path.strip("/")
    if key.startswith(part.prefix):
        return f"{part.path.strip('/')}/{key.removeprefix(part.prefix)}".strip("/")
    return None


def _kept_from(team: str, place: str) -> bool:
    """True for a directory with files of other teams. What stands beside the directories of teams is nobody's but the
    environment's, which has given it to this team."""
    if place in ("", PARENT):
        return True
    return place.startswith(f"{PARENT}/") and not f"{place}/".startswith(f"{path_of(team)}/")


def _own_part(prefix: str, team: str) -> str:
    return f"s3://{prefix.removeprefix('s3://').partition('/')[0]}/teams/{team}/"
