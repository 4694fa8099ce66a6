"""A secret in a file is refused where it stands, and no output repeats it."""

from __future__ import annotations

import re
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from tests.support.everything import everything
from tests.support.recording import CHECKOUT
from tests.support.stackfile import ENVIRONMENT, Edit, at
from tests.support.tool import run_word
from trainyard.decide import plan_stack
from trainyard.manifests.document import read_manifest
from trainyard.settings.reading.reader import read
from trainyard.settings.reading.secrets.secrets import HIDDEN, Secret, hidden, withheld
from trainyard.settings.reading.secrets.tokens import KINDS
from trainyard.settings.reading.yaml_file import read_documents

# Each is put together here, so that no scanner takes this file for a leak.
SECRETS = {
    "AWS key": "AKIA" + "Q3EGRIZ7" * 2,
    "AWS session key": "ASIA" + "Q3EGRIZ7" * 2,
    "GitHub": "ghp_" + "a1B2" * 9,
    "GitHub app": "ghs_" + "a1B2" * 9,
    "GitHub fine-grained": "github_pat_" + "a1B2c" * 16,
    "GitLab": "glpat-" + "a1B2c" * 4,
    "Hugging Face": "hf_" + "aBcDe" * 6 + "fGhI",
    "OpenAI": "sk-proj-" + "a1B2" * 12,
    "OpenAI, older": "sk-" + "a1B2" * 12,
    "Anthropic": "sk-ant-api03-" + "a1B2" * 20,
    "Slack": "xoxb-" + "1234567890-" * 2 + "aBcDeFgHiJkL",
    "Slack webhook": "https://hooks.slack.com/services/T00000000/B00000000/" + "aB1c" * 6,
    "Weights & Biases": "wandb_v1_" + "a1B2" * 10,
    "Langfuse": "sk-lf-" + "0a1b2c3d-" * 3 + "ffff",
    "NVIDIA": "nvapi-" + "c1D2" * 10,
    "PEM": "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEow" * 20 + "\n-----END RSA PRIVATE KEY-----",
    "JSON web token": "eyJ"
    + "hbGciOiJIUzI1NiJ9" * 2
    + ".eyJ"
    + "zdWIiOiIxMjM0NTY3" * 2
    + ".dBjftJeZ4C",
}
# Tokens of which one place each is tried: how a place is looked at does not depend on the token.
MORE_SECRETS = {
    "Stripe": "sk_live_" + "a1B2" * 6,
    "SendGrid": "SG." + "a1B2" * 5 + "ab." + "a1B2" * 10 + "abc",
    "DigitalOcean": "dop_v1_" + "0a1b" * 16,
    "Grafana": "glsa_" + "a1B2" * 8 + "_0a1b2c3d",
    "Vault": "hvs." + "a1B2" * 24,
    "Terraform": "a1B2a1B2a1B2a1" + ".atlasv1." + "a1B2" * 16,
    "Pulumi": "pul-" + "0a1b" * 10,
    "Replicate": "r8_" + "a1B2" * 9 + "a",
    "Groq": "gsk_" + "a1B2" * 13,
    "Perplexity": "pplx-" + "a1B2" * 12,
    "xAI": "xai-" + "a1B2" * 20,
    "Prefect": "pnu_" + "a1B2" * 9,
    "New Relic": "NRAK-" + "A1B" * 9,
    "Sentry": "sntrys_" + "a1B2" * 20,
    "Linear": "lin_api_" + "a1B2" * 10,
    "Notion": "ntn_" + "a1B2" * 12,
    "Postman": "PMAK-" + "0a1b" * 6 + "-" + "0a1b" * 8 + "0a",
    "RubyGems": "rubygems_" + "0a1b" * 12,
    "Shopify": "shpat_" + "0a1b" * 8,
    "Atlassian": "ATATT3" + "a1B2" * 20,
    "Telegram": "123456789:AA" + "a1B" * 11,
    "Discord": "https://discord.com/api/webhooks/" + "1" * 18 + "/" + "a1B2" * 17,
    "age": "AGE-SECRET-KEY-1" + "A1B2" * 14 + "A1",
    "Fly.io": "fo1_" + "a1B2" * 11,
    "Alibaba": "LTAI" + "a1B2" * 5,
    "Doppler": "dp.pt." + "a1B2" * 11,
    "Google": "AIza" + "a1B2" * 8 + "a1B",
    "Google OAuth": "GOCSPX-" + "a1B2" * 7,
    "Azure client": "a1B8Q~" + "a1B2" * 8 + "ab",
    "RunPod": "rpa_" + "A1B2" * 11,
    "Artifactory": "AKCp" + "a1B2" * 17,
    "Databricks": "dapi" + "0a1b" * 8,
    "npm": "npm_" + "a1B2" * 9,
    "PyPI": "pypi-AgE" + "a1B2" * 16,
    "Docker": "dckr_pat_" + "a1B2" * 7,
    "GitLab runner": "glrt-" + "a1B2c" * 4,
}
JOB = "jobs.train"


