"""Questions to the Prometheus of a world."""

from __future__ import annotations

import json
from urllib.parse import quote

from tests.worlds.harness import Harness, Object
from trainyard.objects.metrics.metrics import APP, NAMESPACE, PORT


def asked(rehearsal: Harness, path: str) -> Object:
    """An answer of Prometheus, through the API server."""
    pods = rehearsal.get(f"pods --namespace {NAMESPACE} --selector {APP}=prometheus")["items"]
    at = f"/api/v1/namespaces/{NAMESPACE}/pods/{pods[0]['metadata']['name']}:{PORT}/proxy/api/v1"
    return json.loads(rehearsal.shell(f"kubectl get --raw '{at}/{path}'"))["data"]


def values(rehearsal: Harness, promql: str, label: str = "job") -> dict[str, float]:
    """The value of a query for each value of a label, which by default names the program."""
    found = asked(rehearsal, f"query?query={quote(promql)}")["result"]
    return {each["metric"].get(label, ""): float(each["value"][1]) for each in found}
