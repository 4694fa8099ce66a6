"""Secrets that stand in a file by mistake: found before anything is printed, and withheld from all
that follows.

`withheld` replaces each secret by HIDDEN, so that no message, plan or state can repeat it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trainyard.problems import At, InputError
from trainyard.settings.aws import KEYS
from trainyard.settings.reading.secret_names import (
    OF_LOGIN,
    Context,
    assigned,
    in_address,
    is_placeholder,
    is_secret,
    looks_secret,
)

HIDDEN = "hidden-secret"
"""Text that stands in the place of a secret."""
KINDS = {
    "an AWS access key": r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}",
    "a GitHub token": r"gh[pousr]_[0-9a-zA-Z]{36,}|github_pat_\w{40,}",
    "a GitLab token": r"gl(?:pat|dt|rt|ptt)-[\w-]{20,}",
    "a Hugging Face token": r"(?:hf_|api_org_)[A-Za-z0-9]{20,}",
    "a Langfuse key": r"sk-lf-[0-9a-f-]{20,}",
    "an API key (sk-…)": r"sk-(?:(?:proj|svcacct|admin|ant)-[\w-]{20,}|(?:or-v1-)?[A-Za-z0-9]{20,})",
    "an NVIDIA key": r"nvapi-[A-Za-z0-9_-]{20,}",
    "a Slack token": r"xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-\d-[A-Za-z0-9-]{10,}",
    "a Slack webhook": r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{20,}",
    "a Weights & Biases key": r"wandb_v1_\w{20,}|(?:local-)?[0-9a-f]{40}(?=@api\.wandb)",
    "a Google API key": r"AIza[\w-]{35}",
    "a Google token": r"GOCSPX-[\w-]{28}|ya29\.[\w-]{20,}",
    "an Azure key": r"\w{3}\dQ~[\w~.-]{31,34}|AccountKey=[\w+/]{86}==",
    "a RunPod key": r"rpa_[A-Z0-9]{40,}",
    "an Artifactory key": r"AKC[a-z][A-Za-z0-9]{60,}",
    "a Databricks token": r"dapi[a-f0-9]{32}",
    "an npm token": r"npm_[A-Za-z0-9]{36}",
    "a PyPI token": r"pypi-AgE[\w-]{50,}",
    "a Docker token": r"dckr_(?:pat|oat)_[\w-]{20,}",
    "a Stripe key": r"(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{10,}",
    "a SendGrid key": r"SG\.[\w=-]{16,}\.[\w=-]{20,}",
    "a DigitalOcean token": r"do[opr]_v1_[a-f0-9]{40,}",
    "a Grafana token": r"gl(?:c|sa)_[A-Za-z0-9+/_]{32,}",
    "a HashiCorp Vault token": r"hv[sbr]\.[\w-]{24,}",
    "a Terraform Cloud token": r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{30,}",
    "a Pulumi token": r"pul-[a-f0-9]{40}",
    "a Replicate token": r"r8_[A-Za-z0-9]{30,}",
    "a Groq key": r"gsk_[A-Za-z0-9]{40,}",
    "a Perplexity key": r"pplx-[A-Za-z0-9]{40,}",
    "an xAI key": r"xai-[A-Za-z0-9]{60,}",
    "a Prefect key": r"pn[ub]_[A-Za-z0-9]{36}",
    "a New Relic key": r"NRAK-[A-Z0-9]{27}|NRII-[A-Za-z0-9_-]{32}",
    "a Sentry token": r"sntr(?:ys|yu)_[A-Za-z0-9+/=_]{40,}",
    "a Linear key": r"lin_api_[A-Za-z0-9]{40}",
    "a Notion token": r"ntn_[A-Za-z0-9]{40,}",
    "a Postman key": r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}",
    "a RubyGems key": r"rubygems_[a-f0-9]{40,}",
    "a Shopify token": r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
    "an Atlassian token": r"ATATT3[\w=-]{50,}",
    "a Telegram token": r"\d{8,10}:AA[\w-]{33}(?![\w-])",
    "a Discord webhook": r"discord(?:app)?\.com/api/webhooks/\d{17,}/[\w-]{40,}",
    "an age key": r"AGE-SECRET-KEY-1[0-9A-Z]{50,}",
    "a Fly.io token": r"fo1_[\w-]{40,}|fm[12]r?_[A-Za-z0-9+/=]{80,}",
    "an Alibaba access key": r"LTAI[A-Za-z0-9]{16,20}(?![\w-])",
    "a Doppler token": r"dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9._-]{40,}",
    "a JSON web token": r"ey[A-Za-z0-9_-]{17,}\.ey[A-Za-z0-9_/-]{17,}\.[A-Za-z0-9_/-]{10,}=*",
}
"""Secret → what it looks like. The prefixes are those of gitleaks (config/gitleaks.toml, commit
009e025, rules aws-access-token, github-*, gitlab-*, huggingface-*, openai-api-key, anthropic-*,
slack-*, gcp-api-key, azure-ad-client-secret, artifactory-api-key, databricks-*, npm-*,
pypi-upload-token, jwt, and those of the services that are named), with lengths that also find a
token that was cut. Langfuse: langfuse.com/docs (API keys). NVIDIA: docs.nvidia.com/ngc (API keys).
Docker: docs.docker.com (access tokens)."""
PRIVATE_KEY = re.compile(
    r"-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[^-]{0,20000}(?:-----END[ A-Z0-9_-]{0,100}-----)?)"
)
TOKEN = re.compile(
    # The look behind stands once, before all: most places of a text end there.
    rf"(?<![\w-])(?:{'|'.join(f'(?P<k{n}>{shape})' for n, shape in enumerate(KINDS.values()))})"
)
IN_URL = re.compile(
    r"(?<=://)(?:(?P<user>[^/\s:@$<{\[]*):(?P<password>[^\s@$<{\"'`]{1,1000})|(?P<token>[\w~.-]{20,1000}))@"
)
"""A password in a URL: https://user:password@host, or https://token@host."""
URL_PASSWORD = "a password in a URL"
"""The kind of what IN_URL finds."""
ASSIGNED = "a password or key"
"""The kind of what is known by its name only."""


