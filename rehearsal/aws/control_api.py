"""The /_world/ endpoints: for the rehearsal's own parts and tests, never for people, pods, the
program or its plugins. They give away every role's keys, so callers show the world's secret."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qs

from rehearsal import paths
from rehearsal.aws import (
    access,
    backends,
    backups,
    capacity,
    eks,
    instance_status,
    instances,
    notices,
    parameters,
    principals,
    quotas,
    reach,
    sharing,
    storage,
)
from rehearsal.aws.clock import CLOCK
from rehearsal.aws.efs import client_actions
from rehearsal.aws.faults import FAULTS, Fault
from rehearsal.aws.installed import SERVICES
from rehearsal.aws.operations import LOCK, Fields, Refused, refuse
from rehearsal.aws.service import Row
from rehearsal.aws.wire import Environ, Reply

PREFIX = "/_world/"
OPEN = "token-review"
"""Answered without the secret, which an API server does not send over HTTP (client-go,
clientcmd.ClientConfig: credentials for TLS only). It tells whose token a caller has already."""


def respond(environ: Environ, body: bytes) -> Reply:
    """Answer one request, or say 403 to a caller without the world's secret. The query, the body
    and the <id> in the path are one set of fields to its function."""
    method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
    if path != PREFIX + OPEN and not _of_the_world(environ):
        return _reply(403, {"message": "/_world/ is for the rehearsal's own parts"})
    name, *rest = path.removeprefix(PREFIX).split("/")
    name, path_id = (f"{name}/*/{rest[1]}", {"id": rest[0]}) if len(rest) == 2 else (name, {})
    given = {key: values[0] for key, values in parse_qs(environ["QUERY_STRING"]).items()} | path_id
    try:
        with LOCK:
            CLOCK.settle()
            status, answer = 200, _ROUTES[method, name](given | (json.loads(body) if body else {}))
    except Refused as absent:
        status, answer = 404, {"message": absent.message}
    except (KeyError, TypeError, ValueError) as error:
        status, answer = (
            404 if (method, name) not in _ROUTES else 400,
            {"message": f"{type(error).__name__}: {error}"},
        )
    return _reply(status, answer)


def _of_the_world(environ: Environ) -> bool:
    """True where the caller shows the world's secret."""
    shown = environ.get("HTTP_AUTHORIZATION", "").encode()
    return hmac.compare_digest(shown, f"Bearer {paths.world().world_secret}".encode())


def _reply(status: int, answer: Any) -> Reply:
    return Reply(
        status=status,
        headers={"Content-Type": "application/json"},
        body=json.dumps(answer, default=str).encode(),
    )


def _token_review(given: Fields) -> Fields:
    user = next(
        filter(None, (_user(given["spec"].get("token", ""), one) for one in eks.CLUSTERS.values())),
        None,
    )
    return {
        "apiVersion": given.get("apiVersion", "authentication.k8s.io/v1"),
        "kind": "TokenReview",
        "status": {"authenticated": bool(user), **({"user": user} if user else {})},
    }


def _user(token: str, found: eks.Cluster) -> Fields | None:
    principal = principals.from_token(token, found.name)
    instance = instances.find(principal.session or "") if principal else None
    name = instance.private_dns_name if instance and instance.state == "running" else None
    return access.kubernetes_user(found, principal, name) if principal else None


def _instance_credentials(given: Fields) -> Fields:
    """As the instance metadata service gives them, so only while the role lets EC2 assume it."""
    instance = instances.find(given["id"])
    arn = (
        instance.iam_instance_profile["Arn"] if instance and instance.iam_instance_profile else None
    )
    roles = [
        role.arn
        for one in backends.iam().get_instance_profiles()
        if one.arn == arn
        for role in one.roles
    ]
    lent = (
        roles and instance.state == "running" and principals.trusts(roles[0], "ec2.amazonaws.com")
    )
    refuse(not lent, "NotFound", f"no credentials for the instance {given['id']}")
    return principals.credentials(roles[0], instance.id)


def _pod_credentials(given: Fields) -> Fields:
    role = access.pod_role(given["cluster"], given["namespace"], given["service_account"])
    refuse(
        not role,
        "NotFound",
        f"no Pod Identity association for {given['namespace']}/{given['service_account']}",
    )
    return principals.credentials(role, f"eks-{given['cluster']}-{given['service_account']}"[:64])


def _efs_mount(given: Fields) -> Fields:
    """Actions that a client of a file system may do, by the key that it signs with, if any."""
    role, tls = principals.role_of(given.get("key", "")), given["tls"] == "true"
    return {"allowed": client_actions(given["region"], given["id"], role, tls=tls)}


