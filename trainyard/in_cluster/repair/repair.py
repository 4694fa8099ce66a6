"""Replaces nodes whose hardware is broken, so that their gangs go on elsewhere.

It runs as one pod, with nothing but Python. Every few seconds it reads nodes, their events, leases and
NodeClaims. A node is sick where the EKS node monitoring agent says so in a condition or an event, or
where its kubelet is silent and dead. It taints a sick node, ends the gangs on it, and deletes its
NodeClaim; Karpenter does the rest. Why: docs/decisions/0018. What is sick: sickness.py. Which silent nodes
are dead: silence.py, and what EC2 says of them: instances.py. Runs that stand still: hangs.py. What it is
told: trainyard/objects/programs/repair.py.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from api_server import NOT_FOUND, Api, ApiError, say, serve
from hangs import HUNG, Hangs, words
from instances import Instances, question
from pods import Object, labels, trains, unfinished
from sickness import Settings, Sick, most, siblings, sickness
from silence import Sight, Silence, silence
from watching import Watching

CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
EVENTS = "/api/v1/namespaces/default/events"
"""Those of nodes, which are in no namespace, are here."""
TERMINATE_AT = "karpenter.sh/nodeclaim-termination-timestamp"
"""Annotation of a NodeClaim: when Karpenter's patience with pods ends."""
UNREACHABLE = "node.kubernetes.io/unreachable"
"""Taint of the node controller on a node that is silent for 50 s. With the effect NoExecute it ends the
pods that do not tolerate it for longer, ours after 30 s."""
STUCK_SECONDS = 120
CONFLICT = 409
HOUR, REMEMBERED = 3600.0, 50
"""Of the history: what the limit looks at, in seconds, and how many older entries stay."""


