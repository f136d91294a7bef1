"""Features of whole mails."""

from __future__ import annotations

import email.message
import email.policy
import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

from stream_pegasos.common.cached import cached_property
from stream_pegasos.common.checks import check_bool
from stream_pegasos.common.errors import must_be, type_name
from stream_pegasos.common.extras import missing
from stream_pegasos.common.packing import features_to_json
from stream_pegasos.common.windows_1252 import encode_windows_1252
from stream_pegasos.features.base import Features, make_scanner
from stream_pegasos.features.fields import SPACE, FieldFeatures
from stream_pegasos.features.message import ABSENT, Message, check_field, get_field, is_nothing
from stream_pegasos.features.text import TextFeatures
from stream_pegasos.mail_text.parts import MailParts, leave_out_fields, mail_parts

__all__ = ["OF_SOURCE", "Mail", "MailFeatures", "read_parts"]

OF_SOURCE = "source: "  # prefix of the features for character sequences of the source


class Mail(str):
    """A mail whose characters each stand for a byte (Latin-1), as in mails of a stream. It is parsed only once, when
    its parts are first needed.
    """

    @cached_property
    def parts(self) -> MailParts:
        return mail_parts(*mail_content(self))


class MailFeatures(Features):
    """The features of a whole mail with its headers (RFC 5322, MIME).

    There are several kinds of features: the words of the text that a reader sees; the words of the subject; the words
    of the header fields, without the names of addresses, hosts and lists; the words of the route; sequences of five
    characters of the source[^1], which is the beginnings of the newest servers' lines, of the fields of the sender's
    program and of the body; and marks of all else, such as the site that sent the mail, the targets of links and the
    claims of their texts, hidden text, attachments by name, type and size, character sets, and the results of SPF, DKIM
    and DMARC. tests/benchmarks/mail.py measures the value of each kind.

    Words in disguise are read as the usual words: `fr0m`, `p-r-i-z-e`, words with invisible signs, or with letters of
    another script or width that look the same. tests/benchmarks/disguise.py measures this.

    Nothing in a mail is opened, run or fetched. No mail raises an error, even if it is damaged. The time for a mail is
    bounded: only the first 64 kB of headers, 1 MB of body and 100 parts are read, and of a long text the first 2,500
    and the last 1,000 characters. The texts of all pages are read; their styles, which hide text, are read up to about
    20,000 tags or 4,000 declarations in all parts together. After this limit text counts as visible. Marks of the mail
    tell which limits were reached, and `parts` counts the content left out: "bytes", "parts", "characters", "tags" and
    "tokens".

    Parameters
    ----------
    on : str or None, default None
        The name of the field with the mail, if messages are dicts; `None` if a message is a mail.
    route : bool, default True
        Whether to use the names of the servers on a mail's route, and the source. They show how spam reaches the
        mailboxes that the model has learned from. Use `False` for a model that will serve other mailboxes.
    vectors : str, path, mapping, encoder, callable or None, default None
        Word vectors or an encoder, as for `TextFeatures`; subject and text of a mail have one vector together.
    mask_digits : bool or "both", default "both"
        As for `TextFeatures`; a model saved by version 0.2 has `True`.
    ignored_headers : sequence of str or None, default None
        Names of header fields that are not learned, such as `X-Company-*`; case does not matter. In any case, fields
        that servers of the receiver, lists, other filters and mail programs wrote are not learned: they are recognised
        by their place above the newest line of a server, or by their names. SpamAssassin's report around a mail and
        tags before a subject are not learned either.

    Raises
    ------
    ImportError
        If lxml or tinycss2 is missing; the extra `mail` installs them.
    TypeError
        If a mail is neither bytes, str, `email.message.Message` nor `MailParts`. In a str each character stands for a
        byte (Latin-1), as in mails of a stream; a str with other characters is encoded as Windows-1252, or else as
        UTF-8. So a mail gives the same features as bytes, and as a text decoded as UTF-8 or by its charset.

    References
    ----------
    [^1]: Sculley, D. and Wachman, G. M., 2007. Relaxed online SVMs for spam filtering. SIGIR '07, 415-422.
          [doi:10.1145/1277741.1277813](https://doi.org/10.1145/1277741.1277813)

    Examples
    --------

    >>> from stream_pegasos import MailFeatures, TextClassifier

    >>> model = TextClassifier(features=MailFeatures())
    >>> model.learn_one(b"From: shop@x.example\\nSubject: =?utf-8?q?Fr=65e?=\\n\\nSee http://1.2.3.4/prize", "spam")
    >>> model.learn_one(b"From: Ann <ann@y.example>\\nSubject: lunch\\n\\nAt noon?", "ham")
    >>> model.predict_one(b"From: win@z.example\\nSubject: Free prize\\n\\n")
    'spam'

    Parsing a mail takes ten times as long as learning it. Several processes can parse in advance:

    >>> from concurrent.futures import ProcessPoolExecutor
    >>> from stream_pegasos.mail_text.parts import mail_parts

    >>> with ProcessPoolExecutor() as pool:  # doctest: +SKIP
    ...     model.learn_many(pool.map(mail_parts, mails, chunksize=100), labels)
    >>> mail_parts(b"Subject: =?utf-8?q?Fr=65e?=\\n\\nSee http://1.2.3.4/prize").subject
    'Free'

    """

    is_one = False

    def __init__(
        self,
        on: str | None = None,
        route: bool = True,
        vectors: object = None,
        mask_digits: bool | Literal["both"] = "both",
        ignored_headers: Sequence[str] | None = None,
    ) -> None:
        self.on, self.route, self.mask_digits, self.ignored_headers = on, route, mask_digits, ignored_headers
        check_field(on)
        self.is_ignored = ignoring(() if ignored_headers is None else ignored_headers)
        check_bool("route", route)
        try:
            # Otherwise the first mail with HTML would fail.
            import lxml  # noqa: F401
            import tinycss2  # noqa: F401
        except ModuleNotFoundError as error:
            raise missing("MailFeatures", "mail", error) from error
        text = TextFeatures(vectors=vectors, mask_digits=mask_digits, letters=0.0, length=0.0)
        self.vectors = text.vectors
        self._share_vectors(text.vector_source)
        plain, *sentence = text.each
        of_text, of_subject = (
            plain.clone({"on": name, "namespace": self._space(name)}) for name in ("text", "subject")
        )
        of_headers = TextFeatures(
            on="headers", mask_digits=mask_digits, namespace=self._space("headers"), letters=0.0, length=0.0
        )
        # The route is the part of the headers with the names of hosts.
        of_route = of_headers.clone({"on": "route", "ngram_range": (1, 3)})
        of_source = of_headers.clone(
            {"on": "source", "namespace": self._space("source"), "analyzer": "char", "ngram_range": (5, 5)}
        )
        marks = Marks("marks", self._space("marks"))
        self._each = [of_text, of_subject, of_headers, *([of_route, of_source] if route else []), marks, *sentence]
        self.scanner = make_scanner(self._each)

    def to_json(self) -> str:
        """The features as JSON, as `TextFeatures.to_json`."""
        return features_to_json(self)

    def _space(self, name: str) -> str:
        return name if self.on is None else f"{self.on}.{name}"

    @property
    def each(self) -> Sequence[Features]:
        return self._each

    @property
    def fields(self) -> tuple[str, ...]:
        return () if self.on is None else (self.on,)

    @property
    def takes_text(self) -> bool:
        return self.on is None

    @property
    def mail_field(self) -> str | None:
        return self.on or "text"

    def parts(self, x: object) -> MailParts:
        """The parts of a mail, and the amount of content left out.

        Parameters
        ----------
        x : bytes, str, email.message.Message, MailParts or dict
            The mail; with `on`, a dict that contains it.
        """
        if self.on is None or not isinstance(x, Mapping):
            return read_parts(x)
        mail = get_field(x, self.on)
        return read_parts(b"" if mail is ABSENT or is_nothing(mail) else mail)

    def shown(self, x: Message) -> str:
        parts = self.parts(x)
        return f"{parts.subject}\n{parts.text}"

    def make_message(self, text: str) -> Any:
        mail = (b"Content-Type: text/plain; charset=utf-8\n\n" + text.encode("utf-8", "replace")).decode("latin-1")
        return mail if self.on is None else {self.on: mail}

    def read(self, x: object) -> Any:
        return self.read_value(x) if self.on is None else super().read(x)

    def read_value(self, value: object) -> tuple[Any, ...]:
        if self.on is not None and is_nothing(value):
            return ("",) * len(self._each)
        parts = read_parts(value)
        if self.ignored_headers:
            parts = leave_out_fields(parts, self.is_ignored)
        route = [parts.route, parts.source] if self.route else []
        marks = "\n".join(parts.tokens).replace(" ", SPACE)
        sentence = [f"{parts.subject}\n{parts.text}"] if self.encoder is not None else []
        return parts.text, parts.subject, parts.headers, *route, marks, *sentence


