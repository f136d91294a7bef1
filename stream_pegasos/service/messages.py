"""The bodies of requests: their types, and their conversion to messages and labels."""

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

from stream_pegasos.features.message import ABSENT, Fields, get_field, message_size
from stream_pegasos.features.message import Message as TextOrFields
from stream_pegasos.learners.capabilities import LABELS
from stream_pegasos.learners.label_policy import Fault, Label, LabelPolicy
from stream_pegasos.mail_text.features import Mail, mail_bytes
from stream_pegasos.mail_text.ids import mail_id
from stream_pegasos.runtime.journal import check_exact
from stream_pegasos.runtime.limits import LONGEST_ID, Allowed
from stream_pegasos.runtime.live_learner import LiveLearner
from stream_pegasos.runtime.wrong_answers import MOST_WRONG
from stream_pegasos.streams.example import Truth, id_meant, is_no_id

LARGEST = (1 << 63) - 1  # the largest integer of a label or an id; the smallest is -LARGEST - 1

# Texts of the error if a value has another type.
FAULTS = {
    "label": "it must be a string, an int or a bool, or a list of these",
    "id": f"it must be a string of up to {LONGEST_ID} characters or an int of 64 bits",
}

UNKNOWN = re.compile(r"Object contains unknown field `(.*?)`(?: - at `\$.*)?$", re.DOTALL)

Id = Annotated[str, Meta(max_length=LONGEST_ID)] | Annotated[int, Meta(ge=-LARGEST - 1, le=LARGEST)]

SentLabel = Label | float  # programs that store missing values turn integers into floats


class Sent(Struct, kw_only=True, forbid_unknown_fields=True):
    """Input of a request; an unknown key is an error, so that misspelt keys are noticed."""


class Message(Sent, kw_only=True):
    """A message. It may also have a label and a weight, as for learning; these are ignored."""

    id: Id | float | UnsetType = UNSET  # see `id_meant`
    label: Any = UNSET
    weight: Any = UNSET


class QuestionedMessage(Message, kw_only=True):
    label: SentLabel | UnsetType = UNSET


class LabelledMessage(Message, kw_only=True):
    """A message and its label. The message may be left out if its `id` belongs to a message that waits for its label,
    or has a label that can still be taken back; of several the newest counts.
    """

    label: SentLabel | list[SentLabel]
    weight: Annotated[float, Meta(ge=0.0, le=1e30)] = 1.0


def define_content(kind: type[Message], fields: Sequence[str]) -> Any:
    """A type of messages with their content: a `text`, or the fields of these names. Its `x` is the content, or `None`.
    A ValueError if a field has the name of another key.
    """
    if field_names := {*fields} & {*LabelledMessage.__struct_fields__}:
        raise ValueError(f"a field cannot be called {min(field_names)!r} here")
    if not fields:
        text = [("text", str)] if kind is not LabelledMessage else [("text", str | UnsetType, UNSET)]
        x = property(lambda self: None if self.text is UNSET else self.text)
        return msgspec.defstruct(kind.__name__, text, bases=(kind,), kw_only=True, namespace={"x": x})
    outer = [name.partition(".")[0] for name in fields]  # the objects: `from` for `from.name`
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
    """A label of a person for a message, by its number in GET /asked, or for another message in `message`. A null label
    skips the message. With `take_back`, and without a label, the given label is taken back.

    A new label that looks like a known one is refused; with the `new_label` "confirmed" it is accepted. With "ask", a
    new label that differs from a known one by one typing error is not given either: the answer asks.
    """

    number: int | UnsetType = UNSET
    label: SentLabel | list[SentLabel] | UnsetType | None = UNSET
    take_back: bool = False
    new_label: Literal["ask", "confirmed"] | UnsetType = UNSET


def teaching_with(message: Any) -> Any:
    """`Taught` with a `message` of a type that `define_content` made."""
    return msgspec.defstruct(Taught.__name__, [("message", message | UnsetType, UNSET)], bases=(Taught,), kw_only=True)


class TeachingAnswer(Struct, kw_only=True):
    """The number of labels given by people. If the request had a `message`: its number, to take the label back, and the
    seconds in which that is possible. With `alike`, the `label` is not accepted: it is new, and the known one may be
    meant.
    """

    n_given: int
    number: int | UnsetType = UNSET
    seconds: float | UnsetType = UNSET
    label: Label | UnsetType = UNSET
    alike: Label | UnsetType = UNSET


