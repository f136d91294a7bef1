"""The page of the service, of a model of two classes."""

import json
from itertools import chain

import pytest
from pages import (
    DESKTOP,
    MARKUP,
    TELEPHONE,
    UNKNOWN,
    assert_contrasts,
    assert_fits,
    assert_no_markup_ran,
    assert_quiet,
    canned,
    displayed_words,
    explanation,
    learn,
    luminance,
    open_page,
    resize,
    score,
    served,
    shown,
    text,
    texts,
    wait,
)

from stream_pegasos import AdaptiveClassifier, TextClassifier
from stream_pegasos.service import Service
from stream_pegasos.streams import synthetic

Keys = pytest.importorskip("selenium.webdriver.common.keys").Keys

EXAMPLES = [{"text": text, "label": label} for text, label in synthetic(n=1_500, seed=1)]


@pytest.fixture(scope="module")
def learned():
    service = Service(TextClassifier())
    with served(service) as url:
        learn(url, EXAMPLES[:1_000])
        yield service, url


@pytest.fixture
def monitor(learned):
    service, _ = learned
    return {**service.view(), "asks": False}


def assert_same(page, data):
    """The figures on the page are those of an answer of /monitor."""
    for name in ("accuracy", "roc_auc", "log_loss", "expected_calibration_error"):
        assert text(page, name) == score(data[name])
    window = data["window"]
    for name in ("accuracy", "roc_auc"):
        assert text(page, f"window_{name}") == f"newest {window['n']:,}: {score(window[name])}"
    (tn, fp), (fn, tp) = data["confusion_matrix"]
    assert [text(page, name) for name in ("tn", "fp", "fn", "tp")] == [f"{cell:,}" for cell in (tn, fp, fn, tp)]
    rows = [(f"{n:,}", *(UNKNOWN if x is None else score(x) for x in rest)) for n, *rest in data["reliability"]]
    assert texts(page, "#reliability td:not(:first-child)") == list(chain.from_iterable(rows))
    assert texts(page, "#newest .text bdi") == [message["text"] for message in data["newest"]]
    for side, words in data["words"].items():
        assert texts(page, f"#{side}-words bdi") == displayed_words(words)
    last = data["curve"][-1]
    assert texts(page, "#first-chart .legend b") == [score(last[1]), score(last[3])]
    assert texts(page, "#second-chart .legend b") == [score(last[2]), score(last[4])]


def test_figures_are_those_of_the_monitor_and_follow_it(page, learned):
    """While focus, what is typed and what is selected stay; no other host is asked for anything."""
    service, url = learned
    open_page(page, url)
    assert text(page, "n") == "1,000" and not shown(page, "nothing")
    assert_same(page, service.view())

    learn(url, EXAMPLES[1_000:])
    wait(page, lambda: text(page, "n") == "1,500")
    assert_same(page, service.view())

    box = page.find_element("id", "try-text")
    box.send_keys("half a sen")
    page.execute_script("getSelection().selectAllChildren(document.querySelector('#newest .text bdi'))")
    selected = page.execute_script("return getSelection().toString()")
    learn(url, [{"text": "one more message", "label": EXAMPLES[0]["label"]}])
    wait(page, lambda: text(page, "n") == "1,501")
    assert texts(page, "#newest .text bdi")[0] == "one more message"
    assert page.execute_script("return getSelection().toString()") == selected != ""
    assert box.get_property("value") == "half a sen" and page.switch_to.active_element == box

    events = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    urls = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert f"{url}monitor" in urls
    assert [each for each in urls if not each.startswith((url, "data:", "about:"))] == []
    assert_quiet(page)


def test_charts_are_read_with_the_keyboard(page, learned):
    service, url = learned
    open_page(page, url)
    rows = service.view()["curve"]
    slider = page.find_element("css selector", "#first-chart input")
    page.execute_script("arguments[0].focus()", slider)
    slider.send_keys(Keys.HOME)
    assert texts(page, ".legend .at") == [f"at message {rows[0][0]:,}"] * 2
    assert texts(page, "#first-chart .legend b") == [score(rows[0][1]), score(rows[0][3])]
    slider.send_keys(Keys.ARROW_RIGHT)
    assert slider.get_attribute("aria-valuetext").startswith(f"at message {rows[1][0]:,}: {score(rows[1][1])} of all")
    slider.send_keys(Keys.TAB)
    assert texts(page, "#first-chart .at") == [f"at message {rows[-1][0]:,}"]
    for chart, column in (("first-chart", 1), ("second-chart", 2)):
        label = page.find_element("css selector", f"#{chart} svg[role=img]").get_attribute("aria-label")
        assert score(rows[-1][column]) in label
        points = page.find_element("css selector", f"#{chart} .line-whole").get_attribute("d")
        assert points.count("L") + points.count("M") == sum(row[column] is not None for row in rows)


