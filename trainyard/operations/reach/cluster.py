"""The objects and Helm releases in a stack's cluster, read with kubectl and helm.

The kubeconfig comes from the stack's state, so that no other cluster can be meant.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import yaml

from trainyard.operations.reach.kubectl import UNSERVED, Login, logged_in_to
from trainyard.operations.reach.lookup import ExistingObject
from trainyard.operations.reach.other_programs import not_on_path
from trainyard.operations.reach.pulumi import PulumiError

ABSENT = ("not found", "NotFound", UNSERVED, "no matches for kind")
"""Parts of the messages of kubectl and helm where an object does not exist."""
NAMING = ("apiVersion", "kind", "metadata")
"""Fields of an object that a kubectl needs when it reads from its input."""
WAY_OUT = """No object and no state was changed. Fix:
  where its API server is slow or starts again, wait a minute
  where its endpoint is private, open the tunnel; where it is public, allow the address of this machine
  only where `aws eks describe-cluster` says that the cluster is gone, take its objects out of the state:
    PULUMI_K8S_DELETE_UNREACHABLE=true pulumi refresh --stack {stack}
then repair again"""
"""Advice where the cluster does not answer. The variable is one of pulumi-kubernetes."""
Entry = dict[str, Any]
"""A resource, or the inputs of one, in the JSON of Pulumi."""


@dataclass(frozen=True, kw_only=True)
class Release:
    """A Helm release whose installation, upgrade or deletion has not ended."""

    namespace: str
    name: str
    status: str
    """Helm's own word, such as pending-install."""

    @property
    def upgraded(self) -> bool:
        """True where there is an earlier revision that it can go back to."""
        return self.status in ("pending-upgrade", "pending-rollback")

    @property
    def uninstalled(self) -> bool:
        """True where half of the release is gone."""
        return self.status == "uninstalling"

    @property
    def way_out(self) -> str:
        """Way out of this state, as a line of a list."""
        return f"{'rolls back' if self.upgraded else 'uninstalls'} {self}"

    def __str__(self) -> str:
        return f"release {self.namespace}/{self.name}, which is {self.status}"


def kubeconfig_in(state: Entry) -> str | None:
    """The kubeconfig of the stack's own Kubernetes provider; None before there is a cluster. The state
    has it while the first update still runs, and outputs only after that."""
    return next(
        (
            resource["inputs"]["kubeconfig"]
            for resource in state["deployment"].get("resources") or []
            if resource["type"] == "pulumi:providers:kubernetes"
            and resource["urn"].count("eks:index") == 0
        ),
        None,
    )


def current_cluster(kubeconfig: str) -> tuple[str, str] | None:
    """Name and server of the current context's cluster; None where there is none."""
    try:
        config = yaml.safe_load(kubeconfig)
        contexts = {entry["name"]: entry["context"] for entry in config["contexts"]}
        clusters = {entry["name"]: entry["cluster"] for entry in config["clusters"]}
        name = contexts[config["current-context"]]["cluster"]
        return name, clusters[name]["server"]
    except (yaml.YAMLError, KeyError, TypeError):
        return None