class Marks(FieldFeatures, is_kind=False):
    """Features identified by their names."""

    def __init__(self, on: str, namespace: str) -> None:
        super().__init__(on)
        self.namespace = namespace

    def token_name(self, token: str) -> str:
        return token.replace(SPACE, " ")


def ignoring(names: Iterable[str]) -> Callable[[str], Any]:
    """The function that tells whether the name of a header field matches one of these."""
    if isinstance(names, str) or not all(isinstance(name, str) and name.strip() for name in names):
        raise TypeError(must_be("ignored_headers", "a list of names, as ['X-Company-*']", names))
    patterns = [fnmatch.translate(name.strip().rstrip(":").lower()) for name in names]
    return re.compile("|".join(patterns) or r"(?!)").match


def read_parts(mail: object) -> MailParts:
    if isinstance(mail, Mail):
        return mail.parts
    return mail if isinstance(mail, MailParts) else mail_parts(*mail_content(mail))


def mail_bytes(mail: object) -> bytes:
    """A mail as it was received; a TypeError if it is something else."""
    return mail_content(mail)[0]


def mail_content(mail: object) -> tuple[bytes, bool]:
    """A mail as it was received, and whether it was decoded, so that its raw letters are now in UTF-8; a TypeError if
    it is something else.
    """
    if isinstance(mail, str):
        with suppress(UnicodeEncodeError):
            return mail.encode("latin-1"), False
        with suppress(UnicodeEncodeError):  # readers decode bytes that are not UTF-8 in this way
            return encode_windows_1252(mail), False
        return mail.encode("utf-8", "replace"), True
    if isinstance(mail, (bytes, bytearray, memoryview)):
        return bytes(mail), False
    if isinstance(mail, email.message.Message):
        policy: Any = mail.policy
        if isinstance(policy, email.policy.EmailPolicy):
            policy = policy.clone(refold_source="none")  # headers stay as they came
        try:
            return mail.as_bytes(policy=policy), False
        except (LookupError, ValueError, TypeError, AttributeError):  # of a mail that was composed by a program
            return str(mail).encode("utf-8", "replace"), True
    raise TypeError(must_be("a mail", "the text or bytes of one, or an email.message.Message", type_name(mail)))