def test_a_text_is_tried_with_the_keyboard_alone(page, learned):
    _, url = learned
    open_page(page, url)
    question = "claim your free prize, and then some more words that no message had"
    answer = explanation(url, text=question)
    for _ in range(20):
        page.switch_to.active_element.send_keys(Keys.TAB)
        if page.switch_to.active_element.get_attribute("id") == "try-text":
            break
    page.switch_to.active_element.send_keys(question, Keys.ENTER)
    wait(page, lambda: shown(page, "why"))
    assert texts(page, "#verdict bdi") == [str(answer["label"])]
    assert f"probability {score(answer['probability'])}" in text(page, "verdict")
    assert texts(page, "#contributions bdi") == displayed_words(answer["contributions"])
    items = page.find_elements("css selector", "#contributions li")
    sides = ["for" if size > 0 else "against" for _, size in answer["contributions"]]
    assert [item.get_attribute("class") for item in items] == sides

    assert len(items) > 12 == sum(item.is_displayed() for item in items)
    for key in (Keys.TAB, Keys.TAB, Keys.ENTER):
        page.switch_to.active_element.send_keys(key)
    assert page.switch_to.active_element.get_attribute("id") == "more"
    assert all(item.is_displayed() for item in items)
    assert_quiet(page)


def test_markup_is_shown_as_text(page):
    plain = "<b>plain</b>"
    messages = [{"text": f"{MARKUP} {('win', 'lunch')[i % 2]}", "label": (MARKUP, plain)[i % 2]} for i in range(60)]
    with served(Service(TextClassifier())) as url:
        learn(url, messages)
        open_page(page, url)
        assert texts(page, "#newest .text bdi")[0] == f"{MARKUP} lunch"
        labels = {*texts(page, "#newest .outcome bdi"), *texts(page, "bdi.negative, bdi.positive")}
        assert labels - {""} == {MARKUP, plain}
        page.find_element("id", "try-text").send_keys(f"{MARKUP} win", Keys.ENTER)
        wait(page, lambda: shown(page, "why"))
        assert texts(page, "#verdict bdi") == [MARKUP]
        assert_no_markup_ran(page)
        for size in (DESKTOP, TELEPHONE):
            resize(page, size)
            assert_fits(page)
        assert_quiet(page)


@pytest.mark.parametrize("size", [DESKTOP, TELEPHONE], ids=["desktop", "telephone"])
def test_fits_and_contrasts(page, learned, size):
    open_page(page, learned[1])
    page.find_element("id", "try-text").send_keys("claim your free prize", Keys.ENTER)
    wait(page, lambda: shown(page, "why"))
    for scheme in ("light", "dark"):
        resize(page, size, scheme)
        assert page.execute_script("return innerWidth") == size[0]
        assert_fits(page)
        assert_contrasts(page)
        dark = luminance(page.execute_script("return getComputedStyle(document.body).backgroundColor")) < 0.1
        assert dark == (scheme == "dark")


def test_a_service_that_begins_ends_and_comes_back(page):
    service = Service(TextClassifier())
    with served(service) as url:
        open_page(page, url)
        assert shown(page, "nothing") and not shown(page, "notice")
        assert text(page, "accuracy") == text(page, "roc_auc") == UNKNOWN
        assert not any(chart.is_displayed() for chart in page.find_elements("css selector", "main svg"))
        learn(url, [{"text": "only one", "label": "ham"}])
        wait(page, lambda: text(page, "n") == "1")
        assert not shown(page, "nothing")
        body = page.find_element("tag name", "body").text
        assert "NaN" not in body and "undefined" not in body
        assert_quiet(page)
    wait(page, lambda: shown(page, "notice"))
    assert "cannot be reached" in text(page, "notice") and text(page, "state") == "No connection"
    page.find_element("id", "try-text").send_keys("a text", Keys.ENTER)
    wait(page, lambda: text(page, "try-error") == "The service cannot be reached.")
    with served(service, int(url.rstrip("/").rpartition(":")[2])):
        wait(page, lambda: not shown(page, "notice"))
        assert text(page, "state") == "Live"


