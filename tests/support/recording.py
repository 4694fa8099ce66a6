"""A recording engine: it runs the real __main__.py and keeps every registration, with inputs,
options and edges."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import json
import logging
import os
import random
import runpy
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ["PULUMI_ERROR_OUTPUT_STRING"] = (
    "true"  # an Output in an f-string is a bug, not an essay in a name
)

import pulumi
import yaml
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime import mocks, rpc, settings
from pulumi.runtime.proto import callback_pb2, resource_pb2
from pulumi.runtime.stack import run_in_stack
from pulumi.runtime.sync_await import _sync_await

from stacks.engine import OF_A_STACK
from trainyard.replacing.deployed import Deployed

# A refusal inside an apply reaches the test as an exception; asyncio would tell it again for each
# waiting resource.
logging.getLogger("asyncio").setLevel(logging.CRITICAL)

CHECKOUT = Path(__file__).resolve().parents[2]
WORKLOADS = CHECKOUT / "tests" / "workloads"
"""Jobs and runtimes as people write them."""
SIGNATURE, REFERENCE, SECRET = (
    "4dabf18193072939515e22adb298388d",
    "5cf8f73096256a8f31e491e813e4eb8e",
    "1b47061264138c4ac30d75fd1eb44270",
)
UNKNOWN = "$unknown"
DIY = "organization"
"""Name of the one organization of every backend but Pulumi's own service (pulumi 3.259,
pkg/backend/diy/state.go)."""
NOTHING = Deployed()
Changes = Callable[[dict[str, Any]], object]
Lookup = Callable[[str, dict[str, Any]], dict[str, Any]]
"""(token, arguments) of a look-up → its answer."""
Maker = Callable[[str, str, dict[str, Any]], tuple[str, dict[str, Any]]]
"""(type, name, inputs) of a resource → its id and what the cloud adds to its inputs."""


@dataclass
class Node:
    """One registered resource."""

    kind: str
    name: str
    urn: str
    inputs: dict[str, Any]
    options: Any
    needs: set[str] = field(default_factory=set)
    """URNs it depends on: by data, by depends_on, by provider."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def explicit(self) -> set[str]:
        """URNs that it waits for although no input of it has data of them: those of depends_on."""
        told = self.options.propertyDependencies.values()
        return {*self.options.dependencies} - {urn for each in told for urn in each.urns}

    @property
    def id(self) -> str:
        """Id that the engine answers, and by which others refer to the resource."""
        return identifier(self.name)


