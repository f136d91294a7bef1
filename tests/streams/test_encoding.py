import codecs
import gzip
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import examples, pairs, rest, texts

from stream_pegasos.streams import StreamError, chunks, read

SAMPLES = ["win £100 … now", "plain", "naïve “quotes” €5", "Straße", "ÿ"]
# As WHATWG reads them: https://encoding.spec.whatwg.org/index-windows-1252.txt
OPEN = {0x81: 0x81, 0x8D: 0x8D, 0x8F: 0x8F, 0x90: 0x90, 0x9D: 0x9D, 0x80: 0x20AC, 0x9F: 0x178, 0xA3: 0xA3, 0x85: 0x2026}


def of_samples(format):
    line = {
        "jsonl": lambda text: json.dumps({"text": text, "label": "x"}, ensure_ascii=False),
        "csv": lambda text: f'"{text}",x',
        "tsv": lambda text: f"{text}\tx",
        "labelled-text": lambda text: f"x\t{text}",
        "fasttext": lambda text: f"__label__x {text}",
        "vw": lambda text: f"x |{text} b",
        "svmlight": lambda text: f"{text.replace(' ', '_')} 1:2 ",
    }[format]
    head = {"csv": "text,label\n", "tsv": "text\tlabel\n"}.get(format, "")
    return head + "".join(line(text) + "\n" for text in SAMPLES)


@pytest.mark.parametrize("format", ["jsonl", "csv", "tsv", "labelled-text", "fasttext", "vw", "svmlight"])
def test_lines_that_are_not_utf8_are_read_as_windows_1252(format):
    text, told = of_samples(format), []
    expected = pairs(text.encode(), format)
    assert len(expected) == len(SAMPLES)
    data = text.encode("cp1252")
    found = pairs(data, format, on_windows_1252=lambda: told.append(1))
    assert found == expected and len(told) == 4  # all but the plain one
    assert pairs(data, format, encoding="windows-1252") == expected
    found, bad = examples(data, format, encoding_errors="strict")
    assert [example.x for example in found] == [expected[1][0]]
    assert len(bad) == 4 and all(reason.startswith("not UTF-8 (byte 0x") for _, reason in bad)


def test_windows_1252_has_a_character_for_each_byte():
    for byte, code in OPEN.items():
        assert pairs(b"x\ta\xff%c\n" % byte, "labelled-text") == [(f"aÿ{chr(code)}", "x")]
    data = b"x\t" + bytes(i for i in range(32, 256)) + b"\n"
    assert pairs(data, "labelled-text", encoding="windows-1252") == pairs(data, "labelled-text")
    defined = bytes(i for i in range(32, 256) if i not in OPEN)
    assert pairs(b"x\t" + defined, "labelled-text") == [(defined.decode("cp1252"), "x")]


def test_a_latin_1_copy_loses_no_message(data_folder):
    """Of 747 spam messages 257 are not UTF-8 in Latin-1, as they have a pound sign, and 177 of 4,827 others."""
    with gzip.open(data_folder / "sms_spam.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [{**json.loads(line), "id": i} for i, line in enumerate(lines)]
    data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode("latin-1", "replace")
    told = []
    found = pairs(data, "jsonl", on_windows_1252=lambda: told.append(1))
    assert len(told) == 257 + 177
    assert found == [(row["text"].encode("latin-1", "replace").decode("cp1252"), row["label"]) for row in rows]
    strict, bad = examples(data, "jsonl", encoding_errors="strict")
    lost = {row["id"] for row in rows} - {example.id for example in strict}
    assert len(bad) == len(lost) and sum(rows[i]["label"] == "spam" for i in lost) == 257


CODECS = ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-7", "cp500", "gb18030", "utf-8-sig"]
NARROW = ["latin-1", "koi8-r", "shift_jis", "shift_jis_2004", "big5", "euc-kr", "iso2022_jp", "hz"]


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]))),
    st.sampled_from(CODECS + NARROW),
    st.integers(1, 9),
)
def test_any_codec_of_python(lines, codec, size):
    lines = [line for text in lines if (line := text.encode(codec, "ignore").decode(codec, "ignore").strip())]
    data = "".join(f"x\t{line}\n" for line in lines).encode(codec, "ignore")
    expected = [line.partition("\t")[2] for line in data.decode(codec).split("\n")[:-1]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "_SIZE", size)
        assert [x for x, _ in pairs(data, "labelled-text", encoding=codec)] == expected


@pytest.mark.parametrize("codec", ["utf-16", "utf-32"])
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_byte_order_mark_tells_utf16(codec, compress):
    text = of_samples("jsonl")
    expected = pairs(text.encode(), "jsonl")
    for mark, of_it in ((codecs.BOM_UTF8, "utf-8"), (b"", codec), ("\ufeff".encode(f"{codec}-be"), f"{codec}-be")):
        assert pairs(compress(mark + text.encode(of_it)), "jsonl") == expected


def test_what_is_not_in_the_encoding_is_a_bad_line():
    data = (
        "x\ta\nx\tb\n".encode("utf-16")
        + b"\x00\xd8x\x00\t\x00c\x00\n\x00x\x00\t\x00\xff\xdf\n\x00"
        + "x\td".encode("utf-16-le")
    )
    found, bad = examples(data, "labelled-text")
    assert [example.x for example in found] == ["a", "b", "d"]
    assert bad == [(3, "not UTF-16 (column 1)"), (4, "not UTF-16 (column 3)")]
    assert examples(data + b"\x00", "labelled-text")[1][-1] == (5, "not UTF-16 (column 4)")


def test_utf16_needs_a_mark_or_an_order():
    with pytest.raises(StreamError, match=r"cannot be read as utf-16: .*BOM"):
        pairs("x\ta".encode("utf-16-be"), "labelled-text", encoding="utf-16")


def test_followed_files(tmp_path):
    told, path = [], tmp_path / "mail.jsonl"
    path.write_bytes('{"text": "£5"}\n{"text": "five"}\n'.encode("cp1252"))
    batches, *_ = rest(path, on_windows_1252=lambda: told.append(1))
    assert texts(batches) == ["£5", "five"] and len(told) == 1
    with pytest.raises(StreamError, match=r"is utf-16, whose lines .* cannot be followed"):
        rest(path, encoding="utf-16")
    path.write_text('{"text": "a"}\n', encoding="utf-16")
    with pytest.raises(StreamError, match="is UTF-16 and cannot be followed"):
        rest(path)


@pytest.mark.parametrize(
    ("codec", "text"),
    [("shift_jis", "予定表ソ"), ("big5", "成功許"), ("gb18030", "乕乗"), ("euc-jp", "予定"), ("iso2022_jp", "予定")],
)
def test_brackets_inside_other_characters_end_no_array(codec, text):
    """The second byte of a character may be that of a bracket or a backslash."""
    rows = [{"text": text, "label": "a"}, {"text": "]", "label": "b"}]
    data = json.dumps(rows, ensure_ascii=False).encode(codec)
    assert pairs(data, "jsonl", encoding=codec) == [(text, "a"), ("]", "b")]


def test_a_byte_order_mark_that_comes_byte_by_byte():
    """As a pipe may hand it over."""

    class Pipe(io.BytesIO):
        def read1(self, size=-1):
            return super().read1(1)

    line = '{"text": "é", "label": "ham"}\n'
    for codec in ("utf-16", "utf-32", "utf-8-sig"):
        [example] = read(Pipe(line.encode(codec)), format="jsonl")
        assert (example.x, example.y) == ("é", "ham")
