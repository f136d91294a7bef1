"""The parts of the page about single answers: a text that is taught, wrong ones, calibration, failed requests."""

import csv
import math
from datetime import datetime

import pytest
from kinds import several_labels
from pages import (
    DESKTOP,
    MARKUP,
    TELEPHONE,
    assert_contrasts,
    assert_fits,
    assert_no_markup_ran,
    assert_quiet,
    attributes,
    canned,
    httpx,
    learn,
    open_page,
    resize,
    served,
    shown,
    text,
    texts,
    wait,
)
from serving import MESSAGES, learned

from stream_pegasos import TextClassifier
from stream_pegasos.runtime.active_learning import ActiveLearning
from stream_pegasos.runtime.live_learner import LiveLearner

Keys = pytest.importorskip("selenium.webdriver.common.keys").Keys

pytestmark = pytest.mark.heavy


def given(url):
    return [(each["text"], each["label"]) for each in httpx.get(f"{url}asked").json()["given"]]


def press(page, *keys):
    page.switch_to.active_element.send_keys(*keys)


def explain(page, question):
    page.find_element("id", "try-text").send_keys(question, Keys.ENTER)
    wait(page, lambda: shown(page, "teach"))


def type_label(page, label):
    box = page.find_element("id", "teach-label")
    box.clear()
    box.send_keys(label, Keys.ENTER)


@pytest.mark.parametrize("size", [0, 100], ids=["nobody is asked", "people are asked"])
def test_a_text_that_is_tried_is_taught_and_taken_back(page, size):
    service = LiveLearner(learned(), active_learning=ActiveLearning(size, 60.0))
    with served(service) as url:
        open_page(page, url)
        explain(page, "zanzibar")
        assert {*texts(page, "#teach-labels bdi")} == {"ham", "spam"}
        page.find_element("css selector", "#teach-labels button:nth-child(2)").click()
        wait(page, lambda: shown(page, "teach-back"))
        ((taught, label),) = given(url)
        assert taught == "zanzibar" and f"Taught: {label}." in text(page, "taught")
        assert not shown(page, "teach")  # once is enough
        page.find_element("id", "teach-back").click()
        wait(page, lambda: given(url) == [] and "Taken back" in text(page, "taught"))
        page.find_element("id", "try-text").send_keys("!")
        assert not shown(page, "teach")  # as another text stands there
        assert_quiet(page)
    assert service.model.n_learned == learned().n_learned


@pytest.mark.parametrize(
    ("typed", "keys", "label"),
    [
        ("sapm", [Keys.ENTER], "spam"),
        ("S p\u200bam", [Keys.TAB, Keys.ENTER], "S p\u200bam"),
        ("refund", [], "refund"),
        ("spam", [], "spam"),
    ],
)
def test_a_label_that_may_be_a_slip_is_asked_about_wherever_it_is_typed(page, typed, keys, label):
    """The focus is on the question, so that Enter takes the known label."""
    service = LiveLearner(learned(), active_learning=ActiveLearning(seconds=60.0))
    with served(service) as url:
        httpx.post(f"{url}predict", json={"text": "quagmire"}).raise_for_status()
        open_page(page, url)
        explain(page, "zanzibar")
        type_label(page, typed)
        if keys:
            wait(page, lambda: texts(page, "#teach-question button"))
            assert texts(page, "#teach-question p > bdi") == ["spam"] and given(url) == []
            assert ("U+200B" in text(page, "teach-question")) == ("\u200b" in typed)
            press(page, Keys.ESCAPE)
            wait(page, lambda: not text(page, "teach-question"))
            type_label(page, typed)
            wait(page, lambda: texts(page, "#teach-question button"))
            press(page, *keys)
        wait(page, lambda: given(url) == [("zanzibar", label)])
        page.find_element("id", "new-label").send_keys(typed, Keys.ENTER)
        if keys and label == "spam":  # the other one is known by now
            wait(page, lambda: texts(page, "#label-question button"))
            press(page, *keys)
        wait(page, lambda: given(url) == [("quagmire", label), ("zanzibar", label)])
        assert not text(page, "label-question")
        assert_quiet(page)