@dataclass
class Graph:
    """Everything a program registered."""

    nodes: dict[str, Node] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    registered: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """URN of each component that has registered its outputs → these."""
    transforms: dict[str, pulumi.ResourceTransform] = field(default_factory=dict)
    """By the token that the engine calls it by."""

    def __getitem__(self, label: str) -> Node:
        """The one resource that a label names: graph["Addon coredns"]."""
        return self.one(*label.split())

    def of(self, kind: str) -> list[Node]:
        """Resources of a type: the whole token, or what follows its last colon, then without our
        own components."""
        found = (
            n
            for n in self.nodes.values()
            if kind == n.kind
            or (kind == n.kind.rpartition(":")[2] and not n.kind.startswith("trainyard:"))
        )
        return sorted(found, key=lambda n: n.name)

    def one(self, kind: str, name: str) -> Node:
        found = [n for n in self.of(kind) if n.name == name]
        assert len(found) == 1, f"{kind} {name}: {[n.name for n in self.of(kind)]}"
        return found[0]

    def starting(self, prefix: str) -> list[Node]:
        """Resources whose type begins with a prefix, such as "aws:"."""
        return sorted((n for n in self.nodes.values() if n.kind.startswith(prefix)), key=str)

    def before(self, later: Node) -> set[str]:
        """Resources that must exist before `later`, directly or through others, as "type name"; a
        component stands for its children."""
        seen: set[str] = set()
        queue = [later.urn]
        while queue:
            for urn in self.nodes[queue.pop()].needs:
                for found in [urn, *self._children(urn)]:
                    if found in self.nodes and found not in seen:
                        seen.add(found)
                        queue.append(found)
        return {str(self.nodes[urn]) for urn in seen}

    def waits_for(self, later: Node, earlier: Node) -> bool:
        return str(earlier) in self.before(later)

    def inside(self, component: Node, type_: str, props: dict[str, Any]) -> dict[str, Any]:
        """Inputs of a resource inside a remote component, as its transforms leave them."""
        for each in component.options.transforms:
            args = pulumi.ResourceTransformArgs(
                True, type_, component.name, props, pulumi.ResourceOptions()
            )
            result: Any = self.transforms[each.token](args)
            props = dict(result.props) if result else props
        return props

    def golden(self) -> str:
        """The graph as text that does not depend on the order of registration."""
        described = sorted(
            map(self._described, self.nodes.values()), key=lambda n: (n["type"], n["name"])
        )
        return json.dumps(described, indent=1, ensure_ascii=False) + "\n"

    def _described(self, node: Node) -> dict[str, Any]:
        o = node.options
        options = {
            "protect": o.protect,
            "ignoreChanges": list(o.ignoreChanges),
            "replaceOnChanges": list(o.replaceOnChanges),
            "deleteBeforeReplace": o.deleteBeforeReplace,
            "retainOnDelete": o.retainOnDelete,
            "timeouts": {
                k: v for k in ("create", "update", "delete") if (v := getattr(o.customTimeouts, k))
            },
            "parent": self._parent(o.parent),
        }
        needs = sorted(str(self.nodes[n]) for n in node.needs if n in self.nodes)
        return {
            "type": node.kind,
            "name": node.name,
            **{k: v for k, v in options.items() if v},
            "inputs": readable(node.inputs),
            "needs": needs,
        }

    def _parent(self, urn: str) -> str:
        return str(self.nodes[urn]) if urn in self.nodes else ""

    def _children(self, urn: str) -> Iterable[str]:
        if not urn.split("::")[2].rpartition("$")[2].startswith("trainyard:"):
            return []
        return [n.urn for n in self.nodes.values() if n.options.parent == urn]


