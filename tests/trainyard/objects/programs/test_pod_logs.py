"""The configuration of Fluent Bit, and what its role may do."""

from __future__ import annotations

import re

import pytest

from trainyard.objects.programs.pod_logs import (
    CHUNK_MIB,
    MEMORY_MIB,
    PREFIX,
    PodLogsPlan,
    fluent_bit_config,
    stream,
    writing,
)

PLAN = PodLogsPlan(image="i", role_name="r", group_name="/trainyard/pods/g", region="x", days=30)
SECTIONS = re.split(r"^\[\w+]\n", fluent_bit_config(PLAN), flags=re.MULTILINE)


def option(name: str) -> str:
    [value] = re.findall(rf"^    {re.escape(name)} (.+)$", fluent_bit_config(PLAN), re.MULTILINE)
    return value


def test_it_has_the_three_sections_in_the_classic_form() -> None:
    assert SECTIONS[0] == "" and len(SECTIONS) == 4
    lines = [line for section in SECTIONS for line in section.splitlines() if line]
    assert all(re.fullmatch(r"    [a-z._]+ \S.*", line) for line in lines), lines


@pytest.mark.parametrize(
    ("pod", "container"),
    [("run-node-0-1-abcde", "node"), ("old-master-0", "pytorch"), ("a.b-0", "x-y")],
)
def test_the_name_of_a_file_says_namespace_pod_and_container(pod: str, container: str) -> None:
    file = f"{pod}_training_{container}-{'0a' * 32}.log"
    found = re.search(option("tag_regex").replace("(?<", "(?P<"), file)
    assert found
    tag = re.sub(r"<(\w+)>", lambda name: found[name[1]], option("tag"))
    assert f"{option('log_stream_prefix')}{tag}" == f"{stream('training', pod)}.{container}"
    assert stream("training", pod).startswith(PREFIX)


def test_it_makes_no_log_group_which_would_have_no_retention_and_no_key() -> None:
    assert option("auto_create_group") == "off"
    [statement] = writing("arn:aws:logs:x:1:log-group:g")["Statement"]
    assert "logs:CreateLogGroup" not in statement["Action"]


def test_what_it_keeps_on_the_node_is_limited() -> None:
    assert option("storage.type") == "filesystem"
    assert option("storage.total_limit_size") == "512M"


def test_what_it_keeps_in_memory_while_cloudwatch_is_away_is_below_half_of_its_memory() -> None:
    """The other half is for its own work."""
    waiting = int(option("storage.max_chunks_up")) * CHUNK_MIB
    read_again = int(option("storage.backlog.mem_limit").removesuffix("M"))
    assert 0 < waiting + read_again <= MEMORY_MIB / 2
