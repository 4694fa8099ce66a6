"""`trainyard repair STACK [--restored]`: after a killed or failed update, or after an older state was put
back, add objects that exist to the stack's state.

Pulumi records when it starts to create an object, and records the id when the object exists. If the
engine or a plugin is killed in between, or an answer is lost, the object exists and is not in the
state: the next `up` would fail because its name is taken, or create it twice. This command finds such
objects by their names and tags and imports them into the state; then `pulumi up` continues. The new
object of a killed replacement takes the place of the old one there, unless the stack file wants the old
one again (replacements.py). AWS objects whose update was killed or that the next update changes, objects
whose deletion has not ended (deletions.py), and objects of the cluster that are gone from it are read again.
It changes six things in the account: it uninstalls Helm releases whose installation or deletion has not
ended, rolls back those whose upgrade has not ended, removes the egress rule that AWS adds to a new security
group, deletes a role that has no name in the program, and where the cluster is gone ends the instances of its
pools (instances.py) and, after a failed destroy, deletes the network interfaces that the VPC CNI left in the
stack's subnets (interfaces.py).

It first lists its changes and asks. After a yes it makes these changes and no others, and only if
no update has run in between.

Names and tags contain the stack and the region, but not the account: another account may have a
stack and objects of the same names. Therefore the account of the credentials must be the one in the
ARNs of the state. Where the state has no ARN yet, the list names the account. The region is the
stack's own. The cluster needs no check: its kubeconfig comes from the state.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from trainyard import command_line
from trainyard.derive.credentials import NotAssumed
from trainyard.operations.reach.cluster import Entry, Release, StackCluster
from trainyard.operations.reach.consent import ask
from trainyard.operations.reach.lookup import (
    ExistingObject,
    find,
    remove_unwanted_egress_rules,
    unwanted_egress_rules,
)
from trainyard.operations.reach.pulumi import (
    PulumiError,
    deployment,
    pulumi,
)
from trainyard.operations.reach.stack_account import session_of
from trainyard.operations.reach.updates import REPAIR, History, history_of
from trainyard.operations.recovery import (
    deletions,
    instances,
    interfaces,
    ongoing_changes,
    replacements,
)
from trainyard.operations.recovery.adoption import Wanted
from trainyard.operations.recovery.interfaces import LeakedInterface
from trainyard.operations.recovery.pause import pause
from trainyard.plans.controllers import RELEASE
from trainyard.replacing.urn import title_of, type_of

PATIENCE_SECONDS = 1800
"""Seconds to wait for an object that AWS is still creating. A cluster takes ten minutes."""
NOTHING = "No object and no state was changed."
ROLE = "aws:iam/role:Role"
CLUSTER = "aws:eks/cluster:Cluster"
NO_CLUSTER: Entry = {"deployment": {}}
"""State without a kubeconfig."""


@dataclass(frozen=True, kw_only=True)
class Repair:
    """Everything that a repair would change."""

    stack: str
    session: boto3.Session
    pending: list[Entry]
    """Operations that an engine started and did not end."""
    wanted: Wanted
    adopted: dict[str, ExistingObject]
    """Name → the object, which exists and is not in the state."""
    kinds: dict[str, str]
    """Name → its type."""
    replaced: dict[str, str]
    """URN → id of adopted objects in whose place the state holds older ones."""
    wanted_again: dict[str, str]
    """URN → id of objects that a replacement has left and that the stack file wants again."""
    changing: list[str]
    """URNs of objects whose update or deletion has not ended in the state, and may have in AWS."""
    gone: list[str]
    """URNs of objects that the state has and the cluster has not, because a destroy was stopped."""
    unsure: list[str]
    """URNs of AWS objects that the next update changes: an update that was stopped by ctrl-C, or that failed,
    may have changed them already, and the state does not tell."""
    unfinished_releases: list[Release]
    with_egress_rule: frozenset[str]
    """Names of adopted security groups that still have the egress rule of AWS."""
    forgotten_roles: list[str]
    """Roles that nothing refers to and that the next update does not use."""
    leaked_interfaces: list[LeakedInterface]
    """Network interfaces that hold subnets of a stack whose cluster is gone."""

    def lines(self) -> list[str]:
        """A line for each change."""
        return [
            *(f"removes the pending operation: {_began(it)}" for it in self.pending),
            *(release.way_out for release in self.unfinished_releases),
            *(f"imports {name} ({it.id})" for name, it in self.adopted.items()),
            *(
                f"keeps the old {title_of(urn)} ({id_}), which the stack file wants again"
                for urn, id_ in self.wanted_again.items()
            ),
            *(f"reads {title_of(it)}, whose change has not ended" for it in self.changing),
            *(f"reads {title_of(it)}, which is gone from the cluster" for it in self.gone),
            *(f"reads {title_of(it)}, which may have been changed already" for it in self.unsure),
            *(
                f"removes from {name} ({self.adopted[name].id}) the egress rule that AWS added"
                for name in sorted(self.with_egress_rule)
            ),
            *(f"deletes role {name}, which a killed update made" for name in self.forgotten_roles),
            *(f"deletes {interface}" for interface in self.leaked_interfaces),
        ]

    def apply(self, cluster: StackCluster) -> None:
        """Make these changes. PulumiError where another update has changed the pending operations;
        then nothing was changed."""
        self._write_state()
        for release in self.unfinished_releases:
            cluster.end(release)
        for name in self.with_egress_rule:
            remove_unwanted_egress_rules(self.session, self.kinds[name], self.adopted[name].id)
        for name in self.forgotten_roles:
            self.session.client("iam").delete_role(RoleName=name)
        for interface in self.leaked_interfaces:
            interfaces.delete(self.session, interface)
        if read := [*self.replaced, *self.changing, *self.gone, *self.unsure]:
            targets = (word for urn in read for word in ("--target", urn))
            quiet = ("--yes", "--skip-preview", "--message", REPAIR)
            with command_line.showing("reads these objects"):
                pulumi(self.stack, "refresh", *quiet, *targets)
        if len(self.adopted) > len(self.replaced):
            self.wanted.adopt(self.stack, {name: it.id for name, it in self.adopted.items()})

    def _write_state(self) -> None:
        """Let the state hold the objects of replacements, and no pending operation."""
        state = deployment(self.stack)
        if _pending(state) != self.pending:
            raise PulumiError(f"an update of {self.stack} has run in between. {NOTHING}")
        if self.pending or self.wanted_again:
            replacements.take(state, self.replaced)
            replacements.put_back(state, self.wanted_again)
            state["deployment"]["pending_operations"] = []
            pulumi(self.stack, "stack", "import", text=json.dumps(state))


def repair(stack: str, *, yes: bool, restored: bool = False) -> int:
    """Find the changes, list them, ask, and make them; the exit code. After an update that succeeded
    it does nothing but end instances without a cluster, unless the state is an older one that somebody has
    `restored`. PulumiError where an object could not be read."""
    state = deployment(stack)
    pending = _pending(state)
    session = _without_cluster(state)
    if session and (code := _end_instances(stack, state, session, yes=yes)):
        return code
    history = history_of(stack)
    if not (restored or pending) and (why := _settled_by(state, history)):
        print(f"{stack}: {why}; nothing to repair")
        return 0
    # The refresh that takes out of the state what was in a cluster that is gone leaves the kubeconfig there.
    with StackCluster.of(NO_CLUSTER if session and not _has_objects(state) else state) as cluster:
        cluster.require_answer(stack)
        found = look(stack, state, history, cluster)
        if cluster.failure:
            raise PulumiError(
                f"could not read all objects of the cluster: {cluster.failure}. {NOTHING}"
            )
        if not (lines := found.lines()):
            print(f"{stack}: every object that exists is in its state; nothing to repair")
            return 0
        print("\n".join(lines), flush=True)
        if code := ask(f"Make these changes to {stack}?", yes=yes, otherwise=NOTHING):
            return code
        found.apply(cluster)
    print(f"{stack}: repaired; run `pulumi up`, or `pulumi destroy`, again")
    return 0


def _without_cluster(state: Entry) -> boto3.Session | None:
    """A session with the account of a stack whose cluster is gone, from its state and from AWS; None where there is
    one, or where there was none."""
    resources = state["deployment"].get("resources") or []
    clusters = interfaces.places(resources)
    if not clusters or any(each["type"] == CLUSTER for each in resources):
        return None
    session = session_of(state)
    return None if any(interfaces.exists(session, name) for name in clusters) else session


def _has_objects(state: Entry) -> bool:
    """True where objects of a cluster are in the state."""
    every = state["deployment"].get("resources") or []
    return any(each["type"].startswith("kubernetes:") for each in every)


def _end_instances(stack: str, state: Entry, session: boto3.Session, *, yes: bool) -> int:
    """List instances that have run on without their cluster, ask, and end them; the exit code."""
    if not (found := instances.left(session, state["deployment"]["resources"])):
        return 0
    _same_account(stack, state, session)
    print("\n".join(f"ends {each}" for each in found), flush=True)
    if code := ask("End these?" if len(found) > 1 else "End it?", yes=yes, otherwise=NOTHING):
        return code
    instances.end(session, found)
    print("AWS ends what was listed within minutes", flush=True)
    return 0


def _settled_by(state: Entry, history: History) -> str:
    """Reason why nothing can be amiss; empty where something can. A killed update is not in the history: one
    that had no operation under way leaves a state that is newer than the last one that ended."""
    last = history.last
    if last is None and not (history.ends_refused or history.goes_on):
        return "" if state["deployment"].get("resources") else "no update has run yet"
    if not history.is_settled(state):
        return ""
    if history.ends_refused:
        before = ", and the one before it succeeded" if last else ""
        return f"the last update was refused or stopped before it changed anything{before}"
    return "the last update succeeded"


def look(stack: str, state: Entry, history: History, cluster: StackCluster) -> Repair:
    """The changes of a repair. It only reads, and waits for what is still being created, changed or deleted. What a
    repair before it has read is not read again."""
    wanted = Wanted.by(stack)
    session = session_of(state, wanted.region)
    begun = replacements.begun(state)
    candidates = [*wanted.candidates(), *replacements.candidates(begun)]
    resources = state["deployment"].get("resources") or []
    in_aws = [*(it for it, _ in candidates), *resources]
    if any(entry["type"].startswith("aws:") for entry in in_aws):
        _same_account(stack, state, session)
    going = deletions.awaited(session, cluster, state, PATIENCE_SECONDS)
    held = replacements.held_ids(state)
    adopted, unfinished_releases = _settled(session, candidates, cluster, held)
    kinds = {entry["name"]: entry["type"] for entry, _ in candidates}
    named = {urn: adopted.get(replacements.new_name(urn)) for urn in begun}
    replaced = {urn: new.id for urn, new in named.items() if new}
    changing = {*replacements.changing(state), *going}
    gone = {*deletions.gone(cluster, state)} - changing
    unsure = wanted.changed - changing - gone - replaced.keys()
    unsure = set[str]() if history.is_repaired(state) else {*unsure}
    read = [it for it in resources if it["urn"] in changing | unsure and it.get("id")]
    ongoing_changes.await_end(session, read, PATIENCE_SECONDS)
    return Repair(
        stack=stack,
        session=session,
        pending=_pending(state),
        wanted=wanted,
        adopted=adopted,
        kinds=kinds,
        replaced=replaced,
        wanted_again=replacements.wanted_again(state, wanted.replaced, replaced),
        changing=sorted(changing),
        gone=sorted(gone),
        unsure=sorted(unsure),
        unfinished_releases=[*unfinished_releases, *_half_changed(cluster, resources)],
        with_egress_rule=frozenset(
            name
            for name, it in adopted.items()
            if unwanted_egress_rules(session, kinds[name], it.id)
        ),
        forgotten_roles=_forgotten_roles(session, state, wanted.states | begun),
        leaked_interfaces=interfaces.leaked(session, resources),
    )


def _pending(state: Entry) -> list[Entry]:
    return state["deployment"].get("pending_operations") or []


def _forgotten_roles(session: boto3.Session, state: Entry, states: dict[str, Entry]) -> list[str]:
    """Names of roles that a killed engine made and that the program does not name, as the one of
    pulumi-eks. The next update makes another one: with the old one imported the provider would choose a
    new name all the same, and EKS makes another cluster for another role."""
    begun = {
        operation["resource"]["urn"]: _role_name(operation["resource"])
        for operation in _pending(state)
        if operation["type"] == "creating" and type_of(operation["resource"]["urn"]) == ROLE
    }
    return [
        name
        for urn, name in begun.items()
        if name and name != _role_name(states.get(urn, {})) and find(session, ROLE, {"name": name})
    ]


def _role_name(resource: Entry) -> str | None:
    return (resource.get("inputs") or {}).get("name")


def _began(operation: Entry) -> str:
    return f"{operation['type']} {title_of(operation['resource']['urn'])}"


def _same_account(stack: str, state: Entry, session: boto3.Session) -> None:
    """Print the account; PulumiError where the state's objects are in another account."""
    account = session.client("sts").get_caller_identity()["Account"]
    of_state = accounts(state)
    if of_state and account not in of_state:
        raise PulumiError(
            f"the objects of stack {stack} are in account {' and '.join(sorted(of_state))}, but these"
            f" credentials are for account {account}: use the credentials that created the stack"
        )
    print(f"reads account {account}, {session.region_name}", flush=True)


