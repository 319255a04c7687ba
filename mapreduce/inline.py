"""mrjob's inline runner without its copy of the input: what is split for tasks that run one by one is only copied."""

from __future__ import annotations

import os
from typing import Any

from mrjob.inline import InlineMRJobRunner


class InPlaceRunner(InlineMRJobRunner):
    """One map task for each file, which it reads where it lies."""

    def _split_mapper_input(self, input_paths: list[str], step_num: int) -> list[dict[str, Any]]:
        splits = []
        for number, path in enumerate(input_paths):
            task_input = self._task_input_path("mapper", step_num, number)
            self.fs.mkdir(os.path.dirname(task_input))
            os.symlink(os.path.abspath(path), task_input)
            splits.append({"file": path, "start": 0, "length": os.stat(path).st_size})
        return splits
