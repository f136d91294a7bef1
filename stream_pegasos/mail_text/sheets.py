"""The style sheets of a mail: which rules are for which element."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from stream_pegasos.mail_text.styles import WINDOW, Declaration, declarations_in, tinycss2

__all__ = ["Element", "Sheet"]

MAX_SHEET = 25_000  # characters of a mail's sheets that are read
MAX_TRIED = 10_000  # how often a rule is tried on an element

# Whatever comes first: a comment has no sheets, and a sheet no comments of HTML.
SHEET = re.compile(r"<!--.*?(?:-->|\Z)|<style\b([^>]{0,500})>(.*?)(?:</style|\Z)", re.IGNORECASE | re.DOTALL)
MEDIA = re.compile(r"\bmedia\s*=\s*(?:\"([^\"]*)|'([^']*)|([^\s\"'>]+))", re.IGNORECASE)
COMPOUND = re.compile(r"(\*|[\w-]+)?((?:[#.][\w-]+)*)(?::link)?")
NAMES = re.compile(r"[#.][\w-]+")
# States that an element of a mail is not in as it is opened, and boxes that are not its own.
NOT_NOW = re.compile(r":(?:hover|active|focus|visited|checked|target|before|after|:)", re.IGNORECASE)
ATTRIBUTE = re.compile(r"\[\s*([\w-]+)")
LONG_NUMBER = re.compile(r"\d{300,}")  # Python makes no int of thousands of digits
QUERY = re.compile(r"(?:only)?(?:all|screen)?(?:and)?(?:\((?:min|max)-width:\d+(?:\.\d+)?(?:px)?\)(?:and)?)*")
WIDTH = re.compile(r"(min|max)-width:(\d+)")


class Element(NamedTuple):
    """What a selector may ask of an element."""

    tag: str
    id: str
    classes: frozenset[str]


class Compound(NamedTuple):
    """The part of a selector that is about one element."""

    tag: str
    id: str
    classes: frozenset[str]
    is_child: bool  # of the element that the next part is about; or else that one is anywhere around it

    def suits(self, element: Element) -> bool:
        return (
            (not self.tag or self.tag == element.tag)
            and (not self.id or self.id == element.id)
            and self.classes <= element.classes
        )


class Rule(NamedTuple):
    """Declarations, and the selector of the elements that they are for, from the inside out."""

    specificity: tuple[int, int, int]
    place: int  # among all rules
    compounds: tuple[Compound, ...]
    declarations: tuple[Declaration, ...]

    def is_within(self, around: Sequence[Element]) -> bool:
        """Whether what the selector says of the elements around is so; the last of these is the parent."""
        inner, *outer = self.compounds
        at = len(around)
        for compound in outer:
            at -= 1
            while at >= 0 and not compound.suits(around[at]):
                at = -1 if inner.is_child else at - 1
            if at < 0:
                return False
            inner = compound
        return True


class Sheet:
    """The rules in all sheets of a mail, wherever they stand in it.

    Selectors may have tags, classes and ids, and say what is around an element. `is_known` is False if a rule of
    another kind was left out that may have set a background.
    """

    def __init__(self, markup: str) -> None:
        self.rules: dict[str, list[Rule]] = {}
        self.is_known = True
        self._own: dict[Element, list[Rule]] = {}  # those for an element, whatever is around it
        self._n_rules = self._n_tried = 0
        if "<style" not in markup.lower():
            return
        self._page = SHEET.sub("", markup).lower()
        left = MAX_SHEET
        for found in SHEET.finditer(markup):
            css = found[2] and LONG_NUMBER.sub("0", found[2])
            media = MEDIA.search(found[1] or "")
            if css is None or (media and not is_shown(next(filter(None, media.groups()), ""))):
                continue
            self.is_known &= len(css) <= left
            try:
                self._add(tinycss2().parse_stylesheet(css[:left], skip_comments=True, skip_whitespace=True))
            except RecursionError:  # of brackets within brackets
                self.is_known = False
            left -= min(left, len(css))

    def _add(self, nodes: Sequence[Any]) -> None:
        for node in nodes:
            if node.type == "qualified-rule":
                if declarations := tuple(declarations_in(node.content)):
                    for selector in tinycss2().serialize(node.prelude).split(","):
                        self._add_rule(selector, declarations)
            elif (
                node.type == "at-rule"
                and node.lower_at_keyword == "media"
                and node.content is not None
                and is_shown(tinycss2().serialize(node.prelude))
            ):
                self._add(tinycss2().parse_rule_list(node.content, skip_comments=True, skip_whitespace=True))

    def _add_rule(self, selector: str, declarations: tuple[Declaration, ...]) -> None:
        compounds = compounds_of(selector)
        if not compounds:
            if any(name.startswith("background") for _, name, _ in declarations) and self._may_suit(selector):
                self.is_known = False
            return
        n_ids, n_classes, n_tags = (
            sum(map(bool, [compound.id for compound in compounds])),
            sum(len(compound.classes) for compound in compounds),
            sum(map(bool, [compound.tag for compound in compounds])),
        )
        own = compounds[0]
        key = f"#{own.id}" if own.id else f".{min(own.classes)}" if own.classes else own.tag
        rule = Rule((n_ids, n_classes, n_tags), self._n_rules, compounds, declarations)
        self.rules.setdefault(key, []).append(rule)
        self._n_rules += 1

    def _may_suit(self, selector: str) -> bool:
        """Whether a selector that is not understood may be of an element of this mail: some are for a mail program
        that adds an attribute."""
        attributes = ATTRIBUTE.findall(selector)
        return not NOT_NOW.search(selector) and all(name.lower() in self._page for name in attributes)

    def declarations_for(self, element: Element, around: Sequence[Element]) -> list[Declaration]:
        """The declarations for an element within others, the weakest first."""
        if element not in self._own:
            keys = ["", element.tag, f"#{element.id}", *(f".{name}" for name in element.classes)]
            tried = [rule for key in dict.fromkeys(keys) for rule in self.rules.get(key, ())]
            self._n_tried += len(tried)
            self._own[element] = sorted(
                [rule for rule in tried if rule.compounds[0].suits(element)],
                key=lambda rule: (rule.specificity, rule.place),
            )
        own = self._own[element]
        self._n_tried += len(own)
        if self._n_tried > MAX_TRIED:
            self.is_known = False
            return []
        return [declaration for rule in own if rule.is_within(around) for declaration in rule.declarations]


def compounds_of(selector: str) -> tuple[Compound, ...]:
    """The parts of a selector from the inside out; none of one that has others than tags, classes and ids."""
    compounds: list[Compound] = []
    is_child = False
    for word in reversed(selector.replace(">", " > ").split()):
        if word == ">":
            is_child = True
            continue
        found = COMPOUND.fullmatch(word)
        names = NAMES.findall(found[2]) if found else []
        ids = [name[1:] for name in names if name[0] == "#"]
        if found is None or len(ids) > 1:
            return ()
        if is_child and compounds:
            compounds[-1] = compounds[-1]._replace(is_child=True)
        tag = "" if found[1] == "*" else (found[1] or "").lower()
        compounds.append(Compound(tag, "".join(ids), frozenset(name[1:] for name in names if name[0] == "."), False))
        is_child = False
    return tuple(compounds)


def is_shown(media: str) -> bool:
    """Whether one of several media queries is true of a window on a screen."""
    queries = ["".join(query.split()) for query in media.lower().split(",")]
    return any(QUERY.fullmatch(query) and all(map(fits, WIDTH.findall(query))) for query in queries)


def fits(bound: tuple[str, str]) -> bool:
    return int(bound[1]) <= WINDOW if bound[0] == "min" else int(bound[1]) >= WINDOW
