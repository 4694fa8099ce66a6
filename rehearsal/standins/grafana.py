#!/usr/bin/env -S python3 -S
"""Grafana where its image is not: it reads the files that the pod mounts, refuses what Grafana refuses
or shows nothing for, and answers as Grafana's API does to somebody without a name.

It is stricter in three things: a file of provisioning must be JSON, an error in one ends it, and it is
ready only while its data sources answer. It draws nothing: the browser does that.
"""

import configparser
import json
import os
import re
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, unquote, urlencode
from urllib.request import urlopen

VERSION = "13.2.3"
KINDS = ("prometheus",)
"""Data sources that it plays, of those that the image brings as plugins."""
UID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
PATIENCE = 5.0
"""Seconds that a data source may take."""
TIMES = {"start": "from", "end": "to", "step": "intervalMs"}
"""Word of Prometheus → that of Grafana, in milliseconds."""
LABEL_VALUES = re.compile(r"/api/datasources/uid/([^/]+)/resources/(api/v1/label/\w+/values.*)")
Object = dict[str, Any]


class Refused(Exception):
    """Error that Grafana tells before it stops or shows nothing."""


class Settings:
    """grafana.ini, over which variables GF_<SECTION>_<KEY> win."""

    def __init__(self, path: Path) -> None:
        self._file = configparser.ConfigParser(interpolation=None)
        try:
            self._file.read_string(path.read_text())
        except (OSError, configparser.Error) as error:
            raise Refused(f"failed to parse {path}: {error}") from None

    def get(self, section: str, key: str, default: str) -> str:
        """A setting as text."""
        variable = f"GF_{section}_{key}".upper().replace(".", "_").replace("-", "_")
        return os.environ.get(variable) or self._file.get(section, key, fallback=default)


class Grafana:
    """Content that Grafana serves, from files that it reads once."""

    def __init__(self, folder: Path, data: Path) -> None:
        if not os.access(data, os.W_OK):
            raise Refused(f"GF_PATHS_DATA='{data}' is not writable.")
        self.settings = Settings(folder / "grafana.ini")
        if self.settings.get("plugins", "preinstall_disabled", "false") != "true":
            # grafana/grafana#132528: it unloads a plugin before it finds that it cannot replace it.
            raise Refused("Failed to install plugin pluginId=prometheus: read-only file system")
        provisioning = folder / "provisioning"
        self.sources = {each["uid"]: each for each in _sources(provisioning / "datasources")}
        self.pages = {each["uid"]: each for each in _pages(provisioning / "dashboards")}
        home = self.settings.get("dashboards", "default_home_dashboard_path", "")
        if home:
            _json(Path(home))

    def admits(self, authorization: str | None) -> int:
        """The status for whoever asks: 200 for somebody without a name, where these may look."""
        if authorization:
            return 401
        looks = self.settings.get("auth.anonymous", "enabled", "false") == "true"
        return 200 if looks else 401

    def answers(self) -> bool:
        """True where every data source answers."""
        try:
            return all(self.ask(uid, "api/v1/query?query=1") for uid in self.sources)
        except OSError:
            return False

    def ask(self, uid: str, path: str) -> Object:
        """An answer of a data source; OSError where there is none."""
        with urlopen(f"{self.sources[uid]['url']}/{path}", timeout=PATIENCE) as answer:
            return json.load(answer)

    def query(self, asked: Object) -> Object:
        """One query of a panel: the series, or what is wrong with it."""
        uid, words = asked["datasource"]["uid"], {"query": asked["expr"]}
        if uid not in self.sources:
            return {"status": 404, "error": f"data source {uid} not found"}
        path = f"api/v1/query?{urlencode(words)}"
        if not asked.get("instant"):
            words |= {word: int(asked[key]) / 1000 for word, key in TIMES.items()}
            path = f"api/v1/query_range?{urlencode(words)}"
        try:
            return {"status": 200, "frames": self.ask(uid, path)["data"]["result"]}
        except HTTPError as error:
            return {"status": error.code, "error": json.load(error).get("error", error.reason)}
        except OSError as error:
            return {"status": 502, "error": str(error)}


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise Refused(f"failed to load {path}: {error}") from None