class RecordingMonitor(mocks.MockMonitor):
    """The engine's side of a program run: answers with plausible outputs, refuses every look-up."""

    def __init__(
        self,
        references: dict[str, Any],
        parameters: dict[str, str],
        vpc: Lookup | None,
        *,
        preview: bool,
        jitter: random.Random | None,
        deployed: Deployed = NOTHING,
        maker: Maker | None = None,
        region: str = "",
    ) -> None:
        super().__init__(NoLookups(parameters, vpc, deployed, region))
        self._maker = maker or _pretend
        self.graph, self._lock, self._references = Graph(), threading.Lock(), references
        self._preview, self._jitter, self._vpc = preview, jitter, vpc
        self._hooks: dict[str, pulumi.ResourceHook] = {}

    def register_resource_hook(self, hook: pulumi.ResourceHook) -> None:
        """In the place of the callbacks that the engine would reach by gRPC."""
        assert hook.name not in self._hooks, f"two hooks are called {hook.name}"
        self._hooks[hook.name] = hook

    def register_transform(self, transform: pulumi.ResourceTransform) -> callback_pb2.Callback:
        token = str(len(self.graph.transforms))
        self.graph.transforms[token] = transform
        return callback_pb2.Callback(token=token)

    def _before_create(self, request: Any, urn: str) -> None:
        for hook in (self._hooks[name] for name in request.hooks.before_create):
            if not self._preview or hook.opts and hook.opts.on_dry_run:
                began = hook(
                    pulumi.ResourceHookArgs(urn=urn, id="", name=request.name, type=request.type)
                )
                if inspect.iscoroutine(began):
                    began.close()  # it would wait for a cluster

    def RegisterResource(self, request: Any) -> resource_pb2.RegisterResourceResponse:
        urn = self.make_urn(request.parent, request.type, request.name)
        if request.type == "pulumi:pulumi:Stack":
            return resource_pb2.RegisterResourceResponse(urn=urn)
        if self._jitter:
            time.sleep(self._jitter.random() / 100)
        inputs = {key: plain(value) for key, value in request.object.fields.items()}
        needs = set(request.dependencies) | {
            urn for p in request.propertyDependencies.values() for urn in p.urns
        }
        needs |= {request.provider.rpartition("::")[0]} if request.provider else set()
        with self._lock:
            assert urn not in self.graph.nodes, f"two resources are called {urn}"
            self.graph.nodes[urn] = Node(request.type, request.name, urn, inputs, request, needs)
        self._before_create(request, urn)
        answer = struct_pb2.Struct()
        answer.CopyFrom(request.object)
        if self._preview:  # ids and what the cloud adds are not known yet
            return resource_pb2.RegisterResourceResponse(urn=urn, object=answer)
        found, made = self._maker(request.type, request.name, inputs)
        if request.type == "eks:index:Cluster":
            made["eksCluster"] = self._control_plane(urn, request.name, inputs, made)
        answer.update(made)
        found = found if request.custom else ""
        self.resources[urn] = self.ResourceRegistration(urn, found, {**inputs, **made})
        return resource_pb2.RegisterResourceResponse(urn=urn, id=found, object=answer)

    def Invoke(self, request: Any) -> resource_pb2.ResourceInvokeResponse:
        """As the engine: whoever accepts no references to resources gets their ids."""
        answer = super().Invoke(request)
        if not request.acceptResources:
            _without_references(getattr(answer, "return"))
        return answer

    def RegisterResourceOutputs(self, request: Any) -> empty_pb2.Empty:
        outputs = {key: plain(value) for key, value in request.outputs.fields.items()}
        self.graph.registered[request.urn] = outputs
        if request.urn.split("::")[2] == "pulumi:pulumi:Stack":
            self.graph.outputs = outputs
        return empty_pb2.Empty()

    def ReadResource(self, request: Any) -> resource_pb2.ReadResourceResponse:
        """A stack reference; KeyError for a stack that this test does not know. Or a resource of AWS
        that is not the stack's, which answers look-ups as an existing VPC does."""
        answer = struct_pb2.Struct()
        if request.type.startswith("aws:"):
            assert self._vpc and request.provider, (
                f"the program reads {request.type} {request.name}"
            )
            answer.update(self._vpc(f"read:{request.type}", {"id": request.id}))
            urn = self.make_urn(request.parent, request.type, request.name)
            self.resources[urn] = self.ResourceRegistration(urn, request.id, {})
            return resource_pb2.ReadResourceResponse(urn=urn, properties=answer)
        answer.update(
            {"name": request.id, "outputs": self._references[request.id], "secretOutputNames": []}
        )
        urn = self.make_urn(request.parent, request.type, request.name)
        with self._lock:
            options = resource_pb2.RegisterResourceRequest(parent=request.parent)
            self.graph.nodes[urn] = Node(
                request.type, request.name, urn, {"name": request.id}, options
            )
        return resource_pb2.ReadResourceResponse(urn=urn, properties=answer)

    def _control_plane(
        self, parent: str, name: str, inputs: dict[str, Any], made: dict[str, Any]
    ) -> dict[str, Any]:
        """The cluster inside the remote component, as a reference that the program follows."""
        urn = self.make_urn(parent, "aws:eks/cluster:Cluster", f"{name}-eksCluster")
        state = made.pop("eksCluster", None) or {
            "name": inputs["name"],
            "arn": f"arn:aws:eks:::cluster/{inputs['name']}",
            "endpoint": "https://cluster",
            "certificateAuthority": {"data": "Y2E="},
        }
        self.resources[urn] = self.ResourceRegistration(urn, inputs["name"], state)
        return {SIGNATURE: REFERENCE, "urn": urn, "id": inputs["name"], "packageVersion": ""}


def _without_references(struct: struct_pb2.Struct) -> None:
    for value in struct.fields.values():
        inside = value.struct_value
        if SIGNATURE in inside.fields:
            value.string_value = inside.fields["id"].string_value
        else:
            _without_references(inside)


CHILD = "urn:pulumi:dev::trainyard::eks:index:Cluster$aws:eks/cluster:Cluster::cluster-eksCluster"
CLUSTER = {
    "urn:pulumi:dev::trainyard::eks:index:Cluster::cluster": {
        "type": "eks:index:Cluster",
        "outputs": {"eksCluster": {SIGNATURE: REFERENCE, "urn": CHILD, "id": ""}},
    }
}
"""Reference to a resource that pulumi-eks leaves in the state of every environment."""


