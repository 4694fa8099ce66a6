"""`python -m operations.repair STACK`: after a killed or failed update, find what exists and no
state knows.

Pulumi writes down that it begins to create something, and the id when it is done. In between a
killed engine, a dead plugin or a lost answer leaves an object that nobody knows: the next `up`
would stumble over its name, or make a second one. This takes such objects into the state, by the
names and tags the plan gave them; then `pulumi up` goes on. It changes the stack's state and
nothing in the account, but for what a create has left half done: Helm releases that hang half
installed go, and so does the egress rule that AWS gives a new security group.

First it only looks, and lists what it would change. It changes that and no more, once somebody has
agreed, and only if no update has run meanwhile.

Names and tags hold the stack and the region, and not the account: another account may have a stack
of the same name with objects of the same names. So the account of the credentials must be the one
whose ARNs are in the state; where the state has no ARN yet, the list says which account it is. The
region is the stack's own. The cluster needs no check: its kubeconfig comes out of the state.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

import command_line
from operations.consent import ask
from operations.kubectl import UNSERVED, Login, logged_in_to
from operations.lookup import Found, find, finish, unfinished
from operations.pulumi import PulumiError, deployment, last_update_failed, pulumi
from plans.parts import AccessPlan, AssumedRole
from stacks.derive.credentials import NotAssumed, aws_session

PATIENCE_SECONDS = 1800
"""How long an object that AWS is still making is waited for; a cluster takes ten minutes."""
NOTHING = "Nothing was changed."
ABSENT = ("not found", "NotFound", UNSERVED, "no matches for kind")
"""Words with which kubectl and helm say that there is no such object."""
Entry = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Release:
    """A Helm release that hangs half installed."""

    namespace: str
    name: str
    status: str
    """As helm calls it."""

    def __str__(self) -> str:
        return f"release {self.namespace}/{self.name}, which is {self.status}"


@dataclass(frozen=True, kw_only=True)
class Repair:
    """Everything that a repair would change."""

    stack: str
    session: boto3.Session
    pending: list[Entry]
    """Operations that an engine began and did not end."""
    wanted: Entry
    """What the program would create: the engine's own import file."""
    adopted: dict[str, Found]
    """Name in `wanted` → the object that exists and that the state does not know."""
    hanging: list[Release]
    unfinished: frozenset[str]
    """Those of `adopted` that AWS gave an egress rule."""

    def lines(self) -> list[str]:
        """A line for each change."""
        return [
            *(f"forgets that it was {_began(each)}" for each in self.pending),
            *(f"uninstalls {release}" for release in self.hanging),
            *(f"adopts {name} ({it.id})" for name, it in self.adopted.items()),
            *(
                f"removes from {name} ({self.adopted[name].id}) the egress rule that AWS gave it"
                for name in sorted(self.unfinished)
            ),
        ]

    def apply(self, cluster: Cluster) -> None:
        """Do it; PulumiError, with nothing changed, where another update has changed what is
        pending."""
        state = deployment(self.stack)
        if _pending(state) != self.pending:
            raise PulumiError(f"an update of {self.stack} has run meanwhile. {NOTHING}")
        if self.pending:
            state["deployment"]["pending_operations"] = []
            pulumi(self.stack, "stack", "import", text=json.dumps(state))
        for release in self.hanging:
            cluster.uninstall(release)
        for name in self.unfinished:
            finish(self.session, _kinds(self.wanted)[name], self.adopted[name].id)
        if self.adopted:
            _adopt(self.stack, self.wanted, {name: it.id for name, it in self.adopted.items()})


def repair(stack: str, *, yes: bool) -> int:
    """Look, list, ask, and do it; the exit code. Nothing happens where the last update ended
    well."""
    state = deployment(stack)
    pending = _pending(state)
    if not pending and not last_update_failed(stack):
        print(f"{stack}: its last update ended well, nothing to repair")
        return 0
    with Cluster.of(state) as cluster:
        found = look(stack, state, cluster)
        if cluster.silence:
            print(f"could not look at all of the cluster: {cluster.silence}")
        if not (lines := found.lines()):
            print(f"{stack}: nothing exists that its state does not know, nothing to repair")
            return 0
        print("\n".join(lines), flush=True)
        if code := ask(f"Repair {stack} so?", yes=yes, otherwise=NOTHING):
            return code
        found.apply(cluster)
    print(f"{stack}: repaired; `pulumi up` goes on from here")
    return 0


def look(stack: str, state: Entry, cluster: Cluster) -> Repair:
    """What a repair would change. It reads only; it waits for what AWS is still making."""
    wanted, steps, region = _wanted(stack)
    session = _session(state, region)
    candidates = list(_existing(wanted, steps))
    if any(entry["type"].startswith("aws:") for entry, _ in candidates):
        _same_account(stack, state, session)
    adopted, hanging = _settled(session, candidates, cluster)
    kinds = _kinds(wanted)
    return Repair(
        stack=stack,
        session=session,
        pending=_pending(state),
        wanted=wanted,
        adopted=adopted,
        hanging=hanging,
        unfinished=frozenset(
            name for name, it in adopted.items() if unfinished(session, kinds[name], it.id)
        ),
    )


def _kinds(wanted: Entry) -> dict[str, str]:
    """Name → type token of everything in the import file."""
    return {entry["name"]: entry["type"] for entry in wanted.get("resources", [])}


def _pending(state: Entry) -> list[Entry]:
    return state["deployment"].get("pending_operations") or []


def _began(operation: Entry) -> str:
    return f"{operation['type']} {_name(operation['resource']['urn'])}"


