"""How the scripts beside it are started, and print: tables in Markdown, whose columns also align in a terminal."""

import argparse
from typing import Any


def arguments_of(doc: str, **defaults: Any) -> argparse.Namespace:
    """Those of the command line, each by its name with its default, or with its type where it has none; what has a list
    may be given again and again.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(default, bool):
            parser.add_argument(flag, action="store_true")
        elif isinstance(default, list):
            parser.add_argument(flag, action="append", type=default[0])
        elif isinstance(default, type):
            parser.add_argument(flag, type=default)
        else:
            parser.add_argument(flag, type=type(default), default=default)
    return parser.parse_args()


class Table:
    """Its head is printed at once, each row as soon as it is known; columns are as wide as their heads, or wider."""

    def __init__(self, *head: str, width: int = 9) -> None:
        self._widths = [max(56, len(head[0])), *(max(width, len(cell)) for cell in head[1:])]
        print()
        self.row(*head)
        print("|" + "---|" * len(head))

    def row(self, name: str, *cells: str) -> None:
        aligned = [f"{cell:>{width}}" for cell, width in zip(cells, self._widths[1:], strict=True)]
        print(f"| {' | '.join([f'{name:{self._widths[0]}}', *aligned])} |", flush=True)
