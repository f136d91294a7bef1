"""Words that are spelled so that filters do not know them."""

import disguise
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_pegasos.mail_text.disguise import compatible, respelled
from stream_pegasos.mail_text.parts import FIRST, LAST, mail_parts

WORDS = st.text("abcdefghijklmnopqrstuvwxyz", min_size=4, max_size=12)


def undisguised(text):
    return respelled(compatible(text)[0])


@given(WORDS, WORDS, st.randoms(use_true_random=False))
@pytest.mark.parametrize(
    "disguised", [disguise.spaced, disguise.in_two_scripts, disguise.with_invisible_marks, disguise.wide]
)
def test_a_word_is_found_behind_each_disguise(disguised, first, second, rng):
    """The benchmark respells it, in which nothing is known of how that is undone."""
    text = f"see {disguised(first, rng)}, {disguised(second.upper(), rng)}!"
    if disguised is disguise.in_two_scripts and set(first + second) <= set(disguise.CYRILLIC):
        return  # no Latin letter may be left that tells the others from Cyrillic words
    assert undisguised(text).lower() == f"see {first}, {second}!"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("fr0m M0ney V1agra PR1Z3 c@sh n0w", "from Money Viagra PRiZe cash now"),
        ("V.I.A.G.R.A, t-x-t", "VIAGRA, txt"),
        ("\U0001d41f\U0001d42b\U0001d41e\U0001d41e \uff21\ufb01", "free Afi"),
        ("cl\u0456\u0441k \u041erder", "click Order"),
        ("f\ufe0fr\U000e0061\U000e0062ee \u2764\ufe0f 1\ufe0f\u20e3", "free \u2764\ufe0f 1\ufe0f\u20e3"),
    ],
)
def test_what_is_respelled_is_read_as_usual(said, meant):
    assert undisguised(said) == meant


@pytest.mark.parametrize(
    "text",
    [
        "mp3, x86, 1st, 24hrs, perl5, ext3, RH7, win32 and i386",
        "ann@linux.ie, bob.x@y or a1b/c4d: TG0BK5NKIYs5 http://x.example/a1b",
        "a b c, e.g. i.e. 1 2 3 4, A - B - C - D",
        "Привет, мир! αβγ café 漢字 naïve",
        "john@localhost W3C /a.b.c/ \u0430 \u044f \u0438 \u043e \u043d\u0451\u043c iPhone\u043e\u0432 aren't",
        "start|stop|restart $5 1,000 a1 b2",
    ],
)
def test_usual_words_stay(text):
    assert undisguised(text) == text


def test_subject_text_and_source_are_read_so():
    parts = mail_parts("Subject: V.I.A.G.R.A n0w\n\nfr\u0435\u0435 \u200bp\u200br\u200bi\u200bze".encode())
    assert (parts.subject, parts.text) == ("VIAGRA now", "free prize")
    assert parts.source.endswith("\nfree prize")
    assert {"text:respelled", "text:invisible:3"} <= set(parts.tokens)


def test_what_nobody_sees_fills_no_text():
    """It is left out before a long text is cut."""
    parts = mail_parts(("\n" + "\u200b" * 2_600 + "\nCheap pills\n" + "\u200b" * 1_100).encode())
    assert (parts.text, parts.left_out) == ("Cheap pills", {})
    long = mail_parts(("Subject: " + "\ufdfa" * 100 + "\n\n" + "\ufdfa" * 4_000).encode())
    assert len(long.text) == FIRST + LAST + 1 and len(long.subject) <= 2_000 and len(long.source) <= 502
