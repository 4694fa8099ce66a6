"""What a cluster has besides its control plane."""

from __future__ import annotations

from tests.support.stackfile import Edit, at, environment_plan, without


def test_drivers_are_installed_for_the_kinds_of_storage_there_are() -> None:
    def drivers(*edits: Edit) -> list[str]:
        return [a.name for a in environment_plan(*edits).add_ons.after_nodes]

    bare: list[Edit] = [at("storage", {}), at("jobs", {})]
    assert drivers() == ["coredns", "aws-fsx-csi-driver", "aws-efs-csi-driver"]
    assert drivers(without("storage.home")) == ["coredns", "aws-fsx-csi-driver"]
    assert drivers(*bare) == ["coredns"]
