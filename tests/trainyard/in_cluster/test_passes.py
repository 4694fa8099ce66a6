"""trainyard/in_cluster/passes: the tokens that it signs and the passes that it writes."""

from __future__ import annotations

import base64
import datetime
import json
import urllib.parse
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.support.programs import program_fixture
from trainyard.objects.programs.dispatch import DispatchPlan, settings

NOW = datetime.datetime(2026, 11, 23, 12, 30, 5, tzinfo=datetime.UTC)
REGION, STS = "ap-northeast-2", "https://sts.ap-northeast-2.amazonaws.com"
SESSION = "a+session/token=="
program = program_fixture("passes")


def who(program: ModuleType) -> Any:
    return program.tokens.Credentials("AKIDEXAMPLE", "a/secret+key", SESSION)


def test_a_token_is_signed_as_the_aws_cli_signs_it(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """botocore is what `aws eks get-token` signs with."""
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: NOW)
    request = AWSRequest(
        method="GET",
        url=f"{STS}/?Action=GetCallerIdentity&Version=2011-06-15",
        headers={"x-k8s-aws-id": "tokyo"},
    )
    credentials = Credentials("AKIDEXAMPLE", "a/secret+key", SESSION)
    SigV4QueryAuth(credentials, "sts", REGION, expires=60).add_auth(request)
    token = program.tokens.token("tokyo", STS, REGION, who(program), NOW)
    assert asked(token) == parts(str(request.url))


def asked(token: str) -> tuple[str, dict[str, str]]:
    """The address in a token."""
    raw = token.removeprefix("k8s-aws-v1.")
    assert raw != token and "=" not in raw
    return parts(base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4)).decode())


def parts(url: str) -> tuple[str, dict[str, str]]:
    split = urllib.parse.urlsplit(url)
    return split.netloc, dict(urllib.parse.parse_qsl(split.query, strict_parsing=True))


class Server:
    """Secrets."""

    def __init__(self, program: ModuleType) -> None:
        self.program = program
        self.secrets: dict[str, dict[str, str]] = {}

    def ask(self, method: str, path: str, body: Any = None, kind: str = "json") -> Any:
        name = path.rpartition("/")[2]
        if name not in self.secrets:
            raise self.program.ApiError(404, "not found")
        if method == "PATCH":
            assert kind == "merge-patch+json"
            self.secrets[name] |= body["data"]
        return {"data": self.secrets[name]}


def said(**values: str) -> dict[str, str]:
    return {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}


def its_settings(program: ModuleType, *workers: str) -> Any:
    plan = DispatchPlan(workers=workers, role_name="r", region=REGION, image="i", files={})
    return program.Settings(**json.loads(settings(plan)))


def test_each_worker_gets_a_pass_for_its_own_cluster(program: ModuleType) -> None:
    server = Server(program)
    for worker in ("tokyo", "osaka"):
        server.secrets[f"worker-{worker}"] = said(
            cluster=worker, server=f"https://{worker}", authority="Y2E="
        )
    chosen = its_settings(program, "tokyo", "osaka")
    assert program.renew(server, chosen, who(program), NOW)
    for worker in ("tokyo", "osaka"):
        text = base64.b64decode(server.secrets[f"worker-{worker}"]["kubeconfig"]).decode()
        config = json.loads(text)
        assert config["clusters"][0]["cluster"] == {
            "server": f"https://{worker}",
            "certificate-authority-data": "Y2E=",
        }
        [user] = config["users"]
        assert user["user"].keys() == {"token"}, "Kueue refuses programs and paths"
        assert asked(user["user"]["token"])[1]["X-Amz-SignedHeaders"] == "host;x-k8s-aws-id"


def test_one_worker_that_cannot_be_renewed_keeps_no_other_from_it(program: ModuleType) -> None:
    server = Server(program)
    server.secrets["worker-osaka"] = said(cluster="osaka", server="https://o", authority="Y2E=")
    assert not program.renew(server, its_settings(program, "tokyo", "osaka"), who(program), NOW)
    assert "kubeconfig" in server.secrets["worker-osaka"]


def test_credentials_come_from_the_agent_of_pod_identity(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    class Agent(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers["Authorization"])
            self.send_response(200)
            self.end_headers()
            keys = {"AccessKeyId": "A", "SecretAccessKey": "B", "Token": "C"}
            self.wfile.write(json.dumps(keys).encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    agent = HTTPServer(("127.0.0.1", 0), Agent)
    Thread(target=agent.handle_request, daemon=True).start()
    (tmp_path / "token").write_text("of the pod")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.setenv(
        "AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://127.0.0.1:{agent.server_port}/v1/credentials"
    )
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "token"))
    assert program.credentials() == program.tokens.Credentials("A", "B", "C")
    assert seen == ["of the pod"]
