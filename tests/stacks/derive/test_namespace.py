"""The claims of a namespace."""

from __future__ import annotations

from tests.support.stackfile import Edit, at, environment_plan


def test_jobs_move_to_another_claim_only_where_there_is_another_file_system() -> None:
    def claims(*edits: Edit) -> dict[str, str]:
        return {c.store: c.name for c in environment_plan(*edits).workspace.claims}

    before, moved = claims(), claims(at("zone", "ap-northeast-2c"))
    assert moved["scratch"] != before["scratch"] and moved["home"] == before["home"], (
        "EFS is in every zone"
    )
    assert claims(at("storage.scratch.lustre.capacity_gib", 9600)) == before, (
        "a store that grows is the same"
    )
