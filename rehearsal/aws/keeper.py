"""Keeper of EKS inside a cluster: it installs add-ons' workloads, and sees which instances of node
groups have joined.

A thread of its own, because the account must not hold its lock while it asks the API server, whose
token webhook may be waiting for that lock.
"""

from __future__ import annotations

import logging
import threading

import urllib3

from rehearsal import control_plane, kube, paths
from rehearsal.aws import addons, eks, instances, nodegroups
from rehearsal.aws.addons import Addon
from rehearsal.aws.eks import Cluster
from rehearsal.aws.operations import LOCK, Fields

_TICK = 0.5
_LOG = logging.getLogger(__name__)


def run(stop: threading.Event) -> None:
    """Keep every ACTIVE cluster as its add-ons and node groups say, until told to stop."""
    api: kube.Api | None = None
    while not stop.wait(_TICK):
        for cluster in list(eks.CLUSTERS.values()):
            api = (api or control_plane.admin(paths.world())) if cluster.active else None
            try:
                if api:
                    keep(cluster, api)
            except (OSError, urllib3.exceptions.HTTPError, kube.ApiError) as error:
                _LOG.warning("cluster %s: %s", cluster.name, error)


def keep(cluster: Cluster, api: kube.Api) -> None:
    """One round."""
    for addon in list(cluster.parts["Addon"].values()):
        _keep_addon(addon, api)
    if cluster.parts["Nodegroup"]:
        nodes = api.request("GET", "/api/v1/nodes")["items"]
        joined = {
            node["spec"].get("providerID", "").rpartition("/")[2]
            for node in nodes
            if any(
                (one["type"], one["status"]) == ("Ready", "True")
                for one in node.get("status", {}).get("conditions", ())
            )
        }
        with LOCK:
            for group in cluster.parts["Nodegroup"].values():
                if group.view["status"] in ("CREATING", "ACTIVE", "UPDATING"):
                    nodegroups.reconcile(group)
                alive = {one.id for one in group.alive()}
                group.ready = len(alive) >= group.size() and alive <= joined
        for group in cluster.parts["Nodegroup"].values():
            if group.ready and (leaving := group.leaving()) and _drained(leaving.id, nodes, api):
                with LOCK:
                    instances.terminate(leaving)
                    group.ready = False


def _drained(instance_id: str, nodes: list[Fields], api: kube.Api) -> bool:
    """True where a node has no pod left but those of DaemonSets. Until then it is cordoned, and its
    pods are evicted as their disruption budgets allow."""
    node = next(
        (one for one in nodes if one["spec"].get("providerID", "").endswith(f"/{instance_id}")),
        None,
    )
    if node is None:
        return True
    name = node["metadata"]["name"]
    if not node["spec"].get("unschedulable"):
        api.request(
            "PATCH",
            f"/api/v1/nodes/{name}",
            {"spec": {"unschedulable": True}},
            content_type="application/merge-patch+json",
        )
    pods = api.request("GET", f"/api/v1/pods?fieldSelector=spec.nodeName={name}")["items"]
    left = [pod for pod in pods if not _stays(pod)]
    for pod in left:
        _evict(pod, api)
    return not left


def _stays(pod: Fields) -> bool:
    owners = pod["metadata"].get("ownerReferences", ())
    over = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return over or any(owner["kind"] == "DaemonSet" for owner in owners)


def _evict(pod: Fields, api: kube.Api) -> None:
    meta = pod["metadata"]
    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/eviction"
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
    }
    try:
        api.request("POST", path, eviction)
    except kube.ApiError as error:
        if error.code not in (404, 429):  # gone already; its budget does not allow it yet
            raise


def _keep_addon(addon: Addon, api: kube.Api) -> None:
    objects = addon.objects()
    if addon.view["status"] == "DELETING":
        for one in reversed(objects if addon.applied else []):
            api.delete(one)
        addon.applied = False
        return
    if not addon.applied and not _install(addon, objects, api):
        return
    available = all(_available(api.get(one)) for one in objects if one["apiVersion"] == "apps/v1")
    with LOCK:
        addon.available = available
        if addon.view["status"] in ("ACTIVE", "DEGRADED"):
            addons.show_health(addon)


def _install(addon: Addon, objects: list[Fields], api: kube.Api) -> bool:
    """True where the add-on is in the cluster now. One that may not overwrite an object fails."""
    taken = [one for one in objects if one["apiVersion"] == "apps/v1" and api.get(one)]
    if taken and addon.view["status"] == "CREATING" and not addon.overwrites:
        with LOCK:
            addons.conflict(addon, taken[0]["metadata"]["name"])
    if addon.view["status"] == "CREATE_FAILED":
        return False
    if ignored := addon.view["configurationValues"]:
        _LOG.warning("add-on %s: the rehearsal ignores %s", addon.view["addonName"], ignored)
    for one in objects:
        api.apply(one, manager="eks")
    addon.applied = True
    return True


def _available(live: Fields | None) -> bool:
    status = live.get("status", {}) if live else {}
    if live is None or status.get("observedGeneration", 0) < live["metadata"].get("generation", 0):
        return False
    if live["kind"] == "DaemonSet":
        return status.get("numberAvailable", 0) >= status.get("desiredNumberScheduled", 0)
    return status.get("availableReplicas", 0) >= live["spec"].get("replicas", 1)
