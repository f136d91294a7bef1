"""Write what in the guides is made from other texts: the reference of public names, from their docstrings, and the
contents of long guides, from their headings.

    python tests/write_guides.py
"""

import importlib
import inspect
import re
from pathlib import Path

import stream_pegasos
from stream_pegasos.evaluation import results, scores
from stream_pegasos.learners.model import PUBLIC, Model
from stream_pegasos.learners.predictions import Predictions

GUIDES = Path(__file__).parents[1] / "examples" / "guides"
REFERENCE = GUIDES / "reference.md"
LONG = 140  # lines of a guide from which on it has contents
BEGIN, END = "<!-- contents -->", "<!-- end of contents -->"
SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
HEADER = """# Reference of the public names

Made from the docstrings by `python tests/write_guides.py`; in Python, `help(name)` says the same. All else is internal
and may change without a word. The command has `stream-pegasos COMMAND --help`, the service `/docs`.
"""
MODULES = {"stream_pegasos.streams": "Streams", "stream_pegasos.sklearn": "In scikit-learn"}


def reference():
    kinds = [name for name in stream_pegasos.__all__ if name != "__version__"]
    models = [name for name in kinds if name.endswith("Classifier")]
    groups = [
        ("Models", [("TextClassifier", None), *((name, None) for name in models if name != "TextClassifier")]),
        ("What all models have", [("Model", Model), ("Predictions", Predictions)]),
        ("Features", [(name, None) for name in kinds if is_transformer(name)]),
        ("Labels", [("Teacher", None)]),
        ("Functions", [(name, None) for name in kinds if inspect.isfunction(getattr(stream_pegasos, name))]),
        ("Results", [(kind.__name__, kind) for kind in (results.Evaluation, scores.PrequentialScore)]),
    ]
    parts = [HEADER]
    for heading, names in groups:
        parts.append(f"## {heading}\n")
        parts += [entry(name, kind or getattr(stream_pegasos, name)) for name, kind in names]
    for module, heading in MODULES.items():
        found = importlib.import_module(module)
        parts.append(f"## {heading}: `{module}`\n")
        parts += [entry(name, getattr(found, name)) for name in found.__all__ if is_documented(getattr(found, name))]
    return with_contents("\n".join(parts))


def is_transformer(name):
    kind = getattr(stream_pegasos, name)
    return inspect.isclass(kind) and not name.endswith("Classifier") and name != "Teacher"


def is_documented(value):
    return (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__.startswith("stream_pegasos")


def entry(name, value):
    """A public name: its signature, its docstring and, of a class, what it has beside what all models have."""
    parts = [f"### {name}\n", f"```text\n{name}{signature(value)}\n```\n", in_markdown(inspect.getdoc(value) or "")]
    if inspect.isclass(value):
        for member in sorted(vars(value) if value is not Model else PUBLIC):
            found = inspect.getattr_static(value, member, None)
            function = getattr(found, "fget", None) or getattr(found, "__func__", found)
            is_public = member in PUBLIC if issubclass(value, Model) else member[0] != "_"
            if is_public and callable(function) and function.__doc__ and not inspect.isclass(function):
                shown = "" if isinstance(found, property) else signature(function)
                parts.append(f"#### {name}.{member}\n")
                parts.append(f"```text\n{member}{shown}\n```\n" if shown else "")
                parts.append(in_markdown(inspect.getdoc(function)))
    return "\n".join(filter(None, parts))


def signature(value):
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parameters = [
        of.replace(annotation=inspect.Parameter.empty) for of in found.parameters.values() if of.name != "self"
    ]
    return re.sub(r"<.* object at 0x\w+>", "…", str(inspect.Signature(parameters)))  # whose address changes


def in_markdown(docstring):
    """A docstring in numpydoc's form: entries of a section as a list, examples as a block."""
    first, *rest = SECTION.split(docstring)
    parts = [first.strip() + "\n"]
    for title, text in zip(rest[::2], rest[1::2], strict=True):
        if title == "Examples":
            parts.append(f"```pycon\n{text.strip()}\n```\n")
        elif title == "Notes":
            parts.append(f"*{title}*\n\n{text.strip()}\n")
        elif title == "References":
            parts.append(re.sub(r"^\[\^(\d+)\]: ", r"\1. ", text.strip(), flags=re.MULTILINE) + "\n")
        else:
            parts.append(f"*{title}*\n\n{entries(text)}")
    return "\n".join(parts)


def entries(text):
    lines = text.strip().splitlines()
    shown = []
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if line and not line[0].isspace():
            colon = ":" if after[:1].isspace() else ""
            shown.append(f"- `{line.strip()}`{colon}" if not line.endswith(".") else line)
        else:
            shown.append(f"  {line.strip()}".rstrip())
    return "\n".join(shown) + "\n"


def anchor(heading):
    """The address of a heading within its page, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def with_contents(page):
    """A page with the list of its sections behind its first paragraph, if it is long; an older list goes."""
    page = re.sub(rf"{re.escape(BEGIN)}.*?{re.escape(END)}\n\n", "", page, flags=re.DOTALL)
    headings = re.findall(r"^## (.*)$", without_code(page), re.MULTILINE)
    if page.count("\n") < LONG or len(headings) < 4:
        return page
    links = " · ".join(f"[{heading.replace('`', '')}](#{anchor(heading)})" for heading in headings)
    before, heading, after = page.partition("\n## ")
    return f"{before}\n{BEGIN}\n{links}\n{END}\n\n{heading.lstrip()}{after}"


def without_code(page):
    return re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)


def pages():
    """What each guide is to be."""
    made = {path: with_contents(path.read_text("utf-8")) for path in GUIDES.glob("*.md") if path.stem != "changelog"}
    return made | {REFERENCE: reference()}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
