"""The house: a folder a layer, which knows only those below it, by their public names, in files that can be read."""

import ast
import graphlib
import re
from functools import cache
from pathlib import Path

import stream_pegasos

PACKAGE = Path(stream_pegasos.__file__).parent
TESTS = Path(__file__).parent
# From the lowest up. Layers of one line do not know each other. The package itself, "", is its public face.
FLOORS = """
common
engine
features
mail_text
learners
streams
blocks
evaluation
runtime
package
service mail spark sklearn
cli
"""
FLOOR_OF = {layer: floor for floor, layers in enumerate(FLOORS.split("\n")) for layer in layers.split()}
OF_RIVER = {"_more_tags", "_multiclass", "_unit_test_skips"}  # its protocol, for River to read
OF_NAMED_TUPLES = {"_asdict", "_fields", "_replace"}  # public, says Python


def module_of(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def trees():
    return {module: ast.parse(path.read_text("utf-8")) for module, path in SOURCES.items()}


def imports(module):
    """Pairs of a module of the package that is imported, anywhere in this one, and the name that is taken from it."""
    for node in ast.walk(trees()[module]):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names if alias.name in SOURCES)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module} imports from a place that it does not name"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole in SOURCES:
                    yield whole, None
                elif node.module in SOURCES:
                    yield node.module, alias.name


def layer_of(module):
    folder = [*module.split("."), ""][1]
    return folder if folder in FLOOR_OF else "cli" if folder == "__main__" else "package"


def test_a_module_imports_from_its_own_layer_or_below():
    wrong = [
        f"{module} imports {other}"
        for module in SOURCES
        for other, _ in imports(module)
        if layer_of(other) != layer_of(module) and FLOOR_OF[layer_of(other)] >= FLOOR_OF[layer_of(module)]
    ]
    assert not wrong


def test_there_is_no_import_cycle():
    graph = {module: {other for other, _ in imports(module)} - {module} for module in SOURCES}
    graphlib.TopologicalSorter(graph).prepare()  # which names a cycle


def own_names(tree):
    """What a module defines: functions, classes, and whatever is assigned, in it or on an object."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_own(node.value):
            yield node.attr


def is_own(thing):
    thing = thing.func if isinstance(thing, ast.Call) and not thing.args else thing
    return isinstance(thing, ast.Name) and thing.id in ("self", "cls", "super")


def is_private(name):
    return name is not None and name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def test_private_names_stay_in_their_module():
    wrong = []
    for module, path in SOURCES.items():
        own = set(own_names(trees()[module]))
        wrong += [f"{path}: {other}.{name}" for other, name in imports(module) if is_private(name)]
        for node in ast.walk(trees()[module]):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and is_private(node.attr):
                is_kafkas = ast.unparse(node.value) == "KafkaError"
                known = is_own(node.value) or node.attr in own | OF_NAMED_TUPLES or is_kafkas
                if node.attr in OF_RIVER or not known:
                    wrong.append(f"{path}:{node.lineno}: {ast.unparse(node)}")
    assert not wrong


def test_no_two_scripts_of_the_page_define_the_same_name():
    """They share one scope, where the later of two functions would take the place of the other."""
    defined = re.compile(r"^(?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE)
    names = [name for path in PACKAGE.rglob("*.js") for name in defined.findall(path.read_text("utf-8"))]
    assert len(names) > 50
    assert sorted(names) == sorted(set(names))


def test_texts_are_written_and_read_in_a_named_encoding():
    """Or else in that of the locale. The linter knows the rule, but not always that something is a path."""

    def is_wrong(call):
        options = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        if isinstance(call.func, ast.Attribute) and "encoding" not in options:
            match call.func.attr, call.args:
                case ("read_text", []) | ("write_text", [_]):
                    return ast.unparse(call.func.value) != "formatter"  # which is click's
                case "open", [ast.Constant("r" | "r+" | "w" | "w+" | "a" | "a+" | "x" | "x+")]:
                    return True
        return "True" in (options.get("text"), options.get("universal_newlines"))

    wrong = []
    for path in (path for folder in (PACKAGE, TESTS, TESTS.parent / "examples") for path in folder.rglob("*.py")):
        calls = (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call))
        wrong += [f"{path}:{call.lineno}: {ast.unparse(call)}" for call in calls if is_wrong(call)]
    assert not wrong


def test_the_head_of_a_folder_says_which_file_has_what():
    for init in PACKAGE.glob("*/__init__.py"):
        folder, head = init.parent, ast.get_docstring(ast.parse(init.read_text("utf-8"))) or ""
        own = {path.stem for path in [*folder.glob("*.py"), *folder.glob("pure/*.py")]} - {"__init__"}
        named = {name for words in re.findall(r"`([^`]+)`", head) for name in re.findall(r"\w+", words)}
        assert folder.name == "cli" or own <= named, (folder.name, own - named)  # there a file is a command, or shared


def test_the_map_names_what_exists():
    """Files and names between backticks in source_code.md."""
    text = (TESTS.parent / "examples" / "guides" / "source_code.md").read_text("utf-8")
    files = [
        path for folder in (PACKAGE, TESTS, TESTS.parent / "examples") for path in folder.rglob("*") if path.is_file()
    ]
    paths = {path.as_posix() for path in files} | {path.parent.as_posix() for path in files}
    words = set()
    for path in files:
        if path.suffix in (".py", ".pyx", ".pxi", ".h", ".pyi"):
            words |= {*re.findall(r"\w+", path.read_text("utf-8"))} | {path.stem}
    missing = []
    for name in re.findall(r"`([^`\n]+)`", text):
        if "/" in name or "." in name.strip("."):
            place = name.replace("*", "").rstrip("/")
            is_file = any(path.endswith(f"/{place}") or f"/{place}" in path for path in paths)
            if not is_file and not all(word in words for word in re.findall(r"\w+", name)):
                missing.append(name)
        elif re.fullmatch(r"\w+", name) and name not in words:
            missing.append(name)
    assert missing == [] and len(words) > 1_000
