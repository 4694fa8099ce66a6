"""The soak in shards, and the table of what passed: no world is started here."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
import yaml

from tests.support.parts import Part, part
from tests.support.recording import CHECKOUT
from tests.worlds import proofs, shards
from tests.worlds.pieces import ALSO, PIECES, WORLDS, Piece
from tests.worlds.proofs import Proof

SECONDS = shards.durations()
NIGHTLY = shards.split(SECONDS, shards.SHARDS)
JUNIT = """\
<testsuites><testsuite>
<testcase classname="tests.worlds.test_a" name="test_one[x]" time="12.4" />
<testcase classname="tests.worlds.test_a" name="test_two" time="3"><failure /></testcase>
<testcase classname="tests.worlds.test_a" name="test_three" time="3"><skipped /></testcase>
<testcase classname="tests.worlds.test_b" name="test_one" time="3" />
<testcase name="tests.worlds.crawl --alone" time="40" />
</testsuite></testsuites>
"""


@pytest.mark.parametrize("count", [1, 2, shards.SHARDS, 200])
def test_each_piece_is_in_one_shard(count: int) -> None:
    found = [piece for shard in shards.split(SECONDS, count) for piece in shard]
    assert sorted(found, key=str) == sorted(PIECES, key=str) and len(PIECES) > 50


def test_a_shard_ends_in_45_minutes_and_shards_are_as_long_as_each_other() -> None:
    minutes = [shards.lasts(shard, SECONDS) / 60 for shard in NIGHTLY]
    assert max(minutes) <= 45 and len(minutes) == shards.SHARDS
    work = [(len(shard), sum(SECONDS[piece] for piece in shard)) for shard in NIGHTLY]
    several = [seconds for pieces, seconds in work if pieces > 1]  # nothing divides one piece
    assert len(several) > len(work) / 2 and min(several) > max(several) / 2


def test_the_longest_pieces_begin_first_and_two_run_beside_each_other() -> None:
    pieces = [Piece(name=name) for name in "abcde"]
    seconds = dict(zip(pieces, (1, 5, 2, 4, 3), strict=True))
    assert [[piece.name for piece in shard] for shard in shards.split(seconds, 2)] == [
        ["b", "c", "a"],
        ["d", "e"],
    ]
    assert shards.lasts(pieces, seconds) == 8  # a, c and b; then d and e
    both, ran = threading.Barrier(2, timeout=30), []

    def run(piece: Piece) -> bool:
        both.wait()  # breaks where one runs alone
        ran.append(piece)
        return piece.name != "c"

    assert [piece.name for piece in shards.run_all(pieces[:4], run)] == ["c"]
    assert len(ran) == 4, "the others run all the same"


def test_a_piece_that_fails_is_named_and_is_no_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sound, broken = (Piece(name=f"json.tool {tmp_path}/{name}") for name in ("sound", "broken"))
    for name, text in (("sound", "{}"), ("broken", "{")):
        (tmp_path / name).write_text(text)
    built: list[set[str]] = []
    monkeypatch.setattr(shards, "build", built.append)
    monkeypatch.setattr(shards, "durations", lambda: {sound: 1, broken: 1})
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert shards.main(["1/1"]) == 1 and built == [set()]
    assert capsys.readouterr().out.splitlines()[-1] == f"FAILED {broken.name}"
    found = [proofs.passed(file.read_text()) for file in tmp_path.glob("soak-*/*.xml")]
    assert [[*each] for each in found] == [[sound.name]]
    monkeypatch.setattr(shards, "durations", lambda: {sound: 1})
    assert shards.main(["1/1"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "everything held"


def test_ci_runs_another_shard_for_each_commit_and_the_same_for_one() -> None:
    commits = [f"{number:040x}" for number in range(1000)]
    found = [shards.of_commit(commit, SECONDS) for commit in commits]
    short = {n for n, s in enumerate(NIGHTLY, 1) if shards.lasts(s, SECONDS) <= shards.CI_SECONDS}
    assert {*found} == short and len(short) > shards.SHARDS / 2
    assert all(found.count(number) <= 1000 / len(short) + 1 for number in short)
    assert found == [shards.of_commit(commit, SECONDS) for commit in commits]


def test_ci_names_the_word_that_runs_its_shard_again_before_anything_is_installed() -> None:
    text = (CHECKOUT / ".ci/run").read_text()
    first, _, rest = text.partition("make lint")
    assert "make soak SHARD=$shard" in first and 'make soak SHARD="$shard"' in rest
    words = [sys.executable, "-I", "-S", "-c"]
    code = f"import sys; sys.path[:0] = [{str(CHECKOUT)!r}]; from tests.worlds import shards"
    done = subprocess.run(
        [*words, f"{code}; sys.exit(shards.main(['--of', 'abc']))"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
    )
    assert re.fullmatch(rf"\d+/{shards.SHARDS}\n", done.stdout), done.stderr


def test_every_night_all_shards_run() -> None:
    [job] = yaml.safe_load((CHECKOUT / ".github/workflows/nightly.yaml").read_text())[
        "jobs"
    ].values()
    assert job["strategy"]["matrix"]["shard"] == [*range(1, shards.SHARDS + 1)]
    assert job["strategy"]["fail-fast"] is False
    assert any(
        f"make soak SHARD=${{{{ matrix.shard }}}}/{shards.SHARDS}" in step.get("run", "")
        for step in job["steps"]
    )


@pytest.mark.parametrize("piece", [each for each in PIECES if not each.is_tests], ids=str)
def test_a_command_of_the_soak_has_the_options_it_is_run_with(
    piece: Piece, capsys: pytest.CaptureFixture[str]
) -> None:
    module, *options = piece.words
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(module).main(["--help"])
    said = capsys.readouterr().out
    assert ended.value.code == 0 and [o for o in options if o[0] == "-" and o not in said] == []


def test_whoever_needs_a_program_is_a_piece() -> None:
    assert {*ALSO} - {piece.name for piece in PIECES} == set()


def test_without_a_shard_nothing_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        shards.main([])
    assert ended.value.code == 2
    assert "name a shard, as 3/32" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b", "3/24 "])
def test_a_shard_that_there_is_not_is_refused(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        shards.main([text])
    assert ended.value.code == 2
    assert f"must be n/N with 1 <= n <= N, such as 3/24; got {text}" in capsys.readouterr().err


def test_a_part_of_a_list_and_all_parts_are_the_list() -> None:
    assert part("2/3") == Part(2, 3) and str(part("2/3")) == "2/3"
    assert sorted(each for n in (1, 2, 3) for each in Part(n, 3).of(range(10))) == [*range(10)]


def test_what_passed_is_recorded_and_what_failed_keeps_its_line() -> None:
    before = {
        name: Proof(name=name, commit="old", day="2026-01-01", seconds=9)
        for name in ("tests/worlds/test_a.py::test_two", "tests/worlds/test_a.py::gone", "x")
    }
    guess = Proof(name="tests/worlds/test_a.py", seconds=500)
    pieces = ["tests/worlds/test_a.py", "tests.worlds.crawl --alone"]
    found = proofs.passed(JUNIT)
    now = proofs.recorded(before | {guess.name: guess}, found, pieces, "new")
    assert {name: (each.commit, each.seconds) for name, each in now.items()} == {
        "tests/worlds/test_a.py::test_one[x]": ("new", 12),
        "tests/worlds/test_a.py::test_two": ("old", 9),
        "tests/worlds/test_a.py::gone": ("old", 9),
        "tests.worlds.crawl --alone": ("new", 40),
        "x": ("old", 9),
    }
    assert proofs.read(proofs.written(now.values())) == now
    assert proofs.passed(JUNIT, slower=2)["tests.worlds.crawl --alone"] == 20
    assert sum(each.seconds for each in proofs.of_piece(now, "tests/worlds/test_a.py")) == 30


def test_the_table_is_sorted_and_names_pieces_of_today() -> None:
    text = proofs.TABLE.read_text()
    table = proofs.read(text)
    assert proofs.written(table.values()) == text
    assert [name for name in table if name.partition("::")[0] not in WORLDS] == []
    assert all(proofs.exists(name) for name in WORLDS)
    assert not proofs.exists("tests/worlds/test_rehearsal.py::test_that_nobody_wrote[x]")
    assert not proofs.exists("tests.worlds.crawl --elsewhere")


def _commit(folder: Path, file: str) -> str:
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    with (folder / file).open("a") as out:
        out.write("x\n")
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", file], check=True)
    return subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()


def test_a_proof_is_old_after_many_commits_that_change_what_it_proves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proofs, "CHECKOUT", tmp_path)
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    queue, other = "tests/worlds/test_queue_world.py", "tests/worlds/test_rehearsal.py"
    first = _commit(tmp_path, "trainyard/derive/queues.py")
    for _ in range(proofs.OLD_COMMITS):
        _commit(tmp_path, "trainyard/derive/queues.py")
    table = {
        f"{piece}::test": Proof(name=f"{piece}::test", commit=first, day="2026-01-01")
        for piece in (queue, other)
    }
    assert proofs.old(table, [queue, other]) == []
    for file in ("components/jobs/pods.py", "tests/support/queues.py", "docs/queues.md"):
        _commit(tmp_path, file)
    changed = f"21 commits since {first}, 2026-01-01: {other}::test"
    assert proofs.old(table, [queue, other]) == [changed]
    _commit(tmp_path, "trainyard/objects/queues/flavors.py")
    gone = Proof(name="tests/worlds/test_reach_world.py", commit="f" * 40)
    assert proofs.old(table | {gone.name: gone}, [queue, other, "tests/worlds/test_new.py"]) == [
        "never passed in a recorded run: tests/worlds/test_new.py",
        f"21 commits since {first}, 2026-01-01: {queue}::test",
        f"{'f' * 40} is no commit of this history: {gone.name}",
        changed.replace("21 commits", "22 commits"),
    ]


def test_every_noun_that_a_proof_is_about_names_files_and_every_subject_a_piece() -> None:
    for start, nouns in proofs.SUBJECTS.items():
        assert any(piece.name.startswith(start) for piece in PIECES), start
        for noun in nouns:
            patterns = proofs.patterns(noun)
            found = subprocess.check_output(["git", "ls-files", *patterns], cwd=CHECKOUT)
            assert found, (start, noun)
