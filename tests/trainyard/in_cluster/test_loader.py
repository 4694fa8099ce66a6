"""trainyard/in_cluster/loader: what it leaves in a directory, whatever happens on the way. It loads from a
server on this machine that answers as Hugging Face does."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.support.patience import until
from tests.support.programs import program_fixture
from trainyard.parts.programs import program_files

COMMIT = "0" * 40
REPOSITORY = "owner/model"
TREE = f"/api/models/{REPOSITORY}/tree/{COMMIT}"
WHAT = f"models/{REPOSITORY} at {COMMIT}"
LARGE = random.Random(7).randbytes(3_000_000)
FILES = {"config.json": b'{"layers": 2}', "sub/tokens.txt": b"a\nb\n", "model.safetensors": LARGE}
WHOLE, LOADING = ".trainyard-whole", ".trainyard-loading"
program = program_fixture("loader")


def git_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Hub(ThreadingHTTPServer):
    """Two hosts as one: the hub, and where it sends whoever wants a large file."""

    daemon_threads = True

    def __init__(self, files: Mapping[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = dict(files)
        self.listed = dict(files)
        """Contents that the list of files describes."""
        self.asked: list[tuple[str, str | None, str | None]] = []
        """Path, Range and Authorization of each request."""
        self.stops_at: int | None = None
        """Bytes of a large file after which the server says nothing more."""
        self.goes_on = Event()
        self.token: str | None = None
        """Token without which it answers nobody."""
        self.ranges = True
        self.trees = True
        """It knows /tree, in pages of so many files."""
        self.page = 1000
        self.siblings = 1000
        """Files that /revision names at most."""
        self.busy: list[dict[str, str]] = []
        """Headers of answers that there were too many requests, which come before the files."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def elsewhere(self) -> str:
        return f"http://localhost:{self.server_port}"

    def of(self, name: str) -> list[str | None]:
        """Range of each request that got the content of a file."""
        return [span for path, span, _ in self.asked if path == f"/content/{name}"]


class Handler(BaseHTTPRequestHandler):
    @property
    def hub(self) -> Hub:
        assert isinstance(self.server, Hub)
        return self.server

    def do_GET(self) -> None:
        hub, path = self.hub, self.path
        span, who = self.headers.get("Range"), self.headers.get("Authorization")
        hub.asked.append((path, span, who))
        if hub.busy and "/resolve/" in path:
            self._answer(429, b"", **hub.busy.pop())
        elif path.startswith("/content/"):
            self._content(hub.files[path.removeprefix("/content/")], span)
        elif hub.token and who != f"Bearer {hub.token}":
            self._answer(401, b"{}")
        elif path == f"/api/models/{REPOSITORY}/revision/{COMMIT}?blobs=true":
            named = [*map(self._listed, hub.listed)][: hub.siblings]
            self._answer(200, json.dumps({"siblings": named}).encode())
        elif hub.trees and path.startswith(f"{TREE}?recursive=true"):
            self._tree(int(path.partition("&cursor=")[2] or 0))
        elif path.startswith(f"/{REPOSITORY}/resolve/{COMMIT}/"):
            name = path.removeprefix(f"/{REPOSITORY}/resolve/{COMMIT}/")
            self._answer(302, b"", Location=f"{hub.elsewhere}/content/{name}")
        else:
            self._answer(404, b"{}")

    def _tree(self, start: int) -> None:
        """A page, as /api/models/openai-community/gpt2/tree/main answers. The address of the next one is that of
        another host, which nobody may ask."""
        end = start + self.hub.page
        found = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": "sub"}]
        for name in [*self.hub.listed][start:end]:
            said = self._listed(name)
            found.append(
                {"type": "file", "path": name, "size": said["size"], "oid": said["blobId"]}
            )
            if large := said.get("lfs"):
                found[-1]["lfs"] = {
                    "oid": large["sha256"],
                    "size": large["size"],
                    "pointerSize": 132,
                }
        then = f'<http://127.0.0.1:1{TREE}?recursive=true&cursor={end}>; rel="next"'
        headers = {"Link": then} if end < len(self.hub.listed) else {}
        self._answer(200, json.dumps(found).encode(), **headers)

    def _listed(self, name: str) -> dict[str, Any]:
        content = self.hub.listed[name]
        said = {"rfilename": name, "size": len(content), "blobId": git_id(content)}
        if name.endswith(".safetensors"):
            said["lfs"] = {"sha256": sha256(content), "size": len(content)}
        return said

    def _content(self, content: bytes, span: str | None) -> None:
        start = int(span.removeprefix("bytes=").removesuffix("-")) if span else 0
        start = start if self.hub.ranges else 0
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        stop = self.hub.stops_at
        if stop is not None and len(content) > stop:
            self.wfile.write(content[start:stop])
            self.wfile.flush()
            self.hub.goes_on.wait(60)
            return
        self.wfile.write(content[start:])

    def _answer(self, code: int, body: bytes, **headers: str) -> None:
        self.send_response(code)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[Hub]:
    server = Hub(FILES)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.goes_on.set()
    server.shutdown()
    server.server_close()


