"""Words that are spelled so that filters do not know them."""

import disguise
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_pegasos.features.mail_disguise import undisguised
from stream_pegasos.features.mail_parts import mail_parts

WORDS = st.text("abcdefghijklmnopqrstuvwxyz", min_size=4, max_size=12)


@given(WORDS, WORDS, st.randoms(use_true_random=False))
@pytest.mark.parametrize(
    "disguised", [disguise.spaced, disguise.in_two_scripts, disguise.with_invisible_marks, disguise.wide]
)
def test_a_word_is_found_behind_each_disguise(disguised, first, second, rng):
    """The benchmark respells it, in which nothing is known of how that is undone."""
    text = f"see {disguised(first, rng)}, {disguised(second.upper(), rng)}!"
    if disguised is disguise.in_two_scripts and set(first + second) <= set(disguise.CYRILLIC):
        return  # no Latin letter may be left that tells the others from Cyrillic words
    assert undisguised(text)[0].lower() == f"see {first}, {second}!"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("fr0m M0ney V1agra PR1Z3 c@sh w!n", "from Money Viagra PRiZe cash win"),
        ("V.I.A.G.R.A, t-x-t", "VIAGRA, txt"),
        ("\U0001d41f\U0001d42b\U0001d41e\U0001d41e \uff21\ufb01", "free Afi"),
        ("cl\u0456\u0441k \u041erder", "click Order"),
    ],
)
def test_what_is_respelled_is_marked(said, meant):
    text, tokens = undisguised(said)
    assert text == meant
    assert tokens == ([] if "\ufb01" in said else ["text:respelled"])


@pytest.mark.parametrize(
    "text",
    [
        "mp3, x86, 1st, 24hrs, perl5, ext3, RH7, win32 and i386",
        "ann@linux.ie, bob.x@y or a1b/c4d: TG0BK5NKIYs5 http://x.example/a1b",
        "a b c, e.g. i.e. 1 2 3 4, A - B - C - D",
        "Привет, мир! αβγ café 漢字 naïve",
        "start|stop|restart $5 1,000 a1 b2",
    ],
)
def test_usual_words_stay(text):
    assert undisguised(text) == (text, [])


def test_subject_text_and_source_are_read_so():
    parts = mail_parts("Subject: V.I.A.G.R.A n0w\n\nfr\u0435\u0435 \u200bp\u200br\u200bi\u200bze".encode())
    assert (parts.subject, parts.text) == ("VIAGRA now", "free prize")
    assert parts.source.endswith("\nfree prize")
    assert {"text:respelled", "text:invisible:3"} <= set(parts.tokens)
