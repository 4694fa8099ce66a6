"""Conditions of a script say which nodes run a command of it."""

from __future__ import annotations

import pytest

from trainyard.derive.branches import asks_for_a_rank, conditions_at, is_one_node

ONE = (
    'if [ "$PET_NODE_RANK" = 0 ]; then X; fi',
    "if [[ $RANK == 0 ]]; then a; X; fi",
    "if [ ${NODE_RANK:-0} -eq 1 ] && [ -f b ]; then X; fi",
    '[ "$JOB_COMPLETION_INDEX" = "0" ] && X',
    "[[ $(PET_NODE_RANK) -eq 0 ]] && { a; X; }",
    "if test $PET_NODE_RANK -eq 0; then X; fi",
    "if (( PET_NODE_RANK == 0 )); then X; fi",
    "((RANK == 0)) && X",
    "case $PET_NODE_RANK in\n 0) X;;\n esac",
    "N=$PET_NODE_RANK\nif [ $N = 0 ]; then if a; then X; fi; fi",
)
SOME = (
    'if [ "$PET_NODE_RANK" != 0 ]; then X; fi',
    "if [ $RANK = 0 ]; then a; else X; fi",
    "if [ $RANK = 0 ] || [ $RANK = 1 ]; then X; fi",
    "[ $RANK -ne 0 ] || X",
    "[ $RANK -gt 3 ] && X",
    "if [ $RANK != 0 ]; then a; exit 0; fi; X",
    "[ $RANK = 0 ] || exit 0; X",
    "if [ $RANK = 0 ]; then exec a; fi\nX",
    "case $PET_NODE_RANK in 0) a;; *) X;; esac",
    "N=${HOSTNAME##*-}; if [ $N = 0 ]; then X; fi",
    "[[ $(hostname) == *-0 ]] && X",
)
ALL = (
    "X",
    "if [ $PET_NNODES -gt 1 ]; then X; fi",
    "if [ $RANK = 0 ]; then a; fi; X",
    "[ $RANK = 0 ] && a; X",
    "case $RANK in 0) a;; esac; X",
    "RANK=0; if [ $RANK = 0 ]; then X; fi",
    "for i in 1 2; do X; done",
    "a || exit 1; X",
)


def _said(script: str) -> tuple[bool, bool]:
    conditions = conditions_at(script, script.rindex("X") + 1)
    return asks_for_a_rank(conditions), is_one_node(conditions)


@pytest.mark.parametrize("script", ONE)
def test_a_command_under_one_rank_is_of_one_node(script: str) -> None:
    assert _said(script) == (True, True)


@pytest.mark.parametrize("script", SOME)
def test_a_command_under_another_condition_of_ranks_is_of_some_nodes(script: str) -> None:
    assert _said(script) == (True, False)


@pytest.mark.parametrize("script", ALL)
def test_a_command_under_no_condition_of_ranks_is_of_all_nodes(script: str) -> None:
    assert _said(script) == (False, False)
