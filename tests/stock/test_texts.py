"""Parsing stock's texts, without compiling."""

from __future__ import annotations

from inductor_lab.stock.graph_text import place_in, read_graph, tensor_facts
from inductor_lab.stock.ir_text import fusion_steps, ir_nodes, origins_by_node
from inductor_lab.stock.output_code import read_output_code

GRAPH = '''
class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[s0, 32][32, 1]cpu", arg1_1: "Sym(s0)"):
        # File: /home/me/m.py:7 in forward, code: y = x.sin() + w
        sin: "f32[s0, 32][32, 1]cpu" = torch.ops.aten.sin.default(arg0_1);  arg0_1 = None
        var_mean = torch.ops.aten.var_mean.correction(sin, [1], correction = 0)
        getitem: "f32[8]" = var_mean[0]
        # No stacktrace found for following nodes
        gt: "b8[]" = getitem > -1e9
        _tensor_constant0 = self._tensor_constant0
        return (gt, sin)
'''


def test_a_printed_graph_is_read():
    graph = read_graph("forward", GRAPH, {"sin": ("y",)}, {"s0": 4})
    names = ["arg0_1", "arg1_1", "sin", "var_mean", "getitem", "gt", "_tensor_constant0", "output"]
    assert [node.name for node in graph.nodes] == names
    sin = graph.node("sin")
    assert (sin.target, sin.inputs, sin.came_from) == (
        "torch.ops.aten.sin.default", ("arg0_1",), ("y",)
    )
    assert (sin.span.file, sin.span.line, sin.span.code) == ("/home/me/m.py", 7, "y = x.sin() + w")
    assert (sin.tensor.shape, sin.tensor.nbytes) == (("s0", "32"), 4 * 32 * 4)
    assert graph.node("getitem").target == "operator.getitem"
    assert graph.node("gt").span is None
    assert graph.node("_tensor_constant0").op == "get_attr"
    assert graph.node("output").inputs == ("gt", "sin")


def test_the_layout_of_the_joint_graph_is_read():
    text = '''class joint(torch.nn.Module):
    def forward(
        self,
        primals,
        tangents,
    ):
        primals_1: "f32[4]"  # PlainAOTInput(idx=0)
        tangents_1: "f32[4]"
        primals_1, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
        mul: "f32[4]" = torch.ops.aten.mul.Tensor(primals_1, tangents_1)
        return pytree.tree_unflatten([mul], self._out_spec)
'''
    graph = read_graph("joint", text)
    assert [(n.name, n.op) for n in graph.nodes][:3] == [
        ("primals_1", "placeholder"), ("tangents_1", "placeholder"), ("mul", "call_function")
    ]


def test_text_that_is_not_a_graph_remains_text():
    for text in ("", "not python (", "x = 1", "\0", "(" * 100_000):
        graph = read_graph("g", text)
        assert graph.nodes == () and graph.text.strip() == text.strip()


def test_source_locations_and_tensors_are_parsed():
    assert place_in("# File: C:\\a b.py:3 in f").line == 3
    assert place_in("# Backward of forward node: File: m.py:7 in f, code: y = x").code == "y = x"
    assert place_in("# Annotation: {'a': 1} File: m.py:8 in f").line == 8
    assert place_in("# nothing") is None
    assert tensor_facts("Sym(s0)", {}) is None
    assert tensor_facts("bf16[2, 3][3, 1]cuda:0", {}).device == "cuda:0"


CODE = '''# AOT ID: ['0_backward']
from torch._inductor.async_compile import AsyncCompile
async_compile = AsyncCompile()

cpp_fused_sin_0 = async_compile.cpp_pybinding(['const float*', 'float*'], r\'\'\'
#include "prefix.h"
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0)
{
    for(int64_t x0=0; x0<8; x0+=1)
    {
        auto tmp0 = in_ptr0[x0];
        auto tmp1 = std::sin(tmp0);
        out_ptr0[x0] = tmp1;
    }
}
\'\'\')

# Graph fragment:
#   %gt : [num_users=1] = call_function[target=aten.gt]
triton_poi_1 = async_compile.triton('triton_poi_1', \'\'\'
def triton_poi_1(in_ptr0, XBLOCK : tl.constexpr):
    tmp0 = tl.load(in_ptr0 + (x0))
\'\'\', device_str='cuda')

def call(args):
    # [Provenance debug handles] cpp_fused_sin_0:1
    cpp_fused_sin_0(arg0_1, buf0)
    # [Provenance debug handles] extern_kernels.mm:2
    extern_kernels.mm(buf0, arg1_1, out=buf1)
    triton_poi_1.run(buf1, 8, grid=grid(8), stream=stream0)
    cpp_fused_sin_0(buf1, buf2)
    return (buf1, )
'''