def _entry(path: str, form: str) -> tuple[str, Any]:
    return path, lambda secret: at(path, form.format(secret))


# Place → the edit that puts a secret there.
PLACES: dict[str, Any] = dict(
    [
        _entry(f"{JOB}.env.SETTING", "{}"),
        _entry(f"{JOB}.script", "export A=1\nlogin {}\ntorchrun train.py"),
        _entry(f"{JOB}.image", "{}/train:1"),
        _entry(f"{JOB}.labels.owner", "{}"),
        _entry(f"{JOB}.pool", "{}"),
        _entry(f"{JOB}.nodes", "{}"),
        _entry(f"{JOB}.unknown", "{}"),
        _entry("tags.owner", "{}"),
        _entry("zone", "{}"),
        _entry("trainer.own_runtimes.torch-distributed-resilient.image", "{}/own:1"),
        _entry("trainer.own_runtimes.torch-distributed-resilient.max_restarts", "{}"),
        _entry("artifacts.charts", "{}"),
        _entry("storage.data.lustre.repositories.sets.s3", "s3://{}/"),
    ]
)
PLACES |= {
    f"{JOB}.command.1": lambda secret: at(f"{JOB}.command", ["train", f"--key={secret}"]),
    f"{JOB}.torchrun.arguments.1": lambda secret: at(f"{JOB}.torchrun.arguments", ["-k", secret]),
}


def _secret_free(said: str, secret: str) -> bool:
    """Whether no part of a secret that somebody could use is in an output."""
    return not any(secret[n : n + 12] in said for n in range(4, len(secret) - 11))


def _said(edit: Edit) -> tuple[list[str], str]:
    """Paths at which a secret is refused, and everything that is said."""
    given = everything()
    edit(given[ENVIRONMENT])
    found = plan_stack(read(given, stack="dev", project="trainyard"), CHECKOUT)
    assert found.plan is None
    refused = [error.path for error in found.errors if "a secret in clear" in error.must]
    return refused, repr((found.errors, found.warnings))


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_is_refused_in_every_place_and_shown_in_none(kind: str) -> None:
    for path, put in PLACES.items():
        refused, said = _said(put(SECRETS[kind]))
        assert refused == [f"environment.{path}"], (path, said)
        assert _secret_free(said, SECRETS[kind]), (path, said)
    assert len(SECRETS) * len(PLACES) >= 40


def test_each_of_40_kinds_of_tokens_is_refused_and_not_shown() -> None:
    assert len(SECRETS) + len(MORE_SECRETS) >= 40
    places = cycle(PLACES.items())
    for kind, secret in MORE_SECRETS.items():
        path, put = next(places)
        refused, said = _said(put(secret))
        assert refused == [f"environment.{path}"], (kind, path, said)
        assert _secret_free(said, secret), (kind, path, said)


def test_every_kind_of_secret_is_planted_by_a_test() -> None:
    planted = {secret.kind for _, secret in _found({**SECRETS, **MORE_SECRETS})}
    assert KINDS.keys() - planted == set()


def _found(secrets: dict[str, str]) -> list[tuple[str, Secret]]:
    return [(name, found) for name, text in secrets.items() for found in withheld({"a": text})[1]]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (f"{JOB}.env.WANDB_API_KEY", "0123456789abcdef" * 2 + "01234567"),
        (f"{JOB}.env.MY_TOKEN", "swordfish-42"),
        (f"{JOB}.env.AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzzzz"),
        (f"{JOB}.env.DB_PASSWORD", "hunter2222222"),
        (f"{JOB}.env.DB_PASSWORD", 12345678901234),
        (f"{JOB}.env.CLIENT_SECRET_V2", "swordfish-421"),
        (f"{JOB}.labels.db-password", "swordfish-422"),
        ("tags.api-key", "swordfish-423"),
        (f"{JOB}.script", "export HF_TOKEN=swordfish-424"),
        (f"{JOB}.script", "python train.py --wandb_key 1f0a9c4b7d3e58260e9b"),
        (f"{JOB}.script", "wandb login --api-key swordfish-425"),
        (f"{JOB}.script", 'PGPASSWORD="swordfish-426" psql'),
        (f"{JOB}.script", "git clone https://me:swordfish-427@github.com/a/b"),
        (f"{JOB}.image", "https://me:swordfish-428@registry.example.com/a:1"),
    ],
)
def test_a_name_whose_value_is_a_secret_has_none(path: str, value: Any) -> None:
    refused, said = _said(at(path, value))
    assert refused == [f"environment.{path}"]
    secret = re.search(r"swordfish-\d+|[\w/]{13,}$", str(value))
    assert secret and secret[0] not in said


def test_the_value_behind_an_option_in_a_list_is_a_secret_too() -> None:
    value, found = withheld({"command": ["run", "--hf-token", "swordfish-42", "--epochs", "3"]})
    assert value == {"command": ["run", "--hf-token", HIDDEN, "--epochs", "3"]}
    assert [secret.path for secret in found] == [("command", 2)]


