"""What the pods of a run do now, in words. Why those that wait have not begun: test_symptoms.py, test_diagnosis.py."""

from __future__ import annotations

from typing import Any

from trainyard.catalog.logs.waiting import phases


def test_a_crash_loop_is_not_two_running_pods() -> None:
    def pod(restarts: int) -> dict[str, Any]:
        statuses = [{"restartCount": restarts}]
        return {"status": {"phase": "Running", "containerStatuses": statuses}}

    assert phases([pod(0), pod(0)]) == "2 Running"
    assert phases([pod(11), pod(9)]) == "2 Running, 20 restarts"
    assert phases([]) == "no pods yet"
