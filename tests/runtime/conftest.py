import pytest
from journals import close_all


@pytest.fixture(autouse=True)
def closed():
    yield
    close_all()
