"""The page of the service."""

import json
from itertools import chain

import pytest
from pages import (
    DESKTOP,
    MARKUP,
    TELEPHONE,
    UNKNOWN,
    Service,
    assert_contrasts,
    assert_fits,
    assert_quiet,
    canned,
    httpx,
    luminance,
    open_page,
    resize,
    score,
    shown,
    text,
    texts,
    wait,
)

from stream_pegasos.streams import synthetic

Keys = pytest.importorskip("selenium.webdriver.common.keys").Keys

EXAMPLES = [{"text": text, "label": label} for text, label in synthetic(n=1_500, seed=1)]


@pytest.fixture(scope="module")
def serve():
    services = []

    def start(*options):
        services.append(Service(*options))
        return services[-1]

    yield start
    for service in services:
        service.kill()


@pytest.fixture(scope="module")
def service(serve):
    service = serve()
    service.learn(EXAMPLES[:1_000])
    return service


def assert_same(page, data):
    """The figures on the page are those of an answer of /monitor."""
    for name in ("accuracy", "roc_auc", "log_loss", "expected_calibration_error"):
        assert text(page, name) == score(data[name])
    window = data["window"]
    assert text(page, "window_accuracy") == f"newest {window['n']:,}: {score(window['accuracy'])}"
    assert text(page, "window_roc_auc") == f"newest {window['n']:,}: {score(window['roc_auc'])}"
    (tn, fp), (fn, tp) = data["confusion_matrix"]
    assert [text(page, name) for name in ("tn", "fp", "fn", "tp")] == [f"{cell:,}" for cell in (tn, fp, fn, tp)]
    rows = [(f"{n:,}", *(UNKNOWN if x is None else score(x) for x in rest)) for n, *rest in data["reliability"]]
    assert texts(page, "#reliability td:not(:first-child)") == list(chain.from_iterable(rows))
    assert texts(page, "#newest .text bdi") == [message["text"] for message in data["newest"]]
    for side, words in data["words"].items():
        ngrams = [ngram[1:] + "…" if ngram.startswith(" ") else ngram for ngram, _ in words]
        assert texts(page, f"#{side}-words bdi") == ngrams
    last = data["curve"][-1]
    assert texts(page, "#first-chart .legend b") == [score(last[1]), score(last[3])]
    assert texts(page, "#second-chart .legend b") == [score(last[2]), score(last[4])]


def test_figures_are_those_of_the_monitor_and_follow_it(page, service):
    open_page(page, service)
    data = service.monitor()
    assert data["n"] == 1_000
    assert text(page, "n") == "1,000"
    assert_same(page, data)
    assert not shown(page, "nothing")

    service.learn(EXAMPLES[1_000:])
    wait(page, lambda: text(page, "n") == "1,500")
    assert_same(page, service.monitor())
    assert_quiet(page)


def test_polling_keeps_focus_typing_and_selection(page, service):
    open_page(page, service)
    box = page.find_element("id", "try-text")
    box.send_keys("half a sen")
    select = "getSelection().selectAllChildren(document.querySelector('#newest .text bdi'))"
    page.execute_script(select)
    selected = page.execute_script("return getSelection().toString()")
    assert selected
    n = service.monitor()["n"]
    service.learn({"text": "one more message", "label": EXAMPLES[0]["label"]})
    wait(page, lambda: text(page, "n") == f"{n + 1:,}")
    assert texts(page, "#newest .text bdi")[0] == "one more message"
    assert page.execute_script("return getSelection().toString()") == selected
    assert box.get_property("value") == "half a sen"
    assert page.switch_to.active_element == box


def test_charts_are_read_with_the_keyboard(page, service):
    open_page(page, service)
    rows = service.monitor()["curve"]
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