@dataclass(frozen=True, kw_only=True)
class Secret:
    """A secret in a file."""

    path: tuple[str | int, ...]
    kind: str

    def error(self, at: At) -> InputError:
        """Error that refuses the file."""
        return at.must(
            "not contain a secret in clear",
            got=f"{self.kind}, which is not shown",
            fix=f"revoke it, since files are committed; {self._instead}",
        )

    @property
    def _instead(self) -> str:
        """Fix: what to write in place of the secret."""
        if self.kind == URL_PASSWORD:
            return (
                "write the address without it, or put the whole address into a Kubernetes Secret,"
                " and name the Secret in the job, as in secrets: {DATABASE_URL: {secret: database, key: url}}"
            )
        return (
            "put a new one into a Kubernetes Secret, and name the Secret in the job, as in secrets: {HF_TOKEN:"
            " {secret: hf-token, key: token}}"
        )


def withheld(value: Any) -> tuple[Any, list[Secret]]:
    """A value without its secrets, and where they were."""
    found: list[Secret] = []
    return _without(value, (), "", found), found


@functools.lru_cache(maxsize=1000)  # names of settings and most values are those of other jobs
def hidden(text: str) -> tuple[str, tuple[str, ...]]:
    """A text without the secrets in it, with as many lines, and what they are."""
    kinds: list[str] = []

    def hide(kind: str, secret: str) -> str:
        kinds.append(kind)
        return HIDDEN + "\n" * secret.count("\n")

    def hide_token(found: re.Match[str]) -> str:
        if is_placeholder(found[0]):
            return found[0]
        return hide([*KINDS][int(str(found.lastgroup)[1:])], found[0])

    def hide_in_url(found: re.Match[str]) -> str:
        secret = found[str(found.lastgroup)]
        is_one = (
            in_address(found["user"], secret)
            if found["password"]
            else looks_secret(secret, Context.CODE)
        )
        return found[0].replace(secret, hide(URL_PASSWORD, secret)) if is_one else found[0]

    text = PRIVATE_KEY.sub(lambda found: hide("a private key", found[0]), text)
    text = TOKEN.sub(hide_token, text)
    text = IN_URL.sub(hide_in_url, text)
    for place in reversed(assigned(text)):
        kinds.append(ASSIGNED)
        text = text[: place.start] + HIDDEN + text[place.end :]
    return text, tuple(kinds)


def _without(value: Any, path: tuple[str | int, ...], name: str, found: list[Secret]) -> Any:
    """The value without its secrets, which are added to `found`. `name`: what the value is called."""
    if isinstance(value, dict):
        called = str(value.get("name", ""))
        return {
            _text(key, (*path, str(key)), "", found): _without(
                item, (*path, str(key)), called if key == "value" else str(key), found
            )
            for key, item in value.items()
        }
    if isinstance(value, list):
        names = ["", *(_option(item) for item in value)]
        return [
            _without(item, (*path, number), names[number], found)
            for number, item in enumerate(value)
        ]
    return _text(value, path, name, found)


def _option(item: Any) -> str:
    """The name of an option whose value is the next argument, or of what follows `login`."""
    if item == "login":
        return OF_LOGIN
    return item if isinstance(item, str) and re.fullmatch(r"--[a-z][\w-]*", item) else ""


def _text(value: Any, path: tuple[str | int, ...], name: str, found: list[Secret]) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    if _is_secret(name, str(value)):
        found.append(Secret(path=_clean(path), kind=ASSIGNED))
        return HIDDEN
    text, kinds = hidden(str(value))
    found += [Secret(path=_clean(path), kind=kind) for kind in dict.fromkeys(kinds)]
    return text if kinds else value


def _is_secret(name: str, value: str) -> bool:
    """True where a value is a secret because of its name; the kinds above are more precise."""
    if name.removeprefix("aws:") in KEYS or not is_secret(name, value, Context.TEXT):
        return False
    return not (HIDDEN in value or TOKEN.search(value) or PRIVATE_KEY.search(value))


def _clean(path: Sequence[str | int]) -> tuple[str | int, ...]:
    """The path, also where a key in it is a secret."""
    return tuple(hidden(step)[0] if isinstance(step, str) else step for step in path)


def secrets_of_text(text: str, known: Sequence[str]) -> Iterator[tuple[int, str]]:
    """(line from 1, kind) of the tokens in a text beside those whose kinds are `known`: in comments,
    and where the text is no YAML."""
    left = [*known]
    for shape, kinds in ((PRIVATE_KEY, None), (TOKEN, [*KINDS])):
        for match in shape.finditer(text):
            kind = kinds[int(str(match.lastgroup)[1:])] if kinds else "a private key"
            if is_placeholder(match[0]):
                continue
            if kind in left:
                left.remove(kind)
            else:
                yield text.count("\n", 0, match.start()) + 1, kind
