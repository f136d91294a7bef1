"""A message stream without a file or a network."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from stream_pegasos.common.errors import must_be

# A template is its literal pieces and, between them, words to choose from or the number of digits to draw.
_Template = tuple[str | tuple[str, ...] | int, ...]

_SLOTS: dict[str, tuple[str, ...] | int] = {
    "name": ("Anna", "Ben", "Carla", "Dev", "Ella", "Farid", "Grace", "Hugo", "Ines", "Jonas"),
    "kin": ("mum", "dad", "my sister", "my brother", "grandma", "the kids", "my flatmate"),
    "day": ("today", "tonight", "tomorrow", "Monday", "Tuesday", "Wednesday", "Friday", "Sunday"),
    "time": ("at 7", "at 8.30", "around noon", "after work", "before lunch", "at six", "later on"),
    "place": ("the station", "the library", "the cafe", "home", "the office", "the park", "school"),
    "food": ("pizza", "soup", "noodles", "a sandwich", "the curry", "cake", "coffee", "some tea"),
    "mood": ("tired", "happy", "late", "hungry", "fine", "busy", "bored", "a bit lost", "freezing"),
    "soft": ("ok", "haha", "hey", "sorry", "thanks", "yeah", "well", "hmm", "oh", "right", "hi"),
    "old_item": ("phone", "camera", "ringtone", "holiday", "voucher", "mp3 player", "handset"),
    "new_item": ("wallet", "parcel", "account", "refund", "delivery", "subscription", "profile"),
    "old_hype": ("free", "exclusive", "guaranteed", "brand new", "bonus", "fr33", "FREE"),
    "new_hype": ("verified", "urgent", "secure", "instant", "limited", "0fficial", "final"),
    "old_site": ("www.ringwin.example", "prize-line.example", "text2win.example"),
    "new_site": ("bit-safe.example/login", "parcel-fee.example", "coin-max.example/join"),
    "coin": ("coins", "tokens", "crypto", "shares"),
    "money": ("£100", "£250", "£500", "£1000", "£2000", "$50", "$900"),
    "digit": 1,
    "two": 2,
    "code": 5,
    "phone": 9,
}

_SHARED = """
call me when you can
please reply {day}
send me your number
do you have {two} minutes {day}
it is for you
see you {day}
have a look at this
you have {digit} new messages
do not miss it {day}
we will be in touch {day}
it is only {money}
can you confirm {day}
my new number is 0{phone}
{soft} it is me again
this is for you and your friends
I just sent you the link
the offer at {place} ends {day}
are you free {day}
we waited for you
"""

_HAM = """
{soft}, I am {mood}
{soft}, see you at {place} {time}
are you still at {place}?
{name} says hello
I will be {mood} {day}
can you pick up {kin} from {place}
did you eat {food} yet
I left my keys at {place}
lets have {food} {day}
{kin} wants to know when you get back
{name} and {name} are at {place}
dont forget {food} for {kin}
what are you doing {day}
I love you, sleep well
my train is late again, so {mood}
tell {name} I will ring {time}
the meeting moved to {day} {time}
happy birthday {name}
where did you put the charger
I was so {mood} I fell asleep
"""

_HAM_OLD = """
the exam is {day}, wish me luck
shall we rent a film {day}
{name} wants to go to the pub
my bus card ran out of credit
I burned the cd for {name}
{soft}, my lecture ended
the match was great, {digit} to {digit}
is {name} on the night shift {day}
"""

_HAM_NEW = """
the video call is {time}, link in the calendar
{name} shared the playlist with us
working from home {day}
did you see the photos in the group chat
the baby slept {digit} hours
{kin} got the vaccine {day}
my bike app says {two} minutes
{soft}, my laptop froze again
"""

_SPAM = """
reply {code} to claim your reward
you have been selected, act now
click {new_site} or call 0{phone}
winner! your code is {code}
limited offer, only {day}
to stop these messages reply STOP
terms apply, over 18 only
no fee, no risk, cash {money}
"""

_SPAM_OLD = """
you have won a {old_hype} {old_item}
claim your {old_hype} {old_item} now, call 0{phone}
txt WIN to {code} for a {old_hype} {old_item}
your {money} prize is waiting, call 0{phone}
{old_hype} ringtones and logos at {old_site}
{money} cash or a {old_item}, txt {code}
cost {two}p per min from landline
congratulations, a {old_item} worth {money}
hot singles want to meet you, txt {code}
"""

_SPAM_NEW = """
your {new_item} is on hold, pay {money} at {new_site}
{new_hype} notice: confirm your {new_item} at {new_site}
double your {coin} {day}, join {new_site}
we could not deliver your {new_item}, fee {money}
your bank {new_item} was locked, login at {new_site}
earn {money} a day from home with {coin}
{new_hype} {coin} airdrop, connect your {new_item}
your password expires {day}, sign in at {new_site}
tax {new_item} of {money} approved, code {code}
"""


def _templates(*texts: str) -> tuple[_Template, ...]:
    def template(line: str) -> _Template:
        pieces = re.split(r"\{(\w+)\}", line)
        return tuple(_SLOTS[piece] if i % 2 else piece for i, piece in enumerate(pieces))

    return tuple(template(line) for text in texts for line in text.strip().splitlines())


_shared = _templates(_SHARED)
# The templates of each label, before and after the change of vocabulary.
_ham = _templates(_HAM, _HAM_OLD), _templates(_HAM, _HAM_NEW)
_spam = _templates(_SPAM, _SPAM_OLD, _SPAM_OLD), _templates(_SPAM, _SPAM_NEW, _SPAM_NEW)


def synthetic(n: int = 20_000, seed: int = 0) -> Iterator[tuple[Any, str]]:  # as functions of River declare a stream
    """Yield short messages with their labels, `"ham"` or, for about a quarter of them, `"spam"`.

    The vocabulary of spam, and part of the vocabulary of ham, changes after half of the stream. Common phrases of both
    labels, words of the other label, digits and typing errors prevent perfect predictions. The same seed gives the same
    stream in every process. The first message is ham, so that spam becomes the positive label.

    Parameters
    ----------
    n : int, default 20000
        The number of messages, at least 0.
    seed : int, default 0
        The seed of the stream.

    Raises
    ------
    ValueError
        If `n` is negative.

    Examples
    --------

    >>> from stream_pegasos.streams import synthetic

    >>> for text, label in synthetic(n=3, seed=56):
    ...     print(f"{label}: {text}")
    ham: Tell Ella I will ring after work
    spam: YOU HAVE BEEN SELECTED, ACT NOW
    ham: My bike app says 55 minutes. send me your number

    """
    if n < 0:
        raise ValueError(must_be("n", "0 or more messages", n))
    return _messages(n, seed)


def _messages(n: int, seed: int) -> Iterator[tuple[str, str]]:
    # Only Random.random gives the same numbers in every version of Python.
    random = Random(seed).random
    for i in range(n):
        era = 2 * i >= n
        is_spam = i > 0 and random() < 0.25
        own, other = (_spam, _ham) if is_spam else (_ham, _spam)
        clauses: list[str] = []
        first = True
        while first or (len(clauses) < 4 and random() < 0.55):
            kind = random()
            if kind < 0.02:
                pool = other[era]
            elif kind < (0.06 if first else 0.5):
                pool = _shared
            else:
                pool = own[era]
            clauses.append(_fill(pool[int(random() * len(pool))], random))
            first = False
        text = (". ", ", ", " ", "! ", "... ")[int(random() * 5)].join(clauses)
        kind = random()
        if kind < 0.2:
            text = _mistype(text, random)
        elif kind < 0.25:
            text = text.upper()
        elif kind < 0.7:
            text = text[0].upper() + text[1:]
        yield text, "spam" if is_spam else "ham"


def _fill(template: _Template, random: Callable[[], float]) -> str:
    return "".join(
        [
            piece
            if isinstance(piece, str)
            else piece[int(random() * len(piece))]
            if isinstance(piece, tuple)
            else str(int(random() * 10**piece)).zfill(piece)
            for piece in template
        ]
    )


def _mistype(text: str, random: Callable[[], float]) -> str:
    """Swap two neighbouring characters, or drop one."""
    i = int(random() * (len(text) - 1))
    swapped = text[i + 1] + text[i] if random() < 0.5 else text[i]
    return text[:i] + swapped + text[i + 2 :]
