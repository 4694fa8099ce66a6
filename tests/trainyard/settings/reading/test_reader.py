"""Reading stack files: strict at every depth, everything wrong at once, and nothing twice."""

from __future__ import annotations

import copy
import functools
import json
import re
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import jsonschema
import pulumi
import pulumi_aws as aws
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stacks.engine import read_engine
from tests.support.recording import CHECKOUT, NoLookups, configuration, stack_values
from tests.support.stackfile import ENVIRONMENT, TEAM, at, errors, reading, values, without
from trainyard.decide import plan_stack
from trainyard.problems import REMOVE
from trainyard.settings.aws import AssumeRoleConfig, AwsConfig, DefaultTagsConfig
from trainyard.settings.reading.patterns import PATTERNS
from trainyard.settings.reading.reader import StackConfig, json_schema, read, read_file
from trainyard.settings.reading.yaml_file import Lines, read_documents

JOB = "jobs.t5-large"
OWN = "trainer.own_runtimes.torch-distributed-resilient"

# One mistyped key in every kind of mapping a stack file has, and what was meant.
MISTYPED = {
    "poolz": "pools",
    "network.cdir": "cidr",
    "cluster.verison": "version",
    "system_nodes.node": "nodes",
    "karpenter.disable_dry_run": "dry_run",
    "pools.g6e.max_node": "max_nodes",
    "storage.scratch.date": "data",
    "storage.scratch.lustre.capacity_gb": "capacity_gib",
    "trainer.versions": "version",
    f"{OWN}.max_restart": "max_restarts",
    f"{JOB}.node": "nodes",
    f"{JOB}.storage.scratch.pth": "path",
    f"{JOB}.checkpoints.dir": "directory",
    "artifacts.chart": "charts",
}


@pytest.mark.parametrize("path", MISTYPED)
def test_a_mistyped_key_is_refused_at_every_depth_and_the_right_one_is_named(path: str) -> None:
    edits = [at("artifacts.charts", "/charts")] if path.startswith("artifacts") else []
    assert [
        f
        for f in errors(*edits, at(path, 1))
        if f.startswith(f"environment.{path}: must be the name of a setting; got ")
        and MISTYPED[path] in f.partition("Fix:")[2]
    ], errors(*edits, at(path, 1))


@pytest.mark.parametrize("value", ["no", "false", 0, None])
def test_whether_karpenter_makes_dry_runs_is_true_or_false_and_nothing_like_it(value: Any) -> None:
    [error] = errors(at("karpenter.dry_run", value))
    assert error.startswith("environment.karpenter.dry_run: must be true or false")


def test_a_key_that_resembles_nothing_lists_what_there_is() -> None:
    assert errors(at("network.mtu", 3)) == [
        "environment.network.mtu: must be the name of a setting; got mtu. Fix: delete it; the"
        " settings are cidr, zones, nat, internet, endpoints, flow_logs, vpc_id, private_subnets, s3_endpoint"
    ]


@pytest.mark.parametrize(
    ("path", "value", "way_out"),
    {
        "secrets": (
            "secrets",
            {"HF_TOKEN": {"secrets_manager": "vision/hf", "key": "token"}},
            "must be the name of a setting; got secrets. Fix: delete it, and write it in each job"
            " that names the runtime, as in secrets: {HF_TOKEN: {secrets_manager: vision/hf-token,"
            " key: token}}",
        ),
        "a variable": (
            "env.HF_TOKEN",
            {"secrets_manager": "vision/hf", "key": "token"},
            'must be text; got {"secrets_manager": "vision/hf", "key": "token"}. Fix: delete it,'
            " and write secrets: {HF_TOKEN: {secrets_manager: vision/hf, key: token}} in the job",
        ),
        "the token of torchtune": (
            "torchtune.token.secrets_manager",
            "vision/hf",
            "must be the name of a setting; got secrets_manager. Fix: delete it; put the token into"
            " a Kubernetes Secret of each namespace with such jobs",
        ),
    }.values(),
)
def test_a_secret_of_secrets_manager_in_a_runtime_is_refused_with_what_serves_instead(
    path: str, value: object, way_out: str
) -> None:
    runtime = "trainer.own_runtimes.torch-distributed-resilient"
    own = at(f"{runtime}.torchtune", {"token": {}})
    assert [each for each in errors(own, at(f"{runtime}.{path}", value)) if way_out in each]