class Repair:
    """Looks, decides, acts."""

    def __init__(self, api: Api, settings: Settings, instances: Instances) -> None:
        """`instances`: EC2, which knows them."""
        self._api, self._settings, self._instances = api, settings, instances
        self._sight = Sight(settings.blind_seconds, settings.silence.together)
        self._hangs = Hangs(api, settings, unfinished)
        self._memory = f"/api/v1/namespaces/{settings.namespace}/configmaps"
        self._history: list[Object] = []
        self._recalled = False
        """The history is as its ConfigMap has it."""
        self._states: dict[str, tuple[str, str, str]] = {}
        """Sick node → its pool, the reason, and what becomes of it."""
        self._logs = threading.Thread(target=self._again, args=(self.start_anew,), daemon=True)
        self.looked = time.monotonic()

    def run(self) -> None:
        """For ever. Logs are read in a thread of their own: the kubelet of a dead node gives none, which
        takes ten seconds for each, and leases must be looked at meanwhile."""
        self._logs.start()
        self._again(self.look)

    def goes_on(self) -> bool:
        """Whether it looks at leases and at logs."""
        return time.monotonic() - self.looked < STUCK_SECONDS and self._logs.is_alive()

    def _again(self, looks: Callable[[], None]) -> None:
        while True:
            try:
                looks()
            except ApiError as error:
                say(f"the API server: {error}")
            time.sleep(self._settings.look_seconds)

    def look(self) -> None:
        """One step, and the word that it goes on."""
        self.looked = time.monotonic()
        self.step()

    def step(self) -> None:
        """One look at all nodes."""
        nodes = self._nodes()
        leases = self._api.items("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases")
        claims = {
            claim.get("status", {}).get("nodeName"): claim for claim in self._api.items(CLAIMS)
        }
        events = self._api.items(EVENTS, fieldSelector="involvedObject.kind=Node,type=Warning")
        now = time.monotonic()
        self._sight.look(
            {each["metadata"]["name"]: each["spec"].get("renewTime", "") for each in leases}, now
        )
        if not self._recalled:
            self._recall()
        self._states = {}
        silences = self._silences(nodes, claims, now)
        for node in nodes:
            name = node["metadata"]["name"]
            sick = sickness(node, silences.get(name), self._settings, events)
            claim = claims.get(name)
            if claim and not (sick and sick.silent and self._goes_empty(name, claim)):
                pool = labels(node).get(self._settings.pool_label, "")
                size = sum(labels(n).get(self._settings.pool_label) == pool for n in nodes)
                try:
                    state = self._treat(node, claim, sick, pool, size) if sick else self._well(node)
                    self._keep(node, state)
                except ApiError as error:  # the next look tries again; others need not wait for it
                    say(f"{name}: {error}")
                    state = "replacing"
                if sick:
                    self._states[name] = (pool, sick.reason, state)

    def _silences(
        self, nodes: list[Object], claims: Mapping[str, Object], now: float
    ) -> dict[str, Silence]:
        """Name of each silent node → what is to be done about it. EC2 is asked meanwhile."""
        limits, quiet = self._settings.silence, dict[str, float]()
        ids = {n["metadata"]["name"]: _instance(n) for n in nodes}
        for name in ids:
            if (seconds := self._sight.quiet(name, now)) > limits.ask:
                quiet[name] = seconds
        self._instances.ask(filter(None, map(ids.__getitem__, quiet)), now)
        # One that Karpenter ends falls silent by itself.
        stays = {name: seconds for name, seconds in quiet.items() if not _leaves(claims.get(name))}
        together = self._sight.together(stays)
        found = {
            name: silence(
                seconds,
                together=name in together,
                word=self._instances.says(ids[name], now),
                limits=limits,
            )
            for name, seconds in quiet.items()
        }
        return {name: each for name, each in found.items() if each}

    def _goes_empty(self, node: str, claim: Object) -> bool:
        """Whether Karpenter ends the node, as an idle one, and no run is on it: its kubelet falls silent by
        itself, and the node may stay for a quarter of an hour."""
        ours = any(each["claim"] == claim["metadata"]["name"] for each in self._history)
        return _leaves(claim) and not ours and not any(map(trains, self._pods(node)))

    def start_anew(self) -> None:
        """End the pods of runs that stand still: their controllers start them again, which go on from
        their checkpoints. Runs on nodes of others are left: in an existing cluster its owner has some."""
        minutes = self._settings.hung_minutes or 0
        hung = self._hangs.hung(time.monotonic())
        own = self._nodes() if hung else ()
        names = {node["metadata"]["name"] for node in own}
        for (namespace, run), pods in hung.items():
            if not any(pod["spec"].get("nodeName") in names for pod in pods):
                continue
            said = words(run, pods, minutes)
            say(f"{namespace}/{said}")
            # One event for the run, at its first pod.
            events = f"/api/v1/namespaces/{namespace}/events"
            self._api.ask("POST", events, event(pods[0], said, HUNG, "Pod"))
            self._end(pods, self._settings.grace_seconds)

    def _treat(self, node: Object, claim: Object, sick: Sick, pool: str, size: int) -> str:
        """Do what is due, and say what becomes of the node: waiting, held, draining or replacing."""
        name, limit = node["metadata"]["name"], most(size, self._settings)
        started = next((e for e in self._history if e["claim"] == claim["metadata"]["name"]), None)
        leaving = _leaves(claim)
        if sick.waits and not started:
            patience = f"{self._settings.silence.patience:.0f} seconds"
            waits = f"waited for until {patience} have passed, because {sick.waits}"
            self._note(node, f"{sick.reason}: {sick.message}; {waits}", "Silent")
            return "waiting"
        if sick.reason in self._settings.notices:
            return self._leave(node, sick) if leaving else "draining"
        if not started and not leaving and self._replaced(pool) >= limit:
            held = (
                f"{sick.reason}: not replaced, because {limit} nodes of pool {pool} can be replaced"
                " within an hour, and were"
            )
            self._note(node, held, "Held")
            return "held"
        if not started and not leaving:
            started = self._remember(pool, name, claim, sick)
        self._taint(node, sick)
        if (
            sick.reason in self._settings.at_end
            and not leaving
            and any(map(trains, self._pods(name)))
        ):
            self._note(node, f"{sick.reason}: replaced when its pods have ended", "Waits")
            return "draining"
        self._note(node, f"{sick.reason}: {sick.message}; replaced", "Replaced")
        if not leaving:
            self._end(siblings(unfinished(self._api), name), self._settings.grace_seconds)
            self._terminate(claim)
        # By force where nobody is there to end them: Karpenter waits for its pods before it terminates
        # an instance, and until then ranks of a dead kubelet may compute.
        grace = 0 if sick.silent else self._settings.grace_seconds
        self._end([pod for pod in self._pods(name) if trains(pod)], grace)
        return "replacing"

    def _leave(self, node: Object, sick: Sick) -> str:
        """End gangs while their scripts can still save."""
        name = node["metadata"]["name"]
        pods = [pod for pod in self._pods(name) if trains(pod)]
        if self._note(node, f"{sick.reason}: {sick.message}; replaced", "Leaves"):
            pods += siblings(unfinished(self._api), name)
        self._end(pods, None)
        return "replacing"

    def _well(self, node: Object) -> str:
        """Nothing is said any more of a node that was waited for or held, and is well again."""
        key, meta = self._settings.note, node["metadata"]
        tainted = any(taint["key"] == self._settings.taint for taint in _taints(node))
        if key in (meta.get("annotations") or {}) and not tainted:
            say(f"{meta['name']}: is well again")
            self._patch(node, {"metadata": {"annotations": {key: None}}})
        return "well"

    def _keep(self, node: Object, state: str) -> None:
        """The pods of a node stay while it is not replaced: the node controller would end those of a
        silent one, and its kubelet would do it as soon as it speaks again. It writes the taint again, and
        the time of its patience begins anew."""
        old = _taints(node)
        kept = [each for each in old if (each["key"], each["effect"]) != (UNREACHABLE, "NoExecute")]
        if kept == old or state == "replacing":
            return
        version = {"resourceVersion": node["metadata"]["resourceVersion"]}
        try:
            self._patch(node, {"metadata": version, "spec": {"taints": kept}})
        except ApiError as error:
            if error.code != CONFLICT:  # somebody else has written to it: the next look
                raise

    def _replaced(self, pool: str) -> int:
        since = time.time() - HOUR
        return sum(e["pool"] == pool and e["at"] > since for e in self._history)

    # ---- what it writes
    # ----------------------------------------------------------------------------------------------

    def _taint(self, node: Object, sick: Sick) -> None:
        """Nothing new starts on it. The list of taints is replaced as a whole, so only as it was."""
        key, old = self._settings.taint, _taints(node)
        if any(taint["key"] == key for taint in old):
            return
        new = [*old, {"key": key, "value": sick.reason[:63], "effect": "NoSchedule"}]
        version = {"resourceVersion": node["metadata"]["resourceVersion"]}
        self._patch(node, {"metadata": version, "spec": {"taints": new}})

    def _note(self, node: Object, words: str, reason: str) -> bool:
        """For `make status`, in an annotation and an event, once. Whether it was new."""
        key = self._settings.note
        if (node["metadata"].get("annotations") or {}).get(key) == words:
            return False
        name = node["metadata"]["name"]
        say(f"{name}: {words}")
        self._patch(node, {"metadata": {"annotations": {key: words}}})
        self._api.ask("POST", EVENTS, event(node, words, reason))
        return True

    def _patch(self, node: Object, change: Object) -> None:
        path = f"/api/v1/nodes/{node['metadata']['name']}"
        self._api.ask("PATCH", path, change, "merge-patch+json")

    def _nodes(self) -> list[Object]:
        return self._api.items("/api/v1/nodes", labelSelector=self._settings.nodes_label)

    def _pods(self, node: str) -> list[Object]:
        return [pod for pod in unfinished(self._api) if pod["spec"].get("nodeName") == node]

    def _end(self, pods: list[Object], grace: int | None) -> None:
        """Pods that end already are not told again, unless by force. `grace`: seconds; None: the
        pod's own."""
        for pod in pods:
            meta = pod["metadata"]
            if meta.get("deletionTimestamp") and grace != 0:
                continue
            path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
            only: Object = {"preconditions": {"uid": meta["uid"]}}
            only |= {} if grace is None else {"gracePeriodSeconds": grace}
            self._unless_gone("DELETE", path, only)
            say(f"ended pod {meta['namespace']}/{meta['name']}")

    def _terminate(self, claim: Object) -> None:
        """The two writes of Karpenter's own node repair (pkg/controllers/node/health)."""
        path = f"{CLAIMS}/{claim['metadata']['name']}"
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._unless_gone(
            "PATCH", path, {"metadata": {"annotations": {TERMINATE_AT: now}}}, "merge-patch+json"
        )
        self._unless_gone("DELETE", path, {"preconditions": {"uid": claim["metadata"]["uid"]}})

    def _unless_gone(self, method: str, path: str, body: Object, kind: str = "json") -> None:
        try:
            self._api.ask(method, path, body, kind)
        except ApiError as error:
            if error.code not in (NOT_FOUND, CONFLICT):
                raise

    # ---- what it remembers
    # ----------------------------------------------------------------------------------------------

    def _recall(self) -> None:
        try:
            kept = self._api.ask("GET", f"{self._memory}/history")
            self._history = json.loads(kept["data"]["history"])
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise
            self._history = []
        self._recalled = True

    def _remember(self, pool: str, node: str, claim: Object, sick: Sick) -> Object:
        """Before it acts: a limit that forgets what was done would be none."""
        entry = {
            "at": round(time.time()),
            "pool": pool,
            "node": node,
            "claim": claim["metadata"]["name"],
            "reason": sick.reason,
        }
        history, self._recalled = [*self._history, entry], False
        young = sum(each["at"] > time.time() - HOUR for each in history)
        history = history[-max(young, REMEMBERED) :]
        new: Object = {"metadata": {"name": "history"}, "data": {"history": json.dumps(history)}}
        try:
            self._api.ask("PATCH", f"{self._memory}/history", new, "merge-patch+json")
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise
            self._api.ask("POST", self._memory, new)
        self._history, self._recalled = history, True
        return entry

    def metrics(self) -> str:
        """As Prometheus reads it."""
        lines = ["# TYPE trainyard_repair_sick gauge"]
        for node, (pool, reason, state) in sorted(self._states.items()):
            named = f'sick_node="{node}",sick_pool="{pool}",reason="{reason}",state="{state}"'
            lines.append(f"trainyard_repair_sick{{{named}}} 1")
        lines.append("# TYPE trainyard_repair_replaced gauge")
        lines.append(f"trainyard_repair_replaced {len(self._history)}")
        return "\n".join(lines) + "\n"


