"""The programs of docs/package.md with the SDKs that `pulumi package add` writes for them: by the functions that
Pulumi's language hosts call (sdks/main.go), from the schema of the package. A compiler reads each program."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from package.schema import ENVIRONMENT, TEAM, schema
from rehearsal.toolchain import go, programs
from tests.package.test_teams import ACCESS, contract
from tests.support.package import made
from tests.support.recording import CHECKOUT
from trainyard.catalog.versions import TRAINYARD

HERE = Path(__file__).parent / "sdks"
PAGE = (CHECKOUT / "docs/package.md").read_text()
SDK = "github.com/pulumi/pulumi-trainyard/sdk"
NPM = {
    "@pulumi/pulumi": (
        "3.259.0",
        "DRc1bDHWTofZGkKcs/bx98LujCZJNoKRkOdeEhQZNz7wPUX/obhuzmWJezew2FUCEAy1xXHtQj1CTcANHoLn3A==",
    ),
    "typescript": (
        "5.9.3",
        "jl1vZzPDinLr9eUt3J/t7V6FgNEw9QjvBPdysz9KfQDD41fQrC2Y4vKQdiaUpFT4bXlb1RHhLpp8wtm6M5TgSw==",
    ),
    "@types/node": (
        "20.19.0",
        "hfrc+1tud1xcdVTABC2JiomZJEklMcXYNTVtZLAeqTVWD+qL5jkHKT+1lOtqDdGxt+mB53DTtiz673vfjU8D1Q==",
    ),
    "undici-types": (
        "6.21.0",
        "iwDZqg0QAGrg9Rav5H4n0M64c3mkR59cJ6wQp+7C4nI0gsmExaedaYLNO44eT4AtBBwjbTiGPMlt2Md0T9H9JQ==",
    ),
}
"""Package of the compiler of TypeScript → version and SHA-512. The packages that @pulumi/pulumi needs to run are
left out: it is only compiled."""
STRICT = {
    "target": "ES2022",
    "module": "nodenext",
    "moduleResolution": "nodenext",
    "strict": True,
    "skipLibCheck": True,
    "noEmit": True,
    "types": ["node"],
}


def sample(language: str, beginning: str = "") -> str:
    """The first block of the page in a language that begins so."""
    found = re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    return next(text for text in found if text.startswith(beginning))


def run(*words: Any, cwd: Path, **options: Any) -> str:
    """What a program prints, which must succeed."""
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def generator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that writes SDKs."""
    built = tmp_path_factory.mktemp("generator") / "sdks"
    run(go.executable(print), "build", "-o", built, ".", cwd=HERE, env=go.environment())
    return built


def written(generator: Path, language: str, folder: Path) -> Path:
    """The SDK for a language, in a folder."""
    run(generator, language, folder, cwd=generator.parent, input=json.dumps(schema()))
    return folder


def test_the_generator_is_of_the_engine_that_the_rehearsal_runs() -> None:
    module = "github.com/pulumi/pulumi/pkg/v3"
    pinned = re.search(rf"{re.escape(module)} (\S+)", (HERE / "go.mod").read_text())
    assert pinned and pinned[1] == programs.pinned("pulumi", module)


def test_the_sample_in_yaml_is_accepted(tmp_path: Path) -> None:
    program = yaml.safe_load(sample("yaml", "name:"))
    [platform] = program["resources"].values()
    _, state = made(
        ENVIRONMENT, platform["properties"], tmp_path, config={"aws:region": "us-east-1"}
    )
    told = program["outputs"]["vpc"].removeprefix("${platform.").removesuffix("}")
    assert platform["type"] == "trainyard:Environment" and told in state


def test_the_sample_of_a_team_is_accepted(tmp_path: Path) -> None:
    [vision] = yaml.safe_load(sample("yaml", "resources:"))["resources"].values()
    given = vision["properties"]
    assert given["contract"] == "${platform.contract}" and given["access"] == "${platform.access}"
    more = {"environment": "dev", "contract": contract(), "access": ACCESS}
    graph, _ = made(TEAM, {**given, **more}, tmp_path, name="vision", stack="research")
    assert any(each.kind.endswith(":TrainJob") for each in graph.nodes.values())


