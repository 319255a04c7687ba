"""Before Spark's first session on YARN: a store that nodes see, its jars on HDFS, and no orphans of ours."""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from pathlib import Path

from models.protocol import Yarn, platform
from models.spark_home import own_home
from pipeline.opening import node_python, open_resource_manager, reach
from pipeline.orphans import end_what_is_left
from pipeline.plan import Room
from pipeline.settings import Settings
from pipeline.shipping import publish_once, shipped
from store.errors import SettingError
from store.manifest import MANIFEST
from store.protocol import Store

JARS = "jars.zip"


def prepared(settings: Settings, store: Store, *, folder: str) -> Yarn:
    reached = reach(settings)
    if not reached.is_on_hdfs:
        raise SettingError(
            f"yarnstick.spark.master = yarn needs a store on HDFS, and yarnstick.store.url is {store.url}; set that to "
            f"hdfs:///user/NAME/yarnstick, or the master to local-cluster"
        )
    end_what_is_left(settings)
    return Yarn(
        reach=reached,
        folder=folder,
        jars=published_jars(store, settings.spark.home or own_home(), cache=settings.main.cache),
        queue=settings.hadoop.queue,
        resource_managers=settings.hadoop.resource_managers,
        accepted_seconds=settings.hadoop.accepted_seconds,
        python=node_python(settings),
        shipped=shipped(settings, "spark"),
        python_mib=_python_mib(settings),
    )


def queue_room(settings: Settings) -> Room:
    """What the ResourceManager would refuse is known before anything is submitted."""
    manager = open_resource_manager(settings)
    queue = manager.queue(settings.hadoop.queue)
    if queue.state != "RUNNING":
        raise SettingError(
            f"yarnstick.hadoop.queue = {settings.hadoop.queue} is {queue.state} and takes no application; set another "
            f"one, or have it started"
        )
    metrics = manager.metrics()
    return Room(
        queue=queue.name,
        cores=metrics.total_vcores if queue.maximum_vcores is None else queue.maximum_vcores,
        memory_mib=metrics.total_mib if queue.maximum_mib is None else queue.maximum_mib,
        largest_cores=metrics.total_vcores if queue.largest_vcores is None else queue.largest_vcores,
        largest_mib=metrics.total_mib if queue.largest_mib is None else queue.largest_mib,
        python_mib=_python_mib(settings),
        spark_conf=settings.spark.conf,
    )


def _python_mib(settings: Settings) -> int:
    """All executors of a run are alike, so that its platforms train on the same ones."""
    return settings.spark.overhead_mib if trains_in_python(settings) else 0


def trains_in_python(settings: Settings) -> bool:
    """Whether executors need a Python with all that ranks import."""
    return any(getattr(platform(name), "in_python", False) for name in settings.profile.platforms)


def published_jars(store: Store, home: Path, *, cache: Path) -> str:
    """The address of one file with all of Spark's jars: without it each session sends them anew, one by one.

    Not compressed, since jars are; once for each set of jars.
    """
    jars = sorted((home / "jars").glob("*.jar"))
    if not jars:
        raise SettingError(f"{home}/jars holds no jar; set yarnstick.spark.home to the directory of a Spark")
    listed = "\n".join(f"{jar.name} {jar.stat().st_size}" for jar in jars)
    path = f"spark/jars-{hashlib.sha256(listed.encode()).hexdigest()[:16]}"
    if store.exists(f"{path}/{MANIFEST}"):
        return f"{store.url}/{path}/{JARS}"
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=cache) as whole:
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED) as archive:
            for jar in jars:
                archive.write(jar, jar.name)
        whole.seek(0)
        return publish_once(store, path, name=JARS, source=whole, what=f"Spark's {len(jars)} jars")
