"""The guide for administrators, followed as it is written on a machine of its own: real servers, real mails."""

import gzip
import imaplib
import json
import re
import shutil
import subprocess
import sys
from itertools import islice
from pathlib import Path

import machine
import pytest

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "examples" / "guides" / "run_for_years.md").read_text("utf-8")
# A block for the shell, or a file that the paragraph before it names last.
STEP = re.compile(r"(?:`(/[^`\n]+)`[^`]*:\n\n)?^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def steps(heading):
    """The steps of a section: commands, or the path of a file and its content."""
    _, _, rest = GUIDE.partition(f"\n## {heading}\n")
    for path, language, content in STEP.findall(rest.partition("\n## ")[0]):
        if language == "sh" or path:
            yield "" if language == "sh" else path, content


def follow(server, heading, first=0, last=None):
    for path, content in islice(steps(heading), first, last):
        if path:
            there = server.root / path[1:]
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_text(content)
        else:
            server.run(content, online="apt-get" in content or "pip install" in content)


def a_wheel(folder):
    """A wheel of this clone, with the engine that is built here already."""
    source, build = folder / "source", folder / "source/build"
    subprocess.run(["git", "clone", "--quiet", ROOT, source], check=True)
    for engine in (ROOT / "stream_pegasos" / "engine").glob("*.so"):
        for lib in (f"lib.linux-x86_64-cpython-{sys.version_info[0]}{sys.version_info[1]}",):
            (build / lib / "stream_pegasos/engine").mkdir(parents=True)
            shutil.copy(engine, build / lib / "stream_pegasos/engine")
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, source], check=True)