def test_drift_is_marked_on_the_time_line(page):
    from river.drift.binary import HDDMW

    service = Service(TextClassifier(classifier=AdaptiveClassifier(drift_detector=HDDMW())))
    with served(service) as url:
        learn(url, EXAMPLES)
        labels = sorted({example["label"] for example in EXAMPLES})
        learn(url, [{**example, "label": labels[example["label"] == labels[0]]} for example in EXAMPLES[:500]])
        drifts = service.view()["drifts"]
        open_page(page, url)
        assert f"the last one at message {drifts[-1]:,}" in text(page, "drifts")
        for chart in ("first-chart", "second-chart"):
            marks = page.find_elements("css selector", f"#{chart} line.drift")
            width = page.find_element("css selector", f"#{chart} .plot").size["width"]
            # The time line of 2,000 messages lies between the labels at the left and a margin.
            places = [44 + n / 2_000 * (width - 44 - 12) for n in drifts]
            assert [float(mark.get_attribute("x1")) for mark in marks] == pytest.approx(places, abs=1)


# Answers that a real service gives only in trouble, or with options of its own --------------------


def test_asks_for_the_token(page, monitor):
    with canned({"monitor": (200, monitor)}, token="secret") as url:
        page.get(url)
        wait(page, lambda: shown(page, "token-form"))
        assert text(page, "state") == "Token needed"
        assert page.switch_to.active_element.get_attribute("id") == "token"
        box = page.find_element("id", "token")
        for token, told in (("wrong", "That token was not accepted."), ("sécret", "ASCII")):
            box.clear()
            box.send_keys(token, Keys.ENTER)
            wait(page, lambda told=told: told in text(page, "token-error"))
        box.clear()
        box.send_keys("secret", Keys.ENTER)
        wait(page, lambda: text(page, "n") == f"{monitor['n']:,}")
        assert not shown(page, "token-form")
        page.refresh()
        wait(page, lambda: text(page, "state") == "Live")
        assert page.execute_script("return localStorage.length") == 0
        page.execute_script("sessionStorage.clear()")


def test_says_what_went_wrong(page, monitor):
    checkpoint = {"path": "mail.safetensors", "seconds_ago": 3_700.0, "error": "No space left on device"}
    answers = {
        "monitor": (200, {**monitor, "checkpoint": checkpoint}),
        "explain": (413, {"detail": "the text is too long"}),
    }
    with canned(answers) as url:
        page.get(url)
        wait(page, lambda: shown(page, "checkpoint-notice"))
        assert "mail.safetensors cannot be written: No space left on device" in text(page, "checkpoint-notice")
        assert text(page, "saved") == "1 h 1 min ago"
        page.find_element("id", "try-text").send_keys("a text", Keys.ENTER)
        wait(page, lambda: text(page, "try-error") == "the text is too long")
        answers["monitor"] = (503, {"detail": "too many requests"})
        wait(page, lambda: "too many requests" in text(page, "notice"))
        answers["monitor"] = (200, {**monitor, "checkpoint": None})
        wait(page, lambda: not shown(page, "notice"))
        assert not shown(page, "checkpoint-notice") and text(page, "checkpoint") == "none is kept"


def test_labels_of_any_kind_and_messages_without(page, monitor):
    message = {"number": 1, "text": "hello", "label": None, "predicted": True, "probability": 0.75, "margin": 1.1}
    again = {**message, "number": None, "text": "again"}
    newest = [
        message,
        {**message, "label": True},
        {**message, "label": False},
        {**message, "label": 0, "predicted": None, "probability": None, "margin": None, "text": " \u202e"},
        *[again] * 3,
    ]
    data = {**monitor, "model": {**monitor["model"], "classes": [False, True]}, "newest": newest}
    answers = {"monitor": (200, data)}
    with canned(answers) as url:
        open_page(page, url)
        for n in (1, 2):  # also when the figures came a second time
            answers["monitor"] = (200, {**data, "n": n})
            wait(page, lambda n=n: text(page, "n") == str(n))
            assert texts(page, "#newest .text bdi")[4:] == ["again"] * 3
        outcomes = [" ".join(outcome.split()) for outcome in texts(page, "#newest .outcome")]
        assert outcomes[:4] == ["no label", "✓ right", "✗ is false", "label 0"]
        assert texts(page, "#newest .predicted bdi")[:4] == ["true", "true", "true", UNKNOWN]
        assert texts(page, "#newest .margin")[:4] == ["+1.10", "+1.10", "+1.10", UNKNOWN]
        assert texts(page, ".words h3 bdi") == ["false", "true"]
        assert_quiet(page)
