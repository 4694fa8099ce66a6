"""Tokens of service accounts, which a node may have signed for the pods that are bound to it."""

from __future__ import annotations

from collections.abc import Sequence

from rehearsal.kube import Api, Object


def signed(api: Api, pod: Object, *, seconds: int = 3600, audiences: Sequence[str] = ()) -> str:
    """A token of the pod's service account, bound to the pod. `api`: with the rights of its node."""
    meta, account = pod["metadata"], pod["spec"]["serviceAccountName"]
    bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
    answer = api.request(
        "POST",
        f"/api/v1/namespaces/{meta['namespace']}/serviceaccounts/{account}/token",
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {
                "expirationSeconds": seconds,
                "boundObjectRef": bound,
                "audiences": [*audiences],
            },
        },
    )
    return answer["status"]["token"]
