"""Words, marks and runs of texts in any language, against Unicode's own rules by the module `regex`."""

import re
import unicodedata
from itertools import chain

import pytest
import regex
from engines import both_engines, pure_engine
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_pegasos import TextFeatures
from stream_pegasos.engine.pure import characters
from stream_pegasos.engine.pure.characters import (
    CHARACTER,
    EXTEND,
    FIRST_PART,
    IGNORED,
    MARK,
    STACKER,
    SYLLABLE,
    WORD,
    character_class,
    composed,
    letter_parts,
)
from stream_pegasos.engine.pure.scanner import ANY_LANGUAGE
from stream_pegasos.engine.pure.tokens import is_run, tokenize

# A run is shown in brackets, its characters apart; all else is a word or a mark.
TEXTS = {
    "English": ("Don't pay $3.50!", "don ' t pay $ 0 . 00 !"),
    "French, accents apart": ("De\u0301ja\u0300 vu ?", "d\u00e9j\u00e0 vu ?"),
    "Russian": ("Купите 2 книги, пожалуйста", "купите 0 книги , пожалуйста"),
    "Greek": ("ΚΑΛΗΜΕΡΑ ΚΟΣΜΟΣ;", "καλημερα κοσμος ;"),
    "Arabic": ("مَرْحَبًا بالعالم، ٣ مرات", "مَرْحَبًا بالعالم ، 0 مرات"),
    "Persian": ("می\u200cخواهم بروم", "میخواهم بروم"),  # noqa: RUF001
    "Hebrew": ("שָׁלוֹם עולם", "שָׁלוֹם עולם"),
    "Hindi": ("क्या आपको पसंद आया?", "क्या आपको पसंद आया ?"),
    "Tamil": ("மிக்க நன்றி!", "மிக்க நன்றி !"),
    "Bengali": ("আমি বাংলায় লিখি।", "আমি বাংলায় লিখি ।"),
    "Amharic": ("ሰላም፡ለዓለም", "ሰላም ፡ ለዓለም"),
    "Georgian": ("გამარჯობა მსოფლიო", "გამარჯობა მსოფლიო"),
    "Tibetan": ("བོད་སྐད", "བོད ་ སྐད"),
    "Korean": ("LG전자를 샀어요TV", "lg 전자를 샀어요 tv"),
    "Korean, letters apart": ("\u1112\u1161\u11ab\u1100\u1173\u11af", "한글"),
    "Chinese": ("味道很好,送了3个iPhone手机", "[味 道 很 好] , [送 了] 0 [个] iphone [手 机]"),
    "Japanese": ("カレーが美味しい。", "[カ レ ー が 美 味 し い] 。"),
    "Japanese, marks apart": ("か\u3099くせい", "[が く せ い]"),
    "Thai": ("น้ำดีมาก 5 ดาว", "[น้ำ ดี ม า ก] 0 [ด า ว]"),
    "Lao": ("ສະບາຍດີ", "[ສ ະ ບ າ ຍ ດີ]"),
    "Khmer": ("ខ្មែរ\u200bល្អ", "[ខ្មែ រ] [ល្អ]"),
    "Burmese": ("မန္တလေး", "[မ န္တ လေး]"),
    "emoji": ("👍🏽👩\u200d👩\u200d👧❤\ufe0f🇩🇪🇫🇷🇯 ☺\u200d! ok", "👍🏽 👩👩👧 ❤ 🇩🇪 🇫🇷 🇯 ☺ ! ok"),
    "what nobody sees": ("vi\u00adag\u200bra \u202eFREE\u202c\ufeff", "viagra free"),
    "tags, names, addresses": ("#win @bob a@b.co", "# win @ bob a @ b . co"),
    "marks of nothing": ("\u0301 a", "\u0301 a"),
}


@pytest.mark.parametrize(("text", "expected"), TEXTS.values(), ids=TEXTS)
def test_texts(text, expected):
    features = TextFeatures(ngram_range=(1, 1), prefix_length=0)
    found = tokenize(unicodedata.normalize("NFC", text).lower().translate(dict.fromkeys(map(ord, "235٣"), "0")))
    shown = [f"[{' '.join(token.characters)}]" if is_run(token) else token for token in found]
    assert " ".join(shown) == unicodedata.normalize("NFC", expected)
    words = [token for token in found if not is_run(token)]
    assert [token for token in features.tokens(text) if token in words][: len(words)] == words