def _files(folder: Path, key: str) -> list[Object]:
    """Entries of the files of a kind of provisioning."""
    files = [_json(path) for path in sorted(folder.glob("*.y*ml"))]
    if any(file.get("apiVersion") != 1 for file in files):
        raise Refused(f"{folder}: the provisioning config is outdated")
    return [entry for file in files for entry in file[key]]


def _unique(found: list[Object], what: str) -> list[Object]:
    uids = [each.get("uid") or "" for each in found]
    for uid in uids:
        if not UID.fullmatch(uid):
            raise Refused(
                f"{what}: the uid {uid!r} is missing, longer than 40 or has other characters"
            )
        if uids.count(uid) > 1:
            raise Refused(f"{what}: the same uid {uid!r} is used more than once")
    return found


def _sources(folder: Path) -> list[Object]:
    found = _unique(_files(folder, "datasources"), "data source")
    for each in found:
        if each["type"] not in KINDS:
            raise Refused(f"Could not find plugin definition for data source {each['type']}")
    if sum(bool(each.get("isDefault")) for each in found) != 1:
        raise Refused("Only one datasource per organization can be marked as default")
    return found


def _pages(folder: Path) -> list[Object]:
    found: list[Object] = []
    for provider in _files(folder, "providers"):
        place = Path(provider["options"]["path"])
        if not place.is_dir():
            raise Refused(f"Cannot read directory {place}")
        found += [_json(path) for path in sorted(place.glob("*.json"))]
    return _unique(found, "dashboard")


class Answer(BaseHTTPRequestHandler):
    """One request."""

    grafana: Grafana

    def do_GET(self) -> None:
        grafana, path = self.grafana, self.path
        if path == "/healthz":
            return self._say(200, "Ok")
        if path == "/api/health":
            ready = grafana.answers()
            said = {"database": "ok" if ready else "failing", "version": VERSION}
            return self._say(200 if ready else 503, said)
        if (status := grafana.admits(self.headers["Authorization"])) != 200:
            return self._say(status, {"message": "Unauthorized"})
        if path.startswith("/api/search"):
            listed = [
                {key: page[key] for key in ("uid", "title")} for page in grafana.pages.values()
            ]
            return self._say(200, listed)
        if page := grafana.pages.get(unquote(path.removeprefix("/api/dashboards/uid/"))):
            return self._say(200, {"dashboard": page, "meta": {"provisioned": True}})
        if (wanted := LABEL_VALUES.fullmatch(path)) and wanted[1] in grafana.sources:
            return self._forward(wanted[1], wanted[2])
        return self._say(404, {"message": "Not found"})

    def do_POST(self) -> None:
        body = self._body()
        if (status := self.grafana.admits(self.headers["Authorization"])) != 200:
            return self._say(status, {"message": "Unauthorized"})
        if self.path != "/api/ds/query":
            return self._say(403, {"message": "Viewers cannot do this"})
        asked = json.loads(body)
        times = {key: asked[key] for key in ("from", "to")}
        found = {each["refId"]: self.grafana.query(times | each) for each in asked["queries"]}
        return self._say(200, {"results": found})

    def _body(self) -> bytes:
        """By its length, or in chunks, as the API server's proxy sends it."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks: list[bytes] = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        return b"".join(chunks)

    def _forward(self, uid: str, path: str) -> None:
        try:
            self._say(200, self.grafana.ask(uid, quote(path, safe="/?=&%[]")))
        except OSError as error:
            self._say(502, {"message": str(error)})

    def _say(self, status: int, body: Any) -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Probes ask twice a second."""


def main() -> int:
    """Serve until it is killed; 1 where a file is refused."""
    folder = Path(os.environ.get("STAND_IN_GRAFANA", "/etc/grafana"))
    data = Path(os.environ.get("STAND_IN_GRAFANA_DATA", "/var/lib/grafana"))
    try:
        Answer.grafana = Grafana(folder, data)
    except Refused as refused:
        print(f"level=error {refused}", flush=True)
        return 1
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    port = int(Answer.grafana.settings.get("server", "http_port", "3000"))
    ThreadingHTTPServer(("", port), Answer).serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
