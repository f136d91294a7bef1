"""The page of the service, in headless Chromium."""

import json
import os
import re
import shutil
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from itertools import chain
from time import monotonic, sleep

import pytest

httpx = pytest.importorskip("httpx")
uvicorn = pytest.importorskip("uvicorn")
pytest.importorskip("msgspec")
webdriver = pytest.importorskip("selenium.webdriver")
WebDriverWait = pytest.importorskip("selenium.webdriver.support.wait").WebDriverWait

for program in ("chromium", "chromedriver"):
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed", allow_module_level=True)

from stream_pegasos.service import create_app  # noqa: E402 which needs what may be missing

UNKNOWN = "\u2013"  # a dash stands for a figure that is not known
MARKUP = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"
DESKTOP, TELEPHONE = (1280, 900), (360, 740)


@contextmanager
def a_browser():
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    options.add_argument("--headless=new")
    options.add_argument("--disable-dev-shm-usage")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # which Chromium refuses to root
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


@contextmanager
def a_page(browser):
    """The browser, desktop and light, with empty logs."""
    resize(browser, DESKTOP)
    for log in ("browser", "performance"):
        browser.get_log(log)
    yield browser
    browser.get("about:blank")


def resize(page, size, scheme="light"):
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size is TELEPHONE}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def open_page(page, url):
    page.get(url)
    wait(page, lambda: text(page, "state") == "Live")


def wait(page, condition):
    WebDriverWait(page, 120).until(lambda _: condition())


def text(page, name):
    """The text of an element as it stands in the document, whether in sight or not."""
    return page.find_element("id", name).get_property("textContent")


def texts(page, selector):
    return page.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent.toWellFormed())", selector
    )


def attributes(page, selector, name):
    """An attribute of some elements, read at once, as charts are drawn anew."""
    script = "return [...document.querySelectorAll(arguments[0])].map(e => e.getAttribute(arguments[1]))"
    return page.execute_script(script, selector, name)


def displayed_words(words):
    """N-grams as the page shows them: an ellipsis stands where the word that a part begins or ends goes on."""
    ellipses = {(True, False): ("", "…"), (False, True): ("…", "")}  # by a blank before it, and one behind
    shown = []
    for ngram, _ in words:
        before, behind = ellipses.get((ngram.startswith(" "), ngram.endswith(" ")), ("", ""))
        shown.append(before + ngram.removeprefix(" ").removesuffix(" ") + behind)
    return shown


def shown(page, name):
    return page.find_element("id", name).is_displayed()


def learn(url, examples):
    httpx.post(f"{url}learn", json=examples, timeout=120).raise_for_status()


def explanation(url, **asked):
    return httpx.post(f"{url}explain", json=asked).raise_for_status().json()


def score(value):
    return f"{value:.4f}"


