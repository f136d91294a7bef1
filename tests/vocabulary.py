"""How far the code speaks the field's language: names, messages of errors and types of the package, counted.

    python tests/vocabulary.py [--list names|functions|errors|classes|files]

Names are of variables and parameters, each once in its function or module. Pronouns and participles say nothing of what
they hold; a function named by a preposition says nothing of what it does.
"""

import argparse
import ast
import re
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "stream_pegasos"
PRONOUNS = set(
    "found given each known made said asked rest those these others its theirs mine ours some several both all any "
    "every none many few such it them they this that what which who whose where when whom one ones another other "
    "kept taken told seen shown come came gone went held met left meant wanted needed done begun born read_by so "
    "__all__ there here then now again once together alone anew".split()
) - {"__all__", "left", "other", "now", "shown"}
PREPOSITIONS = re.compile(r"_*(of|with|without|by|in|on|at|from|to|for|as|into|after|before|beside|between)_|.*_of$")
OLD_FORMS = re.compile(
    r"which is no |is no [a-z]|are no [a-z]|is none of|is not one of|nothing is|anew|goes on|stands there|which went|there is no |"
    r"\bis \{[^}]*\}: it must"
)


def sources():
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE), ast.parse(path.read_text(encoding="utf-8"))


def names(tree):
    """Variables and parameters, each once a function; those of the module once."""
    scopes = [
        tree,
        *(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)),
    ]
    for scope in scopes:
        found = {}
        if not isinstance(scope, ast.Module):
            arguments = scope.args
            for argument in (
                *arguments.posonlyargs,
                *arguments.args,
                *arguments.kwonlyargs,
                arguments.vararg,
                arguments.kwarg,
            ):
                if argument is not None and argument.arg not in ("self", "cls"):
                    found.setdefault(argument.arg, argument.lineno)
        for node in own_nodes(scope):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.setdefault(node.id, node.lineno)
        yield from found.items()


def own_nodes(scope):
    stack = list(ast.iter_child_nodes(scope))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            stack.extend(ast.iter_child_nodes(node))
