"""Programs that make an image of a folder and push it: podman, buildah and docker; and crane, which
needs no daemon and no namespaces, for images that are a base and some files.

Credentials of the registry lie in a file of a private folder, which dies with the push: never on a
command line, never in the person's own configuration.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from trainyard.operations.images import dockerfile
from trainyard.operations.images.dockerfile import NeedsBuilder, Recipe
from trainyard.plans.images import parts

PROBE_SECONDS = 20
PROBES = {
    "podman": ("podman", "info"),
    "buildah": ("buildah", "info"),
    "docker": ("docker", "info"),
}
"""Builders, those that need no root first, and what fails where they cannot build."""
CRANE = "crane"


class CannotBuild(RuntimeError):
    """Error: no image was made. The message says what to do."""


@dataclass(frozen=True, kw_only=True)
class Registry:
    """Registry to which an image is pushed."""

    host: str
    """With its port, if it has one."""
    encrypted: bool
    auth: str
    """User and password in base64, as an `auths` file has them."""


@dataclass(frozen=True, kw_only=True)
class Image:
    """Image that is made."""

    folder: Path
    name: str
    """Host, repository and tag."""
    platform: str
    """linux/amd64."""


@dataclass(frozen=True, kw_only=True)
class Builder:
    """A program of this machine that can make the image."""

    program: str
    recipe: Recipe | None = None
    """Recipe that crane follows."""

    def push(self, image: Image, registry: Registry) -> None:
        """Build and push. CannotBuild where the program says no; its output is the person's."""
        if self.recipe is not None:
            _require_platform(self.recipe.base, image.platform, registry)
        with _private_folder(registry) as private:
            for command, variables in self._steps(image, registry, private):
                done = subprocess.run(command, env={**os.environ, **variables}, check=False)
                if done.returncode:
                    what = " ".join(command[:2])
                    raise CannotBuild(f"{what} ended with {done.returncode}; its reason is above")

    def _steps(
        self, image: Image, registry: Registry, private: Path
    ) -> Iterator[tuple[list[str], Mapping[str, str]]]:
        if self.recipe is not None:
            (tar := private / "layer.tar").write_bytes(dockerfile.layer(self.recipe))
            yield _mutate(self.recipe, image, tar), {"DOCKER_CONFIG": str(private)}
            return
        build = ["--platform", image.platform, "--tag", image.name, str(image.folder)]
        yield [self.program, "build", *build], {}
        if self.program == "docker":
            # The folder has no context: it is said which daemon was used.
            yield ["docker", "push", image.name], {"DOCKER_CONFIG": str(private), **_daemon()}
            return
        plain = [] if registry.encrypted else ["--tls-verify=false"]
        file = ["--authfile", str(private / "config.json")]
        yield [self.program, "push", *plain, *file, image.name], {}


def require_crane() -> None:
    """CannotBuild where crane is missing."""
    if shutil.which(CRANE) is None:
        raise CannotBuild(
            f"{CRANE} is not on PATH, which copies images without a daemon. Fix: install it"
            " (github.com/google/go-containerregistry)"
        )


def copy_image(source: str, target: str, registry: Registry, sources: Sequence[Registry]) -> None:
    """Copy an image from its registry into another, byte by byte. CannotBuild where crane says no; its
    output is the person's. `sources`: registries that ask who pulls."""
    with _private_folder(registry, sources) as private:
        variables = {**os.environ, "DOCKER_CONFIG": str(private)}
        done = subprocess.run([CRANE, "copy", source, target], env=variables, check=False)
    if done.returncode:
        raise CannotBuild(f"crane copy {source} ended with {done.returncode}; its reason is above")


