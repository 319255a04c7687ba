"""What is told of the BLAS behind MLlib, as the JVMs of the executors answer."""

from __future__ import annotations

import pytest

from models.spark_application import told_blas

VECTOR, NATIVE = "dev.ludovic.netlib.blas.VectorBLAS@3b02f22b", "dev.ludovic.netlib.blas.JNIBLAS@b89ff57"


@pytest.mark.parametrize(
    ("answers", "executors", "told"),
    [
        ([("1@a", VECTOR)], 1, "VectorBLAS"),
        ([("1@a", VECTOR), ("1@a", VECTOR), ("2@a", VECTOR), ("2@a", VECTOR)], 2, "VectorBLAS"),
        ([("1@a", VECTOR), ("2@b", NATIVE)], 2, "JNIBLAS (1 of 2 executors), VectorBLAS (1 of 2 executors)"),
        ([("1@a", VECTOR), ("1@a", VECTOR)], 2, "VectorBLAS (1 of 2 executors)"),
    ],
)
def test_one_name_or_all_of_them(answers: list[tuple[str, str]], executors: int, told: str) -> None:
    assert told_blas(answers, executors=executors) == told
