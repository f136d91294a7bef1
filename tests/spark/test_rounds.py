"""Rounds: how messages are dealt, parts merged in pairs, scores of what they predicted, and checkpoints."""

import copy
import itertools
import random

import pytest
from parts import assert_same

from stream_pegasos import AdaptiveClassifier, PegasosClassifier, TextClassifier, merge
from stream_pegasos.learners.merging import drop_unchanged, merge_changes, merge_into
from stream_pegasos.streams import synthetic

pytestmark = pytest.mark.spark

SCHEMA = "text string, label string"
MESSAGES = list(synthetic(500, seed=3))


def taught(classifier):
    model = TextClassifier(classifier=classifier)
    model.learn_many(*zip(*MESSAGES[:101], strict=True))
    model.flush()
    return model


def figures(learned):
    """All that a history tells but for the seconds."""
    curve = [str(row._replace(seconds=0.0)) for row in learned.curve]
    return learned.n_rounds, learned.n_read, learned.n_learned, learned.refused, curve, learned.score.get_state()


def bounds(longest, size):
    """The first and last messages of rounds; the last takes up to a tenth more."""
    begin = 0
    while begin < longest:
        end = longest if longest - begin <= 1.1 * size else begin + size
        yield begin, end
        begin = end


def merged_in_pairs(base, models):
    """`None` stands for a part without messages."""
    for model in filter(None, models):
        drop_unchanged(base, model)
    while len(models) > 2:
        models = [merged_pair(base, *models[i : i + 2]) for i in range(0, len(models), 2)]
    return merge(base, [*filter(None, models), base])


def merged_pair(base, one, other=None):
    if one is None or other is None:
        return one or other
    made = copy.deepcopy(base)
    merge_changes(made, [one, other])
    return made


@pytest.mark.parametrize("classifier", [AdaptiveClassifier(), PegasosClassifier(batch_size=10)], ids=["ada", "pegasos"])
def test_rounds_are_merges_of_pairs_and_the_score_is_of_predictions_before_learning(spark, classifier):
    """With any number of workers and of tasks that merge."""
    from stream_pegasos.spark import learn
    from stream_pegasos.spark.columns import arranged

    begin = taught(classifier)
    before, frame = copy.deepcopy(begin), spark.createDataFrame(MESSAGES[100:200], SCHEMA)
    options = {"parts": 5, "round_size": 75}
    learned = learn(frame, begin, **options)
    if isinstance(classifier, AdaptiveClassifier):
        spark.conf.set("spark.sql.shuffle.partitions", 5)
        again = learn(frame.repartition(3), begin, **options)
        spark.conf.set("spark.sql.shuffle.partitions", 2)
        assert_same(learned.model, again.model)
        assert figures(again) == figures(learned)
    parts = [[tuple(row) for row in rows] for rows in arranged(frame, [], 5).rdd.glom().collect()]
    assert sorted(itertools.chain(*parts)) == sorted(MESSAGES[100:200])
    model, n_right, rounds = begin, 0, [*bounds(max(map(len, parts)), 15)]
    for first, end in rounds:
        models = {}
        for number, rows in enumerate(parts):
            for text, label in rows[first:end]:
                part = models.setdefault(number, copy.deepcopy(model))
                n_right += part.predict_one(text) == label
                part.learn_one(text, label)
        model = merged_in_pairs(model, [models.get(number) for number in range(5)])
    assert_same(learned.model, model)
    assert_same(begin, before)
    assert (learned.n_rounds, learned.n_read, learned.n_learned) == (len(rounds), 100, 100)
    assert (learned.evaluation.score.n, learned.evaluation.score.accuracy) == (100, n_right / 100)


