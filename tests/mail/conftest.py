import pytest


@pytest.fixture(scope="session")
def mail_model():
    """A model that has learned 60 mails of each label."""
    pytest.importorskip("lxml")
    from stream_pegasos import MailFeatures, TextClassifier

    model = TextClassifier(MailFeatures())
    for i in range(60):
        model.learn_one(f"From: a{i}@win.example\nSubject: prize\n\nClaim your free prize no {i} now".encode(), "spam")
        model.learn_one(f"From: b{i}@work.example\nSubject: lunch\n\nShall we have lunch at noon, {i}?".encode(), "ham")
    return model


@pytest.fixture(scope="session")
def saved_mail_model(mail_model, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "mail.safetensors"
    mail_model.save(path)
    return path
