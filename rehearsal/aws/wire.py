"""AWS's five protocols, both ways. The protocol code is moto's, driven by botocore's service
models."""

from __future__ import annotations

import io
import json
import re
import warnings
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from botocore.awsrequest import HeadersDict
from botocore.parsers import create_parser
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.request import Request, determine_request_protocol
from moto.core.routing import get_service_router
from moto.core.serialize import XFormedAttributePicker, get_serializer_class
from moto.core.utils import get_service_model
from werkzeug.exceptions import NotFound

from rehearsal.aws.operations import Call, Fields, NotBuilt, Refused
from rehearsal.aws.remote_write import data_call
from rehearsal.aws.service import SERVICES

warnings.filterwarnings(
    "ignore", message=".*does not match an error shape.*"
)  # most of EC2's are in no model
_CREDENTIAL = re.compile(r"Credential=([A-Z0-9]+)/\d{8}/([a-z0-9-]+)/([a-z0-9-]+)/aws4_request")
_ACTION = re.compile(rb"(?:^|&)Action=(\w+)")
"""The operation in a call of the query protocol."""
_IN_XML = ("cloudfront", "route53")
"""Names that services sign with which speak REST with XML, and are not here."""
SIGNED = {
    "elasticfilesystem": "efs",
    "monitoring": "cloudwatch",
    "servicequotas": "service-quotas",
} | {
    name: name
    for name in (
        "arc-zonal-shift",
        "ec2",
        "ecr",
        "eks",
        "events",
        "fsx",
        "iam",
        "kms",
        "logs",
        "pricing",
        "s3",
        "secretsmanager",
        "sns",
        "sqs",
        "ssm",
        "sts",
    )
}
"""The name a service signs with → botocore's, of services without a row of their own."""

Environ = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Reply:
    """Answer that goes back over HTTP."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def ok(self) -> bool:
        return self.status < 300


def read(environ: Environ, body: bytes) -> Call:
    """Understand a request; Refused where it is unsigned or asks for what nobody has heard of."""
    signed = _CREDENTIAL.search(environ.get("HTTP_AUTHORIZATION", ""))
    if not signed:
        raise Refused(
            "MissingAuthenticationToken", "Request is missing Authentication Token", status=403
        )
    prefix = signed[3]
    service = SIGNED.get(prefix) or _registered(prefix)
    if not service:
        raise NotBuilt(f"{prefix}:{_asked(environ, body)}")
    request = Request(environ | {"wsgi.input": io.BytesIO(body)})
    if service == "amp" and (data := data_call(environ["REQUEST_METHOD"], environ["PATH_INFO"])):
        return _call(environ, signed, service, "rest-json", data[0], data[1] | {"body": body})
    try:
        operation, uri = get_service_router(service).match(request)
    except NotFound as unknown:
        raise NotBuilt(f"{prefix}:{_asked(environ, body)}") from unknown
    protocol = determine_request_protocol(get_service_model(service), request.content_type)
    params = PROTOCOL_PARSERS[protocol](operation, map_type=dict).parse(
        {
            "method": request.method,
            "values": request.values,
            "headers": request.headers,
            "body": body,
            "url_path": request.path,
            "url_params": uri,
        }
    )
    return _call(environ, signed, service, protocol, operation, params)


def _registered(prefix: str) -> str | None:
    """The service with a row that signs with this name."""
    return next(
        (one.name for one in SERVICES.values() if prefix == (one.signs_as or one.name)), None
    )


def _asked(environ: Environ, body: bytes) -> str:
    """Name of a call of which no model is known: its operation, or method and path."""
    target = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
    action = _ACTION.search(body)
    path = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO'].rstrip('/')}"
    return target or (action[1].decode() if action else path)


def unread(environ: Environ, body: bytes, error: Any) -> Reply:
    """A refusal of a call that could not be read, in XML where its service speaks XML."""
    signed = _CREDENTIAL.search(environ.get("HTTP_AUTHORIZATION", ""))
    status = getattr(error, "status", None) or 400
    if _ACTION.search(body) or signed and signed[3] in _IN_XML:
        said = f"<Code>{escape(error.code)}</Code><Message>{escape(error.message)}</Message>"
        text = f"<ErrorResponse><Error>{said}</Error></ErrorResponse>"
        return Reply(status=status, headers={"Content-Type": "text/xml"}, body=text.encode())
    text = json.dumps({"__type": error.code, "message": error.message})
    headers = {"Content-Type": "application/json", "X-Amzn-ErrorType": error.code}
    return Reply(status=status, headers=headers, body=text.encode())


def _call(
    environ: Environ,
    signed: re.Match[str],
    service: str,
    protocol: str,
    operation: Any,
    params: Fields,
) -> Call:
    key, region, prefix = signed.groups()
    return Call(
        service=service,
        prefix=prefix,
        operation=operation,
        protocol=protocol,
        region=region,
        key=key,
        params=params,
        token=environ.get("HTTP_X_AMZ_SECURITY_TOKEN"),
    )


def idempotency_token(call: Call) -> str | None:
    """Token that makes a repeated request the same one. EFS's does not count: it names the file
    system for ever."""
    names = [] if call.service == "efs" else call.operation.idempotent_members
    return next((str(call[name]) for name in names if call[name]), None)


def answer(call: Call, result: Any) -> Reply:
    """Serialize the fields of the output, or an exception as AWS shows it, with a status of its own
    if it has one."""
    made = get_serializer_class(call.service, call.protocol)(
        operation_model=call.operation, value_picker=XFormedAttributePicker()
    ).serialize(result)
    status = getattr(result, "status", None) or made["status_code"]
    body = made["body"].encode() if isinstance(made["body"], str) else made["body"]
    return Reply(status=status, headers=dict(made["headers"]), body=body)


def fields(call: Call, reply: Reply) -> Fields:
    """The output that a reply of moto holds."""
    response = {
        "status_code": reply.status,
        "headers": HeadersDict(reply.headers),
        "body": reply.body,
    }
    parsed = create_parser(call.protocol).parse(response, call.operation.output_shape)
    parsed.pop("ResponseMetadata", None)
    return parsed
