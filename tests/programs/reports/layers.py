"""Layers, losses, modules and Python around them."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.programs.reports.case import count, made, report, wave

Tensor = torch.Tensor
LAYERS = "layers and losses"
STATE = "modules with state"
PYTHON = "Python inside"
IMAGES = "images and windows"


@report(STATE, lambda: [(wave(6, 3, phase=k),) for k in range(3)], build=True, gradients=True)
def a_batch_norm_in_training() -> nn.Module:
    return nn.Sequential(nn.BatchNorm1d(3), nn.ReLU(inplace=True), nn.BatchNorm1d(3, momentum=None))


class Counted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(wave(4))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: Tensor) -> Any:
        self.calls += 1
        self.mean = self.mean * 0.9 + x.detach() * 0.1
        return x * self.weight / self.calls + self.mean


@report(STATE, lambda: [(wave(4, phase=k),) for k in range(3)], build=True, gradients=True)
def a_counter_and_a_running_mean() -> nn.Module:
    return Counted()


class WritesItsInput(Counted):
    def forward(self, x: Tensor) -> Any:
        x.mul_(2)
        self.calls += 1
        return x + 1


@report(
    "a trained input and a returned one are written",
    lambda: [(wave(4, phase=k),) for k in range(3)],
    197738,
    build=True,
    gradients=True,
)
def an_input_written_and_a_counter() -> nn.Module:
    return WritesItsInput()


class Caches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(2, 8, 3))
        self.register_buffer("at", torch.zeros(1, dtype=torch.int64))

    def forward(self, k: Tensor) -> Any:
        self.keys.index_copy_(1, self.at, k)
        self.at.add_(1)
        return self.keys.expand(2, 8, 3) * 2, self.keys[:, :3]


@report(STATE, lambda: [(wave(2, 1, 3, phase=k),) for k in range(3)], build=True)
def a_cache_of_keys() -> nn.Module:
    return Caches()


class Reassigns(Counted):
    def forward(self, x: Tensor) -> Any:
        self.calls = self.calls + 1
        old = self.mean
        self.mean = x
        return old + x, self.mean


@report(STATE, lambda: [(wave(4, phase=k),) for k in range(3)], build=True)
def buffers_that_are_replaced() -> nn.Module:
    return Reassigns()


@report(LAYERS, made((4, 5)), gradients=True)
def losses(x: Tensor) -> Any:
    t = torch.tensor([1, 0, 4, 2])
    return (
        F.cross_entropy(x, t),
        F.cross_entropy(x, t, ignore_index=4, label_smoothing=0.1),
        F.nll_loss(x.log_softmax(1), t),
        F.huber_loss(x, x.detach() * 2),
        F.multi_margin_loss(x, t),
        F.kl_div(x.log_softmax(1), x.detach().softmax(1), reduction="batchmean"),
        F.mse_loss(x, x * 0),
    )


@report(LAYERS, lambda: (wave(3, 4), torch.full((3,), -100)), gradients=True)
def cross_entropy_where_all_is_ignored(x: Tensor, t: Tensor) -> Any:
    return F.cross_entropy(x, t, reduction="sum"), F.cross_entropy(x, t, reduction="none")


@report(LAYERS, made((2, 6)), gradients=True)
def activations(x: Tensor) -> Any:
    y = x * 3
    return (
        F.gelu(y),
        F.gelu(y, approximate="tanh"),
        F.silu(y),
        F.mish(y),
        F.hardswish(y),
        F.elu(y),
        F.hardsigmoid(y),
        F.celu(y, 0.5),
        F.selu(y),
        F.softplus(y, 2),
        F.logsigmoid(y),
        F.glu(y),
        F.leaky_relu(y, -0.1),
        F.prelu(y, torch.tensor([0.2])),
        F.relu6(y),
        F.softshrink(y),
    )


@report(LAYERS, made((2, 4, 6), (3, 4, 3)), gradients=True)
def convolutions_along_lines(x: Tensor, w: Tensor) -> Any:
    return (
        F.conv1d(x, w, padding=1),
        F.conv1d(x, w, stride=2, dilation=2),
        F.conv1d(x, w, padding="same"),
        F.conv_transpose1d(x, w.transpose(0, 1), stride=2, output_padding=1),
    )


@report(IMAGES, made((1, 2, 5, 6)), gradients=True)
def padding_of_images(x: Tensor) -> Any:
    return (
        F.pad(x, (1, 2, 0, 1), "reflect"),
        F.pad(x, (2, 1, 0, 1), "replicate"),
        F.pad(x, (1, 1, 1, 1), "circular"),
        F.pad(x, (-1, 1), value=3),
        F.pad(x, (0, -2, -1, 0)),
    )


@report(IMAGES, made((1, 2, 4, 5)), 93262, gradients=True)
def resized_images(x: Tensor) -> Any:
    return (
        F.interpolate(x, size=(1, 1), mode="bilinear"),
        F.interpolate(x, scale_factor=2, mode="nearest"),
        F.interpolate(x, size=(3, 7), mode="bicubic"),
        F.interpolate(x, size=(6, 3), mode="area"),
        F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True),
    )


@report(IMAGES, made((1, 2, 6, 6)), gradients=True)
def pools_and_their_gradients(x: Tensor) -> Any:
    return (
        F.max_pool2d(x, 3, 2, 1),
        F.avg_pool2d(x, 2, 1, 1, count_include_pad=False),
        F.lp_pool2d(x, 2, 2),
        F.max_pool2d(x, 2, return_indices=True)[1],
        F.adaptive_avg_pool2d(x, (4, 5)),
        F.max_pool2d(x, 2, dilation=2),
    )


@report(IMAGES, made((1, 2, 4, 4)), gradients=True)
def samples_and_shuffles(x: Tensor) -> Any:
    grid = F.affine_grid(
        torch.tensor([[[1.0, 0.2, 0.1], [0.0, 0.8, -0.2]]]), [1, 2, 4, 4], align_corners=False
    )
    return (
        F.grid_sample(x, grid, align_corners=False),
        F.grid_sample(x, grid, mode="nearest", align_corners=True),
        F.pixel_unshuffle(x, 2),
        F.unfold(x, 2),
        F.fold(F.unfold(x, 2, stride=2), (4, 4), 2, stride=2),
    )


@report(LAYERS, made((3, 4, 6), (3, 6, 5)), gradients=True)
def products_of_batches(x: Tensor, y: Tensor) -> Any:
    return (
        x @ y,
        torch.baddbmm(x[..., :5] * 0 + 1, x, y, beta=0.5, alpha=2),
        torch.einsum("bij,bjk->ik", x, y),
        x[0] @ y[0, :, 0],
        torch.bmm(x.transpose(1, 2), x),
        torch.linalg.vecdot(x, x),
    )


@report(LAYERS, made((2, 5)), gradients=True)
def embeddings_with_padding(x: Tensor) -> Any:
    table = x.t() * 1
    i = torch.tensor([[0, 1, 4], [1, 1, 0]])
    return (
        F.embedding(i, table, padding_idx=1),
        F.embedding_bag(i, table, mode="mean"),
        F.one_hot(i, 5),
    )


@report(LAYERS, made((2, 2, 5, 4)), gradients=True)
def attention_with_masks(x: Tensor) -> Any:
    mask = torch.tensor([[True, True, False, True, False]]).expand(5, 5)
    return (
        F.scaled_dot_product_attention(x, x, x, is_causal=True),
        F.scaled_dot_product_attention(x, x, x, mask),
        F.scaled_dot_product_attention(x, x, x, mask.float(), scale=0.3),
    )


@report(PYTHON, lambda: [([1, 2], wave(2)), ([3, 4], wave(2)), ([5, 6], wave(2))], 135432)
def tensors_of_lists(numbers: list[int], x: Tensor) -> Any:
    return (
        torch.Tensor(numbers),
        torch.tensor(numbers) + x,
        torch.as_tensor(numbers, dtype=torch.float64),
    )


@report(PYTHON, lambda: [(wave(3), True), (wave(3), False), (wave(3), None)])
def branches_on_arguments(x: Tensor, flag: bool | None) -> Any:
    if flag is None:
        return x
    return x + 1 if flag else (x - 1, flag)


@report(PYTHON, made((4, 3)), 96064)
def a_loop_with_writes(x: Tensor) -> Any:
    total = torch.zeros(3)
    for row in x:
        total += row * row.sum()
        row += total
    return total, x


@report(PYTHON, lambda: ({"a": wave(2), "b": [wave(3), 2.5]},))
def containers(given: dict[str, Any]) -> Any:
    given["c"] = given["a"] * given["b"][1]
    return {"sum": given["c"].sum(), "rest": (given["b"][0] + 1, *given)}


@report(PYTHON, made((3,)))
def closures_and_generators(x: Tensor) -> Any:
    parts = [x]

    def add() -> None:
        parts.append(parts[-1] * 2)

    for _ in range(3):
        add()
    return sum(p.sum() for p in parts), torch.stack([p + k for k, p in enumerate(parts)])


@report(PYTHON, made((4,)))
def a_list_of_tensors_is_swapped(x: Tensor) -> Any:
    a, b = x + 1, x * 2
    a, b = b, a
    a += 1
    return a, b, a is b


@report(PYTHON, lambda: [(wave(4), 0.5), (wave(4), 1.5), (wave(4), -2.0)])
def floats_that_vary(x: Tensor, f: float) -> Any:
    return x * f, x + f * f, x.clamp(max=f), f * 2, torch.full((2,), f), x // f


@report(PYTHON, lambda: [(wave(4), 0.5), (wave(4), 1.5), (wave(4), -2.0)])
def the_square_of_a_float_that_varies(x: Tensor, f: float) -> Any:
    return x + f**2


@report(PYTHON, made((4,)), 99455)
def gradients_asked_for_inside(x: Tensor) -> Any:
    y = x.detach().clone().requires_grad_()
    z = y * 2
    return y.requires_grad, z.requires_grad, z.detach()


@report(PYTHON, lambda: (wave(3, 4),), 104463)
def a_diagonal_written_and_returned(x: Tensor) -> Any:
    x.diagonal().add_(1.0)
    return x, x.diagonal(1)


@report(PYTHON, lambda: (wave(2),), 90507, gradients=True)
def in_place_views(x: Tensor) -> Any:
    y = x * 2
    y.unsqueeze_(0)
    z = x * 3
    z.t_()
    return y, z


@report(PYTHON, made((4, 4)), 136064)
def copied_into_a_view_of_the_same_dtype(x: Tensor) -> Any:
    x.view(torch.float32).copy_(torch.ones(4, 4))
    return x + 1


@report(PYTHON, lambda: ((wave(4, 2) * 1)[::2],), 93363)
def a_view_with_gaps_is_written(x: Tensor) -> Any:
    x.add_(1.0)
    return x.sum()


@report(PYTHON, made((6,)), 113793)
def views_after_writes(x: Tensor) -> Any:
    y = x.view(2, 3)
    x.mul_(2)
    z = y.t()
    y.add_(1)
    z[0] = 5
    return x, y, z


@report(PYTHON, lambda: (wave(2, 4), count(2, 4)), 92129)
def strided_writes_then_slices(a: Tensor, b: Tensor) -> Any:
    e = a[:].as_strided([2, 2], [4, 2], 0)
    e.add_(1.0)
    a.mul_(2.0)
    e[2:-1] = 3.0
    return e[1::2], b + 1