def _reach(given: Fields) -> Fields:
    instance = instances.find(given["id"])
    refuse(not instance, "NotFound", f"no instance {given['id']}")
    if "from" in given:
        return {"blocked": reach.from_cluster(instance, given["from"], int(given["port"]))}
    return {"blocked": reach.from_instance(instance, given["to"])}


def _vanish(given: Fields) -> Fields:
    instance = instances.find(given["id"])
    refuse(not instance, "NotFound", f"no instance {given['id']}")
    instances.vanish(instance)
    return {"id": instance.id, "state": instance.state}


def _dead(given: Fields) -> None:
    """The machine of an instance has died, and EC2 does not know it yet."""
    instance = instances.find(given["id"])
    refuse(not instance, "NotFound", f"no instance {given['id']}")
    instance_status.died(instance)


def _notice(given: Fields) -> None:
    """AWS announces something of an instance."""
    instance = instances.find(given["id"])
    refuse(not instance, "NotFound", f"no instance {given['id']}")
    notices.send(instance, given["notice"])


def _fault(given: Fields) -> None:
    """Something goes wrong, or the account is like this: `reserve` creates a reservation, `quota`
    sets a quota, `share` gives a VPC to another account, `api-away` ends the API server for a while."""
    details = {name: value for name, value in given.items() if name != "kind"}
    if given.get("kind") == "quota":
        refuse(
            details["code"] not in quotas.QUOTAS,
            "NotFound",
            f"no quota but {', '.join(quotas.QUOTAS)}",
        )
        quotas.QUOTAS[details["code"]] = float(details["value"])
    elif given.get("kind") == "share":
        sharing.share(**details)
    elif given.get("kind") == "reserve":
        made = capacity.create_reservation(**details)
        CLOCK.at(made.gives_until, lambda: instances.reclaim(made))
    elif given.get("kind") == "api-away":
        for found in eks.CLUSTERS.values():
            found.plane.go_away(float(details["seconds"]))
    else:
        FAULTS.append(Fault(**given))


def _inventory(_: Fields) -> list[Fields]:
    """Everything that costs money or is in somebody's way, except what an account has from the
    start."""
    rows = []
    for type_, id_, name, state, tags in (
        *_clusters(),
        *_identities(),
        *_of_ec2(),
        *_of_stores(),
        *_of_messages(),
        *_of_logs(),
    ):
        pairs = (
            tags
            if isinstance(tags, dict)
            else {
                tag.get("Key", tag.get("key")): tag.get("Value", tag.get("value")) for tag in tags
            }
        )
        rows.append(
            {
                "type": type_,
                "id": id_,
                "name": name or pairs.get("Name", ""),
                "state": str(state),
                "tags": pairs,
            }
        )
    return rows


def _clusters() -> Iterator[Row]:
    for found in eks.CLUSTERS.values():
        yield "eks-cluster", found.view["arn"], found.name, found.view["status"], found.view["tags"]
        for kind, parts in found.parts.items():
            yield from (
                (
                    f"eks-{eks.KINDS[kind][2]}",
                    f"{found.name}/{key}",
                    key,
                    one.view.get("status", ""),
                    one.view["tags"],
                )
                for key, one in parts.items()
            )


def _identities() -> Iterator[Row]:
    iam = backends.iam()
    own = {
        "role": [
            role for role in iam.get_roles() if not role.path.startswith("/aws-service-role/")
        ],
        "instance-profile": iam.get_instance_profiles(),
    }
    for kind, things in own.items():
        yield from (
            (f"iam-{kind}", one.arn, one.name, "", getattr(one, "tags", ())) for one in things
        )


def _of_ec2() -> Iterator[Row]:
    for ec2 in backends.used("ec2"):
        for kind, things in _things(ec2).items():
            yield from (
                (
                    kind,
                    one.allocation_id if kind == "elastic-ip" else one.id,
                    getattr(one, "name", "") or getattr(one, "description", ""),
                    getattr(one, "state", getattr(one, "status", "")),
                    one.get_tags(),
                )
                for one in things
            )


