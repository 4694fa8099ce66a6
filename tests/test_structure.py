"""Data flows one way: from the stack file through the plan into components, and nothing flows
back."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.support.recording import CHECKOUT
from trainyard.catalog import versions
from trainyard.objects.jobs.upstream_runtimes import upstream_runtimes
from trainyard.parts import parts
from trainyard.parts.part import Part
from trainyard.parts.parts import PARTS
from trainyard.stores.kinds import KINDS


def _files(*patterns: str) -> list[Path]:
    return [path for pattern in patterns for path in sorted(CHECKOUT.glob(pattern))]


BRAIN = [
    path
    for path in _files("trainyard/**/*.py")
    if not path.is_relative_to(CHECKOUT / "trainyard/in_cluster")
]
"""Everything in trainyard/ but the programs that run in pods."""
TOOL = _files("trainyard/cli/**/*.py", "trainyard/__main__.py")
"""Reads what somebody types. It alone knows that a rehearsal may run in a folder."""
WORDS = [*_files("trainyard/operations/**/*.py"), *TOOL]
"""The words for a cluster that runs, and the tool that reads all words."""
PROGRAM = [
    *_files("__main__.py", "package/*.py", "stacks/**/*.py", "components/**/*.py"),
    *(path for path in BRAIN if path not in WORDS),
]
"""What the engine runs, and what judges and reports before."""
PRODUCT = [*PROGRAM, *WORDS]
SHARED = _files("trainyard/command_line.py")
POLICIES = _files("policy_pack/*.py")
FLOORS = (
    ("trainyard/command_line", "trainyard/problems", "trainyard/in_cluster"),
    ("trainyard/catalog",),
    ("trainyard/plans",),
    ("trainyard/objects",),
    ("trainyard/existing", "trainyard/settings"),
    ("trainyard/stores",),
    ("trainyard/parts",),
    ("trainyard/derive",),
    ("trainyard/rules",),
    ("trainyard/manifests",),
    ("trainyard/plan",),
    ("trainyard/decide",),
    ("trainyard/migrate", "trainyard/replacing", "trainyard/live"),
    ("trainyard/reports",),
    ("trainyard/operations",),
    ("trainyard/cli",),
    ("trainyard/__main__",),
)
"""Rooms of trainyard/, the lowest first: a room imports from those below it and from itself only."""
HOUSE = ("trainyard", "components", "stacks", "__main__", "policy_pack", "package")
"""Packages, the lowest first. Policies judge what the program makes, so that it knows none of them. The package
of components is what other programs have in its place."""


def _top_level_imports(path: Path) -> Iterator[str]:
    """Modules that importing the file imports; not what a function imports when it is called."""
    for statement in _tree(path).body:
        yield from _imports(statement)


@cache
def _tree(path: Path) -> ast.Module:
    """What a file says, read once for all tests: none may change it."""
    return ast.parse(path.read_text())


@cache
def _all_imports(path: Path) -> tuple[str, ...]:
    return tuple(found for part in ast.walk(_tree(path)) for found in _imports(part))


def _imports(statement: ast.AST) -> list[str]:
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    if isinstance(statement, ast.ImportFrom):
        return [f"{statement.module}.{alias.name}" for alias in statement.names]
    return []


@cache
def _dotted(path: Path) -> set[str]:
    """Every dotted name the file uses, such as pulumi.export."""
    return {ast.unparse(node) for node in ast.walk(_tree(path)) if isinstance(node, ast.Attribute)}


def _from(packages: tuple[str, ...], modules: Iterable[str]) -> list[str]:
    return [m for m in modules if m.partition(".")[0] in packages]


@pytest.mark.parametrize("path", _files("components/**/*.py"), ids=lambda p: p.name)
def test_a_component_reads_no_settings_and_does_not_know_who_calls_it(path: Path) -> None:
    assert _from(("stacks", "yaml", "pydantic"), _all_imports(path)) == []
    assert not _dotted(path) & {
        "pulumi.Config",
        "pulumi.export",
        "pulumi.get_stack",
        "pulumi.get_project",
        "pulumi.StackReference",
        "os.environ",
    }


def _floor(name: str) -> int | None:
    """The floor of a file or of a module, whose parts a slash parts."""
    return next((n for n, rooms in enumerate(FLOORS) if _room(name, rooms)), None)


def _room(name: str, rooms: tuple[str, ...]) -> str | None:
    name = name.removesuffix(".py")
    return next((room for room in rooms if f"{name}/".startswith(f"{room}/")), None)


def test_a_room_imports_only_from_rooms_below_it() -> None:
    upward = [
        f"{_place(path)} imports {module}"
        for path in BRAIN
        if (mine := _floor(_place(path))) is not None
        for module in _all_imports(path)
        if (theirs := _floor(module.replace(".", "/"))) is not None
        and (theirs > mine or theirs == mine and not _same_room(path, module, FLOORS[mine]))
    ]
    assert upward == []


def _same_room(path: Path, module: str, rooms: tuple[str, ...]) -> bool:
    return _room(_place(path), rooms) == _room(module.replace(".", "/"), rooms)


def test_every_room_of_the_brain_has_its_floor() -> None:
    assert [
        _place(path)
        for path in BRAIN
        if path != CHECKOUT / "trainyard/__init__.py" and _floor(_place(path)) is None
    ] == []


def test_the_brain_knows_no_component_a_component_no_wiring_and_nothing_goes_back() -> None:
    floor = {name: n for n, name in enumerate(HOUSE)}
    back = [
        f"{_place(path)} imports {module}"
        for path in PRODUCT
        for module in _all_imports(path)
        if floor.get(module.partition(".")[0], -1)
        > floor[_place(path).removesuffix(".py").partition("/")[0]]
    ]
    assert back == []


WIDE = {"trainyard/derive", "trainyard/rules"}
"""Rooms with more than 20 doors: a table of what follows, and a table of what is refused."""
HIGH = {"trainyard", "trainyard/rules"}
"""Rooms with more than 8 floors: the brain is the way from a stack file to its plan, and a rule of many
jobs stands on the rules of one."""


NO_DOORS = {"__init__", "__main__", "in_cluster"}
"""What nothing imports: the start of a package, that of a process, and the programs of pods."""


def _doors(room: Path) -> dict[str, set[str]]:
    """Door of a room, a file or a folder → the other doors of this room that it imports."""
    within = ".".join(room.relative_to(CHECKOUT).parts) + "."
    doors: dict[str, set[str]] = {}
    for path in room.rglob("*.py"):
        door = path.relative_to(room).parts[0].removesuffix(".py")
        named = {
            m.removeprefix(within).partition(".")[0]
            for m in _all_imports(path)
            if m.startswith(within)
        }
        if door not in NO_DOORS:
            doors.setdefault(door, set()).update(named - {door})
    return {door: named & doors.keys() for door, named in doors.items()}


def test_the_brain_imports_no_program_of_pods() -> None:
    imported = {module for path in BRAIN for module in _all_imports(path)}
    assert [m for m in imported if m.startswith("trainyard.in_cluster")] == []


def _floors(doors: dict[str, set[str]]) -> int:
    floor: dict[str, int] = {}
    for door in TopologicalSorter(doors).static_order():
        floor[door] = 1 + max((floor[below] for below in doors[door]), default=0)
    return max(floor.values(), default=0)


ROOMS = sorted(
    {path.parent for path in [*BRAIN, *_files("components/**/*.py", "stacks/**/*.py")]} - {CHECKOUT}
)


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: str(room.relative_to(CHECKOUT)))
def test_a_room_has_few_doors_and_few_floors_and_no_circle(room: Path) -> None:
    """A folder inside a room is one door of it: two folders that import each other are a circle."""
    doors, name = _doors(room), str(room.relative_to(CHECKOUT))
    assert doors and (len(doors) > 20) == (name in WIDE) and (_floors(doors) > 8) == (name in HIGH)


NO_JUDGES = ("check.py", "account.py", "configured.py", "servicer.py")
"""What runs the program for `trainyard check --policies`, and what reads the configuration of policies."""
JUDGES = [path for path in POLICIES if path.name not in NO_JUDGES]


@pytest.mark.parametrize("path", JUDGES, ids=lambda path: path.name)
def test_a_policy_looks_at_resources_and_not_at_what_this_program_planned(path: Path) -> None:
    """A security team's rule that asks the program whether it is right would agree with its errors."""
    assert [
        m
        for m in _all_imports(path)
        if m.startswith(("stacks", "components", "trainyard"))
        and not m.startswith("trainyard.catalog")
    ] == []


