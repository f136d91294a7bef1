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
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # Java that begins sooner, as each test is short
    with local_spark(tmp_path_factory.mktemp("spark"), java_options=quick) as session:
        yield session