@pytest.mark.parametrize(
    ("name", "proposed"),
    [
        ("OPENAI_API_KEY", "{OPENAI_API_KEY: {secret: openai-api-key, key: token}}"),
        ("key", "{HF_TOKEN: {secret: hf-token, key: token}}"),
        (SECRETS["AWS key"], "{HF_TOKEN: {secret: hf-token, key: token}}"),
    ],
    ids=["variable", "setting", "secret"],
)
def test_a_secret_is_proposed_by_the_name_of_its_variable(name: str, proposed: str) -> None:
    _, [*found] = withheld({name: SECRETS["OpenAI"]})
    assert all(each.fix.endswith(f"as in secrets: {proposed}") for each in found) and found


def test_a_secret_as_a_key_is_withheld_too() -> None:
    value, found = withheld({"env": {SECRETS["Hugging Face"]: 1}})
    assert value == {"env": {HIDDEN: 1}} and found[0].path == ("env", HIDDEN)


@pytest.mark.parametrize(
    "text",
    [
        "HF_TOKEN=$HF_TOKEN",
        "export WANDB_API_KEY=${WANDB_API_KEY:-}",
        "OPENAI_API_KEY=EMPTY python serve.py",
        "--token-file /run/secrets/token",
        "TOKENIZERS_PARALLELISM=false MAX_TOKEN=4096 EOS_TOKEN=endoftext",
        "HF_TOKEN_PATH=/run/secrets/hf",
        "git clone https://github.com/gnosia93/training-on-eks",
        "git clone https://${USER}:${TOKEN}@github.com/a/b",
        "image@sha256:" + "0a" * 32,
        "task-abcdefghijklmnopqrstuvwxyz012345",
        "python train.py --max-tokens 2048 --mask_token_id 5",
        "password: <your password>",
        "the token of the Secret is needed",
    ],
)
def test_what_is_no_secret_is_left_alone(text: str) -> None:
    assert hidden(text) == (text, ())


SAMPLES = [
    *CHECKOUT.glob("Pulumi*.yaml"),
    *CHECKOUT.glob("tests/workloads/**/*.yaml"),
    *CHECKOUT.glob("workloads/**/*.yaml"),
    *CHECKOUT.glob("docs/**/*.md"),
    CHECKOUT / "README.md",
]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_sample_has_no_secret(path: Path) -> None:
    text = path.read_text()
    assert hidden(text) == (text, ())
    if path.suffix == ".yaml":
        assert all(not document.secrets for document in read_documents(text, path.name)[0])


# Files.

MANIFEST = """apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: a, labels: {owner: LABEL}}
spec:
  trainer:
    image: registry.example.com/train:1
    command: [python, train.py, ARGUMENT]
    env:
    - {name: SETTING, value: VALUE}
    - {name: MY_TOKEN, value: NAMED}
"""


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize(
    ("place", "path", "line"),
    [
        ("LABEL", "metadata.labels.owner", 3),
        ("ARGUMENT", "spec.trainer.command[2]", 7),
        ("VALUE", "spec.trainer.env[0].value", 9),
        ("NAMED", "spec.trainer.env[1].value", 10),
    ],
)
def test_a_secret_of_a_manifest_is_refused_with_its_line(
    kind: str, place: str, path: str, line: int, tmp_path: Path, capsys: Any
) -> None:
    secret = SECRETS[kind]
    text = MANIFEST.replace(place, f'"{secret}"'.replace("\n", "\\n"))
    text = re.sub("LABEL|ARGUMENT|VALUE|NAMED", "$X", text)
    [error] = read_manifest(text, "job.yaml")[1]
    assert (error.path, error.line) == (path, line) and "a secret in clear" in error.must
    (tmp_path / "job.yaml").write_text(text)
    run_word("migrate", [str(tmp_path / "job.yaml")])
    said = capsys.readouterr()
    assert "a secret in clear" in said.out and _secret_free(said.out + said.err, secret)


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize(
    "line",
    [
        "  aws:region: eu-west-1 # {}",
        "  trainyard:environment: {{zone: {}: a}}",
        "  other:setting: {}",
        "\tzone: {}",
        "  a: *{}",
        "  a: {{{{ {} }}}}",
        "  a: [{}",
    ],
)
def test_a_secret_in_a_file_that_is_no_yaml_is_not_shown_either(
    kind: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    secret = SECRETS[kind].replace("\n", "\n    ")
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\n")
    (tmp_path / "Pulumi.x.yaml").write_text(f"config:\n{line.format(secret)}\n")
    monkeypatch.chdir(tmp_path)
    assert run_word("check", ["x"]) == 1
    said = capsys.readouterr().out
    assert "a secret in clear" in said and "Pulumi.x.yaml:2" in said
    assert _secret_free(said, SECRETS[kind])
