"""`trainyard check --policies`: judge a stack file by the policies, without the engine, a cluster or an
account.

The program runs as in `pulumi up`, but the answers of AWS are invented: here for what the stack creates,
in policy_pack/account.py for existing resources, such as a VPC.
"""

from __future__ import annotations

import json
import logging
import runpy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pulumi
from google.protobuf import json_format, struct_pb2
from pulumi.runtime import mocks, settings
from pulumi.runtime.proto import callback_pb2, resource_pb2
from pulumi.runtime.rpc import _special_resource_sig, _special_sig_key
from pulumi.runtime.stack import run_in_stack
from pulumi.runtime.sync_await import _sync_await
from pulumi_policy.deserialize import deserialize_properties

from policy_pack.account import NOT_THERE, AsksAnAccount, InventedAccount, NotThere
from policy_pack.configured import CHECKOUT, CONFIG, DISABLED, MANDATORY, chosen, sound
from policy_pack.kinds import CLUSTER
from policy_pack.policies import RULES
from policy_pack.resource import Resource, Rule, default_tags
from trainyard.catalog.scalars import as_engine_time
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.reports.stack_file import HAS_ERRORS, report_on
from trainyard.settings.reading.files import text_of
from trainyard.settings.reading.reader import Reading
from trainyard.settings.reading.yaml_file import read_documents

OF_EKS, PROVIDER = "eks:index:Cluster", "pulumi:providers:aws"
VIOLATED = 1
MADE_OF = ("endpointPublicAccess", "publicAccessCidrs")


class Shown(mocks.MockMonitor):
    """Resources that the engine would show to the policies."""

    def __init__(self, account: InventedAccount) -> None:
        super().__init__(_Answers(account))
        self._account = account
        self.shown: list[Resource] = []
        self._tags: Mapping[str, str] = {}
        self._transforms: dict[str, pulumi.ResourceTransform] = {}

    def RegisterResource(self, request: Any) -> resource_pb2.RegisterResourceResponse:
        urn = self.make_urn(request.parent, request.type, request.name)
        props = _as_shown(request.object)
        needs = [urn for one in request.propertyDependencies.values() for urn in one.urns]
        answer = struct_pb2.Struct()
        answer.CopyFrom(request.object)
        if request.type == PROVIDER:
            self._tags = default_tags(props)
        elif request.custom or request.type == OF_EKS:
            resource = _shown(request, urn, props, frozenset(needs), self._tags)
            self.shown.append(self._transformed(request, resource))
            answer.update(self._made_up(request, urn))
        id_ = f"{request.name}-id" if request.custom else ""
        self.resources[urn] = self.ResourceRegistration(urn, id_, {})
        return resource_pb2.RegisterResourceResponse(urn=urn, id=id_, object=answer)

    def _transformed(self, request: Any, resource: Resource) -> Resource:
        """A resource as the transforms leave it that the program asks for."""
        for each in request.transforms:
            asked = pulumi.ResourceTransformArgs(
                request.custom,
                resource.type,
                resource.name,
                {**resource.props},
                pulumi.ResourceOptions(),
            )
            result: Any = self._transforms[each.token](asked)
            resource = replace(resource, props=result.props) if result else resource
        return resource

    def _made_up(self, request: Any, urn: str) -> dict[str, Any]:
        """Outputs that AWS would add, as far as the program takes them apart."""
        name = request.name
        if request.type == OF_EKS:
            inner = self.make_urn(urn, CLUSTER, f"{name}-eksCluster")
            state = {
                "name": name,
                "arn": f"arn:aws:eks::{self._account.id}:cluster/{name}",
                "endpoint": "https://cluster",
                "certificateAuthority": {"data": ""},
            }
            self.resources[inner] = self.ResourceRegistration(inner, name, state)
            reference = {_special_sig_key: _special_resource_sig, "urn": inner, "id": name}
            return {"eksCluster": reference | {"packageVersion": ""}}
        if request.type == "aws:ec2/launchTemplate:LaunchTemplate":
            return {"latestVersion": 1}
        service = request.type.split(":")[1].split("/")[0]
        return {"arn": f"arn:aws:{service}::{self._account.id}:{name}"}

    def ReadResource(self, request: Any) -> resource_pb2.ReadResourceResponse:
        """Keep existing resources, which are not the stack's, from the policies."""
        answer = struct_pb2.Struct()
        answer.update(self._account.read(request.type, request.id))
        urn = self.make_urn(request.parent, request.type, request.name)
        self.resources[urn] = self.ResourceRegistration(urn, request.id, {})
        return resource_pb2.ReadResourceResponse(urn=urn, properties=answer)

    def register_transform(self, transform: pulumi.ResourceTransform) -> callback_pb2.Callback:
        token = str(len(self._transforms))
        self._transforms[token] = transform
        return callback_pb2.Callback(token=token)

    def register_resource_hook(self, hook: pulumi.ResourceHook) -> None:
        """Hooks are for the engine."""


