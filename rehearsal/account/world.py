"""The /_world/ endpoints: for the rehearsal's own parts and tests, never for people, the program or its plugins."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from rehearsal.account import access, backends, eks, instances, principals
from rehearsal.account.clock import CLOCK
from rehearsal.account.faults import FAULTS
from rehearsal.account.inventory import inventory
from rehearsal.account.operations import LOCK, Fields
from rehearsal.account.wire import Reply

PREFIX = "/_world/"


class _Absent(Exception):
    """404."""


def respond(method: str, path: str, query: str, body: bytes) -> Reply:
    """Answer one request. The query, the body and the <id> in the path are one set of fields to its function."""
    parts = path.removeprefix(PREFIX).split("/")
    name, id_ = (f"{parts[0]}/*/{parts[2]}", parts[1]) if len(parts) == 3 else (parts[0], "")
    given = {key: values[0] for key, values in parse_qs(query).items()} | {"id": id_}
    try:
        with LOCK:
            CLOCK.settle()
            return _reply(200, _ROUTES[method, name]({**given, **(json.loads(body) if body else {})}))
    except _Absent as absent:
        return _reply(404, {"message": f"no {absent}"})
    except (KeyError, TypeError, ValueError) as error:
        return _reply(404 if (method, name) not in _ROUTES else 400, {"message": f"{type(error).__name__}: {error}"})


def _reply(status: int, answer: Any) -> Reply:
    body = json.dumps(answer, default=str).encode()
    return Reply(status=status, headers={"Content-Type": "application/json"}, body=body)


def _token_review(given: Fields) -> Fields:
    user = _user_of_token(given["spec"].get("token", ""))
    return {"apiVersion": given.get("apiVersion", "authentication.k8s.io/v1"), "kind": "TokenReview",
            "status": {"authenticated": bool(user), **({"user": user} if user else {})}}


def _user_of_token(token: str) -> Fields | None:
    for found in eks.CLUSTERS.values():
        principal = principals.from_token(token, found.name)
        if principal:
            instance = instances.find(principal.session or "")
            name = instance.private_dns_name if instance and instance.state == "running" else None
            return access.kubernetes_user(found, principal, name)
    return None


def _instance_credentials(given: Fields) -> Fields:
    """As the instance metadata service gives them, so only while the role lets EC2 assume it."""
    instance = instances.find(given["id"])
    arn = instance.iam_instance_profile["Arn"] if instance and instance.iam_instance_profile else None
    roles = [role.arn for one in backends.iam().get_instance_profiles() if one.arn == arn for role in one.roles]
    if not roles or instance.state != "running" or not principals.trusts(roles[0], "ec2.amazonaws.com"):
        raise _Absent(f"credentials for the instance {given['id']}")
    return principals.credentials(roles[0], instance.id)


def _pod_credentials(given: Fields) -> Fields:
    role = access.pod_role(given["cluster"], given["namespace"], given["service_account"])
    if role is None:
        raise _Absent(f"Pod Identity association for {given['namespace']}/{given['service_account']}")
    return principals.credentials(role, f"eks-{given['cluster']}-{given['service_account']}"[:64])


def _vanish(given: Fields) -> Fields:
    instance = instances.find(given["id"])
    if instance is None:
        raise _Absent(f"instance {given['id']}")
    instances.vanish(instance.region_name, instance)
    return {"id": instance.id, "state": instance.state}


def _add_fault(given: Fields) -> list[Fields]:
    FAULTS.add({name: value for name, value in given.items() if name != "id"})
    return FAULTS.list()


def _clear_faults(_: Fields) -> list[Fields]:
    FAULTS.clear()
    return FAULTS.list()


def _quotas(given: Fields) -> Fields:
    instances.QUOTAS.update({name: int(given.get(name, instances.QUOTAS[name])) for name in instances.QUOTAS})
    return instances.QUOTAS


_ROUTES: dict[tuple[str, str], Callable[[Fields], Any]] = {
    ("GET", "health"): lambda _: {"clusters": {name: found.view["status"] for name, found in eks.CLUSTERS.items()}},
    ("POST", "token-review"): _token_review,
    ("GET", "instances/*/credentials"): _instance_credentials,
    ("POST", "instances/*/vanish"): _vanish,
    ("GET", "pod-identity"): _pod_credentials,
    ("GET", "inventory"): lambda _: list(inventory()),
    ("GET", "faults"): lambda _: FAULTS.list(),
    ("POST", "faults"): _add_fault,
    ("DELETE", "faults"): _clear_faults,
    ("GET", "quotas"): _quotas,
    ("POST", "quotas"): _quotas,
}
