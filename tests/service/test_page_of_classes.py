"""The page of a model of more than two classes."""

import asyncio
import math
import random

import pytest
from kinds import ordered, several_classes, several_labels
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
    httpx,
    open_page,
    resize,
    score,
    served,
    shown,
    text,
    texts,
    wait,
)

from stream_pegasos.operation import monitor
from stream_pegasos.service import Service

Keys = pytest.importorskip("selenium.webdriver.common.keys").Keys

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


def learned(model, examples):
    service = Service(model)

    async def learn():
        for example in examples:
            await service.learn([example])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(monitor, "SHARE_FOR_NAMES", math.inf)  # or the time decides which words have names
        asyncio.run(learn())
    return service


def holding(examples):
    """Labels that hold together: that of a text and, where it says please, another one."""
    for i, (x, label) in enumerate(examples):
        yield x, () if i % 9 == 0 else (label, "please") if "please" in x else (label,)


@pytest.fixture(scope="module")
def classes():
    """A service of 30 classes."""
    service = learned(several_classes(), stream(600, [f"label_of_class_{i}" for i in range(30)]))
    with served(service) as url:
        yield service, url


def rows(page):
    return page.execute_script(
        "return [...document.querySelectorAll('#classes tr')].map("
        "row => [...row.cells].map(cell => cell.innerText.trim()))"
    )


def test_figures_are_those_of_the_monitor(page, classes):
    service, url = classes
    open_page(page, url)
    seen = service.view()
    for name in ("accuracy", "macro_f1", "log_loss", "expected_calibration_error"):
        assert text(page, name) == score(seen[name])
    assert texts(page, ".chart h3") == ["Accuracy", "Macro F1"]
    assert texts(page, "#first-chart .legend b") == [score(seen["curve"][-1][1]), score(seen["curve"][-1][3])]
    table = rows(page)
    assert len(table) == 21
    for cells, row in zip(table, seen["classes"], strict=False):
        measures = [UNKNOWN if row[name] is None else f"{row[name]:.3f}" for name in ("precision", "recall", "f1")]
        assert cells == [row["label"], f"{row['n']:,}", *measures]
    assert table[20][:2] == ["10 others", str(seen["others"]["n"])]
    pairs = texts(page, "#pairs bdi")
    assert pairs[:2] == [seen["confused"][0]["truth"], seen["confused"][0]["predicted"]]
    assert texts(page, "#newest .predicted bdi") == [message["predicted"] for message in seen["newest"]]
    assert texts(page, "#newest .second bdi") == [message["second"] for message in seen["newest"]]
    assert not any(shown(page, name) for name in ("tn", "picker-choices"))
    assert_quiet(page)


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
    expected = httpx.get(f"{url}words", params={"label": "label_of_class_3"}).raise_for_status().json()
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
    service = learned(several_labels(), holding(stream(150, ["earn", "grain", "wheat"])))
    with served(service) as url:
        open_page(page, url)
        seen = service.view()
        for name in ("micro_f1", "macro_f1", "exact_matches", "hamming_loss"):
            assert text(page, name) == score(seen[name])
        said = [list(message["predicted"] or ["none"]) for message in seen["newest"]]
        assert texts(page, "#newest .predicted bdi") == [label for labels in said for label in labels]
        verdicts = [outcome.split(" ")[0] for outcome in texts(page, "#newest .outcome")]
        assert verdicts == ["✓" if message["right"] else "✗" for message in seen["newest"]]
        page.find_element("id", "try-text").send_keys("grain grain: card lost 0 please", Keys.ENTER)
        wait(page, lambda: shown(page, "why"))
        answer = service.explain("grain grain: card lost 0 please")
        assert texts(page, "#verdict bdi") == list(answer["label"])
        ticked = [chance.startswith("✓") for chance in texts(page, "#chances .value")]
        assert ticked == [label in answer["label"] for label, _ in answer["probabilities"]]
        assert_quiet(page)


def test_ordered_classes(page):
    service = learned(ordered(), stream(300, [0, 1, 2, 3, 4]))
    with served(service) as url:
        open_page(page, url)
        seen = service.view()
        for name in ("accuracy", "mean_absolute_error", "quadratic_kappa", "expected_calibration_error"):
            assert text(page, name) == score(seen[name])
        assert texts(page, ".chart h3") == ["Accuracy", "Mean absolute error"]
        assert [cells[0] for cells in rows(page)] == ["0", "1", "2", "3", "4"]
        assert texts(page, "#positive-words bdi") == displayed_words(seen["words"]["positive"])
        assert not shown(page, "picker")
        assert_quiet(page)


def test_a_third_class_changes_what_is_shown_in_place(page, classes):
    service, _ = classes
    two = {
        **service.view(),
        "model": {**service.view()["model"], "classes": ["ham", "spam"]},
        "confusion_matrix": [[1, 2], [3, 4]],
        "words": {"positive": [["win", 1.0]], "negative": [["lunch", -1.0]]},
        "newest": [],
    }
    del two["kind"]
    answers = {"monitor": (200, two), "words": (404, {"detail": "none"})}
    with canned(answers) as url:
        open_page(page, url)
        assert shown(page, "tp") and shown(page, "roc_auc") and not shown(page, "classes")
        answers["monitor"] = (200, {**service.view(), "checkpoint": None})
        wait(page, lambda: shown(page, "classes"))
        assert not shown(page, "tp")
        assert text(page, "macro_f1") == score(service.view()["macro_f1"])


STRANGE = [MARKUP, "a" * 1_000, "\u202eright to left", "שלום עולם " * 30, "", "\ud800", "x y " * 90, True, 2**70, "-0"]


@pytest.mark.parametrize("size", [DESKTOP, TELEPHONE], ids=["desktop", "telephone"])
def test_labels_of_strangers_are_shown_as_text_fit_and_contrast(page, size):
    with served(learned(several_classes(), stream(200, STRANGE))) as url:
        resize(page, size)
        open_page(page, url)
        page.find_element("id", "try-text").send_keys("card lost 0", Keys.ENTER)
        wait(page, lambda: shown(page, "why"))
        page.find_element("id", "picker").click()
        wait(page, lambda: shown(page, "picker-choices"))
        assert MARKUP in texts(page, "#classes button bdi")
        assert_no_markup_ran(page)
        for scheme in ("light", "dark"):
            resize(page, size, scheme)
            assert_fits(page)
            assert_contrasts(page)
        # The label of one character above 200 is cut off, and found by what is shown of it.
        long = next(button for button in texts(page, "#classes button bdi") if button.startswith("aa"))
        assert long == "a" * 199 + "…"
        assert httpx.get(f"{url}words", params={"label": long}).status_code == 200
        assert_quiet(page)


def test_large_integers_are_not_rounded(page):
    large = [2**53 + 1, -(2**62) - 1, 2**53 + 3]
    with served(learned(several_classes(), [*zip(["one", "two", "three"], large, strict=True)] * 20)) as url:
        open_page(page, url)
        page.find_element("id", "try-text").send_keys("one", Keys.ENTER)
        wait(page, lambda: text(page, "verdict").startswith(str(large[0])))
        assert {*texts(page, "#chances bdi")} == {*map(str, large)}
        for label in large:
            page.find_element("xpath", f"//*[@id='chances']//button[bdi='{label}']").click()
            wait(page, lambda label=label: texts(page, "#chances [aria-pressed=true] bdi") == [str(label)])
        assert not text(page, "try-error")
        assert {*texts(page, "#classes button bdi")} == {*map(str, large)}
