"""Code that is run in a process of its own."""

import json
import os
import subprocess
import sys
import textwrap


def run(code, timeout=None, **environment):
    """What a fresh interpreter prints, given as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