def assert_quiet(page):
    assert [entry for entry in page.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []


def assert_no_markup_ran(page):
    assert page.execute_script("return document.querySelectorAll('img, body script, bdi *').length") == 0
    assert page.title == "stream-pegasos"


def assert_fits(page):
    width, room = page.execute_script("const e = document.documentElement; return [e.scrollWidth, e.clientWidth]")
    assert width == room


def assert_contrasts(page):
    """Texts stand out from what is behind them, as WCAG 2 asks."""
    found = page.execute_script("""
        const found = [];
        for (const element of document.querySelectorAll("body *")) {
          const own = [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
          if (!own || !element.checkVisibility()) continue;
          const behind = [];
          for (let each = element; each; each = each.parentElement) behind.push(getComputedStyle(each).backgroundColor);
          const style = getComputedStyle(element);
          const ink = element instanceof SVGElement ? style.fill : style.color;
          found.push([ink, behind, element.outerHTML.slice(0, 80).toWellFormed()]);
        }
        return found;""")
    pairs = {(channels(ink)[:3], seen(behind)): where for ink, behind, where in found}
    assert len(pairs) > 5
    assert {pair: where for pair, where in pairs.items() if contrast(*pair) < 4.5} == {}


def channels(color):
    """Red, green, blue and how opaque it is, each up to 1, of a colour as a browser says it."""
    numbers = [float(number) for number in re.findall(r"[\d.]+(?:e-\d+)?", color)]
    size = 1.0 if color.startswith("color(srgb") else 255.0
    return (*(number / size for number in numbers[:3]), numbers[3] if len(numbers) > 3 else 1.0)


def seen(layers):
    """The colour of layers, the first one in front, on white."""
    made = (1.0, 1.0, 1.0)
    for *colour, opaque in map(channels, reversed(layers)):
        made = tuple(opaque * part + (1.0 - opaque) * below for part, below in zip(colour, made, strict=True))
    return made


def luminance(color):
    """The relative luminance of WCAG 2, of a colour as a browser says it, or of its three channels."""
    parts = channels(color)[:3] if isinstance(color, str) else color
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@contextmanager
def canned(answers, token=None):
    """A server of the page's files and of `answers`, (status, body) by path; by default no answer was wrong."""
    answers.setdefault("wrong", (200, {"n": 0, "messages": []}))
    files = resources.files("stream_pegasos.service") / "page"
    by_suffix = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
    kinds = {file.name: by_suffix[file.name.rpartition(".")[2]] for file in files.iterdir()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.strip("/") or "index.html"
            if name in kinds:
                return self.answer(200, kinds[name], (files / name).read_bytes())
            if token and self.headers["Authorization"] != f"Bearer {token}":
                return self.answer(401, "application/json", b'{"detail": "a token is needed"}')
            status, body = answers[name.partition("?")[0]]
            self.answer(status, "application/json", json.dumps(body).encode())

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def answer(self, status, kind, body):
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def served(service, port=0):
    """A service of this process, at its address."""
    server = uvicorn.Server(uvicorn.Config(create_app(service), port=port, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        deadline = monotonic() + 120
        while not server.started:
            assert monotonic() < deadline, "the service does not answer"
            sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    finally:
        server.should_exit = server.force_exit = True  # the page keeps its connection
        thread.join()


def known(value):
    return UNKNOWN if value is None else score(value)


def assert_same(page, data):
    """The figures on the page are those of an answer of /monitor."""
    window, curve = data["window"], data["curve"]
    tiles = [figure["name"] for figure in data["figures"] if figure["is_tile"] and figure["name"] in data]
    assert len(texts(page, ".figure:not([hidden]) dt")) == len(tiles)
    for name in tiles:
        assert text(page, name) == known(data[name])
        if name in window:
            assert text(page, f"window_{name}") == f"newest {window['n']:,}: {known(window[name])}"
    followed = [name for name in curve if name != "n" and not name.startswith("window_") and any(curve[name])]
    assert len(texts(page, ".chart:not([hidden]) h3")) == len(followed)
    for number, name in enumerate(followed, 1):
        newest = curve.get(f"window_{name}", [None])
        assert texts(page, f"#chart-{number} .legend b") == [known(curve[name][-1]), known(newest[-1])]
    table = page.execute_script(
        "return [...document.querySelectorAll('#classes tr')].map("
        "row => [...row.cells].map(cell => cell.innerText.trim()))"
    )
    rows = [*data["classes"], *([data["others"]] if data["others"] else [])]
    for cells, row in zip(table, rows, strict=True):
        called = str(row["label"]) if "label" in row else f"{row['n_classes']} others"
        assert cells[:2] == [called, f"{row['n']:,}"]
        for cell, name in zip(cells[2:], ("precision", "recall", "f1"), strict=True):
            # A half is rounded up by one language and to even by the other.
            assert cell == UNKNOWN if row[name] is None else abs(float(cell) - row[name]) < 0.00051
    pairs = texts(page, "#pairs bdi")
    assert pairs == [str(pair[name]) for pair in data["confused"] for name in ("truth", "predicted")][: len(pairs)]
    assert len(pairs) >= min(10, 2 * len(data["confused"]))
    rows = [(f"{n:,}", *map(known, rest)) for n, *rest in data["reliability"]]
    assert texts(page, "#reliability td:not(:first-child)") == list(chain.from_iterable(rows))
    newest = data["newest"]
    assert texts(page, "#newest .text bdi") == [message["text"] for message in newest]
    if data["kind"] == "several labels":
        said = [message["predicted"] or ["none"] for message in newest]
        assert texts(page, "#newest .predicted bdi") == [*chain.from_iterable(said)]
    else:
        for name in ("predicted", "second"):
            assert texts(page, f"#newest .{name} bdi") == [str(message[name]) for message in newest]
    verdicts = [outcome.split(" ")[0] for outcome in texts(page, "#newest .outcome")]
    assert verdicts == ["✓" if message["right"] else "✗" for message in newest]


def assert_words(page, words):
    for side, rows in words.items():
        wait(page, lambda side=side, rows=rows: texts(page, f"#{side}-words bdi") == displayed_words(rows))
