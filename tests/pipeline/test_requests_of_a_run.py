"""A run that is continued asks HDFS once what there is, and not for each trial."""

from __future__ import annotations

from pathlib import Path

from tests.pipeline.place import PROFILE, Place
from tests.store.wrong_hdfs import serving

SETTINGS = """
[yarnstick.store]
url = webhdfs://{authority}/ours
security = insecure
"""
RUN = ("run", "--profile", "tiny", "--run-id", "R", "--set", "profile.tiny.trials=6")
TRIALS = "/ours/runs/R/trials"


def test_one_listing_before_the_first_trial_and_a_few_for_each_that_is_measured(tmp_path: Path) -> None:
    """Of twelve trials one is missing."""
    with serving() as hdfs:
        place = Place(tmp_path, PROFILE + SETTINGS.format(authority=hdfs.address.removeprefix("http://")))
        done = place.run(*RUN)
        assert done.returncode == 0, done.stderr
        slugs = place.trained()
        assert len(slugs) == 12
        hdfs.namespace.remove(f"{TRIALS}/{slugs[-1]}")
        hdfs.asked.clear()
        again = place.run(*RUN)
        assert again.returncode == 0, again.stderr
        assert place.trained() == [*slugs, slugs[-1]]
        listings = [operation for operation, path, _ in hdfs.asked if (operation, path) == ("LISTSTATUS", TRIALS)]
        assert len(listings) <= 4, "the first, in front of the trial, after it, and to merge"
        opened = [path for operation, path, _ in hdfs.asked if operation == "OPEN" and path.endswith("/outcome.json")]
        assert sorted(opened) == sorted(f"{TRIALS}/{slug}/outcome.json" for slug in slugs)
