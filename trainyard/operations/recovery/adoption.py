"""Resources that the program would create, and how the state takes such objects where they exist
already.

`pulumi import` reads an object from its API. What the API does not tell is written into the state
afterwards, from what the program would create. So is what the program asked for of an object of the
cluster: pulumi-kubernetes takes what the API server has added for inputs, too.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from trainyard import command_line
from trainyard.catalog.aws_types.table import AWS_TYPES
from trainyard.operations.reach.cluster import Entry
from trainyard.operations.reach.pulumi import PATCH_FORCE, deployment, pulumi
from trainyard.operations.reach.updates import REPAIR
from trainyard.replacing.urn import name_of, type_of

COMPARED = "__inputs"
"""Output in which pulumi-kubernetes keeps the inputs that it compares with those of an update."""


COMPARES_ALL = {PATCH_FORCE: "true"}
"""For a preview that only compares: one field that somebody has changed by hand would end it, and nothing would be
known of all the others. The update is refused then, and `trainyard drift` names the way out."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Resources that the program would create and the state does not have."""

    importable: Entry
    """The engine's own import file. It has no ids."""
    states: dict[str, Entry]
    """URN → the state that its creation would lead to."""
    replaced: dict[str, Entry]
    """URN → the state of what it would make in the place of an object that the state has."""
    changed: frozenset[str]
    """URNs of AWS objects that it would change."""
    region: str | None
    """The region of the stack."""

    @classmethod
    def by(cls, stack: str) -> Wanted:
        """Resources that a preview of the stack would create."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "import.json"
            with command_line.showing(f"previews {stack}, to know what the program wants"):
                words = ("preview", "--json", "--import-file", str(file))
                shown = json.loads(pulumi(stack, *words, more=COMPARES_ALL))
            made = {
                op: {
                    step["urn"]: step["newState"]
                    for step in shown.get("steps", [])
                    if step["op"] == op
                }
                for op in ("create", "replace", "update")
            }
            return cls(
                importable=json.loads(file.read_text()),
                states=made["create"],
                replaced=made["replace"],
                changed=frozenset(urn for urn in made["update"] if type_of(urn).startswith("aws:")),
                region=(shown.get("config") or {}).get("aws:region"),
            )

    def candidates(self) -> Iterator[tuple[Entry, Entry]]:
        """(import entry, inputs) of every resource that may exist already."""
        inputs = {
            (type_of(each), name_of(each)): state.get("inputs") or {}
            for each, state in self.states.items()
        }
        for entry in self.importable.get("resources", []):
            known = inputs.get((entry["type"], entry.get("logicalName") or entry["name"]))
            if known is not None and not entry.get("component"):
                yield entry, known

    def adopt(self, stack: str, ids: Mapping[str, str]) -> None:
        """Import these objects, name → id, under the components of the program."""
        entries = [
            entry | {"id": ids[entry["name"]]} if entry["name"] in ids else entry
            for entry in self.importable["resources"]
            if entry["name"] in ids or entry.get("component")
        ]
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(self.importable | {"resources": entries}, file)
            file.flush()
            quiet = ("--yes", "--generate-code=false", "--protect=false", "--skip-preview")
            pulumi(stack, "import", "--file", file.name, *quiet, "--message", REPAIR)
        self._complete(stack)

    def _complete(self, stack: str) -> None:
        """Write into the state what an import leaves out of an object: what it needs, or a destroy would
        delete a security group before the rules that hold it, and fail; and what AWS does not tell."""
        state = deployment(stack)
        every = state["deployment"]["resources"]
        known = {each["urn"] for each in every}
        adopted = {
            each["urn"]: each for each in every if each["urn"] in self.states and each.get("custom")
        }
        for each in adopted.values():
            wanted = self.states[each["urn"]]
            needs = wanted.get("dependencies") or []
            each["dependencies"] = [other for other in needs if other in known]
            _tell(each, wanted.get("inputs") or {})
        sorter = TopologicalSorter({key: each["dependencies"] for key, each in adopted.items()})
        others = [each for each in every if each["urn"] not in adopted]
        last = [adopted[key] for key in sorter.static_order() if key in adopted]
        state["deployment"]["resources"] = [*others, *last]
        pulumi(stack, "stack", "import", text=json.dumps(state))


def _tell(imported: Entry, inputs: Entry) -> None:
    """Write the program's inputs of an imported object into the state: the one that AWS does not tell,
    and all of an object of the cluster that is as the program wants it. Another one stays as it was
    imported, and the next update changes it."""
    row = AWS_TYPES.get(imported["type"])
    if row and (untold := row.untold) in inputs:
        imported["inputs"][untold] = imported["outputs"][untold] = inputs[untold]
    if imported["type"].startswith("kubernetes:") and _contains(imported["outputs"], inputs):
        imported["inputs"] = inputs
        if COMPARED in imported["outputs"]:
            imported["outputs"][COMPARED] = inputs


def _contains(live: Any, wanted: Any) -> bool:
    """True where an object has all that is wanted of it. A value that a preview does not show,
    because it is a secret or not known yet, is no value of the object."""
    if isinstance(live, dict) and isinstance(wanted, dict):
        return all(key in live and _contains(live[key], each) for key, each in wanted.items())
    if isinstance(live, list) and isinstance(wanted, list):
        return len(live) == len(wanted) and all(map(_contains, live, wanted))
    return live == wanted
