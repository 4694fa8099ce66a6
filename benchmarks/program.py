"""Measures plan and components: our program beside a flat one that makes the same resources with
the same SDK, for one job, a hundred and a thousand, and for a hundred teams.

Both run against the recording engine of the tests, so that neither waits for a cloud or for a real
engine.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import CHECKOUT, in_turns, table
from trainyard import command_line

if TYPE_CHECKING:
    from tests.support.recording import Graph, Node

ME = ["-m", "benchmarks.program"]
Made = tuple[str, str, dict[str, Any], dict[str, list[str]], dict[str, Any]]
"""Type, name and inputs of a resource, those that it refers to by input, and its options."""
ESTATES = ("--jobs=1", "--jobs=100", "--jobs=1000", "--teams=100")
"""Of the dev file's environment: its job, so many times, each with checkpoints of its own; or no job
and so many teams."""


def main(arguments: list[str]) -> int:
    """All measurements, each in processes of this module; or one of those processes; 0."""
    parser = command_line.parser(
        "benchmarks.program", "Measure what plan and components cost beside a flat program."
    )
    parser.add_argument(
        "program",
        nargs="?",
        choices=("ours", "write", "flat", "imports"),
        metavar="PROGRAM",
        help="run one program and measure nothing: ours, flat, imports, or write for FILE",
    )
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="of write and flat: the resources"
    )
    parser.add_argument(
        "--rarely", action="store_true", help="of flat: collect garbage as seldom as ours does"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="COUNT", help="of ours and write: so many jobs"
    )
    parser.add_argument(
        "--teams", type=int, metavar="COUNT", help="of ours and write: so many teams and no job"
    )
    options = parser.parse_args(arguments)
    if (options.file is not None) != (options.program in ("write", "flat")):
        parser.error("FILE belongs to write and to flat")
    if options.rarely and options.program != "flat":
        parser.error("--rarely belongs to flat")
    match options.program:
        case "ours":
            _ours(options)
        case "write":
            _write(options.file, options)
        case "flat":
            if options.rarely:
                gc.set_threshold(20_000, 1_000)  # as __main__.py does
            _flat(options.file)
        case "imports":
            _imports()
        case _:
            for estate in ESTATES:
                _measure(estate)
    return 0


def _measure(estate: str) -> None:
    """Without the SDK in this process: a child's largest memory begins with its parent's."""
    with tempfile.TemporaryDirectory() as folder:
        resources = Path(folder) / "resources.json"
        subprocess.run(
            [sys.executable, "-W", "ignore", *ME, "write", resources, estate],
            cwd=CHECKOUT,
            check=True,
            stderr=subprocess.DEVNULL,
        )
        runs = in_turns(
            {
                "ours": [*ME, "ours", estate],
                "flat": [*ME, "flat", str(resources)],
                "flat, collecting as ours": [*ME, "flat", str(resources), "--rarely"],
                "the SDK's imports alone": [*ME, "imports"],
            }
        )
        print(
            f"program: {estate}, {len(json.loads(resources.read_text()))} resources made in a"
            f" fresh process\n{table(runs, 'flat')}\n"
        )


def _ours(estate: argparse.Namespace) -> Graph:
    from benchmarks.estate import environment_of
    from tests.support.recording import deploy

    if estate.teams:
        return deploy("dev", lambda values: values.update(environment_of(estate.teams)["config"]))
    return deploy("dev", lambda values: _times(values["trainyard:environment"], estate.jobs))


def _times(settings: dict[str, Any], jobs: int) -> None:
    """The environment's job, so many times."""
    [(name, job)] = settings["jobs"].items()
    saved = job["checkpoints"]
    settings["jobs"] |= {
        f"{name}-{number}": {**job, "checkpoints": {**saved, "directory": f"{name}-{number}"}}
        for number in range(1, jobs)
    }


def _flat(resources: Path) -> Graph:
    from tests.support.recording import configuration, record, stack_values

    return record(
        lambda: _register(json.loads(resources.read_text())),
        "dev",
        configuration(stack_values("dev")),
    )


def _write(resources: Path, estate: argparse.Namespace) -> None:
    """Resources of our program that the flat one makes, too: all but components, which only hold
    others."""
    made = _made(_ours(estate))
    resources.write_text(json.dumps(made))
    flat = _made(_flat(resources))
    assert sorted(map(_comparable, flat)) == sorted(map(_comparable, made)), (
        "not the same resources"
    )


def _made(graph: Graph) -> list[Made]:
    """Each resource with its inputs and its options."""
    return [
        (node.kind, node.name, node.inputs, _refers(graph, node), _options(graph, node))
        for node in graph.nodes.values()
        if not node.kind.startswith("trainyard:")
    ]


def _refers(graph: Graph, node: Node) -> dict[str, list[str]]:
    """Input → the resources whose outputs are in it, as "type name"."""
    told = node.options.propertyDependencies
    return {
        key: [str(graph.nodes[urn]) for urn in sorted(each.urns) if urn in graph.nodes]
        for key, each in told.items()
    }


