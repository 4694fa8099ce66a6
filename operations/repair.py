"""`python -m operations.repair <stack>`: after a killed or failed update, find what exists and no
state knows.

Pulumi writes down that it begins to create something, and the id when it is done. In between a
killed engine, a dead plugin or a lost answer leaves an object that nobody knows: the next `up`
would stumble over its name, or make a second one. This takes such objects into the state, by the
names and tags the plan gave them; then `pulumi up` goes on. It changes the stack's state and
nothing in the account, but for what a create has left half done: Helm releases that hang half
installed go, and so does the egress rule that AWS gives a new security group.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3

from components.plans import AccessPlan, AssumedRole
from operations.finders import Found, find, finish
from operations.kubectl import Login, login
from operations.pulumi import PulumiError, deployment, last_update_failed, pulumi
from stacks.credentials import NotAssumed, aws_session

PATIENCE_SECONDS = 1800
"""How long an object that AWS is still making is waited for; a cluster takes ten minutes."""
Entry = dict[str, Any]


def repair(stack: str) -> list[str]:
    """Do it; returns what was done, a line each. Nothing happens where the last update ended
    well."""
    state = deployment(stack)
    pending = state["deployment"].get("pending_operations") or []
    if not pending and not last_update_failed(stack):
        return []
    done = [
        f"forgotten in the middle of {p['type']}: {_name(p['resource']['urn'])}" for p in pending
    ]
    if pending:
        state["deployment"]["pending_operations"] = []
        pulumi(stack, "stack", "import", text=json.dumps(state))
    wanted, steps = _wanted(stack)
    session = _session(state)
    with Cluster.of(state) as cluster:
        adopted = _settled(list(_existing(wanted, steps)), cluster, session)
    kinds = {entry["name"]: entry["type"] for entry in wanted.get("resources", [])}
    for name, found in adopted:
        finish(session, kinds[name], found.id)
    if adopted:
        _adopt(stack, wanted, {name: found.id for name, found in adopted})
    return [*done, *(f"found again: {name} ({found.id})" for name, found in adopted)]


def _wanted(stack: str) -> tuple[Entry, dict[str, Entry]]:
    """What the program would create: the engine's own import file, and the inputs of each step by
    URN."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "import.json"
        shown = pulumi(stack, "preview", "--json", "--import-file", str(file))
        steps = {
            step["urn"]: step["newState"].get("inputs") or {}
            for step in json.loads(shown).get("steps", [])
            if step["op"] == "create"
        }
        return json.loads(file.read_text()), steps


def _existing(wanted: Entry, steps: dict[str, Entry]) -> Iterator[tuple[Entry, Entry]]:
    """(import entry, inputs) of everything that may exist already."""
    by_name = {(_kind(urn), _name(urn)): inputs for urn, inputs in steps.items()}
    for entry in wanted.get("resources", []):
        inputs = by_name.get((entry["type"], entry.get("logicalName") or entry["name"]))
        if inputs is not None and not entry.get("component"):
            yield entry, inputs


def _settled(
    candidates: list[tuple[Entry, Entry]], cluster: Cluster, session: boto3.Session
) -> list[tuple[str, Found]]:
    """Those that exist, once AWS has finished making them."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = [
            (entry["name"], it)
            for entry, inputs in candidates
            if (it := _find(session, cluster, entry["type"], inputs))
        ]
        making = [name for name, it in found if not it.settled]
        if not making:
            return found
        if time.monotonic() > deadline:
            raise PulumiError(f"still being made after {PATIENCE_SECONDS} s: {', '.join(making)}")
        print(f"waiting for {', '.join(making)}, which AWS is still making", flush=True)
        time.sleep(5)


def _session(state: Entry) -> boto3.Session:
    """The account as the stack's own AWS provider sees it: its region, its profile, its roles."""
    given = next(
        (
            resource["inputs"]
            for resource in state["deployment"].get("resources") or []
            if resource["type"] == "pulumi:providers:aws"
        ),
        None,
    )
    if given is None:  # then there is nothing that could have been made either
        return boto3.Session()
    roles = json.loads(given.get("assumeRoles", "[]"))
    access = AccessPlan(
        region=given["region"],
        profile=given.get("profile"),
        roles=tuple(
            AssumedRole(
                arn=role["roleArn"],
                session_name=role.get("sessionName"),
                external_id=role.get("externalId"),
            )
            for role in roles
        ),
    )
    return boto3.Session(botocore_session=aws_session(access), region_name=access.region)