def test_what_tests_share_imports_no_test() -> None:
    """conftest.py imports it before it sets the profile of hypothesis: a test that came along would
    have a deadline of 200 ms."""
    shared = _files("tests/conftest.py", "tests/support/**/*.py")
    imported = [m for path in shared for m in _all_imports(path) if m.startswith("tests.")]
    assert imported and [m for m in imported if "test_" in m] == []


REHEARSAL = [
    path for path in _files("rehearsal/**/*.py") if "tests" not in path.relative_to(CHECKOUT).parts
]
MOST_LINES = 22_600
"""Of the rehearsal without its tests."""


@pytest.mark.parametrize(
    "paths", [[*PRODUCT, *SHARED], REHEARSAL], ids=["the product", "the rehearsal"]
)
def test_no_modules_import_each_other_in_a_circle(paths: list[Path]) -> None:
    """Imports inside functions and for type checkers count, too."""
    modules = {_module(path): path for path in paths}
    graph = {
        name: {
            target
            for imported in _all_imports(path)
            if (target := _longest_known(imported, modules)) not in (None, name)
        }
        for name, path in modules.items()
    }
    assert sum(map(len, graph.values())) > len(graph)
    circle = []
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = error.args[1]
    assert circle == []


def _module(path: Path) -> str:
    return _place(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _longest_known(imported: str, modules: Iterable[str]) -> str | None:
    """The module that an import names, which may name something inside it."""
    found = [name for name in modules if f"{imported}.".startswith(f"{name}.")]
    return max(found, key=len, default=None)


@pytest.mark.parametrize("path", REHEARSAL, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_the_rehearsal_is_a_project_of_its_own(path: Path) -> None:
    """It takes facts from the catalogue; what it rehearses is any program."""
    foreign = (
        *(OURS - {"trainyard"}),
        "development",
        "policy_pack",
        "workloads",
        "tests",
        "pytest",
    )
    assert _from(foreign, _all_imports(path)) == []
    ours = _from(("trainyard",), _all_imports(path))
    assert [module for module in ours if not module.startswith("trainyard.catalog.")] == []


OUR_WORDS = re.compile(r"trainyard:|Pulumi\.\S*\.yaml|t5-large|team-vision|workloads/")
"""Our settings, stack files, jobs, teams and images."""


@pytest.mark.parametrize("path", REHEARSAL, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_the_rehearsal_knows_no_stack_file_no_job_and_no_image_of_ours(path: Path) -> None:
    assert OUR_WORDS.findall(path.read_text()) == []


def test_the_rehearsal_has_a_bound() -> None:
    """docs/decisions/0006-the-rehearsals-size.md says why and what stays out."""
    lines = sum(len(path.read_text().splitlines()) for path in REHEARSAL)
    assert 15_000 < lines < MOST_LINES


def _kinds_asked_for(path: Path) -> list[str]:
    """Uses of a field of `StoreConfig` that belongs to one kind, such as store.lustre."""
    return [f"{_place(path)} {name}" for name in _dotted(path) if name.rpartition(".")[2] in KINDS]


def test_nothing_outside_its_class_asks_which_kind_a_store_is() -> None:
    outside = [p for p in [*BRAIN, *_files("stacks/**/*.py")] if p.parent.name != "stores"]
    assert len(outside) > 40 and [use for path in outside for use in _kinds_asked_for(path)] == []


NAME_PARTS = {
    "stacks/watching.py",
    "stacks/training.py",
    "trainyard/reports/dashboards.py",
    "trainyard/replacing/replacing.py",
    "trainyard/replacing/kept_data.py",
}
"""The first two make the components of parts. The third is the command of one part. The last two know that the
workspace of managed Prometheus keeps its key, and its data."""


def _parts_asked_for(path: Path) -> list[str]:
    """Uses of one part: its own section of a stack file, such as wanted.budget; its module, or its name in
    the table."""
    sections = {part.section for part in PARTS if part.section == part.name}
    own = {type(part).__module__ for part in PARTS}
    rows = {name for name, each in vars(parts).items() if isinstance(each, Part)}
    read = [
        name
        for name in _dotted(path)
        if re.search(r"\b(wanted|environment)\.\w+$", name) and name.rpartition(".")[2] in sections
    ]
    named = [
        name
        for name in _all_imports(path)
        for module, _, what in [name.rpartition(".")]
        if module in own or (module == parts.__name__ and what in rows)
    ]
    return [f"{_place(path)} {name}" for name in (*read, *named)]


def test_nothing_outside_its_class_asks_whether_a_part_is_there() -> None:
    outside = [p for p in PRODUCT if p.parent.name != "parts" and _place(p) not in NAME_PARTS]
    assert len(outside) > 300 and [use for path in outside for use in _parts_asked_for(path)] == []
    assert all(_parts_asked_for(CHECKOUT / each) for each in NAME_PARTS)


@pytest.mark.parametrize("path", BRAIN, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_what_is_decided_is_decided_without_the_engine(path: Path) -> None:
    engine = ("pulumi", "pulumi_aws", "pulumi_eks", "pulumi_kubernetes")
    assert _from(engine, _all_imports(path)) == []


def test_what_all_rooms_share_depends_on_nothing_of_ours() -> None:
    """All packages import it."""
    ours = tuple(OURS | {"rehearsal", "development", "benchmarks", "tests"})
    assert {path.name: _from(ours, _all_imports(path)) for path in SHARED} == {
        "command_line.py": []
    }


def test_settings_are_read_in_one_place_and_outputs_leave_from_one() -> None:
    def users(name: str) -> list[str]:
        return [p.name for p in PRODUCT if any(d.startswith(name) for d in _dotted(p))]

    assert users("pulumi.runtime.config") == ["engine.py"] and users("pulumi.Config") == []
    assert users("pulumi.export") == []
    assert [p.name for p in PRODUCT if "pulumi.run" in _dotted(p)] == ["__main__.py"]


@pytest.mark.parametrize("path", PRODUCT, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_the_product_does_not_know_that_there_is_a_rehearsal(path: Path) -> None:
    foreign = ("rehearsal", "development", "tests", "moto", *(["boto3"] if path in PROGRAM else []))
    assert _from(foreign, _all_imports(path)) == []
    says = "\n".join(_without_docstrings(path)).lower()
    assert "rehears" not in says or path in TOOL


@cache
def _without_docstrings(path: Path) -> list[str]:
    """Code as lines: texts that are statements of their own and comments left out."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [s for s in node.body if not _is_text(s)] or [ast.Pass()]
    return ast.unparse(tree).splitlines()


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


@pytest.mark.parametrize(
    "path",
    # The first two watch a run, with kubectl. The third reads prices, for trainyard.catalog.refresh alone. The
    # fourth asks bash whether it can read a script, and runs nothing of it. The fifth reads where
    # `pulumi login` has put the state. The sixth reads a variable, for whom a preview looks.
    [
        p
        for p in PROGRAM
        if p.name
        not in (
            *("wait_for_job.py", "followed.py", "price_list.py", "bash_syntax.py", "state.py"),
            "caller.py",
        )
    ],
    ids=lambda p: f"{p.parent.name}/{p.name}",
)
def test_the_product_runs_no_commands_and_asks_no_network(path: Path) -> None:
    assert (
        _from(
            ("subprocess", "os", "socket", "urllib", "requests", "pulumi_command"),
            _all_imports(path),
        )
        == []
    )


@pytest.mark.parametrize(
    "path",
    [
        *CHECKOUT.glob("requirements*/*.txt"),
        CHECKOUT / "requirements.txt",
        *CHECKOUT.glob("tests/sdk/*.txt"),
    ],
    ids=lambda p: p.name,
)
def test_requirements_name_packages_and_hashes_and_no_place_to_get_them_from(path: Path) -> None:
    assert re.findall(r"^--.*|\S*://\S*", path.read_text(), re.MULTILINE) == []


OURS = {"stacks", "components", "trainyard", "policy_pack", "package"}
"""Of these policy_pack has requirements of its own, which `trainyard check --policies` names."""


def test_whatever_people_run_on_aws_needs_is_in_requirements_txt() -> None:
    """They install nothing else (README, On AWS)."""
    pinned = set(
        re.findall(
            r"^([\w.-]+)==", (CHECKOUT / "requirements.txt").read_text().lower(), re.MULTILINE
        )
    )
    names = {"yaml": "pyyaml", "google": "protobuf", "grpc": "grpcio"}
    files = PRODUCT
    used = (
        {each.partition(".")[0] for path in files for each in _all_imports(path)}
        - OURS
        - sys.stdlib_module_names
    )
    missing = {each for each in used if str(names.get(each, each)).replace("_", "-") not in pinned}
    assert missing - {"moto"} == set(), (
        "moto: `python -m trainyard.catalog.refresh` without credentials"
    )


# Versions.

VERSION = re.compile(r"(?<![\d.])v?\d+\.\d+(\.\d+)*(?![\d.]*/\d)")


UNVERSIONED = [
    p
    for p in PROGRAM
    if not p.is_relative_to(CHECKOUT / "trainyard/catalog")
    and p.name != "upstream_runtimes.py"  # the names of models have versions
    and p
    != CHECKOUT / "trainyard/__init__.py"  # the version of Trainyard, which the wheel's build reads
]


@pytest.mark.parametrize("path", UNVERSIONED, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_versions_are_pinned_in_the_catalogue_only(path: Path) -> None:
    tree = ast.parse("\n".join(_without_docstrings(path)))
    texts = [
        n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    ]
    pinned = [t for t in texts if VERSION.search(t) and not _is_an_address_or_a_sentence(t)]
    assert pinned == []


@pytest.mark.parametrize("path", REHEARSAL, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_the_rehearsal_takes_releases_of_kueue_from_the_catalogue(path: Path) -> None:
    releases = {known.kueue for known in versions.KNOWN_GOOD}
    tree = ast.parse("\n".join(_without_docstrings(path)))
    texts = [
        n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    ]
    assert [text for text in texts if any(release in text for release in releases)] == []


def _is_an_address_or_a_sentence(text: str) -> bool:
    return bool(re.search(r"\d+\.\d+\.\d+\.\d+", text)) or " " in text.strip()


def test_what_a_trainer_release_ships_has_the_version_of_that_release() -> None:
    for version, tag in versions.TRAINERS.items():
        assert versions.TRAINER_RELEASES[version].line == versions.TRAINER_LINES[version[:3]]
        shipped = str(upstream_runtimes(version))
        assert set(re.findall(r"ghcr\.io/kubeflow/trainer/[a-z-]+:(v[\d.]+)", shipped)) == {tag}


def _texts_compared(path: Path) -> list[tuple[str, int]]:
    """(text, line) of each text that the file compares something with."""
    return [
        (side.value, node.lineno)
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Compare)
        for side in (node.left, *node.comparators)
        if isinstance(side, ast.Constant) and isinstance(side.value, str)
    ]


def test_no_release_is_compared_with_a_version() -> None:
    """What differs between releases is a field of theirs, in trainyard/catalog/versions.py."""
    compared = [
        f"{_place(path)}:{line}"
        for path in PRODUCT
        for text, line in _texts_compared(path)
        if VERSION.fullmatch(text)
    ]
    assert compared == []


READ_BOTH_SHAPES = {
    "trainyard/manifests/context.py",
    "trainyard/manifests/document.py",
    "trainyard/migrate/migration.py",
    "trainyard/migrate/training.py",
    "trainyard/migrate/v2_script.py",
    "trainyard/operations/reach/snapshot.py",
}
"""They read a TrainJob and a PyTorchJob, whose fields stand in different places."""


def test_no_rule_asks_which_kind_a_job_is() -> None:
    """What differs between kinds of jobs is a field of theirs, in trainyard/catalog/job_kinds.py."""
    asking = {
        _place(path)
        for path in PRODUCT
        for text, _ in _texts_compared(path)
        if text in ("TrainJob", "PyTorchJob")
    }
    assert asking == READ_BOTH_SHAPES


def test_no_version_is_a_moving_one() -> None:
    text = (CHECKOUT / "trainyard/catalog/versions.py").read_text()
    assert not re.search(r'= "[^"]*(latest|main|master|[~^*<>])[^"]*"', text)


def _names(path: Path) -> set[str]:
    """Names that the module of a file defines for others."""
    names: set[str] = set()
    for statement in _tree(path).body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            names.add(statement.name)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        targets += [statement.target] if isinstance(statement, ast.AnnAssign) else []
        names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in names if not name.startswith("_")}


def _names_read(path: Path) -> Iterator[str]:
    """Names that a file reads: its own, and those of what it imports."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        if isinstance(node, ast.Attribute):
            yield node.attr


def test_every_fact_of_the_catalogue_is_read() -> None:
    read = {
        name
        for path in [*PRODUCT, *REHEARSAL, *_files("development/*.py")]
        for name in _names_read(path)
    }
    facts = {_place(path): _names(path) - read for path in _files("trainyard/catalog/**/*.py")}
    assert {place: names for place, names in facts.items() if names} == {}


# Stack files.


@pytest.mark.parametrize("stack", ["dev", "team-vision"])
def test_a_stack_file_of_the_checkout_names_no_account_and_no_person(stack: str) -> None:
    text = (CHECKOUT / f"Pulumi.{stack}.yaml").read_text()
    assert not re.search(
        r"arn:aws|\b\d{12}\b|AKIA|\b(vpc|subnet|sg|i|fs|eni)-[0-9a-f]{8,}|secure:", text
    )


A_LIST = {"stacks/environment.py build"}
"""Longer than the bounds below, because it is a list: one line a noun, in the order things come to
life."""
TO_TAKE_APART: set[str] = set()
"""Files and functions over the bounds below; each leaves this list when it is taken apart, and
nothing is added."""
BRANCHES = (
    ast.If,
    ast.For,
    ast.While,
    ast.IfExp,
    ast.ExceptHandler,
    ast.BoolOp,
    ast.comprehension,
    ast.match_case,
)


def _place(path: Path) -> str:
    return str(path.relative_to(CHECKOUT))


BOUNDED = [*PRODUCT, *SHARED, *POLICIES, *REHEARSAL]


def _long_files() -> set[str]:
    lengths = {_place(path): len(path.read_text().splitlines()) for path in BOUNDED}
    return {name for name, lines in lengths.items() if lines > 400}


def _functions_where(is_over: Callable[[ast.FunctionDef | ast.AsyncFunctionDef], bool]) -> set[str]:
    """Functions by their file's place and their own name."""
    return {
        f"{_place(path)} {node.name}"
        for path in BOUNDED
        for node in _functions(path)
        if is_over(node)
    }


@cache
def _functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [
        node
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def _is_long(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return (function.end_lineno or 0) - function.lineno + 1 > 60


def _branches_much(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return sum(isinstance(part, BRANCHES) for part in ast.walk(function)) > 11


def test_a_file_is_short_enough_to_be_read() -> None:
    assert _long_files() <= TO_TAKE_APART


def test_no_function_is_longer_than_60_lines() -> None:
    assert _functions_where(_is_long) <= TO_TAKE_APART | A_LIST


def test_no_function_has_more_than_11_branches() -> None:
    assert _functions_where(_branches_much) <= TO_TAKE_APART | A_LIST


def test_what_was_taken_apart_has_left_the_list() -> None:
    over = _long_files() | _functions_where(_is_long) | _functions_where(_branches_much)
    assert over >= TO_TAKE_APART | A_LIST


def test_every_file_and_class_says_what_it_is() -> None:
    for path in PRODUCT:
        tree = _tree(path)
        assert not tree.body or ast.get_docstring(tree), path
        if path.is_relative_to(CHECKOUT / "components"):
            assert all(ast.get_docstring(n) for n in tree.body if isinstance(n, ast.ClassDef)), path


def test_a_docstring_names_its_subject_first() -> None:
    """ "Of the mount." below a field called `options` makes a reader put the two together."""
    hidden = [
        f"{_place(path)}:{node.lineno}"
        for path in PRODUCT
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and str(node.value.value).startswith("Of ")
    ]
    assert hidden == []
