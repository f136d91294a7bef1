import os

import pytest

pytestmark = pytest.mark.spark


def test_workers_are_two_processes_with_this_package(spark):
    def process(_):
        import stream_pegasos

        yield os.getppid(), stream_pegasos.__file__

    import stream_pegasos

    found = spark.sparkContext.parallelize(range(2), 2).mapPartitions(process).collect()
    assert len({parent for parent, _ in found}) == 2
    assert {file for _, file in found} == {stream_pegasos.__file__}
