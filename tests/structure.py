"""How the core is composed, counted: classes a method may be of, calls that examples take, places that an idea has.

    python tests/structure.py

A method may be of any own class in the method resolution order of its object; a name that several of them define may be
of any of these. Calls are those of the package's Python functions, each counted once however often it goes on as a
generator. A function forwards if it only calls another with its own arguments.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stream_pegasos import AdaptiveClassifier, MultiLabelClassifier, OrdinalClassifier

PACKAGE = Path(__file__).parents[1] / "stream_pegasos"
ENGINE = PACKAGE / "engine"
ESTIMATORS = (AdaptiveClassifier, MultiLabelClassifier, OrdinalClassifier)
# Questions whether two classes share a column, or one score, but for the public name of the pair.
SHARED_COLUMN = re.compile(r"\bnames_opposite\b|\bscores\.ndim\b|\.pair\b")
PUBLIC_NAME = "return self.labels.pair"
DECIDES = {"labels.py", "predictions.py", "decisions.py", "decision_policy.py"}  # where they may be asked
FIRST, SECOND, THIRD = ({"cheap": 1.0}, "spam"), ({"lunch": 1.0}, "ham"), ({"meeting": 1.0}, "work")


def own_classes(kind: type) -> list[type]:
    return [base for base in kind.__mro__ if base.__module__.startswith("stream_pegasos.")]


def shared_names(kind: type) -> list[str]:
    """The names that several of the own classes define, without those of Python's protocols."""
    names = Counter(name for base in own_classes(kind) for name in vars(base))
    return sorted(name for name, n in names.items() if n > 1 and not name.startswith("__") and name != "_abc_impl")


def calls(function: Any, *arguments: Any) -> list[str]:
    """The files of the package's functions that a call runs, once for each call."""
    files: list[str] = []
    frames = []  # so that no frame gets the place of another

    def note(frame: Any, event: str, argument: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(str(PACKAGE)) and not any(frame is other for other in frames):
            frames.append(frame)
            files.append(path)

    sys.setprofile(note)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return files


def learning_calls() -> tuple[list[str], list[str]]:
    """The calls of `learn_many` of two known labels, and of a third label."""
    model = AdaptiveClassifier()
    X, y = [FIRST[0], SECOND[0]], [FIRST[1], SECOND[1]]
    model.learn_many([{f"word {i}": 1.0} for i in range(120)], y * 60)  # then no feature can be one of a table
    return calls(model.learn_many, X, y), calls(model.learn_many, [THIRD[0]], [THIRD[1]])


def code_lines(path: Path) -> Iterator[str]:
    """The lines of a file without docstrings and comments."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            body[0].value.value = ""
    yield from ast.unparse(tree).splitlines()


def shared_column_uses() -> list[str]:
    return [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if ENGINE not in path.parents and path.name not in DECIDES
        for line in code_lines(path)
        if SHARED_COLUMN.search(line) and line.strip() != PUBLIC_NAME
    ]


def single_subclasses() -> list[str]:
    """The classes of the engine with exactly one subclass among its own."""
    bases = Counter()
    for path in ENGINE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases.update({(base.id, path.suffix) for base in node.bases if isinstance(base, ast.Name)})
    for path in (*ENGINE.rglob("*.pxi"), *ENGINE.rglob("*.pyx")):
        for base in re.findall(r"^cdef class \w+\((\w+)\)", path.read_text(encoding="utf-8"), re.MULTILINE):
            bases[base, ".pyx"] += 1
    outside = {"NamedTuple", "Protocol", "str", "OneByOne", "PureOneByOne"}  # OneByOne is a base of those above
    return sorted(f"{base} ({suffix})" for (base, suffix), n in bases.items() if n == 1 and base not in outside)


def idle_engines() -> int:
    """The engines, in classifiers made of another one, that never learn."""
    n = 0
    for model, label in ((OrdinalClassifier(), 1), (MultiLabelClassifier(), {"spam"})):
        model.learn_one({"a": 1.0}, label)
        n += "trainer" in vars(model.classifier)
    return n


def is_forwarding(function: ast.FunctionDef) -> bool:
    body = [node for node in function.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    if len(body) != 1 or not isinstance(body[0], (ast.Return, ast.Expr)) or function.decorator_list:
        return False
    call = body[0].value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.keywords:
        return False
    names = [argument.arg for argument in function.args.args if argument.arg not in ("self", "cls")]
    passed = [argument.id if isinstance(argument, ast.Name) else None for argument in call.args]
    owner = call.func.value
    is_part = isinstance(owner, ast.Attribute) and isinstance(owner.value, ast.Name) and owner.value.id == "self"
    return is_part and owner.attr != "__dict__" and passed == names


def forwarding_methods() -> list[str]:
    return [
        f"{path.relative_to(PACKAGE)}: {function.name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        for function in node.body
        if isinstance(function, ast.FunctionDef) and is_forwarding(function)
    ]


def figures() -> dict[str, tuple[int, int]]:
    """What is counted: each number, and the largest that it may be."""
    known, new = learning_calls()
    return {
        **{f"own classes of {kind.__name__}": (len(own_classes(kind)), 4) for kind in ESTIMATORS},
        **{
            f"names that several of these define, {kind.__name__}": (len(shared_names(kind)), 12) for kind in ESTIMATORS
        },
        "calls of learn_many, two known labels": (len(known), 20),
        "calls of learn_many, a third label": (len(new), 30),
        "files of these, a third label": (len({*new}), 7),
        "uses of a shared column above the engine": (len(shared_column_uses()), 0),
        "classes of the engine with one subclass": (len(single_subclasses()), 0),
        "engines that never learn": (idle_engines(), 0),
        "forwarding methods": (len(forwarding_methods()), 15),
    }


if __name__ == "__main__":
    for name, (n, most) in figures().items():
        print(f"{name:<70} {n:>4}  (at most {most})")
    if "--list" in sys.argv:
        for kind in ESTIMATORS:
            print(kind.__name__, *shared_names(kind))
        for files in learning_calls():
            print(Counter(Path(file).name for file in files))
        print(*shared_column_uses(), *single_subclasses(), *forwarding_methods(), sep="\n")