def test_several_labels_of_a_text_are_taught_together(page):
    service = LiveLearner(several_labels(), active_learning=ActiveLearning(seconds=60.0))
    with served(service) as url:
        learn(url, [{"text": "a", "label": ["wheat", "grain"]}, {"text": "b", "label": ["grain"]}])
        open_page(page, url)
        explain(page, "zanzibar")
        for typed in ("whaet", "grain", MARKUP):
            type_label(page, typed)
        wait(page, lambda: text(page, "teach-chosen") == "Teach 3 labels")
        page.find_element("id", "teach-chosen").click()
        wait(page, lambda: texts(page, "#teach-question p > bdi") == ["wheat"])
        press(page, Keys.ENTER)
        wait(page, lambda: given(url) == [("zanzibar", ["wheat", "grain", MARKUP])])
        assert_no_markup_ran(page)
        assert_quiet(page)


def test_label_buttons_tell_the_probability_and_how_many_were_learned(page):
    service = LiveLearner(TextClassifier(), active_learning=ActiveLearning(seconds=60.0))
    with served(service) as url:
        learn(url, MESSAGES[:200])
        httpx.post(f"{url}predict", json={"text": "free lunch"}).raise_for_status()
        open_page(page, url)
        explain(page, "free lunch")
        answer = httpx.post(f"{url}explain", json={"text": "free lunch"}).json()
        counts = {row["label"]: row["n"] for row in httpx.get(f"{url}monitor").json()["classes"]}
        expected = {(label, f"{chance:.2f} · {counts[label]}") for label, chance in answer["probabilities"]}
        for buttons in ("#teach-labels", "#asked"):
            parts = texts(page, f"{buttons} :is(bdi, small):not(.text bdi)")
            assert {*zip(parts[::2], parts[1::2], strict=True)} == expected


