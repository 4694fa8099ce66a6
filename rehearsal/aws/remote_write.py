"""Endpoint of a workspace of managed Prometheus: a part of Prometheus's own API, and the form in
which samples arrive there.

Sources: Prometheus, remote-write 1.0 (a protobuf message WriteRequest, compressed); google/snappy,
format_description.txt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from moto.core.model import ServiceModel

_TEXT, _TEXTS = {"type": "string"}, {"type": "list", "member": {"shape": "Text"}}
_DATA = ServiceModel(
    {
        "metadata": {"protocol": "rest-json", "endpointPrefix": "aps", "serviceId": "amp"},
        "operations": {
            "RemoteWrite": {"name": "RemoteWrite", "http": {"method": "POST"}},
            "GetLabels": {
                "name": "GetLabels",
                "http": {"method": "GET"},
                "output": {"shape": "Labels"},
            },
        },
        "shapes": {
            "Labels": {
                "type": "structure",
                "members": {"status": {"shape": "Text"}, "data": {"shape": "Texts"}},
            },
            "Text": _TEXT,
            "Texts": _TEXTS,
        },
    },
    "amp",
)
"""Model of the API at the endpoint of a workspace: Prometheus's own, which botocore lacks."""
_PATHS = {("POST", "remote_write"): "RemoteWrite", ("GET", "label/__name__/values"): "GetLabels"}
_PATH = re.compile(r"/workspaces/(ws-[^/]+)/api/v1/(.+)")


def data_call(method: str, path: str) -> tuple[Any, dict[str, Any]] | None:
    """The model and the parameters of a request to the endpoint of a workspace; None for another
    request."""
    found = _PATH.fullmatch(path)
    name = _PATHS.get((method, found[2])) if found else None
    return (_DATA.operation_model(name), {"workspaceId": found[1]}) if found and name else None


def names(request: bytes) -> Iterator[str]:
    """The names of the metrics in a WriteRequest: the label __name__ of each of its series."""
    for number, series in _fields(request):
        for inner, label in _fields(series) if number == 1 else ():
            texts = dict(_fields(label)) if inner == 1 else {}
            if texts.get(1) == b"__name__":
                yield texts[2].decode()
                break


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and content of the fields of a message that have a length; others are left out."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        match tag & 7:
            case 0:
                _, at = _varint(message, at)
            case 1:
                at += 8
            case 2:
                size, at = _varint(message, at)
                yield tag >> 3, message[at : at + size]
                at += size
            case _:
                at += 4


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at


def uncompressed(data: bytes) -> bytes:
    """Content of data in snappy's block format. ValueError or IndexError for any other data."""
    size, at = _varint(data, 0)
    out = bytearray()
    while at < len(data):
        tag, at = data[at], at + 1
        if tag & 3 == 0:
            length = tag >> 2
            if length >= 60:
                width = length - 59
                length, at = int.from_bytes(data[at : at + width], "little"), at + width
            out += data[at : at + length + 1]
            at += length + 1
            continue
        if tag & 3 == 1:
            length, back, at = (tag >> 2 & 7) + 4, tag >> 5 << 8 | data[at], at + 1
        else:
            width = 2 * (tag & 3) - 2
            length, back = (tag >> 2) + 1, int.from_bytes(data[at : at + width], "little")
            at += width
        start = len(out) - back
        while length:  # what is copied can overlap with what it is copied to
            piece = out[start : start + length]
            out += piece
            length -= len(piece)
    if len(out) != size:
        raise ValueError(f"{len(out)} bytes instead of {size}")
    return bytes(out)
