"""Who calls and what they may: keys, role sessions, IAM policies, and the tokens of `aws eks get-token`.

Users may do everything. A role session may do what the role's inline and attached policies allow, by action: wildcards
and NotAction work and a Deny without conditions wins, but conditions and resources are not looked at, so a policy that
is too narrow in those passes here and fails on AWS. Signatures are verified for EKS tokens only, where they alone say
which cluster the token is for.
"""

from __future__ import annotations

import base64
import datetime
import functools
import hmac
import json
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from rehearsal.account import backends
from rehearsal.account.operations import Call, Principal, Refused

_UNKNOWN_KEY = {"ec2": ("AuthFailure", 401), "json": ("UnrecognizedClientException", 400),
                "query": ("InvalidClientTokenId", 403)}
_DENIED = {"ec2": "UnauthorizedOperation", "query": "AccessDenied", "rest-xml": "AccessDenied"}
_ALWAYS = frozenset({"sts:GetCallerIdentity"})
_NAMED_OTHERWISE = {"s3:ListObjectsV2": "s3:ListBucket", "s3:ListObjects": "s3:ListBucket",
                    "s3:HeadBucket": "s3:ListBucket", "s3:HeadObject": "s3:GetObject"}
"""API operation → the action that allows it, where the names differ."""
_SESSION_SECONDS = 6 * 3600
_TOKEN_PREFIX = "k8s-aws-v1."
_TOKEN_SECONDS = 15 * 60

_sessions: dict[tuple[str, str], Any] = {}


def authenticate(call: Call, protocol: str) -> Call:
    """The call with its principal; Refused where the key is nobody's."""
    principal = _principal(call.key)
    if principal is None or (principal.session and call.token != _session_of(call.key).session_token):
        code, status = _UNKNOWN_KEY.get(protocol, _UNKNOWN_KEY["json"])
        raise Refused(code, "The security token included in the request is invalid.", status=status)
    if principal.session and _session_of(call.key).expiration < _now():
        raise Refused("ExpiredToken", "The security token included in the request is expired", status=400)
    return replace(call, principal=principal)


def authorize(call: Call, protocol: str, *also: str) -> None:
    """Refuse what the caller's role does not allow."""
    if not call.principal.session:
        return
    for action in (call.name, *also):
        if not _allowed(call.principal.entity, _NAMED_OTHERWISE.get(action, action)):
            code, status = _DENIED.get(protocol, "AccessDeniedException"), 400 if protocol == "json" else 403
            raise Refused(code, f"User: {call.principal.arn} is not authorized to perform: {action} because no "
                          f"identity-based policy allows the {action} action", status=status)


def role(arn: str) -> Any:
    """moto's role, or None."""
    return next((role for role in backends.iam().get_roles() if role.arn == arn), None)


def trusts(role_arn: str, service: str) -> bool:
    """Whether the role exists and its trust policy lets the service assume it."""
    found = role(role_arn)
    if not found:
        return False
    statements = backends.document(found.assume_role_policy_document).get("Statement", [])
    return any(service in _listed(statement["Principal"].get("Service", ())) for statement in _listed(statements)
               if statement.get("Effect") == "Allow" and isinstance(statement.get("Principal"), dict))


def exists(arn: str) -> bool:
    """Whether the ARN names a role or user of the account."""
    return role(arn) is not None or any(user.arn == arn for user in backends.iam().users.values())


def credentials(role_arn: str, session: str) -> dict[str, str]:
    """Temporary keys of a role, the same ones until they are about to expire."""
    held = _sessions.get((role_arn, session))
    if not held or (held.expiration - _now()).total_seconds() < _SESSION_SECONDS / 2:
        held = backends.sts().assume_role(region_name="us-east-1", role_session_name=session, role_arn=role_arn,
                                          policy="", duration=_SESSION_SECONDS, external_id="")
        _sessions[role_arn, session] = held
    return {"AccessKeyId": held.access_key_id, "SecretAccessKey": held.secret_access_key,
            "SessionToken": held.session_token, "Expiration": held.expiration.isoformat(timespec="seconds") + "Z"}