def test_a_key_beside_environment_and_team_is_refused() -> None:
    extra = {**values(), "trainyard:zone": "ap-northeast-2a"}
    assert [str(f) for f in read(extra, stack="dev", project="trainyard").errors] == [
        "zone: must be the name of a setting; got zone. Fix: delete it; the settings are"
        " environment, team"
    ]


@pytest.mark.parametrize("key", ["environment", "team"])
def test_a_key_without_the_projects_name_is_one_error_with_the_whole_name(key: str) -> None:
    found = read({"aws:region": "eu-west-1", key: {}}, stack="dev", project="trainyard")
    assert [str(error) for error in found.errors] == [
        f"{key}: must begin with the project's name; got {key}. Fix: did you mean trainyard:{key}?"
    ]


def test_settings_of_other_projects_are_refused_since_nobody_reads_them() -> None:
    extra = {**values(), "other:zone": "{not json", "aws:profile": "me", "pulumi:tags": "{}"}
    [error] = read(extra, stack="dev", project="trainyard").errors
    assert (error.path, error.write) == ("other:zone", REMOVE)


# Who and where: the settings of the account.

ROLE = "arn:aws:iam::111122223333:role/deployer"
ACCOUNT = {
    "aws:profile": "corp",
    "aws:assumeRoles": [{"roleArn": ROLE, "sessionName": "ci", "duration": "1h30m"}],
    "aws:allowedAccountIds": ["111122223333"],
    "aws:defaultTags": {"tags": {"cost-center": "17"}},
}


def aws_errors(**settings: Any) -> list[str]:
    extra = {**values(), **{f"aws:{key}": value for key, value in settings.items()}}
    found = read(extra, stack="dev", project="trainyard")
    assert found.config, "a wrong setting of the account hides nothing else"
    return [str(error) for error in plan_stack(found).errors]


def test_environments_of_esc_stand_beside_the_settings_and_change_none(tmp_path: Path) -> None:
    """docs/services.md: Pulumi's service merges what they say, and the stack file wins."""
    text = (CHECKOUT / "Pulumi.dev.yaml").read_text()
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(text)
    (tmp_path / "Pulumi.esc.yaml").write_text(f"environment:\n  - trainyard/aws\n{text}")
    plain, beside = (read_file(stack, tmp_path) for stack in ("dev", "esc"))
    assert beside.errors == plain.errors == ()
    assert plain.config and beside.config == replace(plain.config, stack="esc")


def test_the_settings_of_the_account_are_read_as_pulumi_names_them() -> None:
    config = read({**values(), **ACCOUNT}, stack="dev", project="trainyard").config
    assert config and config.aws == AwsConfig(
        profile="corp",
        assumeRoles=(AssumeRoleConfig(roleArn=ROLE, sessionName="ci", duration="1h30m"),),
        allowedAccountIds=("111122223333",),
        defaultTags=DefaultTagsConfig(tags={"cost-center": "17"}),
    )