BUCKET = "aws:s3/getBucket:getBucket"


ENTRANTS = {
    "aws:index/getCallerIdentity:getCallerIdentity": {"accountId": "123456789012"},
    "aws:iam/getRole:getRole": {"arn": ""},
}
"""Answers about roles that enter a cluster: all are there."""


class NoLookups(pulumi.runtime.Mocks):
    """The only look-ups of the program are those of what is deployed, of a listed team's contract, of
    buckets and of roles that enter, which are all there, and of an existing VPC. Each of AWS names its
    provider: without one it asks whatever account and region the shell has."""

    def __init__(
        self,
        parameters: dict[str, str] | None = None,
        vpc: Lookup | None = None,
        deployed: Deployed = NOTHING,
        region: str = "",
    ) -> None:
        self.parameters, self.vpc, self.deployed = parameters or {}, vpc, deployed
        self.region = region

    def new_resource(self, args: Any) -> tuple[str, dict[str, Any]]:
        raise AssertionError("the recording monitor answers registrations itself")

    def call(self, args: Any) -> Any:
        if args.token == OF_A_STACK:
            held = {
                f"urn:pulumi:dev::trainyard::{kind}::{name}": {
                    "type": kind.rpartition("$")[2],
                    "outputs": outputs,
                }
                for (kind, name), outputs in self.deployed.resources.items()
            }
            return {"outputs": held | (CLUSTER if held else {})}
        assert args.provider, f"{args.token} names no provider"
        if args.token == "aws:ssm/getParameter:getParameter" and self.parameters:
            name = args.args["name"]
            if name not in self.parameters:
                return {}, [("name", f"reading SSM Parameter ({name}): couldn't find resource")]
            return {**args.args, "insecureValue": self.parameters[name]}
        if self.vpc:
            return self.vpc(args.token, args.args)
        if args.token in ENTRANTS:
            return {**args.args, **ENTRANTS[args.token]}
        if args.token == BUCKET:
            return {**args.args, "bucketRegion": self.region}
        raise AssertionError(f"the program looks something up: {args.token}")


def deploy(
    stack: str = "dev",
    changes: Changes | None = None,
    *,
    references: dict[str, Any] | None = None,
    preview: bool = False,
    jitter: random.Random | None = None,
    organization: str = DIY,
    parameters: dict[str, str] | None = None,
    vpc: Lookup | None = None,
    folder: Path = CHECKOUT,
    deployed: Deployed = NOTHING,
    maker: Maker | None = None,
) -> Graph:
    """Run __main__.py as the engine would. `changes` edits the configuration, `references` are the
    outputs of other stacks by their full name, `jitter` answers registrations in another order,
    `organization` is the one that the backend names, `parameters` are those of SSM, `vpc` answers
    look-ups of an existing one, `folder` has the stack files, `deployed` is what an earlier run left. `maker` makes
    resources in the place of the pretended cloud."""
    values = stack_values(stack, folder)
    if changes:
        changes(values)
    program = str(CHECKOUT / "__main__.py")
    return record(
        lambda: runpy.run_path(program),
        stack,
        configuration(values),
        references or {},
        preview,
        jitter,
        organization,
        parameters or {},
        vpc,
        folder,
        deployed,
        maker,
    )


def record(
    program: Callable[[], object],
    stack: str,
    values: dict[str, str],
    references: dict[str, Any] | None = None,
    preview: bool = False,
    jitter: random.Random | None = None,
    organization: str = DIY,
    parameters: dict[str, str] | None = None,
    vpc: Lookup | None = None,
    folder: Path = CHECKOUT,
    deployed: Deployed = NOTHING,
    maker: Maker | None = None,
) -> Graph:
    """Run any program in the checkout, with a configuration as the engine hands it over."""
    monitor = RecordingMonitor(
        references or {},
        parameters or {},
        vpc,
        preview=preview,
        jitter=jitter,
        deployed=deployed,
        maker=maker,
        region=values.get("aws:region", ""),
    )
    settings.ROOT.set(None)  # of an earlier run
    pulumi.runtime.set_mocks(
        NoLookups(),
        project="trainyard",
        stack=stack,
        preview=preview,
        monitor=monitor,
        organization=organization,
    )
    pulumi.runtime.set_all_config(values)
    settings.ROOT.set(None)  # run_in_stack makes its own
    engine: Any = settings.SETTINGS
    engine.outputs.clear()  # what a refused run left unfinished
    engine.callbacks = monitor
    with contextlib.chdir(folder):
        _sync_await(run_in_stack(lambda: (program(), None)[1]))
    return monitor.graph


