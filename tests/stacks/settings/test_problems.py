"""What a refusal says."""

from __future__ import annotations

from stacks.settings.problems import Fault, Notice, Refused

FAULT = Fault(
    path="environment.zone", rule="is a zone", value="mars", way_out="use ap-northeast-2a"
)


def test_a_fault_says_path_rule_value_and_way_out_in_one_line() -> None:
    assert str(FAULT) == "environment.zone: is a zone, got mars; use ap-northeast-2a"


def test_a_refusal_lists_every_fault_on_a_line_of_its_own() -> None:
    refused = Refused([FAULT, FAULT])
    assert str(refused).splitlines() == ["2 faults in the stack file", f"  {FAULT}", f"  {FAULT}"]
    assert refused.faults == (FAULT, FAULT)


def test_one_fault_is_singular() -> None:
    assert str(Refused([FAULT])).startswith("1 fault in")


def test_a_notice_says_where_and_what() -> None:
    assert str(Notice(path="jobs.a.image", text="is a tag")) == "jobs.a.image: is a tag"
