"""Reasons why a Helm release that `up` waits for is not ready, asked of the world's cluster."""

from __future__ import annotations

from urllib3.exceptions import HTTPError

from rehearsal import control_plane, paths
from rehearsal.kube import Api, ApiError, Object
from trainyard.catalog.logs.not_ready import WORKLOADS, of_release, why_not_ready

ANSWER_SECONDS = 5
"""Lines of progress wait no longer for an answer."""


def why_it_waits(name: str, namespace: str) -> list[str]:
    """A line for each pod of the release that is not ready; nothing where the API server does not answer."""
    try:
        return lines_of(control_plane.admin(paths.world(), outside=True), name, namespace)
    except (ApiError, HTTPError, OSError):
        return []


def lines_of(api: Api, name: str, namespace: str) -> list[str]:
    """A line for each pod of the release that is not ready. Raises ApiError, OSError, or urllib3's error."""
    space = f"namespaces/{namespace}"
    every = [one for kind in WORKLOADS for one in _items(api, f"/apis/apps/v1/{space}/{kind}")]
    made = of_release(every, name, namespace)
    pods = _items(api, f"/api/v1/{space}/pods") if made else []
    events = _items(api, f"/api/v1/{space}/events") if made else []
    return [line for workload in made for line in why_not_ready(workload, pods, events)]


def _items(api: Api, path: str) -> list[Object]:
    return api.request("GET", path, timeout=ANSWER_SECONDS)["items"]
