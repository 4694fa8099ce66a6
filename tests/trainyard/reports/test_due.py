"""`trainyard due`: one list of what is due, with a day and with what to do."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.stackfile import Edit, at, environment_plan, reading, team_plan, without
from tests.support.teams import with_queues
from tests.support.tool import run_word
from tests.trainyard.live.test_preflight import account, block
from trainyard.catalog import versions
from trainyard.catalog.aws.zones import SNAPSHOT
from trainyard.catalog.upstream.releases import NEWEST
from trainyard.live.questions.caller import NotAnswered
from trainyard.plan import EnvironmentPlan
from trainyard.reports import due

NOW = datetime(2026, 11, 22, tzinfo=UTC)
DNS = "v1.13.2-eksbuild.31"


def found(*edits: Edit, now: datetime = NOW) -> dict[str, due.Due]:
    """By the first words of what is due."""
    config = reading(*edits).config
    assert config and config.environment
    list_ = due.due(environment_plan(*edits), config.environment, now)
    return {" ".join(one.what.split()[:2]): one for one in list_}


def test_the_end_of_support_is_due_with_its_price_and_the_version_to_write() -> None:
    one = found(without("storage.scratch"), at("jobs", {}))["standard support"]
    assert one == due.Due(
        what=(
            "standard support of Kubernetes 1.35 ends on 2027-03-27, in 125 days: the control plane"
            " then costs $0.60 an hour instead of $0.10 (us-east-1)"
        ),
        when="until 2027-03-27",
        do='write cluster: {version: "1.36"}; docs/upgrades.md has the order',
    )


def test_what_check_says_of_the_stores_on_the_next_release_is_said_where_it_is_proposed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "have kernel" not in found()["standard support"].do
    newer = replace(versions.KUBERNETES["1.36"], kernel="7.0")
    monkeypatch.setitem(versions.KUBERNETES, "1.36", newer)
    said = found()["standard support"].do
    assert said.startswith(
        'write cluster: {version: "1.36"}; docs/upgrades.md has the order; environment.storage.'
    )
    assert "nodes of Kubernetes 1.36 have kernel 7.0" in said


def test_support_that_has_ended_is_due_since_then() -> None:
    one = found(at("cluster.version", "1.34"), now=datetime(2027, 1, 1, tzinfo=UTC))
    said = one["standard support"]
    assert said.when == "since 2026-12-02" and "ended on 2026-12-02" in said.what
    assert '"1.35"' in said.do


def test_after_the_newest_version_the_checkout_is_due() -> None:
    said = found(at("cluster.version", "1.36"))["standard support"]
    assert said.do == "update this checkout: it knows no later version"


def test_a_capacity_block_is_due_on_the_day_it_ends() -> None:
    [said] = [one for one in found(block).values() if "Capacity" in one.what or "cr-" in one.what]
    assert said.what == "cr-0123456789abcdef0, the block of pool h100, ends at 00:00 UTC"
    assert said.when == "until 2098-12-08" and said.do.startswith("delete pools.h100 after it")


def test_system_nodes_that_the_stack_file_holds_back_are_due() -> None:
    said = found(at("system_nodes.release", "1.35.7-20260912"))["system nodes"]
    assert said.what == "system nodes have AMI release 1.35.7-20260912; 1.35.8-20261012 is newer"
    assert said.when == "since 2026-10-12"
    assert "system nodes" not in found(at("system_nodes.release", "1.35.9-20261112"))


def test_a_later_trainer_is_due_where_it_was_tried_with_the_clusters_kubernetes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "write trainer: {version: 2.3.0}" in found()["Trainer 2.1.0"].do
    assert "Trainer 2.1.0" in found(at("cluster.version", "1.36"))
    assert "Trainer 2.3.0" not in found(at("trainer.version", "2.3.0"))
    monkeypatch.setattr(versions, "KNOWN_GOOD", versions.KNOWN_GOOD[:1])
    assert "Trainer 2.1.0" not in found(), "never tried"


def test_newer_releases_of_upstream_are_due_with_what_moving_means() -> None:
    list_ = found()
    assert list_["Karpenter is"] == due.Due(
        what="Karpenter is 1.14.1 here; 1.15.2 was the newest on 2026-11-26",
        when="",
        do=(
            "write karpenter: {version: 1.15.2}: its CRDs change and then its pods, one by one, and no"
            " node does; its node repair, its reboot gate and its terminate-first drift are off in its"
            " chart, and stay off; what it asks of IAM is the same"
        ),
    )
    assert "Karpenter is" not in found(at("karpenter.version", "1.15.2"))
    assert list_["JobSet is"].what.startswith("JobSet is 0.10.1 here; 0.13.0")
    assert list_["NVIDIA device"].what.startswith("NVIDIA device plugin is 0.18.0 here; 0.20.0")
    assert list_["pulumi is"].what.startswith("pulumi is 3.259.0 here; 3.272.0")
    assert "pulumi-aws is" not in list_, "it is the newest"


def test_the_trainer_is_due_once_with_the_release_to_write_and_the_newest_of_upstream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It had two entries, one for each release."""
    list_ = found()
    [said] = [one for one in list_.values() if one.what.startswith("Trainer")]
    assert said.what == (
        "Trainer 2.1.0 is installed; 2.3.0 is newer, and 2.4.0 was the newest on 2026-11-26"
    )
    assert said.do.startswith(
        "write trainer: {version: 2.3.0}; docs/upgrades.md has the order. Then update this program once a"
        " release of it has 2.4.0: 2.1 moves to 2.3 first"
    )
    later = found(at("trainer.version", "2.3.0"))["Trainer is"]
    assert later.what == "Trainer is 2.3.0 here; 2.4.0 was the newest on 2026-11-26"
    monkeypatch.setitem(NEWEST, "Trainer", replace(NEWEST["Trainer"], release="2.3.0"))
    known = found()["Trainer 2.1.0"]
    assert known.what == "Trainer 2.1.0 is installed; 2.3.0 is newer"
    assert known.do == "write trainer: {version: 2.3.0}; docs/upgrades.md has the order"


