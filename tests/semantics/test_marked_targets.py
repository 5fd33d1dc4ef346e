"""Integers with a meaning of their own among indices: ignored classes, ends of lists, padding."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch._dynamo.exc import BackendCompilerFailed

import inductor_lab as lab

Tensor = torch.Tensor
Loss = Callable[[Tensor, Tensor], Tensor]

CLASSES = 5
LISTS = [[3, 0, -1, 1, 2], [-1] * 5, [4, 3, 2, 1, 0], [2, 2, -1, 0, 0], [1, -1, 4, -1, 4]]
WEIGHT = torch.linspace(0.5, 1.5, CLASSES)

LOSSES: dict[str, Loss] = {
    "multilabel margin": F.multilabel_margin_loss,
    "multilabel margin, sum": lambda x, t: F.multilabel_margin_loss(x, t, reduction="sum"),
    "multilabel margin, none": lambda x, t: F.multilabel_margin_loss(x, t, reduction="none"),
    "multilabel margin, module": torch.nn.MultiLabelMarginLoss(),
    "one multilabel margin": lambda x, t: F.multilabel_margin_loss(x[0], t[0]),
    "multi margin": lambda x, t: F.multi_margin_loss(x, t[:, 0].abs()),
    "squared multi margin": lambda x, t: F.multi_margin_loss(
        x, t[:, 0].abs(), p=2, margin=0.5, weight=WEIGHT, reduction="none"
    ),
    "one multi margin": lambda x, t: F.multi_margin_loss(x[0], t[0, 0], reduction="none"),
    "one multi margin, one target": lambda x, t: F.multi_margin_loss(
        x[0], t[0, :1], reduction="none"
    ),
    "multi margin, a batch of one": lambda x, t: F.multi_margin_loss(x[:1], t[0, :1]),
    "cross entropy": lambda x, t: F.cross_entropy(x, t[:, 0], ignore_index=-1),
    "weighted cross entropy": lambda x, t: F.cross_entropy(
        x, t[:, 1].abs(), weight=WEIGHT, ignore_index=3, label_smoothing=0.1
    ),
    "no class counts": lambda x, t: F.cross_entropy(x, t[:, 0] * 0 - 1, ignore_index=-1),
    "images": lambda x, t: F.nll_loss(
        x.log_softmax(1).unsqueeze(-1).expand(-1, -1, CLASSES), t, WEIGHT, ignore_index=-1
    ),
    "padding": lambda x, t: F.embedding(t.abs(), x, padding_idx=2),
    "padding from the end": lambda x, t: F.embedding(t.abs(), x, padding_idx=-1),
    "bags": lambda x, t: F.embedding_bag(t.abs(), x, mode="mean", padding_idx=1),
    "bags of maxima": lambda x, t: F.embedding_bag(t.abs(), x, mode="max", padding_idx=1),
    "blanks": lambda x, t: F.ctc_loss(
        x.log_softmax(-1).unsqueeze(1).expand(-1, 2, -1), t[:2, :3].abs(),
        torch.tensor([5, 4]), torch.tensor([2, 3]), blank=4, zero_infinity=True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("rounded", [False, True], ids=["numbers", "equal numbers"])
@pytest.mark.parametrize("name", LOSSES)
def test_marked_targets(name: str, rounded: bool) -> None:
    torch.compiler.reset()
    torch.manual_seed(0)
    loss, target = LOSSES[name], torch.tensor(LISTS)
    x = torch.randn(len(LISTS), CLASSES)
    x = x.round() if rounded else x
    given = [x.clone().requires_grad_() for _ in range(2)]
    found, expected = lab.compile(loss)(given[0], target), loss(given[1], target)
    torch.testing.assert_close(found, expected, equal_nan=True)
    weight = torch.randn(expected.shape)
    ours, theirs = (
        torch.autograd.grad(y, x, weight) for y, x in zip((found, expected), given, strict=True)
    )
    torch.testing.assert_close(ours, theirs, equal_nan=True)


@pytest.mark.parametrize("place", [1, 4])
@pytest.mark.parametrize("wrong", [-2, CLASSES])
def test_a_target_that_is_no_class_raises(wrong: int, place: int) -> None:
    torch.compiler.reset()
    target = torch.tensor(LISTS)
    target[1, place] = wrong
    for loss in (F.multilabel_margin_loss, lab.compile(F.multilabel_margin_loss)):
        with pytest.raises(RuntimeError, match="'target' is out of range"):
            loss(torch.randn(5, CLASSES), target)


@pytest.mark.parametrize("kind", ["half", "int32", "sizes", "dims", "legacy", "NaN", "scalar"])
def test_other_arguments_are_handled_as_in_eager_mode(kind: str) -> None:
    torch.compiler.reset()
    torch.manual_seed(0)
    x, target = torch.randn(5, CLASSES), torch.tensor(LISTS)
    nan = x.where(x != x.max(), torch.nan)
    given = {
        "half": (x.half(), target), "int32": (x, target.int()), "sizes": (x, target[:, :4]),
        "dims": (x[None], target[None]), "legacy": (x, target, False), "NaN": (nan, target),
        "scalar": (x[0, 0], target[3, 3]),
    }[kind]  # fmt: skip
    try:
        expected = F.multilabel_margin_loss(*given)
    except (RuntimeError, NotImplementedError) as error:
        with pytest.raises((type(error), BackendCompilerFailed)):
            lab.compile(F.multilabel_margin_loss)(*given)
    else:
        torch.testing.assert_close(lab.compile(F.multilabel_margin_loss)(*given), expected)
