import pytest


@pytest.fixture
def client():
    from serving import serving

    from stream_pegasos import TextClassifier
    from stream_pegasos.runtime.live_learner import LiveLearner

    with serving(LiveLearner(TextClassifier())) as client:
        yield client


@pytest.fixture(scope="module")
def browser():
    from pages import a_browser

    with a_browser() as browser:
        yield browser


@pytest.fixture
def page(browser):
    from pages import a_page

    with a_page(browser) as page:
        yield page