@pytest.fixture(scope="module")
def taught():
    service = LiveLearner(TextClassifier())
    with served(service) as url:
        # Each ends as the other class begins: many answers are wrong.
        learn(url, [{"text": f"{MARKUP if i % 7 == 0 else ''} {i}, =x", "label": "ab"[i // 5 % 2]} for i in range(300)])
        learn(url, {"text": '=1+1 "needle"', "label": "c"})
        for body in ({"text": "a"}, {"text": "a"}, {"text": "a", "label": " "}):
            httpx.post(f"{url}learn", json=body)
        yield url


def test_wrong_answers_are_searched_and_exported(page, taught, tmp_path):
    page.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    open_page(page, taught)
    wrong = httpx.get(f"{taught}wrong").json()["messages"]
    assert len(wrong) > 20
    wait(page, lambda: len(texts(page, "#wrong tr")) == 10)
    assert texts(page, "#wrong .text bdi") == [message["text"] for message in wrong[:10]]
    page.find_element("id", "more-wrong").click()
    wait(page, lambda: len(texts(page, "#wrong tr")) == min(len(wrong), 200))
    page.find_element("id", "wrong-search").send_keys("NEEDLE")
    wait(page, lambda: texts(page, "#wrong .text bdi") == ['=1+1 "needle"'])
    assert text(page, "wrong-line") == "1 wrong answer found."
    page.find_element("id", "wrong-export").click()
    wait(page, (tmp_path / "wrong.csv").exists)
    with open(tmp_path / "wrong.csv", encoding="utf-8-sig", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["text"], row["label"]) == ('\'=1+1 "needle"', "c")
    page.find_element("id", "wrong-search").send_keys("s")
    wait(page, lambda: shown(page, "no-wrong") and not shown(page, "wrong-table"))
    assert_no_markup_ran(page)
    assert_quiet(page)


def test_a_label_that_looks_wrong_is_corrected(page, taught):
    open_page(page, taught)
    wait(page, lambda: shown(page, "wrong-orders"))
    page.find_element("css selector", "#wrong-orders [data-first=suspicious]").click()
    first, second, *_ = httpx.get(f"{taught}wrong", params={"first": "suspicious"}).json()["messages"]
    wait(page, lambda: texts(page, "#wrong .text bdi")[0] == first["text"])
    assert texts(page, "#wrong .outcome .value")[0] == f"{first['label_probability']:.3f}"
    button = page.find_element("css selector", "#wrong .outcome button")
    assert button.text == f"It is {first['predicted']}"
    button.click()
    wait(page, lambda: texts(page, "#wrong .text bdi")[0] == second["text"])
    assert_quiet(page)


def test_times_are_local_and_machines_read_them_too(page, taught):
    page.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Kolkata"})  # half an hour off all others
    try:
        open_page(page, taught)
        newest = httpx.get(f"{taught}monitor").json()["newest"]
        times = page.find_elements("css selector", "#newest time")
        assert [each.get_attribute("datetime") for each in times] == [message["time"] for message in newest]
        assert [each.get_attribute("title") for each in times] == [message["time"] for message in newest]
        minute, second = (int(part) for part in times[0].text.rpartition(" ")[2].split(":")[1:])
        when = datetime.fromisoformat(newest[0]["time"])
        assert (minute - when.minute) % 60 == 30 and second == when.second
    finally:
        page.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


def test_the_page_says_why_requests_failed(page, taught):
    open_page(page, taught)
    rows = [texts(page, f"#reasons tr:nth-child({i}) td")[1:] for i in (1, 2)]
    assert rows == [
        ["POST /learn", "422", "label: it is blank", "1"],
        ["POST /learn", "422", "Object missing required field `label`", "2"],
    ]
    link = page.find_element("id", "n_failed")
    assert link.text == "no request failed, 3 refused" and link.get_attribute("href").endswith("#failures")
    for size in (DESKTOP, TELEPHONE):
        for scheme in ("light", "dark"):
            resize(page, size, scheme)
            explain(page, "x") if not shown(page, "teach") else None
            assert_fits(page)
            assert_contrasts(page)


def test_tenths_of_few_messages_have_no_dot_and_areas_are_as_numbers(page, taught):
    view = httpx.get(f"{taught}monitor").json()
    tenths = [[n, (i + 0.5) / 10, (i + 0.4) / 10] for i, n in enumerate((400, 29, 30, 0, 100, 1, 3, 1_600, 900, 5))]
    with canned({"monitor": (200, {**view, "asks": False, "reliability": tenths})}) as url:
        open_page(page, url)
        wait(page, lambda: page.find_elements("css selector", "#calibration-plot circle"))
        radii = [float(radius) for radius in attributes(page, "#calibration-plot circle", "r")]
        assert len(radii) == 5  # of 400, 30, 100, 1,600 and 900
        largest = max(radii)
        for n, radius in zip((400, 1_600, 900), (radii[0], *radii[3:]), strict=True):
            assert radius == pytest.approx(largest * math.sqrt(n / 1_600), abs=0.06)
        assert "fewer than 30 have no dot" in text(page, "few")
        assert texts(page, "#reliability td:nth-child(2)")[1] == "29"  # the table has them all


@pytest.mark.parametrize("make", [TextClassifier, several_labels])
def test_rows_and_tiles_tell_of_sets(page, make):
    """A row has the labels that may be right beside the one that is predicted."""
    model = make()
    model.set_decision(coverage=0.99)
    as_given = (lambda label: label) if make is TextClassifier else (lambda label: [label])
    with served(LiveLearner(model)) as url:
        rows = [{"text": f"number {i}", "label": as_given(("ham", MARKUP)[i % 2])} for i in range(40)]
        httpx.post(f"{url}learn", json=rows).raise_for_status()
        httpx.post(f"{url}predict", json={"text": "win a number"}).raise_for_status()
        open_page(page, url)
        members = {each["text"]: each["set"] for each in httpx.get(f"{url}monitor").json()["newest"]}
        assert {*members["win a number"]} == {"ham", MARKUP}
        found = texts(page, "#newest .predicted")[0]
        assert "ham" in found and MARKUP in found and "perhaps" in found
        assert {"Coverage", "Sets of one"} <= {*texts(page, ".figure > :first-child")}
        assert_no_markup_ran(page)
        assert_quiet(page)
        resize(page, TELEPHONE)
        assert_fits(page)