def test_the_engine_hands_the_settings_of_the_account_over_as_json_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of another namespace than the project's, and a profile that looks like a
    number."""
    given = {**values(), **ACCOUNT, "aws:profile": "7"}
    handed = configuration(given)
    assert handed["aws:assumeRoles"].startswith("[{") and handed["aws:profile"] == "7"
    pulumi.runtime.set_mocks(NoLookups(), project="trainyard", stack="dev")
    pulumi.runtime.set_all_config(handed)
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": given}))
    monkeypatch.chdir(tmp_path)
    assert read_engine() == read_file("dev", tmp_path)
    assert read_engine().config == read(given, stack="dev", project="trainyard").config


@pytest.mark.parametrize("key", ["accessKey", "secretKey", "token"])
def test_a_key_of_the_account_is_refused_and_never_shown(key: str) -> None:
    [error] = aws_errors(**{key: "wJalrXUtnFEMI"})
    assert error.startswith(
        f"aws:{key}: must not be set in a stack file; got a secret. Fix: delete it and use aws:pro"
    )
    assert "wJalr" not in error and "AWS_SECRET_ACCESS_KEY" in error


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {"endpoints": [{"s3": "x"}]},
            'got [{"s3": "x"}]. Fix: delete it and use AWS_ENDPOINT_URL, or',
        ),
        (
            {"skipCredentialsValidation": True},
            "must be the name of a setting; got skipCredentialsValidation. Fix: delete it; the"
            " settings are profile,",
        ),
        (
            {"profil": "me"},
            "aws:profil: must be the name of a setting; got profil. Fix: did you mean profile?",
        ),
        ({"profile": ""}, 'must not be empty; got "". Fix: write a value such as default'),
        ({"allowedAccountIds": [111122223333]}, 'Fix: write "111122223333"'),
        (
            {"allowedAccountIds": ["1111"]},
            "aws:allowedAccountIds.0: must be an account ID of twelve digits",
        ),
        ({"assumeRoles": [{}]}, "aws:assumeRoles.0.roleArn: must be set"),
        ({"assumeRoles": [{"roleARN": ROLE}]}, "Fix: did you mean roleArn?"),
        ({"assumeRole": {"roleArn": ROLE, "duration": "3600"}}, "Fix: write 3600s"),
        (
            {"assumeRole": {"roleArn": "ops"}},
            "aws:assumeRole.roleArn: must be the ARN of one IAM role",
        ),
        ({"defaultTags": {"team": "x"}}, "aws:defaultTags.tags: must be set"),
    ],
)
def test_a_wrong_setting_of_the_account_is_refused_with_a_fix(
    settings: dict[str, Any], says: str
) -> None:
    assert [error for error in aws_errors(**settings) if says in error], aws_errors(**settings)


def test_every_setting_of_the_aws_provider_is_taken_or_refused() -> None:
    """None is accepted and ignored; the provider's own names are what people copy."""
    theirs = set(aws.Provider._internal_init.__annotations__)
    assert {"profile", "assume_roles", "endpoints"} <= theirs
    ours = {field.name for field in fields(AwsConfig)}
    for name in theirs - {"opts", "return", "resource_name", "region"}:
        head, *rest = name.split("_")
        key = head + "".join(word.capitalize() for word in rest)
        assert key in ours or aws_errors(**{key: "x"}), key


@pytest.mark.parametrize("key", ["region", "aws", "stack", "project"])
def test_what_the_engine_says_cannot_be_said_by_a_setting_of_the_project(key: str) -> None:
    found = read({**values(), f"trainyard:{key}": "x"}, stack="dev", project="trainyard")
    instead = "; write aws:region" * (key == "region")
    assert [str(f) for f in found.errors] == [
        f"{key}: must be the name of a setting; got trainyard:{key}. Fix: delete"
        f" trainyard:{key}{instead}"
    ]
    assert found.config == reading().config


def test_errors_of_every_depth_are_reported_together() -> None:
    found = errors(
        without("zone"),
        at("cluster.version", 1.34),
        at("pools.g6e.max_nodes", "many"),
        at("storage.home.efz", {}),
        at(f"{JOB}.nodes", 0),
    )
    assert {f.partition(":")[0] for f in found} == {
        "environment.zone",
        "environment.cluster.version",
        "environment.pools.g6e.max_nodes",
        "environment.storage.home.efz",
        f"environment.{JOB}.nodes",
    }


