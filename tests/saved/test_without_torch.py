"""A viewer: saved files open, print and are drawn in a process that has no torch on its path."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy
import pytest
import torch
from torch import nn

import inductor_lab as lab
from deploy.lite.programs import write_programs
from inductor_lab.compiler.base.errors import NeedsTorch, needing_torch
from inductor_lab.compiler.torch_door import torch_api, without_torch
from inductor_lab.course.build import sources
from tests.saved.schemas import valid
from tests.widgets.test_bench import every as benchmarks

ROOT = Path(__file__).parents[2]
NEEDED = ("mpmath", "networkx", "platformdirs", "sympy", "typing_extensions")
"""Everything that a viewer needs, with what these packages need (docs/notebooks.md)."""
FOLDERS = ("widgets", "docs", "notebooks")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """A folder with links to our package and to those that a viewer needs; torch is not there."""
    folder = tmp_path_factory.mktemp("site")
    for name in NEEDED:
        origin = Path(importlib.util.find_spec(name).origin)
        path = origin.parent if origin.name == "__init__.py" else origin
        (folder / path.name).symlink_to(path)
    ours = folder / "inductor_lab"
    ours.mkdir()
    for path in [*(ROOT / "inductor_lab").iterdir(), *(ROOT / name for name in FOLDERS)]:
        (ours / path.name).symlink_to(path)
    return folder


def run(site: Path, program: str, *arguments: object) -> subprocess.CompletedProcess:
    """Run a program in a process whose path has `site` and Python's own library, and no more."""
    start = f"import sys; sys.path.append({str(site)!r})\n{textwrap.dedent(program)}"
    command = [sys.executable, "-I", "-S", "-c", start, *map(str, arguments)]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)


def succeeded(done: subprocess.CompletedProcess) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


COMMAND = "from inductor_lab.cli import main; sys.exit(main(sys.argv[1:]))"


# ---- ten files ----------------------------------------------------------------------------------


def softmax(x):
    return torch.softmax(x * 2 + 1, -1)


def with_a_graph_break(x):
    y = x.sin()
    torch._dynamo.graph_break()
    return y.cos() + x.shape[0]


def without_an_operation(x):
    return 3


def sizes(x, y):
    joined = torch.cat([x, y], 1).reshape(-1, 2) * x.shape[0]
    return joined.cumsum(0), x.argmax(1), x.flatten()[::3].sum()


def half(x):
    return x.bfloat16().exp().sum(0), x.half() + 1, x.to(torch.complex64).real


def scattered(x, index):
    return torch.zeros(10, 4).index_add(0, index, x), x[index], torch.rand(4) * x


MLP = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4))
IMAGE = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()).eval()


def loss(x):
    return MLP(x).square().sum()


