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

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "examples" / "guides").glob("*.md"))]
NEEDS = {"spark": "pyspark", "scikit_learn": "sklearn", "service": "fastapi", "teaching": "fastapi"}
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


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "spark"], ids=lambda page: page.stem)
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
            done = subprocess.run(["bash", "-euc", code], capture_output=True, text=True)
            assert done.returncode == 0, f"{code}\n{done.stderr}"


def anchor(heading):
    """The address of a heading within its page, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_links_to_what_is_there(page):
    """Files, and the headings of pages."""
    for target, heading in re.findall(r"\]\(([^)#\s]*)#?([^)]*)\)", page.read_text("utf-8")):
        if "://" not in target:
            path = page.parent / target if target else page
            assert path.exists(), target
            headings = re.findall(r"^#+ (.*)$", path.read_text("utf-8"), re.MULTILINE) if heading else []
            assert not heading or heading in map(anchor, headings), f"{target}#{heading}"


def test_the_first_page_can_be_read_in_one_go():
    assert len(PAGES[0].read_text("utf-8").split()) <= 1_000
