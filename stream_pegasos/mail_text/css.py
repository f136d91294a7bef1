"""Sheets and styles, split into rules and declarations (CSS Syntax) in linear time.

tinycss2 parses only the values of relevant declarations. If it split whole sheets, it took two thirds of the time for a
mail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["WINDOW", "declarations_in", "plain", "rules_in", "selectors_in"]

WINDOW = 1_000  # the width of the window, in CSS pixels
MAX_DEPTH = 8  # nested conditions around a rule
MAX_CONDITION = 1_000  # characters of a condition
MAX_STRING = 100  # characters of a string that are kept

# Comments, addresses and strings; signs in them have no meaning.
NO_SIGNS = re.compile(
    r"/\*.*?(?:\*/|\Z)|<!--|-->|(?i:url)\((?!\s*[\"'])[^)]*+|\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?", re.DOTALL
)
MAYBE_NO_SIGNS = re.compile(r"[/\"'(<-]")
SIGN = re.compile(r"[{}()\[\];]")
CLOSERS = {"(": ")", "[": "]", "{": "}"}
SELECTOR = re.compile(r"(?:[^,\[(]|\[[^\]]*+\]?|\((?:[^()]|\([^()]*+\)?)*+\)?)++")
AT_SIGN = re.compile(r"\s*+@")
AT_RULE = re.compile(r"@([\w-]+)(.*)", re.DOTALL)
QUERY = re.compile(r"(?:only)?(?:all|screen)?(?:and)?(?:\((?:min|max)-width:\d{1,9}(?:\.\d+)?(?:px)?\)(?:and)?)*")
WIDTH = re.compile(r"(min|max)-width:(\d+)")
SUPPORTED = re.compile(r"(not)?\(*([a-z-]+):[^()]*(?:\([^()]*\)[^()]*)*\)*")
# Further features that browsers support and that conditions of sheets may ask for.
OF_BROWSERS = frozenset(
    """
    -webkit-appearance align-items animation appearance aspect-ratio backdrop-filter border-radius box-shadow clip-path
    color column-count display filter flex flex-wrap float gap grid grid-template-columns height justify-content margin
    max-height max-width mix-blend-mode object-fit opacity overflow padding position transform transition visibility
    width
    """.split()  # noqa: SIM905
)


def plain(css: str) -> str:
    """A sheet or a style without comments, addresses and long strings."""
    return NO_SIGNS.sub(_replace_sign, css) if MAYBE_NO_SIGNS.search(css) else css


def _replace_sign(match: re.Match[str]) -> str:
    text = match[0]
    if text[0] in "\"'":
        return '""' if len(text) > MAX_STRING or SIGN.search(text) or text[-1:] != text[0] else text
    return "url(" if text[0] in "uU" else " "


def blocks_in(css: str) -> Iterator[tuple[str, str]]:
    """The text before each block of a plain sheet, and the content of the block; the last block may not be closed."""
    begin, brace, is_at_rule = 0, -1, AT_SIGN.match(css) is not None
    closers: list[str] = []
    for match in SIGN.finditer(css):
        sign = match[0]
        if sign in CLOSERS:
            if sign == "{" and not closers:
                brace = match.start()
            closers.append(CLOSERS[sign])
        elif closers:
            if sign == closers[-1]:
                closers.pop()
                if sign == "}" and not closers:
                    yield css[begin:brace].strip(), css[brace + 1 : match.start()]
                    begin, brace, is_at_rule = match.end(), -1, AT_SIGN.match(css, match.end()) is not None
        elif sign == ";" and is_at_rule:
            begin, is_at_rule = match.end(), AT_SIGN.match(css, match.end()) is not None
    if brace >= 0:
        yield css[begin:brace].strip(), css[brace + 1 :]


def rules_in(css: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """The selectors and the declarations of each rule of a plain sheet that applies to a window on a screen."""
    for prelude, content in blocks_in(css):
        if prelude[:1] != "@":
            yield prelude, content
        elif depth < MAX_DEPTH and len(prelude) <= MAX_CONDITION and applies(prelude.lower()):
            yield from rules_in(content, depth + 1)


def declarations_in(block: str) -> list[str]:
    """The declarations of a plain block, without nested rules."""
    if "(" not in block and "{" not in block and "[" not in block:
        return block.split(";")
    pieces, begin = [], 0
    closers: list[str] = []
    for match in SIGN.finditer(block):
        sign = match[0]
        if sign in CLOSERS:
            closers.append(CLOSERS[sign])
        elif closers:
            if sign == closers[-1]:
                closers.pop()
                if sign == "}" and not closers:
                    begin = match.end()
        elif sign == ";":
            pieces.append(block[begin : match.start()])
            begin = match.end()
    return [*pieces, block[begin:]]


def selectors_in(prelude: str) -> list[str]:
    return SELECTOR.findall(prelude)


def applies(condition: str) -> bool:
    """Whether a block after an at-rule, which is in lower case, applies."""
    match = AT_RULE.match(condition)
    if match is None:
        return False
    if match[1] == "media":
        return is_shown(match[2])
    return match[1] == "layer" or (match[1] == "supports" and is_supported(match[2]))


def is_shown(media: str) -> bool:
    """Whether one of several media queries is true for a window on a screen."""
    return any(is_true("".join(query.split())) for query in media[:MAX_CONDITION].lower().split(","))


def is_true(query: str) -> bool:
    if query.startswith("not"):
        return not is_true(query[3:])
    return QUERY.fullmatch(query) is not None and all(map(fits, WIDTH.findall(query)))


def fits(bound: tuple[str, str]) -> bool:
    return int(bound[1]) <= WINDOW if bound[0] == "min" else int(bound[1]) >= WINDOW


def is_supported(condition: str) -> bool:
    """Whether browsers support the condition of a sheet, approximately: by the names of properties."""
    either = [re.split(r"\band\b", text) for text in re.split(r"\bor\b", condition)]
    return any(all(has_browser("".join(text.split())) for text in all_of) for all_of in either)


def has_browser(condition: str) -> bool:
    match = SUPPORTED.fullmatch(condition)
    return match is not None and (match[2] in OF_BROWSERS) is not bool(match[1])