def test_output_code_is_parsed():
    graph = read_graph("forward", GRAPH)
    provenance = {"cpp_fused_sin_0:1": ["sin"], "extern_kernels.mm:2": ["var_mean"]}
    read = read_output_code(CODE, provenance, graph)
    kernels = {kernel.name: kernel for kernel in read.kernels}
    assert read.direction == "backward" and read.problem == ""
    assert {(k.name, k.language, k.calls) for k in read.kernels} == {
        ("cpp_fused_sin_0", "cpp", 2),
        ("triton_poi_1", "triton", 1),
        ("extern_kernels.mm", "extern", 1),
    }
    assert kernels["triton_poi_1"].nodes == ("gt",)
    statements = [line for line in kernels["cpp_fused_sin_0"].code.lines if line.statement]
    assert len(statements) == 4 and all(line.origins == {"sin"} for line in statements)
    calls = [line for line in read.host.lines if line.statement]
    assert [sorted(line.origins) for line in calls] == [["sin"], ["var_mean"], ["gt"], ["sin"]]
    assert "std::sin" not in str(read.host)


ROUNDS = '''
class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[4, 4][4, 1]cpu", arg1_1: "f32[4, 4][4, 1]cpu"):
        mm: "f32[4, 4][4, 1]cpu" = torch.ops.aten.mm.default(arg0_1, arg1_1)
        sin: "f32[4, 4][4, 1]cpu" = torch.ops.aten.sin.default(mm);  mm = None
        mm_1: "f32[4, 4][4, 1]cpu" = torch.ops.aten.mm.default(sin, arg1_1);  sin = None
        sin_1: "f32[4, 4][4, 1]cpu" = torch.ops.aten.sin.default(mm_1);  mm_1 = None
        copy_: "f32[4, 4][4, 1]cpu" = torch.ops.aten.copy_.default(arg0_1, sin_1)
        return ()
'''


def test_bytes_include_every_call_and_writes_to_arguments():
    provenance = {
        "extern_kernels.mm:1": ["mm"],
        "cpp_fused_sin_0:2": ["sin"],
        "extern_kernels.mm:3": ["mm_1"],
        "cpp_fused_sin_0:4": ["sin_1", "copy_"],
    }
    read = read_output_code(CODE, provenance, read_graph("forward", ROUNDS))
    kernels = {kernel.name: kernel for kernel in read.kernels}
    product, sine = kernels["extern_kernels.mm"], kernels["cpp_fused_sin_0"]
    assert (product.bytes_read, product.bytes_written) == (2 * 2 * 64, 2 * 64)
    assert (sine.bytes_read, sine.bytes_written) == (2 * 64, 2 * 64)


def test_damaged_code_remains_text():
    read = read_output_code("def (", {}, read_graph("g", GRAPH))
    assert read.problem and "def (" in str(read.host) and read.kernels == ()


def test_scheduler_texts():
    log = [
        "  SchedulerNode(name='op0'), Reduction(['[64]', 'origins=OrderedSet([amax, add])'])",
        "cannot fuse op1 with op3: intermediate nodes between node1 & node2",
        "cannot fuse op1 with op3: intermediate nodes between node1 & node2",
        "fusing op0 with op1",
    ]
    assert origins_by_node(log) == {"op0": frozenset({"amax", "add"})}
    assert list(map(str, fusion_steps(log))) == [
        "op1 + op3: not fused: intermediate nodes between node1 & node2",
        "op0 + op1: fused",
    ]
    text = """BEFORE FUSION
op0: SchedulerNode(ComputedBuffer)
op0.writes = 
    [   MemoryDep('buf0', c0, {c0: 64}),
        MemoryDep('buf1', c0, {c0: 64})]
op0.unmet_dependencies = [StarDep(name='arg0_1', mode=None)]
op0.outputs = []


op1: ExternKernelSchedulerNode(ExternKernelOut)
op1.writes = []
"""
    first, second = ir_nodes(text, origins_by_node(log))
    assert (first.kind, first.reads) == ("ComputedBuffer", ("arg0_1",))
    assert first.writes == ("buf0", "buf1")
    assert (second.name, second.kind, second.origins) == ("op1", "ExternKernelOut", frozenset())
