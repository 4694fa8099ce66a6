"""The chart of the training-operator beside upstream's manifests, and the components in the graph."""

from __future__ import annotations

import subprocess
from typing import Any

import pulumi
import pytest
import yaml

from components.plans import ChartPlan, Spec, TrainingOperatorPlan
from components.training_operator import NAMESPACE, TrainingOperator
from rehearsal import paths
from rehearsal.nodes import images
from rehearsal.toolchain.programs import pinned, wanted
from tests import crds
from tests.recording import CHECKOUT, Graph, record

CHART = "components/charts/training-operator"
MODULE = "github.com/kubeflow/training-operator"
UPSTREAM = f"{MODULE}@v1.8.1/manifests"
CRD = f"{UPSTREAM}/base/crds/kubeflow.org_pytorchjobs.yaml"
Rule = tuple[str, str, str]


@pytest.fixture(scope="module")
def objects() -> dict[str, Any]:
    """Kind → object, as Helm would install the chart."""
    if not (paths.BIN / "helm").exists():
        pytest.skip("the toolchain was never built here")
    command = [str(paths.BIN / "helm"), "template", "training-operator", CHART, f"--namespace={NAMESPACE}"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {o["kind"]: o for o in yaml.load_all(done.stdout, yaml.CSafeLoader) if o}


def upstream(*files: str) -> list[Any]:
    return [o for f in files for o in yaml.load_all(crds.upstream(f"{UPSTREAM}/{f}").read_text(), yaml.CSafeLoader)]


def container(objects: dict[str, Any]) -> Spec:
    [found] = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    return found


def rules(role: Spec) -> set[Rule]:
    """(group, resource, verb), one each."""
    return {(group, resource, verb) for rule in role["rules"] for group in rule["apiGroups"]
            for resource in rule["resources"] for verb in rule["verbs"]}


def test_the_crd_is_upstreams_byte_for_byte_and_no_uninstall_deletes_it(objects: dict[str, Any]) -> None:
    theirs = crds.upstream(CRD)
    assert (CHECKOUT / CHART / "files" / theirs.name).read_bytes() == theirs.read_bytes()
    [expected], installed = upstream("base/crds/kubeflow.org_pytorchjobs.yaml"), objects["CustomResourceDefinition"]
    assert installed["metadata"]["annotations"].pop("helm.sh/resource-policy") == "keep"
    assert installed == expected
    assert not (CHECKOUT / CHART / "crds").exists()  # where Helm would never upgrade it


def test_image_and_version_are_the_release_of_the_pinned_module(objects: dict[str, Any]) -> None:
    [image] = upstream("overlays/standalone/kustomization.yaml")[0]["images"]
    assert container(objects)["image"] == f"docker.io/{image['name']}:{image['newTag']}"
    about = yaml.safe_load((CHECKOUT / CHART / "Chart.yaml").read_text())
    assert about["version"] == pinned("training-operator", MODULE).removeprefix("v") == "1.8.1"


def test_the_rehearsal_runs_that_image_where_a_stack_asks_for_it(objects: dict[str, Any]) -> None:
    program = images.program(container(objects)["image"])
    assert program and (program.binary, program.entrypoint) == ("training-operator", "/manager")
    assert "training-operator" in wanted({"training_operator": {"version": "1.8.1"}})
    assert "training-operator" not in wanted({})


def test_the_operator_may_do_nothing_that_upstreams_may_not_and_reads_secrets_of_its_own_namespace_only(
        objects: dict[str, Any]) -> None:
    [theirs] = upstream("base/rbac/role.yaml")
    cluster, own = rules(objects["ClusterRole"]), rules(objects["Role"])
    assert cluster | own <= rules(theirs)
    assert {group for group, _, _ in cluster} == {
        "kubeflow.org", "", "autoscaling", "scheduling.volcano.sh", "scheduling.x-k8s.io",
        "admissionregistration.k8s.io"}
    assert {r.partition("/")[0] for g, r, _ in cluster if g == "kubeflow.org"} == {"pytorchjobs"}
    assert {r for _, r, _ in own} == {"secrets"} and "secrets" not in {r for _, r, _ in cluster}
    written = [rule.get("resourceNames") for role in ("ClusterRole", "Role") for rule in objects[role]["rules"]
               if rule["verbs"] == ["update"] and "/" not in rule["resources"][0]]
    assert written == [["validator.training-operator.kubeflow.org"], ["training-operator-webhook-cert"]]


def test_what_the_certificate_rotator_fills_no_upgrade_of_the_chart_names(objects: dict[str, Any]) -> None:
    assert objects["Secret"]["metadata"]["name"] == "training-operator-webhook-cert"
    assert not {"data", "stringData"} & objects["Secret"].keys()
    [hook] = objects["ValidatingWebhookConfiguration"]["webhooks"]
    assert "caBundle" not in hook["clientConfig"]


def test_the_webhook_is_upstreams_for_pytorch_jobs(objects: dict[str, Any]) -> None:
    config = objects["ValidatingWebhookConfiguration"]
    [hook], patches = config["webhooks"], upstream("base/webhook/patch.yaml")[0]
    assert config["metadata"]["name"] == patches[-1]["value"]  # the rotator looks for it by this name
    [theirs] = [h for h in upstream("base/webhook/manifests.yaml")[0]["webhooks"] if "pytorch" in h["name"]]
    theirs["clientConfig"]["service"] |= {"name": patches[0]["value"], "namespace": NAMESPACE}
    assert hook == theirs
    service = objects["Service"]
    assert (service["metadata"]["name"], service["metadata"]["namespace"]) == ("training-operator", NAMESPACE)


def test_the_deployment_is_upstreams_for_pytorch_jobs_and_never_runs_twice(objects: dict[str, Any]) -> None:
    ours, theirs = objects["Deployment"]["spec"], upstream("base/deployment.yaml")[0]["spec"]
    assert ours["strategy"] == {"type": "Recreate"} and ours["replicas"] == 1
    assert "--enable-scheme=pytorchjob" in container(objects)["args"]
    same = ("command", "livenessProbe", "readinessProbe", "volumeMounts")
    [expected] = theirs["template"]["spec"]["containers"]
    assert {key: container(objects)[key] for key in same} == {key: expected[key] for key in same}
    assert ours["selector"]["matchLabels"] == ours["template"]["metadata"]["labels"] == theirs["selector"][
        "matchLabels"] == objects["Service"]["spec"]["selector"]


# In the graph.

@pytest.fixture(scope="module")
def graph() -> Graph:
    plan = TrainingOperatorPlan(version="1.8.1", chart=ChartPlan(chart=f"./{CHART}"))

    def program() -> None:
        system = pulumi.ComponentResource("test:Nodes", "system")
        TrainingOperator("training-operator", plan, nodes=[system])

    return record(program, "dev", {})


def test_the_operator_is_a_release_of_the_chart_in_the_checkout_after_the_system_nodes(graph: Graph) -> None:
    [release] = graph.of("Release")
    assert release.inputs["chart"] == f"./{CHART}" and release.inputs["namespace"] == NAMESPACE
    assert release.inputs["createNamespace"] and "version" not in release.inputs
    assert (CHECKOUT / release.inputs["chart"] / "Chart.yaml").exists()

