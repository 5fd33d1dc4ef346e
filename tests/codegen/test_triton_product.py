"""Matrix products as Triton kernels, fused with pointwise operations on their results."""

import pytest
import torch
import torch.nn.functional as F

import inductor_lab as lab
from inductor_lab.compiler.base.options import FusionOptions
from inductor_lab.compiler.codegen.triton import matmul_kernel
from inductor_lab.compiler.codegen.triton.matmul_kernel import product_in, tiles_of
from inductor_lab.compiler.codegen.triton.printer import triton_kernel
from inductor_lab.compiler.ir.match_matmul import product_of
from inductor_lab.compiler.lower.retarget import retarget
from inductor_lab.compiler.runtime.triton.launch import load_kernel
from inductor_lab.compiler.schedule.passes import schedule_program
from tests.schedule.programs import traced

pytest.importorskip("triton")

OURS = {"language": "triton", "matmul": "triton"}


def layer(x, w, b, r):
    return F.gelu(F.linear(x, w, b)) + r


def gated(x, w, v, r):
    made = F.silu(x @ w) * (x @ v)
    return made + r, torch.softmax(made.float(), -1)


def batched(x, y):
    return torch.bmm(x, y) * 2


def transposed(x, y):
    return (x.t() @ y).relu()


def stored_too(x, y):
    made = x @ y
    return made, made.relu()


def randoms(*sizes):
    generator = torch.Generator().manual_seed(len(sizes))
    return [torch.randn(size, generator=generator) for size in sizes]


CASES = {
    "a layer": (layer, randoms((4, 32, 64), (48, 64), (48,), (4, 32, 48)), 1),
    "odd sizes": (layer, randoms((3, 33, 50), (37, 50), (37,), (3, 33, 37)), 1),
    "two products": (gated, randoms((4, 32, 64), (64, 48), (64, 48), (4, 32, 48)), 3),
    "a batch": (batched, randoms((4, 32, 64), (4, 64, 40)), 1),
    "a batch of views": (
        lambda x, y: batched(x.mT, y.mT), randoms((3, 64, 33), (3, 40, 64)), 1,
    ),
    "columns": (transposed, randoms((70, 130), (70, 260)), 1),
    "part of a matrix": (lambda x, y: x[3:, 5:] @ y, randoms((40, 69), (64, 32)), 1),
    "the result is stored": (stored_too, randoms((32, 64), (64, 48)), 1),
    "few terms": (lambda x, y: x @ y, randoms((64, 17), (17, 80)), 1),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_products_agree(case, dtype):
    function, exact, kernels = CASES[case]
    given = [tensor.to(dtype) for tensor in exact]
    c = lab.inspect(function, *given, options=OURS)
    assert "tl.dot" in "".join(map(str, c.graphs[0].forward.kernels))
    assert len(c.graphs[0].forward.kernels) == kernels
    torch.compiler.reset()
    found = torch.compile(function, backend="inductor_lab", options=OURS)(*given)
    wanted, ideal = function(*given), function(*(tensor.double() for tensor in given))
    for one, eager, best in zip(*map(as_tuple, (found, wanted, ideal)), strict=True):
        assert one.dtype == eager.dtype and one.shape == eager.shape
        assert error(one, best) <= 1.01 * error(eager, best) + 1e-6


def as_tuple(found):
    return found if isinstance(found, tuple) else (found,)


def error(found, ideal):
    return (found.double() - ideal).abs().max().item()


def test_gradients_are_products_too():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.GELU(), torch.nn.Linear(96, 32))
    net = net.to(torch.bfloat16)
    x = torch.randn(48, 64, dtype=torch.bfloat16)
    c = lab.inspect(lambda x: net(x).float().pow(2).mean(), x, options=OURS)
    assert sum("tl.dot" in str(kernel) for kernel in c.graphs[0].backward.kernels) == 3
    compiled = torch.compile(net, backend="inductor_lab", options=OURS)

    def gradients(model):
        net.zero_grad()
        model(x).float().pow(2).mean().backward()
        return [p.grad.float().clone() for p in net.parameters()]

    for found, wanted in zip(gradients(compiled), gradients(net), strict=True):
        torch.testing.assert_close(found, wanted, rtol=2e-2, atol=2e-3)