def _options(graph: Graph, node: Node) -> dict[str, Any]:
    """Options of a resource, beside its inputs, without which `up` and destroy do not work."""
    told = node.options
    by_data = {urn for each in told.propertyDependencies.values() for urn in each.urns}
    earlier = (graph.nodes[urn] for urn in told.dependencies if urn not in by_data)
    return {
        "depends_on": sorted(f"{one.kind} {one.name}" for one in earlier),
        "ignore_changes": list(told.ignoreChanges),
        "replace_on_changes": list(told.replaceOnChanges),
        "delete_before_replace": told.deleteBeforeReplace,
        "protect": told.protect,
    }


def _comparable(made: Made) -> tuple[str, str, str]:
    """A resource as text; what a provider is given is each program's own."""
    kind, name, inputs, _, options = made
    if kind.startswith("pulumi:providers:"):
        return kind, name, ""
    # Data of one program may be an edge of the other: a list of edges differs where both have one.
    told = {**options, "depends_on": []}
    return kind, name, json.dumps([inputs, told], sort_keys=True)


def _register(resources: list[Made]) -> None:
    """The program that somebody would write without a plan: one typed constructor call for each
    resource, which names those before it."""
    import pulumi
    import pulumi_aws as aws
    import pulumi_kubernetes as k8s

    account = aws.Provider("aws", region="ap-northeast-2")
    cluster = k8s.Provider("cluster", kubeconfig="{}")
    outputs: dict[str, dict[str, Any]] = {}
    before: dict[str, pulumi.Resource] = {}
    for kind, name, inputs, refers, told in resources:
        if kind.startswith("pulumi:providers:"):
            continue
        arguments = {
            re.sub("(?=[A-Z])", "_", key).lower(): _referring(
                value, [one for it in refers.get(key, ()) for one in outputs.get(it, {}).items()]
            )
            for key, value in inputs.items()
        }
        constructor = _class(kind, inputs)
        if constructor is not k8s.apiextensions.CustomResource and kind.startswith("kubernetes:"):
            arguments = {key: arguments[key] for key in arguments.keys() - {"api_version", "kind"}}
        options: dict[str, Any] = {**told, "depends_on": [before[it] for it in told["depends_on"]]}
        if kind.startswith("eks:"):
            options["providers"] = [account]
        else:
            options["provider"] = cluster if kind.startswith("kubernetes:") else account
        made = before[f"{kind} {name}"] = constructor(
            name, **arguments, opts=pulumi.ResourceOptions(**options)
        )
        outputs[f"{kind} {name}"] = _outputs(kind, name, inputs, made)


def _outputs(kind: str, name: str, inputs: dict[str, Any], made: Any) -> dict[str, Any]:
    """Text in another resource's input → the output of this one that it comes from."""
    from tests.support.recording import computed, identifier

    if kind.startswith("eks:"):
        return {inputs["name"]: made.eks_cluster.name}
    if kind.startswith("aws:"):
        named = {inputs["name"]: made.name} if "name" in inputs else {}
        return {
            identifier(name): made.id,
            computed(kind, name)["arn"]: getattr(made, "arn", None),
        } | named
    named = inputs.get("metadata", {}).get("name")
    return {named: made.metadata["name"]} if named else {}


def _referring(value: Any, outputs: list[tuple[str, Any]]) -> Any:
    """An input with another resource's output where ours has one: `vpc_id=vpc.id`."""
    if isinstance(value, dict):
        return {key: _referring(each, outputs) for key, each in value.items()}
    if isinstance(value, list):
        return [_referring(each, outputs) for each in value]
    for text, output in outputs if isinstance(value, str) else ():
        if text == value:
            return output
        if text in value:
            return output.apply(lambda found, text=text: value.replace(text, found))
    return value


def _class(kind: str, inputs: dict[str, Any]) -> Any:
    """The SDK's class of a type token. That of custom resources demands a spec."""
    package, module, name = kind.split(":")
    sdk = importlib.import_module(f"pulumi_{package}")
    if package == "eks":
        return getattr(sdk, name)
    if package == "aws":
        return getattr(getattr(sdk, module.partition("/")[0]), name)
    group, version = module.split("/")
    if hasattr(sdk, group := group.partition(".")[0]):
        return getattr(importlib.import_module(f"pulumi_kubernetes.{group}.{version}"), name)
    if "spec" in inputs:
        return sdk.apiextensions.CustomResource
    any_kind = importlib.import_module("pulumi").CustomResource
    return lambda name, opts, **_: any_kind(kind, name, inputs, opts)


def _imports() -> None:
    for name in (
        "tests.support.recording",
        "pulumi_aws.ec2",
        "pulumi_aws.eks",
        "pulumi_aws.iam",
        "pulumi_aws.fsx",
        "pulumi_aws.vpc",
        "pulumi_aws.efs",
        "pulumi_aws.sqs",
        "pulumi_eks",
        "pulumi_kubernetes.core.v1",
        "pulumi_kubernetes.helm.v3",
        "pulumi_kubernetes.apiextensions",
    ):
        importlib.import_module(name)


if __name__ == "__main__":
    command_line.run(main)
