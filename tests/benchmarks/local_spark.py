"""A Spark on this machine, whose workers are processes of their own."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def local_spark(folder: Path, workers: int = 2, megabytes: int = 1024, java_options: str = "") -> Iterator[Any]:
    """A session with so many workers, of that much memory each; what it writes by itself goes to the folder, and its
    Java ends with it.
    """
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": java_options,
        "spark.executor.extraJavaOptions": java_options,
        "spark.executor.memory": f"{megabytes}m",
        "spark.local.dir": folder / "local",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": workers,
        "spark.sql.warehouse.dir": folder / "warehouse",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("SPARK_WORKER_DIR", str(folder / "workers"))
        builder = SparkSession.builder.master(f"local-cluster[{workers},1,{megabytes}]")
        for name, value in settings.items():
            builder = builder.config(name, str(value))
        session = builder.getOrCreate()
        gateway = session.sparkContext._gateway
        try:
            yield session
        finally:
            session.stop()
            gateway.shutdown()
            gateway.proc.stdin.close()  # which ends its Java
            gateway.proc.wait(60)
