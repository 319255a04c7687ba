"""A Spark application on Spark's own cluster manager, whose nodes see the same paths as this machine."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

from models.protocol import Surroundings
from models.sent_code import own_code
from models.spark_conf import DRIVER_OPTIONS
from models.spark_home import own_home
from models.spark_master import LocalCluster, jvm_options
from models.spec import Resources
from store.errors import TrialError

if TYPE_CHECKING:
    from pyspark import SparkContext

CONNECT_SECONDS = 10.0


class Standalone(LocalCluster):
    """As executors of this machine are, but for who starts them, and where they find the driver."""

    name = "standalone"

    def __init__(self, surroundings: Surroundings, url: str) -> None:
        super().__init__(surroundings)
        self._url = url

    def conf(self, resources: Resources) -> dict[str, str]:
        work, address = self._surroundings.work, driver_address(self._url)
        os.environ["SPARK_HOME"] = str(self._surroundings.spark_home or own_home())
        os.environ["SPARK_LOCAL_IP"] = address
        self._surroundings.archives.mkdir(parents=True, exist_ok=True)
        return {
            "spark.master": self._url,
            "spark.cores.max": str(resources.total_cores),
            "spark.driver.host": address,
            "spark.driver.bindAddress": address,
            DRIVER_OPTIONS: jvm_options(work),
            "spark.eventLog.dir": self._surroundings.archives.as_uri(),
            "spark.local.dir": str(work / "local"),
        }

    def send_code(self, context: SparkContext) -> None:
        """Executors have an environment of their own."""
        context.addPyFile(str(own_code(self._surroundings.work)))

    def refused(self, message: str) -> TrialError:
        return TrialError(f"Spark did not start on {self._url}: {message}")

    def stop(self, session: Any, gateway: Any) -> None:
        """In good order: the master would keep the executors of a driver that was killed for a while."""
        session.stop()
        gateway.shutdown()


def driver_address(url: str) -> str:
    """Of this machine, as the master sees it: where nodes find the driver. Of several masters any that answers."""
    why: OSError | None = None
    for place in url.removeprefix("spark://").split(","):
        host, _, port = place.partition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS) as connection:
                return str(connection.getsockname()[0])
        except OSError as error:
            why = error
    raise TrialError(f"no Spark master answers at {url} ({why}); start it, or correct yarnstick.spark.master")
