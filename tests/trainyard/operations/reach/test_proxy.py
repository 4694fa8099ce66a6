"""Questions to a real API server through `kubectl proxy`."""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rehearsal import paths, processes
from trainyard.operations.reach import proxy
from trainyard.operations.reach.kubectl import Login
from trainyard.operations.reach.proxy import proxied

if TYPE_CHECKING:
    from tests.rehearsal.api_server import ApiServer

pytest_plugins = ("tests.rehearsal.api_server",)


def _environment(folder: Path, server: ApiServer, **user: str) -> Mapping[str, str]:
    file = folder / f"kubeconfig-{len([*folder.iterdir()])}"
    file.write_text(server.kubeconfig(**user))
    return {**os.environ, "KUBECONFIG": str(file), "PATH": f"{paths.BIN}:{os.environ['PATH']}"}


def _proxies(folder: Path) -> list[int]:
    return [
        pid for pid in processes.marked(f"KUBECONFIG={folder}/kubeconfig-0") if pid != os.getpid()
    ]


@pytest.fixture
def login(api_server: ApiServer, tmp_path: Path) -> Login:
    environment = _environment(tmp_path, api_server)
    return lambda: environment


def test_many_questions_are_one_process_which_ends_with_the_block(
    login: Login, tmp_path: Path
) -> None:
    with proxied(login, 30) as kubectl:
        assert _proxies(tmp_path) == [], "it starts with the first question"
        with ThreadPoolExecutor(4) as pool:
            answers = [
                *pool.map(lambda _: kubectl("get", "--raw", "/api/v1/namespaces"), range(20))
            ]
        assert all(json.loads(each)["kind"] == "NamespaceList" for each in answers)
        assert len(_proxies(tmp_path)) == 1
        named = kubectl("get", "namespaces", "--output=name").split()
        assert "namespace/default" in named, "other commands are kubectl's own"
    assert _proxies(tmp_path) == []


def test_refusals_are_in_the_words_of_the_api_server(login: Login) -> None:
    with proxied(login, 30) as kubectl:
        with pytest.raises(RuntimeError, match=r"^Error from server \(NotFound\): namespaces"):
            kubectl("get", "--raw", "/api/v1/namespaces/nobody")
        with pytest.raises(RuntimeError, match=r"^Error from server \(NotFound\): the server"):
            kubectl("get", "--raw", "/apis/example.com/v1/things")


def test_another_login_is_another_process(api_server: ApiServer, tmp_path: Path) -> None:
    both = [_environment(tmp_path, api_server), _environment(tmp_path, api_server, token="wrong")]
    now = [both[0]]
    with proxied(lambda: now[0], 30) as kubectl:
        assert kubectl("get", "--raw", "/api/v1/nodes")
        now[0] = both[1]
        with pytest.raises(RuntimeError, match=r"\(Unauthorized\)"):
            kubectl("get", "--raw", "/api/v1/nodes")
        assert _proxies(tmp_path) == [], "the first one has ended"


def test_the_socket_is_its_owners_alone(login: Login, monkeypatch: pytest.MonkeyPatch) -> None:
    sockets: list[Path] = []
    link = proxy._UnixConnection

    def seen(path: str, seconds: float) -> proxy._UnixConnection:
        sockets.append(Path(path))
        return link(path, seconds)

    monkeypatch.setattr(proxy, "_UnixConnection", seen)
    with proxied(login, 30) as kubectl:
        kubectl("get", "--raw", "/api")
        [at] = sockets
        assert stat.S_IMODE(at.parent.stat().st_mode) == 0o700
    assert not at.exists()


def test_without_kubectl_it_says_so(tmp_path: Path) -> None:
    with (
        proxied(lambda: {"PATH": str(tmp_path)}, 30) as kubectl,
        pytest.raises(RuntimeError, match="kubectl is not on PATH"),
    ):
        kubectl("get", "--raw", "/api")


def test_a_socket_that_nobody_listens_to_yet_is_waited_for(tmp_path: Path) -> None:
    """kubectl makes the file of its socket a moment before it listens: a question in between was
    refused."""
    path = tmp_path / "socket"
    assert not proxy._listens(path), "no file"
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
        assert path.exists() and not proxy._listens(path)
        made.listen()
        assert proxy._listens(path)
