"""What the readers of YAML files make of scalars, and that every writer of ours writes what all of
them read as the same."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from rehearsal import paths
from tests.support.recording import CHECKOUT
from tests.support.scalars import TEXTS, can_be_bare, texts
from trainyard.catalog.scalars import (
    EngineLoader,
    as_engine_time,
    as_file,
    engine_time,
    engine_value,
    is_text,
)
from trainyard.settings.reading.yaml_file import as_yaml

PULUMI = paths.BIN / "pulumi"
LAYOUTS: tuple[dict[str, Any], ...] = (
    {},
    {"default_flow_style": None, "width": 100},
    {"default_flow_style": True, "width": 999},
)
"""How our writers lay files out."""


def read_by_all(text: str) -> Any:
    """What PyYAML and the engine read, which must be the same."""
    by_pyyaml, by_engine = yaml.safe_load(text), yaml.load(text, EngineLoader)
    assert by_pyyaml == by_engine
    return by_engine


@given(texts())
@example("1e-3")
@example("0o17")
@example(":0")
def test_a_text_that_is_written_is_read_as_the_same_text_by_every_reader(text: str) -> None:
    value = {"text": text, "list": ["--lr", text], "keys": {text: text}}
    for layout in LAYOUTS:
        assert read_by_all(as_file(value, **layout)) == value
    assert read_by_all(as_yaml(value)) == value


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**60), 2**60) | texts() | st.floats(-1e9, 1e9),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(), inner, max_size=3),
        max_leaves=8,
    )
)
def test_every_value_that_is_written_is_read_as_the_same_value(value: Any) -> None:
    """1.0 and 1 are one number for the engine."""
    for layout in LAYOUTS:
        text = as_file({"a": value}, **layout)
        assert yaml.safe_load(text) == {"a": value} == yaml.load(text, EngineLoader)


def test_all_yaml_is_written_by_the_one_writer() -> None:
    rooms = ("trainyard", "stacks", "components", "policy_pack", "rehearsal", "benchmarks")
    files = [file for room in rooms for file in CHECKOUT.glob(f"{room}/**/*.py")]
    files.remove(CHECKOUT / "trainyard/catalog/scalars.py")
    others = [file for file in files if re.search(r"yaml\.(safe_)?dump", file.read_text())]
    assert len(files) > 300 and others == []


def test_a_text_that_needs_no_quotes_gets_none() -> None:
    plain = ["a", "g6e.48xlarge", "2.1.0", "/data", "python train.py", "s3://bucket/x", "a:b"]
    assert as_file(plain) == "".join(f"- {text}\n" for text in plain)
    assert as_yaml(plain) == f"[{', '.join(plain)}]"
    assert [
        text for text in ("y", "N", "1e-3", "on", "=", "<<", "2026-02-30") if is_text(text)
    ] == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("0o17", 15),
        ("017", 15),
        ("08", 8),
        ("012345678901", 12345678901),
        ("1.0", 1),
        ("1e20", 10**20),
        ("1e400", "1e400"),
        ("18446744073709551616", 18446744073709552000),
        ("60:30", "60:30"),
        ("yes", "yes"),
        ("~", None),
        ("2026-01-02", datetime(2026, 1, 2)),
        ("2026-02-30", "2026-02-30"),
        ("2027-01-04T11:30:00Z", datetime(2027, 1, 4, 11, 30, tzinfo=UTC)),
    ],
)
def test_a_scalar_is_what_the_engine_makes_of_it(text: str, value: Any) -> None:
    """Seen with Pulumi 3.259.0; the next test asks the engine that is here."""
    found = engine_value(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.skipif(not PULUMI.exists(), reason="no pulumi: the toolchain was never built here")
def test_the_engine_reads_what_this_program_says_it_reads(tmp_path: Path) -> None:
    """Each scalar without quotes, as PyYAML's and our writers write it, and as our copy has it."""
    bare = [*filter(can_be_bare, dict.fromkeys((*TEXTS, *_generated())))]
    bare = [text for text in bare if not _no_json(engine_value(text))]
    assert len(bare) > 300
    wanted = [engine_value(text) for text in bare]
    lists = {
        "bare": "".join(f"\n  - {text}" for text in bare),
        "written": "\n" + as_file([*bare]),
        "short": as_yaml([*bare]),
    }
    config = "".join(f"  trainyard:{name}: {text}\n" for name, text in lists.items())
    found = _asked(tmp_path, f"config:\n{config.replace(chr(10) + '-', chr(10) + '  -')}")
    assert found["written"] == found["short"] == bare
    shown = [as_engine_time(value) if isinstance(value, datetime) else value for value in wanted]
    assert found["bare"] == shown
    for text, value in zip(found["bare"], wanted, strict=True):
        if isinstance(value, datetime):
            assert engine_time(text) == (value if value.tzinfo else value.replace(tzinfo=UTC))


def _generated() -> list[str]:
    """Numbers of each shape, with signs, underscores and exponents."""
    digits = ("0", "7", "08", "1_0", "0x1f", "0o1_7", "0b1", "1.5", ".5", "5.", "00.5", "12345678")
    return [
        f"{sign}{number}{exponent}"
        for sign in ("", "+", "-")
        for number in digits
        for exponent in ("", "e3", "e-3", "E+03", "e25", "e400", "_", "e", ":30", "-01-02")
    ]


def _no_json(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _asked(folder: Path, stack_file: str) -> dict[str, Any]:
    """Key → what the engine hands to a program."""
    (folder / "Pulumi.yaml").write_text("name: trainyard\nruntime: python\n")
    environment = {
        **os.environ,
        "TZ": "UTC",
        "PULUMI_HOME": str(folder),
        "PULUMI_BACKEND_URL": f"file://{folder}",
        "PULUMI_CONFIG_PASSPHRASE": "x",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }

    def pulumi(*words: str) -> str:
        command = [PULUMI, *words, "--non-interactive"]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    pulumi("stack", "init", "dev", "--no-select")
    with (folder / "Pulumi.dev.yaml").open("a") as file:
        file.write(stack_file)
    said = json.loads(pulumi("config", "--json", "--stack", "dev"))
    return {key.partition(":")[2]: json.loads(each["value"]) for key, each in said.items()}
