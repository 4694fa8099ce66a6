"""How trainyard/in_cluster/repair asks EC2 about instances, and what it makes of the answers."""

from __future__ import annotations

import datetime
import sys
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import ModuleType
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.support.patience import PATIENCE, until
from tests.support.programs import program_fixture

NOW = datetime.datetime(2026, 11, 26, 12, 30, 5, tzinfo=datetime.UTC)
REGION = "ap-northeast-2"
URL = f"https://ec2.{REGION}.amazonaws.com"
program = program_fixture("repair")


@pytest.fixture
def query(program: ModuleType) -> ModuleType:
    return sys.modules["query"]


@pytest.fixture
def instances(program: ModuleType) -> ModuleType:
    return sys.modules["instances"]


@pytest.mark.parametrize("service", ["EC2", "SNS"])
def test_a_question_is_signed_as_botocore_signs_it(
    query: ModuleType, monkeypatch: pytest.MonkeyPatch, service: str
) -> None:
    asked = getattr(query, service)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: NOW)
    body = b"Action=DescribeInstanceStatus&Version=2016-11-15&InstanceId.1=i-0a"
    request = AWSRequest(
        method="POST", url=f"{URL}/", data=body, headers={"Content-Type": query.FORM}
    )
    theirs = Credentials("AKID", "a/secret+key", "a+session/token==")
    SigV4Auth(theirs, asked.name, REGION).add_auth(request)
    who = query.Credentials("AKID", "a/secret+key", "a+session/token==")
    headers = query.signed(asked, URL, REGION, body, who, NOW)
    assert headers["Authorization"] == request.headers["Authorization"]


