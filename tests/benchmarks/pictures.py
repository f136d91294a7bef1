"""All pictures in examples/, made anew: those of measurements from the tables in examples/guides, those of curves from
the streams that the scripts beside this one take, and those of the page in headless Chromium.

    python tests/benchmarks/pictures.py [--only curve,drift,learning,page,scale,speed] [--folder examples]

The pictures of examples/papers are made by the scripts there.
"""

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import drift
from corpora import DATA
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator, PercentFormatter
from matplotlib.transforms import Bbox
from PIL import Image
from report import arguments_of

from stream_pegasos import TextClassifier, prequential
from stream_pegasos.streams import read

EXAMPLES = Path(__file__).parents[2] / "examples"
TABLES = EXAMPLES / "guides" / "benchmark_tables.md"
OURS, ONE_PASS, OTHERS = "#c0271b", "#1f5fa8", "#6b7280"
MAIL = "enron_1to3"


def main() -> None:
    arguments = arguments_of(__doc__, only=",".join(PICTURES), folder=EXAMPLES)
    names = arguments.only.split(",")
    if unknown := {*names} - {*PICTURES}:
        sys.exit(f"no picture {', '.join(sorted(unknown))}: choose from {', '.join(PICTURES)}")
    for name in names:
        for path in PICTURES[name](arguments.folder):
            shrink(path)
            print(f"{path}: {path.stat().st_size:,} bytes")


def shrink(path: Path) -> None:
    """Write a picture with 256 colours, which is a third as large and looks the same."""
    whole = Image.open(path).convert("RGB")
    whole.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE).save(path, optimize=True)


# --- tables of the guide ----------------------------------------------------------------------------------------------


def table_under(heading: str) -> list[list[str]]:
    """The rows of the first table under a heading of the guide, without the line below its head."""
    section = TABLES.read_text(encoding="utf-8").partition(f"## {heading}\n")[2]
    lines = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert lines is not None, f"no table under {heading}"
    head, _, *rows = lines[0].splitlines()
    return [[cell.strip(" *") for cell in line[1:-1].split("|")] for line in (head, *rows)]


def number(cell: str) -> float:
    return float(cell.replace(",", ""))


# --- accuracy over speed ----------------------------------------------------------------------------------------------


def speed(folder: Path) -> list[Path]:
    (_, *streams, _), *rows = table_under("The first 80 % learned, the rest predicted")
    points = {
        name.replace("`", "").replace("the same", "TextClassifier()"): (
            sum(map(number, accuracies)) / len(streams),
            number(rate),
        )
        for name, *accuracies, rate in rows
        if all(accuracies)
    }
    return [save(draw_speed(points, len(streams)), folder / "accuracy_and_speed.png")]


def draw_speed(points: dict[str, tuple[float, float]], n_streams: int) -> Figure:
    """Mean accuracy over messages a second, a dot a model, each with its name."""
    figure, axes = new_chart((9, 4.6))
    for name, (accuracy, rate) in points.items():
        axes.plot(rate, accuracy, "o", color=pick_color(name), markersize=9)
    axes.set_xscale("log")
    axes.margins(x=0.16, y=0.14)
    axes.set_xlabel("messages learned and predicted a second, from raw text")
    axes.set_ylabel(f"accuracy, mean of {n_streams} streams")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    place_names(figure, axes, [*points])
    return figure


def pick_color(name: str) -> str:
    if name.startswith("TextClassifier"):
        return OURS
    return ONE_PASS if "one pass" in name else OTHERS


SIDES = (1, 0), (-1, 0), (0, 1), (0, -1)
DIRECTIONS = (*SIDES, *product((1, -1, 0.5, -0.5), (1, -1)))
GAPS = (5, 10, 16, 24, 34)  # pixels between a dot and its name
DOT = 7.0  # pixels
NEARER = (1.6, 1.1)  # as many times as far as from its own dot a name is from any other one, if that is possible


def place_names(figure: Figure, axes: Axes, names: Sequence[str]) -> None:
    """Write the names of dots, each nearer to its own dot than to any other, over no dot and no other name."""
    figure.draw_without_rendering()  # which settles where the axes are
    dots = [tuple(line.get_transform().transform(line.get_xydata()[0])) for line in axes.lines]
    texts = [
        axes.annotate(
            name,
            line.get_xydata()[0],
            xytext=(0, 0),
            textcoords="offset pixels",
            ha="center",
            va="center",
            color=pick_color(name),
            weight="bold" if pick_color(name) == OURS else "normal",
        )
        for name, line in zip(names, axes.lines, strict=True)
    ]
    boxes = [text.get_window_extent() for text in texts]
    places = find_places(dots, [(box.width, box.height) for box in boxes], axes.bbox)
    for text, dot, place in zip(texts, dots, places, strict=True):
        text.xyann = ((place.x0 + place.x1) / 2 - dot[0], (place.y0 + place.y1) / 2 - dot[1])


