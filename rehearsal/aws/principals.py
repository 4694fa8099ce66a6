"""Callers and what they may do: keys, role sessions, IAM policies, and the tokens of `aws eks
get-token`.

Users may do everything. A role session may do what the role's inline and attached policies allow
(policies.py) of what the call asks (permissions.py), where its permissions boundary allows it as
well. Trust policies and queue policies are evaluated by the same rules.
Signatures are verified: signatures.py, and below those of EKS tokens.
"""

from __future__ import annotations

import base64
import datetime
import hmac
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from rehearsal.aws import backends, conditions, signatures
from rehearsal.aws.operations import Call, Fields, Principal, Refused
from rehearsal.aws.policies import Ask, concerns, named, statements, verdict
from rehearsal.aws.wire import Environ

_UNKNOWN_KEY = {"ec2": ("AuthFailure", 401), "query": ("InvalidClientTokenId", 403)}
_DENIED = {"ec2": "UnauthorizedOperation", "query": "AccessDenied"}
_SESSION_SECONDS = 6 * 3600
_TOKEN_PREFIX, _TOKEN_SECONDS = "k8s-aws-v1.", 15 * 60

_sessions: dict[tuple[str, str], Any] = {}


def authenticate(call: Call, environ: Environ, body: bytes) -> Principal:
    """Caller of the request; Refused where the key is nobody's or its secret did not sign it."""
    principal, secret, token = _owner(call.key)
    if principal is None or token != call.token:
        code, status = _UNKNOWN_KEY.get(call.protocol, ("UnrecognizedClientException", 400))
        raise Refused(code, "The security token included in the request is invalid.", status=status)
    signatures.check(call, environ, body, secret, _now())
    return principal


def authorize(call: Call, asks: Iterable[Ask]) -> None:
    """Refuse what the caller's role does not allow. Users may do everything."""
    if not call.principal.session or call.name == "sts:GetCallerIdentity":
        return
    documents = _documents(call.principal.entity)
    for ask in asks:
        said, part = _limited(call.principal.entity, documents, ask)
        if said != "Allow":
            code, status = (
                _DENIED.get(call.protocol, "AccessDeniedException"),
                400 if call.protocol == "json" else 403,
            )
            why = (
                f"with an explicit deny in {part}"
                if said
                else f"because no {part.partition(' ')[2]} allows the {ask.action} action"
            )
            raise Refused(
                code,
                f"User: {call.principal.arn} is not authorized to perform: {ask.action} on"
                f" resource: {ask.resource} {why}",
                status=status,
            )


def may(arn: str, ask: Ask) -> bool:
    """True where IAM allows the call to somebody of the account: to a user everything, to a role
    what its policies say."""
    if role(arn) is None:
        return any(user.arn == arn for user in backends.iam().users.values())
    return _limited(arn, _documents(arn), ask)[0] == "Allow"


def role_of(key: str) -> str:
    """ARN of the role whose key it is; empty where it is no role's."""
    found = _owner(key)[0] if key else None
    return found.entity if found and found.session else ""


def says(arn: str, policy: str | Fields, ask: Ask) -> str:
    """Verdict of the policies of a role and one of the resource together; of the latter, statements
    for everybody or for the role. `arn`: empty of somebody without a role."""
    concerned = [one for one in statements(policy) if {name for _, name in named(one)} & {"*", arn}]
    return _limited(arn, [*_documents(arn), {"Statement": concerned}], ask)[0]


def role(arn: str) -> Any:
    """moto's role, or None."""
    return next((role for role in backends.iam().get_roles() if role.arn == arn), None)


def boundary_of(name: str | None) -> str:
    """ARN of the permissions boundary of a role, by the role's name; empty where it has none."""
    roles = {role.name: role for role in backends.iam().get_roles()} if name else {}
    return (name in roles and roles[name].permissions_boundary_arn) or ""


def trusts(
    role_arn: str,
    *who: str,
    request: conditions.Context | None = None,
    action: str = "sts:AssumeRole",
) -> bool:
    """True where the role exists and its trust policy lets one of them, services or ARNs, assume
    it. `request`: values of condition keys."""
    found = role(role_arn)
    effects = {
        statement.get("Effect")
        for statement in statements(found.assume_role_policy_document if found else {})
        if {name for _, name in named(statement)} & {"*", *who}
        and concerns(statement, action)
        and conditions.holds(statement, request or {})
    }
    return effects == {"Allow"}


