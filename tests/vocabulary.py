"""How far the code speaks the field's language: names, errors and types of the package, counted.

    python tests/vocabulary.py [--list]

Names are those of variables and parameters, each counted once in its function, class or module. A pronoun or a
participle does not say what it holds; a function named by a preposition does not say what it does.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "stream_pegasos"
PRONOUN = re.compile(
    "_*(found|given|each|known|made|said|asked|rest|those|these|others|its|theirs|mine|ours|some|several|both|any|every|"
    "none|many|few|it|them|they|this|that|what|which|who|whose|where|when|one|another|kept|taken|told|seen|come|came|"
    "gone|went|held|met|meant|wanted|needed|done|begun|there|here|again|once|alone)_*"
)
PREPOSITION = re.compile(r"_*(of|with|without|by)_.*|.*_of")
OLD_ERROR = re.compile(
    r"\bis no \w|\bare no \w|\bis none of|nothing is|\banew\b|goes on|stands there|which went|there is no |"
    r"is not one of|\b(is|are|has) (an? )?\{[^{}]*\}[;:,] |, not (an? )?\{|, no classifier|\b(it|they) may (be|have) |"
    "as they were written"
)

TYPES = {
    "model or learner: Any": r"\b(?:model|learner): Any\b",
    ": Any": r": Any\b",
    "type: ignore": r"type: ignore",
    "getattr(": r"\bgetattr\(",
}


def sources() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, a class or a module, without those of functions and classes within."""
    nodes = [*ast.iter_child_nodes(scope)]
    while nodes:
        node = nodes.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            nodes.extend(ast.iter_child_nodes(node))


def names(tree: ast.Module) -> Iterator[str]:
    """The names of variables and parameters, each once a scope."""
    for scope in ast.walk(tree):
        if isinstance(scope, (*FUNCTIONS, ast.ClassDef, ast.Module)):
            nodes = [*own_nodes(scope)]
            bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
            arguments = ast.walk(scope.args) if isinstance(scope, FUNCTIONS) else ()
            yield from bound | {node.arg for node in arguments if isinstance(node, ast.arg)}


def figures() -> dict[str, tuple[int, Counter[str]]]:
    """Of each kind how many there are, and how often each one that should not be."""
    counts = {kind: Counter[str]() for kind in ("names", "functions", "errors", "classes", "modules", "types")}
    totals = Counter[str]()
    for path, tree in sources():
        for name in names(tree):
            totals["names"] += 1
            counts["names"][name] += PRONOUN.fullmatch(name) is not None
        module = Path(path).name
        totals["modules"] += 1
        counts["modules"][module] += module != "__init__.py" and not path.startswith("engine/")
        for node in ast.walk(tree):
            if isinstance(node, FUNCTIONS[:2]):
                totals["functions"] += 1
                counts["functions"][node.name] += PREPOSITION.fullmatch(node.name) is not None
            elif isinstance(node, ast.ClassDef):
                totals["classes"] += 1
                counts["classes"][node.name] += not path.startswith("engine/")
            elif isinstance(node, ast.Raise):
                totals["errors"] += 1
                text = ast.unparse(node)
                counts["errors"][text] += OLD_ERROR.search(text) is not None
        text = (PACKAGE / path).read_text(encoding="utf-8")
        for kind, pattern in TYPES.items():
            counts["types"][kind] += len(re.findall(pattern, text))
    for kind in ("classes", "modules"):
        counts[kind] = Counter({name: n for name, n in counts[kind].items() if n > 1})
    return {kind: (totals[kind], +counts[kind]) for kind in counts}


def main() -> None:
    lists = "--list" in sys.argv
    told = figures()
    n, pronouns = told["names"]
    print(f"names that are pronouns or participles: {pronouns.total():,} of {n:,} ({pronouns.total() / n:.1%})")
    print(f"functions named by a preposition: {told['functions'][1].total():,} of {told['functions'][0]:,}")
    print(f"errors in an old form: {told['errors'][1].total():,} of {told['errors'][0]:,}")
    print(f"class names that stand twice: {len(told['classes'][1])}; module names: {len(told['modules'][1])}")
    for kind in TYPES:
        print(f"{kind}: {told['types'][1][kind]:,}")
    for kind in ("names", "functions", "errors", "classes", "modules") if lists else ():
        print(f"\n{kind}: {', '.join(f'{name} {n}' for name, n in told[kind][1].most_common())}")


if __name__ == "__main__":
    main()
