"""Features instead of a text: the formats of Vowpal Wabbit and svmlight."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from stream_pegasos.common.display import one_line
from stream_pegasos.common.errors import must_be
from stream_pegasos.features.message import Fields
from stream_pegasos.streams.example import Parsed, Truth, good_label
from stream_pegasos.streams.lines import Parser
from stream_pegasos.streams.read_options import ReadOptions


def vw_parser(options: ReadOptions) -> Parser:
    """Make the parser of a line of Vowpal Wabbit. The message is its features. If the options name fields, it is the
    namespaces with these names instead; if they name a text field, the text of this namespace.
    """

    def make_message(namespaces: str) -> Any:
        if not options.fields and options.text_field is None:
            return _features(namespaces)
        message = _fields(namespaces, options)
        return message if options.fields else message[options.message_fields[0]]

    parse_labels, no_label = _label_parser(options), _no_label(options)

    def parse(line: bytes) -> Parsed:
        head, bar, namespaces = line.decode().partition("|")
        if not bar:
            raise ValueError("no | before the features")
        tokens = head.split()
        tag = None
        # The tag touches the bar or begins with a quote.
        if tokens and (not head[-1].isspace() or tokens[-1].startswith("'")):
            tag = tokens.pop().removeprefix("'")
        _check_is_class(tokens)
        if len(tokens) > 3:
            raise ValueError("more than a label, a weight, an initial prediction and a tag before the first |")
        y = options.label(parse_labels, tokens[0]) if tokens else no_label
        w = _number(tokens[1], "weight") if len(tokens) > 1 else 1.0
        if w < 0:
            raise ValueError(must_be("weight", "0 or more", tokens[1]))
        if len(tokens) > 2:  # of another model; it is checked but not used
            _number(tokens[2], "initial prediction")
        return make_message(namespaces), y, w, tag

    return parse


_FLOAT = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_is_cost = re.compile(rf"{_FLOAT}:{_FLOAT}(?::{_FLOAT})?(?:,.*)?").fullmatch  # of an action, with its probability
_PARTS_OF_DECISIONS = {"ccb", "slates"}, {"shared", "action", "slot"}


def _check_is_class(tokens: list[str]) -> None:
    """Raise a ValueError if a label has actions and costs; then several lines may make one example."""
    kinds, parts = _PARTS_OF_DECISIONS
    is_part = tokens[:1] == ["shared"] or (len(tokens) > 1 and tokens[0] in kinds and tokens[1] in parts)
    if is_part or any(map(_is_cost, tokens)):
        raise ValueError(
            f"label must be a class, got {one_line(' '.join(tokens))!r}, which is about actions and their costs; write "
            "the right class, as in 2 | x"
        )


def _features(text: str) -> dict[str, float]:
    x: dict[str, float] = {}
    for prefix, scale, tokens in _namespaces(text):
        for name, colon, value in _parts(tokens):
            number = scale * _number(value, f"value of feature {name!r}") if colon else scale
            name = f"{prefix}^{name}" if prefix else name
            x[name] = x[name] + number if name in x else number
    if not all(map(math.isfinite, x.values())):
        raise ValueError("a feature's value must be finite")
    return x


def _fields(text: str, options: ReadOptions) -> Fields:
    """Make a message whose fields are namespaces. The text of a field is the names of its features; the value of the
    feature b of the namespace a is the field a.b.
    """
    fields: dict[str, str] = {}
    for namespace, _, tokens in _namespaces(text):
        named = [name for token in tokens if (name := token.partition(":")[0])]
        fields[namespace] = " ".join([*filter(None, [fields.get(namespace)]), *named])
        fields |= {f"{namespace}.{name}": value for name, colon, value in _parts(tokens) if colon}
    options.report_unread(name.partition(".")[0] for name in fields)
    message = Fields({name: fields[name] for name in options.message_fields if name in fields})
    if not message:
        missing = " or ".join(map(repr, options.message_fields))
        raise ValueError(f"no namespace {missing}; it has {', '.join(map(one_line, fields)) or 'none'}")
    return message


def _parts(tokens: list[str]) -> list[tuple[str, str, str]]:
    """The name of each feature, a colon if it has a value, and the value. Features without a name are numbered in their
    order in the namespace, as in Vowpal Wabbit.
    """
    parts = [token.partition(":") for token in tokens]
    if any(token[0] == ":" for token in tokens):
        numbers = count()
        parts = [(name or str(next(numbers)), colon, value) for name, colon, value in parts]
    return parts


def _namespaces(text: str) -> Iterator[tuple[str, float, list[str]]]:
    """Yield the name of each namespace, its weight, and its features as text."""
    for namespace in text.replace("\t", " ").split("|"):
        head, _, tokens = namespace.partition(" ")
        name, colon, weight = head.partition(":")
        scale = _number(weight, f"weight of namespace {name!r}") if colon else 1.0
        yield name, scale, [token for token in tokens.split(" ") if token]


def svmlight_parser(options: ReadOptions) -> Parser:
    parse_labels, no_label = _label_parser(options), _no_label(options)

    def parse(line: bytes) -> Parsed | None:
        tokens = line.partition(b"#")[0].split()
        if not tokens:
            return None
        y: Truth | ValueError | None = no_label
        if b":" not in tokens[0]:
            y = options.label(parse_labels, tokens.pop(0).decode())
        if tokens and tokens[0].startswith(b"qid:"):
            del tokens[0]
        try:
            x = {int(id): float(value) for id, value in (token.split(b":") for token in tokens)}
            well_formed = len(x) == len(tokens) and math.isfinite(sum(x.values()))
        except ValueError:
            well_formed = False
        if not well_formed or min(x, default=0) < 0 or b"_" in line:
            x = _careful_svmlight(tokens)
        return x, y, 1.0, None

    return parse


def _careful_svmlight(tokens: list[bytes]) -> dict[int, float]:
    """Read the features one by one, so that an error names the first bad one."""
    x: dict[int, float] = {}
    for token in (token.decode() for token in tokens):
        id, colon, value = token.partition(":")
        if not colon or not (id.isascii() and id.isdigit()):
            raise ValueError(must_be("a feature", "id:value", token))
        if int(id) in x:
            raise ValueError(f"feature {id} occurs twice")
        x[int(id)] = _number(value, f"value of feature {id}")
    return x


def _number(text: str, name: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    # Python accepts 1_000 as a number, other programs do not.
    if not math.isfinite(number) or "_" in text:
        raise ValueError(must_be(name, "a finite number", text))
    return number


def _label_parser(options: ReadOptions) -> Callable[[str], Truth | None]:
    """Make the function that reads the label, or a tuple of labels."""
    labels = options.labels
    separator = labels.separator or ","

    def parse_labels(text: str) -> Truth | None:
        policy = labels.policy
        if separator in text:
            return good_label(policy.read_several(text.split(separator), policy.read_number))
        label = good_label(policy.read_number(text))
        return label if label is None or not labels.has_several else (label,)

    return parse_labels


def _no_label(options: ReadOptions) -> Truth | None:
    """The labels of a line without a label: `()` if each line has labels and may have several, else `None`, unknown."""
    return () if options.labels.has_several and not options.unlabelled and options.label_field is not None else None
