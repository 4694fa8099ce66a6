"""What configures the policies is read strictly: a policy that is misspelt, or on without what it needs,
is an error and never a policy that holds nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy_pack.check import judge_by
from policy_pack.configured import (
    ADVISORY,
    ALL,
    BY_NAME,
    CONFIG,
    DISABLED,
    LEVEL,
    MANDATORY,
    chosen,
    config_errors,
    main,
    read_config,
)
from policy_pack.policies import RULES
from tests.support.grammar import begins_with_a_verb
from tests.support.recording import CHECKOUT

NEEDY = [rule for rule in RULES if rule.needs_config]
KEYS = ["arn:aws:kms:*:123456789012:key/"]
KEYS_MISSING = (
    "own-key.keys: must be set where the policy is on; got nothing. Fix: write "
    '"own-key": {%s"keys": ["arn:aws:kms:*:123456789012:key/"]}, or "own-key": "disabled"'
)
MANDATORY_LEVEL = '"enforcementLevel": "mandatory", '
KNOWN = "must be one of advisory, mandatory, disabled; got"
REFUSED: dict[str, list[str]] = {
    '{"own-keys": {"keys": ["a"]}}': [
        'own-keys: must be the name of a policy; got "own-keys". Fix: did you mean own-key?'
    ],
    '{"Own_Key": "disabled"}': [
        'Own_Key: must be the name of a policy; got "Own_Key". Fix: did you mean own-key?'
    ],
    '{"secure": "mandatory"}': [
        'secure: must be the name of a policy; got "secure". Fix: delete it; the policies are'
        f" {', '.join([*BY_NAME, ALL])}"
    ],
    '{"encrypted": "mandtory"}': [f'encrypted: {KNOWN} "mandtory". Fix: write "mandatory"'],
    '{"encrypted": "strict"}': [
        f'encrypted: {KNOWN} "strict". Fix: write one of advisory, mandatory, disabled'
    ],
    '{"encrypted": {"enforcementLevel": 3}}': [
        f"encrypted.enforcementLevel: {KNOWN} 3. Fix: write one of advisory, mandatory, disabled"
    ],
    '{"encrypted": ""}': [
        f'encrypted: {KNOWN} "". Fix: write one of advisory, mandatory, disabled'
    ],
    '{"encrypted": "remediate"}': [f'encrypted: {KNOWN} "remediate". Fix: write "mandatory"'],
    '{"encrypted": true}': ['encrypted: must be a level; got true. Fix: write "mandatory"'],
    '{"encrypted": {"keys": []}}': [
        'encrypted.keys: must be the name of a setting; got "keys". Fix: delete it; the settings are'
        " enforcementLevel"
    ],
    '{"all": "strict"}': [
        f'all: {KNOWN} "strict". Fix: write one of advisory, mandatory, disabled'
    ],
    '{"all": {"enforcementLevel": "disabled", "keys": []}}': [
        'all.keys: must be the name of a setting; got "keys". Fix: delete it; the settings are'
        " enforcementLevel"
    ],
    '{"own-key": "mandatory"}': [KEYS_MISSING % MANDATORY_LEVEL],
    '{"own-key": {}}': [KEYS_MISSING % ""],
    '{"own-key": "mandtory"}': [
        f'own-key: {KNOWN} "mandtory". Fix: write "mandatory"',
        KEYS_MISSING % MANDATORY_LEVEL,
    ],
    '{"own-key": {"key": ["a"], "enforcementLevel": "mandatory"}}': [
        'own-key.key: must be the name of a setting; got "key". Fix: did you mean keys?',
        KEYS_MISSING % MANDATORY_LEVEL,
    ],
    '{"all": "mandatory", "buckets-own-key": "disabled", "within-budget": "disabled",'
    ' "images-from-allowed-registries": {"registries": ["a"]}}': [KEYS_MISSING % ""],
    '{"within-budget": {"enforcementLevel": "advisory"}}': [
        "within-budget.max_usd_per_hour: must be set where the policy is on; got nothing. Fix: write"
        ' "within-budget": {"enforcementLevel": "advisory", "max_usd_per_hour": 400}, or'
        ' "within-budget": "disabled"'
    ],
    '{"within-budget": {"max_usd_per_hour": "400"}}': [
        'within-budget.max_usd_per_hour: must be a number above 0; got "400". Fix: write 400'
    ],
    '{"within-budget": {"max_usd_per_hour": true}}': [
        "within-budget.max_usd_per_hour: must be a number above 0; got true. Fix: write 400"
    ],
    '{"within-budget": {"max_usd_per_hour": 0}}': [
        "within-budget.max_usd_per_hour: must be a number above 0; got 0. Fix: write 400"
    ],
    '{"images-from-allowed-registries": {"registries": "x"}}': [
        "images-from-allowed-registries.registries: must be a list, not empty; got"
        ' "x". Fix: write ["x"]'
    ],
    '{"own-key": {"keys": null}}': [
        f"own-key.keys: must be a list, not empty; got null. Fix: write {json.dumps(KEYS)}"
    ],
    '{"tagged": {"required": []}}': [
        "tagged.required: must be a list, not empty; got []. Fix: write"
        ' ["trainyard:project", "trainyard:stack"]'
    ],
    '{"own-key": {"keys": ["a", "", 5]}}': [
        f'own-key.keys.1: must be text, not empty; got "". Fix: write {json.dumps(KEYS[0])}',
        f"own-key.keys.2: must be text, not empty; got 5. Fix: write {json.dumps(KEYS[0])}",
    ],
    '{"own-key": 5, "tagged": null}': [
        f'own-key: must be settings or a level; got 5. Fix: write {{"keys": {json.dumps(KEYS)}}}',
        'tagged: must be settings or a level; got null. Fix: write {"required":'
        ' ["trainyard:project", "trainyard:stack"]}',
    ],
    '{"own-key": "disabled", "own-key": {"keys": ["a"]}}': [
        "own-key: must be set once; got two values. Fix: delete one of the two"
    ],
}
"""What a file says → its errors."""
NO_CONFIGURATION: dict[bytes, str] = {
    b"": "must be JSON (Expecting value); got nothing",
    b" \t ": "must be JSON (Expecting value); got nothing",
    b'{"own-key": "disabled",}': "must be JSON (",
    b"\xef\xbb\xbf{}": "must be JSON (",
    b"\xff\xfe{}": "must be JSON (other bytes than those of UTF-8)",
    b"[" * 100_000: "must be JSON (too many levels)",
    b'{"within-budget": {"max_usd_per_hour": NaN}}': "must be JSON (no number is NaN)",
    b'{"within-budget": {"max_usd_per_hour": 1e999}}': "must be JSON (no number is 1e999)",
    b"1" * 5000: "must be JSON (no number is 1111",
    b"[]": "must be a map of policies; got []",
    b"null": "must be a map of policies; got null",
    b'"mandatory"': 'must be a map of policies; got "mandatory"',
}
"""What a file says that is no configuration → how its error begins."""


def said(file: Path, content: bytes | str) -> list[str]:
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [str(error) for error in read_config(file)[1]]


@pytest.mark.parametrize("text", REFUSED)
def test_what_no_policy_understands_is_an_error_with_its_place_and_what_to_write(
    text: str, tmp_path: Path
) -> None:
    file = tmp_path / "c.json"
    assert said(file, text) == [error.replace(":", f" [{file}:1]:", 1) for error in REFUSED[text]]


@pytest.mark.parametrize("content", NO_CONFIGURATION, ids=lambda content: repr(content[:40]))
def test_what_is_no_map_in_json_is_one_error(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    [error] = said(file, content)
    assert error.startswith(f"{file}:1: {NO_CONFIGURATION[content]}"), error
    assert "Fix: " in error and len(error) < 400


def test_a_file_that_is_not_there_is_one_error(tmp_path: Path) -> None:
    for file in (tmp_path / "none.json", tmp_path):
        [error] = read_config(file)[1]
        assert str(error).startswith(f"{file}: must be a file that can be read; got ")


def test_an_error_names_the_line_of_what_is_wrong(tmp_path: Path) -> None:
    text = '{\n  "own-key": {\n    "enforcementLevel": "mandatory",\n    "keys": [\n\t"a",\n\t""]}\n}\n'
    file = tmp_path / "c.json"
    [error] = said(file, text)
    assert error.startswith(f"own-key.keys.1 [{file}:6]: ")


def test_no_error_shows_a_secret(tmp_path: Path) -> None:
    token = "hf_" + "aB3" * 10
    for text in (f'{{"own-key": {{"keys": "{token}"}}}}', f"{token}", f'["{token}"]'):
        [error] = said(tmp_path / "c.json", text)
        assert token not in error.partition(". Fix: ")[0]


def test_every_error_of_a_file_is_said_at_once(tmp_path: Path) -> None:
    text = '{"own-keys": 1, "encrypted": "strict", "within-budget": "advisory", "tagged": []}'
    paths = [error.path for error in config_errors(json.loads(text))]
    assert paths == ["own-keys", "encrypted", "tagged", "within-budget.max_usd_per_hour"]


@pytest.mark.parametrize(
    "text",
    [text for text in REFUSED if all("Fix: write" in error for error in REFUSED[text])],
)
def test_what_an_error_says_to_write_ends_it(text: str) -> None:
    for error in config_errors(json.loads(text)):
        assert begins_with_a_verb(error.fix)
        if error.write is not None:
            configured = json.loads(text)
            _write(configured, error.path.split("."), error.write)
            assert error.path not in {left.path for left in config_errors(configured)}


def _write(into: Any, path: list[str], value: Any) -> None:
    """Put a value where a path leads; a level that is in the way goes into its settings."""
    key: Any = int(path[0]) if isinstance(into, list) else path[0]
    if not path[1:]:
        into[key] = value
        return
    if isinstance(into, dict) and not isinstance(into.get(key), dict | list):
        into[key] = {LEVEL: into[key]} if key in into else {}
    _write(into[key], path[1:], value)


def test_the_file_of_this_checkout_and_those_of_the_documents_have_no_error() -> None:
    assert read_config(CONFIG)[1] == ()
    page = (CHECKOUT / "docs/policies.md").read_text()
    [shown] = [part.partition("```")[0] for part in page.split("```json\n")[1:]]
    assert [*config_errors(json.loads(shown))] == []


def test_a_policy_that_must_be_configured_is_off_until_it_is() -> None:
    for rule in NEEDY:
        assert chosen(rule, {})[0] == chosen(rule, {rule.name: DISABLED})[0] == DISABLED
    own_key = BY_NAME["own-key"]
    keys = {"keys": KEYS}
    assert chosen(own_key, {"own-key": keys}) == (MANDATORY, keys)
    assert chosen(own_key, {"own-key": {LEVEL: ADVISORY, **keys}}) == (ADVISORY, keys)
    assert chosen(own_key, {"own-key": {LEVEL: DISABLED, **keys}})[0] == DISABLED


def test_all_is_the_level_of_each_policy_that_says_none() -> None:
    own_key, encrypted, stores = (
        BY_NAME[name] for name in ("own-key", "encrypted", "stores-protected")
    )
    configured = {
        ALL: ADVISORY,
        "own-key": {"keys": KEYS},
        "encrypted": MANDATORY,
        "tagged": {"required": ["team"]},
    }
    assert chosen(own_key, configured)[0] == ADVISORY
    assert chosen(encrypted, configured)[0] == MANDATORY
    assert chosen(BY_NAME["tagged"], configured) == (ADVISORY, {"required": ["team"]})
    assert chosen(stores, {ALL: {LEVEL: MANDATORY}})[0] == MANDATORY
    assert chosen(stores, {})[0] == ADVISORY and chosen(encrypted, {})[0] == MANDATORY


WORDS = st.sampled_from(
    [*BY_NAME, ALL, LEVEL, *(key for rule in RULES for key in rule.config), MANDATORY, "mandtory"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(), inner, max_size=6)
    ),
)


@given(value=VALUES)
def test_no_value_of_json_ends_in_a_traceback(value: Any, tmp_path_factory: Any) -> None:
    file = tmp_path_factory.getbasetemp() / "value.json"
    configured, errors = _read(file, json.dumps(value).encode())
    if not errors:
        assert isinstance(value, dict) and {*value} <= {*BY_NAME, ALL}
        for rule in RULES:
            level, settings = chosen(rule, configured)
            assert level == DISABLED or {*rule.needs_config} <= {*settings}


@given(content=st.binary() | VALUES.map(lambda value: json.dumps(value).encode()[:-1]))
def test_no_bytes_end_in_a_traceback(content: bytes, tmp_path_factory: Any) -> None:
    _read(tmp_path_factory.getbasetemp() / "bytes.json", content)


def _read(file: Path, content: bytes) -> Any:
    file.write_bytes(content)
    configured, errors = read_config(file)
    for error in errors:
        assert error.file == str(file) and str(error).encode() and begins_with_a_verb(error.fix)
    return configured, errors


def test_a_stack_is_not_judged_by_a_configuration_that_has_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(CHECKOUT)
    file = tmp_path / "config.json"
    for text in ("{", "[]", '{"own-keys": "mandatory", "within-budget": {}}'):
        file.write_text(text)
        assert judge_by("dev", file) == 1
        shown = capsys.readouterr().out
        assert "violates" not in shown and shown.splitlines()[0].startswith("  error    ")
        assert main([str(file)]) == 1 and capsys.readouterr().out == shown
    assert shown.splitlines()[-1] == f"{file}: 2 errors"
    assert main([]) == 0 and capsys.readouterr().out == ""
