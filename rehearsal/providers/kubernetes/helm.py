"""helm.sh/v3:Release of the kubernetes plugin, through the real helm program.

After helm_release.go of pulumi-kubernetes 4.34.2.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from dataclasses import dataclass
from os import close
from pathlib import Path
from typing import Any

import yaml

from rehearsal import paths
from rehearsal.kube import Object
from rehearsal.providers.call import Call
from rehearsal.providers.kubernetes.kubeconfig import Cluster, in_memory
from rehearsal.providers.plugin import Diff, Found
from rehearsal.providers.problems import Invalid, NotReady, Refused
from rehearsal.providers.wire import UNKNOWN, Properties, changes, top, unknown, words

TYPE = "kubernetes:helm.sh/v3:Release"
TIMEOUT = 300
"""Seconds Helm waits where the program does not say."""
PATIENCE = 15
"""Seconds helm has to write down that it was interrupted."""
INPUTS = words(
    "name namespace chart version repositoryOpts values timeout createNamespace skipCrds"
    " takeOwnership compat skipAwait"
)
"""Any other, and any other repository option than `repo`, is refused by name."""
OUTPUTS = words("resourceNames status manifest")


@dataclass(frozen=True, kw_only=True)
class Releases:
    """The releases of one cluster."""

    cluster: Cluster

    def check(self, call: Call, old: Properties, new: Properties) -> Properties:
        """The version becomes that of the chart itself, which is what a diff compares."""
        inputs = {
            key: value
            for key, value in new.items()
            if key not in OUTPUTS and value not in (None, False, "")
        }
        for option in sorted(
            inputs.keys() - INPUTS | (inputs.get("repositoryOpts") or {}).keys() - {"repo"}
        ):
            raise Invalid(
                option, "this rehearsal's kubernetes plugin does not implement it for Helm releases"
            )
        inputs = {"namespace": "default", "timeout": TIMEOUT} | inputs
        inputs["name"] = inputs.get("name") or old.get("name") or f"{call.name}-{call.suffix(8)}"
        if unknown(inputs):
            return inputs
        try:
            chart = yaml.safe_load(self._helm(call, "show", "chart", *_chart(inputs)))
        except Refused as fault:
            raise Invalid(
                "chart", f"{fault}; check the chart name and repository configuration."
            ) from None
        return inputs | {"version": chart["version"]}

    def diff(self, call: Call, old: Properties, new: Properties, state: Properties) -> Diff:
        """Differences between the program and what is live, and fields that it gives no more."""
        live = {key: _shaped(state.get(key), value) for key, value in new.items()}
        dropped = {path: kind for path, kind in changes(old, new).items() if kind == "delete"}
        found = changes(live, new) | dropped
        found = {path: kind for path, kind in found.items() if top(path) not in call.ignored}
        return Diff(changes=found, replaces=frozenset({"name", "namespace"} & found.keys()))

    def create(self, call: Call, inputs: Properties) -> tuple[str, Properties]:
        if call.preview:
            return "", _foreseen(inputs)
        id_ = f"{inputs['namespace']}/{inputs['name']}"
        return id_, self._changed(call, id_, "install", inputs, "was created, but")

    def update(self, call: Call, old: Properties, new: Properties, state: Properties) -> Properties:
        return _foreseen(new) if call.preview else self._changed(call, call.id, "upgrade", new, "")

    def read(self, call: Call, inputs: Properties, state: Properties) -> Found | None:
        namespace, _, name = call.id.rpartition("/")
        live = self._live({"name": name, "namespace": namespace})
        if not live:
            return None
        if not inputs:
            inputs = {
                "name": name,
                "namespace": namespace,
                "timeout": TIMEOUT,
                "chart": live["chart"],
                "version": live["chartVersion"],
                "values": live["config"],
            }
        return Found(
            inputs,
            _state(inputs | {"values": state.get("values") or inputs.get("values") or {}}, live),
        )

    def delete(self, call: Call, state: Properties) -> None:
        self._helm(
            call,
            "uninstall",
            state["name"],
            "--namespace",
            state["namespace"],
            "--wait",
            *_timeout(state),
        )

    def _changed(self, call: Call, id_: str, verb: str, inputs: Properties, but: str) -> Properties:
        """The release after helm's work; a revision that helm began but did not finish is kept,
        with its fault."""
        if not self.cluster.access:
            raise Refused(
                f"can't {verb} Helm Release with unreachable cluster: {self.cluster.reason}"
            )
        before = self._live(inputs)
        try:
            self._helm(
                call,
                verb,
                inputs["name"],
                *_chart(inputs),
                *_options(verb, inputs),
                values=inputs.get("values") or {},
            )
        except Refused as fault:
            live = self._live(inputs)
            if not live or (before and live["version"] == before["version"]):
                raise
            said = (
                f'Helm release "{id_}" {but} failed to initialize completely. Use Helm CLI to'
                f" investigate: {fault}"
            )
            raise NotReady(id_, _state(inputs, live), inputs, said) from None
        return _state(inputs, self._live(inputs) or {})

    def _live(self, inputs: Properties) -> Object | None:
        """The last revision as helm tells it, or None if there is no such release."""
        where = (inputs["name"], "--namespace", inputs["namespace"], "--output", "json")
        asking = Call(urn="")
        try:
            status = json.loads(self._helm(asking, "status", *where))
            about = json.loads(self._helm(asking, "get", "metadata", *where))
        except Refused as fault:
            if "release: not found" in str(fault):
                return None
            raise
        found = {
            "chart": about["chart"],
            "chartVersion": about["version"],
            "appVersion": about["appVersion"],
        }
        kept = {key: status[key] for key in ("name", "namespace", "version")}
        return (
            kept
            | found
            | {
                "status": status["info"]["status"],
                "config": status.get("config") or {},
                "objects": list(yaml.safe_load_all(status.get("manifest") or "")),
            }
        )

    def _helm(self, call: Call, *arguments: str, values: Properties | None = None) -> str:
        """Helm's answer; it dies with this plugin, and the user's interrupt reaches it."""
        texts = {"--kubeconfig": self.cluster.access.text if self.cluster.access else "{}"}
        if values is not None:
            texts["--values"] = json.dumps(values)
        files = {flag: in_memory(text.encode()) for flag, text in texts.items()}
        options = [part for flag, file in files.items() for part in (flag, f"/proc/self/fd/{file}")]
        program = shutil.which("helm") or str(paths.BIN / "helm")
        command = ["setpriv", "--pdeathsig", "KILL", program, *arguments, *options]
        try:
            with subprocess.Popen(
                command,
                pass_fds=tuple(files.values()),
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            ) as process:
                answer, complaint = _finished(call, process)
        finally:
            for file in files.values():
                close(file)
        if process.returncode:
            said = re.sub(r"^(Error: )?((INSTALLATION|UPGRADE) FAILED: )?", "", complaint.strip())
            raise Refused(said or f"helm ended with {process.returncode}")
        return answer


def _finished(call: Call, process: subprocess.Popen[str]) -> tuple[str, str]:
    """Output of the program, once it is over; interrupted, it may end by itself before it is
    killed."""
    left = PATIENCE * 4
    while True:
        try:
            return process.communicate(timeout=0.25)
        except subprocess.TimeoutExpired:
            if not call.cancelled.is_set():
                continue
        if left == PATIENCE * 4:
            process.send_signal(signal.SIGINT)
        left -= 1
        if left == 0:
            process.kill()


def _chart(inputs: Properties) -> list[str]:
    """Helm's arguments that name the chart."""
    chart = inputs["chart"]
    if Path(chart).exists():
        return [chart]
    given = {
        "--repo": (inputs.get("repositoryOpts") or {}).get("repo"),
        "--version": inputs.get("version"),
    }
    return [chart, *(part for flag, value in given.items() if value for part in (flag, value))]


