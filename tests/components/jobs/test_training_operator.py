"""The chart of the training-operator beside upstream's manifests, and the components in the
graph."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
import yaml

from components.jobs.training_operator import NAMESPACE, TrainingOperator
from development.programs import wanted
from rehearsal import paths
from rehearsal.kubelet import images
from rehearsal.toolchain.programs import pinned
from tests.support import crds
from tests.support.recording import CHECKOUT, record
from trainyard.catalog import versions
from trainyard.catalog.job_kinds import MORE_KINDS
from trainyard.catalog.limits import INIT_TRIES
from trainyard.plans.controllers import ChartPlan, TrainingOperatorPlan
from trainyard.plans.jobs import Spec

CHART = "components/charts/training-operator"
MODULE = "github.com/kubeflow/training-operator"
UPSTREAM = f"{MODULE}@v1.8.1/manifests"
CRD = "CustomResourceDefinition"
MAIN = f"{MODULE}@v1.8.1/cmd/training-operator.v1/main.go"


@pytest.fixture(scope="module")
def objects() -> dict[str, Any]:
    return templated()


def templated(*words: str) -> dict[str, Any]:
    """Kind → object, as Helm would install the chart."""
    return {o["kind"]: o for o in rendered(*words)}


def rendered(*words: str) -> list[Any]:
    """Every object, as Helm would install the chart."""
    if not (paths.BIN / "helm").exists():
        pytest.skip("the toolchain was never built here")
    command = [
        str(paths.BIN / "helm"),
        "template",
        "training-operator",
        CHART,
        f"--namespace={NAMESPACE}",
        *words,
    ]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [o for o in yaml.load_all(done.stdout, yaml.CSafeLoader) if o]


def upstream(file: str) -> Any:
    return yaml.load(crds.upstream(f"{UPSTREAM}/{file}").read_text(), yaml.CSafeLoader)


def container(objects: dict[str, Any]) -> Spec:
    [found] = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    return found


def rules(role: Spec) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_the_crd_is_upstreams_byte_for_byte_and_no_uninstall_deletes_it(
    objects: dict[str, Any],
) -> None:
    theirs = crds.upstream(f"{UPSTREAM}/base/crds/kubeflow.org_pytorchjobs.yaml")
    assert (CHECKOUT / CHART / "files" / theirs.name).read_bytes() == theirs.read_bytes()
    assert (
        objects["CustomResourceDefinition"]["metadata"]["annotations"]["helm.sh/resource-policy"]
        == "keep"
    )


def test_with_more_kinds_it_is_all_of_upstreams_that_they_need() -> None:
    kinds = [kind.lower() for kind in MORE_KINDS]
    found = rendered("--set-json", f"moreKinds={json.dumps(kinds)}")
    crds_of = {o["spec"]["names"]["singular"] for o in found if o["kind"] == CRD}
    assert crds_of == {"pytorchjob", *kinds}
    for kind in kinds:
        theirs = crds.upstream(f"{UPSTREAM}/base/crds/kubeflow.org_{kind}s.yaml")
        assert (CHECKOUT / CHART / "files" / theirs.name).read_bytes() == theirs.read_bytes()
    [role] = [o for o in found if o["kind"] == "ClusterRole"]
    assert rules(role) <= rules(upstream("base/rbac/role.yaml"))
    [config] = [o for o in found if o["kind"] == "ValidatingWebhookConfiguration"]
    theirs = {
        each["name"]: each["rules"] for each in upstream("base/webhook/manifests.yaml")["webhooks"]
    }
    assert {each["name"]: each["rules"] for each in config["webhooks"]} == theirs
    [deployment] = [o for o in found if o["kind"] == "Deployment"]
    args = container({"Deployment": deployment})["args"]
    assert {f"--enable-scheme={kind}" for kind in kinds} <= {*args}
    assert f"--mpi-kubectl-delivery-image={versions.KUBECTL_DELIVERY}" in args


def test_only_mpi_jobs_give_the_operator_a_right_to_roles_and_to_pods() -> None:
    others = json.dumps([kind.lower() for kind in MORE_KINDS if kind != "MPIJob"])
    [role] = [
        o for o in rendered("--set-json", f"moreKinds={others}") if o["kind"] == "ClusterRole"
    ]
    assert not {"roles", "pods/exec", "serviceaccounts"} & {name for _, name, _ in rules(role)}


def test_image_and_version_are_the_release_of_the_pinned_module(objects: dict[str, Any]) -> None:
    [release] = upstream("overlays/standalone/kustomization.yaml")["images"]
    assert container(objects)["image"] == "docker.io/{name}:{newTag}".format(**release)
    chart = yaml.safe_load((CHECKOUT / CHART / "Chart.yaml").read_text())
    version = chart["version"].partition("+")[0]  # behind it is a number of ours
    program = images.program(container(objects)["image"])
    assert program and program.binary in wanted({"training_operator": {"version": version}})
    assert pinned(program.binary, MODULE) == f"v{version}"


def test_the_operator_may_do_nothing_that_upstreams_may_not_and_reads_secrets_of_its_own_namespace_only(
    objects: dict[str, Any],
) -> None:
    cluster, own = rules(objects["ClusterRole"]), rules(objects["Role"])
    assert cluster | own <= rules(upstream("base/rbac/role.yaml"))
    assert {r.partition("/")[0] for g, r, _ in cluster if g == "kubeflow.org"} == {"pytorchjobs"}
    assert {r for _, r, _ in own} == {"secrets"} and "secrets" not in {r for _, r, _ in cluster}


def test_the_webhook_is_upstreams_and_what_the_rotator_fills_no_upgrade_names(
    objects: dict[str, Any],
) -> None:
    assert not {"data", "stringData"} & objects["Secret"].keys()
    config = objects["ValidatingWebhookConfiguration"]
    [hook], patches = config["webhooks"], upstream("base/webhook/patch.yaml")
    assert (
        config["metadata"]["name"] == patches[-1]["value"]
    )  # the rotator looks for it by this name
    [theirs] = [
        h for h in upstream("base/webhook/manifests.yaml")["webhooks"] if "pytorch" in h["name"]
    ]
    theirs["clientConfig"]["service"] |= {"name": patches[0]["value"], "namespace": NAMESPACE}
    assert hook == theirs and "caBundle" not in hook["clientConfig"]
    assert objects["Service"]["metadata"] == {"name": "training-operator", "namespace": NAMESPACE}


def test_the_deployment_is_upstreams_for_pytorch_jobs_and_never_runs_twice(
    objects: dict[str, Any],
) -> None:
    ours, theirs = objects["Deployment"]["spec"], upstream("base/deployment.yaml")["spec"]
    assert ours["strategy"] == {"type": "Recreate"} and ours["replicas"] == 1
    assert "--enable-scheme=pytorchjob" in container(objects)["args"]
    same = ("command", "livenessProbe", "readinessProbe", "volumeMounts")
    [expected] = theirs["template"]["spec"]["containers"]
    assert {key: container(objects)[key] for key in same} == {key: expected[key] for key in same}


def test_a_worker_looks_up_its_master_as_often_as_the_chart_is_told() -> None:
    """Upstream's flag, and as a whole number: Helm makes a float of a large one."""
    rendered = templated("--set-json", f"initTries={INIT_TRIES}")
    [name] = [
        word
        for word in container(rendered)["args"]
        if word.startswith("--pytorch-init-container-max")
    ]
    assert name == f"--pytorch-init-container-max-tries={INIT_TRIES}"
    assert name.removeprefix("--").partition("=")[0] in crds.upstream(MAIN).read_text()


