"""People label messages over HTTP: what they are asked, the labels that they give and those that they take back."""

import pytest
from kinds import ordered, several_labels
from running import bits, wait
from serving import GOOD, MESSAGES, STREAM, learn, learned, ok, predict, refused, resumed, send, serving

from stream_pegasos import TextClassifier
from stream_pegasos.runtime.active_learning import ActiveLearning
from stream_pegasos.runtime.limits import Limits
from stream_pegasos.runtime.live_learner import LiveLearner

NEW = ["free lunch", "win a meeting", "claim it"]


def asking_people(model=None, seconds=60.0, **options):
    return LiveLearner(model or TextClassifier(), active_learning=ActiveLearning(seconds=seconds), **options)


def ask(client, texts=NEW):
    return predict(client, [{"text": text} for text in texts])


def asked(client, **query):
    return ok(client.get("/asked", params=query))


def numbers(client, **query):
    return {message["text"]: message["number"] for message in asked(client, **query)["messages"]}


def teach(client, text, label):
    return send(client, "/teach", {"number": numbers(client, limit=100)[text], "label": label})


def test_a_label_is_learned_once_it_cannot_be_taken_back():
    service, model = asking_people(learned(), 0.3), learned()
    with serving(service) as client:
        said = dict(zip(NEW, ask(client), strict=True))
        view = asked(client)
        assert {message["text"] for message in view["messages"]} == {*NEW}
        assert all(message["label"] == said[message["text"]]["label"] for message in view["messages"])
        margins = [abs(said[message["text"]]["margin"]) for message in view["messages"]]
        assert margins == sorted(margins)  # the least sure first
        assert (view["labels"], view["kind"], view["n_waiting"]) == (["ham", "spam"], "classes", 3)

        ok(teach(client, NEW[0], "ham"))
        assert service.model.n_learned == len(STREAM)
        (given,) = asked(client)["given"]
        assert (given["text"], given["label"]) == (NEW[0], "ham") and 0.0 < given["seconds"] <= 0.3
        wait(lambda: service.model.n_learned == len(STREAM) + 1)
        model.learn_one(NEW[0], "ham")
        assert bits(service.model) == bits(model)
        assert ok(client.get("/monitor"))["n"] == 1  # predicted before it was learned, and counted
        assert {*numbers(client)} == {*NEW[1:]}


def test_what_is_taken_back_was_never_learned():
    service, model = asking_people(learned()), learned()
    with serving(service) as client:
        ask(client)
        number = numbers(client)[NEW[0]]
        ok(teach(client, NEW[0], "spam"))
        taken = {"number": number, "take_back": True}
        for both in ({**taken, "label": "ham"}, {**taken, "label": None}, {"number": number}):
            refused(client.post("/teach", json=both), 422, "or take_back")
        assert ok(client.post("/teach", json=taken)) == {"n_given": 0}
        assert bits(service.model) == bits(model) and NEW[0] in numbers(client)
        refused(client.post("/teach", json=taken), 404, "stays learned")
        ok(teach(client, NEW[0], "ham"))
    model.learn_one(NEW[0], "ham")  # what was given is learned when the service ends
    assert bits(service.model) == bits(model)


def test_labels_that_are_new_and_labels_that_a_model_does_not_take():
    service = asking_people(limits=Limits(classes=2))
    with serving(service) as client:
        ask(client, [*NEW, "more"])
        for text, label, offered in ((NEW[0], " 1 ", [1]), (NEW[1], "1", [1]), (NEW[2], "two", [1, "two"])):
            ok(teach(client, text, label))  # as streams have it; each stays where it was
            assert asked(client)["labels"] == offered
        for label, status, word in (
            ("three", 422, "labels must be at most 2, got 3"),
            (" ", 422, "blank"),
            (["two"], 422, "got a list"),
            ("x" * 201, 413, "201"),
        ):
            refused(teach(client, "more", label), status, word)
        for body, status, word in (
            ({"number": 99, "label": "two"}, 404, "message 99"),
            ({"number": "x", "label": "two"}, 422, "number"),
            ({"number": 4}, 422, "label"),
            ([], 422, ""),
        ):
            refused(client.post("/teach", json=body), status, word)
        for query in ({"limit": 101}, {"first": "best"}):
            refused(client.get("/asked", params=query), 422, "parameters")
        assert {*numbers(client)} == {"more"}
        ok(teach(client, "more", None))  # passed over
        ask(client, ["more"])
        assert numbers(client) == {} and service.active_learning.n_given == 3


