"""What comes in the body of a request, and what it means."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal, NamedTuple, get_args

import msgspec
from msgspec import UNSET, DecodeError, Meta, Struct, UnsetType, ValidationError
from starlette.exceptions import HTTPException

from stream_pegasos.evaluation.metric_names import LABELS
from stream_pegasos.features.message import ABSENT, Fields, get_field, message_size
from stream_pegasos.features.message import Message as TextOrFields
from stream_pegasos.learners.label_meaning import Label, LabelsMeant
from stream_pegasos.mail_text.features import Mail, mail_bytes
from stream_pegasos.mail_text.ids import mail_id
from stream_pegasos.operation.journal import check_exact
from stream_pegasos.operation.limits import LONGEST_ID, Allowed
from stream_pegasos.operation.live_learner import LiveLearner
from stream_pegasos.operation.wrong_answers import MOST_WRONG
from stream_pegasos.streams.example import Truth, id_meant, is_no_id

LARGEST = (1 << 63) - 1  # integer that is a label or an id; the smallest is -LARGEST - 1

# What is said of these where they are something else.
FAULTS = {
    "label": "it must be a string, an int or a bool, or a list of these",
    "id": f"it must be a string of up to {LONGEST_ID} characters or an int of 64 bits",
}

UNKNOWN = re.compile(r"Object contains unknown field `(.*?)`(?: - at `\$.*)?$", re.DOTALL)

Id = Annotated[str, Meta(max_length=LONGEST_ID)] | Annotated[int, Meta(ge=-LARGEST - 1, le=LARGEST)]

SentLabel = Label | float  # where a gap beside them has made floats of integers


class Sent(Struct, kw_only=True, forbid_unknown_fields=True):
    """What comes from outside: a key that is misspelt is not dropped in silence."""


class Message(Sent, kw_only=True):
    """A message, which may be one that is to be learned: its label and its weight are not looked at."""

    id: Id | float | UnsetType = UNSET  # see `id_meant`
    label: Any = UNSET
    weight: Any = UNSET


class QuestionedMessage(Message, kw_only=True):
    label: SentLabel | UnsetType = UNSET


class LabelledMessage(Message, kw_only=True):
    """A message and its label. With an `id` whose message waits for its label, or has one that can still be taken back
    exactly, the message itself may be left out.
    """

    label: SentLabel | list[SentLabel]
    weight: Annotated[float, Meta(ge=0.0, le=1e30)] = 1.0


def define_content(kind: type[Message], fields: Sequence[str]) -> Any:
    """A type of messages with what is learned from: a `text`, or the fields of these names. Its `x` is that, or `None`.
    A ValueError if a field has the name of something else.
    """
    if field_names := {*fields} & {*LabelledMessage.__struct_fields__}:
        raise ValueError(f"a field cannot be called {min(field_names)!r} here")
    if not fields:
        text = [("text", str)] if kind is not LabelledMessage else [("text", str | UnsetType, UNSET)]
        x = property(lambda self: None if self.text is UNSET else self.text)
        return msgspec.defstruct(kind.__name__, text, bases=(kind,), kw_only=True, namespace={"x": x})
    outer = [name.partition(".")[0] for name in fields]  # an object with the field, as `from` of `from.name`
    field_names = {*LabelledMessage.__struct_fields__}
    top = dict.fromkeys([*fields, *(name for name in outer if name not in field_names)])
    names = {f"field_{i}": name for i, name in enumerate(top)}

    def given(self: Any) -> Fields | None:
        content = {name: value for own, name in names.items() if (value := getattr(self, own)) is not UNSET}
        values = ((name, get_field(content, name)) for name in fields)
        return Fields({name: value for name, value in values if value is not ABSENT}) or None

    values = [(own, Any, UNSET) for own in names]
    return msgspec.defstruct(
        kind.__name__, values, bases=(kind,), kw_only=True, namespace={"x": property(given)}, rename=names
    )


class Taught(Sent, kw_only=True):
    """A message that a person labels, by the number that GET /asked has, or any other as the `message` itself; null
    skips it. With `take_back`, and without a label, the one that was given is taken back.

    A new label that looks like a known one is refused; with the `new_label` "confirmed" it is taken. With "ask", it is
    not given either, nor one that is a slip of the keyboard away from a known one: the answer asks.
    """

    number: int | UnsetType = UNSET
    label: SentLabel | list[SentLabel] | UnsetType | None = UNSET
    take_back: bool = False
    new_label: Literal["ask", "confirmed"] | UnsetType = UNSET


def teaching_with(message: Any) -> Any:
    """`Taught`, whose `message` is of a type that `define_content` made."""
    return msgspec.defstruct(Taught.__name__, [("message", message | UnsetType, UNSET)], bases=(Taught,), kw_only=True)


class TeachingAnswer(Struct, kw_only=True):
    """How many labels were given by people; of a message that was sent itself, its number, by which the label can be
    taken back, and for how many seconds. With `alike`, the `label` is not taken: it is new, and the known one may be
    meant.
    """

    n_given: int
    number: int | UnsetType = UNSET
    seconds: float | UnsetType = UNSET
    label: Label | UnsetType = UNSET
    alike: Label | UnsetType = UNSET


class Prediction(Struct, kw_only=True):
    """What the model says of a message. `label` and `probability` are null as long as it knows no answer. If a message
    may have several labels, these and `margin` are lists, of all predicted ones. With two classes `margin` is above 0
    for the positive one; with more it is how far that of the label is above the next best one, and there are the ten
    most probable labels with their `probabilities`. Where a limit of false positives withheld labels, `withheld` lists
    them. Where a coverage is asked for, `set` lists the labels that hold the right one as often as that, the likeliest
    first.
    """

    label: Label | list[Label] | None
    probability: float | list[float] | None
    margin: float | list[float | None] | None
    withheld: list[Label] | UnsetType = UNSET
    set: list[Label] | UnsetType = UNSET
    probabilities: list[tuple[Label, float]] | UnsetType = UNSET
    id: str | int | UnsetType = UNSET


# Of each label a text, several, or null for its name.
Descriptions = Annotated[dict[str, str | list[str] | None], Meta(min_length=1)]


class Described(Struct, kw_only=True):
    """How many texts were learned, and the labels whose names describe nothing, as numbers, and were left out."""

    n_learned: int
    left_out: list[Label]


class Learned(Prediction, kw_only=True):
    """What the model said of a message before learning it. `learned` is false if its `id` was learned before with this
    label. With another label it is a correction: "taken back" where the other one was given on the page and not learned
    yet; and "taught anew" by two steps elsewhere.
    """

    learned: bool
    correction: Literal["taken back", "taught anew"] | UnsetType = UNSET


class LearnedIds(Struct, kw_only=True):
    """Ids of messages learned, and how many are remembered."""

    ids: list[str | int]
    n: int


class Explanation(Prediction, kw_only=True):
    """What each word, or part of a word, adds to the margin: the largest ones, then the number and the sum of the
    others. It is the margin of the label `explained` above the label `against`, if that is not null. These are the
    predicted label and the next one, or the label that the request names. `words` has the share of each word in each of
    `contributions`; `pieces` are the texts of the message, by field, piece by piece with what each adds. As
    browsers round integers beyond 2**53, labels that are such integers are strings here.
    """

    explained: Label | None
    against: Label | None
    contributions: list[tuple[str, float]]
    words: list[list[tuple[str, float]]]
    pieces: list[tuple[str, list[tuple[str, float]]]]
    n_others: int
    others: float


class LearnedAsked(Sent):
    limit: Annotated[int, Meta(ge=1, le=100_000, description="How many.")] = 1_000
    skip: Annotated[int, Meta(ge=0, description="How many of the newest to leave out.")] = 0


class MonitorAsked(Sent):
    search: Annotated[
        Annotated[str, Meta(max_length=1_000)] | None,
        Meta(description="Tell of the classes whose labels have this in them."),
    ] = None
    limit: Annotated[int, Meta(ge=1, le=10_000, description="Of how many of these.")] = 20
    label: Annotated[
        Annotated[str, Meta(max_length=10_000)] | None,
        Meta(description='Tell the words for and against it: a text or, where that would not tell 1 from "1", JSON.'),
    ] = None
    model: Annotated[bool, Meta(description="Tell the parameters of the model and all its classes.")] = False


class WrongAsked(Sent):
    search: Annotated[
        Annotated[str, Meta(max_length=1_000)], Meta(description="Those that have this in their text or a label.")
    ] = ""
    limit: Annotated[int, Meta(ge=1, le=MOST_WRONG, description="How many.")] = MOST_WRONG
    first: Annotated[
        Literal["newest", "suspicious"],
        Meta(description="In which order; suspicious ones have a label that was improbable, and may be wrong."),
    ] = "newest"
    format: Annotated[Literal["json", "csv"], Meta(description="In which form.")] = "json"


class Corrected(Sent, kw_only=True):
    """A message that GET /wrong has, by its number, and the label that is right."""

    number: int
    label: SentLabel | list[SentLabel]


class MessagesAsked(Sent):
    limit: Annotated[int, Meta(ge=1, le=100, description="How many.")] = 8
    first: Annotated[Literal["uncertain", "newest", "oldest"], Meta(description="In which order.")] = "uncertain"
    also: Annotated[int | None, Meta(description="The number of a message to send as well while it waits.")] = None


def decoded(body: bytes, decoder: msgspec.json.Decoder[Any]) -> Any:
    """What the body of a request says. Descriptions are pairs, as a label may stand there twice."""
    try:
        try:
            sent = decoder.decode(body)
        except ValidationError:
            raise
        except DecodeError:
            # Only Python's parser takes a lone surrogate, as a text may have, and NaN in a field that nobody reads.
            sent = msgspec.convert(json.loads(body.decode()), decoder.type)
        return json.loads(body.decode(), object_pairs_hook=list) if decoder.type is Descriptions else sent
    except ValidationError as error:
        raise HTTPException(422, _fault(error, decoder.type)) from None
    except json.JSONDecodeError as error:
        raise HTTPException(422, f"the body must be JSON: {error}") from None
    except (ValueError, RecursionError):
        raise HTTPException(422, "the body must be JSON") from None


def message_of_mail(mail: bytes, parameters: Mapping[str, str], field: str, kind: Any) -> Any:
    """A mail that is the body of a request, as a message with what the query says beside it."""
    if not mail.strip():
        raise HTTPException(422, "the body is empty, and no mail")
    try:
        return msgspec.convert({**parameters, field: mail.decode("latin-1")}, kind, strict=False)
    except ValidationError as error:
        raise HTTPException(422, _fault(error, kind)) from None


def _fault(error: ValidationError, kind: Any) -> str:
    """What is wrong, with nothing of the input but where, and an unknown key."""
    if unknown := UNKNOWN.match(str(error)):
        return _not_known(unknown[1], kind)
    reason, _, place = str(error).partition(" - at `$")
    where = re.findall(r"\w+", place)
    for name, must in FAULTS.items():
        if name in where:
            where, reason = where[: where.index(name) + 1], must
    return f"{'.'.join(where)}: {reason}" if where else reason


def _not_known(key: str, kind: Any) -> str:
    """That a key is unknown, and the nearest that is known."""
    kinds = [
        struct
        for member in (kind, *get_args(kind))
        for struct in (member, *get_args(member))
        if isinstance(struct, type)
    ]
    names = {
        name: name.lower()
        for struct in kinds
        for name in (struct.__struct_encode_fields__ if issubclass(struct, Struct) else ())
    }
    (near,) = difflib.get_close_matches(key[:100].lower(), names.values(), 1, 0.0)
    nearest = next(name for name, lower in names.items() if lower == near)
    return f"unknown key {key[:50]!r}; the nearest one is {nearest!r}"


def parameters(values: Mapping[str, str], kind: type[Struct]) -> Any:
    """What the query of a request says."""
    try:
        return msgspec.convert({**values}, kind, strict=False)
    except ValidationError as error:
        unknown = UNKNOWN.match(str(error))
        raise HTTPException(422, _not_known(unknown[1], kind) if unknown else "bad parameters") from None


class ParsedRequest(NamedTuple):
    """The messages of a request."""

    messages: list[Any]
    X: list[Any]  # what is learned from
    ids: list[Id | None]
    is_list: bool  # or else one by itself


def read_batch(sent: object, learner: LiveLearner, limits: Allowed) -> ParsedRequest:
    """The messages of a request, of which some are known by their ids."""
    is_list = isinstance(sent, list)
    messages = sent if isinstance(sent, list) else [sent]
    _check_number(len(messages), "messages", limits)
    ids = [_read_id(message.id, f"{i}.id" if is_list else "id") for i, message in enumerate(messages)]
    X = _contents(messages, ids, learner, is_list)
    mail_field, fields = learner.mail_field, learner.fields
    if mail_field is not None:
        ids = [_id_of_mail(x, mail_field) if id is None else id for id, x in zip(ids, X, strict=True)]
    for i, x in enumerate(X):
        if fields:
            with _naming(f"message {i}"):
                check_exact(x)
        if mail_field is None:  # a mail is as large as its body
            _check_text(x, f"message {i}", limits)
        if fields:
            with _naming(f"message {i}"):
                learner.model.features.read(x)
    return ParsedRequest(messages, X, ids, is_list)


@contextmanager
def _naming(place: str) -> Iterator[None]:
    try:
        yield
    except (TypeError, ValueError) as error:
        raise HTTPException(422, f"{place}: {error}") from None


def _read_id(sent: object, place: str) -> Id | None:
    if sent is UNSET or is_no_id(sent):
        return None
    id = id_meant(sent)
    if id is None:
        raise HTTPException(422, f"{place}: {FAULTS['id']}")
    return id


def _contents(messages: Sequence[Any], ids: list[Id | None], learner: LiveLearner, is_list: bool) -> list[Any]:
    X = [message.x for message in messages]
    bare = [i for i, x in enumerate(X) if x is None]
    known_messages = learner.active_learning.messages_from([ids[i] for i in bare]) if bare else []
    for i, x in zip(bare, known_messages, strict=True):
        if x is None:
            content = ", ".join(learner.fields) or "text"
            place = f"{i}.{content}" if is_list else content
            kept = f"nothing is kept of a message with this id; send its {content}"
            reason = "there is none, and no id" if ids[i] is None else kept
            raise HTTPException(422, f"{place}: {reason}")
        X[i] = x
    return X if learner.mail_field is None else [_set_mail(x, learner.mail_field) for x in X]


def _check_number(n: int, noun: str, limits: Allowed) -> None:
    if n > limits.items:
        raise HTTPException(413, f"{noun} must be at most {limits.items:,} a request, got {n:,}")


def _check_text(x: TextOrFields, place: str, limits: Allowed) -> None:
    size = message_size(x)
    if size > limits.text:
        raise HTTPException(413, f"{place}: a text must have at most {limits.text:,} characters, got {size:,}")


def read_descriptions_sent(
    sent: Sequence[tuple[str, Any]], label_reader: LabelsMeant, limits: Allowed
) -> dict[Label, Any]:
    """What labels mean, by the labels that are meant."""
    texts = [value if isinstance(value, list) else [value] for _, value in sent]
    _check_number(sum(map(len, texts)), "texts", limits)
    descriptions: dict[Label, Any] = {}
    for i, ((name, value), label_texts) in enumerate(zip(sent, texts, strict=True)):
        label = _learnable(name, f"label {i}", label_reader, limits)
        if label in descriptions:
            raise HTTPException(422, f"label {i}: it must be described once, got it twice")
        for text in filter(None, label_texts):
            _check_text(text, f"label {i}", limits)
        descriptions[label] = value
    return descriptions


def _set_mail(x: TextOrFields, field: str) -> TextOrFields:
    """A message whose mail is taken apart only once, however often the model is asked."""
    if isinstance(x, str):
        return Mail(x)
    return Fields({**x, field: Mail(x[field])}) if isinstance(x.get(field), str) else x


def _id_of_mail(x: TextOrFields, field: str) -> str | None:
    mail = x if isinstance(x, str) else x.get(field)
    return mail_id(mail_bytes(mail)) if isinstance(mail, str) else None


def labels_as_read(
    label: SentLabel | list[SentLabel], kind: str, i: int, is_list: bool, label_reader: LabelsMeant, limits: Allowed
) -> Truth:
    """What a message is to be learned with: one label or, if it may have several, a tuple of them."""
    place = f"{i}.label" if is_list else "label"
    if kind != LABELS:
        if isinstance(label, list):
            raise HTTPException(422, f"{place}: it must be one label, got a list; this model tells classes apart")
        return _learnable(label, place, label_reader, limits)
    if not isinstance(label, list):
        raise HTTPException(422, f"{place}: it must be a list of the labels that hold, maybe an empty one")
    if len(label) > limits.labels:
        raise HTTPException(413, f"{place}: labels must be at most {limits.labels:,}, got {len(label):,}")
    return tuple(_learnable(single, place, label_reader, limits) for single in label)


def label_as_read(label: SentLabel, place: str, label_reader: LabelsMeant, limits: Allowed) -> Label:
    """The label that is meant beside those of the model, whose own labels may be of any length."""
    try:
        read = label_reader(label)
    except ValueError as error:
        raise HTTPException(422, f"{place}: {error}") from None
    if read is None:
        raise HTTPException(422, f"{place}: it is blank")
    fault = label_reader.too_long(read, limits.label)
    if fault is not None:
        raise HTTPException(413, f"{place}: {fault}")
    return read


def _learnable(label: SentLabel, place: str, label_reader: LabelsMeant, limits: Allowed) -> Label:
    read = label_as_read(label, place, label_reader, limits)
    if isinstance(read, int) and not -LARGEST - 1 <= read <= LARGEST:
        raise HTTPException(422, f"{place}: an integer may have 64 bits")
    return read


def label_of_query(text: str) -> Any:
    """The label that a query names: a JSON string, integer or bool, or else the text itself."""
    try:
        label = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return label if isinstance(label, (bool, int, str)) else text