def test_a_text_is_tried_with_the_keyboard_alone(page, service):
    open_page(page, service)
    question = "claim your free prize, and then some more words that no message had"
    answer = httpx.post(f"{service.url}/explain", json={"text": question}).raise_for_status().json()
    for _ in range(20):
        page.switch_to.active_element.send_keys(Keys.TAB)
        if page.switch_to.active_element.get_attribute("id") == "try-text":
            break
    page.switch_to.active_element.send_keys(question, Keys.ENTER)
    wait(page, lambda: shown(page, "why"))
    assert texts(page, "#verdict bdi") == [str(answer["label"])]
    assert f"probability {score(answer['probability'])}" in text(page, "verdict")
    ngrams = [ngram[1:] + "…" if ngram.startswith(" ") else ngram for ngram, _ in answer["contributions"]]
    assert texts(page, "#contributions bdi") == ngrams
    items = page.find_elements("css selector", "#contributions li")
    sides = ["for" if size > 0 else "against" for _, size in answer["contributions"]]
    assert [item.get_attribute("class") for item in items] == sides

    in_sight = [item.is_displayed() for item in items]
    assert len(in_sight) > 12 == sum(in_sight)
    page.switch_to.active_element.send_keys(Keys.TAB)
    page.switch_to.active_element.send_keys(Keys.TAB)
    assert page.switch_to.active_element.get_attribute("id") == "more"
    page.switch_to.active_element.send_keys(Keys.ENTER)
    assert all(item.is_displayed() for item in items)
    assert_quiet(page)


def test_markup_is_shown_as_text(page, serve):
    service = serve()
    plain = "<b>plain</b>"
    service.learn([{"text": f"{MARKUP} {('win', 'lunch')[i % 2]}", "label": (MARKUP, plain)[i % 2]} for i in range(60)])
    open_page(page, service)
    wait(page, lambda: text(page, "n") == "60")
    assert texts(page, "#newest .text bdi")[0] == f"{MARKUP} lunch"
    assert {*texts(page, "#newest .outcome bdi"), *texts(page, "bdi.negative, bdi.positive")} - {""} == {MARKUP, plain}
    page.find_element("id", "try-text").send_keys(f"{MARKUP} win", Keys.ENTER)
    wait(page, lambda: shown(page, "why"))
    assert texts(page, "#verdict bdi") == [MARKUP]
    assert page.execute_script("return document.querySelectorAll('img, body script, bdi *').length") == 0
    assert page.title == "stream-pegasos"
    for size in (DESKTOP, TELEPHONE):
        resize(page, size)
        assert_fits(page)
    assert_quiet(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, TELEPHONE], ids=["desktop", "telephone"])
def test_fits_and_contrasts(page, service, size, scheme):
    resize(page, size, scheme)
    open_page(page, service)
    page.find_element("id", "try-text").send_keys("claim your free prize", Keys.ENTER)
    wait(page, lambda: shown(page, "why"))
    assert page.execute_script("return innerWidth") == size[0]
    assert_fits(page)
    assert_contrasts(page)
    dark = luminance(page.execute_script("return getComputedStyle(document.body).backgroundColor")) < 0.1
    assert dark == (scheme == "dark")


def test_asks_no_other_host(page, service):
    open_page(page, service)
    events = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    urls = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert f"{service.url}/monitor" in urls
    assert [url for url in urls if not url.startswith((f"{service.url}/", "data:", "about:"))] == []


def test_before_anything_is_learned_and_after_the_first_message(page, serve):
    service = serve()
    open_page(page, service)
    assert shown(page, "nothing")
    assert text(page, "accuracy") == text(page, "roc_auc") == UNKNOWN
    body = page.find_element("tag name", "body")
    assert "NaN" not in body.text and "undefined" not in body.text
    assert not any(chart.is_displayed() for chart in page.find_elements("css selector", "main svg"))
    service.learn([{"text": "only one", "label": "ham"}])
    wait(page, lambda: text(page, "n") == "1")
    assert not shown(page, "nothing")
    assert "NaN" not in body.text and "undefined" not in body.text
    assert_quiet(page)


