"""The student's repository: starters made from `inductor_lab/mini`, and what is borrowed from it.

`steps.toml` lists the steps: the file of each, and the functions whose bodies a student writes.  A
starter is the file of the small compiler without these bodies.

    def lowest_start(size, living):          ->   def lowest_start(size, living):
        \"\"\"The lowest offset ...\"\"\"                  \"\"\"The lowest offset ...\"\"\"
        start = 0                                     raise NotImplementedError("step 7: ...")
        ...

The repository always works: `borrow` gives each function without a body the code of the small
compiler.  The code then uses the names of the student's file, so both have the same types.
"""

from __future__ import annotations

import ast
import importlib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from inductor_lab import mini
from inductor_lab.compiler.base.errors import BadArguments, UnreadableFile
from inductor_lab.course.language import one_of, say

MINI = Path(mini.__file__).parent
TABLE = Path(__file__).with_name("steps.toml")
PACKAGE = "my"
"""The folder of the student's files, and the package that they make."""
FILES = ("loops", "lower", "decompose", "autograd", "fuse", "memory", "cpp", "host", "pipeline",
         "triton_printer")
"""In the order of imports."""
HOMES = {"triton_printer": "inductor_lab.course.capstone"}
"""Files with references that do not belong to the small compiler."""
LARGEST = 200_000
"""Bytes of a file that is handed in."""
INIT = f'''"""Your compiler: `torch.compile(f, backend=my.backend)`.

A function that you have not written yet is borrowed from inductor_lab.mini: `my.borrowed`.
"""

from inductor_lab.course.capstone import borrow

borrowed = borrow("{PACKAGE}")

from {PACKAGE}.pipeline import backend, inspect  # noqa: E402

__all__ = ["backend", "borrowed", "inspect"]
'''


@dataclass(frozen=True)
class Step:
    """A step of the capstone.

    file     without its suffix; "" for the last step, which uses all files
    bodies   functions to write: "positions", "Printer.nest"
    hours    for somebody who knows PyTorch but no compilers
    optional it is checked only if it is begun, and no other step needs it
    """

    number: int
    name: str
    file: str
    bodies: tuple[str, ...]
    title: tuple[str, str]
    points: int
    hours: float
    limit: float
    text: tuple[str, str]
    optional: bool = False


@cache
def steps() -> tuple[Step, ...]:
    with TABLE.open("rb") as file:
        rows = tomllib.load(file)["step"]
    made = []
    for number, row in enumerate(rows, 1):
        lists: dict[str, Any] = {key: tuple(row.pop(key)) for key in ("bodies", "title")}
        text = (row.pop("en").strip(), row.pop("zh").strip())
        made.append(Step(number=number, text=text, **lists, **row))
    return tuple(made)


def step_named(word: str) -> Step:
    """The step with this number or name.  Raises BadArguments if there is none."""
    found = [step for step in steps() if word in (str(step.number), step.name)]
    if not found:
        known = ", ".join(f"{step.number} {step.name}" for step in steps())
        raise BadArguments(say("the capstone has no step {n}", n=word), todo=known)
    return found[0]


# ---- starters --------------------------------------------------------------------------------


Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(source: str) -> dict[str, Function]:
    """The functions and methods of a file by name: "positions", "Printer.nest"."""
    found: dict[str, Function] = {}
    for node in ast.parse(source).body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        found |= {prefix + each.name: each for each in members if isinstance(each, Function)}
    return found


def body_of(function: Function) -> list[ast.stmt]:
    """The statements of a function after its docstring."""
    has_text = ast.get_docstring(function, clean=False) is not None
    return function.body[1:] if has_text else function.body


def stubs(source: str) -> list[str]:
    """The functions whose bodies are still to be written."""
    return [name for name, function in functions(source).items()
            if [*map(_is_refusal, body_of(function))] == [True]]  # fmt: skip


def _is_refusal(statement: ast.stmt) -> bool:
    match statement:
        case ast.Raise(exc=ast.Call(func=ast.Name(id="NotImplementedError"))):
            return True
    return False


def home(file: str) -> str:
    """The module with the reference of a file."""
    return f"{HOMES.get(file, mini.__name__)}.{file}"


def reference_path(file: str) -> Path:
    return (Path(__file__).parent if file in HOMES else MINI) / f"{file}.py"


def reference(file: str) -> str:
    """The reference of a file, as a file of the student's package."""
    text = reference_path(file).read_text(encoding="utf-8")
    return text.replace("inductor_lab.mini", PACKAGE).replace("inductor_lab_mini", "backend")


