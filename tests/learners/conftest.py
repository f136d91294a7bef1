import pytest


@pytest.fixture
def path(tmp_path):
    """Where a model is saved."""
    return tmp_path / "model.safetensors"