def test_drift_is_marked_on_the_time_line(page, serve):
    service = serve("--drift-detector", "HDDMW")
    service.learn(EXAMPLES)
    labels = sorted({example["label"] for example in EXAMPLES})
    service.learn([{**example, "label": labels[example["label"] == labels[0]]} for example in EXAMPLES[:500]])
    drifts = service.monitor()["drifts"]
    assert drifts
    open_page(page, service)
    wait(page, lambda: text(page, "n") == "2,000")
    assert f"the last one at message {drifts[-1]:,}" in text(page, "drifts")
    for chart in ("first-chart", "second-chart"):
        marks = page.find_elements("css selector", f"#{chart} line.drift")
        width = page.find_element("css selector", f"#{chart} .plot").size["width"]
        assert len(marks) == len(drifts)
        # The time line of 2,000 messages lies between the labels at the left and a margin.
        places = [44 + n / 2_000 * (width - 44 - 12) for n in drifts]
        assert [float(mark.get_attribute("x1")) for mark in marks] == pytest.approx(places, abs=1)


def test_the_same_message_again_is_one_row_each_time(page, monitor):
    message = {"number": None, "text": "again", "label": None, "predicted": "ham", "probability": 0.75, "margin": -1.1}
    answers = {"monitor": (200, {**monitor, "newest": [message] * 3})}
    with canned(answers) as url:
        page.get(url)
        for n in (1, 2):  # also when the figures came a second time
            answers["monitor"] = (200, {**answers["monitor"][1], "n": n})
            wait(page, lambda n=n: text(page, "n") == str(n))
            assert texts(page, "#newest .text bdi") == ["again"] * 3


def test_a_service_that_ends_and_comes_back(page, serve):
    service = serve()
    open_page(page, service)
    assert not shown(page, "notice")
    service.kill()
    wait(page, lambda: shown(page, "notice"))
    assert "cannot be reached" in text(page, "notice")
    assert text(page, "state") == "No connection"
    page.find_element("id", "try-text").send_keys("a text", Keys.ENTER)
    wait(page, lambda: text(page, "try-error") == "The service cannot be reached.")
    service.start()
    wait(page, lambda: not shown(page, "notice"))
    assert text(page, "state") == "Live"


# Answers that a real service gives only in trouble, or with options of its own --------------------


@pytest.fixture
def monitor(service):
    return {**service.monitor(), "asks": False}


def test_asks_for_the_token(page, monitor):
    with canned({"monitor": (200, monitor)}, token="secret") as url:
        page.get(url)
        wait(page, lambda: shown(page, "token-form"))
        assert text(page, "state") == "Token needed"
        assert page.switch_to.active_element.get_attribute("id") == "token"
        box = page.find_element("id", "token")
        box.send_keys("wrong", Keys.ENTER)
        wait(page, lambda: text(page, "token-error") == "That token was not accepted.")
        box.clear()
        box.send_keys("sécret", Keys.ENTER)
        wait(page, lambda: "ASCII" in text(page, "token-error"))
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
        assert not shown(page, "checkpoint-notice")
        assert text(page, "checkpoint") == "none is kept"


def test_labels_of_any_kind_and_messages_without(page, monitor):
    message = {"number": 1, "text": "hello", "label": None, "predicted": True, "probability": 0.75, "margin": 1.1}
    newest = [
        message,
        {**message, "label": True},
        {**message, "label": False},
        {**message, "label": 0, "predicted": None, "probability": None, "margin": None, "text": " \u202e"},
    ]
    model = {**monitor["model"], "classes": [False, True]}
    with canned({"monitor": (200, {**monitor, "model": model, "newest": newest})}) as url:
        page.get(url)
        wait(page, lambda: text(page, "state") == "Live")
        outcomes = [" ".join(outcome.split()) for outcome in texts(page, "#newest .outcome")]
        assert outcomes == ["no label", "✓ right", "✗ is false", "label 0"]
        assert texts(page, "#newest .predicted bdi") == ["true", "true", "true", UNKNOWN]
        assert texts(page, "#newest .margin") == ["+1.10", "+1.10", "+1.10", UNKNOWN]
        assert texts(page, ".words h3 bdi") == ["false", "true"]
        assert_quiet(page)
