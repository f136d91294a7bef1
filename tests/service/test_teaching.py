"""People teach over HTTP: what they are asked, the labels that they give and those that they take back."""

import json

import pytest
from serving import GOOD, MESSAGES, STREAM, bits, learned, ok, refused, resumed, serving, wait

from stream_pegasos import AdaptiveClassifier, MultiLabelClassifier, OrdinalClassifier, TextClassifier
from stream_pegasos.operation.teaching import Teaching
from stream_pegasos.service import Limits, Service

NEW = ["free lunch", "win a meeting", "claim it"]


def asked(client, **query):
    return ok(client.get("/asked", params=query))


def numbers(client, **query):
    return {message["text"]: message["number"] for message in asked(client, **query)["messages"]}


def teach(client, text, label):
    return client.post("/teach", json={"number": numbers(client, limit=100)[text], "label": label})


def predict(client, texts=NEW):
    return ok(client.post("/predict", json=[{"text": text} for text in texts]))


def test_a_label_is_learned_once_it_cannot_be_taken_back():
    service = Service(learned(), teaching=Teaching(seconds=0.3))
    model = learned()
    with serving(service) as client:
        said = dict(zip(NEW, predict(client), strict=True))
        view = asked(client)
        assert {message["text"] for message in view["messages"]} == {*NEW}
        for message in view["messages"]:
            assert message["label"] == said[message["text"]]["label"]
        margins = [abs(said[message["text"]]["margin"]) for message in view["messages"]]
        assert margins == sorted(margins)  # the least sure first
        assert (view["labels"], view["kind"], view["n_waiting"]) == (["ham", "spam"], "two classes", 3)

        ok(teach(client, NEW[0], "ham"))
        assert service.model.n_learned == len(STREAM)
        view = asked(client)
        assert [(each["text"], each["label"]) for each in view["given"]] == [(NEW[0], "ham")]
        assert 0.0 < view["given"][0]["seconds"] <= 0.3
        wait(lambda: service.model.n_learned == len(STREAM) + 1, 10)
        model.learn_one(NEW[0], "ham")
        assert bits(service.model) == bits(model)
        assert ok(client.get("/monitor"))["n"] == 1  # predicted before it was learned, and counted
        assert {*numbers(client)} == {*NEW[1:]}


def test_what_is_taken_back_was_never_learned():
    service = Service(learned(), teaching=Teaching(seconds=60.0))
    model = learned()
    with serving(service) as client:
        predict(client)
        number = numbers(client)[NEW[0]]
        for label in ("spam", "a new one"):
            ok(teach(client, NEW[0], label))
            assert number not in numbers(client).values()
            ok(client.post("/take-back", json={"number": number}))
            assert numbers(client)[NEW[0]] == number
        assert asked(client)["labels"] == ["ham", "spam"] and bits(service.model) == bits(model)
        refused(client.post("/take-back", json={"number": number}), 404, "learned stays learned")
        ok(teach(client, NEW[0], "ham"))
    model.learn_one(NEW[0], "ham")  # what was given is learned when the service ends
    assert bits(service.model) == bits(model)


def test_the_sixth_label_makes_the_first_one_stay():
    service = Service(TextClassifier(), teaching=Teaching(seconds=60.0))
    with serving(service) as client:
        texts = [f"message {i}" for i in range(7)]
        predict(client, texts)
        for i, text in enumerate(texts):
            ok(teach(client, text, "spam" if i % 2 else "ham"))
            assert service.model.n_learned == max(0, i - 4)
        assert [each["text"] for each in asked(client)["given"]] == texts[:1:-1]


def test_labels_that_are_new_and_labels_that_a_model_does_not_take():
    service = Service(TextClassifier(), limits=Limits(classes=2), teaching=Teaching(seconds=60.0))
    with serving(service) as client:
        predict(client, [*NEW, "more"])
        assert asked(client)["labels"] == []
        ok(teach(client, NEW[0], " 1 "))
        assert asked(client)["labels"] == [1]  # as streams have it
        ok(teach(client, NEW[1], "1"))
        ok(teach(client, NEW[2], "two"))
        assert asked(client)["labels"] == [1, "two"]  # each stays where it was
        refused(teach(client, "more", "three"), 422, "there may be 2")
        refused(teach(client, "more", " "), 422, "blank")
        refused(teach(client, "more", ["two"]), 422, "not a list")
        refused(teach(client, "more", "x" * 201), 413, "201")
        refused(client.post("/teach", json={"number": 99, "label": "two"}), 404, "message 99")
        refused(client.post("/teach", json={"number": "x", "label": "two"}), 422, "number")
        refused(client.post("/teach", json={"number": 4}), 422, "label")
        refused(client.post("/teach", json=[]), 422, "")
        refused(client.get("/asked", params={"limit": 101}), 422, "parameters")
        refused(client.get("/asked", params={"first": "best"}), 422, "parameters")
        assert {*numbers(client)} == {"more"}
        ok(teach(client, "more", None))  # passed over
        predict(client, ["more"])
        assert numbers(client) == {} and service.teaching.n_given == 3