Load = Callable[..., Any]


@pytest.fixture
def load(program: ModuleType, hub: Hub, tmp_path: Path) -> Load:
    """Loads the repository into the folder `to`, or whatever settings name instead."""

    def loads(
        what: str = WHAT, to: str = "to", check: Mapping[str, Any] | None = None, **source: Any
    ) -> Any:
        settings = source or {
            "kind": "huggingface",
            "endpoint": hub.url,
            "repository": f"models/{REPOSITORY}",
            "revision": COMMIT,
        }
        place = sys.modules["place"].Place(tmp_path / to, what)
        return program.load(
            sys.modules["sources"].source_of(settings), place, check or {}, pause=0.0
        )

    return loads


def there(folder: Path) -> dict[str, bytes]:
    """The files of a directory, without those of the loader."""
    return {
        str(each.relative_to(folder)): each.read_bytes()
        for each in folder.rglob("*")
        if each.is_file() and not each.relative_to(folder).parts[0].startswith(".trainyard-")
    }


def test_every_file_is_loaded_and_the_checksum_is_that_of_sha256sum(
    load: Load, tmp_path: Path
) -> None:
    whole = load()
    assert there(tmp_path / "to") == FILES
    said = subprocess.run(
        "find * -type f | LC_ALL=C sort | xargs -d '\\n' sha256sum | sha256sum",
        shell=True,
        cwd=tmp_path / "to",
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split()[0] == whole.sha256
    assert (whole.files, whole.bytes) == (3, sum(map(len, FILES.values())))
    assert json.loads((tmp_path / "to" / WHOLE).read_text())["source"] == WHAT


def test_every_file_of_a_repository_is_loaded_whose_short_list_leaves_some_out(
    load: Load, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "planted")
    hub.siblings, hub.page = 2, 2
    assert load().files == 3 and there(tmp_path / "to") == FILES
    assert [path for path, _, _ in hub.asked if path.startswith("/api/")] == [
        f"{TREE}?recursive=true",
        f"{TREE}?recursive=true&cursor=2",
    ]


def test_a_server_without_trees_is_asked_for_its_short_list(
    load: Load, hub: Hub, tmp_path: Path
) -> None:
    hub.trees = False
    assert load().files == 3 and there(tmp_path / "to") == FILES


def test_what_is_whole_is_asked_for_no_more(load: Load, hub: Hub) -> None:
    first = load()
    hub.asked.clear()
    assert load() == first and hub.asked == []


def test_a_file_that_somebody_deleted_is_loaded_again_and_no_other(
    load: Load, hub: Hub, tmp_path: Path
) -> None:
    first = load()
    (tmp_path / "to/config.json").unlink()
    hub.asked.clear()
    assert load() == first and there(tmp_path / "to") == FILES
    assert hub.of("config.json") == [None] and hub.of("model.safetensors") == []


def test_a_killed_load_goes_on_where_it_was(load: Load, hub: Hub, tmp_path: Path) -> None:
    """A process of its own, which has no moment to tidy up."""
    for name, text in program_files("loader").items():
        (tmp_path / name).write_text(text)
    hub.stops_at = 2_000_000
    settings = {
        "what": WHAT,
        "to": str(tmp_path / "to"),
        "check": {},
        "source": {
            "kind": "huggingface",
            "endpoint": hub.url,
            "repository": f"models/{REPOSITORY}",
            "revision": COMMIT,
        },
    }
    process = subprocess.Popen(
        [sys.executable, "-B", str(tmp_path / "loader.py"), json.dumps(settings)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": ""},
    )
    parts = tmp_path / "to/.trainyard-parts"
    try:
        until(
            lambda: (
                len(there(tmp_path / "to")) == 2
                and sum(each.stat().st_size for each in parts.iterdir()) >= 1_000_000
            )
        )
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (tmp_path / "to" / WHOLE).exists()
    kept = sum(each.stat().st_size for each in parts.iterdir())
    hub.stops_at = None
    hub.asked.clear()
    whole = load()
    assert there(tmp_path / "to") == FILES and whole.files == 3
    assert hub.of("model.safetensors") == [f"bytes={kept}-"] and kept >= 1_000_000
    assert hub.of("config.json") == [] == hub.of("sub/tokens.txt")
    assert not parts.exists()


def half(tmp_path: Path, **parts: bytes) -> Any:
    """A directory in which an earlier load left parts of files."""
    place = sys.modules["place"].Place(tmp_path / "to", WHAT)
    place.folder.mkdir()
    place.begin()
    for name, content in parts.items():
        place.part(name).write_bytes(content)
    return place


def test_what_is_there_in_parts_needs_no_room_again(
    load: Load, tmp_path: Path, program: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = half(tmp_path, **{"model.safetensors": LARGE[:2_900_000], "gone.bin": b"x" * 500_000})
    monkeypatch.setattr(program.shutil, "disk_usage", lambda _: SimpleNamespace(free=50_000))
    with pytest.raises(sys.modules["place"].Refused, match="make the store larger"):
        load()
    assert place.parts() == [place.part("model.safetensors")]
    monkeypatch.setattr(program.shutil, "disk_usage", lambda _: SimpleNamespace(free=101_000))
    load()
    assert there(tmp_path / "to") == FILES


def test_a_server_without_ranges_sends_the_file_from_its_beginning(
    load: Load, hub: Hub, tmp_path: Path, program: ModuleType
) -> None:
    half(tmp_path, **{"model.safetensors": LARGE[:10]})
    hub.ranges = False
    load()
    assert there(tmp_path / "to") == FILES and hub.of("model.safetensors") == ["bytes=10-"]


def test_half_a_last_line_is_that_of_a_file_which_is_loaded_again(
    load: Load, hub: Hub, tmp_path: Path
) -> None:
    load()
    (tmp_path / "to" / WHOLE).unlink()
    path = tmp_path / "to" / LOADING
    path.write_text(path.read_text()[:-20])
    hub.asked.clear()
    load()
    assert there(tmp_path / "to") == FILES
    assert sum(len(hub.of(name)) for name in FILES) == 1


def test_a_half_loaded_directory_of_another_source_is_begun_afresh(
    load: Load, tmp_path: Path
) -> None:
    load()
    (tmp_path / "to" / WHOLE).unlink()
    other = tmp_path / "other"
    other.mkdir()
    (other / "only.txt").write_text("x")
    load("stores/other", kind="directory", path=str(other))
    assert there(tmp_path / "to") == {"only.txt": b"x"}


def test_a_load_says_that_it_waits_for_another_one(
    load: Load, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = f"waits for the end of another load into {tmp_path / 'to'}"
    with sys.modules["place"].Place(tmp_path / "to", "another").alone(print):
        thread = Thread(target=load)
        thread.start()
        printed: list[str] = []
        until(lambda: printed.append(capsys.readouterr().out) or said in "".join(printed))
        assert there(tmp_path / "to") == {}
    thread.join()
    assert there(tmp_path / "to") == FILES


def test_a_whole_directory_is_never_written_over_by_another_source(
    load: Load, program: ModuleType, tmp_path: Path
) -> None:
    load()
    with pytest.raises(sys.modules["place"].Refused, match="already has models/owner/model at 0"):
        load("models/owner/model at 1")
    assert there(tmp_path / "to") == FILES


def test_files_that_no_load_wrote_are_left_alone(load: Load, tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    (tmp_path / "to/notes.txt").write_text("mine")
    with pytest.raises(sys.modules["place"].Refused, match=r"has notes.txt, which no load wrote"):
        load()
    assert there(tmp_path / "to") == {"notes.txt": b"mine"}


@pytest.mark.parametrize(
    "check",
    [{"files": 4}, {"bytes": 5}, {"sha256": "0" * 64}],
    ids=["files", "bytes", "sha256"],
)
def test_a_wrong_figure_is_refused_and_leaves_no_mark(
    load: Load, hub: Hub, tmp_path: Path, check: dict[str, Any]
) -> None:
    [(name, value)] = check.items()
    with pytest.raises(sys.modules["place"].Refused, match=f"says check.{name}: {value}"):
        load(check=check)
    assert not (tmp_path / "to" / WHOLE).exists()
    assert (hub.of("model.safetensors") == []) == (name != "sha256")
    right = load()
    assert load(check={name: getattr(right, name)}) == right
    with pytest.raises(sys.modules["place"].Refused, match=f"says check.{name}"):
        load(check=check)


@pytest.mark.parametrize("name", ["model.safetensors", "sub/tokens.txt"], ids=["LFS", "Git"])
def test_a_file_that_is_not_what_the_hub_lists_is_not_taken(
    load: Load, hub: Hub, tmp_path: Path, name: str
) -> None:
    hub.files[name] = FILES[name][:-1] + b"!"
    with pytest.raises(sys.modules["sources"].Broken, match="what came is not the file"):
        load()
    assert not (tmp_path / "to" / name).exists() and not (tmp_path / "to" / WHOLE).exists()
    hub.files[name] = FILES[name]
    load()
    assert there(tmp_path / "to") == FILES


def test_the_token_goes_to_the_hub_and_to_no_other_host(
    load: Load, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.token = "planted"
    with pytest.raises(sys.modules["place"].Refused, match="no token is named"):
        load()
    monkeypatch.setenv("HF_TOKEN", "planted")
    hub.asked.clear()
    load()
    sent = {path.startswith("/content/"): who for path, _, who in hub.asked}
    assert sent == {False: "Bearer planted", True: None}
    monkeypatch.setenv("HF_TOKEN", "other")
    hub.asked.clear()
    with pytest.raises(sys.modules["place"].Refused, match="the token cannot read it"):
        load("models/owner/model at 1", to="elsewhere")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"RateLimit": '"resolvers";r=0;t=55', "Retry-After": "9"}, 56),
        ({"Retry-After": "7"}, 8),
        ({"Retry-After": "9000"}, 300),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30),
        ({}, 30),
    ],
)
def test_a_hub_that_has_had_too_many_requests_is_asked_again_when_it_says(
    load: Load,
    hub: Hub,
    program: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    headers: dict[str, str],
    seconds: int,
) -> None:
    """It is no try of a file, of which there are four."""
    waits: list[int] = []
    monkeypatch.setattr(sys.modules["sources"], "time", SimpleNamespace(sleep=waits.append))
    hub.listed = {"config.json": FILES["config.json"]}
    hub.busy = [headers] * 6
    load()
    assert waits == [seconds] * 6 and {*there(tmp_path / "to")} == {"config.json"}
    hub.busy = [headers] * 1000
    with pytest.raises(sys.modules["sources"].Broken, match="answers 429"):
        load(to="other")


def test_what_the_hub_does_not_have_is_refused_at_once(load: Load, hub: Hub) -> None:
    with pytest.raises(sys.modules["place"].Refused, match="correct `repository` or `revision`"):
        load(
            kind="huggingface", endpoint=hub.url, repository="models/owner/model", revision="1" * 40
        )


def test_patterns_choose_files_and_must_choose_some(load: Load, hub: Hub, tmp_path: Path) -> None:
    where = {"endpoint": hub.url, "repository": f"models/{REPOSITORY}", "revision": COMMIT}
    load(kind="huggingface", only=["*.json", "*.txt"], **where)
    assert {*there(tmp_path / "to")} == {"config.json", "sub/tokens.txt"}
    with pytest.raises(sys.modules["place"].Refused, match=r"has no files like \*.bin"):
        load(to="none", kind="huggingface", only=["*.bin"], **where)


@pytest.mark.parametrize("name", ["../out", "a/../../out", "/etc/out", ".trainyard-whole"])
def test_no_file_leaves_the_directory(load: Load, hub: Hub, tmp_path: Path, name: str) -> None:
    hub.listed = {name: b"x"}
    with pytest.raises(sys.modules["place"].Refused, match="has no place in a directory"):
        load()
    assert there(tmp_path / "to") == {}


def test_a_directory_of_another_store_is_copied_without_its_marks(
    load: Load, tmp_path: Path
) -> None:
    load()
    load("stores/to", to="copy", kind="directory", path=str(tmp_path / "to"))
    assert there(tmp_path / "copy") == FILES


def test_links_of_a_directory_are_loaded_as_what_they_lead_to(load: Load, tmp_path: Path) -> None:
    store = tmp_path / "store"
    (store / "blobs").mkdir(parents=True)
    (store / "blobs/0").write_text("x")
    (store / "set/deep").mkdir(parents=True)
    (store / "set/file").symlink_to("../blobs/0")
    (store / "set/deep/folder").symlink_to("../../blobs")
    load("stores/set", kind="directory", path=str(store / "set"))
    assert there(tmp_path / "to") == {"file": b"x", "deep/folder/0": b"x"}


@pytest.mark.parametrize("target", ["/scratch/run/step-500", "..", "../set", "latest"])
def test_a_link_that_leads_nowhere_is_named(load: Load, tmp_path: Path, target: str) -> None:
    folder = tmp_path / "store/set"
    folder.mkdir(parents=True)
    (folder / "a.bin").write_text("x")
    (folder / "latest").symlink_to(target)
    source = {"kind": "directory", "path": str(folder)}
    with pytest.raises(sys.modules["place"].Refused, match=f"has a link latest to {target}, which"):
        load("stores/set", **source)
    load("stores/set", to="chosen", only=["*.bin"], **source)
    assert there(tmp_path / "chosen") == {"a.bin": b"x"}


class Refuses:
    """A source of many files that gives none."""

    def __init__(self, program: ModuleType) -> None:
        self.listed = [sys.modules["sources"].File(f"{number}.jpg", 1) for number in range(1000)]
        self.asked: list[str] = []

    def files(self) -> list[Any]:
        return self.listed

    def read(self, file: Any, offset: int) -> Any:
        self.asked.append(file.path)
        raise sys.modules["sources"].Broken("the server is away")


def test_many_files_need_no_task_each_and_none_is_asked_for_after_an_error(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted: list[Any] = []

    class Counts(ThreadPoolExecutor):
        def submit(self, *task: Any, **named: Any) -> Any:
            submitted.append(task)
            return super().submit(*task, **named)

    monkeypatch.setattr(program, "ThreadPoolExecutor", Counts)
    source, place = Refuses(program), sys.modules["place"].Place(tmp_path / "to", WHAT)
    with pytest.raises(sys.modules["sources"].Broken, match="the server is away"):
        program.load(source, place, {}, pause=0.0)
    assert len(submitted) <= program.AT_ONCE
    assert len({*source.asked}) <= program.AT_ONCE * program.TRIES


def test_weights_in_fp8_are_named(load: Load, hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    text = json.dumps({"quantization_config": {"quant_method": "fp8"}}).encode()
    hub.files["config.json"] = hub.listed["config.json"] = text
    load()
    assert "transformers' Trainer refuses to train them" in capsys.readouterr().out


def test_a_request_to_s3_is_signed_as_botocore_signs_it(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.datetime(2026, 11, 27, 7, 0, 5, tzinfo=datetime.UTC)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: now)
    who = sys.modules["query"].Credentials("AKID", "a/secret+key", "a+session/token==")
    url, headers = sys.modules["signed_get"].signed_get(
        "https://s3.eu-west-1.amazonaws.com",
        "sets/a folder/ü+.bin",
        {"list-type": "2", "prefix": "a b/"},
        "eu-west-1",
        who,
        now,
    )
    request = AWSRequest(method="GET", url=url)
    request.context["payload_signing_enabled"] = True
    S3SigV4Auth(
        Credentials("AKID", "a/secret+key", "a+session/token=="), "s3", "eu-west-1"
    ).add_auth(request)
    assert headers["Authorization"] == request.headers["Authorization"]


def test_the_exit_code_says_whether_another_try_can_help(
    program: ModuleType, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = {
        "kind": "huggingface",
        "endpoint": hub.url,
        "repository": f"models/{REPOSITORY}",
        "revision": COMMIT,
    }

    def code(**settings: Any) -> int:
        said = {"what": WHAT, "to": str(tmp_path / "to"), "check": {}, "source": source} | settings
        monkeypatch.setattr(sys, "argv", ["loader.py", json.dumps(said)])
        return program.main()

    assert code(check={"files": 9}) == program.REFUSED
    away = {**source, "endpoint": "http://127.0.0.1:1"}
    assert code(source=away) == 1
    assert code() == 0 == code()