def manifest(image: str, sources: Sequence[Registry]) -> bytes:
    """The manifest of an image in its registry, byte by byte: of several platforms, their index. CannotBuild where
    crane has none. `sources`: as of copy_image."""
    require_crane()
    with _private_folder(None, sources) as private:
        variables = {**os.environ, "DOCKER_CONFIG": str(private)}
        command = [CRANE, "manifest", image]
        done = subprocess.run(command, env=variables, capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason"]
        raise CannotBuild(f"crane manifest ended with {done.returncode}: {said[-1]}")
    return done.stdout


def builder_for(folder: Path) -> Builder:
    """The program that makes the image of a folder. CannotBuild where there is none."""
    if not (folder / dockerfile.NAME).is_file():
        raise CannotBuild(
            f"{folder} has no {dockerfile.NAME}. Fix: write one, such as\n  FROM <image>\n  COPY ."
            " /workspace/\n  WORKDIR /workspace"
        )
    try:
        recipe, why = dockerfile.read(folder), ""
    except NeedsBuilder as needed:
        recipe, why = None, str(needed)
    except FileNotFoundError as absent:
        raise CannotBuild(f"{absent}. Fix: correct {folder / dockerfile.NAME}") from None
    if recipe is not None and shutil.which(CRANE):
        return Builder(program=CRANE, recipe=recipe)
    tried = {program: _obstacle(probe) for program, probe in PROBES.items()}
    if usable := next((program for program, obstacle in tried.items() if not obstacle), None):
        return Builder(program=usable)
    found = "; ".join(f"{program}: {obstacle}" for program, obstacle in tried.items())
    more = f" crane is not enough for this {dockerfile.NAME}: {why}." if why else ""
    crane = "" if why else f", or put {CRANE} on PATH, which needs no daemon"
    raise CannotBuild(
        f"no program of this machine can build an image ({found}).{more} Fix: install podman, which"
        f" needs no root, or start Docker{crane}"
    )


def _obstacle(probe: Sequence[str]) -> str:
    """Reason why a builder cannot be used; empty where it can."""
    if shutil.which(probe[0]) is None:
        return "not on PATH"
    try:
        done = subprocess.run(probe, capture_output=True, text=True, timeout=PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        return f"{' '.join(probe)} takes longer than {PROBE_SECONDS} s"
    said = (done.stderr or done.stdout).strip().splitlines()
    return (said[-1] if said else f"exit code {done.returncode}") if done.returncode else ""


def _daemon() -> dict[str, str]:
    """The daemon that docker uses here."""
    asked = ["docker", "context", "inspect", "--format", "{{.Endpoints.docker.Host}}"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return {"DOCKER_HOST": done.stdout.strip()} if done.stdout.strip() else {}


@contextmanager
def _private_folder(registry: Registry | None, sources: Sequence[Registry] = ()) -> Iterator[Path]:
    """A folder with config.json: the person's credentials of other registries, for the base, and those
    of this one, if there is one. `sources`: their credentials stand in for a login of the person, whose token may be
    old, but not for a helper that the person has named for the registry."""
    with TemporaryDirectory(prefix="trainyard-") as folder:
        own = _own_configuration()
        auths, named = own.get("auths") or {}, own.get("credHelpers") or {}
        helper = own.get("credsStore")
        helpers = {**(dict.fromkeys(auths, helper) if helper else {}), **named}
        own_login = [registry] if registry else []
        given = [*own_login, *(source for source in sources if source.host not in named)]
        ours = {each.host: {"auth": each.auth} for each in reversed(given)}
        config = {
            "auths": {**auths, **ours},
            "credHelpers": {host: each for host, each in helpers.items() if host not in ours},
        }
        file = Path(folder) / "config.json"
        file.touch(mode=0o600)
        file.write_text(json.dumps(config))
        yield Path(folder)


def _own_configuration() -> dict[str, dict[str, str]]:
    home = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker")
    try:
        found = json.loads((home / "config.json").read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _require_platform(base: str, platform: str, registry: Registry) -> None:
    """CannotBuild where the base is for other CPUs. Of a name with one image crane takes that one, whatever
    --platform says (tried with 0.22.1). A base that crane cannot read is left to the build, which says why."""
    own = registry if parts(base).registry == registry.host else None
    with _private_folder(own) as private:
        variables = {**os.environ, "DOCKER_CONFIG": str(private)}
        command = [CRANE, "config", "--platform", platform, base]
        done = subprocess.run(command, env=variables, capture_output=True, check=False)
    try:
        config = json.loads(done.stdout)
    except ValueError:
        return
    found = f"{config.get('os')}/{config.get('architecture')}"
    if config.get("architecture") and found != platform:
        raise CannotBuild(
            f"{base} is for {found}, and the job's nodes are {platform}. Fix: build it with --platform"
            f" {platform}, or name another image in FROM"
        )


def _mutate(recipe: Recipe, image: Image, tar: Path) -> list[str]:
    """crane pulls no layer of the base that the registry has already."""
    pairs = [("--env", recipe.env), ("--label", recipe.labels)]
    options = [
        word
        for flag, each in pairs
        for key, value in each.items()
        for word in (flag, f"{key}={value}")
    ]
    lists = {"--entrypoint": recipe.entrypoint, "--cmd": recipe.command}
    options += [word for flag, words in lists.items() if words for word in (flag, _as_csv(words))]
    texts = {"--workdir": recipe.workdir, "--user": recipe.user}
    options += [word for flag, text in texts.items() if text for word in (flag, text)]
    chosen = ["--platform", image.platform, "--append", str(tar), "--tag", image.name]
    return [CRANE, "mutate", recipe.base, *chosen, *options]


def _as_csv(words: Sequence[str]) -> str:
    """A list as crane's options take it."""
    csv.writer(written := io.StringIO(), lineterminator="").writerow(words)
    return written.getvalue()
