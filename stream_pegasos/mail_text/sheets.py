"""The style sheets of a mail, and the choice of rules for an element."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from stream_pegasos.mail_text.css import is_shown, plain, rules_in, selectors_in
from stream_pegasos.mail_text.styles import Declaration, parse_declarations
from stream_pegasos.mail_text.work import Work

__all__ = ["FIRST_CHILD", "Element", "Node", "Rule", "Sheet"]

# The numbers of ids, of classes and attributes, and of tags in a selector.
Specificity = tuple[int, int, int]

MAX_KEPT = 50_000  # characters of a sheet whose rules are kept for other mails
MAX_STEPS = 100_000  # for a sheet
OF_SELECTOR = 20  # steps
MAX_SELECTOR, MAX_COMPOUNDS = 300, 20  # characters and parts of a selector
MAX_AROUND = 50  # elements around or before an element that a selector is tried on

NAME = r"(?!\d)(?:[\w-]|\\.)+"
VALUE = r"(?:\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)'|(?P<bare>[^\]\s\"']+))"
COMPOUND = re.compile(r"\s*+([>+~]?)\s*+((?:[^\s>+~\[\](),\"']|\[[^\]]*+\]|\([^()]*+\))++)")
SIMPLE = re.compile(
    rf"(?P<tag>\*|(?<![\w\\#.:])[\w-]+)|#(?P<id>{NAME})|\.(?P<class>{NAME})|:not\((?P<none>[^()]*)\)|:(?:is|where)\((?P<any>[^()]*)\)|"
    rf"\[\s*(?P<name>[\w-]+)\s*(?:(?P<how>[~|^$*]?=)\s*{VALUE}\s*(?P<case>[iIsS])?\s*)?\]|:(?P<state>link|any-link|root|first-child)(?![\w(-])"
)
# States that an element of an opened mail does not have, and boxes other than its own.
NOT_NOW = re.compile(r":(?:hover|active|focus|visited|checked|target|before|after|:)", re.IGNORECASE)
ATTRIBUTE = re.compile(r"\[\s*([\w-]+)")
IN_BRACKETS = re.compile(r"\[[^\]]*+\]")
PSEUDO, BROKEN = re.compile(r"(?<!\\):([\w-]+)"), re.compile(r"(?<!\\)[.#]\d|}")
# Pseudo-classes and pseudo-elements of browsers; a list of selectors with another one is not valid.
OF_BROWSERS = frozenset(
    """
    active after any-link autofill backdrop before checked default defined dir disabled empty enabled
    file-selector-button first-child first-letter first-line first-of-type focus focus-visible focus-within
    fullscreen has hover in-range indeterminate invalid is lang last-child last-of-type link marker not
    nth-child nth-last-child nth-last-of-type nth-of-type only-child only-of-type optional out-of-range
    placeholder placeholder-shown read-only read-write required root scope selection target valid visited where
    """.split()  # noqa: SIM905
)
TYPE = re.compile(r"\btype\s*=\s*[\"']?\s*(?!text/css\b)[\w/]", re.IGNORECASE)  # not a style sheet
MEDIA = re.compile(r"\bmedia\s*=\s*(?:\"([^\"]*)|'([^']*)|([^\s\"'>]+))", re.IGNORECASE)


FIRST_CHILD = ":first-child"  # stored as an attribute


class Element(NamedTuple):
    """The properties of an element that a selector may test."""

    tag: str
    id: str
    classes: frozenset[str]
    attributes: tuple[tuple[str, str], ...] = ()  # those that a selector of the mail names


class Node(NamedTuple):
    """An element, and the element before it within the same parent."""

    element: Element
    before: Node | None


class Attribute(NamedTuple):
    """The test of an attribute in a selector."""

    name: str
    how: str  # "=", "~=", ...; "" tests only its presence
    value: str
    ignores_case: bool

    def suits(self, element: Element) -> bool:
        for name, value in element.attributes:
            if name == self.name:
                if self.ignores_case:
                    value = value.lower()
                return not self.how or HOW[self.how](value, self.value)
        return False


HOW: dict[str, Callable[[str, str], bool]] = {
    "=": str.__eq__,
    "~=": lambda value, word: word in value.split(),
    "|=": lambda value, start: value == start or value.startswith(f"{start}-"),
    "^=": lambda value, start: bool(start) and value.startswith(start),
    "$=": lambda value, end: bool(end) and value.endswith(end),
    "*=": lambda value, part: bool(part) and part in value,
}


class Compound(NamedTuple):
    """The part of a selector for one element."""

    tag: str
    id: str
    classes: frozenset[str]
    attributes: tuple[Attribute, ...]
    none: tuple[Compound, ...]  # none of these may match
    any: tuple[tuple[Compound, ...], ...]  # at least one of each of these must match
    combinator: str  # between the previous compound and this one: " ", ">", "+" or "~"

    def suits(self, element: Element) -> bool:
        return (
            (not self.tag or self.tag == element.tag)
            and (not self.id or self.id == element.id)
            and self.classes <= element.classes
            and all(attribute.suits(element) for attribute in self.attributes)
            and not any(compound.suits(element) for compound in self.none)
            and all(any(compound.suits(element) for compound in group) for group in self.any)
        )

    @property
    def specificity(self) -> Specificity:
        own = (int(bool(self.id)), len(self.classes) + len(self.attributes), int(bool(self.tag)))
        return _total([own, max((compound.specificity for compound in self.none), default=(0, 0, 0))])


def _total(specificities: Iterable[Specificity]) -> Specificity:
    ids, classes, tags = zip(*specificities, strict=True)
    return sum(ids), sum(classes), sum(tags)


class Rule(NamedTuple):
    """Declarations, and the selector of their elements, from the inside out."""

    specificity: Specificity
    place: int  # among the rules of its sheet
    compounds: tuple[Compound, ...]
    declarations: tuple[Declaration, ...]


class Rules(NamedTuple):
    """The rules of one sheet."""

    by_key: dict[str, list[Rule]]  # by "#id", ".class" or tag of the innermost element
    attributes: frozenset[str]  # named in selectors
    others: tuple[str, ...]  # selectors that are not supported, of rules that set a background
    is_whole: bool  # whether all rules were read
    n_steps: int  # steps taken


def read_rules(css: str) -> Rules:
    work = Work(MAX_STEPS)
    by_key: dict[str, list[Rule]] = {}
    attributes: set[str] = set()
    other_selectors: list[str] = []
    n_rules = 0
    for prelude, content in rules_in(plain(css)):
        if not work.left:
            break
        if is_broken(prelude) or not (declarations := parse_declarations(content, work)):
            continue
        for selector in selectors_in(prelude):
            if not work.take(OF_SELECTOR):
                break
            if len(selector) <= MAX_SELECTOR and (compounds := parse_compounds(selector.strip())):
                own = compounds[0]
                key = f"#{own.id}" if own.id else f".{min(own.classes)}" if own.classes else own.tag
                specificity = _total(compound.specificity for compound in compounds)
                rule = Rule(specificity, n_rules, compounds, declarations)
                by_key.setdefault(key, []).append(rule)
                attributes |= names_in(compounds)
                n_rules += 1
            elif any(name.startswith("background") for _, name, _ in declarations):
                other_selectors.append(selector)
    return Rules(by_key, frozenset(attributes), tuple(other_selectors), work.left > 0, MAX_STEPS - work.left)


def is_broken(selectors: str) -> bool:
    """Whether a selector is not known to browsers, so that the rule is not valid."""
    bare = IN_BRACKETS.sub("", selectors).lower()
    names = PSEUDO.findall(bare)
    return BROKEN.search(bare) is not None or not all(x in OF_BROWSERS or x.startswith("-webkit-") for x in names)


kept_rules = functools.lru_cache(30)(read_rules)


class Sheet:
    """The rules in all sheets of a page, at any place in it, from pairs of attributes and content.

    Selectors may have tags, classes, ids, attributes, `:not` and `:is`, and conditions on elements around or before.
    `is_known` is False if a rule that may have set a background was left out.
    """

    def __init__(self, sheets: Sequence[tuple[str, str]], markup: str, work: Work) -> None:
        self.is_known = True
        self.attributes: frozenset[str] = frozenset()
        self._work = work
        self._sheets: list[dict[str, list[Rule]]] = []
        self._own: dict[Element, list[Rule]] = {}  # those for an element, before tests of its surroundings
        page = ""
        for attributes, css in sheets:
            media = MEDIA.search(attributes)
            if TYPE.search(attributes) or (media and not is_shown(next(filter(None, media.groups()), ""))):
                continue
            rules = kept_rules(css) if len(css) <= MAX_KEPT else read_rules(css)
            if not work.take(rules.n_steps):
                self.is_known = False
                break
            self.is_known &= rules.is_whole
            if rules.others and self.is_known:
                page = page or markup.lower()
                self.is_known = not any(may_suit(selector, page) for selector in rules.others)
            if rules.by_key:
                self._sheets.append(rules.by_key)
                self.attributes |= rules.attributes

    def __bool__(self) -> bool:
        return bool(self._sheets)

    def rules_for(self, node: Node, around: Sequence[Node]) -> list[Rule]:
        """The rules for an element within others, the weakest first."""
        element = node.element
        own = self._own.get(element)
        if own is None:
            own = self._own[element] = self._own_rules(element)
        suiting: list[Rule] = []
        for rule in own:
            if not self._work.take(1):
                return []
            if len(rule.compounds) == 1 or self._is_within(rule.compounds, 1, node, around, len(around)):
                suiting.append(rule)
        return suiting

    def _own_rules(self, element: Element) -> list[Rule]:
        keys = dict.fromkeys(["", element.tag, f"#{element.id}", *(f".{name}" for name in element.classes)])
        own: list[Rule] = []
        for sheet in self._sheets:
            tried = [rule for key in keys for rule in sheet.get(key, ())]
            if not self._work.take(len(keys) + sum(len(rule.compounds[0].classes) + 1 for rule in tried)):
                return []
            suiting = [rule for rule in tried if rule.compounds[0].suits(element)]
            own += sorted(suiting, key=lambda rule: rule.place)
        return sorted(own, key=lambda rule: rule.specificity)

    def _is_within(
        self, compounds: tuple[Compound, ...], i: int, node: Node, around: Sequence[Node], depth: int
    ) -> bool:
        """Whether the elements around or before a node match the compounds of a selector from i on."""
        if i == len(compounds):
            return True
        compound, combinator = compounds[i], compounds[i - 1].combinator
        if combinator in "+~":
            other = node.before
            while other is not None and self._work.take(1):
                if compound.suits(other.element) and self._is_within(compounds, i + 1, other, around, depth):
                    return True
                other = other.before if combinator == "~" else None
            return False
        for at in range(depth - 1, max(-1, depth - 1 - MAX_AROUND), -1):
            if not self._work.take(1):
                return False
            if compound.suits(around[at].element) and self._is_within(compounds, i + 1, around[at], around, at):
                return True
            if combinator == ">":
                return False
        return False


@functools.lru_cache(4_000)
def parse_compounds(selector: str) -> tuple[Compound, ...]:
    """The parts of a selector from the inside out; empty if it has an unsupported part."""
    compounds: list[Compound] = []
    at = 0
    while at < len(selector):
        match = COMPOUND.match(selector, at)
        compound = match and parse_compound(match[2], match[1] or " ")
        if match is None or compound is None or len(compounds) == MAX_COMPOUNDS:
            return ()
        compounds.append(compound)
        at = match.end()
    return tuple(reversed(compounds))


def parse_compound(text: str, combinator: str = " ") -> Compound | None:
    tag, ids, classes = "", [], []
    attributes: list[Attribute] = []
    excluded: list[Compound] = []
    groups: list[tuple[Compound, ...]] = []
    at = 0
    while at < len(text):
        match = SIMPLE.match(text, at)
        if match is None:
            return None
        at = match.end()
        if match["tag"]:
            tag = "" if match["tag"] == "*" else match["tag"].lower()
        elif match["id"]:
            ids.append(match["id"].replace("\\", ""))
        elif match["class"]:
            classes.append(match["class"].replace("\\", ""))
        elif match["name"]:
            value = match["double"] or match["single"] or match["bare"] or ""
            ignores_case = (match["case"] or "").lower() == "i"
            value = value.lower() if ignores_case else value
            attributes.append(Attribute(match["name"].lower(), match["how"] or "", value, ignores_case))
        elif match["state"]:
            if match["state"] == "root":
                tag = tag or "html"
            else:
                name = FIRST_CHILD if match["state"] == "first-child" else "href"
                attributes.append(Attribute(name, "", "", False))
        else:
            inside = [
                parse_compound(selector_inside.strip())
                for selector_inside in selectors_in(match["none"] or match["any"] or "")
            ]
            group = tuple(compound for compound in inside if compound is not None)
            if not group or len(group) < len(inside):
                return None
            if match["none"]:
                excluded += group
            else:
                groups.append(group)
    if len(ids) > 1 or not text:
        return None
    return Compound(
        tag, "".join(ids), frozenset(classes), tuple(attributes), tuple(excluded), tuple(groups), combinator
    )


def names_in(compounds: Sequence[Compound]) -> set[str]:
    names = {attribute.name for compound in compounds for attribute in compound.attributes}
    return names.union(*[names_in(group) for compound in compounds for group in (compound.none, *compound.any)])


def may_suit(selector: str, page: str) -> bool:
    """Whether an unsupported selector may match an element of a page, in lower case: some selectors are for a mail
    program that adds an attribute.
    """
    attributes = ATTRIBUTE.findall(selector)
    return not NOT_NOW.search(selector) and all(name.lower() in page for name in attributes)