def test_a_newer_kueue_is_due_where_there_are_queues() -> None:
    assert "Kueue is" not in found()
    assert "kueue#14558" in found(with_queues)["Kueue is"].do
    later = found(with_queues, at("trainer.version", "2.3.0"))
    assert later["Kueue is"].what == "Kueue is 0.19.2 here; 0.20.1 was the newest on 2026-11-26"
    assert later["JobSet is"].what.startswith("JobSet is 0.12.0 here")


def test_a_package_that_is_not_installed_is_not_due(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(due.metadata, "version", missing)
    assert "pulumi is" not in found() and "Karpenter is" in found()


def test_what_is_as_new_as_upstream_is_not_due(monkeypatch: pytest.MonkeyPatch) -> None:
    karpenter = replace(NEWEST["Karpenter"], release="1.14.1")
    monkeypatch.setitem(NEWEST, "Karpenter", karpenter)
    assert "Karpenter is" not in found()


def test_a_later_trainer_that_would_take_stores_from_queued_jobs_says_so() -> None:
    said = found(with_queues)["Trainer 2.1.0"].do
    assert (
        "docs/upgrades.md has the order. Before it let the TrainJobs of teams end, those that wait and those that"
        " run: they lose podTemplateOverrides, and with it their stores. Then update this program"
    ) in said
    assert "queue" not in found()["Trainer 2.1.0"].do


def test_tables_that_are_too_old_are_due_with_the_command_that_reads_them_again() -> None:
    late = found(now=datetime(2028, 1, 1, tzinfo=UTC))
    prices, offers = late["some of"], late["the table"]
    assert prices.do == "python -m trainyard.catalog.refresh --prices" and prices.when.startswith(
        "since 20"
    )
    assert offers.do == "python -m trainyard.catalog.refresh" and SNAPSHOT in offers.what


def test_prices_are_late_since_the_oldest_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was read again makes the others no younger."""
    dates = {"idle": "2026-11-01", "at_work": "2025-02-03", "all_full": None}
    costs = SimpleNamespace(**{name: SimpleNamespace(as_of=day) for name, day in dates.items()})
    costs.paid_once = None
    monkeypatch.setattr(due, "estimate", lambda _: costs)
    late = found(now=datetime(2028, 1, 1, tzinfo=UTC))["some of"]
    assert late.when == "since 2025-02-03"
    costs.paid_once = SimpleNamespace(as_of="2025-01-02")
    late = found(now=datetime(2028, 1, 1, tzinfo=UTC))["some of"]
    assert late.when == "since 2025-01-02", "a block's price is a price too"


def test_what_ends_next_is_first_and_what_has_no_day_is_last() -> None:
    whens = [one.when.rpartition(" ")[::2] for one in found(block).values()]
    ends = [day for word, day in whens if word == "until"]
    assert len(ends) > 1 and ends == sorted(ends) and ends[-1] == "2098-12-08"
    assert [word for word, _ in whens[len(ends) :]] == [
        "since",
        *[""] * (len(whens) - len(ends) - 1),
    ]


def newer(**answers: Any) -> list[due.Due]:
    plan = environment_plan()
    assert isinstance(plan, EnvironmentPlan)
    return due.newer(account(**answers), plan)


def test_newer_builds_and_amis_of_the_account_are_due() -> None:
    said = newer(add_on_builds=["v1.13.9-eksbuild.1", DNS])
    [coredns] = [one for one in said if "coredns" in one.what]
    assert coredns.what == f"add-on coredns {DNS} is pinned; EKS offers v1.13.9-eksbuild.1"
    assert coredns.do == 'write it in trainyard/catalog/versions.py, KUBERNETES["1.35"].add_ons'
    amis = [one for one in said if one.what.startswith("AMI")]
    assert [one.what for one in amis] == [
        f"AMI release v20261012 is pinned for {variant} nodes; EKS recommends 1.35.8-20261101"
        for variant in ("nvidia", "standard")
    ]
    assert {one.when for one in amis} == {"since 2026-11-01"}
    assert amis[0].do == "write v20261101 in trainyard/catalog/versions.py, AMI_RELEASE"


def test_a_newer_bottlerocket_is_due_where_a_pool_has_it() -> None:
    def own(settings: dict[str, Any]) -> None:
        settings["pools"]["g6e"]["ami_family"] = "Bottlerocket"

    def said(newest: str, *edits: Any) -> list[str]:
        plan = environment_plan(*edits)
        found = due.newer(account(newest_bottlerocket=newest), plan)
        return [one.what for one in found if "Bottlerocket" in one.what]

    assert said("v1.99.0", own) == [
        f"Bottlerocket {versions.BOTTLEROCKET_RELEASE} is pinned; the region has v1.99.0"
    ]
    assert said("v1.99.0") == said(versions.BOTTLEROCKET_RELEASE, own) == said("v1.9.0", own) == []


def test_what_is_newest_already_is_not_due() -> None:
    assert newer(add_on_builds=["v1.0.0-eksbuild.1"], recommended_ami="1.35.8-20261012") == []
    assert newer(add_on_builds=[], recommended_ami="1.35.8-20261012") == []


def test_a_question_that_is_denied_is_in_the_list_and_hides_no_other() -> None:
    denied = NotAnswered("ssm:GetParameter: AccessDeniedException")
    said = newer(add_on_builds=["v9.0.0-eksbuild.1"], recommended_ami=denied)
    failed = [one.what for one in said if "failed" in one.what]
    assert failed == [f"a question to the account failed: {denied}"] * 2
    assert len(said) > len(failed)
    [only] = newer(caller_arn=NotAnswered("sts:GetCallerIdentity: ExpiredToken"))
    assert "ExpiredToken" in only.what


def test_a_program_reads_it_as_json_and_a_person_as_a_list(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_word("due", ["dev", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"what", "when", "do"} == told[0].keys()
    assert run_word("due", ["dev"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"dev: {len(told)} due\n") and said.count("\n  do: ") == len(told)


def test_live_asks_the_account(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(due, "Account", lambda access: account())
    assert run_word("due", ["dev", "--live"]) == 0
    assert "EKS recommends 1.35.8-20261101" in " ".join(capsys.readouterr().out.split())


def test_a_team_is_sent_to_its_environment(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_word("due", ["team-vision"]) == 0
    assert "trainyard due dev" in capsys.readouterr().out
    assert due.text(team_plan(), [])[0].startswith("team-vision has nothing due")


def test_a_stack_without_a_sound_file_has_no_list(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_word("due", ["dev"]) == 2
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {trainyard:environment: {}}\n")
    assert run_word("due", ["dev"]) == 1
    assert "no project file" in capsys.readouterr().out