def test_a_driver_that_is_lost_loses_one_round(spark, tmp_path, monkeypatch):
    from stream_pegasos.spark import frame_learning, learn
    from stream_pegasos.spark.rounds import RoundFile, learned_round

    begin = taught(AdaptiveClassifier())
    rows = [(*message, i) for i, message in enumerate([*MESSAGES[100:250], (None, "ham")])]
    frame, path = spark.createDataFrame(rows, f"{SCHEMA}, time int"), tmp_path / "model.safetensors"
    options = {"parts": 2, "round_size": 100, "passes": 2, "order": "time"}
    whole = learn(frame, begin, **options)
    assert (whole.n_rounds, whole.n_read, whole.score.n) == (4, 302, 300)
    calls = []

    def third_lost(work):
        def lost(*arguments):
            calls.append(work)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return work(*arguments)

        return lost

    for place, name, work in ((frame_learning, "merge_into", merge_into), (RoundFile, "write", RoundFile.write)):
        calls.clear()
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(place, name, third_lost(work))
            learn(frame, begin, **options, checkpoint=path)
        calls.clear()
        with monkeypatch.context() as patch:
            patch.setattr(frame_learning, "learned_round", lambda *those: calls.append(those) or learned_round(*those))
            for _ in range(2):  # again after the end, when nothing is left
                found = learn(frame, begin, **options, checkpoint=path)
                assert_same(found.model, whole.model)
                assert figures(found) == figures(whole)
                assert len(calls) == 2
        path = tmp_path / "another.safetensors"
    for messages, model, option in (
        (frame.where("time < 149"), begin, {}),
        (frame, taught(AdaptiveClassifier(learning_rate=1.0)), {}),
        (frame, begin, {"order": ()}),
    ):
        with pytest.raises(ValueError, match="the same messages, model and options; give another path, or remove"):
            learn(messages, model, **options | option, checkpoint=tmp_path / "model.safetensors")


@pytest.mark.parametrize("order", [(), "time"])
def test_equal_messages_are_spread_over_parts_and_within_them(spark, monkeypatch, order):
    """And no bit depends on how they came, as where all of one label come first."""
    from stream_pegasos.spark import learn, rounds
    from stream_pegasos.spark.columns import column, hashed_columns

    monkeypatch.setattr(rounds, "FIRST_ROUND", 100)
    rows = [("the same text", "spam", 7)] * 600 + [(*message, i % 50) for i, message in enumerate(MESSAGES[:400])]
    models = []
    for sort_key in (lambda row: row[1], lambda row: random.Random(str(row)).random()):
        frame = spark.createDataFrame(sorted(rows, key=sort_key), f"{SCHEMA}, time int").repartition(3)
        columns = [column(name) for name in frame.columns]
        dealt, sizes = rounds.dealt(frame, columns, [order] if order else [], 4)
        assert max(sizes) <= 1.5 * min(sizes) and sum(sizes) == 1_000
        texts = [[row.text for row in part] for part in dealt.rdd.glom().collect()]
        longest = max(len([*run]) for part in texts for _, run in itertools.groupby(part))
        assert longest < 30 or order
        assert len(hashed_columns(dealt)) == 5
        dealt.unpersist()
        if not order:
            models.append(learn(frame, parts=4, round_size=1_000).model)
            assert sum(models[-1].predict_one(text) == label for text, label in MESSAGES) > 0.95 * 500
    if not order:
        assert_same(*models)


def test_rounds_grow_until_merging_is_a_tenth():
    from stream_pegasos.spark.rounds import Rounds

    generator = random.Random(1)
    for _ in range(200):
        n_parts, longest = generator.choice([2, 5, 64]), generator.randrange(1, 10_000_000)
        rounds, n_taken = Rounds(n_parts, longest, 2, None), 0
        while not rounds.are_done:
            share, begin, end = rounds.share, rounds.begin, rounds.end
            assert begin < end <= longest and (end - begin <= share or (end == longest and end - begin <= 1.1 * share))
            n_taken += end - begin
            n_changed = generator.randrange(20_000_000)
            rounds.advance(n_changed)
            assert share <= rounds.share <= 2 * share
            if rounds.share < 2 * share:  # messages a feature times a quarter, in each level of pairs, are a tenth
                levels = (2 * n_parts - 1).bit_length()
                assert rounds.share == share or rounds.share <= 2.5 * n_changed * levels
        assert n_taken == 2 * longest