def find_places(dots: Sequence[tuple[float, float]], sizes: Sequence[tuple[float, float]], frame: Bbox) -> list[Bbox]:
    """A place for a name of each size beside its dot, within the frame; a RuntimeError if there is no room."""
    for nearer in NEARER:
        if (found := find_nearer_places(dots, sizes, frame, nearer)) is not None:
            return found
    raise RuntimeError("there is no room for all names: draw a larger picture")


def find_nearer_places(
    dots: Sequence[tuple[float, float]], sizes: Sequence[tuple[float, float]], frame: Bbox, nearer: float
) -> list[Bbox] | None:
    """The same, with any other dot so many times as far from a name as its own. Those with the fewest choices come
    first.
    """
    around = [Bbox.from_bounds(x - DOT, y - DOT, 2 * DOT, 2 * DOT) for x, y in dots]

    def choices(i: int) -> list[Bbox]:
        (x, y), (width, height) = dots[i], sizes[i]
        found = []
        for gap, (right, up) in product(GAPS, DIRECTIONS):
            left = x - width / 2 + right * (width / 2 + DOT + gap)
            box = Bbox.from_bounds(left, y - height / 2 + up * (height / 2 + DOT + gap), width, height)
            is_within = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            distances = [distance(box, dot) for dot in dots]
            own = distances.pop(i)
            if is_within and not box.count_overlaps(around) and all(other > nearer * own for other in distances):
                found.append(box)
        return found

    of_each = [choices(i) for i in range(len(dots))]
    order = sorted(range(len(dots)), key=lambda i: len(of_each[i]))

    def place(n: int, taken: dict[int, Bbox]) -> dict[int, Bbox] | None:
        if n == len(order):
            return taken
        for box in of_each[order[n]]:
            if not box.count_overlaps([*taken.values()]) and (done := place(n + 1, {**taken, order[n]: box})):
                return done
        return None

    found = place(0, {})
    return None if found is None else [found[i] for i in range(len(dots))]


def distance(box: Bbox, dot: tuple[float, float]) -> float:
    """How far a point is from a box."""
    beside = max(box.x0 - dot[0], 0.0, dot[0] - box.x1)
    above = max(box.y0 - dot[1], 0.0, dot[1] - box.y1)
    return float((beside**2 + above**2) ** 0.5)


# --- other pictures ---------------------------------------------------------------------------------------------------


def scale(folder: Path) -> list[Path]:
    """Messages a second as a stream grows."""
    (_, *messages), _, (_, *rates) = table_under("As a stream grows")
    figure, axes = new_chart((7, 3.6))
    axes.plot([*map(number, messages)], [number(rate) / 1_000 for rate in rates], "o-", color=ONE_PASS, linewidth=2)
    axes.set_xscale("log")
    axes.set_ylim(0, 1.1 * max(map(number, rates)) / 1_000)
    axes.set_xticks([1e4, 1e5, 1e6, 1e7], ["10,000", "100,000", "1 million", "10 million"])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("messages learned")
    axes.set_ylabel("thousand messages a second")
    return [save(figure, folder / "scale.png")]


def curve(folder: Path) -> list[Path]:
    """Mail of Enron-Spam, in the order of the stream."""
    path = folder / "prequential_curve.png"
    stream = [*read(DATA / f"{MAIL}.jsonl.gz")]
    prequential(stream, TextClassifier(), name=f"{len(stream):,} mails of Enron-Spam").plot(path)
    picture = Image.open(path)
    picture.resize((1_200, 1_200 * picture.height // picture.width), Image.Resampling.LANCZOS).save(path)
    return [path]


def drift_curves(folder: Path) -> list[Path]:
    return [save(drift.draw(*drift.measured()), folder / "drift.png")]


def learning(folder: Path) -> list[Path]:
    path = folder / "learning_curves.png"
    subprocess.run([sys.executable, EXAMPLES / "learning_curves.py", DATA / f"{MAIL}.jsonl.gz", path], check=True)
    return [path]


def page(folder: Path) -> list[Path]:
    from page_pictures import pictures  # which need a browser

    return pictures(folder)


def new_chart(size: tuple[float, float]) -> tuple[Figure, Axes]:
    """A figure of one chart, with axes at the left and below alone."""
    figure = Figure(figsize=size, dpi=110, layout="constrained")
    axes = figure.subplots()
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save(figure: Figure, path: Path) -> Path:
    figure.savefig(path)
    return path


PICTURES: dict[str, Callable[[Path], list[Path]]] = {
    "curve": curve,
    "drift": drift_curves,
    "learning": learning,
    "page": page,
    "scale": scale,
    "speed": speed,
}

if __name__ == "__main__":
    main()