@pytest.mark.soak
def test_the_sample_in_python_asks_for_what_it_says(generator: Path, tmp_path: Path) -> None:
    folder = written(generator, "python", tmp_path / "sdk")
    installed = folder / f"pulumi_trainyard-{TRAINYARD}.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(f"Name: pulumi_trainyard\nVersion: {TRAINYARD}\n")
    program = f"""
import json
import pulumi

class Mocks(pulumi.runtime.Mocks):
    def new_resource(self, args):
        print(json.dumps([args.typ, args.name, args.inputs]))
        return args.name, args.inputs | {{"vpc_id": "vpc-1"}}

    def call(self, args):
        return {{}}

pulumi.runtime.set_mocks(Mocks())

@pulumi.runtime.test
def program():
{"".join(f"    {line}" for line in sample("python").splitlines(keepends=True))}
    return platform.vpc_id

program()
"""
    said = run(sys.executable, "-c", program, cwd=tmp_path, env={"PYTHONPATH": str(folder)})
    kind, name, asked = json.loads(said)
    assert (kind, name) == ("trainyard:index:Environment", "platform")
    assert asked["pools"] == {"g6e": {"instance_types": ["g6e.48xlarge"], "max_nodes": 2}}
    assert asked["zone"] == "us-east-1a" and asked["trainer"]["version"] == "2.1.0"


@pytest.mark.soak
def test_the_sample_in_go_compiles(generator: Path, tmp_path: Path) -> None:
    written(generator, "go", tmp_path / "sdk" / "go")
    (tmp_path / "sdk" / "go.mod").write_text(f"module {SDK}\n\ngo 1.26.0\n")
    for name in ("go.mod", "go.sum"):
        shutil.copyfile(HERE / name, tmp_path / name)
    (tmp_path / "main.go").write_text(sample("go"))
    written_to = {file.parent for file in (tmp_path / "sdk" / "go").rglob("*.go")}
    # A pattern such as /... makes Go read the go.mod of every module, also of those for other systems.
    packages = [f"{SDK}/{folder.relative_to(tmp_path / 'sdk')}" for folder in written_to]
    environment = go.environment() | {"GOPROXY": "off"}
    edit = ("mod", "edit", f"-require={SDK}@v0.0.0", f"-replace={SDK}=./sdk")
    run(go.executable(print), *edit, cwd=tmp_path, env=environment)
    run(go.executable(print), "vet", ".", *packages, cwd=tmp_path, env=environment)


def _unpacked(name: str, modules: Path, folder: Path) -> None:
    """A package of npm in node_modules, if its checksum is right."""
    version, digest = NPM[name]
    [file] = run("npm", "pack", "--silent", f"{name}@{version}", cwd=folder).split()
    made = hashlib.sha512((folder / file).read_bytes()).digest()
    assert base64.b64encode(made).decode() == digest, f"{name} {version} is another one"
    with tarfile.open(folder / file) as archive:
        archive.extractall(folder / "unpacked" / name, filter="data")
    [top] = (folder / "unpacked" / name).iterdir()
    shutil.copytree(top, modules / name)


@pytest.mark.soak
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on PATH")
def test_the_sample_in_typescript_compiles(generator: Path, tmp_path: Path) -> None:
    modules = tmp_path / "node_modules"
    for name in NPM:
        _unpacked(name, modules, tmp_path)
    sdk = written(generator, "nodejs", modules / "@pulumi" / "trainyard")
    compiler = ("node", modules / "typescript/lib/tsc.js", "--project", ".")
    run(*compiler, cwd=sdk)
    (tmp_path / "index.ts").write_text(sample("typescript"))
    settings = {"compilerOptions": STRICT, "files": ["index.ts"]}
    (tmp_path / "tsconfig.json").write_text(json.dumps(settings))
    run(*compiler, cwd=tmp_path)
