"""AWS's five protocols, both ways. The protocol code is moto's, driven by botocore's service models."""

from __future__ import annotations

import functools
import io
import re
import warnings
from dataclasses import dataclass
from typing import Any

from botocore.parsers import create_parser
from moto.core.exceptions import ServiceException
from moto.core.model import OperationModel
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.request import Request, determine_request_protocol
from moto.core.routing import get_service_router
from moto.core.serialize import XFormedAttributePicker, get_serializer_class
from moto.core.utils import get_service_model
from werkzeug.exceptions import NotFound

from rehearsal.account.operations import Call, Fields, NotBuilt, Refused

warnings.filterwarnings("ignore", message=".*does not match an error shape.*")  # most of EC2's are in no model
_CREDENTIAL = re.compile(r"Credential=([A-Z0-9]+)/\d{8}/([a-z0-9-]+)/([a-z0-9-]+)/aws4_request")
SERVICES = {name: name for name in ("arc-zonal-shift", "ec2", "eks", "events", "fsx", "iam", "logs", "pricing", "sqs",
                                    "ssm", "sts")} | {"elasticfilesystem": "efs"}
"""What exists here: the name a service signs with → botocore's."""

Environ = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What goes back over HTTP."""

    status: int
    headers: dict[str, str]
    body: bytes
    error: str = ""
    """Its error code, for the log."""

    @property
    def ok(self) -> bool:
        return self.status < 300


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One request and all that is needed to answer it in its own protocol."""

    call: Call
    operation: OperationModel
    protocol: str

    @property
    def token(self) -> str | None:
        """The request's idempotency token. EFS's is none: it names the file system for ever."""
        names = [] if self.call.service == "efs" else list[str](self.operation.idempotent_members)  # pyright: ignore
        return next((str(self.call.params[name]) for name in names if self.call.params.get(name)), None)

    def answer(self, result: Any) -> Reply:
        """Serialize the fields of the output, or an exception as AWS shows it."""
        made = get_serializer_class(self.call.service, self.protocol)(
            operation_model=self.operation, value_picker=XFormedAttributePicker()).serialize(result)
        body = made["body"]
        return Reply(status=made["status_code"], headers=dict(made["headers"]),
                     body=body.encode() if isinstance(body, str) else body)

    def refusal(self, error: ServiceException) -> Reply:
        """The error in the request's protocol, with a status of its own where it has one."""
        reply = self.answer(error)
        status = getattr(error, "status", None) or reply.status
        return Reply(status=status, headers=reply.headers, body=reply.body, error=error.code)

    def fields(self, reply: Reply) -> Fields:
        """The output that a reply of moto holds."""
        response = {"status_code": reply.status, "headers": _Headers(reply.headers), "body": reply.body}
        parsed = create_parser(self.protocol).parse(response, self.operation.output_shape)
        parsed.pop("ResponseMetadata", None)
        return parsed


def read(environ: Environ, body: bytes) -> Exchange:
    """Understand a request; Refused where it is unsigned or asks for what nobody has heard of."""
    signed = _CREDENTIAL.search(environ.get("HTTP_AUTHORIZATION", ""))
    if not signed:
        raise Refused("MissingAuthenticationToken", "Request is missing Authentication Token", status=403)
    key, region, prefix = signed.groups()
    service = SERVICES.get(prefix)
    if service is None:
        raise NotBuilt(f"the service {prefix}")
    request = Request(environ | {"wsgi.input": io.BytesIO(body)})
    try:
        operation, uri = get_service_router(service).match(request)
    except NotFound as unknown:
        asked = environ.get("HTTP_X_AMZ_TARGET") or f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}"
        raise NotBuilt(f"{prefix}: {asked}") from unknown
    protocol = determine_request_protocol(model(service), request.content_type)
    params = PROTOCOL_PARSERS[protocol](operation, map_type=dict).parse({
        "method": request.method, "values": request.values, "headers": request.headers, "body": body,
        "url_path": request.path, "url_params": uri})
    call = Call(service=service, prefix=prefix, action=str(operation.name), region=region, key=key, params=params,
                token=environ.get("HTTP_X_AMZ_SECURITY_TOKEN"))
    return Exchange(call=call, operation=operation, protocol=protocol)


@functools.cache
def model(service: str) -> Any:
    """botocore's model of a service."""
    return get_service_model(service)


class _Headers(dict[str, str]):
    """Headers as botocore's parsers want them: lower case."""

    def __init__(self, headers: dict[str, str]) -> None:
        super().__init__({name.lower(): value for name, value in headers.items()})

    def get(self, key: str, default: Any = None) -> Any:
        return super().get(key.lower(), default)
