"""The visible and the hidden text of a mail in HTML.

lxml's parser passes tags and text on as it reads them and builds no tree, so that the cost of hostile markup is
proportional to its length. (selectolax took 0.7 s for a tag of 20,000 attributes.) Only end tags without a beginning,
within many elements, take longer. Therefore the number of tags is limited; after the limit the text is read without
tags.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import islice
from typing import Any

from stream_pegasos.common.extras import missing
from stream_pegasos.mail_text.css import plain
from stream_pegasos.mail_text.sheets import FIRST_CHILD, Element, Node, Rule, Sheet
from stream_pegasos.mail_text.styles import INLINE, Declaration, Style, parse_declarations, styled
from stream_pegasos.mail_text.work import Work

__all__ = ["Page", "read_html"]

OF_TAG = 10  # steps
LINE = 250  # characters in a line of the window, at most
NO_CLASSES: frozenset[str] = frozenset()
NO_RULES: list[Rule] = []
OF_STYLE = ("style", "color", "bgcolor", "background", "size", "text", "hidden")  # attributes

VOID = frozenset(
    "area base bgsound br col embed frame hr img input link meta param source track wbr".split()  # noqa: SIM905
)
UNSEEN = frozenset(
    """
    script style title template noscript object applet select textarea iframe noframes noembed audio video canvas
    datalist
    """.split()  # noqa: SIM905
)

MAX_CLASSES = 20  # of an element
MAX_COMMENTS = 500  # comments that are examined at their place
# Public identifiers of document types, or their beginnings, that switch a page to quirks mode
# (https://html.spec.whatwg.org/#the-initial-insertion-mode); the latter only without an address.
OF_QUIRKS = (
    "-//ietf//",
    "-//w3c//dtd html 3",
    "-//w3c//dtd html 4.0 transitional//",
    "-//w3c//dtd html 4.0 frameset//",
)
MAYBE_OF_QUIRKS = ("-//w3c//dtd html 4.01 transitional//", "-//w3c//dtd html 4.01 frameset//")

# Not markup of the page: comments, sheets, and texts that are not shown, whichever begins first.
NO_MARKUP = re.compile(
    r"<(?:!--(?:-?>|.*?(?:--!?>|\Z))|(style|script|title|textarea)(?=[\s/>])([^<>]*+)>(.*?)(?:</\1(?=[\s/>])[^<>]*+>?|\Z)|"
    r"!(?!doctype)[^>]*+>?|\?[^>]*+>?|/(?:body|html)\s*+>)",
    re.IGNORECASE | re.DOTALL,
)
# lxml ends <b> and others before a paragraph, if nothing is between them; browsers do not. A tag between prevents it.
KEEPER = "x-keeper"
STYLED_LETTERS = re.compile(
    r"<(?:b|big|i|s|small|strike|tt|u|h[1-6])\s(?=[^<>]*?(?:style|class|id|hidden))[^<>]*+>", re.IGNORECASE
)
SPACES = re.compile(r"\s+")
LINE_TAG = re.compile(rf"</?(?!(?:{'|'.join(INLINE)})[\s/>])[a-z][^<>]*+>?", re.IGNORECASE)
TAG = re.compile(r"</?[a-zA-Z][^<>]*+>?")

ENTITY = re.compile(r"&(?:#\d{1,9};?|#[xX][\da-fA-F]{1,8};?|[a-zA-Z]\w{1,31}(?:;|(?![=\w])))", re.ASCII)
BODY = re.compile(r"<(?:html|head|body|!doctype)\b", re.IGNORECASE)
MAX_ATTRIBUTES = 500  # of an element, with older parsers
LONG_TAG = re.compile(r"<[a-zA-Z][^<>]{2000,}+")
ONE_ATTRIBUTE = re.compile(r"[^\s=]++(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s\"']*+))?")


class Page:
    """The visible and the hidden content of an HTML text, read tag by tag."""

    def __init__(self, sheet: Sheet, work: Work) -> None:
        self.seen: list[str] = []  # pieces of text
        self.hidden: list[str] = []
        self.links: list[tuple[str, str]] = []  # the address and the text of each
        self.images: list[tuple[str, bool]] = []  # the address of each, and whether it is too small to be visible
        self.tags: dict[str, int] = {}  # the count of each; "#comment" is one, too
        self.traits: set[str] = set()  # the ways of hiding text, and other marks of the page
        self.n_tags_left_out = 0  # read without their styles
        self._sheet, self._work = sheet, work
        self._is_in_quirks_mode = True
        self._styles: dict[str, tuple[Declaration, ...]] = {}  # parsed styles
        # For the style around an element and its own declarations: both styles, and its `display`.
        self._computed: dict[tuple[Any, ...], tuple[Style, Style, str]] = {}
        self._href = ""
        self._label: list[str] = []
        # For each open element: the style around it; whether it ends a line; and, for a box of limited height, the room
        # around it and the number of pieces of text before it.
        self._open: list[tuple[Style, bool, tuple[float, int] | None]] = []
        self._room = math.inf  # for characters
        self._around: list[Node] = []  # the open elements, for selectors
        self._bare_nodes: dict[str, Node] = {}  # by tag; nodes without properties for selectors
        self._before: Node | None = None
        self._style = Style(is_known=sheet.is_known)
        self._hides = self._doubt = ""  # why text is hidden here, or may be; "" if it is not

    # Callbacks of lxml.

    def doctype(self, name: str, public: str | None = None, system: str | None = None) -> None:
        public = (public or "").lower()
        self._is_in_quirks_mode = public.startswith(OF_QUIRKS) or (public.startswith(MAYBE_OF_QUIRKS) and not system)

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == KEEPER:
            return
        self.tags[tag] = self.tags.get(tag, 0) + 1
        around = self._style
        style, node, display = self._styled(tag, attributes)
        if style.is_layer and style is not around:  # later content may lie on top of it
            around = around._replace(is_known=False)
        ends_line = display == "block" if display else tag not in INLINE
        if ends_line:
            self._break(style, "\n" if tag != "td" and tag != "th" else " ")
        if tag == "a" and (href := attributes.get("href")):
            self._end_link()
            self._href = href[:2_000]
        elif tag == "area" and (href := attributes.get("href")):
            self.links.append((href[:2_000], attributes.get("alt", "")[:200]))
        elif tag == "img":
            self._image(attributes, style)
        elif tag == "meta" and attributes.get("http-equiv", "").lower() == "refresh":
            self.traits.add("refresh")
        if tag not in VOID:
            is_low = style.lines != around.lines
            self._open.append((around, ends_line, (self._room, len(self.seen)) if is_low else None))
            if is_low:
                self._room = min(self._room, LINE * style.lines)
            self._around.append(node)
            self._before = None
            self._enter(style)
        else:
            self._before = node

    def end(self, tag: str) -> None:
        if self._around and self._around[-1].element.tag == tag:
            within = self._style
            self._before = self._around.pop()
            style, ends_line, box = self._open.pop()
            if box is not None:
                self._leave(box)
            self._enter(style)
            if ends_line:
                self._break(within, "\n")
        if tag == "a":
            self._end_link()

    def data(self, text: str) -> None:
        if self._hides == "unseen":
            return
        if self._hides or not self._style.lines:
            self._take(text, self._hides)
            return
        text = SPACES.sub(" ", text)
        room = max(0, int(min(self._room, len(text))))
        self._room -= len(text)
        self._take(text[:room], "")
        self._take(text[room:], "height")

    def _take(self, text: str, why: str) -> None:
        if why:
            self.hidden.append(text)
        else:
            self.seen.append(text)
            if self._href:
                self._label.append(text[:200])
        if (why or self._doubt) and text.strip():
            self.traits.add(f"hides-by-{why}" if why else f"may-hide-by-{self._doubt}")

    def comment(self, text: str) -> None:
        if self.seen and self.seen[-1][-1:].isalnum():
            self.traits.add("comment-in-word")

    def close(self) -> Page:
        self._end_link()
        if not self._work.left:
            self.traits.add("styles-left-out")
        return self

    def _leave(self, box: tuple[float, int]) -> None:
        """End a box of limited height: if it is lower than its letters, and has too much text, it is not visible."""
        if self._style.lines == 1 and self._room < 0:
            self.hidden += self.seen[box[1] :]
            del self.seen[box[1] :]
        self._room = box[0]

    def _enter(self, style: Style) -> None:
        if style is not self._style:
            self._style, self._hides = style, style.hides
            self._doubt = "" if self._hides else style.may_hide

    def _styled(self, tag: str, attributes: Mapping[str, str]) -> tuple[Style, Node, str]:
        """The style of an element within the open elements, its node for selectors, and its `display`."""
        parent, sheet = self._style, self._sheet
        if tag in UNSEEN:
            return parent._replace(closed="unseen"), self._bare_node(tag), ""
        if not self._work.take(OF_TAG):
            self.n_tags_left_out += 1
            return parent, self._bare_node(tag), ""
        node, rules = self._bare_node(tag), NO_RULES
        if sheet:
            node = self._node(tag, attributes)
            rules = sheet.rules_for(node, self._around)
        elif not attributes and tag != "table" and tag != "button":
            return parent, node, ""
        values = (*map(attributes.get, OF_STYLE), "href" in attributes) if attributes else ()
        key = (id(parent), tag, values, tuple(map(id, rules)))
        entry = self._computed.get(key)
        if entry is not None and entry[0] is parent:  # not another style at the same address
            return entry[1], node, entry[2]
        declarations = [declaration for rule in rules for declaration in rule.declarations]
        if text := attributes.get("style"):
            declarations += self._declarations(text)
        self._work.take(len(declarations))
        display = ""
        for _, name, value in declarations:
            if name == "display":
                display = "inline" if value.startswith("inline") or value == "contents" else "block"
        style = styled(parent, tag, attributes, declarations, self._is_in_quirks_mode)
        self._computed[key] = parent, style, display
        return style, node, display

    def _bare_node(self, tag: str) -> Node:
        if tag not in self._bare_nodes:
            self._bare_nodes[tag] = Node(Element(tag, "", NO_CLASSES), None)
        return self._bare_nodes[tag]

    def _node(self, tag: str, attributes: Mapping[str, str]) -> Node:
        sheet = self._sheet
        classes = frozenset(attributes.get("class", "").split()[:MAX_CLASSES]) if attributes else NO_CLASSES
        named = [(name, attributes[name]) for name in sheet.attributes if name in attributes]
        if FIRST_CHILD in sheet.attributes and self._before is None:
            named.append((FIRST_CHILD, ""))
        return Node(Element(tag, attributes.get("id", "").strip(), classes, tuple(named)), self._before)

    def _declarations(self, style: str) -> tuple[Declaration, ...]:
        if style not in self._styles:
            self._styles[style] = parse_declarations(plain(style), self._work)
        return self._styles[style]

    def _break(self, style: Style, sign: str) -> None:
        """Begin or end a line or a cell; a hidden one does not change the lines around it."""
        self.hidden.append(sign)
        if not style.closed:
            self.seen.append(sign)

    def _end_link(self) -> None:
        if self._href:
            self.links.append((self._href, " ".join("".join(self._label).split())[:200]))
        self._href, self._label = "", []

    def _image(self, attributes: Mapping[str, str], style: Style) -> None:
        sizes = {attributes.get(name, "").strip().removesuffix("px") for name in ("width", "height")}
        is_hidden = bool(style.closed) or not style.visible
        self.images.append((attributes.get("src", "")[:2_000], is_hidden or bool(sizes & {"0", "1"})))
        if (alt := attributes.get("alt")) and style.closed != "unseen":
            (self.hidden if style.hides else self.seen).append(f" {alt[:200]} ")


@cache
def etree() -> Any:
    """lxml's parsers, imported at the first HTML."""
    try:
        from lxml import etree
    except ImportError as error:
        raise missing("a mail in HTML", "mail", error) from error
    return etree


