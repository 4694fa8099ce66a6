"""Both ends of what a secret is: no harmless line of a training script is taken for one, and every
shape of a real token is found wherever somebody writes it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import string
import uuid
from collections.abc import Iterator
from functools import cache
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from tests.support.recording import CHECKOUT
from trainyard.manifests.document import read_manifest
from trainyard.settings.reading.secrets.secrets import HIDDEN, hidden, withheld

HARMLESS = (CHECKOUT / "tests/support/cases/harmless_lines.txt").read_text().splitlines()
BASE62 = string.ascii_letters + string.digits
BASE64 = BASE62 + "+/"
BASE64_URL = BASE62 + "-_"
BASE36 = string.ascii_lowercase + string.digits
HEX = "0123456789abcdef"


@cache
def drawn(characters: str, length: int, number: int = 0) -> str:
    """A word that looks drawn by chance, and is the same in every run. Made here, so that no scanner
    takes this file for a leak."""
    seed = f"{characters} {length} {number}".encode()
    stream = b"".join(hashlib.sha256(seed + bytes([n])).digest() for n in range(10))
    return "".join(characters[byte % len(characters)] for byte in stream[:length])


def _jwt(number: int = 0) -> str:
    parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": f"user-{number}", "iat": 1700000000})
    texts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts]
    return ".".join([*(text.rstrip("=") for text in texts), drawn(BASE64_URL, 43, number)])


def _pem(kind: str, number: int) -> str:
    lines = [drawn(BASE64, 64, 10 * number + line) for line in range(6)]
    return "\n".join(
        [f"-----BEGIN {kind}PRIVATE KEY-----", *lines, f"-----END {kind}PRIVATE KEY-----"]
    )


def shapes(number: int = 0) -> dict[str, str]:
    """Service → a token in the shape of its own."""

    def word(characters: str, length: int) -> str:
        return drawn(characters, length, number)

    return {
        "AWS access key": "AKIA" + word(string.ascii_uppercase + "234567", 16),
        "AWS session's access key": "ASIA" + word(string.ascii_uppercase + "234567", 16),
        "GitHub, classic": "ghp_" + word(BASE62, 36),
        "GitHub, OAuth": "gho_" + word(BASE62, 36),
        "GitHub, server": "ghs_" + word(BASE62, 36),
        "GitHub, fine-grained": f"github_pat_{word(BASE62, 22)}_{word(BASE62, 59)}",
        "GitLab": "glpat-" + word(BASE64_URL, 20),
        "GitLab deploy": "gldt-" + word(BASE64_URL, 20),
        "GitLab runner": "glrt-" + word(BASE64_URL, 20),
        "Hugging Face": "hf_" + word(string.ascii_letters, 34),
        "Hugging Face organization": "api_org_" + word(string.ascii_letters, 34),
        "OpenAI, older": "sk-" + word(BASE62, 48),
        "OpenAI project": "sk-proj-" + word(BASE64_URL, 74),
        "OpenAI service account": "sk-svcacct-" + word(BASE64_URL, 74),
        "OpenRouter": "sk-or-v1-" + word(HEX, 64),
        "Anthropic": "sk-ant-api03-" + word(BASE64_URL, 93) + "AA",
        "Langfuse": "sk-lf-" + str(uuid.UUID(word(HEX, 32))),
        "DeepSeek": "sk-" + word(HEX, 32),
        "Slack bot": f"xoxb-{'2' + word(string.digits, 11)}-{'3' + word(string.digits, 12)}-"
        + word(BASE62, 24),
        "Slack user": f"xoxp-{'2' + word(string.digits, 11)}-{word(string.digits, 12)}-{word(HEX, 32)}",
        "Slack app": f"xapp-1-A{word(string.digits, 10)}-{word(string.digits, 13)}-{word(HEX, 64)}",
        "Slack webhook": "https://hooks.slack.com/services/T0"
        + f"{word(string.digits, 8)}/B0{word(string.digits, 8)}/{word(BASE62, 24)}",
        "Weights & Biases, 40 hex": word(HEX, 40),
        "Weights & Biases, local": "local-" + word(HEX, 40),
        "Weights & Biases, v1": "wandb_v1_" + word(BASE62, 60),
        "NVIDIA": "nvapi-" + word(BASE64_URL, 64),
        "NGC, older": base64.b64encode(
            f"{word(BASE36, 26)}:{uuid.UUID(word(HEX, 32))}".encode()
        ).decode(),
        "Google API": "AIza" + word(BASE64_URL, 35),
        "Google OAuth": "ya29.a0" + word(BASE64_URL, 120),
        "Google OAuth client": "GOCSPX-" + word(BASE64_URL, 28),
        "npm": "npm_" + word(BASE62, 36),
        "PyPI": "pypi-AgEIcHlwaS5vcmc" + word(BASE64_URL, 90),
        "Docker Hub": "dckr_pat_" + word(BASE64_URL, 27),
        "Databricks": "dapi" + word(HEX, 32),
        "Stripe": "sk_live_" + word(BASE62, 24),
        "SendGrid": f"SG.{word(BASE64_URL, 22)}.{word(BASE64_URL, 43)}",
        "DigitalOcean": "dop_v1_" + word(HEX, 64),
        "Grafana service account": f"glsa_{word(BASE62, 32)}_{word(HEX, 8)}",
        "Vault": "hvs." + word(BASE64_URL, 95),
        "Terraform Cloud": f"{word(BASE62, 14)}.atlasv1.{word(BASE64_URL, 64)}",
        "Pulumi": "pul-" + word(HEX, 40),
        "Replicate": "r8_" + word(BASE62, 37),
        "Groq": "gsk_" + word(BASE62, 52),
        "Perplexity": "pplx-" + word(BASE62, 48),
        "xAI": "xai-" + word(BASE62, 80),
        "Telegram": f"7{word(string.digits, 9)}:AA{word(BASE64_URL, 33)}",
        "JSON web token": _jwt(number),
        "PEM, RSA": _pem("RSA ", number),
        "PEM, OpenSSH": _pem("OPENSSH ", number),
        "Azure client": f"{word(BASE62, 3)}8Q~{word(BASE64_URL, 34)}",
        "Azure storage": word(BASE64, 86) + "==",
        "Azure OpenAI": word(HEX, 32),
        "Azure DevOps": word(BASE36, 52),
        "AWS secret key": word(BASE64, 40),
        "AWS session token": "IQoJb3JpZ2luX2Vj" + word(BASE64, 200) + "=",
        "Comet": word(BASE62, 25),
        "Neptune": base64.b64encode(
            json.dumps({"api_address": "https://app.neptune.ai", "api_key": word(HEX, 32)}).encode()
        ).decode(),
        "Cohere": word(BASE62, 40),
        "Mistral": word(BASE62, 32),
        "Together": word(HEX, 64),
        "Fireworks": "fw_" + word(BASE62, 24),
        "Datadog": word(HEX, 32),
        "ClearML": word(BASE62, 50),
        "Lambda": f"secret_{word(HEX, 32)}.{word(BASE62, 32)}",
        "RunPod": "rpa_" + word(BASE36.upper(), 42),
        "Artifactory": "AKCp" + word(BASE62, 69),
        "Heroku": str(uuid.UUID(word(HEX, 32))),
        "Kaggle": word(HEX, 32),
    }


def places(token: str) -> dict[str, Any]:
    """Way of writing → a text or a value with the token in it."""
    line = token.replace("\n", "\\n")
    return {
        "Python, a variable": f'API_TOKEN = "{line}"',
        "Python, an annotated variable": f"api_key: str = '{line}'",
        "Python, an argument": f'client = Client(x, api_key="{line}", timeout=3)',
        "Python, the environment": f'os.environ["MY_API_KEY"] = "{line}"',
        "Python, a default": f'key = os.environ.get("MY_API_KEY", "{line}")',
        "Python, an option's default": f'parser.add_argument("--api-key", default="{line}")',
        "Python, a dictionary": f"options = {{'api_key': '{line}', 'epochs': 3}}",
        "shell, exported": f"set -e\nexport MY_TOKEN={token}\ntorchrun train.py",
        "shell, in quotes": f"MY_TOKEN='{token}' python train.py",
        "shell, a header": f'curl -H "X-Api-Key: {line}" https://api.example.com',
        "an option": f"python train.py --api-token {line} --lr 1e-4",
        "an option with =": f"python train.py --hf_token={line} --lr 1e-4",
        "an option in a list": {"command": ["train", "--hf-token", token, "--lr", "1"]},
        "a list of JSON in a text": f'["train", "--hf-token", "{line}", "--lr"]',
        "env of an entry": {"env": {"MY_TOKEN": token}},
        "env of a pod": {"env": [{"name": "MY_TOKEN", "value": token}]},
        "YAML in a text": f"env:\n  MY_TOKEN: {line}\n  LR: 1",
        "YAML in a text, in quotes": f'api_key: "{line}"\nlr: 1',
        "JSON": json.dumps({"lr": 1, "api_key": token}),
        "JSON in a shell's quotes": json.dumps(json.dumps({"api_key": token})),
        "a password of an address": f"git clone https://me:{_quoted(token)}@example.com/a/b",
        "a parameter of an address": f"curl 'https://example.com/a?token={_quoted(token)}&lr=1'",
    }


def _quoted(token: str) -> str:
    """A token as part of an address: one whose shape is known stays as it is."""
    return token if hidden(token)[1] else quote(token, safe="")


def _left(value: Any) -> str:
    """What everybody can read of a value."""
    return json.dumps(withheld(value)[0])


def _is_readable(said: str, token: str) -> bool:
    """Whether 12 characters of a token in a row are left."""
    forms = (token, quote(token, safe=""))
    return any(
        form[n : n + 12] in said
        for form in forms
        for n in range(min(12, len(form) // 2), len(form) - 11)
    )


def test_the_corpora_are_large_enough_and_have_no_line_twice() -> None:
    assert len(HARMLESS) >= 300 and len({*HARMLESS}) == len(HARMLESS)
    assert len(shapes()) >= 60 and len({*shapes().values()}) >= 60
    assert {*shapes(1).values()}.isdisjoint(shapes(2).values())


@pytest.mark.parametrize("line", HARMLESS)
def test_no_harmless_line_is_taken_for_a_secret(line: str) -> None:
    assert hidden(line) == (line, ())
    script = f"set -euo pipefail\n{line}\ntorchrun train.py\n"
    for value in ({"script": script}, {"command": ["bash", "-c", script]}, {"args": line.split()}):
        assert withheld(value) == (value, [])
    for name, value in _settings(line):
        assert withheld({"env": {name: value}}) == ({"env": {name: value}}, [])


def _settings(line: str) -> Iterator[tuple[str, str]]:
    """The variables that a line of a shell or of YAML sets, as `env:` of an entry sets them."""
    for found in re.finditer(
        r"(?:^|export |-e )([A-Z][A-Z0-9_]+)(?:=|: )(\"[^\"]*\"|[^\s\"]+)", line
    ):
        yield found[1], found[2].strip("\"'")


def test_all_harmless_lines_together_are_a_sound_file() -> None:
    """What stands beside a line does not make it a secret either."""
    script = "\n".join(HARMLESS)
    assert hidden(script) == (script, ())
    spec = {"trainer": {"image": "a/b:1", "command": ["bash", "-c", script]}}
    job = {"kind": "TrainJob", "metadata": {"name": "a"}, "spec": spec}
    [workload], errors = read_manifest(yaml.safe_dump(job), "job.yaml")
    assert workload.body["spec"] == spec
    assert not [error for error in errors if "a secret in clear" in error.must]


@pytest.mark.parametrize("service", shapes())
def test_each_shape_of_a_token_is_found_wherever_it_is_written(service: str) -> None:
    for number in range(5):
        token = shapes(number)[service]
        missed = [
            place
            for place, value in places(token).items()
            if not withheld(value)[1] or _is_readable(_left(value), token)
        ]
        assert missed == [], (number, token)


def test_the_command_that_logs_in_has_its_secret_taken() -> None:
    key = drawn(HEX, 40)
    for command in (
        f"wandb login {key}",
        f"wandb login --relogin {key} && torchrun train.py",
        f'wandb.login(key="{key}")',
        f"wandb.login(key='{key}', relogin=True)",
        f"docker login registry.example.com -u robot -p {drawn(BASE62, 16)}",
        f"docker login -u robot --password={drawn(BASE62, 16)} registry.example.com",
        f"curl -u robot:{drawn(BASE62, 16)} https://example.com",
        f'curl -H "Authorization: Bearer {drawn(BASE62, 40)}" https://example.com',
        f"aws configure set aws_secret_access_key {drawn(BASE64, 40)}",
    ):
        text, kinds = hidden(command)
        assert kinds and HIDDEN in text, command
    assert withheld({"command": ["wandb", "login", key]})[1]
    assert withheld({"command": ["docker", "login", "registry2.example.com"]})[1] == []
    assert hidden(f"git checkout {key}")[1] == (), "a commit is no secret"


@pytest.mark.parametrize(
    "text",
    [
        'login(token="{}")\nlogin(token=os.environ["HF_TOKEN"])',
        "export MY_TOKEN={}\nexport OTHER_TOKEN=$MY_TOKEN",
        "MY_TOKEN={} OTHER_API_KEY={} python train.py",
    ],
)
def test_what_stands_around_a_secret_stays_as_it_is(text: str) -> None:
    tokens = [drawn(BASE62, 40, number) for number in range(text.count("{}"))]
    said, kinds = hidden(text.format(*tokens))
    assert said == text.format(*[HIDDEN] * len(tokens)) and len(kinds) == len(tokens)
