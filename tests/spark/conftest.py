import os
import shutil

import pytest
from local_spark import local_spark


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A session of a Spark with two workers, in processes of their own."""
    pytest.importorskip("pyspark")
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        pytest.skip("there is no Java, which Spark needs")
    with local_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session