def _same_account(stack: str, state: Entry, session: boto3.Session) -> None:
    """Say which account is looked at; PulumiError where the state's objects are in another one."""
    ours = session.client("sts").get_caller_identity()["Account"]
    known = accounts(state)
    if known and ours not in known:
        raise PulumiError(
            f"the objects of stack {stack} are in account {' and '.join(sorted(known))}, and these"
            f" credentials are of account {ours}: repair with those that made the stack"
        )
    print(f"looks at account {ours}, {session.region_name}", flush=True)


def accounts(state: Entry) -> set[str]:
    """The accounts in the ARNs of what the stack has made."""
    arns = [
        (resource.get("outputs") or {}).get("arn")
        for resource in state["deployment"].get("resources") or []
        if resource["type"].startswith("aws:") and not resource.get("external")
    ]
    parts = [arn.split(":") for arn in arns if isinstance(arn, str)]
    return {each[4] for each in parts if len(each) > 5 and each[4].isdecimal()}


def _wanted(stack: str) -> tuple[Entry, dict[str, Entry], str | None]:
    """What the program would create: the engine's own import file, the inputs of each step by URN,
    and the stack's region."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "import.json"
        shown = json.loads(pulumi(stack, "preview", "--json", "--import-file", str(file)))
        steps = {
            step["urn"]: step["newState"].get("inputs") or {}
            for step in shown.get("steps", [])
            if step["op"] == "create"
        }
        region = (shown.get("config") or {}).get("aws:region")
        return json.loads(file.read_text()), steps, region


def _existing(wanted: Entry, steps: dict[str, Entry]) -> Iterator[tuple[Entry, Entry]]:
    """(import entry, inputs) of everything that may exist already."""
    by_name = {(_kind(urn), _name(urn)): inputs for urn, inputs in steps.items()}
    for entry in wanted.get("resources", []):
        inputs = by_name.get((entry["type"], entry.get("logicalName") or entry["name"]))
        if inputs is not None and not entry.get("component"):
            yield entry, inputs


def _settled(
    session: boto3.Session, candidates: list[tuple[Entry, Entry]], cluster: Cluster
) -> tuple[dict[str, Found], list[Release]]:
    """Those that exist by name, once AWS has finished making them, and releases that hang."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = {
            entry["name"]: it
            for entry, inputs in candidates
            if (it := _find(session, cluster, entry["type"], inputs))
        }
        exist = {name: it for name, it in found.items() if isinstance(it, Found)}
        making = [name for name, it in exist.items() if not it.settled]
        if not making:
            return exist, [it for it in found.values() if isinstance(it, Release)]
        if time.monotonic() > deadline:
            raise PulumiError(f"still being made after {PATIENCE_SECONDS} s: {', '.join(making)}")
        print(f"waiting for {', '.join(making)}, which AWS is still making", flush=True)
        time.sleep(5)


def _session(state: Entry, region: str | None) -> boto3.Session:
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
        return boto3.Session(region_name=region)
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


def _find(
    session: boto3.Session, cluster: Cluster, kind: str, inputs: Entry
) -> Found | Release | None:
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
        self.silence = ""
        """Why an object could not be looked for; empty where all could."""

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
        with logged_in_to(given[0]) if given else nullcontext() as login:
            yield cls(login)

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

    def release(self, inputs: Entry) -> Found | Release | None:
        """A release that stands, or one that hangs half installed."""
        name, space = inputs["name"], inputs.get("namespace", "default")
        shown = self._run("helm", "status", name, "--namespace", space, "--output", "json")
        if not shown:
            return None
        status = json.loads(shown)["info"]["status"]
        if status == "deployed":
            return Found(id=f"{space}/{name}")
        return Release(namespace=space, name=name, status=status)

    def uninstall(self, release: Release) -> None:
        """Take a release away, so that it can be installed; one that has moved on stays."""
        asked = {"name": release.name, "namespace": release.namespace}
        if self.release(asked) == release:
            self._run(
                *("helm", "uninstall", release.name, "--namespace", release.namespace),
                *("--no-hooks", "--wait"),
            )
            if self.release(asked) is not None:
                print(f"still there: {release}", flush=True)

    def _run(self, *words: str) -> str:
        """What it says; nothing where it fails, and where there is no cluster."""
        if self._login is None:
            return ""
        try:
            done = subprocess.run(words, capture_output=True, text=True, env=self._login())
        except FileNotFoundError:
            raise PulumiError(f"{words[0]} is not on PATH") from None
        if done.returncode and not any(word in done.stderr for word in ABSENT):
            self.silence = (done.stderr.strip() or f"{words[0]} failed").splitlines()[-1]
        return done.stdout.strip() if done.returncode == 0 else ""


def _kind(urn: str) -> str:
    return urn.split("::")[2].rpartition("$")[2]


def _name(urn: str) -> str:
    return urn.split("::", 3)[3]


def main(arguments: list[str]) -> int:
    """0 where the stack is whole, 1 where it could not be compared or somebody declined, 2 where
    nobody can be asked."""
    parser = command_line.parser(
        "operations.repair",
        "After a killed update, list what exists and the state of a stack does not know, ask, and"
        " take it into the state.",
    )
    parser.add_argument("stack", metavar="STACK", help="the Pulumi stack to repair")
    parser.add_argument(
        "--yes", action="store_true", help="change the state without a question, for programs"
    )
    options = parser.parse_args(arguments)
    try:
        return repair(options.stack, yes=options.yes)
    except (PulumiError, NotAssumed) as error:
        print(error, file=sys.stderr)
    except (BotoCoreError, ClientError) as error:
        print(f"the account does not answer: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    command_line.run(main)