def configuration(values: dict[str, Any]) -> dict[str, str]:
    """Configuration as the engine hands it over: objects as JSON text, their keys in order."""
    return {
        k: v if isinstance(v, str) else json.dumps(v, sort_keys=True) for k, v in values.items()
    }


def stack_values(stack: str, folder: Path = CHECKOUT) -> dict[str, Any]:
    """The `config:` of a stack file."""
    return copy.deepcopy(_values((folder / f"Pulumi.{stack}.yaml").read_text()))


@functools.cache
def _values(text: str) -> dict[str, Any]:
    """Read once: thousands of tests change a few lines of the same two files."""
    return yaml.load(text, yaml.CSafeLoader)["config"]


def write_stack(stack: str, folder: Path, values: dict[str, Any]) -> None:
    """The stack file of these `config:`."""
    text = yaml.dump({"config": values}, Dumper=yaml.CSafeDumper, sort_keys=False)
    (folder / f"Pulumi.{stack}.yaml").write_text(text)


def plain(value: Any) -> Any:
    """A protobuf value as JSON; references, secrets and unknowns stay visible."""
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        found = {key: plain(inner) for key, inner in value.struct_value.fields.items()}
        if found.get(SIGNATURE) == REFERENCE:
            return {"$ref": found["urn"]}
        return {"$secret": found["value"]} if found.get(SIGNATURE) == SECRET else found
    if kind == "list_value":
        return [plain(item) for item in value.list_value.values]
    if kind == "number_value":
        return int(value.number_value) if value.number_value.is_integer() else value.number_value
    if kind in (None, "null_value"):
        return None
    return UNKNOWN if getattr(value, kind) == rpc.UNKNOWN else getattr(value, kind)


def readable(value: Any) -> Any:
    """Keys in order, and documents inside texts as what they are, so that a diff shows what changed
    in them."""
    if isinstance(value, dict):
        return {key: readable(inner) for key, inner in sorted(value.items())}
    if isinstance(value, list):
        return [readable(item) for item in value]
    if isinstance(value, str) and value.startswith("{"):
        return {"$json": json.loads(value)}
    return {"$lines": value.splitlines()} if isinstance(value, str) and "\n" in value else value


def identifier(name: str) -> str:
    return f"{name}-id"


def _pretend(kind: str, name: str, inputs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return identifier(name), computed(kind, name)


def computed(kind: str, name: str) -> dict[str, Any]:
    """Outputs that AWS and Kubernetes would add to the inputs, as far as the program reads them."""
    table: dict[str, dict[str, Any]] = {
        "eks:index:Cluster": {"clusterSecurityGroupId": "sg-cluster"},
        "aws:amp/workspace:Workspace": {
            "arn": f"arn:aws:aps:ap-northeast-2:111122223333:workspace/{name}",
            "prometheusEndpoint": f"https://aps-workspaces/workspaces/{name}/",
        },
        "aws:cloudwatch/logGroup:LogGroup": {
            "arn": f"arn:aws:logs:ap-northeast-2:111122223333:log-group:{name}"
        },
        "aws:ec2/launchTemplate:LaunchTemplate": {"latestVersion": 1},
        "aws:efs/fileSystem:FileSystem": {
            "arn": f"arn:aws:elasticfilesystem:ap-northeast-2:111122223333:file-system/{name}"
        },
        "aws:fsx/lustreFileSystem:LustreFileSystem": {"dnsName": f"{name}.fsx", "mountName": "mnt"},
        "aws:ec2/vpc:Vpc": {"ownerId": "111122223333"},
        "aws:sqs/queue:Queue": {"url": f"https://sqs/{name}"},
    }
    arn = (
        {"arn": f"arn:aws:{kind.split(':')[1].split('/')[0]}:::{name}"}
        if kind.startswith("aws:")
        else {}
    )
    return {**arn, **table.get(kind, {})}