def planned(function, *given):
    program = retarget(traced(function, *given, products=True), "cuda:90")
    return schedule_program(program, FusionOptions())


def test_every_tile_computes_the_same():
    x, w, b, r = (t.half() for t in randoms((2, 75, 100), (140, 100), (140,), (2, 75, 140)))
    schedule = planned(layer, x, w, b, r)
    (group,) = schedule.groups
    product, buffers = product_in(group), schedule.program.buffers
    tiles = tiles_of(product, "cuda:0")
    assert len(tiles) > 5
    for tile in tiles:
        kernel = triton_kernel(group, buffers, "product", device="cuda:0", blocks=tile)
        given = dict(zip(schedule.program.inputs, (x, w, b, r), strict=True))
        out = torch.full((2, 75, 140), 7.0, dtype=torch.float16)
        values = [given.get(parameter.buffer, out) for parameter in kernel.parameters]
        load_kernel(kernel, interpret=True)(*values)
        torch.testing.assert_close(out, layer(x, w, b, r), rtol=2e-3, atol=2e-3)


def test_small_gpus_have_small_tiles(monkeypatch):
    given = (t.half() for t in randoms((4, 256, 256), (512, 256), (512,), (4, 256, 512)))
    (group,) = planned(layer, *given).groups
    product = product_in(group)
    monkeypatch.setattr(matmul_kernel, "shared_memory", lambda device: 65_536)
    tiles = tiles_of(product, "cuda:0")
    assert tiles and max(tile.nbytes for tile in tiles) <= 65_536


def test_text(golden):
    given = (t.half() for t in randoms((4, 250, 768), (3072, 768), (3072,), (4, 250, 3072)))
    schedule = planned(layer, *given)
    (group,) = schedule.groups
    golden("triton_product.txt", triton_kernel(group, schedule.program.buffers, "layer"))


def test_a_product_compiles_to_tensor_core_instructions():
    given = (t.half() for t in randoms((4, 256, 256), (512, 256), (512,), (4, 256, 512)))
    schedule = planned(layer, *given)
    (group,) = schedule.groups
    kernel = triton_kernel(group, schedule.program.buffers, "layer")
    assert "wgmma.mma_async" in kernel.ladder("cuda:90")["ptx"]


def test_large_matrices_are_indexed_with_64_bits():
    large = torch.empty((70_000, 32_768), dtype=torch.float16)  # its memory is never touched
    schedule = planned(torch.mm, large, torch.empty((32_768, 64), dtype=torch.float16))
    (group,) = schedule.groups
    text = str(triton_kernel(group, schedule.program.buffers, "wide"))
    assert text.count(".to(tl.int64)") == 3


@pytest.mark.parametrize(
    "given",
    [randoms((32, 64), (64, 48)), [t.half() for t in randoms((8, 64), (64, 48))],
     [t.half() for t in randoms((32, 8), (8, 48))]],
    ids=["float32", "few rows", "few terms"],
)  # fmt: skip
def test_other_products_are_library_calls(given):
    schedule = planned(torch.mm, *given)
    assert not schedule.groups and schedule.program.steps[0].op == "aten.mm.default"


def test_user_written_sums_are_not_products():
    program = traced(lambda x, y: (x.float()[:, :, None] * y.float()).sum(1),
                     *(t.half() for t in randoms((32, 64), (64, 48))))  # fmt: skip
    assert not any(map(product_of, program.nests))


def test_the_flops_are_those_of_the_library_call():
    x, y = (t.half() for t in randoms((32, 64), (64, 48)))
    own = schedule_program(traced(torch.mm, x, y, products=True), FusionOptions())
    library = schedule_program(traced(torch.mm, x, y), FusionOptions())
    rounded = own.after.flops - library.after.flops
    assert library.after.flops == 2 * 32 * 64 * 48 and rounded == 32 * 48


def test_products_are_library_calls_by_default():
    x, y = (t.half() for t in randoms((32, 64), (64, 48)))
    c = lab.inspect(torch.mm, x, y, options={"target": "cuda:90", "mode": "max-autotune"})
    assert not c.graphs[0].forward.kernels
