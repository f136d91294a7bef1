"""The guide's code, run from top to bottom."""

import json
import re
from pathlib import Path

import pytest
from parts import assert_same

from stream_pegasos import TextClassifier, load

pytestmark = pytest.mark.spark

GUIDE = Path(__file__).parents[2] / "examples" / "guides" / "spark.md"


def test_the_guide_runs(spark, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}

    def in_folder(code):
        """Java stays in the folder that it was started in."""
        return re.sub(r'(json|parquet)\(f?"', rf"\g<0>{tmp_path}/", code)

    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) > 5
    for block in blocks:
        exec(compile(in_folder(block), str(GUIDE), "exec"), names)
    shares = re.findall(r"^(.*?)  # (0\.\d+)$", "\n".join(blocks), re.MULTILINE)
    assert len(shares) == 1
    for expression, wanted in shares:
        assert eval(in_folder(expression), names) == pytest.approx(float(wanted), abs=0.01)
    assert "spark" not in capsys.readouterr().err
    # The micro-batches were learned in order; one that comes again learns nothing.
    newest, one_machine = tmp_path / "models" / "2.safetensors", TextClassifier()
    for path in sorted((tmp_path / "mail").iterdir()):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        one_machine.learn_many([row["text"] for row in rows], [row["label"] for row in rows])
    one_machine.save(tmp_path / "wanted.safetensors")
    (tmp_path / "models" / "spark" / "commits" / "2").unlink()
    (tmp_path / "models" / "spark" / "commits" / ".2.crc").unlink()
    for _ in range(2):
        assert newest.read_bytes() == (tmp_path / "wanted.safetensors").read_bytes()
        newest.unlink()
        names["query"].start().awaitTermination()
    check_own_models(spark, names, tmp_path)
    right = spark.read.parquet(f"{tmp_path}/answers").where("prediction = label and batch > 0").count()
    assert right > 0.95 * 4_000


def check_own_models(spark, names, folder):
    """Also where the task of a batch is tried again after the next batch, each message is learned once."""
    own, users = names["own_models"], names["users"].where("user < 2")
    lines = {n: (folder / "mail" / f"{n}.json").read_text("utf-8").splitlines() for n in (1, 2)}
    rows = {n: [json.loads(line) for line in of_file] for n, of_file in lines.items()}
    first = {path: path.read_bytes() for path in own.glob("*/0.safetensors")}
    assert len(first) == 50
    batch = spark.createDataFrame(rows[1], names["users"].drop("user").schema).selectExpr("*", "id % 50 AS user")
    names["learn_users"](batch.where("user < 2"), 1)
    names["learn_users"](users, 0)
    assert first == {path: path.read_bytes() for path in first}
    model = load(folder / "mail.safetensors")
    for row in (row for row in rows[2] + rows[1] if row["id"] % 50 == 1):
        model.learn_one(row["text"], row["label"])
    assert_same(load(own / "1" / "1.safetensors"), model)