def _things(ec2: Any) -> dict[str, Iterable[Any]]:
    own = [vpc.id for vpc in ec2.vpcs.values() if not vpc.is_default]
    return {
        "vpc": [ec2.vpcs[id_] for id_ in own],
        "subnet": [
            one for zone in ec2.subnets.values() for one in zone.values() if one.vpc_id in own
        ],
        "internet-gateway": ec2.internet_gateways.values(),
        "vpc-flow-log": ec2.flow_logs.values(),
        "vpc-endpoint": ec2.vpc_end_points.values(),
        "nat-gateway": [one for one in ec2.nat_gateways.values() if one.state != "deleted"],
        "route-table": [
            one
            for one in ec2.route_tables.values()
            if one.vpc_id in own and not one.main_association_id
        ],
        "security-group": [
            one for id_ in own for one in ec2.groups.get(id_, {}).values() if not one.is_default
        ],
        "network-interface": ec2.enis.values(),
        "volume": ec2.volumes.values(),
        "elastic-ip": ec2.addresses,
        "instance": [one for one in ec2.all_instances() if one.state != "terminated"],
        "launch-template": ec2.launch_templates.values(),
        "placement-group": capacity.groups(ec2).values(),
    }


def _of_stores() -> Iterator[Row]:
    for ecr in backends.used("ecr"):
        yield from (
            ("ecr-repository", one.name, "", "", ecr.tagger.get_tag_dict_for_resource(one.arn))
            for one in ecr.repositories.values()
        )
    yield from (
        ("fsx-file-system", id_, "", view["Lifecycle"], view["Tags"])
        for id_, view in storage.FILE_SYSTEMS.items()
    )
    yield from (
        ("fsx-association", id_, "", view["Lifecycle"], view["Tags"])
        for id_, view in storage.ASSOCIATIONS.items()
    )
    yield from (
        ("fsx-backup", id_, view["FileSystem"]["FileSystemId"], view["Lifecycle"], view["Tags"])
        for id_, view in backups.BACKUPS.items()
    )
    for s3 in backends.used("s3"):
        yield from (
            ("s3-bucket", one.name, one.name, "", s3.tagger.get_tag_dict_for_resource(one.arn))
            for one in s3.buckets.values()
        )
    for efs in backends.used("efs"):
        yield from (
            ("efs-file-system", id_, "", one.life_cycle_state, efs.list_tags_for_resource(id_))
            for id_, one in efs.file_systems_by_id.items()
        )
        yield from (
            ("efs-mount-target", id_, one.file_system_id, one.life_cycle_state, ())
            for id_, one in efs.mount_targets_by_id.items()
        )
        yield from (
            ("efs-access-point", id_, one.file_system_id, "", efs.list_tags_for_resource(id_))
            for id_, one in efs.access_points.items()
        )


def _of_logs() -> Iterator[Row]:
    for logs in backends.used("logs"):
        yield from (
            ("log-group", one.arn, one.name, "", logs.list_tags_for_resource(one.arn))
            for one in logs.groups.values()
        )


def _of_messages() -> Iterator[Row]:
    for sqs in backends.used("sqs"):
        yield from (
            ("sqs-queue", one.queue_arn, name, "", one.tags) for name, one in sqs.queues.items()
        )
    for service in SERVICES.values():
        yield from service.things()
    for sns in backends.used("sns"):
        yield from (
            ("sns-topic", one.arn, one.name, "", sns.list_tags_for_resource(one.arn))
            for one in sns.topics.values()
        )
        yield from (
            ("sns-subscription", one.arn, one.endpoint, "", ())
            for one in sns.subscriptions.values()
        )
    yield from (
        ("ssm-parameter", name, name, "", one.tags)
        for (_, name), one in parameters.PARAMETERS.items()
    )
    for events in backends.used("events"):
        yield from (
            (
                "event-rule",
                one.arn,
                one.name,
                one.state,
                events.tagger.get_tag_dict_for_resource(one.arn),
            )
            for one in events.event_buses["default"].rules.values()
        )


_ROUTES: dict[tuple[str, str], Callable[[Fields], Any]] = {
    ("GET", "health"): lambda _: {
        "clusters": {name: found.view["status"] for name, found in eks.CLUSTERS.items()}
    },
    ("POST", "token-review"): _token_review,
    ("GET", "instances/*/credentials"): _instance_credentials,
    ("GET", "instances/*/reach"): _reach,
    ("POST", "instances/*/vanish"): _vanish,
    ("POST", "instances/*/notice"): _notice,
    ("POST", "instances/*/dead"): _dead,
    ("GET", "pod-identity"): _pod_credentials,
    ("GET", "file-systems/*/mount"): _efs_mount,
    ("GET", "inventory"): _inventory,
    ("GET", "faults"): lambda _: list(map(asdict, FAULTS)),
    ("POST", "faults"): _fault,
    ("DELETE", "faults"): lambda _: FAULTS.clear(),
}