def read_html(markup: str, work: Work) -> Page:
    """The visible and the hidden content of an HTML text, which may be any text."""
    sheets: list[tuple[str, str]] = []
    n_comments = 0

    def take_out(match: re.Match[str]) -> str:
        nonlocal n_comments
        if tag := match[1]:
            if tag.lower() == "style":
                sheets.append((match[2], match[3]))
            return f"<{tag}></{tag}>"
        if not match[0].startswith("<!--"):
            return ""
        n_comments += 1
        return "<!--x-->" if n_comments <= MAX_COMMENTS else ""

    # Browsers read <div/> as <div>, lxml as an empty element.
    markup = NO_MARKUP.sub(take_out, markup.replace("\0", "")).replace("/>", " >")
    if etree().LIBXML_VERSION < (2, 14):
        markup = fit_old_parser(markup)
    markup = STYLED_LETTERS.sub(rf"\g<0><{KEEPER}>", markup)
    page = Page(Sheet(sheets, markup, work), work)
    markup, tail = split_at_tag(markup, work.left // OF_TAG)
    parser = etree().HTMLParser(target=page, encoding="utf-8", huge_tree=True)
    try:
        parser.feed(markup.encode("utf-8", "replace"))
        parser.close()
    except etree().LxmlError:  # also for empty text; content read before the error stays
        page.close()
    if n_comments:
        page.tags["#comment"] = n_comments
    if tail:
        page.n_tags_left_out += tail.count("<")
        page.traits.add("styles-left-out")
        page.seen.append(html.unescape(TAG.sub("", LINE_TAG.sub("\n", tail))))
    return page


def fit_old_parser(markup: str) -> str:
    """Markup that libxml2 before 2.14 reads like later versions. The old parser knows fewer entities, and none without
    a semicolon; it loses text after an end tag without a body; its time is quadratic in the attributes of a tag.
    """
    if "&" in markup:
        markup = ENTITY.sub(lambda match: decode_entity(match[0]), markup)
    return ("" if BODY.search(markup) else "<body>") + LONG_TAG.sub(cut_attributes, markup)


@lru_cache(1_000)
def decode_entity(entity: str) -> str:
    return html.escape(html.unescape(entity))


def cut_attributes(tag: re.Match[str]) -> str:
    match = next(islice(ONE_ATTRIBUTE.finditer(tag[0]), MAX_ATTRIBUTES, None), None)
    return tag[0][: match.start()] if match else tag[0]


def split_at_tag(markup: str, n: int) -> tuple[str, str]:
    """Markup up to its first n tags, and the rest."""
    if markup.count("<") <= n:
        return markup, ""
    end = len(markup) - len(markup.split("<", n + 1)[-1]) - 1
    return markup[:end], markup[end:]