def _find(session: boto3.Session, cluster: Cluster, kind: str, inputs: Entry) -> Found | None:
    if kind == "kubernetes:helm.sh/v3:Release":
        return cluster.release(inputs)
    return cluster.object(inputs) if kind.startswith("kubernetes:") else find(session, kind, inputs)


def _adopt(stack: str, wanted: Entry, ids: dict[str, str]) -> None:
    """`pulumi import` of what was found, under the components the program gives it."""
    resources = [
        entry | {"id": ids[entry["name"]]} if entry["name"] in ids else entry
        for entry in wanted["resources"]
        if entry["name"] in ids or entry.get("component")
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(wanted | {"resources": resources}, file)
        file.flush()
        pulumi(
            stack,
            "import",
            "--file",
            file.name,
            "--yes",
            "--generate-code=false",
            "--protect=false",
            "--skip-preview",
        )


class Cluster:
    """What lives in the cluster, asked with kubectl and helm through the cluster's own
    credentials."""

    def __init__(self, login: Login | None) -> None:
        self._login = login

    @classmethod
    @contextmanager
    def of(cls, state: Entry) -> Iterator[Cluster]:
        """The cluster of the stack's own Kubernetes provider, through a private kubeconfig that
        goes again; without a provider there is no object to look for either. One login serves all
        that is looked for."""
        given = [
            resource["inputs"]["kubeconfig"]
            for resource in state["deployment"].get("resources") or []
            if resource["type"] == "pulumi:providers:kubernetes"
            and resource["urn"].count("eks:index") == 0
        ]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "kubeconfig"
            file.write_text(given[0] if given else "")
            yield cls(login({**os.environ, "KUBECONFIG": str(file)}, folder) if given else None)

    def object(self, inputs: Entry) -> Found | None:
        """An object by kind, namespace and name."""
        meta = inputs.get("metadata") or {}
        name, space = meta.get("name"), meta.get("namespace")
        if not isinstance(name, str):
            return None
        group, _, version = inputs["apiVersion"].rpartition("/")
        kind = f"{inputs['kind']}.{version}.{group}" if group else inputs["kind"]
        found = self._run(
            "kubectl",
            "get",
            kind,
            name,
            *(["--namespace", space] if space else []),
            "--output=name",
        )
        return Found(id=f"{space}/{name}" if space else name) if found else None

    def release(self, inputs: Entry) -> Found | None:
        """A release that stands; one that hangs half installed is taken away, so that it can be
        installed."""
        name, space = inputs["name"], inputs.get("namespace", "default")
        shown = self._run("helm", "status", name, "--namespace", space, "--output", "json")
        if not shown:
            return None
        if json.loads(shown)["info"]["status"] == "deployed":
            return Found(id=f"{space}/{name}")
        self._run("helm", "uninstall", name, "--namespace", space, "--no-hooks", "--wait")
        return None

    def _run(self, *words: str) -> str:
        """What it says; nothing where it fails, and where there is no cluster."""
        if self._login is None:
            return ""
        done = subprocess.run(words, capture_output=True, text=True, env=self._login())
        return done.stdout.strip() if done.returncode == 0 else ""


def _kind(urn: str) -> str:
    return urn.split("::")[2].rpartition("$")[2]


def _name(urn: str) -> str:
    return urn.split("::", 3)[3]


def main(arguments: list[str]) -> int:
    """Repair one stack and say what was done."""
    if len(arguments) != 1:
        print(__doc__)
        return 2
    try:
        done = repair(arguments[0])
    except (PulumiError, NotAssumed) as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(done))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