def _instance(node: Object) -> str:
    """Id of its instance; empty where it says none."""
    return (node["spec"].get("providerID") or "").rpartition("/")[2]


def _leaves(claim: Object | None) -> bool:
    """Whether Karpenter ends the node."""
    return bool(claim and claim["metadata"].get("deletionTimestamp"))


def _taints(node: Object) -> list[Object]:
    return node["spec"].get("taints") or []


def event(obj: Object, words: str, reason: str, kind: str = "Node") -> Object:
    """An event of a node or a pod, which `kubectl describe` shows."""
    meta, now = obj["metadata"], time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    name, space = meta["name"], meta.get("namespace", "")
    about = {"apiVersion": "v1", "kind": kind, "name": name, "uid": meta["uid"]}
    about |= {"namespace": space} if space else {}
    return {
        "metadata": {"generateName": f"{name}.", "namespace": space or "default"},
        "involvedObject": about,
        "type": "Warning",
        "reason": f"Repair{reason}",
        "message": words[:1000],
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "source": {"component": "trainyard-repair"},
    }


if __name__ == "__main__":
    told = Settings.read(Path(sys.argv[1]))
    looking = Repair(Watching(), told, Instances(question(told.region)))
    serve(
        int(sys.argv[2]),
        looking.goes_on,
        looking.metrics,
    )
    looking.run()
