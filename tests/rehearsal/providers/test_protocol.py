"""The protocol's side of the plugins, over real gRPC but without the engine."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2 as pb
from pulumi.runtime.proto import provider_pb2_grpc as rpc
from pulumi.runtime.proto import status_pb2

from rehearsal import paths
from rehearsal.providers.call import Call
from rehearsal.providers.plugin import Diff, Found, Plugin
from rehearsal.providers.problems import Invalid, NotReady, Refused
from rehearsal.providers.protocol import Servicer
from rehearsal.providers.wire import (
    OUTPUT,
    SECRET,
    SIGNATURE,
    UNKNOWN,
    Properties,
    changes,
    join,
    plain,
    struct,
    unknown,
)
from tests.support.patience import PATIENCE, until

URN = "urn:pulumi:dev::project::eks:index:Cluster$toy:index:Box::the::box"


class Toy(Plugin):
    """A plugin with one resource, whose `kind` input says how it goes wrong."""

    name, version = "toy", "1.2.3"
    seen: Properties

    def check(self, call: Call, old: Properties, new: Properties) -> Properties:
        if new.get("kind") == "wrong":
            raise Invalid("kind", "cannot be wrong")
        return {**new, "name": f"{call.name}-{call.suffix()}"}

    def diff(self, call: Call, old: Properties, new: Properties, state: Properties) -> Diff:
        found = changes(old, new)
        return Diff(changes=found, replaces=frozenset(found) & {"size"}, delete_before_replace=True)

    def create(self, call: Call, inputs: Properties) -> tuple[str, Properties]:
        self.seen = inputs
        if inputs.get("kind") == "slow":
            call.until(lambda: False, default=60, what="the box")
        if inputs.get("kind") == "broken":
            raise NotReady("box-1", {"half": True}, inputs, "the lid is missing", "so is the floor")
        return ("", inputs) if call.preview else ("box-1", inputs)

    def read(self, call: Call, inputs: Properties, state: Properties) -> Found | None:
        return (
            None
            if call.id == "gone"
            else Found({"kind": "found"}, {"kind": "found", "size": 1}, "lasting")
        )


@pytest.fixture
def toy() -> Toy:
    return Toy()


@pytest.fixture
def client(toy: Toy) -> Iterator[rpc.ResourceProviderStub]:
    server = grpc.server(futures.ThreadPoolExecutor(8))
    rpc.add_ResourceProviderServicer_to_server(Servicer(toy), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield rpc.ResourceProviderStub(channel)
    server.stop(None)


def create(client: Any, **properties: Any) -> Any:
    return client.Create(pb.CreateRequest(urn=URN, properties=struct(properties)))


def test_secrets_arrive_unwrapped_and_outputs_that_are_not_known_arrive_as_unknown() -> None:
    secret = {SIGNATURE: SECRET, "value": {"password": "x", "port": 5432}}
    message = struct({"a": secret, "b": {SIGNATURE: OUTPUT}, "c": [1, 1.5], "__defaults": ["c"]})
    assert plain(message) == {"a": {"password": "x", "port": 5432}, "b": UNKNOWN, "c": [1, 1.5]}
    assert isinstance(plain(message)["c"][0], int)


def test_an_unknown_deep_inside_a_value_is_found() -> None:
    assert unknown({"a": [{"b": UNKNOWN}]})
    assert not unknown({"a": [{"b": "known"}]})


def test_changes_are_paths_and_a_property_that_is_none_is_an_absent_one() -> None:
    old = {"tags": {"a": "1", "k8s.io/x": "y"}, "ports": [1, 2], "gone": "x", "none": None}
    new = {"tags": {"a": "2", "k8s.io/x": "z", "b": "3"}, "ports": [1, 3]}
    assert changes(old, new) == {
        "gone": "delete",
        "ports[1]": "update",
        "tags.a": "update",
        "tags.b": "add",
        'tags["k8s.io/x"]': "update",
    }


def test_a_list_of_another_length_is_one_change() -> None:
    assert changes({"a": [1]}, {"a": [1, 2]}) == {"a": "update"}


def test_a_quote_in_a_key_is_escaped() -> None:
    assert join("tags", 'a"b') == 'tags["a\\"b"]'


def test_the_type_and_the_name_of_a_resource_are_read_from_its_urn() -> None:
    call = Call(urn=URN)
    assert (call.type, call.name) == ("toy:index:Box", "the::box")


def test_a_name_gets_the_same_letters_in_preview_and_update_and_others_in_a_replacement() -> None:
    first, again, other = (Call(urn=URN, seed=seed) for seed in (b"1", b"1", b"2"))
    assert first.suffix() == again.suffix() != other.suffix()


def test_an_input_that_cannot_be_right_is_a_failure_of_check_that_names_it(client: Any) -> None:
    answer = client.Check(pb.CheckRequest(urn=URN, news=struct({"kind": "wrong"})))
    assert [(failure.property, failure.reason) for failure in answer.failures] == [
        ("kind", "cannot be wrong")
    ]


def test_a_diff_says_which_paths_replace(client: Any) -> None:
    old, new = (
        struct({"size": 1, "look": {"color": "red"}}),
        struct({"size": 2, "look": {"color": "blue"}}),
    )
    answer = client.Diff(pb.DiffRequest(urn=URN, id="box-1", old_inputs=old, olds=old, news=new))
    assert answer.changes == pb.DiffResponse.DIFF_SOME
    assert list(answer.replaces) == ["size"]
    assert answer.deleteBeforeReplace
    kinds = {
        path: pb.PropertyDiff.Kind.Name(diff.kind) for path, diff in answer.detailedDiff.items()
    }
    assert kinds == {"size": "UPDATE_REPLACE", "look.color": "UPDATE"}
    assert list(answer.diffs) == ["look", "size"]


def test_equal_inputs_are_no_diff(client: Any) -> None:
    same = struct({"size": 1})
    answer = client.Diff(pb.DiffRequest(urn=URN, id="box-1", old_inputs=same, olds=same, news=same))
    assert answer.changes == pb.DiffResponse.DIFF_NONE


def test_an_object_that_was_made_but_is_not_ready_is_kept_with_its_state_and_the_reasons(
    client: Any,
) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        create(client, kind="broken")
    failed: Any = caught.value
    status = status_pb2.Status.FromString(
        dict(failed.trailing_metadata())["grpc-status-details-bin"]
    )
    detail = pb.ErrorResourceInitFailed()
    assert status.details[0].Unpack(detail)
    assert (detail.id, list(detail.reasons)) == ("box-1", ["the lid is missing", "so is the floor"])
    assert plain(detail.properties) == {"half": True}


def test_a_refusal_is_shown_without_a_traceback_and_names_what_is_not_implemented(
    client: Any,
) -> None:
    with pytest.raises(
        grpc.RpcError, match="this toy plugin does not delete toy:index:Box"
    ) as caught:
        client.Delete(pb.DeleteRequest(urn=URN, id="box-1"))
    assert "Traceback" not in str(caught.value)


def test_an_interrupt_ends_a_waiting_create_at_once(client: Any) -> None:
    waiting = client.Create.future(pb.CreateRequest(urn=URN, properties=struct({"kind": "slow"})))
    time.sleep(0.2)
    client.Cancel(empty_pb2.Empty())
    with pytest.raises(grpc.RpcError, match="interrupted while waiting: the box"):
        waiting.result(timeout=PATIENCE)


def test_a_wait_ends_at_the_timeout_the_program_gives() -> None:
    with pytest.raises(Refused, match="timeout while waiting for the box"):
        Call(urn=URN, timeout=0.1).until(lambda: False, default=60, what="the box", every=0.05)


def test_an_object_that_is_gone_is_read_as_nothing_and_a_found_one_may_have_another_id(
    client: Any,
) -> None:
    assert client.Read(pb.ReadRequest(urn=URN, id="gone")).id == ""
    found = client.Read(pb.ReadRequest(urn=URN, id="asked-for"))
    assert (found.id, plain(found.inputs)) == ("lasting", {"kind": "found"})


def test_the_engine_is_asked_to_keep_secrets_itself(client: Any) -> None:
    answer = client.Configure(
        pb.ConfigureRequest(args=struct({"token": {SIGNATURE: SECRET, "value": "x"}}))
    )
    assert answer.supportsPreview
    assert not answer.acceptSecrets


def test_a_plugin_leaves_when_its_engine_is_killed() -> None:
    plugin = (
        "from rehearsal.providers.plugin import Plugin\n"
        "from rehearsal.providers.protocol import serve\nclass T(Plugin): name, version = 't',"
        " '1'\nserve(T())"
    )
    engine = (
        f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {plugin!r}]);"
        "print('plugin', p.pid, flush=True); p.wait()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", engine], stdout=subprocess.PIPE, text=True, cwd=paths.HOME
    )
    assert parent.stdout
    said = [parent.stdout.readline().split() for _ in range(2)]
    pid = next(int(words[1]) for words in said if words[0] == "plugin")
    parent.kill()
    parent.wait()
    assert until(lambda: not _alive(pid)), "the plugin outlives its engine"


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False