class StackCluster:
    """The stack's cluster. Without a login it has no objects."""

    def __init__(self, login: Login | None) -> None:
        self._login = login
        self.failure = ""
        """Reason why kubectl or helm could not read an object; empty where none failed."""

    @classmethod
    @contextmanager
    def of(cls, state: Entry) -> Iterator[StackCluster]:
        """The cluster of the stack's own Kubernetes provider, with a login for the whole block. Its
        private kubeconfig is deleted at the end. Without a provider the cluster has no objects."""
        kubeconfig = kubeconfig_in(state)
        with logged_in_to(kubeconfig) if kubeconfig else nullcontext() as login:
            yield cls(login)

    def require_answer(self, stack: str) -> None:
        """PulumiError where the cluster does not answer: a repair would take each of its objects for
        one that does not exist."""
        if self._login is None:
            return
        done = self._called("kubectl", "get", "--raw=/version", "--request-timeout=30s")
        if done.returncode:
            reason = _reason(done)
            raise PulumiError(
                f"the cluster of {stack} does not answer: {reason}\n{WAY_OUT.format(stack=stack)}"
            )

    def object(self, inputs: Entry) -> ExistingObject | None:
        """The object with this kind, namespace and name; None where it does not exist."""
        meta = inputs.get("metadata") or {}
        name, namespace = meta.get("name"), meta.get("namespace")
        if not isinstance(name, str):
            return None
        group, _, version = inputs["apiVersion"].rpartition("/")
        kind = f"{inputs['kind']}.{version}.{group}" if group else inputs["kind"]
        scope = ["--namespace", namespace] if namespace else []
        if not self._run("kubectl", "get", kind, name, *scope, "--output=name"):
            return None
        return ExistingObject(id=f"{namespace}/{name}" if namespace else name)

    def leaving(self, objects: Mapping[str, Entry]) -> list[str]:
        """Keys of the objects that are being deleted, such as a NodePool that waits for its nodes."""
        every = self._shown(objects)
        going = {_identity(it) for it in every if it["metadata"].get("deletionTimestamp")}
        return [key for key, it in objects.items() if _identity(it) in going]

    def gone(self, objects: Mapping[str, Entry]) -> list[str]:
        """Keys of the objects that are not there; none where there is no cluster."""
        if self._login is None:
            return []
        there = set(map(_identity, self._shown(objects)))
        return [key for key, it in objects.items() if _identity(it) not in there]

    def _shown(self, objects: Mapping[str, Entry]) -> list[Entry]:
        """Objects that the cluster has, of these."""
        if not objects:
            return []
        asked = "\n".join(
            json.dumps({word: it[word] for word in NAMING}) for it in objects.values()
        )
        words = ("kubectl", "get", "--filename=-", "--ignore-not-found", "--output=json")
        found = json.loads(self._run(*words, text=asked, partial=True) or "{}")
        return found.get("items", [found] if found else [])

    def release(self, inputs: Entry) -> ExistingObject | Release | None:
        """The release as an object where it is deployed, else as a Release; None where it does not
        exist."""
        name, namespace = inputs["name"], inputs.get("namespace", "default")
        shown = self._run("helm", "status", name, "--namespace", namespace, "--output", "json")
        if not shown:
            return None
        status = json.loads(shown)["info"]["status"]
        if status == "deployed":
            return ExistingObject(id=f"{namespace}/{name}")
        return Release(namespace=namespace, name=name, status=status)

    def end(self, release: Release) -> None:
        """Roll back an upgrade, or uninstall what is not whole, so that Helm takes the next one;
        not a release whose status has changed."""
        inputs = {"name": release.name, "namespace": release.namespace}
        if self.release(inputs) == release:
            where = (release.name, "--namespace", release.namespace, "--no-hooks")
            if release.upgraded:
                self._run("helm", "rollback", *where)
            else:
                self._run("helm", "uninstall", *where, "--wait")
            if isinstance(left := self.release(inputs), Release):
                print(f"not ended: {left}", flush=True)

    def _run(self, *command: str, text: str | None = None, partial: bool = False) -> str:
        """The output of a command; empty where it fails, and where there is no cluster. `partial`: of
        one that fails for some objects, what it prints of the others."""
        if self._login is None:
            return ""
        done = self._called(*command, text=text)
        if done.returncode and not any(word in done.stderr for word in ABSENT):
            self.failure = _reason(done)
        return done.stdout.strip() if partial or done.returncode == 0 else ""

    def _called(self, *command: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        env = self._login() if self._login else None
        try:
            return subprocess.run(command, input=text, capture_output=True, text=True, env=env)
        except FileNotFoundError:
            raise PulumiError(not_on_path(command[0])) from None


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    return (done.stderr.strip() or f"{done.args[0]} failed").splitlines()[-1]


def _identity(it: Entry) -> tuple[str, ...]:
    """Group, kind, namespace and name."""
    meta = it["metadata"]
    group = it["apiVersion"].rpartition("/")[0]
    return (group, it["kind"], meta.get("namespace") or "", meta["name"])