def test_the_operator_is_a_release_of_the_chart_in_the_checkout() -> None:
    plan = TrainingOperatorPlan(
        version="1.8.1", chart=ChartPlan(chart=f"./{CHART}"), init_tries=INIT_TRIES
    )
    [release] = record(lambda: TrainingOperator("training-operator", plan, nodes=[]), "dev", {}).of(
        "Release"
    )
    assert release.inputs["chart"] == f"./{CHART}" and release.inputs["namespace"] == NAMESPACE
    assert (CHECKOUT / release.inputs["chart"] / "Chart.yaml").exists()
    tolerations = release.inputs["values"].pop("tolerations")
    selector = {"trainyard.io/nodes": "system"}
    assert release.inputs["values"] == {"initTries": INIT_TRIES, "nodeSelector": selector}
    assert {each["tolerationSeconds"] for each in tolerations} == {30}


def test_more_kinds_reach_the_chart_and_its_jobs_wait_for_it() -> None:
    plan = TrainingOperatorPlan(
        version="1.8.1",
        chart=ChartPlan(chart=f"./{CHART}"),
        init_tries=INIT_TRIES,
        more_kinds=("MPIJob", "TFJob"),
    )
    [release] = record(lambda: TrainingOperator("training-operator", plan, nodes=[]), "dev", {}).of(
        "Release"
    )
    assert release.inputs["values"]["moreKinds"] == ["mpijob", "tfjob"]
