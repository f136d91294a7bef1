"""rspamd's way of asking, over HTTP."""

import copy

import pytest
from spamd_client import HAM, SPAM, Service, Verdicts

from stream_pegasos.mail.rspamd import OWN_SYMBOL, checkv2

testclient = pytest.importorskip("starlette.testclient")

from stream_pegasos.service import Limits, create_app  # noqa: E402 which needs what may be missing


def test_a_mail_of_any_content_type_is_answered_as_by_rspamd(mail_model):
    service = Service(copy.deepcopy(mail_model), token="let me in", limits=Limits(body=10_000))
    app = create_app(service, more=[checkv2(service, Verdicts())])
    token = {"authorization": "Bearer let me in"}
    with testclient.TestClient(app) as client:
        assert client.post("/checkv2", content=SPAM).status_code == 401
        assert client.post("/checkv2", content=bytes(20_000), headers=token).status_code == 413
        spam = client.post("/checkv2", content=SPAM, headers={**token, "content-type": "x/y"}).json()
        ham = client.post("/checkv2", content=HAM, headers=token).json()
        odd = client.post("/checkv2", content=b"Message-ID: \xff\xed\xa0\x80\n\n\xff\x00", headers=token)
        assert "/checkv2" in client.get("/openapi.json", headers=token).json()["paths"]
    assert (spam["action"], ham["action"]) == ("add header", "no action")
    assert spam["score"] >= spam["required_score"] == 5.0 > ham["score"]
    assert (spam["message-id"], spam["is_skipped"]) == ("s@x", False)
    assert spam["symbols"][OWN_SYMBOL]["options"][0] == "outcome=spam"
    assert all(name == symbol["name"] for name, symbol in spam["symbols"].items())
    assert len(spam["symbols"]) > 3
    assert odd.status_code == 200