def test_labels_that_hold_together_and_ordered_ones():
    several = Service(TextClassifier(classifier=MultiLabelClassifier()), teaching=Teaching(seconds=0.0))
    with serving(several) as client:
        predict(client)
        ok(teach(client, NEW[0], ["oil", "gas"]))
        ok(teach(client, NEW[1], []))
        refused(teach(client, NEW[2], "oil"), 422, "must be a list")
        assert several.model.n_learned == 2
        view = asked(client)
        assert view["labels"] == ["gas", "oil"] and view["messages"][0]["label"] in ([], ["oil", "gas"], ["gas", "oil"])
    ordered = Service(
        TextClassifier(classifier=OrdinalClassifier(AdaptiveClassifier())), teaching=Teaching(seconds=0.0)
    )
    with serving(ordered) as client:
        predict(client)
        for text, label in zip(NEW, (5, "10", 1), strict=False):
            ok(teach(client, text, label))
        assert asked(client)["labels"] == [1, 5, 10]
        predict(client, ["more"])
        refused(teach(client, "more", "good"), 422, "good")


def test_nobody_is_asked_where_no_message_is_kept():
    for service in (Service(TextClassifier()), Service(TextClassifier(), teaching=Teaching(size=0))):
        with serving(service) as client:
            predict(client)
            assert asked(client)["messages"] == [] and not ok(client.get("/monitor"))["asks"]
            refused(client.post("/teach", json={"number": 1, "label": "x"}), 404, "message 1")


def test_a_message_that_others_label_is_not_asked_for():
    with serving(Service(TextClassifier(), teaching=Teaching())) as client:
        predict(client)
        ok(client.post("/learn", json={"text": NEW[0], "label": "spam"}))
        assert {*numbers(client)} == {*NEW[1:]}


def test_a_message_that_others_label_too_is_learned_once_with_their_label():
    service = Service(TextClassifier(), teaching=Teaching(seconds=60.0))
    alone = TextClassifier()
    with serving(service) as client:
        predict(client)
        ok(teach(client, NEW[0], "ham"))
        ok(client.post("/learn", json={"text": NEW[0], "label": "spam"}))
        assert asked(client)["given"] == [] and service.teaching.n_given == 0
        predict(client)  # comes again, and does not wait
        assert {*numbers(client)} == {*NEW[1:]}
    alone.learn_one(NEW[0], "spam")
    assert bits(service.model) == bits(alone)


def test_a_message_with_an_id_is_learned_once_whoever_labels_it():
    service = Service(TextClassifier(), teaching=Teaching(seconds=0.0))
    with serving(service) as client:
        for i, text in enumerate(NEW):
            ok(client.post("/predict", json={"text": text, "id": i}))
        ok(teach(client, NEW[0], "ham"))
        assert ok(client.get("/learned"))["ids"] == [0]
        assert not ok(client.post("/learn", json={"text": NEW[0], "label": "ham", "id": 0}))["learned"]
        ok(client.post("/learn", json={"text": "as it was sent", "label": "spam", "id": 1}))
        ok(teach(client, NEW[1], "spam"))  # the same message, which others have labelled
        ok(client.post("/predict", json=[{"text": "again", "id": 1}, {"text": "new", "id": 9}]))
        assert {*numbers(client)} == {NEW[2], "new"}
    assert service.model.n_learned == 2


def test_no_message_stands_in_a_checkpoint(tmp_path):
    path = tmp_path / "mail.safetensors"
    service = resumed(path)
    service.teaching = Teaching(seconds=60.0)
    with serving(service) as client:
        ok(client.post("/learn", json=MESSAGES[:50]))
        predict(client, ["zanzibar", "quagmire"])
        ok(teach(client, "zanzibar", "spam"))
    assert b"quagmire" not in path.read_bytes()
    assert resumed(path).model.n_learned == 51  # with the label that was given


def test_a_disk_that_is_full_costs_no_message():
    class Full:
        def given(self, message, label):
            raise OSError(28, "No space left on device")

    with serving(Service(TextClassifier(), teaching=Teaching(keeper=Full()))) as client:
        predict(client)
        refused(teach(client, NEW[0], "spam"), 503, "No space left")
        assert NEW[0] in numbers(client)


