"""What is read of mails in HTML, beside what Chromium shows of them.

Templates of packages of the npm registry, and some in MJML that its compiler makes pages of, are rendered by headless
Chromium. Of the words of its `innerText` nearly all are to be read as seen, and hardly any others. It needs npm,
chromium and chromedriver, and fetches the packages into a folder, where they are found again the next time.

    python tests/benchmarks/mail_reading.py [--folder FOLDER] [--all]
"""

import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from report import Table, arguments_of

from stream_pegasos.mail_text.html import read_html
from stream_pegasos.mail_text.work import Work

PACKAGES = ["bootstrap-email", "foundation-emails", "foundation-emails-template", "mailgen", "mosaico"]
PACKAGES += ["responsive-html-email-template", "@maizzle/framework"]
WORD = re.compile(r"\w+")
ALT = re.compile(r"\salt=(?:\"[^\"]*\"|'[^']*'|[^\s>]*)", re.IGNORECASE)  # no text of a page that has its pictures
BOX = '<mj-section background-color="{}"><mj-column>{}</mj-column></mj-section>'
BODIES = {
    "text": BOX.format("#ffffff", "<mj-text>Your order has left our warehouse this morning.</mj-text>"),
    "dark": BOX.format("#101820", '<mj-text color="#ffffff">White words on a dark ground</mj-text>'),
    "button": BOX.format(
        "", '<mj-button href="https://shop.example">Follow the parcel</mj-button><mj-text>soon</mj-text>'
    ),
    "columns": "<mj-section>"
    + "".join(f"<mj-column><mj-text>Column {word} of three</mj-text></mj-column>" for word in ("one", "two", "three"))
    + "</mj-section>",
    "group": "<mj-section><mj-group><mj-column><mj-text>left side</mj-text></mj-column><mj-column>"
    "<mj-text>right side</mj-text></mj-column></mj-group></mj-section>",
    "hero": '<mj-hero background-url="https://x.example/h.png" background-color="#2a3448" mode="fluid-height">'
    '<mj-text color="white">Words before a picture</mj-text></mj-hero>',
    "table": BOX.format(
        "", "<mj-table><tr><th>Item</th><th>Price</th></tr><tr><td>Lamp</td><td>40</td></tr></mj-table>"
    ),
    "social": BOX.format(
        "#fff", '<mj-social><mj-social-element name="github">Our code</mj-social-element></mj-social>'
    ),
    "navbar": BOX.format("", '<mj-navbar><mj-navbar-link href="/a">Start here</mj-navbar-link></mj-navbar>'),
    "wrapper": '<mj-wrapper background-url="https://x.example/w.png">'
    + BOX.format("#fff", "<mj-text>Inside a wrapper</mj-text>")
    + "</mj-wrapper>",
    "spacers": BOX.format(
        "", "<mj-spacer /><mj-divider /><mj-text font-size='11px' line-height='0.9'>small print</mj-text>"
    ),
    "raw": "<mj-section><mj-column><mj-raw>"
    '<tr><td style="font-size:13px"><div style="display:none">not this</div>this one</td></tr></mj-raw>'
    "</mj-column></mj-section>",
    "Cyrillic": BOX.format("#000", '<mj-text color="#eee">Ваш заказ уже в пути</mj-text>'),
}


def main() -> None:
    arguments = arguments_of(__doc__, folder=Path, all=False)
    with tempfile.TemporaryDirectory() as temporary:
        print_table(arguments.folder or Path(temporary), arguments.all)


def print_table(folder: Path, is_whole: bool) -> None:
    install(folder)
    browser = a_browser()
    table = Table(
        "Templates", "number", "of Chromium's words read, at least", "of the words read not Chromium's, at most"
    )
    try:
        for package in ["mjml", *PACKAGES]:
            shares = {path.name: shares_of(browser, path) for path in pages_of(folder, package)}
            shares = {name: each for name, each in shares.items() if each}
            if not shares:
                continue
            least, most = min(read for read, _ in shares.values()), max(other for _, other in shares.values())
            table.row(package, f"{len(shares)}", f"{least:.3f}", f"{most:.3f}")
            for name, (read, other) in sorted(shares.items(), key=lambda item: item[1][0] - item[1][1]):
                if is_whole or read < 0.98 or other > 0.02:
                    table.row(f"... {name}", "", f"{read:.3f}", f"{other:.3f}")
    finally:
        browser.quit()


def install(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    quiet = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
    if not (folder / "node_modules").exists():
        subprocess.run(["npm", "install", *quiet, "--prefix", folder, "mjml"], check=True)
    for package in PACKAGES:
        if not (folder / package).exists():  # as it is published: of what it needs there are no templates
            (folder / package).mkdir(parents=True)
            packed = subprocess.run(
                ["npm", "pack", "--silent", package], cwd=folder, check=True, stdout=subprocess.PIPE
            )
            name = packed.stdout.decode().split()[-1]
            shutil.unpack_archive(folder / name, folder / package, "gztar", filter="data")
    if not (folder / "mjml").exists():
        (folder / "mjml").mkdir()
        for name, body in BODIES.items():
            (folder / "mjml" / f"{name}.mjml").write_text(
                f"<mjml><mj-head><mj-preview>A hidden preview</mj-preview></mj-head><mj-body>{body}</mj-body></mjml>",
                encoding="utf-8",
            )
        everything = "".join(BODIES.values())
        (folder / "mjml" / "everything.mjml").write_text(
            f"<mjml><mj-body>{everything}</mj-body></mjml>", encoding="utf-8"
        )
        sources = sorted((folder / "mjml").glob("*.mjml"))
        mjml = folder / "node_modules" / ".bin" / "mjml"
        subprocess.run([mjml, *sources, "-o", folder / "mjml"], check=True)


def pages_of(folder: Path, package: str) -> Iterator[Path]:
    yield from sorted(path for path in (folder / package).rglob("*.htm*") if "src" not in path.parts)


def a_browser() -> Any:
    from selenium import webdriver  # which only the extra `ci` has

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--window-size=1000,2000",
        "--host-resolver-rules=MAP * ~NOTFOUND",
    ):
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


def shares_of(browser: Any, path: Path) -> tuple[float, float] | None:
    """Which share of Chromium's words is read as seen, and which share of those read are not Chromium's."""
    markup = ALT.sub("", path.read_text("utf-8", "replace"))
    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as file:
        file.write(markup)
        file.flush()
        browser.get(f"file://{file.name}")
    shown = words_of(browser.execute_script("return document.body ? document.body.innerText : ''"))
    read = words_of("".join(read_html(markup, Work()).seen))
    if shown.total() < 3:
        return None
    both = (shown & read).total()
    return both / shown.total(), 1 - both / max(1, read.total())


def words_of(text: str) -> Counter[str]:
    return Counter(WORD.findall(text.lower()))


if __name__ == "__main__":
    main()