@pytest.mark.parametrize(
    ("path", "value", "quoted"),
    [
        ("cluster.version", 1.34, '"1.34"'),
        ("cluster.version", 1.3, '"1.3"'),
        ("trainer.version", 2, "2.1.0"),
        ("trainer.version", 9, '"9"'),
        ("tags", {"cost-center": 17}, '"17"'),
        (f"{JOB}.env", {"DEBUG": True}, '"true"'),
    ],
)
def test_text_without_its_quotes_is_refused_with_the_text_that_was_meant(
    path: str, value: Any, quoted: str
) -> None:
    [error] = errors(at(path, value))
    must = "be a whole release" if quoted == "2.1.0" else "be text"
    assert error.endswith(f". Fix: write {quoted}") and f"must {must}; " in error


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("4", 'must be a whole number; got "4". Fix: write 4'),
        ("4 nodes", 'must be a whole number; got "4 nodes". Fix: write a value such as 4'),
        (True, "must be a whole number; got true. Fix: write a value such as 4"),
        (4.0, "must be a whole number; got 4.0. Fix: write 4"),
        (4.5, "must be a whole number; got 4.5. Fix: write a value such as 4"),
        (0, "must be at least 1; got 0. Fix: write a value such as 4"),
        (None, "must be a whole number; got null. Fix: write a value such as 4"),
    ],
)
def test_a_number_is_a_number_and_nothing_that_looks_like_one(value: Any, says: str) -> None:
    found = errors(at("pools.h100.max_nodes", value))
    assert (
        len(found) == 1
        and says in found[0]
        and found[0].startswith("environment.pools.h100.max_nodes: ")
    ), found


def test_a_value_that_fits_no_branch_of_a_union_is_one_error_with_a_path_of_ours() -> None:
    assert errors(at(f"{JOB}.processes_per_node", "many")) == [
        f"environment.{JOB}.processes_per_node: must be a whole number or be one of auto, gpu, cpu; got "
        '"many". Fix: write a whole number; or write one of auto, gpu, cpu, or delete'
        " it for auto"
    ]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("G6E", "g6e"),
        ("g6.e", "g6-e"),
        ("-g6e", "g6e"),
        ("g6e-", "g6e"),
        ("6e", "pool-6e"),
        ("1", "pool-1"),
        ("a" * 33, "a" * 32),
        ("", "pool-1"),
    ],
)
def test_a_name_that_kubernetes_or_aws_would_refuse_is_refused(name: str, meant: str) -> None:
    pool = {"instance_types": ["g6e.48xlarge"], "max_nodes": 1}
    [error] = errors(lambda s: s["pools"].update({name: pool}))
    assert error.startswith(f"environment.pools.{name}: must be a name") and "at most 32" in error
    assert error.endswith(f". Fix: rename it to {meant}")
    assert reading(lambda s: s["pools"].update({meant: pool})).errors == ()


@pytest.mark.parametrize("stack", ["Dev", "team.vision", "a" * 33])
def test_a_stack_name_that_cannot_begin_the_name_of_a_cluster_is_refused(stack: str) -> None:
    [error] = read(values(), stack=stack, project="trainyard").errors
    assert error.must.startswith("be a name") and "its file to Pulumi." in error.fix


@pytest.mark.parametrize(
    "path",
    [
        "zone",
        "cluster",
        "cluster.version",
        "pools",
        "pools.g6e.max_nodes",
        "trainer",
        "trainer.runtimes",
        f"{JOB}.image",
        f"{JOB}.pool",
        f"{OWN}.image",
    ],
)
def test_a_required_thing_has_no_default(path: str) -> None:
    says = f"environment.{path}: must be set; got nothing. Fix: add {path.rpartition('.')[2]}: "
    assert [error for error in errors(without(path)) if error.startswith(says)]


@pytest.mark.parametrize("settings", [{}, {ENVIRONMENT: None}, {ENVIRONMENT: {}, TEAM: {}}])
def test_a_stack_is_an_environment_or_a_team_and_not_both_or_neither(
    settings: dict[str, Any],
) -> None:
    found = read({"aws:region": "eu-west-1", **settings}, stack="dev", project="trainyard")
    assert found.errors[0].must == (
        "have settings under either trainyard:environment or trainyard:team"
    )


def test_a_team_beside_an_environment_is_one_error_and_the_environment_is_still_checked() -> None:
    both = {**values(at("zone", "ap-northeast-2")), TEAM: {"environment": "dev", "namespace": "a"}}
    found = plan_stack(read(both, stack="dev", project="trainyard")).errors
    assert [error.path for error in found] == ["trainyard", "environment.zone"]
    assert found[0].got == "both" and "move trainyard:team into" in found[0].fix