def from_token(token: str, cluster: str) -> Principal | None:
    """Whose token this is, if it is one for this cluster, rightly signed and not too old."""
    try:
        url = base64.urlsafe_b64decode(token.removeprefix(_TOKEN_PREFIX) + "==").decode()
        query = dict(parse_qsl(urlsplit(url).query, strict_parsing=True))
        key = query["X-Amz-Credential"].split("/")[0]
        signed_at = datetime.datetime.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ")
        right = hmac.compare_digest(_signature(url, query, cluster), query["X-Amz-Signature"])
    except (ValueError, KeyError):
        return None
    fresh = abs((_now() - signed_at).total_seconds()) < _TOKEN_SECONDS
    asks_right = query.get("Action") == "GetCallerIdentity" and token.startswith(_TOKEN_PREFIX)
    return _principal(key) if right and fresh and asks_right else None


def _signature(url: str, query: dict[str, str], cluster: str) -> str:
    """What AWS's authenticator computes: the URL's signature with the cluster's own name in x-k8s-aws-id."""
    key, _, region, service, _ = query["X-Amz-Credential"].split("/")
    scheme, host, path, _, _ = urlsplit(url)
    unsigned = urlencode({name: value for name, value in query.items() if name != "X-Amz-Signature"})
    request = AWSRequest(method="GET", url=urlunsplit((scheme, host, path or "/", unsigned, "")),
                         headers={"x-k8s-aws-id": cluster})
    request.context["timestamp"] = query["X-Amz-Date"]
    auth = SigV4QueryAuth(Credentials(key, _secret(key)), service, region, int(query.get("X-Amz-Expires", 60)))
    return str(auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request))


def _secret(key: str) -> str:
    session = _session_of(key)
    if session:
        return session.secret_access_key
    user = backends.iam().get_user_from_access_key_id(key)
    if not user:
        raise KeyError(key)
    return next(held.secret_access_key for held in user.access_keys if held.access_key_id == key)


def _principal(key: str) -> Principal | None:
    session = _session_of(key)
    if session:
        return Principal(arn=session.arn, entity=session.role_arn, session=session.session_name)
    user = backends.iam().get_user_from_access_key_id(key)
    return Principal(arn=user.arn, entity=user.arn) if user else None


def _session_of(key: str) -> Any:
    return backends.sts().get_assumed_role_from_access_key(key)


def _allowed(role_arn: str, action: str) -> bool:
    found = role(role_arn)
    if action in _ALWAYS or not found:
        return action in _ALWAYS
    texts = [*found.policies.values(), *(version.document for policy in found.managed_policies.values()
             for version in policy.versions if version.is_default)]
    statements = [statement for text in texts for statement in _statements(json.dumps(backends.document(text)))]
    effects = {effect for effect, concerns in ((s["Effect"], concerns(s, action)) for s in statements) if concerns}
    return effects == {"Allow"}


@functools.lru_cache(maxsize=512)
def _statements(text: str) -> list[dict[str, Any]]:
    """A policy's statements, without a Deny that has conditions: what it depends on is not known here."""
    return [statement for statement in _listed(json.loads(text).get("Statement", []))
            if statement["Effect"] == "Allow" or not statement.get("Condition")]


def concerns(statement: dict[str, Any], action: str) -> bool:
    if "NotAction" in statement:
        return not _matches(statement["NotAction"], action)
    return _matches(statement.get("Action", ()), action)


def _matches(patterns: Any, action: str) -> bool:
    return any(fnmatchcase(action.lower(), pattern.lower()) for pattern in _listed(patterns))


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, str | dict) else list(value)


def _now() -> datetime.datetime:
    """UTC without saying so, as moto keeps times."""
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