class _Answers(pulumi.runtime.Mocks):
    def __init__(self, account: InventedAccount) -> None:
        self._account = account

    def new_resource(self, args: Any) -> Any:
        raise AssertionError("Shown answers registrations itself")

    def call(self, args: Any) -> Any:
        if args.token.startswith("pulumi:"):  # what the engine holds: nothing yet
            return {"outputs": {}}
        try:
            return self._account.look_up(args.token, args.args)
        except NotThere:
            return {}, [("", NOT_THERE)]


def _as_shown(inputs: struct_pb2.Struct) -> dict[str, Any]:
    """Inputs as the engine shows them to a policy: secrets in clear, and a resource as its id."""
    return deserialize_properties(_by_id(json_format.MessageToDict(inputs)))


def _by_id(value: Any) -> Any:
    """A value in which each resource is its id, or its URN where it has none."""
    if isinstance(value, list):
        return [_by_id(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get(_special_sig_key) == _special_resource_sig:
        return value.get("id") or value["urn"]
    return {key: _by_id(item) for key, item in value.items()}


def _shown(
    request: Any, urn: str, props: dict[str, Any], needs: frozenset[str], tags: Mapping[str, str]
) -> Resource:
    """A resource. Of pulumi-eks what it makes: the engine shows that, and not what it was told.
    `tags`: those that the provider sets on everything."""
    kind = request.type
    if kind == OF_EKS:
        kind = CLUSTER
        props = {
            **props,
            "vpcConfig": {key: props[key] for key in MADE_OF if key in props},
            "encryptionConfig": {"provider": {"keyArn": props.get("encryptionConfigKeyArn")}},
        }
    return Resource(
        type=kind,
        name=request.name,
        urn=urn,
        props=props,
        protect=request.protect,
        default_tags=tags,
        needs=needs,
    )


def resources(
    stack: str, settings_: Mapping[str, str], plan: EnvironmentPlan | TeamPlan
) -> list[Resource]:
    """Resources that the program registers with these settings, whose plan is `plan`. Raises
    AsksAnAccount."""
    account = InventedAccount(plan)
    monitor = Shown(account)
    mocks.set_mocks(_Answers(account), project="trainyard", stack=stack, monitor=monitor)
    engine: Any = settings.SETTINGS
    engine.callbacks = monitor
    pulumi.runtime.set_all_config({**settings_})
    settings.ROOT.set(None)  # run_in_stack makes its own
    program = str(CHECKOUT / "__main__.py")
    _sync_await(run_in_stack(lambda: (runpy.run_path(program), None)[1]))
    return monitor.shown


def configuration(stack: str) -> dict[str, str]:
    """The configuration of a stack as the engine hands it to the program: a text for each key, JSON
    where it is no text. Its values are those that the plan was made from."""
    file = Path(f"Pulumi.{stack}.yaml")
    documents, _ = read_documents(text_of(file), file.name, by_engine=True)
    return {
        key: value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=_text)
        for key, value in documents[0].value["config"].items()
        if value is not None
    }


def _text(value: bytes | datetime) -> str:
    """Values that JSON does not have: a time, in the engine's form, and what !!binary says."""
    if isinstance(value, datetime):
        return as_engine_time(value)
    return value.decode(errors="replace")


def violations(
    found: list[Resource], configured: Mapping[str, Any]
) -> Iterator[tuple[Rule, bool, str]]:
    """(policy, whether it is mandatory, sentence) of each violation. `configured`: a configuration
    without errors."""
    names = {one.urn: one.name for one in found}
    for rule in RULES:
        level, config = chosen(rule, configured)
        if level == DISABLED:
            continue
        for urn, must in rule.stack_check(found, config) if rule.stack_check else ():
            yield rule, level == MANDATORY, f"{names[urn]}: {must}"
        for one in found:
            for must in rule.check(one, config) if rule.check else ():
                yield rule, level == MANDATORY, f"{one.name}: {must}"


def judge_by(stack: str, file: Path = CONFIG) -> int:
    """Judge a stack by a file that configures the policies, or print the errors of that file; the exit
    status."""
    configured = sound(file)
    return HAS_ERRORS if configured is None else judge(stack, configured)


def judge(stack: str, configured: Mapping[str, Any]) -> int:
    """Print the violations of a stack, or the errors of its file; the exit status."""

    def report(_: Reading, plan: EnvironmentPlan | TeamPlan) -> int:
        return _judged(stack, plan, configured)

    return report_on(stack, report)


def _judged(stack: str, plan: EnvironmentPlan | TeamPlan, configured: Mapping[str, Any]) -> int:
    logging.disable(logging.WARNING)  # `trainyard check` has printed the warnings of the program
    try:
        every = [*violations(resources(stack, configuration(stack), plan), configured)]
    except AsksAnAccount as asked:
        print(f"{stack}: not judged: policy_pack/account.py does not answer {asked}")
        return VIOLATED
    for rule, mandatory, sentence in every:
        print(
            f"  {'error  ' if mandatory else 'warning'}  {rule.name}: {sentence}. Fix: {rule.fix}"
        )
    broken = {rule.name for rule, mandatory, _ in every if mandatory}
    print(f"{stack}: violates {', '.join(sorted(broken)) or 'no policy that is mandatory'}")
    return VIOLATED if broken else 0