def exists(arn: str) -> bool:
    """True where the ARN names a role or user of the account."""
    return role(arn) is not None or any(user.arn == arn for user in backends.iam().users.values())


def credentials(role_arn: str, session: str) -> dict[str, str]:
    """Temporary keys of a role, the same ones until they are about to expire."""
    held = _sessions.get((role_arn, session))
    if not held or (held.expiration - _now()).total_seconds() < _SESSION_SECONDS / 2:
        held = backends.sts().assume_role(
            region_name="us-east-1",
            role_session_name=session,
            role_arn=role_arn,
            policy="",
            duration=_SESSION_SECONDS,
            external_id="",
        )
        _sessions[role_arn, session] = held
    return {
        "AccessKeyId": held.access_key_id,
        "SecretAccessKey": held.secret_access_key,
        "SessionToken": held.session_token,
        "Expiration": held.expiration.isoformat(timespec="seconds") + "Z",
    }


def from_token(token: str, cluster: str) -> Principal | None:
    """Owner of the token, if it is for this cluster, rightly signed and not too old."""
    try:
        url = base64.urlsafe_b64decode(token.removeprefix(_TOKEN_PREFIX) + "==").decode()
        query = dict(parse_qsl(urlsplit(url).query, strict_parsing=True))
        signed_at = datetime.datetime.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ")
        right = hmac.compare_digest(_signature(url, query, cluster), query["X-Amz-Signature"])
    except (ValueError, KeyError):
        return None
    fresh = abs((_now() - signed_at).total_seconds()) < _TOKEN_SECONDS
    asks_right = query.get("Action") == "GetCallerIdentity" and token.startswith(_TOKEN_PREFIX)
    return (
        _owner(query["X-Amz-Credential"].split("/")[0])[0]
        if right and fresh and asks_right
        else None
    )


def _signature(url: str, query: dict[str, str], cluster: str) -> str:
    """Signature that AWS's authenticator computes: the URL's signature with the cluster's own name
    in x-k8s-aws-id."""
    key, _, region, service, _ = query["X-Amz-Credential"].split("/")
    scheme, host, path, _, _ = urlsplit(url)
    unsigned = urlencode(
        {name: value for name, value in query.items() if name != "X-Amz-Signature"}
    )
    request = AWSRequest(
        method="GET",
        url=urlunsplit((scheme, host, path or "/", unsigned, "")),
        headers={"x-k8s-aws-id": cluster},
    )
    request.context["timestamp"] = query["X-Amz-Date"]
    auth = SigV4QueryAuth(
        Credentials(key, _owner(key)[1]), service, region, int(query.get("X-Amz-Expires", 60))
    )
    return str(
        auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
    )


def _owner(key: str) -> tuple[Principal | None, str, str | None]:
    """Owner of a key, its secret, and the token that goes with it."""
    if session := backends.sts().get_assumed_role_from_access_key(key):
        principal = Principal(
            arn=session.arn, entity=session.role_arn, session=session.session_name
        )
        return principal, session.secret_access_key, session.session_token
    if user := backends.iam().get_user_from_access_key_id(key):
        secrets = {held.access_key_id: held.secret_access_key for held in user.access_keys}
        return Principal(arn=user.arn, entity=user.arn), secrets[key], None
    return None, "", None


def _documents(role_arn: str) -> list[str | Fields]:
    """The role's inline policies, and the default versions of those that are attached to it."""
    found = role(role_arn)
    if not found:
        return []
    attached = [one for policy in found.managed_policies.values() for one in _default(policy)]
    return [*found.policies.values(), *attached]


def _limited(role_arn: str, documents: Iterable[str | Fields], ask: Ask) -> tuple[str, str]:
    """Verdict of policies, and the part of IAM that gives it. The role's boundary must allow the
    call too (IAM User Guide, access_policies_boundaries)."""
    said, found = verdict(documents, ask), role(role_arn)
    if said != "Allow" or not found or not found.permissions_boundary_arn:
        return said, "an identity-based policy"
    boundary = backends.iam().managed_policies[found.permissions_boundary_arn]
    return verdict(_default(boundary), ask), "a permissions boundary"


def _default(policy: Any) -> list[str | Fields]:
    """The version of a managed policy that holds."""
    return [version.document for version in policy.versions if version.is_default]


def _now() -> datetime.datetime:
    """UTC without saying so, as moto keeps times."""
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
