"""Who may import whom, read from the source alone (nothing of teamalloc is run, but once).

Imports inside functions count as much as those at the head of a file: a layer that is broken
lazily is broken. The one edge left out of the search for cycles is the table of an extension
point naming its own implementations, because there the file of the table also holds the records
which the implementations speak in.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = "teamalloc"
REPO = Path(__file__).parents[1]
SRC = REPO / "src" / ROOT

BELOW_DATA = {"errors", "registry"}
LAYERS: dict[str, set[str]] = {
    "errors": set(),
    "registry": {"errors"},
    "data": BELOW_DATA,
    "models": BELOW_DATA | {"data"},
    "allocator": BELOW_DATA | {"data", "models"},
    "harness": BELOW_DATA | {"data"},
    "reports": BELOW_DATA | {"data", "models", "allocator"},
}
"what each layer may import beside itself"
TOP = {"", "cli", "testing"}
'may import every layer, are imported by nothing ("" is the root package)'

EXTENSION_POINTS = {
    f"{ROOT}.data.formats",
    f"{ROOT}.models.families",
    f"{ROOT}.allocator.optimisers",
    f"{ROOT}.harness.backends",
    f"{ROOT}.reports.renderers",
}

HEAVY = {
    "alembic",
    "genai_prices",
    "optuna",
    "pandas",
    "rich",
    "scipy.optimize",
    "scipy.stats",
    "sklearn",
}
"each costs more start-up time than an answer may take, so it is imported where it is used"
HEAVY_ALLOWED = {f"{ROOT}.data.migrations": {"alembic"}}
"package: the heavy imports its files may have at their head, as nothing but those loads them"

VAGUE = {"utils", "util", "helpers", "helper", "common", "base", "manager", "managers", "misc"}


@dataclass(frozen=True)
class Import:
    """One imported name."""

    target: str
    "dotted, the name itself included"
    line: int
    at_start: bool
    "runs when the file is imported: not in a function, not for the type checker alone"


def imports_of(source: str, package: str) -> list[Import]:
    """Everything a file in ``package`` imports, wherever it stands."""
    return list(_walk(ast.parse(source), package, at_start=True))


def _walk(node: ast.AST, package: str, *, at_start: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        for target in _targets(child, package):
            yield Import(target, getattr(child, "lineno", 0), at_start)
        if isinstance(child, ast.If) and _for_type_checker(child.test):
            for part, starts in ((child.body, False), (child.orelse, at_start)):
                yield from _walk(ast.Module(part, []), package, at_start=starts)
        else:
            in_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _walk(child, package, at_start=at_start and not in_function)


def _targets(node: ast.AST, package: str) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=module, names=names, level=level):
            parents = package.split(".")[: len(package.split(".")) - level + 1] if level else []
            origin = ".".join([*parents, *([module] if module else [])])
            return [f"{origin}.{alias.name}" for alias in names]
        case ast.Call(
            func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str(name)), *_],
        ):
            return [name]
    return []


def _for_type_checker(test: ast.expr) -> bool:
    return ast.unparse(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


@dataclass(frozen=True)
class Module:
    """One file of the package."""

    name: str
    path: Path
    imports: list[Import]

    @property
    def layer(self) -> str:
        """First word below the root; "" = the root package itself."""
        return layer_of(self.name)


def layer_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def _read(path: Path) -> Module:
    words = [ROOT, *path.relative_to(SRC).with_suffix("").parts]
    is_package = words[-1] == "__init__"
    name = ".".join(words[:-1] if is_package else words)
    package = name if is_package else name.rpartition(".")[0]
    return Module(name, path, imports_of(path.read_text(encoding="utf-8"), package))


MODULES = {module.name: module for module in map(_read, sorted(SRC.rglob("*.py")))}


def module_behind(target: str) -> str | None:
    """The module of ours that ``target`` is or lives in; None = it is not ours."""
    if target.split(".")[0] != ROOT:
        return None
    while target not in MODULES and "." in target:
        target = target.rpartition(".")[0]
    return target


def ours(module: Module) -> Iterator[tuple[Import, str]]:
    for item in module.imports:
        behind = module_behind(item.target)
        if behind is not None and behind != module.name:
            yield item, behind


each_module = pytest.mark.parametrize("module", MODULES.values(), ids=MODULES.keys())


def test_every_file_belongs_to_a_layer() -> None:
    assert {module.layer for module in MODULES.values()} <= LAYERS.keys() | TOP


@each_module
def test_a_layer_imports_only_those_below_it(module: Module) -> None:
    allowed = LAYERS.get(module.layer, LAYERS.keys()) | {module.layer}
    broken = [
        f"{module.path.name}:{item.line} imports {item.target}"
        for item, behind in ours(module)
        if layer_of(behind) not in allowed
    ]
    assert not broken


@pytest.mark.parametrize("layer", ["errors", "registry"])
def test_the_ground_stands_on_the_standard_library(layer: str) -> None:
    first_words = {item.target.split(".")[0] for item in MODULES[f"{ROOT}.{layer}"].imports}
    assert first_words - {ROOT} <= sys.stdlib_module_names


def test_no_module_imports_itself_through_others() -> None:
    graph = {
        module.name: {
            behind
            for _, behind in ours(module)
            if not (module.name in EXTENSION_POINTS and behind.startswith(f"{module.name}."))
        }
        for module in MODULES.values()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' → '.join(reversed(error.args[1]))}")


@each_module
def test_heavy_packages_are_imported_where_they_are_used(module: Module) -> None:
    early = {
        f"{item.target} in line {item.line}"
        for item in module.imports
        for heavy in HEAVY - _allowed_heavy(module.name)
        if item.at_start and f"{item.target}.".startswith(f"{heavy}.")
    }
    assert not early, f"move into the function that needs it: {sorted(early)}"


def _allowed_heavy(module: str) -> set[str]:
    return {
        name
        for package, names in HEAVY_ALLOWED.items()
        if f"{module}.".startswith(f"{package}.")
        for name in names
    }


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks"])
def test_a_file_is_named_after_what_is_in_it(folder: str) -> None:
    vague = [
        path.relative_to(REPO)
        for path in (REPO / folder).rglob("*")
        if path.suffix in ("", ".py") and VAGUE & set(path.stem.split("_"))
    ]
    assert not vague


def test_public_names_exist_and_are_documented() -> None:
    import teamalloc

    names = getattr(teamalloc, "__all__", [])
    if not names:
        pytest.skip("teamalloc has no public names yet")
    assert len(set(names)) == len(names)
    for name in names:
        public = getattr(teamalloc, name)
        if inspect.isclass(public) or inspect.isroutine(public):
            # A dataclass without a docstring is given its signature for one.
            doc = inspect.getdoc(public) or ""
            assert doc.partition("(")[0] not in ("", name), f"{name} has no docstring"


# The reader of imports itself, on sources written for it.


def targets(source: str, package: str = "teamalloc.data") -> list[tuple[str, bool]]:
    return [(item.target, item.at_start) for item in imports_of(source, package)]


def test_an_import_in_a_function_is_seen_and_is_not_at_start() -> None:
    source = "import a\ndef f():\n  from b.c import d\nclass E:\n  import g\n  async def h(self):\n    import i"
    assert targets(source) == [("a", True), ("b.c.d", False), ("g", True), ("i", False)]


def test_an_import_for_the_type_checker_is_seen_and_is_not_at_start() -> None:
    source = (
        "if TYPE_CHECKING:\n  import a\nelse:\n  import b\ntry:\n  import c\nexcept E:\n  import d"
    )
    assert targets(source) == [("a", False), ("b", True), ("c", True), ("d", True)]


def test_relative_and_computed_imports_are_seen() -> None:
    source = "from . import run\nfrom .run import Run\nfrom .. import cli\nimportlib.import_module('x.y')"
    found = [target for target, _ in targets(source)]
    assert found == ["teamalloc.data.run", "teamalloc.data.run.Run", "teamalloc.cli", "x.y"]


def test_a_name_is_traced_to_the_module_it_lives_in() -> None:
    assert module_behind("teamalloc.data.run.Run") == "teamalloc.data.run"
    assert module_behind("teamalloc.data.run") == "teamalloc.data.run"
    assert module_behind("teamalloc.__version__") == "teamalloc"
    assert module_behind("numpy.linalg") is None
