"""Contracts of version 1, which environments published before release 0.2.0. They said less: what they do not
say is as it was planned."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from typing import Any

WITHOUT_RESERVATION = ("on_demand", "spot")
"""Purchase options that version 1 told whole. Of the others it did not tell the reservation."""


def from_before(mine: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """A contract of version 1 in the form of version 2. `mine`: the contract of a plan, which has what the
    old one does not say. `old`: as it is deployed, of any shape."""
    contract = copy.deepcopy(dict(mine))
    environment = contract["environment"]
    contract["region"] = old.get("region")
    environment["zone"] = old.get("zone")
    environment["trainer"]["version"] = old.get("trainer")
    _pools(environment, _map(old, "pools"))
    kinds, stores = _map(old, "storage"), _map(environment, "storage")
    _keep(environment, "storage", [name for name in stores if str(kinds.get(name)) in stores[name]])
    runtimes, trainer = old.get("runtimes"), environment["trainer"]
    names = runtimes if isinstance(runtimes, list) else []
    trainer["runtimes"] = [each for each in trainer["runtimes"] if each in names]
    _keep(trainer, "own_runtimes", names)
    if "team" in contract:
        _team(contract, _map(old, "team"))
    return contract


def _pools(environment: dict[str, Any], old: Mapping[str, Any]) -> None:
    """The pools of the plan that version 1 names too, with what it says of them."""
    _keep(environment, "pools", old)
    for name, pool in environment["pools"].items():
        said = _map(old, name)
        pool |= {key: said.get(key) for key in ("instance_types", "max_nodes")}
        if said.get("capacity") in WITHOUT_RESERVATION:
            pool["capacity"] = said["capacity"]
            pool.pop("reservation", None)
        if said.get("capacity") == "on_demand":
            del pool["capacity"]


def _team(contract: dict[str, Any], old: Mapping[str, Any]) -> None:
    """Take the team, its share and its stores from version 1."""
    name, environment = contract["team"]["name"], contract["environment"]
    contract["team"] = {key: it for key, it in old.items() if key not in ("max_gpus", "secrets")}
    entry = environment["teams"][name]
    for key in ("max_gpus", "secrets", "namespace"):
        entry.pop(key, None)
        if old.get(key) and (key, old[key]) != ("namespace", f"team-{name}"):
            entry[key] = old[key]
    if "queue" in old:
        environment.setdefault("queues", {})
    else:
        environment.pop("queues", None)
    reads, apart = old.get("read_only"), _map(old, "directories")
    for store, settings in _map(environment, "storage").items():
        settings.pop("teams", None)
        if store in apart:
            settings["teams"] = "apart"
        elif isinstance(reads, list) and store in reads:
            settings["teams"] = "read_only"


def _keep(holder: dict[str, Any], key: str, names: Collection[str]) -> None:
    """Keep the entries of a map that have one of these names; a map that was not there stays away."""
    if key in holder:
        holder[key] = {name: it for name, it in holder[key].items() if name in names}


def _map(holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A map of any data; empty where something else stands there."""
    found = holder.get(key)
    return found if isinstance(found, Mapping) else {}
