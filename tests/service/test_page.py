"""The page of the service."""

import asyncio
import json
import random

import pytest
from kinds import ordered, several_labels
from pages import (
    DESKTOP,
    MARKUP,
    TELEPHONE,
    UNKNOWN,
    assert_contrasts,
    assert_fits,
    assert_no_markup_ran,
    assert_quiet,
    assert_same,
    assert_words,
    attributes,
    canned,
    displayed_words,
    explanation,
    httpx,
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
from serving import name_all_features

from stream_pegasos import TextClassifier, TextFeatures
from stream_pegasos.runtime.live_learner import LiveLearner
from stream_pegasos.streams import synthetic

Keys = pytest.importorskip("selenium.webdriver.common.keys").Keys

pytestmark = pytest.mark.heavy

EXAMPLES = [{"text": text, "label": label} for text, label in synthetic(n=1_500, seed=1)]
TOPICS = ["card lost", "cash fee", "pin blocked", "top up", "exchange rate", "refund"]


def stream(n, labels, seed=0):
    """Texts of two words that belong to their label, and of two that belong to none."""
    generator = random.Random(seed)
    for number in range(n):
        # Each at least once, the first ones more often.
        i = number if number < len(labels) else min(generator.choices(range(len(labels)), k=2))
        words = [f"{TOPICS[i % 6]} {i}", *generator.choices(("please", "why", "help", "now"), k=2)]
        generator.shuffle(words)
        yield " ".join(words), labels[i]


def taught(model, examples):
    service = LiveLearner(model)

    async def learn():
        for example in examples:
            await service.learn([example])

    with pytest.MonkeyPatch.context() as patch:
        name_all_features(patch)
        asyncio.run(learn())
    return service


def holding(examples):
    """Labels that hold together: that of a text and, where it says please, another one."""
    for i, (x, label) in enumerate(examples):
        yield x, () if i % 9 == 0 else (label, "please") if "please" in x else (label,)


@pytest.fixture(scope="module")
def learned():
    service = LiveLearner(TextClassifier())
    with served(service) as url:
        learn(url, EXAMPLES[:1_000])
        yield service, url


@pytest.fixture(scope="module")
def classes():
    """A service of 30 classes."""
    service = taught(TextClassifier(), stream(600, [f"label_of_class_{i}" for i in range(30)]))
    with served(service) as url:
        yield service, url


@pytest.fixture
def monitor(learned):
    service, _ = learned
    return {**service.view(), "asks": False}


def test_figures_of_many_classes_are_those_of_the_monitor(page, classes):
    service, url = classes
    open_page(page, url)
    assert_same(page, service.view())
    assert texts(page, ".chart:not([hidden]) h3") == ["Accuracy", "Macro F1"]
    assert "the predicted label was true" in text(page, "calibrated")
    assert not shown(page, "picker-choices")
    assert_quiet(page)


def test_figures_are_those_of_the_monitor_and_follow_it(page, learned):
    """While focus, what is typed and what is selected stay; no other host is asked for anything."""
    service, url = learned
    open_page(page, url)
    assert text(page, "n") == "1,000" and not shown(page, "nothing")
    assert text(page, "n_unanswered") == "1 had no answer yet"
    assert_same(page, service.view())
    assert_words(page, service.words("spam"))
    assert texts(page, ".chart h3") == ["Accuracy", "Macro F1", "ROC AUC"]
    assert (text(page, "n_classes"), text(page, "positive")) == ("2, the positive one ", "spam")
    assert "How often spam was true" in text(page, "calibrated")

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
    curve = service.view()["curve"]
    n, first, newest = (curve[name] for name in ("n", "accuracy", "window_accuracy"))
    slider = page.find_element("css selector", "#chart-1 input")
    page.execute_script("arguments[0].focus()", slider)
    slider.send_keys(Keys.HOME)
    assert texts(page, ".legend .at") == [f"at message {n[0]:,}"] * 3
    assert texts(page, "#chart-1 .legend b") == [score(first[0]), score(newest[0])]
    slider.send_keys(Keys.ARROW_RIGHT)
    assert slider.get_attribute("aria-valuetext").startswith(f"at message {n[1]:,}: {score(first[1])} of all")
    slider.send_keys(Keys.TAB)
    assert texts(page, "#chart-1 .at") == [f"at message {n[-1]:,}"]
    for chart, name in (("chart-1", "accuracy"), ("chart-2", "macro_f1"), ("chart-3", "roc_auc")):
        (label,) = attributes(page, f"#{chart} svg[role=img]", "aria-label")
        assert score(curve[name][-1]) in label
        (points,) = attributes(page, f"#{chart} .line-whole", "d")
        assert points.count("L") + points.count("M") == sum(value is not None for value in curve[name])


def test_a_message_of_fields_is_tried(page):
    model = TextClassifier(TextFeatures(on="subject") + TextFeatures(on="body"))
    with served(LiveLearner(model)) as url:
        learn(url, [{"subject": text[:9], "body": text[9:], "label": y} for text, y in synthetic(n=100, seed=1)])
        open_page(page, url)
        answer = explanation(url, subject="free prize", body="claim\nit: now")
        box = page.find_element("id", "try-text")
        wait(page, lambda: box.get_attribute("placeholder") == "subject: \nbody: ")
        page.execute_script("arguments[0].value = 'subject: free prize\\nbody: claim\\nit: now'", box)
        page.find_element("css selector", "#try-form button").click()
        wait(page, lambda: shown(page, "why"))
        assert texts(page, "#contributions bdi") == displayed_words(answer["contributions"])
        assert f"probability {score(answer['probability'])}" in text(page, "verdict")


def test_a_text_is_tried_with_the_keyboard_alone(page, learned):
    _, url = learned
    open_page(page, url)
    question = "claim free prize lunch meeting cash report winner agenda now team urgent noon notes offer budget friday"
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
    chances = texts(page, "#chances bdi")
    assert chances == [label for label, _ in answer["probabilities"]] and len(chances) == 2
    assert [text(page, "left-label"), text(page, "right-label")] == [answer["against"], answer["explained"]]
    for key in (Keys.TAB, *[Keys.TAB] * len(chances), Keys.TAB, Keys.ENTER):  # past the labels
        page.switch_to.active_element.send_keys(key)
    assert page.switch_to.active_element.get_attribute("id") == "more"
    assert all(item.is_displayed() for item in items)
    assert_quiet(page)


def test_a_service_that_begins_ends_and_comes_back(page):
    service = LiveLearner(TextClassifier())
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


def test_what_is_not_known_has_no_column_and_nothing_right_no_narrow_axis(page, monitor):
    newest = [{**message, "second": None, "second_probability": None} for message in monitor["newest"]]
    curve = {**monitor["curve"], **dict.fromkeys(("accuracy", "window_accuracy"), [0.0] * len(monitor["curve"]["n"]))}
    with canned({"monitor": (200, {**monitor, "newest": newest, "curve": curve, "docs_per_second": 0.05})}) as url:
        open_page(page, url)
        heads = page.find_elements("css selector", "#newest-table thead th")
        assert [head.text for head in heads if head.is_displayed()][-2:] == ["Probability", "Outcome"]
        assert (text(page, "docs_per_second"), text(page, "speed-unit")) == ("3", "messages/min")
        assert {"0.0", "1.0"} <= {*texts(page, "#chart-1 svg text[text-anchor=end]")}


def test_words_of_a_class_are_picked_with_the_keyboard(page, classes):
    service, url = classes
    open_page(page, url)
    commonest = service.view()["classes"][0]["label"]
    picker = page.find_element("id", "picker")
    wait(page, lambda: texts(page, "#positive-words bdi"))
    assert picker.get_property("value") == commonest

    picker.click()
    wait(page, lambda: len(texts(page, "#picker-list li")) == 30)
    picker.send_keys(Keys.CONTROL, "a")
    picker.send_keys("CLASS_2")
    found = [row["label"] for row in service.classes("class_2", 50)["classes"]]
    assert len(found) == 11
    wait(page, lambda: texts(page, "#picker-list bdi") == found)
    picker.send_keys(Keys.ARROW_DOWN)
    active = picker.get_attribute("aria-activedescendant")
    assert texts(page, f"#{active} bdi") == [found[1]]
    picker.send_keys(Keys.ESCAPE)
    assert not shown(page, "picker-choices")
    assert picker.get_property("value") == commonest

    picker.send_keys("S_3")
    wait(page, lambda: texts(page, "#picker-list bdi") == ["label_of_class_3"])
    picker.send_keys(Keys.ENTER)
    wait(page, lambda: picker.get_property("value") == "label_of_class_3")
    expected = httpx.get(f"{url}monitor", params={"label": "label_of_class_3"}).raise_for_status().json()["words"]
    ngrams = displayed_words(expected["positive"])
    wait(page, lambda: texts(page, "#positive-words bdi") == ngrams)
    assert "top" in ngrams

    page.find_element("css selector", "#classes tr:nth-child(2) button").click()
    second = service.view()["classes"][1]["label"]
    wait(page, lambda: picker.get_property("value") == second)
    assert texts(page, "#classes [aria-pressed=true] bdi") == [second]
    assert_quiet(page)


def test_a_text_is_explained_for_the_first_and_the_second_and_any_other(page, classes):
    _, url = classes
    open_page(page, url)
    question = {"text": "card lost 0, or cash fee 1 maybe"}
    answer = explanation(url, **question)
    page.find_element("id", "try-text").send_keys(question["text"], Keys.ENTER)
    wait(page, lambda: shown(page, "why"))
    assert texts(page, "#verdict bdi") == [answer["label"]]
    best = [label for label, _ in answer["probabilities"][:5]]
    assert texts(page, "#chances bdi") == best
    assert [text(page, "left-label"), text(page, "right-label")] == [best[1], best[0]]
    assert texts(page, "#contributions .value")[0].lstrip("+−") == f"{abs(answer['contributions'][0][1]):.2f}"

    page.find_element("css selector", "#chances li:nth-child(3) button").click()
    wait(page, lambda: text(page, "left-label") == text(page, "right-label") == best[2])
    named = explanation(url, **question, label=best[2])
    assert texts(page, "#contributions .value")[0].lstrip("+−") == f"{abs(named['contributions'][0][1]):.2f}"
    assert texts(page, "#verdict bdi") == [answer["label"]]
    assert_quiet(page)


def test_labels_that_hold_together(page):
    service = taught(several_labels(), holding(stream(150, ["earn", "grain", "wheat"])))
    with served(service) as url:
        open_page(page, url)
        assert_same(page, service.view())
        page.find_element("id", "try-text").send_keys("grain grain: card lost 0 please", Keys.ENTER)
        wait(page, lambda: shown(page, "why"))
        answer = asyncio.run(service.explain("grain grain: card lost 0 please"))
        assert texts(page, "#verdict bdi") == list(answer["label"])
        ticked = [chance.startswith("✓") for chance in texts(page, "#chances .value")]
        assert ticked == [label in answer["label"] for label, _ in answer["probabilities"]]
        assert_quiet(page)


def test_ordered_classes(page):
    service = taught(ordered(), stream(300, [0, 1, 2, 3, 4]))
    with served(service) as url:
        open_page(page, url)
        assert_same(page, service.view())
        assert texts(page, ".chart:not([hidden]) h3") == ["Accuracy", "Mean absolute error"]
        assert_words(page, service.words(None))
        assert texts(page, ".words h3") == ["for lower labels", "for higher labels"]
        assert not shown(page, "picker")
        assert_quiet(page)


def test_a_third_class_changes_what_is_shown_in_place(page, monitor, classes):
    service, _ = classes
    answers = {"monitor": (200, monitor)}
    with canned(answers) as url:
        open_page(page, url)
        assert shown(page, "roc_auc") and shown(page, "chart-3")
        answers["monitor"] = (200, {**service.view(), "checkpoint": None})
        wait(page, lambda: len(texts(page, "#classes tr")) == 21)
        assert not shown(page, "chart-3")
        assert_same(page, service.view())


STRANGE = [MARKUP, "a" * 1_000, "\u202eright to left", "שלום עולם " * 30, "", "\ud800", "x y " * 90, True, 2**70, "-0"]


@pytest.mark.parametrize("size", [DESKTOP, TELEPHONE], ids=["desktop", "telephone"])
def test_labels_of_strangers_are_shown_as_text_fit_and_contrast(page, size):
    with served(taught(TextClassifier(), [*stream(200, STRANGE), (MARKUP, MARKUP)])) as url:
        resize(page, size)
        open_page(page, url)
        assert texts(page, "#newest .text bdi")[0] == MARKUP
        page.find_element("id", "try-text").send_keys(f"{MARKUP} card lost 0", Keys.ENTER)
        wait(page, lambda: shown(page, "why"))
        page.find_element("id", "picker").click()
        wait(page, lambda: shown(page, "picker-choices"))
        assert MARKUP in texts(page, "#classes button bdi")
        assert_no_markup_ran(page)
        for scheme in ("light", "dark"):
            resize(page, size, scheme)
            assert page.execute_script("return innerWidth") == size[0]
            assert_fits(page)
            assert_contrasts(page)
            dark = luminance(page.execute_script("return getComputedStyle(document.body).backgroundColor")) < 0.1
            assert dark == (scheme == "dark")
        # The label of one character above 200 is cut off, and found by what is shown of it.
        long = next(button for button in texts(page, "#classes button bdi") if button.startswith("aa"))
        assert long == "a" * 199 + "…"
        assert httpx.get(f"{url}monitor", params={"label": long}).status_code == 200
        assert_quiet(page)


# Answers that a real service gives only in trouble, or with options of its own --------------------


def test_asks_for_the_token(page, monitor):
    with canned({"monitor": (200, monitor)}, token="secret") as url:
        page.get(url)
        wait(page, lambda: shown(page, "token-form"))
        assert text(page, "state") == "Token needed" and not shown(page, "main")
        assert page.switch_to.active_element.get_attribute("id") == "token"
        box = page.find_element("id", "token")
        for token, told in (("wrong", "That token was not accepted."), ("sécret", "ASCII")):
            box.clear()
            box.send_keys(token, Keys.ENTER)
            wait(page, lambda told=told: told in text(page, "token-error"))
        box.clear()
        box.send_keys("secret", Keys.ENTER)
        wait(page, lambda: text(page, "n") == f"{monitor['n']:,}")
        assert not shown(page, "token-form") and shown(page, "main")
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
    message = {"number": 1, "text": "hello", "label": None, "predicted": True, "probability": 0.75, "right": None}
    message |= {"second": False, "second_probability": 0.25}
    again = {**message, "number": None, "text": "again"}
    newest = [
        message,
        {**message, "label": True, "right": True},
        {**message, "label": False, "right": False},
        {**message, "label": 0, "predicted": None, "probability": None, "second": None, "text": " \u202e"},
        *[again] * 3,
    ]
    data = {**monitor, "newest": newest}
    answers = {"monitor": (200, {**data, "words": {"positive": [], "negative": []}})}
    with canned(answers) as url:
        open_page(page, url)
        for n in (1, 2):  # also when the figures came a second time
            answers["monitor"] = (200, {**data, "n": n})
            wait(page, lambda n=n: text(page, "n") == str(n))
            assert texts(page, "#newest .text bdi")[4:] == ["again"] * 3
        outcomes = [" ".join(outcome.split()) for outcome in texts(page, "#newest .outcome")]
        assert outcomes[:4] == ["no label", "✓ right", "✗ is false", "label 0"]
        assert texts(page, "#newest .predicted bdi")[:4] == ["true", "true", "true", UNKNOWN]
        assert texts(page, "#newest .probability")[:4] == ["0.750", "0.750", "0.750", UNKNOWN]
        assert texts(page, "#newest .second bdi")[:4] == ["false", "false", "false", UNKNOWN]
        assert_quiet(page)
