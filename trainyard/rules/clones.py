"""Errors about clones in a script: repositories that git cannot reach from a pod."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainyard.derive.job_view import ContainerView, JobView
from trainyard.problems import InputError, InputWarning

CLONE = re.compile(r"\bgit(?:[ \t]+-\S+(?:[ \t]+[^\s-]\S*)?)*[ \t]+clone\b([^\n;|&]*)")
"""A clone, with its words."""
HOSTS = r"(?:www\.)?(?:github\.com|gitlab\.com|bitbucket\.org|huggingface\.co)"
SCHEMES = ("https://", "http://", "ssh://", "git://", "file://")
KEYS = re.compile(r"GIT_SSH|\.ssh\b|ssh-add|id_(?:rsa|ed25519|ecdsa)|insteadOf|core\.sshCommand")
"""Words that show that somebody thinks of a key, or clones over HTTPS after all."""


def without_scheme(view: JobView, container: ContainerView) -> Iterator[InputError]:
    """A clone from a host without a scheme, which git looks for in the working directory."""
    for source in _sources(container.script):
        host = re.match(rf"(?:(\w+):/{{0,2}}|//)?{HOSTS}[/:]", source)
        if host and not source.startswith(SCHEMES):
            path = re.split(rf"{HOSTS}[/:]+", source, maxsplit=1)[1]
            name = re.search(HOSTS, source)
            yield container.where("script").must(
                "clone from a URL",
                got=source[:60],
                fix=f"write https://{name[0] if name else 'github.com'}/{path}"[:120],
            )


def without_key(view: JobView, container: ContainerView) -> Iterator[InputWarning]:
    """A clone over SSH where no key is in sight. The image may have one."""
    mounted = any("ssh" in path or "secret" in kinds for path, kinds in view.mounts.items())
    if mounted or KEYS.search(container.script) or any(map(KEYS.search, container.env)):
        return
    for source in _sources(container.script):
        if source.startswith("ssh://") or re.match(r"[\w.-]+@[\w.-]+:", source):
            yield container.where("script").warning(
                f"{source[:60]} is cloned over SSH, and the job has no key for it: where the image"
                " has none either, git fails; https:// needs none for a public repository"
            )


def without_token(view: JobView, container: ContainerView) -> Iterator[InputWarning]:
    """A clone whose URL has a variable that nobody sets. The image may set it."""
    if container.more_env is None:
        return
    for source in _sources(container.script):
        login = re.match(r"https?://([^/@\s]*)@", source)
        for name in re.findall(r"\$\{?(\w+)", login[1]) if login else []:
            is_set = re.search(rf"\b{name}=|\bread (?:\S+ )*{name}\b", container.script)
            if name not in {*container.env, *container.more_env} and not is_set:
                yield container.where("script").warning(
                    f"the clone logs in with {name}, which neither env nor a Secret of the job"
                    " sets: where the image does not set it either, git fails"
                )


def _sources(script: str) -> list[str]:
    """Each thing that the script clones, once, but for comments."""
    text = re.sub(r"(?m)^[ \t]*#.*", "", script.replace("\\\n", " "))
    words = [found[1].replace('"', "").replace("'", "").split() for found in CLONE.finditer(text)]
    hosts = re.compile(rf"(?:\w+:/*|//)?{HOSTS}[/:]|\w+://|[\w.-]+@[\w.-]+:")
    found = [next((word for word in each if hosts.match(word)), "") for each in words]
    return [source for source in dict.fromkeys(found) if source]
