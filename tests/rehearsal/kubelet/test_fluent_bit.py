"""What the stand-in of Fluent Bit sends to CloudWatch Logs, by the configuration of the graph."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rehearsal import paths
from rehearsal.kubelet.aws import Account, AwsError
from rehearsal.kubelet.fluent_bit import FluentBit
from rehearsal.kubelet.log_lines import LONGEST, entry
from tests.rehearsal.aws.test_permissions import Somebody
from tests.rehearsal.aws_world import REGION, served
from trainyard.objects.programs.pod_logs import FILE, PodLogsPlan, fluent_bit_config, writing

PLAN = PodLogsPlan(
    image="i", role_name="r", group_name="/trainyard/pods/g", region="us-east-2", days=30
)
KEYS = {"AWS_ACCESS_KEY_ID": "k"}
DAEMON = {
    "metadata": {"namespace": "kube-system"},
    "spec": {"volumes": [{"name": "file", "configMap": {"name": "f"}}, {"name": "logs"}]},
}


class Kubelet:
    """A node, and an account that notes what is written."""

    def __init__(self, folder: Path) -> None:
        self.id, self.folder = "i-1", folder
        self.pods: dict[str, Any] = {}
        self.sent: dict[str, list[str]] = {}
        self.there, self.keys, self.wall, self.refused = True, KEYS, "", ""
        self.api = SimpleNamespace(
            request=lambda method, path: {"data": {FILE: fluent_bit_config(PLAN)}}
        )
        self.account = SimpleNamespace(blocked=lambda id_, to: self.wall, logs=self._logs)

    def daemon(self, image: str) -> Any:
        return DAEMON if self.there else None

    def pod_identity(self, pod: Any) -> dict[str, str]:
        return self.keys

    def _logs(self, action: str, body: Any, region: str, keys: dict[str, str]) -> None:
        if self.refused:
            raise AwsError(self.refused)
        assert (body["logGroupName"], region, keys) == (PLAN.group_name, PLAN.region, KEYS)
        lines = self.sent.setdefault(body["logStreamName"], [])
        lines += [event["message"] for event in body.get("logEvents", ())]

    def runs(self, namespace: str, name: str, *lines: bytes) -> None:
        """A pod whose one container has said these lines."""
        file = self.folder / f"{name}.log"
        file.open("ab").write(b"".join(map(entry, lines)))
        self.pods[name] = SimpleNamespace(
            obj={"metadata": {"uid": name, "name": name, "namespace": namespace}},
            init=[],
            containers=[SimpleNamespace(name="node", runs=1)],
            log_file=lambda container, run: file,
        )


@pytest.fixture
def kubelet(tmp_path: Path) -> Kubelet:
    return Kubelet(tmp_path)


@pytest.fixture
def sends(kubelet: Kubelet) -> FluentBit:
    return FluentBit(kubelet)  # type: ignore[arg-type]


def test_lines_of_runs_are_sent_once_each_to_the_stream_of_their_container(
    kubelet: Kubelet, sends: FluentBit
) -> None:
    kubelet.runs("training", "run-node-0-0-aaaaa", b"one\n", b"\n", b"two\n")
    sends.look()
    kubelet.runs("training", "run-node-0-0-aaaaa", b"three\n")
    sends.look()
    assert kubelet.sent == {"pod.training.run-node-0-0-aaaaa.node": ["one", "two", "three"]}


def test_a_long_line_is_one_line(kubelet: Kubelet, sends: FluentBit) -> None:
    kubelet.runs("training", "run", b"a" * LONGEST, b"b\n")
    sends.look()
    assert [len(line) for line in kubelet.sent["pod.training.run.node"]] == [LONGEST + 1]


@pytest.mark.parametrize("namespace", ["kube-system", "trainyard-metrics"])
def test_pods_that_are_no_runs_are_left_out(
    kubelet: Kubelet, sends: FluentBit, namespace: str
) -> None:
    kubelet.runs(namespace, "agent", b"one\n")
    sends.look()
    assert kubelet.sent == {}


def test_a_log_whose_pod_is_gone_is_read_to_its_end(kubelet: Kubelet, sends: FluentBit) -> None:
    kubelet.runs("training", "run", b"one\n")
    sends.look()
    kubelet.runs("training", "run", b"last words\n")
    kubelet.pods.clear()
    (kubelet.folder / "run.log").unlink()
    sends.look()
    assert kubelet.sent == {"pod.training.run.node": ["one", "last words"]}


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ({"wall": "no endpoint"}, "no endpoint"),
        ({"keys": {}}, "could not obtain credentials"),
        ({"refused": "AccessDeniedException"}, "AccessDeniedException"),
    ],
)
def test_what_cloudwatch_does_not_take_is_sent_later(
    kubelet: Kubelet, sends: FluentBit, trouble: dict[str, Any], said: str
) -> None:
    kubelet.runs("training", "run", b"one\n")
    well = {name: getattr(kubelet, name) for name in trouble}
    vars(kubelet).update(trouble)
    with pytest.raises(AwsError, match=said):
        sends.look()
    vars(kubelet).update(well)
    sends.look()
    assert kubelet.sent == {"pod.training.run.node": ["one"]}


def test_without_its_pod_nothing_is_sent(kubelet: Kubelet, sends: FluentBit) -> None:
    kubelet.there = False
    kubelet.runs("training", "run", b"one\n")
    sends.look()
    assert kubelet.sent == {}


def test_its_role_writes_to_its_group_and_to_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tmp_path, monkeypatch) as account:
        logs, fluent_bit = account.client("logs"), Somebody(account, "fluent-bit")
        for name in (PLAN.group_name, "/other"):
            logs.create_log_group(logGroupName=name)
        [group] = logs.describe_log_groups(logGroupNamePrefix=PLAN.group_name)["logGroups"]
        fluent_bit.may(*writing(group["arn"].removesuffix(":*"))["Statement"])
        node = Account(url=account.url, secret=paths.world().world_secret)
        lines = [{"timestamp": int(time.time() * 1000), "message": "one"}]

        def write(name: str) -> None:
            where = {"logGroupName": name, "logStreamName": "s"}
            node.logs("CreateLogStream", where, REGION, fluent_bit.keys)
            node.logs("PutLogEvents", {**where, "logEvents": lines}, REGION, fluent_bit.keys)

        write(PLAN.group_name)
        found = logs.get_log_events(logGroupName=PLAN.group_name, logStreamName="s")
        assert [event["message"] for event in found["events"]] == ["one"]
        with pytest.raises(AwsError, match="AccessDenied"):
            write("/other")
        with pytest.raises(AwsError, match="ResourceAlreadyExistsException"):
            write(PLAN.group_name)
