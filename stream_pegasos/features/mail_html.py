"""What a reader sees of a mail in HTML, and what is hidden.

lxml's parser passes tags and text on as it meets them and builds no tree, so that the cost of hostile markup is
proportional to its length. (selectolax took 0.7 s for a tag of 20,000 attributes.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from stream_pegasos.common.extras import missing

__all__ = ["MAX_TAGS", "Page", "read_html"]

MAX_TAGS = 4_000  # tags of a mail that are read

# Tags that may stand within a word; any other tag ends the word.
INLINE = frozenset(
    """
    a abbr acronym b bdo big cite code del dfn em font i ins kbd label mark nobr o:p q s samp small span strike
    strong sub sup tt u var wbr
    """.split()  # noqa: SIM905
)
VOID = frozenset(
    "area base bgsound br col embed frame hr img input link meta param source track wbr".split()  # noqa: SIM905
)
UNSEEN = frozenset(
    "head script style title template noscript object applet select textarea".split()  # noqa: SIM905
)

HIDING_STYLE = re.compile(
    r"display:none|visibility:(?:hidden|collapse)|font-size:(?:0|1)(?:\.\d+)?(?:px|pt|em|%|;|$)(?<!1em)|"
    r"(?:max-height|max-width|opacity|line-height|height|width):0(?:\.0+)?(?:px|pt|em|%)?(?:!important)?(?:;|$)|"
    r"mso-hide:all|text-indent:-\d{3}|left:-\d{3}"
)
STYLE_COLOR = re.compile(r"(?:^|;)color:([^;]{1,30})")
STYLE_BACKGROUND = re.compile(r"(?:^|;)background(?:-color)?:([^;]{1,30})")
NAMED_COLORS = {"white": "ffffff", "black": "000000", "red": "ff0000", "yellow": "ffff00", "blue": "0000ff"}
RGB = re.compile(r"rgb\((\d{1,3}),(\d{1,3}),(\d{1,3})\)")


def color_of(value: str) -> str:
    """A colour in six hexadecimal digits, as far as it is written in a common way."""
    value = value.strip().lower().removeprefix("#")
    if numbers := RGB.match(value):
        return "".join(f"{min(int(number), 255):02x}" for number in numbers.groups())
    if len(value) == 3:
        value = "".join(digit * 2 for digit in value)
    return NAMED_COLORS.get(value, value)


def is_close(color: str, background: str) -> bool:
    """Whether text of that colour is invisible on its background."""
    if color == background:
        return True
    try:
        pairs = [(int(color[i : i + 2], 16), int(background[i : i + 2], 16)) for i in (0, 2, 4)]
    except ValueError:
        return False
    return max(abs(one - other) for one, other in pairs) < 12


class Page:
    """What an HTML text shows and hides, taken in tag by tag.

    Attributes
    ----------
    seen, hidden
        The pieces of text that a reader sees, and those of hidden text.
    links
        Pairs of an address and the text of its link.
    images
        The addresses of images, with whether each is too small to be seen.
    tags
        How often each tag occurs; `"#comment"` is one, too.
    traits
        How text is hidden, and other marks of the page.
    """

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.hidden: list[str] = []
        self.links: list[tuple[str, str]] = []
        self.images: list[tuple[str, bool]] = []
        self.tags: dict[str, int] = {}
        self.traits: set[str] = set()
        self._href = ""
        self._label: list[str] = []
        self._open: list[tuple[str, str, str]] = []  # tags, each with `_why` and `_background` from before it
        self._why, self._background = "", "ffffff"  # why text is hidden here, "" if it is not, and the colour behind it

    # What lxml calls.

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.tags[tag] = self.tags.get(tag, 0) + 1
        if tag not in INLINE:
            self._pieces().append("\n" if tag != "td" and tag != "th" else " ")
        why, background = self._why, self._background
        if tag in UNSEEN:
            why = "unseen"
        elif attributes:
            why, background = self._hides(tag, attributes)
        if tag == "a" and (href := attributes.get("href")):
            self._end_link()
            self._href = href[:2_000]
        elif tag == "img":
            self._image(attributes, bool(why))
        elif tag == "meta" and attributes.get("http-equiv", "").lower() == "refresh":
            self.traits.add("refresh")
        if tag not in VOID:
            self._open.append((tag, self._why, self._background))
            self._why, self._background = why, background

    def end(self, tag: str) -> None:
        if self._open and self._open[-1][0] == tag:
            _, self._why, self._background = self._open.pop()
        if tag == "a":
            self._end_link()
        elif tag not in INLINE:
            self._pieces().append("\n")

    def data(self, text: str) -> None:
        self._pieces().append(text)
        if self._href and not self._why:
            self._label.append(text[:200])

    def comment(self, text: str) -> None:
        self.tags["#comment"] = self.tags.get("#comment", 0) + 1
        if self.seen and self.seen[-1][-1:].isalnum():
            self.traits.add("comment-in-word")

    def close(self) -> Page:
        self._end_link()
        return self

    def _pieces(self) -> list[str]:
        """Where text goes at this point; that of `UNSEEN` tags is dropped."""
        if self._why == "unseen":
            return []
        return self.hidden if self._why else self.seen

    def _end_link(self) -> None:
        if self._href:
            self.links.append((self._href, " ".join("".join(self._label).split())[:200]))
        self._href, self._label = "", []

    def _hides(self, tag: str, attributes: Mapping[str, str]) -> tuple[str, str]:
        """`_why` and `_background` within this tag."""
        why = self._why
        style = "".join(attributes.get("style", "")[:1_000].lower().split())
        background = attributes.get("bgcolor", "")
        if found := STYLE_BACKGROUND.search(style):
            background = found[1]
        background = color_of(background) if background else self._background
        color = attributes.get("color", "") or (attributes.get("text", "") if tag == "body" else "")
        if found := STYLE_COLOR.search(style):
            color = found[1]
        if style and (hiding := HIDING_STYLE.search(style)):
            why = why or hiding[0].partition(":")[0]
        elif "hidden" in attributes:
            why = why or "hidden"
        elif color and is_close(color_of(color), background):
            why = why or "color"
        elif tag == "font" and attributes.get("size", "").startswith(("-5", "-6", "-7")):
            why = why or "font-size"
        if why and why != "unseen" and not self._why:
            self.traits.add(f"hides-by-{why}")
        return why, background

    def _image(self, attributes: Mapping[str, str], is_hidden: bool) -> None:
        sizes = {attributes.get(name, "").strip().removesuffix("px") for name in ("width", "height")}
        self.images.append((attributes.get("src", "")[:2_000], is_hidden or bool(sizes & {"0", "1"})))
        if alt := attributes.get("alt"):
            self._pieces().append(f" {alt[:200]} ")


@cache
def etree() -> Any:
    """lxml's parsers, imported when the first HTML comes."""
    try:
        from lxml import etree  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise missing("a mail in HTML", "mail", error) from error
    return etree


def read_html(markup: str, max_tags: int = MAX_TAGS) -> tuple[Page, int]:
    """What an HTML text shows and hides, and how many characters were left out beyond `max_tags`.

    Parameters
    ----------
    markup
        The HTML; it may be any text.
    max_tags
        How many tags are read at most, 0 or more.

    Raises
    ------
    ImportError
        If lxml is not installed.

    Examples
    --------

    >>> from stream_pegasos.features.mail_html import read_html

    >>> page, _ = read_html('F<b>re</b>e<p>for<i style="display: none">bid</i> <a href="http://x.example">you</a>')
    >>> "".join(page.seen).split(), page.hidden, page.links
    (['Free', 'for', 'you'], ['bid'], [('http://x.example', 'you')])

    """
    pieces = markup.split("<", max_tags + 1)
    left_out = len(pieces[-1]) + 1 if len(pieces) > max_tags + 1 else 0
    page = Page()
    parser = etree().HTMLParser(target=page, encoding="utf-8")
    read = markup[: len(markup) - left_out].replace("\0", "")
    try:
        parser.feed(read.encode("utf-8", "replace"))
        parser.close()
    except etree().LxmlError:  # also of no text at all; what was met before it stays
        page.close()
    return page, left_out
