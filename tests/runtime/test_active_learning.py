"""Which messages people are asked to label, and the labels that they give."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from outcomes import predictions

from stream_pegasos.features.message import Fields
from stream_pegasos.runtime import active_learning as module
from stream_pegasos.runtime.active_learning import ActiveLearning, is_asked

TEXTS = st.text("ab \ud800", max_size=4)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Kept:
    """What keeps labels: a list that is cut."""

    def __init__(self):
        self.labels, self.fixed, self.fails = [], [], False

    def check(self):
        if self.fails:
            raise OSError("the disk is full")

    def given(self, message, label):
        self.check()
        self.labels.append((message.x, label))

    def taken_back(self, message):
        self.check()
        self.labels = [pair for pair in self.labels if pair[0] != message.x]

    def learned(self, message):
        self.fixed.append(message.x)


class Machine(RuleBasedStateMachine):
    """The queue beside plain lists: those that wait, the oldest first, and those that can be taken back."""

    def __init__(self):
        super().__init__()
        self.clock, self.kept = Clock(), Kept()
        self.active_learning = ActiveLearning(4, 10.0, store=self.kept, clock=self.clock)
        self.waiting, self.given, self.over, self.learned = [], [], set(), []

    @rule(batches=st.lists(st.lists(TEXTS, max_size=6), max_size=3))
    def add(self, batches):
        for batch in batches:
            self.active_learning.add(batch)
        for text in [text for batch in batches for text in batch][-4:]:
            self.waiting = [other for other in self.waiting if other != text]
            if text.strip() and text not in self.over:
                self.waiting.append(text)
        self.waiting = self.waiting[-4:]

    def choose(self, data):
        message = data.draw(st.sampled_from(self.active_learning.queue(10, "oldest")))
        self.waiting.remove(message.x)
        self.over.add(message.x)
        return message

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), label=st.sampled_from("xy"))
    def give(self, data, label):
        message = self.choose(data)
        self.active_learning.give(message.number, label)
        self.given.append((message.number, message.x, label, self.clock.now + 10.0))

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def skip(self, data):
        self.active_learning.skip(self.choose(data).number)

    @precondition(lambda self: self.given)
    @rule(data=st.data())
    def take_back(self, data):
        one = data.draw(st.sampled_from(self.given))
        self.active_learning.take_back(one[0])
        self.given.remove(one)
        self.over.discard(one[1])
        self.waiting = [*self.waiting, one[1]][-4:]

    @precondition(lambda self: self.waiting or self.given)
    @rule(data=st.data())
    def nothing_changes_where_the_label_cannot_be_kept(self, data):
        self.kept.fails = True
        with pytest.raises(OSError, match="full"):
            if self.waiting:
                self.active_learning.give(data.draw(st.sampled_from(self.active_learning.queue(10))).number, "x")
            else:
                self.active_learning.take_back(self.given[0][0])
        self.kept.fails = False

    @rule(seconds=st.sampled_from([0.0, 4.0, 11.0]))
    def learn(self, seconds):
        self.clock.now += seconds
        late = len(self.given) - module.MOST_HELD
        due = [one for i, one in enumerate(self.given) if i < late or one[3] <= self.clock.now]
        assert [(each.message.x, each.label) for each in self.active_learning.due()] == [one[1:3] for one in due]
        self.given = [one for one in self.given if one not in due]
        self.learned += [one[1:3] for one in due]

    @invariant()
    def same(self):
        assert {message.x for message in self.active_learning.queue(10)} == set(self.waiting)
        assert len(self.active_learning) == len(self.waiting)
        numbers = [message.number for message in self.active_learning.queue(10, "oldest")]
        assert numbers == sorted(numbers)
        assert [each.message.x for each, _ in self.active_learning.given()] == [one[1] for one in self.given[::-1]]
        assert self.active_learning.n_given == len(self.given) + len(self.learned)
        assert self.kept.labels == [*self.learned, *(one[1:3] for one in self.given)]
        assert self.kept.fixed == [text for text, _ in self.learned]


Machine.TestCase.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
TestQueue = Machine.TestCase


def test_the_most_uncertain_are_asked_for_first_and_then_the_newest_or_the_first_of_a_file():
    for of_file, equal in ((False, ["d", "b"]), (True, ["b", "d"])):
        active_learning = ActiveLearning(100, of_file=of_file)
        active_learning.add([*"abcd"])
        stale = active_learning.stale(1)
        rows = {"a": [0.9, 0.1], "b": [0.6, 0.4], "c": [0.3, 0.7], "d": [0.4, 0.6]}
        active_learning.score(stale, predictions([rows[message.x] for message in stale], ("x", "y")), 1)
        assert [message.x for message in active_learning.queue(10)] == [*equal, "c", "a"]
        assert [message.x for message in active_learning.queue(2, "newest")] == ["d", "c"]
        assert [message.x for message in active_learning.queue(2, "oldest")] == ["a", "b"]
        assert active_learning.stale(1) == [] and len(active_learning.stale(2)) == 4


def test_of_very_many_those_are_scored_anew_that_come_next_or_were_scored_longest_ago(monkeypatch):
    monkeypatch.setattr(module, "MOST_SCORED", 20)
    active_learning = ActiveLearning(1_000)
    active_learning.add([str(i) for i in range(100)])
    for n in range(1, 8):  # all within so many times
        stale = active_learning.stale(n)
        head = {message.number for message in active_learning.queue(2)}
        assert n == 1 or all(
            message.scored_at > 0 for message in active_learning.queue(20)
        )  # before those that nobody knows
        assert len(stale) == 20 and head <= {message.number for message in stale}
        active_learning.score(stale, predictions([[0.9, 0.1]] * 20, ("x", "y")), n)
    assert min(message.scored_at for message in active_learning.queue(100)) > 0


def test_memory_is_bounded_by_characters_too():
    active_learning = ActiveLearning(size=10)  # of 1,000 characters on average
    active_learning.add(["a" * 20_001])
    assert len(active_learning) == 0
    active_learning.add([letter * 4_000 for letter in "abcd"])
    assert [message.x[0] for message in active_learning.queue(10, "oldest")] == ["c", "d"]

    for _ in range(3):  # also before anybody looks
        active_learning.add([" " * 9_000, "e" * 900])
    assert sum(len(text) for text, *_ in active_learning._new) <= 10_000
    assert [message.x[0] for message in active_learning.queue(10, "oldest")] == ["c", "d", "e"]

    active_learning = ActiveLearning(size=50)
    for letter in "abc":
        assert active_learning.has_room()
        active_learning.add([letter * 15_000])
    assert not active_learning.has_room()  # for a fourth one of 20,000 characters
    active_learning.give(1, "x")
    assert active_learning.has_room()


def test_texts_that_were_labelled_are_not_asked_for():
    texts = ["", "a" * 20_000, "a" * 20_001, " \n", "b", " " * 30_000]
    active_learning = ActiveLearning()
    active_learning.add(texts)
    assert len(active_learning) == sum(map(is_asked, texts)) == 2
    active_learning = ActiveLearning()
    active_learning.add(["a", "b"])
    active_learning.drop(["b", "c"])
    assert [message.x for message in active_learning.queue(10)] == ["a"]
    active_learning.add(["b", "d"])
    assert [message.x for message in active_learning.queue(10)] == ["d", "a"]


def test_messages_of_fields_that_differ_in_anything_are_asked_for():
    values = (["a"], ["b"], ["a", "b"], "a", [["a"]], -1, -2, {"a": 1}, {"a": [1]}, 0.5, None)
    messages = [Fields(text="t", x=value) for value in values]
    active_learning = ActiveLearning(seconds=0.0)
    for x in (*messages, *messages):
        active_learning.add([x])
        for asked in active_learning.queue(1):
            assert asked.x == x
            active_learning.give(asked.number, "spam")
    assert [given.message.x for given in active_learning.due(at_once=True)] == messages


def test_what_others_tell_wins_over_a_label_that_could_be_taken_back():
    kept = Kept()
    active_learning = ActiveLearning(store=kept)
    active_learning.add(["a", "b", "c"])
    for number in (1, 2):
        active_learning.give(number, "x")
    kept.fails = True
    active_learning.drop(["a"])
    assert len(active_learning.given()) == 2
    kept.fails = False
    active_learning.drop(["b", "c"])
    assert active_learning.n_given == 1 and len(active_learning) == 0 and kept.labels == [("a", "x")]
    assert [given.message.x for given in active_learning.due(at_once=True)] == ["a"]


def test_labels_that_could_not_be_learned_keep_their_order():
    active_learning = ActiveLearning()
    active_learning.add(["a", "b", "c", "d"])
    for number in (2, 1, 3):
        active_learning.give(number, "x")
    due = active_learning.due(at_once=True)
    active_learning.give(4, "x")
    active_learning.hold([due[0], due[2]])
    assert [given.message.x for given in active_learning.due(at_once=True)] == ["b", "c", "d"]


def test_bad_input_is_refused():
    for options in ({"size": -1}, {"size": 1.5}, {"seconds": -1.0}):
        with pytest.raises((TypeError, ValueError)):
            ActiveLearning(**options)
    active_learning = ActiveLearning()
    with pytest.raises(ValueError, match="best"):
        active_learning.queue(1, "best")
    for refuse in (
        active_learning.take_back,
        active_learning.skip,
        active_learning.get_message,
        lambda number: active_learning.give(number, "x"),
    ):
        with pytest.raises(LookupError, match="message 7"):
            refuse(7)