def starter(file: str) -> str:
    """The reference without the bodies that the steps leave out."""
    lines, known = reference(file).splitlines(), functions(reference(file))
    cuts = [(known[name], name, step.number) for step in steps() if step.file == file
            for name in step.bodies]  # fmt: skip
    for function, name, number in sorted(cuts, key=lambda cut: -cut[0].lineno):
        first, last = body_of(function)[0], body_of(function)[-1]
        call = f'raise NotImplementedError("step {number}: write {name}")'
        lines[first.lineno - 1 : last.end_lineno] = [" " * first.col_offset + call]
    return "\n".join(lines) + "\n"


def handed_in(folder: Path) -> dict[str, str]:
    """The student's files by name.  Raises UnreadableFile if one is missing or too large."""
    texts = {}
    for file in FILES:
        path = folder / PACKAGE / f"{file}.py"
        try:
            if path.stat().st_size > LARGEST:
                raise UnreadableFile(say("the file is too large"), str(path))
            texts[file] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            todo = "inductor-lab course start capstone FOLDER"
            raise UnreadableFile(str(error), str(path), todo) from error
    return texts


def not_begun(step: Step, texts: Mapping[str, str]) -> list[str]:
    """The functions of a step that are missing or still stubs.  Raises SyntaxError."""
    if not step.file:
        needed = (each for each in steps() if each.file and not each.optional)
        return [name for each in needed for name in not_begun(each, texts)]
    known, empty = functions(texts[step.file]), stubs(texts[step.file])
    return [name for name in step.bodies if name not in known or name in empty]


def default_steps(texts: Mapping[str, str]) -> list[Step]:
    """All steps, without optional ones of which nothing is written."""
    return [step for step in steps()
            if not (step.optional and set(step.bodies) <= set(stubs(texts[step.file])))]


def copied(step: Step, texts: Mapping[str, str]) -> list[str]:
    """The functions of a step that are those of the small compiler, but for names of variables."""
    if not step.file:
        return []
    mine, theirs = functions(texts[step.file]), functions(reference(step.file))
    return [name for name in step.bodies if _shape(mine[name]) == _shape(theirs[name])]


def _shape(function: Function) -> str:
    """A function without docstring, annotations and names of variables."""
    numbers: dict[str, int] = {}
    body = ast.parse(ast.unparse(ast.Module(body_of(function), [])))
    for node in ast.walk(body):
        for field in ("id", "arg", "name"):
            if isinstance(name := getattr(node, field, None), str):
                setattr(node, field, f"v{numbers.setdefault(name, len(numbers))}")
        if isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return ast.dump(body)


# ---- borrowing -------------------------------------------------------------------------------


def find(module: ModuleType, name: str) -> FunctionType:
    """The function `Printer.nest` of a module."""
    found: Any = module
    for part in name.split("."):
        found = vars(found)[part]
    assert isinstance(found, FunctionType), f"{name} is not a plain function"
    return found


def codes() -> dict[tuple[str, str], CodeType]:
    """The code of each function that a step leaves out."""
    found = {}
    for step in steps():
        for name in step.bodies:
            module = importlib.import_module(home(step.file))
            found[step.file, name] = find(module, name).__code__
    return found


def borrow(package: str, known: Mapping[tuple[str, str], CodeType] | None = None,
           also: Iterable[tuple[str, str]] = ()) -> list[str]:  # fmt: skip
    """Give functions without a body, and those of `also`, the code of the small compiler.

    Returns their names.  A function keeps its identity: only its code is replaced.
    """
    known, names = known or codes(), []
    for file in FILES:
        module = importlib.import_module(f"{package}.{file}")
        empty = stubs(Path(str(module.__file__)).read_text(encoding="utf-8"))
        for where, name in known:
            if where == file and (name in empty or (file, name) in also):
                find(module, name).__code__ = known[file, name]
                names.append(f"{file}.{name}")
    return names


def take_back(known: Iterable[tuple[str, str]]) -> None:
    """Remove the bodies of the steps from the small compiler in this process."""
    for file, name in known:
        module = importlib.import_module(home(file))
        find(module, name).__code__ = _refuse.__code__


def _refuse(*args: Any, **kwargs: Any) -> None:
    raise RuntimeError("a check does not use the solution of inductor_lab.mini")


def title(step: Step) -> str:
    return one_of(step.title)