def test_labels_that_hold_together_and_ordered_ones():
    service = asking_people(several_labels(), 0.0)
    with serving(service) as client:
        ask(client)
        ok(teach(client, NEW[0], ["oil", "gas"]))
        ok(teach(client, NEW[1], []))
        refused(teach(client, NEW[2], "oil"), 422, "must be a list")
        view = asked(client)
        assert service.model.n_learned == 2 and view["labels"] == ["gas", "oil"]
        assert view["messages"][0]["label"] in ([], ["oil", "gas"], ["gas", "oil"])
    with serving(asking_people(ordered(), 0.0)) as client:
        ask(client, [*NEW, "more"])
        for text, label in zip(NEW, (5, "10", 1), strict=True):
            ok(teach(client, text, label))
        assert asked(client)["labels"] == [1, 5, 10]
        refused(teach(client, "more", "good"), 422, "good")


def test_nobody_is_asked_where_no_message_is_kept():
    for service in (
        LiveLearner(TextClassifier()),
        LiveLearner(TextClassifier(), active_learning=ActiveLearning(size=0)),
    ):
        with serving(service) as client:
            ask(client)
            assert asked(client)["messages"] == [] and not ok(client.get("/monitor"))["asks"]
            refused(client.post("/teach", json={"number": 1, "label": "x"}), 404, "message 1")


def test_a_message_with_an_id_is_learned_once_whoever_labels_it():
    service = asking_people(seconds=0.0)
    with serving(service) as client:
        predict(client, [{"text": text, "id": i} for i, text in enumerate(NEW)])
        ok(teach(client, NEW[0], "ham"))
        assert ok(client.get("/learned"))["ids"] == [0]
        assert not learn(client, {"text": NEW[0], "label": "ham", "id": 0})["learned"]
        learn(client, {"text": "as it was sent", "label": "spam", "id": 1})
        ok(teach(client, NEW[1], "spam"))  # the same message, which others have labelled
        predict(client, [{"text": "again", "id": 1}, {"text": "new", "id": 9}])
        assert {*numbers(client)} == {NEW[2], "new"}
    assert service.model.n_learned == 2


def test_no_message_stands_in_a_checkpoint(tmp_path):
    service = resumed(tmp_path / "model")
    service.active_learning = ActiveLearning(seconds=60.0)
    with serving(service) as client:
        learn(client, MESSAGES[:50])
        ask(client, ["zanzibar", "quagmire"])
        ok(teach(client, "zanzibar", "spam"))
    assert b"quagmire" not in (tmp_path / "model").read_bytes()
    assert resumed(tmp_path / "model").model.n_learned == 51  # with the label that was given


def test_openapi_tells_of_labelling():
    with serving(asking_people()) as client:
        paths = ok(client.get("/openapi.json"))["paths"]
        ask(client)
        examples = paths["/teach"]["post"]["requestBody"]["content"]["application/json"]["examples"]
        for name, n in (("one message", 1), ("taken back", 0)):
            assert ok(client.post("/teach", json={**examples[name]["value"], "number": 1})) == {"n_given": n}
        assert {parameter["name"] for parameter in paths["/asked"]["get"]["parameters"]} == {"limit", "first", "also"}


