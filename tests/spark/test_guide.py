"""The guide's code, run from top to bottom."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

GUIDE = Path(__file__).parents[2] / "examples" / "guides" / "spark.md"


def test_the_guide_runs(spark, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}

    def in_folder(code):
        """Java stays in the folder that it was started in."""
        return re.sub(r'(json|parquet)\("|answers="', rf"\g<0>{tmp_path}/", code)

    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) > 6
    for block in blocks:
        exec(compile(in_folder(block), str(GUIDE), "exec"), names)
    shares = re.findall(r"^(.*?)  # (0\.\d+)$", "\n".join(blocks), re.MULTILINE)
    assert len(shares) == 2
    for expression, wanted in shares:
        assert eval(in_folder(expression), names) == pytest.approx(float(wanted), abs=0.01)
    assert "spark" not in capsys.readouterr().err
    assert names["learning"].monitor.score.n == 6_000
