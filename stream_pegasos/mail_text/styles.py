"""The visibility of an element's text, computed from styles in a simplified form of a browser's rules.

Inherited properties, such as the size of letters and the colour, are computed from element to element. If an element is
closed, e.g. by `display: none`, all elements within it are closed. If it is unknown whether a text is visible, it
counts as visible, and the doubt is noted. tinycss2 parses the styles.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from stream_pegasos.mail_text.colors import CLEAR, Color, color, color_of_attribute, has_picture, tinycss2
from stream_pegasos.mail_text.css import WINDOW, declarations_in
from stream_pegasos.mail_text.work import Work

__all__ = ["INLINE", "Declaration", "Style", "parse_declarations", "styled"]

# Sizes of letters in CSS pixels: below the first they are invisible, below the second hardly visible; the usual size.
TINY, SMALL, USUAL = 2.0, 4.0, 16.0
SMALL_LINE, MAX_LINES = 10.0, 20  # the least height of a line; boxes of more lines count as unlimited
FAR = -500.0  # CSS pixels beyond the left or the upper edge, where a text is not visible
SAME, ALIKE = 6 / 255, 24 / 255  # differences in red, in green and in blue: not visible, hardly visible

# A number of "px", of "em" (sizes of letters), of "%" (hundreds of per cent), or of "" (of CSS pixels in quirks mode).
Length = tuple[float, str]
Declaration = tuple[bool, str, Any]  # whether it is important, the property, its value

WHITE, BLACK, OF_LINKS = (1.0, 1.0, 1.0, 1.0), (0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.93, 1.0)
UNITS = {"px": 1.0, "pt": 4 / 3, "pc": 16.0, "in": 96.0, "cm": 37.8, "mm": 3.78, "q": 0.945, "rem": 16.0}
UNITS |= dict.fromkeys(("vw", "vh", "vmin", "vmax"), WINDOW / 100)
SIZES: dict[str, Length] = {"xx-small": (9, "px"), "x-small": (10, "px"), "small": (13, "px"), "medium": (16, "px")}
SIZES |= {"large": (18, "px"), "x-large": (24, "px"), "xx-large": (32, "px"), "initial": (16, "px")}
SIZES |= {"smaller": (0.83, "em"), "larger": (1.2, "em"), "inherit": (1, "em"), "unset": (1, "em")}
GLOBAL = ("inherit", "initial", "unset")  # keywords of all properties
MAX_DECLARATION = 1_000  # characters of a declaration that is read
LONG_NUMBER = re.compile(r"\d{300,}")  # Python makes no int of thousands of digits
OF_FONT_SIZE = (10, 10, 13, 16, 18, 24, 32, 48)  # CSS pixels of <font size="0"> to "7"

# Elements within a line: they have no width and no height of their own, and may be within a word.
INLINE = frozenset(
    """
    a abbr acronym b bdo big cite code del dfn em font i ins kbd label mark nobr o:p q s samp small span strike
    strong sub sup tt u var wbr
    """.split()  # noqa: SIM905
)
DISPLAYS = """
    none contents block inline inline-block flow flow-root list-item flex inline-flex grid inline-grid table
    inline-table table-row-group table-header-group table-footer-group table-row table-cell table-column-group
    table-column table-caption ruby ruby-text math -webkit-box -webkit-inline-box -webkit-flex -webkit-inline-flex
    """.split()  # noqa: SIM905
OF_TABLES = frozenset("table tbody thead tfoot tr td th".split())  # noqa: SIM905 (they grow with their content)


class Style(NamedTuple):
    """The computed style of an element."""

    closed: str = ""  # why nothing within the element is visible; "" if it may be
    size: float = USUAL  # of letters, in CSS pixels
    line_height: float = 1.0  # 0 if lines have no height, or else 1
    cuts_lines: bool = False  # whether lines without a height are in a box that cuts its content
    lines: int = 0  # shown by a box around it, at most; 0 if unlimited
    indent: float = 0.0  # of the first line, in CSS pixels
    visible: bool = True  # the value of `visibility`
    color: Color = BLACK
    background: Color = WHITE  # the nearest that has a colour
    is_known: bool = True  # whether the background behind the text is known
    doubt: str = ""  # why text may be hidden, although it counts as visible
    is_layer: bool = False  # whether the element has its own colour, and may lie behind or before others

    @property
    def hides(self) -> str:
        """The reason why text of this element is hidden; `""` if it is visible."""
        if self.closed:
            return self.closed
        if not self.visible:
            return "visibility"
        if self.size < TINY:
            return "font-size"
        if not self.line_height and self.cuts_lines:
            return "line-height"
        if self.indent <= FAR:
            return "text-indent"
        return "color" if self.color[3] < 0.05 or (self.is_known and self._differs_by() < SAME) else ""

    @property
    def may_hide(self) -> str:
        """The reason why text of this element may be hidden, although it counts as visible."""
        if self.size < SMALL:
            return "font-size"
        if not self.line_height:
            return "line-height"
        return self.doubt or ("color" if self._differs_by() < ALIKE else "")

    def _differs_by(self) -> float:
        """The largest difference in red, green or blue between the text and the known background."""
        red, green, blue, alpha = self.color
        other = self.background
        return alpha * max(abs(red - other[0]), abs(green - other[1]), abs(blue - other[2]))


# A parser of a property's value takes its parts, without spaces, and returns None for a value that browsers ignore.


def keyword(parts: Sequence[Any]) -> str | None:
    return parts[0].lower_value if len(parts) == 1 and parts[0].type == "ident" else None


def keyword_parser(*values: str) -> Callable[[Sequence[Any]], str | None]:
    """A parser of the first of one or two keywords, as in `display: inline flow`, if browsers support it."""
    keywords = {*values, *GLOBAL}

    def read(parts: Sequence[Any]) -> str | None:
        words = [keyword([part]) for part in parts]
        return (
            words[0] if keywords.issuperset(words) and (len(words) == 1 or not {"none", *GLOBAL} & {*words}) else None
        )

    return read


def length(parts: Sequence[Any]) -> Length | None:
    part = parts[0]
    if part.type == "function" and part.lower_name in ("calc", "clamp", "max", "min"):
        return (0.0, "px") if (numbers := numbers_in(part)) and not any(numbers) else None
    if len(parts) > 1 or part.type not in ("dimension", "percentage", "number"):
        return None
    if part.type == "percentage":
        return part.value / 100, "%"
    if part.type == "number":
        return part.value, "" if part.value else "px"
    unit = part.lower_unit
    if unit in UNITS:
        return part.value * UNITS[unit], "px"
    return (part.value * (1.0 if unit == "em" else 0.5), "em") if unit in ("em", "ex", "ch") else None


def extent(parts: Sequence[Any]) -> Length | None:
    """A length that is not negative."""
    number = length(parts)
    return None if number is None or number[0] < 0 else number


def font_size(parts: Sequence[Any]) -> Length | None:
    word = keyword(parts)
    return extent(parts) if word is None else SIZES.get(word)


def opacity(parts: Sequence[Any]) -> float | None:
    number = length(parts)
    return None if number is None or number[1] not in ("", "px", "%") else number[0]


def line_height(parts: Sequence[Any]) -> float | None:
    if (word := keyword(parts)) is not None:
        return None if word in GLOBAL else 1.0
    height = length(parts)
    return None if height is None else float(height[0] > 0)


def numbers_in(function: Any) -> list[float]:
    """The numbers among the arguments of a function such as `rect(0, 0, 0, 0)`, in any unit."""
    return [part.value for part in function.arguments if part.type in ("number", "dimension", "percentage")]


def cuts_all(parts: Sequence[Any]) -> bool:
    """Whether a `clip` or a `clip-path` cuts away everything."""
    if parts[0].type != "function":
        return False
    name, numbers = parts[0].lower_name, numbers_in(parts[0])
    if name == "rect" and len(numbers) == 4:
        return numbers[2] - numbers[0] <= 1 or numbers[1] - numbers[3] <= 1
    if name == "inset":
        return any(edge >= 50 for edge in numbers)
    return name in ("circle", "ellipse", "polygon") and bool(numbers) and not any(numbers)


def leaves_nothing(parts: Sequence[Any]) -> bool:
    """Whether a `filter` or a `transform` makes the content of an element invisible, or moves it away."""
    for part in parts:
        if part.type == "function" and (numbers := numbers_in(part)):
            if part.lower_name in ("opacity", "scale", "scalex", "scaley") and min(numbers) < 0.05:
                return True
            if part.lower_name.startswith("translate") and min(numbers) <= FAR:
                return True
    return False


def font(parts: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """The size and the height of lines in `font: italic 12px/1.5 Arial`."""
    for i, part in enumerate(parts):
        size = font_size([part])
        if size and keyword([part]) not in GLOBAL and (part.type != "number" or not part.value):  # 700 is a weight
            yield "font-size", size
            yield "line-height", line_height([parts[i + 2]]) if len(parts) > i + 2 and parts[i + 1] == "/" else 1.0
            return


def background(parts: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """The colour in `background: #fff url(x.png)`, and whether there is a picture."""
    colors = [color([part]) for part in parts if part.type in ("ident", "hash", "function")]
    yield "background-color", next(filter(None, colors), CLEAR)
    yield "background-image", has_picture(parts)


def edges(prefix: str) -> Callable[[Sequence[Any]], Iterator[tuple[str, Any]]]:
    """A parser of the upper and the left edge of `margin` and of `inset`."""

    def read(parts: Sequence[Any]) -> Iterator[tuple[str, Any]]:
        yield f"{prefix}top", length(parts[:1])
        yield f"{prefix}left", length([parts[(0, 1, 1, 3)[min(len(parts), 4) - 1]]])

    return read


READERS: dict[str, Any] = {
    "font-size": font_size,
    "line-height": line_height,
    "color": color,
    "-webkit-text-fill-color": color,
    "background-color": color,
    "background-image": has_picture,
    "clip": cuts_all,
    "clip-path": cuts_all,
    "filter": leaves_nothing,
    "transform": leaves_nothing,
    **dict.fromkeys(("content-visibility", "float", "mso-hide"), keyword),
    "visibility": keyword_parser("visible", "hidden", "collapse"),
    "position": keyword_parser("static", "relative", "absolute", "fixed", "sticky", "-webkit-sticky"),
    "display": keyword_parser(*DISPLAYS),
    **dict.fromkeys(
        ("overflow", "overflow-x", "overflow-y"), keyword_parser("visible", "hidden", "clip", "scroll", "auto")
    ),
    "opacity": opacity,
    **dict.fromkeys(("height", "max-height", "min-height", "width", "max-width", "min-width"), extent),
    **dict.fromkeys(("left", "top", "right", "bottom", "margin-left", "margin-top", "text-indent"), length),
}
SHORTHANDS: dict[str, Any] = {"font": font, "background": background, "margin": edges("margin-"), "inset": edges("")}
KNOWN = frozenset([*READERS, *SHORTHANDS])


def parse_declarations(block: str, work: Work) -> tuple[Declaration, ...]:
    """The declarations of a style, or of a rule of a sheet, that affect visibility: for each property the last one."""
    values: dict[tuple[bool, str], Any] = {}
    for piece in declarations_in(block):
        name = piece.partition(":")[0].strip()
        if len(piece) > MAX_DECLARATION:
            if name.lower().startswith("background"):
                values[False, "background-image"] = True
        elif (name.lower() in KNOWN or "\\" in name) and work.read(piece):
            for important, longhand, value in read_declaration(piece):
                values[important, longhand] = value
    return tuple((important, name, value) for (important, name), value in values.items())


@functools.lru_cache(10_000)
def read_declaration(text: str) -> tuple[Declaration, ...]:
    try:
        return tuple(longhands_in(LONG_NUMBER.sub("0", text)))
    except RecursionError:  # too many nested brackets
        return ()


def longhands_in(text: str) -> Iterator[Declaration]:
    node = tinycss2().parse_one_declaration(text, skip_comments=True)
    if node.type != "declaration":
        return
    parts = [part for part in node.value if part.type not in ("whitespace", "comment")]
    name = node.lower_name
    if not parts or parts[-1].type == "error" or name not in KNOWN:
        return
    for longhand, value in SHORTHANDS[name](parts) if name in SHORTHANDS else [(name, READERS[name](parts))]:
        if value is not None:
            yield node.important, longhand, value


def attribute_styles(tag: str, attributes: Mapping[str, str], parent: Style, quirks: bool) -> Iterator[tuple[str, Any]]:
    """The style that follows from the tag and its attributes; written styles have priority over it."""
    if tag == "a" and "href" in attributes:
        yield "color", OF_LINKS
    elif tag == "font" and (size := attributes.get("size", "").strip()):
        if (digits := size.lstrip("+-")).isdecimal():
            step = {"+": 3 + int(digits[:3]), "-": 3 - int(digits[:3])}.get(size[0], int(digits[:3]))
            yield "font-size", (OF_FONT_SIZE[max(1, min(step, 7))], "px")
    elif tag == "button" or (tag == "table" and quirks):
        yield "font-size", (16, "px")
        yield "line-height", 1.0
    if not attributes:
        return
    if "hidden" in attributes:
        yield "display", "hidden"
    if value := attributes.get("text" if tag == "body" else "color"):
        yield "color", color_of_attribute(value)
    if value := attributes.get("bgcolor"):
        yield "background-color", color_of_attribute(value)
    if attributes.get("background"):
        yield "background-image", True


def styled(
    parent: Style, tag: str, attributes: Mapping[str, str], declarations: Iterable[Declaration], quirks: bool = False
) -> Style:
    """The computed style of an element within a parent, by declarations from the weakest to the strongest. With
    `quirks` the page has no document type, so that letters in a table have their usual size.
    """
    values = dict(attribute_styles(tag, attributes, parent, quirks))
    important_values: dict[str, Any] = {}
    for important, name, value in declarations:
        if quirks or not is_unitless(value):
            (important_values if important else values)[name] = value
    values |= important_values
    if not values:
        return parent
    number, unit = values.get("font-size", (1.0, "em"))
    size = number if unit in ("px", "") else number * parent.size
    indent = values.get("text-indent")
    visibilities = {"visible": True, "initial": True, "hidden": False, "collapse": False}
    closed, doubt = ("", "") if parent.closed else closes(tag, values, size)
    colored, is_known = behind(parent, values)
    letters = values.get("-webkit-text-fill-color") or values.get("color")
    if letters and values.get("background-image") and letters[3] < 0.05:
        letters = None  # the picture is visible through the letters
    style = Style(
        closed=parent.closed or closed,
        size=size,
        line_height=values.get("line-height", parent.line_height),
        cuts_lines=parent.cuts_lines or (tag not in INLINE and cuts(values)),
        lines=lines_in(tag, values, size) or parent.lines,
        indent=parent.indent if indent is None else in_pixels(indent, size),
        visible=visibilities.get(values.get("visibility", ""), parent.visible),
        color=letters or parent.color,
        background=colored,
        is_known=is_known,
        doubt=parent.doubt or doubt,
        is_layer=values.get("position") in ("absolute", "fixed")
        and bool(values.get("background-image") or values.get("background-color", CLEAR)[3]),
    )
    return parent if style == parent else style


def is_unitless(value: object) -> bool:
    return type(value) is tuple and value[1] == ""


def cuts(values: Mapping[str, Any], how: Collection[str] = ("hidden", "clip", "auto", "scroll")) -> bool:
    """Whether content beyond the edges of a box is cut."""
    return any(values.get(name) in how for name in ("overflow", "overflow-x", "overflow-y"))


def in_pixels(value: Length, size: float) -> float:
    number, unit = value
    return number * {"px": 1.0, "": 1.0, "em": size, "%": float(WINDOW)}[unit]


def behind(parent: Style, values: Mapping[str, Any]) -> tuple[Color, bool]:
    """The colour behind the text of an element, and whether it is known."""
    *over, alpha = values.get("background-color") or CLEAR
    if alpha:
        mixed = [
            alpha * channel + (1 - alpha) * other_channel
            for channel, other_channel in zip(over, parent.background, strict=False)
        ]
        colored = (mixed[0], mixed[1], mixed[2], 1.0)
    else:
        colored = parent.background
    return colored, (parent.is_known or alpha > 0.9) and not values.get("background-image")


def is_box(tag: str, values: Mapping[str, Any]) -> bool:
    """Whether an element has a width and a height that do not depend on its content."""
    display = values.get("display", "")
    return tag not in OF_TABLES and (
        tag not in INLINE
        or values.get("position") in ("absolute", "fixed")
        or values.get("float", "none") != "none"
        or display not in ("", "inline", "contents")
    )


def lines_in(tag: str, values: Mapping[str, Any], size: float) -> int:
    """The largest number of lines of its content that a box shows; 0 if unlimited."""
    if not cuts(values, ("hidden", "clip")) or not is_box(tag, values) or tag in ("html", "body"):
        return 0
    heights = [
        in_pixels(values[name], size)
        for name in ("height", "max-height")
        if name in values and values[name][1] != "%" and "min-height" not in values
    ]
    lines = math.ceil(min(heights) / max(size, SMALL_LINE)) if heights else 0
    return lines if lines <= MAX_LINES else 0


def closes(tag: str, values: Mapping[str, Any], size: float) -> tuple[str, str]:
    """The reason why nothing within an element is visible, and the reason why this may be so."""
    display, position = values.get("display", ""), values.get("position", "")
    if display in ("none", "hidden"):  # "hidden" comes from the attribute
        return display.replace("none", "display"), ""
    if values.get("content-visibility") == "hidden":
        return "content-visibility", ""
    if values.get("opacity", 1.0) < 0.05:
        return "opacity", ""
    for name in ("clip-path", "filter", "transform"):
        if values.get(name):
            return name, ""
    is_moved = position in ("absolute", "fixed")
    if values.get("clip"):
        return ("clip", "") if is_moved else ("", "clip")
    edges = (
        ("left", "top", "margin-left", "margin-top")
        if is_moved or position == "relative"
        else ("margin-left", "margin-top")
    )
    for name in edges:
        if name in values and in_pixels(values[name], size) <= FAR:
            return name, ""
    # Only Outlook hides it, and shows something else in its place.
    doubt = "mso-hide" if values.get("mso-hide") == "all" else ""
    if not is_box(tag, values):
        return "", doubt
    needed_size = size if size >= TINY else USUAL  # letters within may set their own size
    for name in ("max-height", "height", "max-width", "width"):
        if name not in values or (name == "height" and values[name][1] == "%" and values[name][0]):
            continue
        least = values.get(f"min-{name.removeprefix('max-')}", (0.0, "px"))
        length = max(in_pixels(values[name], size), in_pixels(least, size))
        if length <= 1 or length < needed_size / 2:
            if cuts(values):
                return name, ""
            if length <= 1 and name.endswith("height"):
                doubt = name
        elif length < needed_size and cuts(values):
            doubt = name
    return "", doubt
