"""Meeting of nodes with --rdzv_backend=etcd-v2: the first writes into etcd where its hub is, the
others read it. Version 2 of the API, as torch 2.7 (etcd_rendezvous_backend.py)."""

from __future__ import annotations

import json
import socket
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

CONNECT_SECONDS = 60.0
KEYS = "v2/keys/torch/elastic/rendezvous"
"""Folder of torch's own key, which has the run's name."""


def hub(server: str, run: str, own: str) -> str:
    """host:port of the run's hub: `own`, where no other node was first. One that a gang before left is
    taken out."""
    end, key = time.monotonic() + CONNECT_SECONDS, f"http://{server}/{KEYS}/{run}"
    while True:
        try:
            _ask("PUT", f"{key}?prevExist=false", own)
            return own
        except urllib.error.HTTPError as error:
            if error.code != 412:
                raise
            if _answers(other := _or_nothing("GET", key)):
                return other
            _or_nothing("DELETE", f"{key}?prevValue={urllib.parse.quote(other)}")
        except OSError as error:
            if time.monotonic() > end:
                print(f"The connection to etcd has failed: {server}: {error}", file=sys.stderr)
                raise SystemExit(1) from None
        time.sleep(0.2)


def _ask(method: str, url: str, value: str = "") -> str:
    data = urllib.parse.urlencode({"value": value}).encode() if value else None
    with urllib.request.urlopen(
        urllib.request.Request(url, data, method=method), timeout=5
    ) as said:
        return json.load(said)["node"].get("value", "")


def _or_nothing(method: str, url: str) -> str:
    """Answer of etcd; empty where another node was faster and nothing is there any more, or where etcd
    is gone: the next question says so."""
    try:
        return _ask(method, url)
    except OSError:
        return ""


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
    except (OSError, ValueError):
        return False
    return True