def test_a_stack_without_a_region_says_how_to_set_it() -> None:
    found = read({ENVIRONMENT: values()[ENVIRONMENT]}, stack="dev", project="trainyard")
    assert [str(error) for error in plan_stack(found).errors] == [
        "aws:region: must be set; got nothing. Fix: write aws:region: ap-northeast-2"
    ]


def test_a_stack_without_region_and_zone_says_how_to_set_the_region() -> None:
    found = read({ENVIRONMENT: {}}, stack="dev", project="trainyard")
    assert "run pulumi config set aws:region" in str(found.errors[0])


def test_a_stack_without_a_region_and_with_an_unknown_zone_has_no_second_error() -> None:
    odd = {ENVIRONMENT: values(at("zone", "mars-1a"))[ENVIRONMENT]}
    [error] = plan_stack(read(odd, stack="dev", project="trainyard")).errors
    assert error.path == "aws:region"


# Salvage: what is sound is checked although something else is wrong, and nothing is complained of
# twice.


def test_a_broken_pool_is_one_error_and_not_a_second_one_at_the_job_that_uses_it() -> None:
    assert errors(at("pools.g6e.max_nodes", "many")) == [
        'environment.pools.g6e.max_nodes: must be a whole number; got "many". Fix: write a value'
        " such as 4"
    ]


@pytest.mark.parametrize("path", ["storage.scratch.data", f"{OWN}.max_restarts", f"{JOB}.nodes"])
def test_a_broken_part_is_skipped_and_the_rest_is_still_checked(path: str) -> None:
    found = errors(at(path, "nonsense"), at("network.cidr", "8.8.8.0/24"))
    assert [f.partition(":")[0] for f in found] == [
        f"environment.{path}",
        *["environment.network.cidr"] * 2,
    ]


def test_a_mistyped_key_does_not_hide_what_the_rules_refuse() -> None:
    found = errors(at("pools.g6e.max_node", 4), at("zone", "ap-northeast-2"))
    assert [f.partition(":")[0] for f in found] == [
        "environment.pools.g6e.max_node",
        "environment.zone",
    ]


def test_a_sound_file_has_no_errors_and_no_stand_ins() -> None:
    found = reading()
    assert (found.errors, found.stand_ins.paths) == ((), ())
    assert isinstance(found.config, StackConfig)


# Two readers, one meaning.


@pytest.mark.parametrize("stack", ["dev", "team-vision"])
def test_the_engine_and_the_file_give_the_same_configuration(stack: str) -> None:
    pulumi.runtime.set_mocks(NoLookups(), project="trainyard", stack=stack)
    pulumi.runtime.set_all_config(configuration(stack_values(stack)))
    assert read_engine() == read_file(stack, CHECKOUT)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("config: {a: [}", "must be YAML"),
        ("config:\n  - a\n", "must contain settings under `config:`"),
        ("just words", "must contain settings under `config:`"),
        ("", "must be set"),
        ("config:\n", "must be set"),
        (
            "config:\n  aws:region: a\n  aws:region: b\n",
            "aws:region [Pulumi.x.yaml:3]: must be set once; got another value in line 2, which was not"
            " checked. Fix: delete one of the two",
        ),
    ],
)
def test_a_file_that_is_no_stack_file_is_an_error_and_not_a_traceback(
    tmp_path: Path, text: str, says: str
) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\n")
    (tmp_path / "Pulumi.x.yaml").write_text(text)
    found = plan_stack(read_file("x", tmp_path))
    assert found.plan is None and says in str(found.errors[0])


def test_a_file_that_is_no_yaml_is_called_by_its_name(tmp_path: Path) -> None:
    for text in ("config: {a: [}", "config:\n  a: \x01\n", "config:\n\t- a: b: c\n"):
        (tmp_path / "Pulumi.yaml").write_text("name: trainyard\n")
        (tmp_path / "Pulumi.x.yaml").write_text(text)
        said = "\n".join(map(str, read_file("x", tmp_path).errors))
        assert "Pulumi.x.yaml:" in said and "unicode string" not in said


