"""SPDY/3.1, as far as `kubectl exec` and `port-forward` need it: the API server opens streams of one connection,
and both sides send data. Source: the SPDY Protocol, draft 3.1, and moby/spdystream, which the API server uses.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

VERSION = 3
SYN_STREAM, SYN_REPLY, RST_STREAM, PING, GOAWAY = 1, 2, 3, 6, 7
FIN = 1
_WORDS = (
    "options,head,post,put,delete,trace,accept,accept-charset,accept-encoding,accept-language,"
    "accept-ranges,age,allow,authorization,cache-control,connection,content-base,"
    "content-encoding,content-language,content-length,content-location,content-md5,content-range,"
    "content-type,date,etag,expect,expires,from,host,if-match,if-modified-since,if-none-match,"
    "if-range,if-unmodified-since,last-modified,location,max-forwards,pragma,proxy-authenticate,"
    "proxy-authorization,range,referer,retry-after,server,te,trailer,transfer-encoding,upgrade,"
    "user-agent,vary,via,warning,www-authenticate,method,get,status,200 OK,version,HTTP/1.1,url,"
    "public,set-cookie,keep-alive,origin"
)
_REST = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
    "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
    "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00"
    " Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
    "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age="
    "gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY = (
    b"".join(struct.pack(">I", len(word)) + word.encode() for word in _WORDS.split(","))
    + _REST.encode()
)
"""Dictionary with which both sides begin to compress headers."""


@dataclass(frozen=True)
class Opened:
    """The other side has opened a stream."""

    stream: int
    headers: dict[str, str]


@dataclass(frozen=True)
class Data:
    """Bytes of a stream; `last`: the other side sends no more."""

    stream: int
    content: bytes
    last: bool


@dataclass(frozen=True)
class Left:
    """The other side wants no more of the stream; of stream 0: of the connection."""

    stream: int


Event = Opened | Data | Left


class Frames:
    """Bytes to events, and answers to bytes."""

    def __init__(self) -> None:
        self._buffer = b""
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._deflate = zlib.compressobj(zdict=DICTIONARY)
        self.answers: list[bytes] = []
        """To pings; whoever has the connection sends them."""

    def feed(self, content: bytes) -> Iterator[Event]:
        """The events of all frames that are whole now."""
        self._buffer += content
        while len(self._buffer) >= 8:
            first, second = struct.unpack(">II", self._buffer[:8])
            size = 8 + (second & 0xFFFFFF)
            if len(self._buffer) < size:
                return
            body, self._buffer = self._buffer[8:size], self._buffer[size:]
            flags = second >> 24
            if not first >> 31:
                yield Data(first, body, bool(flags & FIN))
                continue
            yield from self._control(first & 0xFFFF, body)

    def _control(self, kind: int, body: bytes) -> Iterator[Event]:
        if kind == SYN_STREAM:
            yield Opened(struct.unpack(">I", body[:4])[0], self._headers(body[10:]))
        elif kind == RST_STREAM:
            yield Left(struct.unpack(">I", body[:4])[0])
        elif kind == GOAWAY:
            yield Left(0)
        elif kind == PING:
            self.answers.append(_control(PING, body))

    def _headers(self, packed: bytes) -> dict[str, str]:
        text = self._inflate.decompress(packed)
        words, at = list[str](), 4
        for _ in range(2 * struct.unpack(">I", text[:4])[0]):
            (length,) = struct.unpack(">I", text[at : at + 4])
            words.append(text[at + 4 : at + 4 + length].decode())
            at += 4 + length
        return dict(zip(words[::2], words[1::2], strict=True))

    def open(self, stream: int, headers: dict[str, str]) -> bytes:
        """Frame that opens a stream."""
        return _control(SYN_STREAM, struct.pack(">IIH", stream, 0, 0) + self._packed(headers))

    def accept(self, stream: int) -> bytes:
        """Frame that answers an opened stream, without headers."""
        return _control(SYN_REPLY, struct.pack(">I", stream) + self._packed({}))

    def _packed(self, headers: dict[str, str]) -> bytes:
        parts = [word.encode() for pair in headers.items() for word in pair]
        text = struct.pack(">I", len(headers)) + b"".join(
            struct.pack(">I", len(part)) + part for part in parts
        )
        return self._deflate.compress(text) + self._deflate.flush(zlib.Z_SYNC_FLUSH)


def data(stream: int, content: bytes, *, last: bool = False) -> bytes:
    """Bytes of a stream."""
    return struct.pack(">II", stream, (FIN if last else 0) << 24 | len(content)) + content


def _control(kind: int, body: bytes) -> bytes:
    return struct.pack(">HHI", 0x8000 | VERSION, kind, len(body)) + body