def compilations():
    x, index = torch.randn(8, 16), torch.arange(4)
    a, b = torch.randn(8, 10), torch.randn(8, 4)
    for tensor, axis in ((a, 0), (b, 0), (a, 1)):
        torch._dynamo.mark_dynamic(tensor, axis)
    yield "softmax", lab.inspect(softmax, x)
    yield "training step", lab.inspect(loss, x)
    yield "graph break", lab.inspect(with_a_graph_break, x)
    yield "no graph", lab.inspect(without_an_operation, x)
    yield "dynamic sizes", lab.inspect(sizes, a, b)
    yield "half precision", lab.inspect(half, x)
    yield "scatter", lab.inspect(scattered, torch.randn(4, 4), index)
    yield "convolution", lab.inspect(IMAGE, torch.randn(2, 3, 8, 8))
    yield "measured", lab.inspect(softmax, x).measure(0.05)
    yield "stock", lab.inspect(softmax, x, compiler="stock")


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("file") / "softmax.lab.json"
    return lab.inspect(softmax, torch.randn(8, 16)).save(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("files")
    found = list(compilations())
    assert len(found) >= 10
    return [c.save(folder / f"{name}.lab.json") for name, c in found]


VIEW = """
    import json
    from pathlib import Path
    import inductor_lab as lab

    into = Path(sys.argv[1])
    for path in map(Path, sys.argv[2:]):
        c = lab.load(path)
        c.report(into / f"{path.stem}.html")
        stages = [str(c), *map(str, c.graphs), str(c.capture)]
        shown = {"text": stages, "data": c.to_dict(), "html": len(c._repr_html_()) > 0}
        (into / f"{path.stem}.json").write_text(json.dumps(shown))
    if "without" in into.name:
        assert "torch" not in sys.modules
"""


def test_ten_files_look_the_same_without_torch(site, files, tmp_path):
    """Pages, texts of all stages and JSON documents are equal to those that torch's types give."""
    there, here = tmp_path / "with", tmp_path / "without"
    there.mkdir(), here.mkdir()
    succeeded(run(site, VIEW, here, *files))
    command = [sys.executable, "-c", f"import sys\n{textwrap.dedent(VIEW)}", there, *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)
    succeeded(done)
    made = sorted(path.name for path in here.iterdir())
    assert len(made) == 2 * len(files)
    for name in made:
        assert (here / name).read_text() == (there / name).read_text(), name


def test_pictures_diffs_and_comparisons_are_drawn(site, files):
    program = """
        import inductor_lab as lab
        old, new, stock = map(lab.load, sys.argv[1:])
        assert old.plot("time").startswith("<svg") and stock.plot("flame").startswith("<svg")
        part = old.graphs[0].forward
        for stage in (part, part.loops, part.schedule, old.graphs[0].captured):
            assert stage.plot().startswith("<svg") and stage._repr_html_()
        assert part.kernels[0]._repr_html_() and old.annotate()._repr_html_()
        found = lab.diff(old, new)
        assert str(found) and found._repr_html_() and found.to_dict()
        assert not lab.diff(stock, stock)
        compared = old.compare(new)
        assert str(compared) and compared._repr_html_() and compared.to_dict()
        assert lab.compare(old, stock)._repr_html_()
        assert str(old.why_not_fused()) and str(old.cuda_graphs())
        print(old.save(sys.argv[1] + ".again"))
    """
    named = {path.name.partition(".")[0]: path for path in files}
    again = succeeded(run(site, program, named["softmax"], named["training step"], named["stock"]))
    assert str(lab.load(again.strip()).graphs[0]) == str(lab.load(named["softmax"]).graphs[0])


def test_commands_for_saved_files(site, file, tmp_path):
    first, second = file, lab.inspect(half, torch.ones(8, 16)).save(tmp_path / "half.lab.json")
    page = tmp_path / "page.html"
    succeeded(run(site, COMMAND, "explain", first, "--report", page))
    assert "softmax" in page.read_text()
    answer = json.loads(succeeded(run(site, COMMAND, "explain", second, "--json")))
    valid(answer)
    assert "guards" in succeeded(run(site, COMMAND, "diff", first, second))
    assert "peak" in succeeded(run(site, COMMAND, "memory", second))
    assert "step" in succeeded(run(site, COMMAND, "why-not-fused", second))


def test_jupyterlab_opens_a_file(site, file):
    program = """
        from pathlib import Path
        from inductor_lab.notebook import open_saved
        print(*open_saved.explorer_of(Path(sys.argv[1]).read_bytes()))
    """
    assert "gzip" in succeeded(run(site, program, file)).split()


def test_benchmarks_open(site, tmp_path):
    """With the page and the picture of each kind of result."""
    program = """
        import inductor_lab as lab
        for path in sys.argv[1:]:
            result = lab.bench.load(path)
            assert str(result) and result.plot().startswith("<svg") and result._repr_html_()
            print(result.report(path + ".html"))
    """
    paths = [each.save(tmp_path / f"{n}.json") for n, each in enumerate(benchmarks())]
    pages = succeeded(run(site, program, *paths)).split()
    assert len(pages) == 3 and all(Path(page).stat().st_size > 10_000 for page in pages)


def test_a_log_of_torch_opens(site, tmp_path):
    """`inductor-lab trace` draws a TORCH_TRACE log of another machine."""
    logs, page = tmp_path / "logs", tmp_path / "trace.html"
    program = textwrap.dedent("""
        import torch

        def doubled(x):
            y = x.sin()
            torch._dynamo.graph_break()
            return y * 2

        compiled = torch.compile(doubled, backend="eager")
        compiled(torch.ones(4)), compiled(torch.ones(5))
    """)
    (tmp_path / "program.py").write_text(program)
    env = {**os.environ, "TORCH_TRACE": str(logs)}
    subprocess.run([sys.executable, tmp_path / "program.py"], check=True, env=env)
    assert "doubled" in succeeded(run(site, COMMAND, "trace", logs, "-o", page))
    assert page.stat().st_size > 50_000


# ---- the course ---------------------------------------------------------------------------------


NO_COMPILER = ("3.1", "3.2", "3.3", "3.4", "5.1", "5.2", "5.3", "5.4",
               "8.1", "8.2", "8.3", "8.4", "8.5", "8.6")  # fmt: skip
"""Exercises that need neither a compiler nor NumPy."""
ON_SAVED_PROGRAMS = ("3.5", "5.5", "8.7")

CHECK = """
    import json, os
    sys.path.append(sys.argv[2])
    os.chdir(sys.argv[2])
    from dataclasses import replace
    from inductor_lab import course
    names = {"course": course, "replace": replace}
    for cell in json.loads(sys.argv[1]):
        number = cell.split('"')[1] if cell.startswith("course.check") else ""
        if number in sys.argv[3:]:
            print(eval(cell, names))
        elif not number:
            exec(cell, names)
"""


@pytest.fixture
def solutions(tmp_path, monkeypatch) -> str:
    """The cells of three solved labs, as JSON."""
    monkeypatch.setenv("INDUCTOR_LAB_COURSE_FILE", str(tmp_path / "course.json"))
    wanted = ("def ", "class ", "predicted", "import networkx", "course.check")
    return json.dumps([
        text
        for source in sources(ROOT / "notebooks")
        if source.kind == "lab" and source.name in ("gradients", "fusion", "memory")
        for kind, text in source.cells("en", solved=True)
        if text.startswith(wanted) and "lab." not in text
    ])


def right(printed: str) -> list[str]:
    return [line.split()[1] for line in printed.splitlines() if line.startswith("✓")]


def test_labs_that_need_no_compiler_are_checked(site, solutions, tmp_path):
    wrong = 'print(course.check("5.1", lambda *given: None))'
    program = f"{textwrap.dedent(CHECK)}\n{wrong}"
    printed = succeeded(run(site, program, solutions, tmp_path, *NO_COMPILER))
    assert right(printed) == [*NO_COMPILER]
    assert printed.endswith("  it should return tuple, it returned None (no `return`?)\n")


def test_the_other_exercises_of_these_labs_use_saved_programs_and_numpy(site, solutions, tmp_path):
    write_programs(tmp_path / "programs")
    for folder in (Path(numpy.__file__).parent, Path(f"{Path(numpy.__file__).parent}.libs")):
        (tmp_path / folder.name).symlink_to(folder)
    before = "from inductor_lab.course.given.fusion import refused"
    program = textwrap.dedent(CHECK).replace(
        'names = {', f'{before}\nnames = {{"refused": refused, '
    )
    printed = succeeded(run(site, program, solutions, tmp_path, *ON_SAVED_PROGRAMS))
    assert right(printed) == [*ON_SAVED_PROGRAMS]
    wrong = textwrap.dedent("""
        print(course.check("3.5", lambda values: [v.name for v in values if v.needed]))
        print(course.check("3.5", lambda values: []))
        print(course.check("5.5", lambda program: [[nest.buffer] for nest in program.nests]))
        print(course.check("8.7", {"wave": 1}))
    """)
    printed = succeeded(run(site, f"{program}\n{wrong}", "[]", tmp_path))
    assert [line.split()[:2] for line in printed.splitlines() if line.startswith("✗")] == [
        ["✗", "3.5"], ["✗", "3.5"], ["✗", "5.5"], ["✗", "8.7"],
    ]  # fmt: skip
    assert "legal, but it saves" in printed and "cannot be computed" in printed
    assert "legal and right, but it moves" in printed and "more than 1 bytes" in printed


# ---- what needs torch ---------------------------------------------------------------------------


@pytest.mark.parametrize("program", [
    "lab.compile(len)", "lab.inspect(len)", "lab.bench(len)", "lab.bench.sweep", "lab.blame(len)",
    "lab.judge", "lab.course.check('1.1', len)", "lab.memory(len)", "lab.override()",
    "lab.recompiles()", "lab.load_ipython_extension(None)",
    "lab.load(sys.argv[1]).what_if(fusion=False)",
    "lab.load(sys.argv[1]).graphs[0].forward.loops.run()", "lab.load(sys.argv[1]).measure()",
])  # fmt: skip
def test_the_rest_raises_one_error(site, file, program):
    done = run(site, f"""
        import inductor_lab as lab
        try:
            {program}
        except lab.LabError as error:
            print(error)
    """, file)  # fmt: skip
    assert succeeded(done).splitlines() == str(NeedsTorch()).splitlines()


def test_a_command_that_compiles_says_what_to_install(site, tmp_path):
    file = tmp_path / "f.py"
    file.write_text("import torch\ndef f(x): return x.sin()\n")
    for command in (["explain", f"{file}:f"], ["bench", f"{file}:f"], ["doctor"]):
        done = run(site, COMMAND, *command)
        assert done.returncode == 2 and done.stderr == f"NeedsTorch: {NeedsTorch()}\n"


def test_other_missing_packages_keep_their_errors():
    with pytest.raises(ModuleNotFoundError, match="no_such_package"), needing_torch():
        import no_such_package  # noqa: F401


# ---- the stand-ins ------------------------------------------------------------------------------


def test_stand_ins_have_the_properties_of_torchs_types():
    for dtype, short in torch_api.DTYPE_NAMES.items():
        found = without_torch.TYPES[str(dtype).removeprefix("torch.")]
        assert str(found) == str(dtype) and without_torch.DTYPE_NAMES[found] == short
        assert found.itemsize == dtype.itemsize
        assert found.is_floating_point == dtype.is_floating_point
        assert found.is_complex == dtype.is_complex
        if not found.name.startswith("bits"):  # torch does not know whether these have signs
            assert found.is_signed == dtype.is_signed
    for name in ("int8", "int64", "uint8", "uint64"):
        own, theirs = without_torch.integer_range(without_torch.TYPES[name]), torch.iinfo
        assert own == (theirs(getattr(torch, name)).min, theirs(getattr(torch, name)).max)
    for text in ("cpu", "cuda:1", "cuda"):
        assert str(without_torch.Device(text)) == str(torch.device(text))
        assert repr(without_torch.Device(text)) == repr(torch.device(text))


def test_stand_ins_for_functions_of_sizes_compute_and_print_alike():
    own, theirs = without_torch.SYMPY_FUNCTIONS, torch_api.SYMPY_FUNCTIONS
    assert theirs.keys() - own.keys() == {"torch.MinMaxBase"}  # is no function
    import sympy

    s, t = sympy.symbols("s t", integer=True, positive=True)
    for name, two in (("FloorDiv", (s + 2, t)), ("PythonMod", (s, t)), ("Mod", (s + 1, t)),
                      ("PowByNatural", (s, t)), ("FloatTrueDiv", (s, t)),
                      ("ModularIndexing", (s, t, s + t))):  # fmt: skip
        one, other = own[f"torch.{name}"](*two), theirs[f"torch.{name}"](*two)
        assert str(3 * one + s) == str(3 * other + s)
        assert one.subs({s: 17, t: 5}) == other.subs({s: 17, t: 5})