STACK = """config:
  aws:region: ap-northeast-2
  trainyard:environment:
    zone: ap-northeast-2a
    cluster: {version: 1.30, public_access_cidrs: [192.0.2.7/32]}
    pools:
      1: {instance_types: [g6e.48xlarge], max_nodes: 4}
      no: {instance_types: [g6e.48xlarge], max_nodes: 4.50}
    trainer: {version: 2.1.0, runtimes: [torch-distributed]}
"""


def _errors_of_file(folder: Path, text: str) -> list[str]:
    (folder / "Pulumi.yaml").write_text("name: trainyard\n")
    (folder / "Pulumi.x.yaml").write_text(text)
    return [str(error) for error in plan_stack(read_file("x", folder)).errors]


def test_a_message_has_the_line_and_the_value_as_the_file_writes_it(tmp_path: Path) -> None:
    """YAML makes 1.3 of 1.30, and of the keys 1 and no a number and false."""
    version, one, no = _errors_of_file(tmp_path, STACK)
    assert version == (
        'environment.cluster.version [Pulumi.x.yaml:5]: must be text; got 1.30. Fix: write "1.30"'
    )
    assert one.startswith("environment.pools.1 [Pulumi.x.yaml:7]: must be a name")
    assert one.endswith('got "1". Fix: rename it to pool-1')
    assert no == (
        "environment.pools.no.max_nodes [Pulumi.x.yaml:8]: must be a whole number; got 4.50. Fix:"
        " write a value such as 4"
    )


def test_a_value_that_the_engine_was_given_is_shown_and_not_the_one_of_the_file() -> None:
    lines = Lines(file="x", written={"environment.cluster.version": "1.30"})
    given = values(at("cluster.version", 1.31))
    [error] = read(given, stack="dev", project="trainyard", lines=lines).errors
    assert error.got == "1.31"


def test_a_template_is_refused_with_its_line_and_not_with_a_python_object(tmp_path: Path) -> None:
    text = STACK.replace("version: 1.30", "version: {{ .Values.version }}")
    said = [each for each in _errors_of_file(tmp_path, text) if "cluster" in each]
    assert said == [
        "environment.cluster.version [Pulumi.x.yaml:5]: must not contain a placeholder: nothing fills it in; got"
        " {{ .Values.version }}. Fix: write what belongs there"
    ]


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("a: [", "close the bracket"),
        ("a: [b c: d", "close the bracket, or write a comma between two values"),
        ("a: 'b", "close the quotes"),
        ("a: *nowhere", "quote the value: * begins an alias"),
        ("a: !unknown b", "quote the value: ! begins a tag"),
        ("a: \x07", "delete the control character"),
        ("a: @b", "indent with blanks, not with tabs; quote a value that begins with @ or `"),
        ("a: b: c", "indent the line with blanks, as the lines it belongs to, or quote a value"),
    ],
)
def test_a_line_that_is_no_yaml_has_a_fix_of_its_own(line: str, fix: str) -> None:
    _, (error, *_) = read_documents(f"{line}\n", "x.yaml")
    assert error.fix.startswith(fix) and str(error).startswith("x.yaml:1: must be YAML (")


