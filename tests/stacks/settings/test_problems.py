"""How errors and warnings read."""

from __future__ import annotations

from stacks.settings.problems import InputError, InputWarning, Refused, counted, listed

ERROR = InputError(path="environment.zone", must="be a zone", got="mars", fix="use ap-northeast-2a")
PLACED = InputError(path="spec.nodes", file="job.yaml", line=7, must="be 1", got="2", fix="write 1")
WARNING = InputWarning(path="jobs.a.image", text="is a tag")


def test_an_error_says_what_must_be_what_is_and_what_to_write() -> None:
    assert str(ERROR) == "environment.zone: must be a zone; got mars. Fix: use ap-northeast-2a"


def test_a_problem_names_file_and_line_behind_its_path_where_they_are_known() -> None:
    assert str(PLACED) == "spec.nodes [job.yaml:7]: must be 1; got 2. Fix: write 1"


def test_a_problem_of_a_whole_file_names_the_file() -> None:
    assert str(InputWarning(path="", file="job.yaml", text="is empty")) == "job.yaml: is empty"


def test_a_warning_says_where_and_what() -> None:
    assert str(WARNING) == "jobs.a.image: is a tag"


def test_errors_come_last_where_the_reader_looks() -> None:
    assert listed([ERROR, WARNING]) == [f"  warning  {WARNING}", f"  error    {ERROR}"]


def test_problems_are_counted_by_kind() -> None:
    assert counted([ERROR, ERROR, WARNING]) == "2 errors, 1 warning"
    assert (counted([ERROR]), counted([])) == ("1 error", "no errors")


def test_a_refusal_lists_every_error_on_a_line_of_its_own() -> None:
    refused = Refused([ERROR, PLACED])
    assert str(refused).splitlines() == [
        "2 errors in the stack file",
        f"  error    {ERROR}",
        f"  error    {PLACED}",
    ]
    assert refused.errors == (ERROR, PLACED)