def _options(verb: str, inputs: Properties) -> list[str]:
    flags = {"takeOwnership": "--take-ownership"}
    flags |= (
        {"createNamespace": "--create-namespace", "skipCrds": "--skip-crds"}
        if verb == "install"
        else {}
    )
    waits = [] if inputs.get("skipAwait") else ["--wait"]
    options = ["--namespace", inputs["namespace"], *waits, *_timeout(inputs)]
    options += [flag for option, flag in flags.items() if inputs.get(option)]
    return options + (["--history-max", "0"] if verb == "upgrade" else [])


def _timeout(inputs: Properties) -> list[str]:
    return ["--timeout", f"{inputs.get('timeout') or TIMEOUT}s"]


def _shaped(live: Any, wanted: Any) -> Any:
    """The live value without what the program does not mention."""
    if isinstance(live, dict) and isinstance(wanted, dict):
        return {key: _shaped(live.get(key), value) for key, value in wanted.items()}
    return live


def _foreseen(inputs: Properties) -> Properties:
    return inputs | {"status": UNKNOWN, "resourceNames": UNKNOWN}


def _state(inputs: Properties, live: Object) -> Properties:
    names: dict[str, list[str]] = {}
    for obj in filter(None, live["objects"]):
        group = obj["apiVersion"].rpartition("/")[0]
        kind = f"{obj['kind']}{group and '.'}{group}/{obj['apiVersion']}"
        space = obj["metadata"].get("namespace")
        names.setdefault(kind, []).append("/".join(filter(None, (space, obj["metadata"]["name"]))))
    status = {
        "name": live["name"],
        "namespace": live["namespace"],
        "revision": live["version"],
        "status": live["status"],
        "chart": live["chart"],
        "version": live["chartVersion"],
        "appVersion": live["appVersion"],
    }
    return inputs | {
        "values": _overlaid(inputs.get("values") or {}, live["config"]),
        "version": live["chartVersion"],
        "status": status,
        "resourceNames": names,
    }


def _overlaid(one: Properties, other: Properties) -> Properties:
    return one | {
        key: (
            _overlaid(one[key], value)
            if isinstance(value, dict) and isinstance(one.get(key), dict)
            else value
        )
        for key, value in other.items()
    }