class Prediction(Struct, kw_only=True):
    """The model's answer to a message. `label` and `probability` are null while the model knows no answer. If a message
    may have several labels, these and `margin` are lists, of all predicted labels. With two classes `margin` is above 0
    for the positive one. With more classes it is the difference to the margin of the next best one, and the ten most
    probable labels have `probabilities`. If a limit of false positives withheld labels, `withheld` lists them. If a
    coverage is set, `set` lists labels that include the right one with this frequency, the likeliest first.
    """

    label: Label | list[Label] | None
    probability: float | list[float] | None
    margin: float | list[float | None] | None
    withheld: list[Label] | UnsetType = UNSET
    set: list[Label] | UnsetType = UNSET
    probabilities: list[tuple[Label, float]] | UnsetType = UNSET
    id: str | int | UnsetType = UNSET


# For each label a text, several texts, or null for its name.
Descriptions = Annotated[dict[str, str | list[str] | None], Meta(min_length=1)]


class Described(Struct, kw_only=True):
    """The number of texts learned, and the labels left out, because their names are numbers and describe nothing."""

    n_learned: int
    left_out: list[Label]


class Learned(Prediction, kw_only=True):
    """The model's answer to a message before learning it. `learned` is false if its `id` was learned before with this
    label. With another label it is a correction: "taken back" if the other label was given on the page and not learned
    yet, else "taught anew", by two steps.
    """

    learned: bool
    correction: Literal["taken back", "taught anew"] | UnsetType = UNSET


class LearnedIds(Struct, kw_only=True):
    """Ids of learned messages, and the number of ids that are kept."""

    ids: list[str | int]
    n: int


class Explanation(Prediction, kw_only=True):
    """The contribution of each word, or part of a word, to the margin: the largest ones, then the number and the sum of
    the others. It is the margin of the label `explained` above the label `against`, if that is not null. These are the
    predicted label and the next one, or the label in the request. `words` has the share of each word in each of
    `contributions`; `pieces` are the texts of the message, by field, in pieces with the contribution of each. Labels
    that are integers beyond 2**53 are strings here, because browsers round such integers.
    """

    explained: Label | None
    against: Label | None
    contributions: list[tuple[str, float]]
    words: list[list[tuple[str, float]]]
    pieces: list[tuple[str, list[tuple[str, float]]]]
    n_others: int
    others: float


class LearnedAsked(Sent):
    limit: Annotated[int, Meta(ge=1, le=100_000, description="The largest number to return.")] = 1_000
    skip: Annotated[int, Meta(ge=0, description="The number of the newest ones to leave out.")] = 0


class MonitorAsked(Sent):
    search: Annotated[
        Annotated[str, Meta(max_length=1_000)] | None,
        Meta(description="Return the classes whose labels contain this."),
    ] = None
    limit: Annotated[int, Meta(ge=1, le=10_000, description="The number of classes to return.")] = 20
    label: Annotated[
        Annotated[str, Meta(max_length=10_000)] | None,
        Meta(description='Return the words for and against this label: a text, or JSON to tell 1 from "1".'),
    ] = None
    model: Annotated[bool, Meta(description="Return the parameters of the model and all its classes.")] = False


class WrongAsked(Sent):
    search: Annotated[
        Annotated[str, Meta(max_length=1_000)],
        Meta(description="Return the messages with this in their text or a label."),
    ] = ""
    limit: Annotated[int, Meta(ge=1, le=MOST_WRONG, description="The largest number to return.")] = MOST_WRONG
    first: Annotated[
        Literal["newest", "suspicious"],
        Meta(description="The order; suspicious messages have an improbable label, which may be wrong."),
    ] = "newest"
    format: Annotated[Literal["json", "csv"], Meta(description="The form of the answer.")] = "json"


class Corrected(Sent, kw_only=True):
    """The right label for a message of GET /wrong, by its number."""

    number: int
    label: SentLabel | list[SentLabel]


class MessagesAsked(Sent):
    limit: Annotated[int, Meta(ge=1, le=100, description="The largest number to return.")] = 8
    first: Annotated[Literal["uncertain", "newest", "oldest"], Meta(description="The order.")] = "uncertain"
    also: Annotated[int | None, Meta(description="The number of a message to include while it waits.")] = None


def decoded(body: bytes, decoder: msgspec.json.Decoder[Any]) -> Any:
    """The decoded body of a request. Descriptions are pairs: a label may be duplicated."""
    try:
        try:
            sent = decoder.decode(body)
        except ValidationError:
            raise
        except DecodeError:
            # Only Python's parser accepts a lone surrogate in a text, and NaN in a field that is not read.
            sent = msgspec.convert(json.loads(body.decode()), decoder.type)
        return json.loads(body.decode(), object_pairs_hook=list) if decoder.type is Descriptions else sent
    except ValidationError as error:
        raise HTTPException(422, _fault(error, decoder.type)) from None
    except json.JSONDecodeError as error:
        raise HTTPException(422, f"the body must be JSON: {error}") from None
    except (ValueError, RecursionError):
        raise HTTPException(422, "the body must be JSON") from None