@pytest.mark.parametrize(("label", "known"), [(True, {False, True}), (2**63 - 1, {2**63 - 1}), ("\ud800", {"\ud800"})])
def test_labels_of_any_kind_are_offered_as_they_can_be_given(label, known):
    service = asking_people(seconds=0.0)
    with serving(service) as client:
        ask(client)
        for text in NEW[:2]:
            ok(teach(client, text, label))
            assert {*service.model.classes} - {None} == known
            (label,) = [each for each in asked(client)["labels"] if each is not False]


def test_labels_that_are_fixed():
    """In their order, from the first message on; nothing of a request with another one is learned."""
    service = asking_people(labels=["spam", "ham", 3])
    with serving(service) as client:
        ask(client)
        view = asked(client)
        assert (view["labels"], view["are_fixed"]) == (["spam", "ham", 3], True)
        good, told = {"text": "a", "label": "ham", "id": 1}, "label must be one of 'spam', 'ham', 3, got 'Spam'"
        refused(send(client, "/learn", [good, {"text": "b", "label": "Spam"}]), 422, told)
        refused(teach(client, NEW[0], "Spam"), 422, told)
        assert service.model.n_learned == 0 and ok(client.get("/learned"))["ids"] == []
        ok(teach(client, NEW[0], "ham"))
        learn(client, [good, {"text": "b", "label": "3"}])
        assert asked(client)["labels"] == ["spam", "ham", 3]
    with serving(asking_people(several_labels(), labels=["oil", "gas"])) as client:
        learn(client, [{"text": "a", "label": ["gas"]}, {"text": "b", "label": []}])
        refused(
            send(client, "/learn", {"text": "a", "label": ["gas", "Oil"]}),
            422,
            "label must be one of 'oil', 'gas', got 'Oil'",
        )
        assert asked(client)["labels"] == ["oil", "gas"]


@pytest.mark.parametrize("by_page", [False, True])
@pytest.mark.parametrize(
    ("first", "second", "other"), [(True, False, "false"), ("true", "false", False), (1, 0, "false")]
)
def test_fixed_labels_are_written_as_the_first_one(first, second, other, by_page):
    service = asking_people(labels=["false", "true"])
    with serving(service) as client:
        ask(client)
        refused(send(client, "/learn", [{"text": "a", "label": first}, GOOD]), 422, "got 'spam'")
        assert asked(client)["labels"] == ["false", "true"]  # nothing of that is learned
        if by_page:
            service.active_learning.give(numbers(client)[NEW[0]], first)
        else:
            learn(client, {"text": "a", "label": first})
        shown = asked(client)["labels"]
        assert shown == [second, first] and [*map(type, shown)] == [type(second), type(first)]
        learn(client, {"text": "a", "label": other})  # the same label, written otherwise
        ok(teach(client, NEW[1], shown[0]))
        assert {type(label) for label in service.model.classes if label is not None} == {type(first)}


def test_a_label_is_never_taken_for_another_that_looks_like_it():
    """As a model that was trained elsewhere may have them."""
    model, long = TextClassifier(), "x" * 199
    model.learn_many(["a", "b", "c", "d"], [long + "yes", long + "no", 7, "7"])
    service = asking_people(model)
    with serving(service) as client:
        ask(client)
        assert asked(client)["labels"] == [7, "7", long + "…", long + "…"]
        refused(teach(client, NEW[0], long + "…"), 422, "may be any of 2 labels")
        ok(teach(client, NEW[0], 7))
        ok(teach(client, NEW[1], "7"))
        assert [given.label for given, _ in service.active_learning.given()] == ["7", 7]


@pytest.mark.parametrize("slip", ["Spam", "s\u200bpam", "S PAM"])
def test_a_label_that_looks_like_a_known_one_is_refused(slip):
    with serving(asking_people(learned())) as client:
        ask(client)
        refused(teach(client, NEW[0], slip), 422, "looks like 'spam'")
        ok(teach(client, NEW[0], "scam"))
        refused(teach(client, NEW[1], "Scam"), 422, "looks like 'scam'")  # which waits to be learned


