"""The limit of the work for a mail beyond work proportional to its length."""

from __future__ import annotations

__all__ = ["Work"]

MAX_STEPS = 200_000  # for a mail; 100,000 take about .05 s
OF_DECLARATION = 20  # the steps of a new declaration, beside one for each of its characters


class Work:
    """The steps left for all parts of a mail, or for a sheet.

    Text is always read, because this takes linear time. More expensive work, such as the styles of elements by the
    rules of sheets, takes steps. If no steps are left, text is read as if nothing hid it. Content that may be
    compressed takes steps, too, and its rest is left out.
    """

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self.left = steps
        self._declarations: set[str] = set()

    def take(self, steps: int) -> bool:
        """Use so many steps; return whether they were left."""
        if steps > self.left:
            self.left = 0
            return False
        self.left -= steps
        return True

    def read(self, declaration: str) -> bool:
        """Whether a declaration can be read, which takes steps the first time."""
        if declaration in self._declarations:
            return True
        if not self.take(OF_DECLARATION + len(declaration)):
            return False
        self._declarations.add(declaration)
        return True
