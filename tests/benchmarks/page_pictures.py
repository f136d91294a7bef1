"""Pictures of the page of the service, in headless Chromium; `pictures.py` beside this script makes them."""

import base64
import logging
import sys
from pathlib import Path
from typing import Any

import corpora

from stream_pegasos import TextClassifier
from stream_pegasos.runtime.active_learning import ActiveLearning
from stream_pegasos.runtime.live_learner import LiveLearner
from stream_pegasos.streams import synthetic

sys.path.append(str(Path(__file__).parents[1]))
import pages

WIDTH, SCALE = 1_280, 0.75
SHOWN = 4  # rows of the tables of messages, which are long
N_LABELLED = 500


def pictures(folder: Path) -> list[Path]:
    logging.disable(logging.ERROR)  # of a service that ends while the page asks
    with pages.a_browser() as browser, pages.a_page(browser) as page:
        return [
            page_of_two_classes(page, folder / "page.png"),
            page_of_many_classes(page, folder / "page_of_classes.png"),
            page_of_labelling(page, folder / "teaching.png"),
        ]


def page_of_two_classes(page: Any, path: Path) -> Path:
    stream = [{"text": text, "label": label} for text, label in synthetic()]
    with pages.served(service(TextClassifier())) as url:
        send(url, "learn", stream)
        send(
            url, "predict", [{"text": text} for text in ("See you at the bank", "Claim the prize at noon", "Free tea?")]
        )
        pages.httpx.post(f"{url}learn", json={"text": "no label"})
        open_page(page, url)
        explain(page, "claim the refund when you are at the station")
        take(page, path, "main", also="header")
    return path


def page_of_many_classes(page: Any, path: Path) -> Path:
    (corpus,) = corpora.of_classes("banking77")
    stream = [{"text": text, "label": label} for text, label in zip(corpus.texts, corpus.labels, strict=True)]
    with pages.served(service(TextClassifier())) as url:
        send(url, "learn", stream[:10_000])
        send(url, "predict", [{"text": each["text"]} for each in stream[10_000:10_008]])
        open_page(page, url)
        explain(page, "My card was declined in a shop abroad")
        page.execute_script("document.getElementById('labelling').hidden = true")  # which the other picture has
        take(page, path, "main", also="header")
    return path


def page_of_labelling(page: Any, path: Path) -> Path:
    """A file of which people have labelled 500 messages, those that are asked for."""
    (corpus,) = corpora.of_classes("banking77")
    truths = dict(zip(corpus.texts, corpus.labels, strict=True))
    waiting = ActiveLearning(10_000, 0.0, of_file=True)
    waiting.add([*truths][:10_000])
    with pages.served(LiveLearner(TextClassifier(), active_learning=waiting)) as url:
        for _ in range(N_LABELLED):
            (asked,) = pages.httpx.get(f"{url}asked?limit=1", timeout=120).json()["messages"]
            given = {"number": asked["number"], "label": truths[asked["text"]]}
            pages.httpx.post(f"{url}teach", json=given).raise_for_status()
        open_page(page, url)
        pages.wait(page, lambda: len(pages.texts(page, "#asked li")) == 8)
        take(page, path, "labelling")
    return path


def service(model: TextClassifier) -> LiveLearner:
    return LiveLearner(model, active_learning=ActiveLearning())


def send(url: str, path: str, messages: list[dict[str, Any]]) -> None:
    for begin in range(0, len(messages), 1_000):
        pages.httpx.post(f"{url}{path}", json=messages[begin : begin + 1_000], timeout=120).raise_for_status()


def open_page(page: Any, url: str) -> None:
    pages.resize(page, (WIDTH, 900))
    pages.open_page(page, url)
    pages.wait(page, lambda: pages.texts(page, "#positive-words bdi"))


def explain(page: Any, text: str) -> None:
    page.find_element("id", "try-text").send_keys(text, "\n")
    pages.wait(page, lambda: pages.shown(page, "teach"))


def take(page: Any, path: Path, part: str, also: str = "") -> None:
    """A picture of a part of the page, and of what stands before it; of the tables of messages the first rows."""
    page.execute_script(
        """const sheet = new CSSStyleSheet();
        sheet.replaceSync(`html { scrollbar-width: none }
          .newest tbody tr:nth-child(n + ${arguments[0] + 1}), #more-wrong { display: none }
          * { animation: none !important; transition: none !important; caret-color: transparent !important }`);
        document.adoptedStyleSheets.push(sheet);
        document.activeElement.blur();""",
        SHOWN,
    )
    left, top, right, bottom = page.execute_script(
        """const boxes = [document.getElementById(arguments[0]), document.querySelector(arguments[1] || null)]
          .filter(Boolean).map(element => element.getBoundingClientRect());
        const least = (side) => Math.min(...boxes.map(box => box[side])), most = (side) =>
          Math.max(...boxes.map(box => box[side]));
        return [least("left"), least("top") + scrollY, most("right"), most("bottom") + scrollY];""",
        part,
        also,
    )
    room = 12
    clip = {"x": left - room, "y": max(0, top - room), "width": right - left + 2 * room}
    clip |= {"height": bottom - clip["y"] + room, "scale": SCALE}
    asked = {"format": "png", "captureBeyondViewport": True, "clip": clip}
    path.write_bytes(base64.b64decode(page.execute_cdp_cmd("Page.captureScreenshot", asked)["data"]))
