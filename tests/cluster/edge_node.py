"""A working directory as on an edge node: settings with the store on HDFS and Spark on YARN, and one tiny profile."""

from __future__ import annotations

from cluster.configuration import QUICK

SETTINGS = """
[yarnstick]
noisy_share = {noisy_share}
noisy_repeats = {noisy_repeats}
probe_seconds = 0
lease = lease.lock

[yarnstick.store]
url = {url}
security = insecure
retry_seconds = 10

[yarnstick.mapreduce]
runner = inline

[yarnstick.spark]
master = yarn
home = {home}
# No seconds are looked at here: JVMs that live for half a minute are not worth a second compiler's work.
conf = {{"spark.driver.extraJavaOptions": "{quick}", "spark.executor.extraJavaOptions": "{quick}"}}

[core]
local_scheduler = true

[profile.tiny]
datasets = synthetic:600x20x3
networks = mlp:*-8-*
platforms = mllib
executors = {executors}
cores = {cores}
memory_mib = {memory_mib}
partitions = {partitions}
fractions = 1.0
epochs = 3
trials = 1
"""


def settings(
    url: str,
    *,
    noisy_share: float = 1,
    noisy_repeats: int = 0,
    home: object = "",
    executors: int = 2,
    cores: int = 1,
    memory_mib: int = 700,
) -> str:
    """The text of a luigi.cfg, with a partition for each slot."""
    return SETTINGS.format(
        url=url,
        noisy_share=noisy_share,
        noisy_repeats=noisy_repeats,
        home=home,
        executors=executors,
        cores=cores,
        memory_mib=memory_mib,
        partitions=executors * cores,
        quick=" ".join(QUICK),
    )
