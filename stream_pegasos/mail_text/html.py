"""What a reader sees of a mail in HTML, and what is hidden.

lxml's parser passes tags and text on as it meets them and builds no tree, so that the cost of hostile markup is
proportional to its length. (selectolax took 0.7 s for a tag of 20,000 attributes.)
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from stream_pegasos.common.extras import missing
from stream_pegasos.mail_text.sheets import Element, Sheet
from stream_pegasos.mail_text.styles import INLINE, Declaration, Style, declarations_of, styled

__all__ = ["MAX_TAGS", "Page", "read_html"]

MAX_TAGS = 4_000  # tags of a mail that are read
NO_CLASSES: frozenset[str] = frozenset()

VOID = frozenset(
    "area base bgsound br col embed frame hr img input link meta param source track wbr".split()  # noqa: SIM905
)
UNSEEN = frozenset(
    """
    script style title template noscript object applet select textarea iframe noframes noembed audio video canvas
    datalist
    """.split()  # noqa: SIM905
)

MAX_AROUND = 50  # elements around one that selectors may ask about
MAX_STYLE = 1_000  # characters of an element's style that are read
MAX_STYLES = 40_000  # characters of different styles of a mail


class Page:
    """What an HTML text shows and hides, taken in tag by tag."""

    def __init__(self, sheet: Sheet) -> None:
        self.seen: list[str] = []  # pieces of text
        self.hidden: list[str] = []
        self.links: list[tuple[str, str]] = []  # the address and the text of each
        self.images: list[tuple[str, bool]] = []  # the address of each, and whether it is too small to be seen
        self.tags: dict[str, int] = {}  # how often each occurs; "#comment" is one, too
        self.traits: set[str] = set()  # how text is hidden, and other marks of the page
        self._sheet = sheet
        self._has_type = False
        self._read_styles: set[str] = set()
        self._left_of_styles = MAX_STYLES
        self._href = ""
        self._label: list[str] = []
        # Of each open element the style around it, and whether it ends a line.
        self._open: list[tuple[Style, bool]] = []
        self._around: list[Element] = []  # what selectors may ask of them
        self._style = Style(is_known=sheet.is_known)
        self._hides = self._doubt = ""  # why text is hidden here, or may be; "" if it is not

    # What lxml calls.

    def doctype(self, name: str, *_: str | None) -> None:
        self._has_type = True

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.tags[tag] = self.tags.get(tag, 0) + 1
        around = self._style
        style, element, display = self._styled(tag, attributes)
        ends_line = display == "block" if display else tag not in INLINE
        if ends_line:
            self._break(style, "\n" if tag != "td" and tag != "th" else " ")
        if tag == "a" and (href := attributes.get("href")):
            self._end_link()
            self._href = href[:2_000]
        elif tag == "img":
            self._image(attributes, style)
        elif tag == "meta" and attributes.get("http-equiv", "").lower() == "refresh":
            self.traits.add("refresh")
        if tag not in VOID:
            self._open.append((around, ends_line))
            self._around.append(element)
            self._enter(style)

    def end(self, tag: str) -> None:
        if self._around and self._around[-1].tag == tag:
            within = self._style
            self._around.pop()
            style, ends_line = self._open.pop()
            self._enter(style)
            if ends_line:
                self._break(within, "\n")
        if tag == "a":
            self._end_link()

    def data(self, text: str) -> None:
        why = self._hides
        if why == "unseen":
            return
        if why:
            self.hidden.append(text)
        else:
            self.seen.append(text)
            if self._href:
                self._label.append(text[:200])
        if (why or self._doubt) and text.strip():
            self.traits.add(f"hides-by-{why}" if why else f"may-hide-by-{self._doubt}")

    def comment(self, text: str) -> None:
        self.tags["#comment"] = self.tags.get("#comment", 0) + 1
        if self.seen and self.seen[-1][-1:].isalnum():
            self.traits.add("comment-in-word")

    def close(self) -> Page:
        self._end_link()
        return self

    def _enter(self, style: Style) -> None:
        if style is not self._style:
            self._style, self._hides = style, style.hides
            self._doubt = "" if self._hides else style.may_hide

    def _styled(self, tag: str, attributes: Mapping[str, str]) -> tuple[Style, Element, str]:
        """The style of an element within those that are open, what selectors may ask of it, and its `display`."""
        if tag in UNSEEN:
            return self._style._replace(closed="unseen"), Element(tag, "", NO_CLASSES), ""
        sheet = self._sheet
        if not sheet.rules and not attributes and tag != "table" and tag != "button":
            return self._style, Element(tag, "", NO_CLASSES), ""
        classes = frozenset(attributes.get("class", "")[:MAX_STYLE].split()[:20])
        element = Element(tag, attributes.get("id", "").strip(), classes)
        found: list[Declaration] = []
        if sheet.rules:
            found = sheet.declarations_for(element, self._around[-MAX_AROUND:])
        if text := attributes.get("style"):
            found += self._declarations(text[:MAX_STYLE])
        display = ""
        for _, name, value in found:
            if name == "display":
                display = "inline" if value.startswith("inline") or value == "contents" else "block"
        return styled(self._style, tag, attributes, found, not self._has_type), element, display

    def _declarations(self, style: str) -> tuple[Declaration, ...]:
        if style not in self._read_styles:
            self._read_styles.add(style)
            self._left_of_styles -= len(style)
        if self._left_of_styles < 0:
            self.traits.add("styles-left-out")
            return ()
        return declarations_of(style)

    def _break(self, style: Style, sign: str) -> None:
        """A line or a cell begins or ends; one that is closed leaves those around it as they are."""
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
    """lxml's parsers, imported when the first HTML comes."""
    try:
        from lxml import etree  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise missing("a mail in HTML", "mail", error) from error
    return etree


def read_html(markup: str, max_tags: int = MAX_TAGS) -> tuple[Page, int]:
    """What an HTML text, which may be any text, shows and hides, and how many characters were left out beyond
    `max_tags`.
    """
    pieces = markup.split("<", max_tags + 1)
    left_out = len(pieces[-1]) + 1 if len(pieces) > max_tags + 1 else 0
    # A browser takes <div/> as <div>, lxml as an empty one.
    read = markup[: len(markup) - left_out].replace("\0", "").replace("/>", " >")
    page = Page(Sheet(read))
    parser = etree().HTMLParser(target=page, encoding="utf-8")
    try:
        parser.feed(read.encode("utf-8", "replace"))
        parser.close()
    except etree().LxmlError:  # also of no text at all; what was met before it stays
        page.close()
    return page, left_out
