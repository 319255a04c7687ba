"""synthetic:ROWSxCOLUMNSxCLASSES: any number of rows with labels that can be learned, for trying things out."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator

import numpy as np

from mapreduce.rows import byte_lines
from pipeline.datasets.sources import SPLITS, Description, Split
from pipeline.settings import Settings
from store.errors import SettingError

BLOCK_ROWS = 4096
GENERATOR = 1  # another number for other rows of the same name
NOISE = 96
LARGEST = 2**31 - 1
MOST_COLUMNS = 100_000
MOST_CLASSES = 1_000


class Synthetic:
    """A row is the prototype of its class and noise, as whole numbers 0..255."""

    def __init__(self, name: str, settings: Settings) -> None:
        sizes = re.fullmatch(r"synthetic:([0-9]{1,10})x([0-9]{1,10})x([0-9]{1,10})", name, re.ASCII)
        if not sizes:
            raise SettingError(f"dataset {name!r}: write synthetic:ROWSxCOLUMNSxCLASSES, as synthetic:60000x784x10")
        self.name = name
        self._rows, self._columns, self._classes = (int(size) for size in sizes.groups())
        self._seed = settings.csv.split_seed
        limits = {"rows": (1, LARGEST), "columns": (1, MOST_COLUMNS), "classes": (2, MOST_CLASSES)}
        for (what, (least, most)), given in zip(limits.items(), sizes.groups(), strict=True):
            if not least <= int(given) <= most:
                raise SettingError(f"dataset {name!r}: {given} {what}; {least} to {most} are possible")

    def declaration(self) -> dict[str, object]:
        return {"generator": GENERATOR, "split_seed": self._seed}

    def description(self) -> Description:
        parameters = [GENERATOR, self._rows, self._columns, self._classes, self._seed]
        return Description(
            columns=self._columns,
            classes=self._classes,
            train_rows=self._rows,
            test_rows=max(1, self._rows // 5),
            checksum=hashlib.sha256(json.dumps(parameters).encode()).hexdigest(),
            pixel_range=(0, 255),
        )

    def fetch(self) -> None:
        """There is nothing to fetch: it is generated."""

    def rows(self, split: Split) -> Iterator[bytes]:
        """Each block of rows has a random generator of its own, so that no row depends on those before it."""
        description = self.description()
        total = description.train_rows if split == "train" else description.test_rows
        prototypes = np.random.default_rng(self._seed).integers(
            0, 256, (self._classes, self._columns), np.int16, endpoint=False
        )
        for block in range(-(-total // BLOCK_ROWS)):
            random = np.random.default_rng([self._seed, SPLITS.index(split), block])
            labels = random.integers(0, self._classes, BLOCK_ROWS)
            noise = random.integers(-NOISE, NOISE, (BLOCK_ROWS, self._columns), np.int16, endpoint=True)
            pixels = np.clip(prototypes[labels] + noise, 0, 255).astype(np.uint8)
            rows = min(BLOCK_ROWS, total - block * BLOCK_ROWS)
            yield bytes(byte_lines(pixels[:rows], labels[:rows]))
