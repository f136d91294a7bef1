"""What the README and the guides show runs, in the order in which it stands there, and gives what they promise.

A line of Python that is a value, with a comment behind it, promises that value; … stands for anything. Commands of the
shell must succeed. Blocks of other kinds are not run.
"""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import coverage
import drift
import labels
import pytest
import write_guides
from write_guides import anchor

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "examples" / "guides").glob("*.md"))]
NEEDS = {
    "filter_spam": "lxml",
    "spark": "pyspark",
    "scikit_learn": "sklearn",
    "service": "msgspec",
    "teaching": "msgspec",
}
LONG = ("filter_spam", "river", "route_tickets", "tuning")  # pages that take half of the time of all
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PROMISE = re.compile(r".*?\S  # (.+)$")


def run_python(code, names, where):
    lines = code.splitlines()
    for node in ast.parse(code).body:
        source = "\n" * (node.lineno - 1) + "\n".join(lines[node.lineno - 1 : node.end_lineno])
        if not isinstance(node, ast.Expr):
            exec(compile(source, where, "exec"), names)
            continue
        value = eval(compile(source.strip(), where, "eval"), names)
        promised = PROMISE.match(lines[node.end_lineno - 1])
        if promised:
            pattern = re.escape(promised[1]).replace("…", ".*")
            assert re.fullmatch(pattern, repr(value), re.DOTALL) or re.fullmatch(pattern, str(value), re.DOTALL), (
                f"{where}: {source.strip()} is {value!r}"
            )


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=[pytest.mark.heavy] if page.stem in LONG else [])
        for page in PAGES
        if page.stem != "spark"
    ],
)
def test_a_page_does_what_it_says(page, tmp_path, monkeypatch, request):
    pytest.importorskip(NEEDS.get(page.stem, "stream_pegasos"), reason=f"{page.stem}: not installed")
    blocks = BLOCK.findall(page.read_text("utf-8"))
    if any("data/" in code for _, code in blocks):
        (tmp_path / "data").symlink_to(request.getfixturevalue("data_folder"), target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    names = {"__name__": "__main__"}
    for language, code in blocks:
        if language == "python":
            run_python(code, names, page.name)
        else:
            done = subprocess.run(["bash", "-euc", code], capture_output=True, encoding="utf-8")
            assert done.returncode == 0, f"{code}\n{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_links_to_what_is_there(page):
    """Files, and the headings of pages."""
    for target, heading in re.findall(r"\]\(([^)#\s]*)#?([^)]*)\)", page.read_text("utf-8")):
        if "://" not in target:
            path = page.parent / target if target else page
            assert path.exists(), target
            headings = re.findall(r"^#+ (.*)$", path.read_text("utf-8"), re.MULTILINE) if heading else []
            assert not heading or heading in map(anchor, headings), f"{target}#{heading}"


def test_what_the_script_writes_is_as_it_writes_it():
    """The reference, and the contents of long guides; `python tests/write_guides.py` writes them anew."""
    for path, text in write_guides.pages().items():
        assert path.read_text("utf-8") == text, path.name


def test_the_index_names_each_guide_once_on_one_screen():
    index = ROOT / "examples" / "guides" / "README.md"
    linked = re.findall(r"\]\((\w+\.md)\)", index.read_text("utf-8"))
    assert sorted(linked) == sorted(path.name for path in index.parent.glob("*.md") if path != index)
    assert index.read_text("utf-8").count("\n") <= 40


# The script of a page, and the models that are measured, if it has several.
TABLES = {
    "drift": (drift, [*drift.OURS]),
    "late_labels": (labels, ["ours"]),
    "coverage": (coverage, []),
}
FIGURE = re.compile(r"\d[\d,]*\.\d+%?|\d[\d,]* of \d[\d,]*|at most \d+")


@pytest.mark.heavy
@pytest.mark.parametrize("page", TABLES)
def test_the_figures_of_a_table_are_those_that_its_command_prints(page, monkeypatch, capsys, data_folder):
    """Of peers none is measured, which takes most of the time."""
    benchmark, ours = TABLES[page]
    if ours:
        models = [model for model in benchmark.models() if model[0] in ours]
        monkeypatch.setattr(benchmark, "models", lambda: models)
    monkeypatch.setattr(sys, "argv", [""])
    benchmark.main()
    printed = set(FIGURE.findall(capsys.readouterr().out))
    path = ROOT / "examples" / "guides" / f"{page}.md"
    _, _, table = path.read_text("utf-8").partition(f"python\ntests/benchmarks/{Path(benchmark.__file__).name}")
    table = table or path.read_text("utf-8").partition(f"python tests/benchmarks/{Path(benchmark.__file__).name}")[2]
    shown = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert shown and set(FIGURE.findall("\n".join(shown))) <= printed


@pytest.mark.heavy
def test_tuning_prints_what_the_guide_shows(data_folder):
    page = (ROOT / "examples" / "guides" / "tuning.md").read_text("utf-8")
    command = re.search(r"(stream-pegasos tune [^\n]*) --limit", page)[1]
    shown = re.search(r"```text\n(.*?)```", page, re.DOTALL)[1]
    arguments = command.replace("data/", f"{data_folder}/").split()[1:]
    done = subprocess.run(
        [sys.executable, "-m", "stream_pegasos", *arguments, "--limit", "8000"], capture_output=True, encoding="utf-8"
    )
    printed = done.stdout.replace(f"{data_folder}/", "data/")
    for line in shown.splitlines():
        assert all(part in printed for part in line.split("…")), line


def test_the_first_page_can_be_read_in_one_go():
    assert len(PAGES[0].read_text("utf-8").split()) <= 1_000
