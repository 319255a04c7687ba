"""The whole graph on one page: raw files to a report, each step done when what it publishes is there."""

from __future__ import annotations

from typing import Any, ClassVar

import luigi
from luigi.cmdline_parser import CmdlineParser

from models.spec import TrialSpec
from pipeline.config import has_own_configuration
from pipeline.datasets.ingest import ingest
from pipeline.datasets.normalize import find_range, normalize
from pipeline.datasets.pack import pack
from pipeline.experiment import Experiment, experiment, log
from pipeline.luigi_manners import fail_loudly, leave_it, tell_once
from pipeline.luigid import AtWorkElsewhereError, claim_of_central_scheduler
from pipeline.reporting import merge, raise_if_failed, report
from pipeline.run_file import MERGED, PUBLISHED
from store.errors import SettingError, StoreError, YarnstickError
from store.protocol import Store

# Luigi runs the highest priority first, and takes none below 0: bad data is found before the first trial.
DATA_FIRST = 2_000_000
FIRST_TRIAL = 1_000_000


class Published(luigi.Target):
    """A path of the store: it is there complete or not at all."""

    def __init__(self, store: Store, path: str) -> None:
        self.store, self.path = store, path

    def exists(self) -> bool:
        return self.store.exists(self.path)


class Step(luigi.Task):
    """What all steps of a run have in common."""

    profile = luigi.Parameter(default="quick")
    run_id = luigi.Parameter()
    settings = luigi.Parameter(default="{}", description='{"section.key": "value"}')

    @property
    def run_of(self) -> Experiment:
        return experiment(self.profile, self.run_id, self.settings)

    def step(self, kind: type[Step], **parameters: Any) -> Step:
        return kind(profile=self.profile, run_id=self.run_id, settings=self.settings, **parameters)

    def complete(self) -> bool:
        """Asked of each task again and again, but of a store that is gone only once."""
        try:
            with self.run_of.unbroken():
                return self.is_done()
        except YarnstickError as error:
            tell_once(error)  # Luigi would show a traceback of it where it plans
            raise

    def is_done(self) -> bool:
        return bool(super().complete())  # type: ignore[no-untyped-call]

    def on_failure(self, exception: BaseException) -> str:
        if not isinstance(exception, YarnstickError):
            return str(super().on_failure(exception))  # type: ignore[no-untyped-call]
        if isinstance(exception, StoreError) and self.run_of.broken is None:
            self.run_of.broken = exception
        tell_once(exception)
        return str(exception)

    def published(self, *paths: str) -> list[Published]:
        return [Published(self.run_of.store, path) for path in paths]


class DataStep(Step):
    data = luigi.Parameter(description="the slug of the dataset")
    priority = DATA_FIRST
    doing: ClassVar[str]

    def split_paths(self, stage: str) -> list[Published]:
        return self.published(f"data/{self.data}/{stage}/train", f"data/{self.data}/{stage}/test")


@DataStep.event_handler(luigi.Event.START)  # type: ignore[no-untyped-call]
def tell(step: DataStep) -> None:
    log.info("%s: %s", step.run_of.sources[step.data].name, step.doing)


class Ingest(DataStep):
    doing = "reads the raw data"

    def output(self) -> list[Published]:
        return self.split_paths("csv")

    def run(self) -> None:
        ingest(self.run_of.sources[self.data], self.run_of.store, self.data)


class PixelRange(DataStep):
    doing = "finds the range of its values"

    def requires(self) -> Step:
        return self.step(Ingest, data=self.data)

    def output(self) -> list[Published]:
        return self.published(f"data/{self.data}/range.json")

    def run(self) -> None:
        find_range(self.run_of.store, self.data, self.run_of.settings)


class Normalize(DataStep):
    doing = "normalizes"

    def requires(self) -> Step:
        return self.step(PixelRange, data=self.data)

    def output(self) -> list[Published]:
        return self.split_paths("normalized")

    def run(self) -> None:
        normalize(self.run_of.store, self.data, self.run_of.settings)


class Pack(DataStep):
    doing = "packs"

    def requires(self) -> Step:
        return self.step(Normalize, data=self.data)

    def output(self) -> list[Published]:
        return self.split_paths("packed")

    def run(self) -> None:
        pack(self.run_of.store, self.data, self.run_of.settings)


class Trial(Step):
    spec = luigi.Parameter(description="a TrialSpec as JSON")
    place = luigi.IntParameter(description="in the shuffled order of the run", significant=False)

    @property
    def priority(self) -> int:  # type: ignore[override]
        return FIRST_TRIAL - self.place

    def requires(self) -> list[Step]:
        return [self.step(Pack, data=data) for data in self.run_of.sources]

    def is_done(self) -> bool:
        return self.run_of.is_over(TrialSpec.decode(self.spec))

    def run(self) -> None:
        self.run_of.measure(TrialSpec.decode(self.spec))


class Merge(Step):
    def requires(self) -> list[Step]:
        planned = self.run_of.planned
        return [self.step(Trial, spec=each.spec.encode(), place=place) for place, each in enumerate(planned, 1)]

    def is_done(self) -> bool:
        return self.run_of.is_current(MERGED)

    def run(self) -> None:
        self.run_of.close()
        merge(self.run_of)


class Report(Step):
    """The main job: `luigi --module pipeline.tasks Report --profile quick --run-id R`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]
        try:
            if CmdlineParser.get_instance() and not has_own_configuration():
                raise SettingError("no ./luigi.cfg and no LUIGI_CONFIG_PATH; write one with yarnstick init")
            fail_loudly()
            if CmdlineParser.get_instance():
                claim_of_central_scheduler(self.run_of.store.url, self.run_id)
            self.run_of.begin()
            self.is_done()
        except YarnstickError as error:
            # From here on Luigi would show a traceback of it.
            raise SystemExit(f"Error: {error}") from None
        except AtWorkElsewhereError as answer:
            leave_it(answer)

    def requires(self) -> Step:
        return self.step(Merge)

    def is_done(self) -> bool:
        return self.run_of.is_current(PUBLISHED)

    def run(self) -> None:
        report(self.run_of)
        raise_if_failed(self.run_of)