def test_every_pattern_of_a_setting_is_explained_in_words() -> None:
    used = set(re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', json.dumps(json_schema()["$defs"])))
    used |= set(
        re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', json.dumps(json_schema()["properties"]))
    )
    patterns = {json.loads(text) for text in used}
    assert len(patterns) >= 9 and patterns == set(PATTERNS)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("text", ["", "/", "a", "A b", "3600", ":", "data:/x"])
def test_what_is_proposed_for_a_pattern_matches_it(pattern: str, text: str) -> None:
    row = PATTERNS[pattern]
    assert re.search(pattern, row.meant(text) or row.example)


def test_every_example_is_accepted_where_it_is_proposed() -> None:
    """A missing setting is added with its example: that error is then gone."""
    missing = ["zone", "cluster", "cluster.version", "pools", "pools.g6e", "pools.g6e.max_nodes"]
    missing += ["pools.g6e.instance_types", "trainer", "trainer.version", "trainer.runtimes"]
    for path in missing:
        [error, *_] = reading(without(path)).errors or reading(at(path, None)).errors
        again = reading(at(path, error.write)).errors
        assert error.write is not None and again == (), (path, again)


def test_a_pool_that_is_given_twice_is_refused_as_the_engine_would(tmp_path: Path) -> None:
    text = (CHECKOUT / "Pulumi.dev.yaml").read_text().replace("      h100: {", "      g6e: {")
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(text)
    assert "environment.pools.g6e [Pulumi.dev.yaml:" in str(read_file("dev", tmp_path).errors[0])


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 10**6),
    st.floats(allow_nan=False),
    st.text(max_size=8),
    st.sampled_from(
        [
            "ap-northeast-2",
            "10.0.0.0/8",
            "g6e.48xlarge",
            "/dev/shm",
            "keep",
            "private",
            "torchrun x",
        ]
    ),
    st.lists(st.one_of(st.integers(0, 9), st.text(max_size=4)), max_size=2),
    st.dictionaries(
        st.one_of(st.text(max_size=6), st.integers(), st.booleans()), st.integers(0, 3), max_size=2
    ),
)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *(p for key, item in inner for p in _paths(item, (*path, key)))]


@given(stack=st.sampled_from(["dev", "team-vision"]), data=st.data())
def test_whatever_stands_in_a_stack_file_there_is_a_plan_or_an_error_and_never_a_traceback(
    stack: str, data: st.DataObject
) -> None:
    spoiled = copy.deepcopy(stack_values(stack))
    for _ in range(data.draw(st.integers(1, 3))):
        *way, last = data.draw(st.sampled_from(_paths(spoiled)[1:] or [("config",)]))
        holder: Any = spoiled
        for step in way:
            holder = holder[step]
        holder[last] = data.draw(ANYTHING)
    found = plan_stack(read(spoiled, stack=stack, project="trainyard"), CHECKOUT)
    assert (found.plan is None) == bool(found.errors)
    assert all(f.path and f.must and f.fix for f in found.errors)


# The schema that editors use.


@functools.cache
def in_an_editor() -> jsonschema.Draft202012Validator:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_schema_in_docs_is_the_one_that_the_types_give() -> None:
    written = json.loads((CHECKOUT / "docs" / "stack.schema.json").read_text())
    assert written == json_schema(), "make schema"


@pytest.mark.parametrize("stack", ["dev", "team-vision"])
def test_the_schema_accepts_the_stack_files_of_the_checkout(stack: str) -> None:
    in_an_editor().validate({"config": stack_values(stack)})


@pytest.mark.parametrize("path", MISTYPED)
def test_the_schema_refuses_what_the_reader_refuses(path: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        in_an_editor().validate({"config": values(at(path, 1))})


def test_the_schema_knows_the_settings_of_the_account() -> None:
    in_an_editor().validate({"config": {**values(), **ACCOUNT}})


@pytest.mark.parametrize(
    "extra",
    [
        {"trainyard:zone": "a"},
        {TEAM: {"environment": "dev", "namespace": "a"}},
        {"aws:accessKey": "a"},
        {"aws:profiles": "a"},
        {"aws:assumeRoles": [{"rolearn": ROLE}]},
        {"aws:allowedAccountIds": [111122223333]},
    ],
)
def test_the_schema_knows_the_keys_of_the_project(extra: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        in_an_editor().validate({"config": {**values(), **extra}})


def test_the_types_of_settings_are_no_text_that_pydantic_must_compile_again() -> None:
    modules = [
        module for name, module in sys.modules.items() if name.startswith("trainyard.settings.")
    ]
    configs = [each for m in modules for name, each in vars(m).items() if name.endswith("Config")]
    assert len(configs) > 30
    texts = {c.__name__ for c in configs if any(isinstance(f.type, str) for f in fields(c))}
    assert not texts, f"{texts}: see trainyard/settings/__init__.py"