def accounts(state: Entry) -> set[str]:
    """The accounts in the ARNs of the objects that the stack has created."""
    arns = [
        (resource.get("outputs") or {}).get("arn")
        for resource in state["deployment"].get("resources") or []
        if resource["type"].startswith("aws:") and not resource.get("external")
    ]
    parts = [arn.split(":") for arn in arns if isinstance(arn, str)]
    return {part[4] for part in parts if len(part) > 5 and part[4].isdecimal()}


def _settled(
    session: boto3.Session,
    candidates: list[tuple[Entry, Entry]],
    cluster: StackCluster,
    held: Mapping[str, Collection[str]],
) -> tuple[dict[str, ExistingObject], list[Release]]:
    """The objects that exist, by name, once AWS has created them; and releases whose installation has
    not ended. `held`: type → ids of the state, which are other objects."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        results = {
            entry["name"]: result
            for entry, inputs in candidates
            if (result := _find(session, cluster, entry["type"], inputs, held))
        }
        objects = {name: it for name, it in results.items() if isinstance(it, ExistingObject)}
        unsettled = ", ".join(name for name, it in objects.items() if not it.settled)
        if not unsettled:
            return objects, [it for it in results.values() if isinstance(it, Release)]
        over = f"AWS still creates these after {PATIENCE_SECONDS} s: {unsettled}"
        pause(unsettled, "AWS is still creating", over, deadline)


def _find(
    session: boto3.Session,
    cluster: StackCluster,
    kind: str,
    inputs: Entry,
    held: Mapping[str, Collection[str]],
) -> ExistingObject | Release | None:
    if kind == RELEASE:
        return cluster.release(inputs)
    others = held.get(kind, ())
    if kind.startswith("kubernetes:"):
        found = cluster.object(inputs)
        return None if found and found.id in others else found
    return find(session, kind, inputs, others)


def _half_changed(cluster: StackCluster, resources: list[Entry]) -> Iterator[Release]:
    """Releases of the state whose last upgrade or deletion was killed. Helm refuses the next upgrade."""
    for each in resources:
        if each["type"] == RELEASE and each.get("id"):
            namespace, _, name = each["id"].rpartition("/")
            found = cluster.release({"name": name, "namespace": namespace})
            if isinstance(found, Release) and (found.upgraded or found.uninstalled):
                yield found


def main(options: argparse.Namespace) -> int:
    """Return 0 where the stack is repaired, 1 where that failed or the answer was no, 2 where there is
    no terminal to ask."""
    try:
        return repair(options.stack, yes=options.yes, restored=options.restored)
    except (PulumiError, NotAssumed) as error:
        print(error, file=sys.stderr)
    except (BotoCoreError, ClientError) as error:
        print(f"AWS returned an error: {error}", file=sys.stderr)
    return 1