# Characters of all scripts, but for those that Unicode's rules treat otherwise than we do: what may stand inside words
# (MidLetter, MidNum), what nobody sees, emoji, Hangul, and the few symbols that it takes for letters and digits.
LETTERS = regex.compile(
    r"[\p{L}\p{M}\p{Nd}\p{P}\p{S}--\p{WB=MidLetter}--\p{WB=MidNum}--\p{WB=MidNumLet}--\p{WB=Single_Quote}"
    r"--\p{WB=Double_Quote}--\p{Default_Ignorable_Code_Point}--\p{Emoji}--\p{WB=Regional_Indicator}--\p{Hangul}"
    r"--[\u0e33\u0eb3\u2e80-\u30ff\uff65-\uffdf\U00016fe0-\U00016fff]--\p{WB=Katakana}"
    r"--[\p{P}\p{S}&&[\p{WB=ALetter}\p{WB=Numeric}\p{WB=ExtendNumLet}]]]",
    regex.V1,
)
known = [chr(c) for c in range(0x20000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
LETTERS_OF_BLOCKS = [
    [c for c in block if LETTERS.match(c)] for block in (known[i : i + 128] for i in range(0, len(known), 128))
]
some_blocks = st.lists(st.sampled_from([block for block in LETTERS_OF_BLOCKS if block]), min_size=1, max_size=3)
letters = some_blocks.flatmap(lambda blocks: st.text(st.sampled_from([*chain(*blocks), *" a1手ม"])))
without_spaces = regex.compile(r"[\p{Lb=SA}\p{Han}\p{Hiragana}\p{Katakana}\p{Nushu}\p{Tangut}\p{Khitan_Small_Script}]")


def oracle(text):
    """The words, marks and runs of Unicode's default word boundaries: letters that it finds no words of make a run."""
    found = []
    for piece in regex.split(r"(?wV1)\b", text):
        is_run = without_spaces.match(piece) and character_class(piece[0]) == CHARACTER
        # A boundary that the module leaves out where white space follows marks that extend it.
        if is_run and found and found[-1][0] and found[-1][1]:
            found[-1][1] += piece
        elif piece:
            found.append([is_run, piece])
    return [piece for _, piece in found if not piece.isspace()]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(letters)
def test_words_are_unicodes(text):
    text = " ".join(part for part in text.split(" ") if part and character_class(part[0]) not in (EXTEND, STACKER))
    assert tokenize(text) == oracle(text)


def test_classes_are_unicodes():
    in_runs = regex.compile(r"[\p{WB=Other}\p{WB=Katakana}]")
    alone = regex.compile(r"\p{Han}|\p{Tangut}|\p{Nushu}|[\u3031-\u303c\uff9e\uff9f]")
    of_hangul, halfwidth = regex.compile(r"\p{Hangul}"), regex.compile(r"[\uffa0-\uffdc]")
    in_words = regex.compile(r"[\p{WB=ALetter}\p{WB=Hebrew_Letter}\p{WB=Numeric}\p{WB=ExtendNumLet}]")
    marks, punctuation = regex.compile(r"\p{M}"), regex.compile(r"\p{P}")
    for c in known:
        kind = character_class(c)
        if unicodedata.category(c)[0] == "L":
            without = in_runs.match(c) or alone.match(c)
            hangul = of_hangul.match(c) and not halfwidth.match(c)
            expected = {CHARACTER, EXTEND} if without else {SYLLABLE} if hangul else {WORD}
            assert kind in expected, (c, hex(ord(c)))
        if in_words.match(c) and c.isalnum():
            assert kind in (WORD, SYLLABLE, CHARACTER), (c, hex(ord(c)))
        if unicodedata.category(c) == "Nd":  # in scripts without spaces, too
            assert kind == WORD, (c, hex(ord(c)))
        if marks.match(c):
            assert kind in (EXTEND, STACKER, IGNORED), (c, hex(ord(c)))
        if punctuation.match(c) and c != "_":
            assert kind == MARK, (c, hex(ord(c)))


@given(st.text(st.sampled_from("手机很好吃かな"), min_size=1, max_size=20))
def test_ngrams_of_a_run(run):
    """All parts of up to three between two spaces, the first and the last four characters, and a short run itself."""
    padded = f" {run} "
    expected = [padded[i : i + n] for n in (1, 2, 3) for i in range(len(padded) - n + 1) if padded[i : i + n] != " "]
    expected += [padded[:5], padded[-5:]] if len(run) > 4 else []
    expected += [padded] if 1 < len(run) <= 16 else []
    assert sorted(TextFeatures(boundaries=False, length=0).tokens(run)) == sorted(expected)


def test_a_short_run_is_a_word_to_its_neighbours():
    pairs = {"<s> 好吃", "好吃 ,", ", 很快", "很快 iphone", "iphone </s>"}
    assert pairs <= set(TextFeatures().tokens("好吃,很快iPhone"))
    assert {", " + "很" * 16} <= set(TextFeatures().tokens("a," + "很" * 16))
    assert not {t for t in TextFeatures().tokens("a," + "很" * 17) if t.startswith((", ", "很" * 17))}


def test_hangul_counts_as_words_and_as_syllables():
    found = TextFeatures(boundaries=False).tokens("좋은 영화를")
    assert {"좋은", "영화를", "좋은 영화를"} <= set(found)
    assert {"영", " 영", "영화", " 영화", "영화를", "화를 ", "를 "} <= set(found)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    st.text(
        st.sampled_from("aeouAEnk кий αιω \u0627\u0653 か\u3099は\u309a\u0301\u0308\u0323\u1112\u1161\u11ab각"),
        max_size=20,
    )
)
def test_a_letter_is_the_same_in_one_and_in_parts(text):
    features = TextFeatures(lowercase=False)
    expected = features.transform_one(unicodedata.normalize("NFC", text))
    assert features.transform_one(unicodedata.normalize("NFD", text)) == expected
    assert features.transform_one(text) == expected


def test_every_letter_is_the_same_in_one_and_in_parts():
    features = TextFeatures()
    for c in map(chr, range(0x30000)):
        if unicodedata.normalize("NFD", c) != c:
            in_parts = unicodedata.normalize("NFD", f"a{c}b {c}")
            assert features.transform_one(f"a{c}b {c}") == features.transform_one(in_parts), c


@given(st.text(st.sampled_from("あgが好き e\u0301ग\u093cफ\u095e각ab")), st.sampled_from([1, 255, 65_530]))
def test_letters_are_composed_wherever_a_piece_ends(text, n):
    text = "あ" * n + text
    assert composed(unicodedata.normalize("NFD", text)) == unicodedata.normalize("NFC", text)


def test_no_part_of_a_letter_stands_before_the_first():
    assert min(letter_parts()) == ord(FIRST_PART)


def test_accents_without_end_are_composed_by_the_piece():
    text = "e" + "\u0301\u0323" * 50_000
    assert len(composed(text)) in range(99_000, 100_001)  # and not in a time that is square
    assert TextFeatures().transform_one(text) == pure_engine.Scanner(*TextFeatures().scanner.arguments).transform_one(
        text
    )


FORMS = ("NFC", "NFD", "NFKC", "NFKD")
MARKS = "\u0301\u0323\u0345\u0f73\u0344\u093c\uff9e\u1161\U0001d165"


@pytest.mark.parametrize("form", FORMS)
@given(text=st.text(st.sampled_from("aeが각ﷺ ") | st.sampled_from(MARKS), max_size=60), n=st.sampled_from([1, 3, 60]))
def test_a_normal_form_is_the_same_by_the_piece(form, text, n):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(characters, "AT_ONCE", n)
        assert characters.normalized(form, text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize("form", FORMS)
@given(runs=st.lists(st.tuples(st.text(st.sampled_from(MARKS), min_size=1, max_size=3), st.integers(1, 200))))
def test_marks_without_end_are_normalized_a_few_at_a_time(form, runs):
    """Unicode orders marks that follow one another, in a time that is square."""
    longest, whole = 0, unicodedata.normalize

    def normalize(form, piece):
        nonlocal longest
        longest = max(longest, *map(len, re.findall(f"[{MARKS}]+", piece)), 0)
        return whole(form, piece)

    characters.patterns()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(characters.unicodedata, "normalize", normalize)
        characters.normalized(form, "e".join(marks * n for marks, n in runs))
    assert longest <= characters.MOST_PARTS


@both_engines
def test_ascii_is_as_ever(engine_in_test):
    """Of ASCII the words and marks are those of the pattern that they are in."""
    arguments = TextFeatures().scanner.arguments
    at = arguments.index(ANY_LANGUAGE)
    scanners = [
        engine_in_test.Scanner(*arguments[:at], pattern, *arguments[at + 1 :])
        for pattern in (ANY_LANGUAGE, r"\w+|[^\w\s]")
    ]
    for text in (
        "".join(map(chr, range(128))) * 3,
        "Win a FREE prize now!!! Call 0800-123456 a_b",
        "caf\u00e9 £5 naïve",
    ):
        one, other = (scanner.transform_one(text) for scanner in scanners)
        assert one == other
