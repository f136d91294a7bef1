"""The work that a mail may cost beyond what is proportional to its length."""

from __future__ import annotations

__all__ = ["Work"]

MAX_STEPS = 200_000  # of a mail; 100,000 take some .05 s
OF_DECLARATION = 20  # the steps of one that was not read before, beside one for each of its characters


class Work:
    """Steps that are left for all parts of a mail, or for a sheet.

    Text is always read, as that takes a time that is linear. What takes more, such as styles of elements by the rules
    of sheets, takes steps. Where none is left, text is read as if nothing hid it. What may be compressed takes steps,
    too, and its rest is left out.
    """

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self.left = steps
        self._declarations: set[str] = set()

    def take(self, steps: int) -> bool:
        """Whether so many are left; then they are not any more."""
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