def test_openapi_tells_of_teaching():
    with serving(Service(TextClassifier(), teaching=Teaching())) as client:
        paths = ok(client.get("/openapi.json"))["paths"]
        predict(client)
        for path in ("/teach", "/take-back"):
            examples = paths[path]["post"]["requestBody"]["content"]["application/json"]["examples"]
            assert ok(client.post(path, json={**examples["one message"]["value"], "number": 1}))["n_given"] == (
                path == "/teach"
            )
        assert {parameter["name"] for parameter in paths["/asked"]["get"]["parameters"]} == {"limit", "first", "also"}


@pytest.mark.parametrize(
    "label, content, known",
    [(True, "true", {False, True}), (2**63 - 1, str(2**63 - 1), {2**63 - 1}), ("\ud800", r'"\ud800"', {"\ud800"})],
)
def test_labels_of_any_kind_are_offered_as_they_can_be_given(label, content, known):
    service = Service(TextClassifier(), teaching=Teaching(seconds=0.0))
    with serving(service) as client:
        predict(client)
        for text in NEW[:2]:
            body = f'{{"number": {numbers(client)[text]}, "label": {content}}}'
            ok(client.post("/teach", content=body, headers={"content-type": "application/json"}))
            assert {*service.model.classes} - {None} == known
            if label != "\ud800":  # which no client would encode
                (content,) = {json.dumps(each) for each in asked(client)["labels"]} - {"false"}


def test_labels_that_are_fixed():
    """In their order, from the first message on; nothing of a request with another one is learned."""
    service = Service(TextClassifier(), teaching=Teaching(seconds=60.0), labels=["spam", "ham", 3])
    with serving(service) as client:
        predict(client)
        view = asked(client)
        assert (view["labels"], view["are_fixed"]) == (["spam", "ham", 3], True)
        good = {"text": "a", "label": "ham", "id": 1}
        other = client.post("/learn", json=[good, {"text": "b", "label": "Spam"}])
        refused(other, 422, "label 'Spam' is none of 'spam', 'ham', 3")
        refused(teach(client, NEW[0], "Spam"), 422, "label 'Spam' is none of 'spam', 'ham', 3")
        assert service.model.n_learned == 0 and ok(client.get("/learned"))["ids"] == []
        ok(teach(client, NEW[0], "ham"))
        ok(client.post("/learn", json=[good, {"text": "b", "label": "3"}]))
        assert asked(client)["labels"] == ["spam", "ham", 3]
    several = Service(TextClassifier(classifier=MultiLabelClassifier()), labels=["oil", "gas"], teaching=Teaching())
    with serving(several) as client:
        ok(client.post("/learn", json=[{"text": "a", "label": ["gas"]}, {"text": "b", "label": []}]))
        refused(client.post("/learn", json={"text": "a", "label": ["gas", "Oil"]}), 422, "label 'Oil' is none of 'oil'")
        assert asked(client)["labels"] == ["oil", "gas"]


@pytest.mark.parametrize("first, second, other", [(True, False, "false"), ("true", "false", False), (1, 0, "false")])
def test_fixed_labels_are_written_as_the_first_one(first, second, other):
    for by_page in (False, True):
        service = Service(TextClassifier(), teaching=Teaching(seconds=60.0), labels=["false", "true"])
        with serving(service) as client:
            predict(client)
            refused(client.post("/learn", json=[{"text": "a", "label": first}, GOOD]), 422, "'spam' is none of")
            assert asked(client)["labels"] == ["false", "true"]  # nothing of that is learned
            if by_page:
                service.teaching.give(numbers(client)[NEW[0]], first)
            else:
                ok(client.post("/learn", json={"text": "a", "label": first}))
            shown = asked(client)["labels"]
            assert shown == [second, first] and [*map(type, shown)] == [type(second), type(first)]
            refused(client.post("/learn", json={"text": "a", "label": other}), 422, "is none of")
            ok(teach(client, NEW[1], shown[0]))


def test_a_label_is_never_taken_for_another_that_looks_like_it():
    """As a model that was trained elsewhere may have them."""
    alike = ["x" * 199 + "yes", "x" * 199 + "no", 7, "7"]
    model = TextClassifier()
    model.learn_many(["a", "b", "c", "d"], alike)
    service = Service(model, teaching=Teaching(seconds=60.0))
    with serving(service) as client:
        predict(client)
        long = "x" * 199 + "…"
        assert asked(client)["labels"] == [7, "7", long, long]
        refused(teach(client, NEW[0], long), 422, "may be any of 2 labels")
        ok(teach(client, NEW[0], 7))
        ok(teach(client, NEW[1], "7"))
        assert [given.label for given, _ in service.teaching.given()] == ["7", 7]