def message_of_mail(mail: bytes, parameters: Mapping[str, str], field: str, kind: Any) -> Any:
    """A message from a mail in the body of a request, with the values of the query."""
    if not mail.strip():
        raise HTTPException(422, "the body is empty, and no mail")
    try:
        return msgspec.convert({**parameters, field: mail.decode("latin-1")}, kind, strict=False)
    except ValidationError as error:
        raise HTTPException(422, _fault(error, kind)) from None


def _fault(error: ValidationError, kind: Any) -> str:
    """The fault, with the place and an unknown key, but no other part of the input."""
    if unknown := UNKNOWN.match(str(error)):
        return _not_known(unknown[1], kind)
    reason, _, place = str(error).partition(" - at `$")
    where = re.findall(r"\w+", place)
    for name, must in FAULTS.items():
        if name in where:
            where, reason = where[: where.index(name) + 1], must
    return f"{'.'.join(where)}: {reason}" if where else reason


def _not_known(key: str, kind: Any) -> str:
    """The error about an unknown key, with the nearest known key."""
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
    """The values in the query of a request."""
    try:
        return msgspec.convert({**values}, kind, strict=False)
    except ValidationError as error:
        unknown = UNKNOWN.match(str(error))
        raise HTTPException(422, _not_known(unknown[1], kind) if unknown else "bad parameters") from None


class ParsedRequest(NamedTuple):
    """The messages of a request."""

    messages: list[Any]
    X: list[Any]  # their content
    ids: list[Id | None]
    is_list: bool  # false for a single message


def read_batch(sent: object, learner: LiveLearner, limits: Allowed) -> ParsedRequest:
    """The messages of a request; some may be given only by their ids."""
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
        if mail_field is None:  # a mail may be as large as the body
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
            kept = f"no message with this id is kept; send its {content}"
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


def read_descriptions_sent(sent: Sequence[tuple[str, Any]], policy: LabelPolicy, limits: Allowed) -> dict[Label, Any]:
    """The descriptions of labels, by the labels that are meant."""
    texts = [value if isinstance(value, list) else [value] for _, value in sent]
    _check_number(sum(map(len, texts)), "texts", limits)
    descriptions: dict[Label, Any] = {}
    for i, ((name, value), label_texts) in enumerate(zip(sent, texts, strict=True)):
        label = label_as_read(name, f"label {i}", policy, limits)
        if label in descriptions:
            raise HTTPException(422, f"label {i}: it must be described once, got it twice")
        for text in filter(None, label_texts):
            _check_text(text, f"label {i}", limits)
        descriptions[label] = value
    return descriptions


def _set_mail(x: TextOrFields, field: str) -> TextOrFields:
    """A message whose mail is parsed only once, even if the model is asked several times."""
    if isinstance(x, str):
        return Mail(x)
    return Fields({**x, field: Mail(x[field])}) if isinstance(x.get(field), str) else x


def _id_of_mail(x: TextOrFields, field: str) -> str | None:
    mail = x if isinstance(x, str) else x.get(field)
    return mail_id(mail_bytes(mail)) if isinstance(mail, str) else None


def label_as_read(label: SentLabel, place: str, policy: LabelPolicy, limits: Allowed) -> Label:
    """The label that a value means, among the model's labels and others; the model's labels may have any length."""
    read: Label = _good(policy.read(label, limits.label), place)
    return read


def labels_as_read(label: SentLabel | list[SentLabel], place: str, policy: LabelPolicy, limits: Allowed) -> Truth:
    """The label for learning a message: one label or, if it may have several, a tuple of labels."""
    if policy.kind == LABELS and isinstance(label, list) and len(label) > limits.labels:
        raise HTTPException(413, f"{place}: labels must be at most {limits.labels:,}, got {len(label):,}")
    read: Truth = _good(policy.read_example(label, limits.label), place)
    return read


def _good(label: Any, place: str) -> Any:
    if isinstance(label, Fault):
        raise HTTPException(413 if label.is_size else 422, f"{place}: {label}")
    if label is None:
        raise HTTPException(422, f"{place}: it is blank")
    return label


def label_of_query(text: str) -> Any:
    """The label in a query: a JSON string, integer or bool, or else the text itself."""
    try:
        label = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return label if isinstance(label, (bool, int, str)) else text
