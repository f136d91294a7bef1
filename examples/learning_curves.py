"""The picture of the guide "How it works": three learners over one stream, each message predicted before it is learned.

python examples/learning_curves.py [STREAM [PNG]]
"""

import argparse

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, StrMethodFormatter

from stream_pegasos import PegasosClassifier, TextClassifier
from stream_pegasos.evaluation.prequential import prequential
from stream_pegasos.streams import read, synthetic

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("stream", nargs="?", metavar="STREAM", help="a file of messages; the synthetic stream without it")
parser.add_argument("picture", nargs="?", metavar="PNG", default="learning_curves.png", help="the file of the picture")
given = parser.parse_args()

MODELS = {
    "TextClassifier(), the default": TextClassifier(),
    "Pegasos with a gentle start, t0=1e4": TextClassifier(classifier=PegasosClassifier(t0=1e4)),
    "Pegasos as published": TextClassifier(classifier=PegasosClassifier()),
}

figure = Figure(figsize=(8, 3.6), dpi=110, layout="constrained")
axes = figure.subplots()
for name, model in MODELS.items():
    stream = read(given.stream) if given.stream else synthetic()
    curve = prequential(stream, model).curve
    axes.plot([point.n for point in curve], [1.0 - point.window_accuracy for point in curve], label=name)
    print(f"{curve[-1].accuracy:.4f}  {name}")
axes.set_xlabel("messages learned")
axes.set_ylabel("wrong, of the newest 1,000")
axes.set_yscale("log")
axes.yaxis.set_major_locator(FixedLocator([0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5]))
axes.yaxis.set_minor_locator(NullLocator())
axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
axes.spines[["top", "right"]].set_visible(False)
axes.grid(alpha=0.3)
axes.legend(frameon=False)
figure.savefig(given.picture)