def test_a_label_that_looks_like_a_known_one_is_taken_once_it_is_confirmed():
    service = asking_people(learned())
    with serving(service) as client:
        ask(client)
        refused(teach(client, NEW[0], "Spam"), 422, "the new_label 'confirmed'")
        confirmed = {"number": numbers(client)[NEW[0]], "label": "Spam", "new_label": "confirmed"}
        ok(send(client, "/teach", confirmed))
        assert asked(client)["given"][0]["label"] == "Spam"


@pytest.mark.parametrize("slip", ["sapm", "spa", "Scam", "s\u200bpamm"])
def test_a_mistyped_label_is_asked_about_where_a_person_types_it(slip):
    with serving(asking_people(learned())) as client:
        ask(client)
        body = {"number": numbers(client)[NEW[0]], "label": slip, "new_label": "ask"}
        assert ok(send(client, "/teach", body)) == {"n_given": 0, "label": slip, "alike": "spam"}
        ok(send(client, "/teach", {**body, "label": "refund"}))
        ok(teach(client, NEW[1], slip))  # a program knows what it sends
        refused(send(client, "/teach", {**body, "number": 1, "new_label": "perhaps"}), 422, "new_label")


@pytest.mark.parametrize("size", [0, 100])
def test_a_message_that_nobody_asked_about_is_given_its_label_and_taken_back(size):
    service, model = LiveLearner(learned(), active_learning=ActiveLearning(size, 60.0)), learned()
    with serving(service) as client:
        for label in ("ham", "spam"):  # the second label replaces the first one
            given = ok(send(client, "/teach", {"message": {"text": "zanzibar"}, "label": label}))
            assert (given["n_given"], given["seconds"]) == (1, 60.0)
        assert [(each["text"], each["label"]) for each in asked(client)["given"]] == [("zanzibar", "spam")]
        ok(send(client, "/teach", {"number": given["number"], "take_back": True}))
        assert asked(client)["given"] == [] and bits(service.model) == bits(model)
        assert ("zanzibar" in numbers(client)) == (size > 0)
        refused(send(client, "/teach", {"message": {"text": "zanzibar"}, "label": "Spam"}), 422, "looks like")
        for body, word in (
            ({"message": {"text": "a"}, "number": 1, "label": "ham"}, "number"),
            ({"label": "ham"}, "number"),
            ({"message": {"text": "a"}, "label": None}, "needs one"),
            ({"message": {"text": "a"}, "take_back": True}, "needs one"),
            ({"message": {"x": "a"}, "label": "ham"}, "'x'"),
        ):
            refused(send(client, "/teach", body), 422, word)
        ok(send(client, "/teach", {"message": {"text": "zanzibar"}, "label": "ham"}))
    model.learn_one("zanzibar", "ham")
    assert bits(service.model) == bits(model)


def test_a_label_that_can_be_taken_back_gives_way_to_one_from_elsewhere_though_nobody_is_asked():
    service = LiveLearner(learned(), active_learning=ActiveLearning(0, 60.0))
    with serving(service) as client:
        ok(send(client, "/teach", {"message": {"text": "zanzibar"}, "label": "ham"}))
        assert learn(client, {"text": "zanzibar", "label": "spam"})["correction"] == "taken back"
    assert service.model.n_learned == len(STREAM) + 1


def test_a_file_has_no_other_messages():
    service = LiveLearner(learned(), active_learning=ActiveLearning(100, 60.0, of_file=True))
    with serving(service) as client:
        refused(send(client, "/teach", {"message": {"text": "a"}, "label": "ham"}), 422, "name one by its number")


def test_labels_come_with_how_many_messages_were_learned():
    service = asking_people()
    with serving(service) as client:
        learn(client, MESSAGES[:50])
        view = asked(client)
        expected = [sum(message["label"] == label for message in MESSAGES[:50]) for label in view["labels"]]
        # The first one had no answer yet, and is in no metric.
        expected[view["labels"].index(MESSAGES[0]["label"])] -= 1
        assert view["counts"] == expected