class Endpoint(ThreadingHTTPServer):
    """An EC2 that says what it is told to."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[dict[str, str]] = []
        self.answers: list[tuple[int, str]] = []


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Endpoint)
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.asked.append(dict(urllib.parse.parse_qsl(body)))
        status, text = self.server.answers.pop(0)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    server = Endpoint()
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "x")
    yield server
    server.shutdown()
    server.server_close()


def answer(**states: tuple[str, str, str]) -> str:
    """Instance → its state, system status and instance status."""
    items = "".join(
        f"<item><instanceId>i-{name}</instanceId><instanceState><code>16</code><name>{state}</name>"
        f"</instanceState><systemStatus><status>{system}</status></systemStatus>"
        f"<instanceStatus><status>{own}</status></instanceStatus></item>"
        for name, (state, system, own) in states.items()
    )
    return (
        '<DescribeInstanceStatusResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
        f"<instanceStatusSet>{items}</instanceStatusSet></DescribeInstanceStatusResponse>"
    )


def refusal(code: str, message: str) -> str:
    error = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    return f"<Response><Errors>{error}</Errors><RequestID>r</RequestID></Response>"


def test_an_instance_works_unless_ec2_says_that_it_does_not(
    instances: ModuleType, endpoint: Endpoint
) -> None:
    text = answer(
        a=("running", "ok", "ok"),
        b=("running", "impaired", "ok"),
        c=("running", "ok", "impaired"),
        d=("stopped", "not-applicable", "not-applicable"),
        e=("running", "initializing", "insufficient-data"),
        f=("shutting-down", "ok", "ok"),
    )
    endpoint.answers = [(200, text)]
    words = instances.statuses(REGION, [f"i-{each}" for each in "abcdef"])
    assert {name: word.works for name, word in words.items()} == {
        **dict.fromkeys(("i-a", "i-e"), True),
        **dict.fromkeys(("i-b", "i-c", "i-d", "i-f"), False),
    }
    assert words["i-b"].words == "EC2 says that its system status is impaired"
    assert words["i-d"].words == "EC2 says that its instance is stopped"
    [asked] = endpoint.asked
    assert asked["Action"] == "DescribeInstanceStatus" and asked["InstanceId.6"] == "i-f"
    assert asked["IncludeAllInstances"] == "true", "or EC2 leaves out those that do not run"


def test_an_instance_that_ec2_no_longer_knows_spoils_no_question_about_others(
    instances: ModuleType, endpoint: Endpoint
) -> None:
    unknown = refusal("InvalidInstanceID.NotFound", "The instance ID 'i-0b' does not exist")
    endpoint.answers = [(400, unknown), (200, answer(**{"0a": ("running", "ok", "ok")}))]
    words = instances.statuses(REGION, ["i-0a", "i-0b"])
    assert {name: word.works for name, word in words.items()} == {"i-0a": True, "i-0b": False}
    assert "InstanceId.2" not in endpoint.asked[1]


@pytest.mark.parametrize(
    ("status", "text", "code"),
    [
        (403, refusal("UnauthorizedOperation", "You are not authorized"), "UnauthorizedOperation"),
        (503, refusal("RequestLimitExceeded", "Request limit exceeded."), "RequestLimitExceeded"),
        (502, "Bad Gateway", "502"),
        (200, "no XML", "NoAnswer"),
    ],
)
def test_what_ec2_refuses_is_no_word(
    query: ModuleType, instances: ModuleType, endpoint: Endpoint, status: int, text: str, code: str
) -> None:
    endpoint.answers = [(status, text)]
    with pytest.raises(query.AwsError) as caught:
        instances.statuses(REGION, ["i-0a"])
    assert (caught.value.code, caught.value.refused) == (code, status == 403)


def test_a_pod_without_an_identity_has_no_word(
    query: ModuleType, instances: ModuleType, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_CONTAINER_CREDENTIALS_FULL_URI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", raising=False)
    with pytest.raises(query.AwsError, match="NoAnswer"):
        instances.statuses(REGION, ["i-0a"])


class Asked:
    """A question whose answer waits for the test."""

    def __init__(self, module: ModuleType) -> None:
        self.module, self.ids = module, list[Sequence[str]]()
        self.may_answer, self.error = Event(), ""

    def __call__(self, ids: Sequence[str]) -> Mapping[str, Any]:
        self.ids.append(ids)
        assert self.may_answer.wait(PATIENCE), "somebody waits for the answer"
        if self.error:
            raise sys.modules["query"].AwsError(self.error, "no")
        return dict.fromkeys(ids, self.module.Word(works=True, words="EC2 says that it runs"))


def test_while_ec2_does_not_answer_nobody_waits_and_it_is_asked_once(
    instances: ModuleType,
) -> None:
    question = Asked(instances)
    asks = instances.Instances(question)
    for now in (0.0, 3.0, 20.0):
        asks.ask(["i-b", "i-a"], now)
    assert asks.says("i-a", 20.0) is None
    question.may_answer.set()
    until(lambda: asks.says("i-a", 20.0))
    assert question.ids == [["i-a", "i-b"]]
    assert asks.says("i-a", 30.0) and not asks.says("i-a", 31.0), "an old word is none"


def test_a_refusal_leaves_the_last_word_until_it_is_old(instances: ModuleType) -> None:
    question = Asked(instances)
    question.may_answer.set()
    asks = instances.Instances(question)
    asks.ask(["i-a"], 0.0)
    until(lambda: asks.says("i-a", 0.0))
    question.error = "RequestLimitExceeded"
    asks.ask(["i-a"], 5.0)
    assert len(question.ids) == 1, "not more often than every 10 s"
    until(lambda: asks.ask(["i-a"], 10.0) or len(question.ids) == 2)
    assert asks.says("i-a", 29.0) and not asks.says("i-a", 31.0)


def test_more_instances_than_one_question_takes_are_asked_for_in_several(
    instances: ModuleType,
) -> None:
    question = Asked(instances)
    question.may_answer.set()
    asks = instances.Instances(question)
    asks.ask([f"i-{number:03}" for number in range(150)], 0.0)
    until(lambda: asks.says("i-149", 0.0) and asks.says("i-000", 0.0))
    assert [len(ids) for ids in question.ids] == [100, 50]
