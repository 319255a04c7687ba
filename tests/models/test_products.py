"""Products by whatever library are the same products, and a choice among them is by speed that is worth it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from models import products
from models.products import OneDnn, Own, Products, candidates, fastest, has_one_dnn

CPU = torch.device("cpu")
ONE_DNN = pytest.mark.skipif(not has_one_dnn(), reason="this torch comes without oneDNN's product")


@pytest.fixture
def chosen_anew() -> Iterator[None]:
    products._fastest.cache_clear()
    yield
    products._fastest.cache_clear()


@pytest.mark.parametrize("ours", [Own(), pytest.param(OneDnn(), marks=ONE_DNN)], ids=lambda each: each.library)
def test_they_are_what_they_say(ours: Products) -> None:
    random = torch.Generator().manual_seed(0)
    inputs, matrix, bias = (torch.rand(*size, generator=random) for size in ((30, 7), (5, 7), (5,)))
    delta = torch.rand(30, 5, generator=random)
    torch.testing.assert_close(ours.affine(inputs, matrix, bias, out=torch.empty(30, 5)), inputs @ matrix.t() + bias)
    torch.testing.assert_close(ours.times(delta, matrix, out=torch.empty(30, 7)), delta @ matrix)
    total = torch.ones(5, 7)
    ours.add_outer(total[1:3], delta[:, 1:3], inputs, room=torch.empty(2, 7))  # a block, as it is sent early
    wanted = torch.ones(5, 7)
    wanted[1:3] += delta[:, 1:3].t() @ inputs
    torch.testing.assert_close(total, wanted)


def test_a_sum_keeps_the_digits_that_its_addends_have_not() -> None:
    total = torch.full((1, 1), 256.0)
    one = torch.ones(1, 1, dtype=torch.bfloat16)
    Own().add_outer(total, one, one, room=torch.empty(1, 1, dtype=torch.bfloat16))
    assert total.item() == 257.0  # bfloat16 would say 256


@ONE_DNN
@pytest.mark.usefixtures("chosen_anew")
@pytest.mark.parametrize(("one_dnn_seconds", "library"), [(0.4, "onednn"), (0.7, Own().library), (3.0, Own().library)])
def test_another_library_has_to_be_faster_by_far(
    one_dnn_seconds: float, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    took = iter([0.8, one_dnn_seconds] * products.PROBES)
    monkeypatch.setattr(products, "_seconds", lambda work: next(took))
    assert fastest(torch.float32, CPU).library == library


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_one_dnn_is_asked_for_float32_only(dtype: torch.dtype) -> None:
    assert fastest(dtype, CPU).library == Own().library
    assert [each.library for each in candidates(dtype)] == [Own().library]


@pytest.mark.usefixtures("chosen_anew")
def test_a_torch_whose_operator_is_another_one_multiplies_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object, **__: object) -> torch.Tensor:
        raise TypeError("takes 3 positional arguments")

    monkeypatch.setattr(OneDnn, "affine", refuses)
    has_one_dnn.cache_clear()
    try:
        assert fastest(torch.float32, CPU).library == Own().library
    finally:
        has_one_dnn.cache_clear()
