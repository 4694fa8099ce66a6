"""What an environment makes so that pods read Secrets Manager, and what waits for it."""

from __future__ import annotations

import json

import pytest

from tests.support.graphs import environment
from tests.support.recording import Graph
from tests.support.stackfile import at
from tests.support.teams import listed
from trainyard.catalog.versions import KUBERNETES
from trainyard.objects.iam.secrets import ADD_ON, DRIVER, FOLDER
from trainyard.objects.teams.team_access import OF_SECRETS
from trainyard.objects.teams.team_admission import RULES, WITH_SECRETS

JOB = "jobs.t5-large"
HF = at(f"{JOB}.secrets", {"HF_TOKEN": {"secrets_manager": "shared/hf", "key": "token"}})


def differ(before: Graph, after: Graph) -> tuple[set[str], set[str]]:
    """Names of resources that are new, and of those that are not as before."""
    was, now = (json.loads(graph.golden()) for graph in (before, after))
    named = [
        {f"{each['type'].rpartition(':')[2]} {each['name']}" for each in s} for s in (was, now)
    ]
    changed = {each["name"] for each in was if each not in now}
    return named[1] - named[0], changed


@pytest.fixture(scope="module")
def dev() -> Graph:
    return environment()


@pytest.fixture(scope="module")
def with_secret() -> Graph:
    return environment(HF)


def test_a_secret_of_a_job_adds_what_mounts_it_and_changes_the_job_only(
    dev: Graph, with_secret: Graph
) -> None:
    new, changed = differ(dev, with_secret)
    [given] = with_secret.of("SecretProviderClass")
    assert new == {
        f"Addon {ADD_ON}",
        "Identity jobs",
        "PodIdentityAssociation jobs-pods",
        "Role jobs-pods",
        "RolePolicy jobs-pods-secrets",
        f"SecretProviderClass {given.name}",
    }
    assert changed == {"t5-large"}


def test_the_job_waits_for_driver_and_identity_and_both_outlive_it(with_secret: Graph) -> None:
    [given] = with_secret.of("SecretProviderClass")
    job = with_secret["TrainJob t5-large"]
    for earlier in (
        f"Addon {ADD_ON}",
        "PodIdentityAssociation jobs-pods",
        "RolePolicy jobs-pods-secrets",
    ):
        for later in (job, given):
            assert with_secret.waits_for(later, with_secret[earlier]), (later, earlier)
    assert with_secret.waits_for(job, given)


def test_the_add_on_runs_on_nodes_with_taints_and_compares_each_hour(with_secret: Graph) -> None:
    made = with_secret[f"Addon {ADD_ON}"].inputs
    assert made["addonVersion"] in {release.add_ons[ADD_ON] for release in KUBERNETES.values()}
    assert json.loads(made["configurationValues"]) == {
        "secrets-store-csi-driver": {"enableSecretRotation": True, "rotationPollInterval": "3600s"},
        "tolerations": [{"operator": "Exists"}],
    }


def test_the_pods_mount_the_class_and_no_value_is_in_the_object(with_secret: Graph) -> None:
    spec = with_secret["TrainJob t5-large"].inputs["spec"]
    [given] = with_secret.of("SecretProviderClass")
    pod = spec["podTemplateOverrides"][0]["spec"]
    assert {
        "name": "secrets-manager",
        "csi": {
            "driver": DRIVER,
            "readOnly": True,
            "volumeAttributes": {"secretProviderClass": given.inputs["metadata"]["name"]},
        },
    } in pod["volumes"]
    mounts = pod["containers"][0]["volumeMounts"]
    assert {"name": "secrets-manager", "mountPath": FOLDER, "readOnly": True} in mounts
    assert "HF_TOKEN" not in {each["name"] for each in spec["trainer"]["env"]}
    assert spec["trainer"]["command"][:2] == ["/bin/sh", "-c"]


def test_the_role_reads_exactly_the_secrets_of_the_jobs(with_secret: Graph) -> None:
    policy = json.loads(with_secret["RolePolicy jobs-pods-secrets"].inputs["policy"])
    [statement] = policy["Statement"]
    [resource] = statement["Resource"]
    assert resource.endswith(":secret:shared/hf-??????")
    association = with_secret["PodIdentityAssociation jobs-pods"].inputs
    assert (association["namespace"], association["serviceAccount"]) == ("training", "default")


def test_a_team_with_secrets_has_a_role_verbs_and_a_volume_more() -> None:
    without, more = (
        environment(listed),
        environment(listed, at("teams.vision.secrets", ["vision/"])),
    )
    new, changed = differ(without, more)
    assert new == {
        f"Addon {ADD_ON}",
        "Identity team-vision",
        "PodIdentityAssociation team-vision-pods",
        "Role team-vision-pods",
        "RolePolicy team-vision-pods-secrets",
    }
    assert changed - {name for name in changed if name.startswith("team-vision-")} == {
        "team-vision",
        "teams-deployer",
        "teams-jobs",
        "teams-member",
        "teams-pods",
        "teams-viewer",
    }
    contract = json.loads(more["Parameter team-vision"].inputs["insecureValue"])
    assert contract["environment"]["teams"]["vision"]["secrets"] == ["vision/"]


@pytest.mark.parametrize("secrets", [True, False])
def test_the_policies_and_roles_of_teams_know_secrets_only_where_there_are_any(
    secrets: bool,
) -> None:
    graph = environment(listed, *([HF] if secrets else []))
    said = str(graph["ValidatingAdmissionPolicy teams-pods"].inputs)
    assert (WITH_SECRETS["volumes"].message in said) is secrets
    assert (RULES["volumes"].message in said) is not secrets
    groups = str(graph["ClusterRole teams-deployer"].inputs["rules"])
    assert (OF_SECRETS["deployer"].group in groups) is secrets
