"""A small Kubernetes client: what account, nodes and plugin need, at a tenth of the official one's
memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import urllib3

Object = dict[str, Any]
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


class ApiError(RuntimeError):
    """Error: the API server answered with a problem instead of doing what was asked."""

    def __init__(self, code: int, status: Object) -> None:
        self.code, self.status, self.reason = code, status, status.get("reason", "")
        super().__init__(status.get("message") or f"HTTP {code}")


class Api:
    """One identity at one API server. `token` is called for each request, so that it may expire."""

    def __init__(
        self,
        server: str,
        *,
        ca_file: str | None = None,
        token: Callable[[], str] | None = None,
        cert_file: str | None = None,
        key_file: str | None = None,
        server_name: str | None = None,
        proxy_url: str | None = None,
    ) -> None:
        """`server_name`: whose certificate the server must show, where that is not its host."""
        self.server, self._token = server, token
        settings: dict[str, Any] = {
            "maxsize": 32,
            "ca_certs": ca_file,
            "cert_file": cert_file,
            "key_file": key_file,
            "cert_reqs": "CERT_REQUIRED" if ca_file else "CERT_NONE",
            "retries": False,
        }
        if server_name:
            settings |= {"server_hostname": server_name, "assert_hostname": server_name}
        self._pool = (
            urllib3.ProxyManager(proxy_url, **settings)
            if proxy_url
            else urllib3.PoolManager(**settings)
        )
        self._kinds: dict[tuple[str, str], tuple[str, bool]] = {}
        self._lock = threading.Lock()

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        timeout: float = 60,
    ) -> Object:
        """The parsed answer; ApiError for anything from 300 up, OSError or urllib3's error where
        nobody answers."""
        answer = self._pool.request(
            method,
            self.server + path,
            body=None if body is None else json.dumps(body),
            headers=self._headers(content_type),
            timeout=timeout,
        )
        parsed = _parsed(answer.data)
        if answer.status >= 300:
            raise ApiError(answer.status, parsed)
        return parsed

    def text(self, path: str) -> str:
        """An answer that is not JSON, such as /readyz or a log."""
        answer = self._pool.request(
            "GET", self.server + path, headers=self._headers("text/plain"), timeout=60
        )
        if answer.status >= 300:
            raise ApiError(answer.status, _parsed(answer.data))
        return answer.data.decode(errors="replace")

    def watch(self, path: str, *, timeout_seconds: int = 300) -> Iterator[Object]:
        """Events of a collection path until the server ends the watch."""
        joined = f"{path}{'&' if '?' in path else '?'}watch=1&timeoutSeconds={timeout_seconds}"
        answer = self._pool.request(
            "GET",
            self.server + joined,
            headers=self._headers("application/json"),
            preload_content=False,
            timeout=urllib3.Timeout(connect=5, read=timeout_seconds + 10),
        )
        rest = b""
        try:
            for chunk in answer.stream(65536):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (json.loads(line) for line in lines if line.strip())
        finally:
            answer.close()

    def resource(self, api_version: str, kind: str) -> tuple[str, bool]:
        """(plural, namespaced) of a kind; ApiError 404 where the server does not serve it."""
        key = (api_version, kind)
        if key not in self._kinds:
            found = self.request("GET", group_path(api_version)).get("resources", [])
            with self._lock:
                self._kinds.update(
                    {
                        (api_version, r["kind"]): (r["name"], r["namespaced"])
                        for r in found
                        if "/" not in r["name"]
                    }
                )
        if key not in self._kinds:
            unknown = f'no matches for kind "{kind}" in version "{api_version}"'
            raise ApiError(404, {"message": unknown, "reason": "NoMatch"})
        return self._kinds[key]

    def path(self, obj: Object, *, collection: bool = False) -> str:
        """URL path of an object, or of the collection it belongs to."""
        plural, namespaced = self.resource(obj["apiVersion"], obj["kind"])
        meta = obj.get("metadata", {})
        space = f"/namespaces/{meta.get('namespace') or 'default'}" if namespaced else ""
        return f"{group_path(obj['apiVersion'])}{space}/{plural}" + (
            "" if collection else f"/{meta['name']}"
        )

    def get(self, obj: Object) -> Object | None:
        """The live object, or None where it does not exist."""
        return absent_is_none(lambda: self.request("GET", self.path(obj)))

    def apply(
        self, obj: Object, *, manager: str, force: bool = True, dry_run: bool = False
    ) -> Object:
        """Server-side apply."""
        query = f"?fieldManager={manager}&force={str(force).lower()}" + (
            "&dryRun=All" if dry_run else ""
        )
        return self.request("PATCH", self.path(obj) + query, obj, content_type=APPLY)

    def delete(self, obj: Object, *, policy: str = "Background") -> None:
        """Ask for deletion; a missing object is fine."""
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy}
        absent_is_none(lambda: self.request("DELETE", self.path(obj), options))

    def _headers(self, content_type: str) -> dict[str, str]:
        headers = {"Content-Type": content_type, "Accept": "application/json"}
        return headers | {"Authorization": f"Bearer {self._token()}"} if self._token else headers


def absent_is_none(call: Callable[[], Object]) -> Object | None:
    """The call's answer, or None where the API server says 404."""
    try:
        return call()
    except ApiError as error:
        if error.code == 404:
            return None
        raise


def group_path(api_version: str) -> str:
    """/api/v1 or /apis/<group>/<version>."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _parsed(data: bytes) -> Object:
    try:
        parsed = json.loads(data)
    except ValueError:
        return {"message": data.decode(errors="replace")}
    return parsed if isinstance(parsed, dict) else {"items": parsed}
