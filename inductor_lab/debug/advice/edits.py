"""Candidate edits for the failed guards of a run.  Each is a guess; `advise.py` tries it.

Every rule takes what a run reported and gives edited texts.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from inductor_lab.compiler.capture.capture import Recompile
from inductor_lab.debug.advice.source_text import FUNCTIONS, Change, Source
from inductor_lab.debug.advice.trial import Outcome, Site

_SIZE = re.compile(r"size mismatch at index (\d+)\. expected (\d+), actual (\d+)")
_SYMBOLIC = re.compile(r"(?:L\[')?(\w+)(?:'\])?(\S*?)\.size\(\)\[(\d+)\]")
_ROOT = re.compile(r"L\['(?P<name>\w+)'\](?P<rest>.*)", re.S)
_LAST = re.compile(r"(?:\['(?P<key>\w+)'\]|\.(?P<attribute>\w+))$")
_NUMBER = re.compile(r"-?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf|nan)")


@dataclass(frozen=True)
class Edit:
    """A candidate: its name, a sentence about it, and the edited text."""

    name: str
    what: str
    text: str


@dataclass(frozen=True)
class Failures:
    """The failed guards of a run, with the text that ran."""

    source: Source
    path: str
    outcome: Outcome

    def sites(self, compile_id: str) -> list[tuple[ast.Call, Site]]:
        """All calls in this file that compiled the function of a compile id."""
        frame = compile_id.rpartition("/")[0]
        found: dict[ast.Call, Site] = {}
        for name, site in self.outcome.sites.items():
            if name.rpartition("/")[0] == frame and site.file == self.path:
                call = self.source.call_at(site)
                if call is not None:
                    found[call] = site
        return list(found.items())

    @cached_property
    def all_calls(self) -> list[ast.Call]:
        found = (self.source.call_at(s) for s in self.outcome.sites.values() if s.file == self.path)
        return list(dict.fromkeys(call for call in found if call is not None))

    def arguments(self, guard: Recompile) -> Iterator[tuple[ast.Call, ast.expr, str]]:
        """Where the guarded object is passed: the call, the argument, the path inside of it."""
        root = _ROOT.fullmatch(guard.source)
        if root is None:
            return
        for call, site in self.sites(guard.compile_id):
            argument = _argument(call, site, root["name"])
            if argument is not None:
                yield call, argument, root["rest"]

    @cached_property
    def sizes(self) -> dict[tuple[str, int], Recompile]:
        """`(source, dimension)` of the sizes that a failed guard is about."""
        found: dict[tuple[str, int], Recompile] = {}
        for guard in self.outcome.recompiles:
            if guard.kind == "TENSOR_MATCH":
                at = _SIZE.search(guard.reason)
                if at:
                    found.setdefault((guard.source, int(at[1])), guard)
            else:
                for name, rest, dim in _SYMBOLIC.findall(guard.reason):
                    found.setdefault((f"L['{name}']{rest}", int(dim)), _of(guard, name, rest))
        return found

    def seen_sizes(self, source: str, dim: int) -> list[int]:
        """The sizes that the failed guards mention."""
        found: set[int] = set()
        for guard in self.outcome.recompiles:
            at = _SIZE.search(guard.reason)
            if guard.source == source and at and int(at[1]) == dim:
                found |= {int(at[2]), int(at[3])}
            sizes = re.search(r"\[([\d, ]*)\]$", guard.value) if guard.source == source else None
            if sizes:
                numbers = [int(n) for n in sizes[1].split(",") if n.strip()]
                found |= set(numbers[dim : dim + 1])
        return sorted(found)

    @cached_property
    def numbers(self) -> list[Recompile]:
        """Failed guards on int and float values, one for each object."""
        found: dict[str, Recompile] = {}
        for guard in self.outcome.recompiles:
            if guard.source and _NUMBER.fullmatch(guard.value):
                found.setdefault(guard.source, guard)
        return list(found.values())


def _of(guard: Recompile, name: str, rest: str) -> Recompile:
    return Recompile(guard.compile_id, guard.failed, guard.reason, guard.span, guard.kind,
                     f"L['{name}']{rest}", guard.value, guard.via)  # fmt: skip


def _argument(call: ast.Call, site: Site, name: str) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    names = list(site.parameters)
    if name not in names:
        return None
    position = names.index(name) - (names[:1] == ["self"])
    before = call.args[: position + 1]
    if any(isinstance(each, ast.Starred) for each in before) or not 0 <= position < len(call.args):
        return None
    return call.args[position]


def candidates(failures: Failures) -> Iterator[Edit]:
    """The candidates for a run, the mildest first."""
    for rule in RULES:
        for name, what, changes in rule(failures):
            text = failures.source.changed(changes)
            if text is not None and text != failures.source.text:
                yield Edit(name, what, text)


Found = Iterator[tuple[str, str, list[Change]]]


# ---- sizes -------------------------------------------------------------------------------------


def mark_dynamic(failures: Failures, mark: str = "mark_dynamic") -> Found:
    """`torch._dynamo.mark_dynamic(x, 0)` before the call."""
    changes: list[Change] = []
    names: set[str] = set()
    lines: dict[ast.stmt, dict[str, None]] = defaultdict(dict)
    for (_, dim), guard in failures.sizes.items():
        for call, argument, rest in failures.arguments(guard):
            statement = failures.source.statement(call)
            if statement is None:
                continue
            expression, bound = _named(failures.source, argument, guard, changes, names)
            for line in (*bound, f"torch._dynamo.{mark}({expression}{rest}, {dim})"):
                lines[statement][line] = None
    for statement, texts in lines.items():
        changes.append(failures.source.before(statement, "\n".join(texts)))
    if lines:
        yield mark, "the sizes that vary are dynamic from the first call", changes


def mark_unbacked(failures: Failures) -> Found:
    """For sizes 0 and 1, which `mark_dynamic` compiles separately."""
    yield from mark_dynamic(failures, "decorators.mark_unbacked")


def _named(
    source: Source, argument: ast.expr, guard: Recompile, changes: list[Change], names: set[str]
) -> tuple[str, list[str]]:
    """The text of an argument that can be written twice; if necessary a name for it."""
    if isinstance(argument, ast.Name | ast.Attribute | ast.Subscript):
        return source.segment(argument), []
    root = _ROOT.fullmatch(guard.source)
    name = f"{root['name']}_marked" if root else "marked"
    if name not in names:
        names.add(name)
        changes.append(source.replace(argument, name))
    return name, [f"{name} = {source.segment(argument)}"]


def dynamic_true(failures: Failures) -> Found:
    """`torch.compile(f, dynamic=True)`."""
    if not failures.sizes and not failures.numbers:
        return
    for value in ("True", "None"):
        changes = []
        for node in ast.walk(failures.source.tree):
            change = _with_dynamic(failures.source, node, value)
            if change is not None:
                changes.append(change)
        if changes:
            what = "every size and number is dynamic from the first call"
            if value == "None":
                what = "a size that changes becomes dynamic"
            yield f"dynamic={value}", what, changes


def _with_dynamic(source: Source, node: ast.AST, value: str) -> Change | None:
    if isinstance(node, ast.Call) and _is_compile(node.func):
        for keyword in node.keywords:
            if keyword.arg == "dynamic":
                return source.replace(keyword.value, value)
        if value == "True" and (node.args or node.keywords):
            return Change(source.end(node) - 1, source.end(node) - 1, f", dynamic={value}")
    if isinstance(node, FUNCTIONS) and value == "True":
        for decorator in node.decorator_list:
            if not isinstance(decorator, ast.Call) and _is_compile(decorator):
                return Change(source.end(decorator), source.end(decorator), "(dynamic=True)")
    return None


def _is_compile(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "compile" and isinstance(
        node.value, ast.Name) and node.value.id in ("torch", "lab", "inductor_lab")


def pad(failures: Failures) -> Found:
    """Pad a size to the largest one, and cut the result."""
    for (source, dim), guard in failures.sizes.items():
        sizes = failures.seen_sizes(source, dim)
        rank = guard.value.count(",") + 1 if "[" in guard.value else 0
        changes = []
        for call, argument, rest in failures.arguments(guard):
            if rest or not isinstance(argument, ast.Name) or len(sizes) < 2 or not rank:
                continue
            size = f"{argument.id}.shape[{dim}]"
            zeros = "0, 0, " * (rank - 1 - dim)
            padded = (f"torch.nn.functional.pad({argument.id}, "
                      f"({zeros}0, max({sizes[-1]} - {size}, 0)))")  # fmt: skip
            end = failures.source.end(call)
            changes += [
                failures.source.replace(argument, padded),
                Change(end, end, f".narrow({dim}, 0, {size})"),
            ]
        if changes:
            yield "pad", f"pad to size {sizes[-1]}, and cut the result", changes


# ---- numbers -----------------------------------------------------------------------------------


def number_to_tensor(failures: Failures) -> Found:
    """Pass `torch.tensor(n)` instead of `n`."""
    changes = []
    for guard in failures.numbers:
        for _, argument, rest in failures.arguments(guard):
            part = _inside(argument, rest)
            if part is not None:
                text = failures.source.segment(part)
                changes.append(failures.source.replace(part, f"torch.tensor({text})"))
    if changes:
        yield "number to tensor", "a tensor has no guard on its value", changes


def _inside(argument: ast.expr, rest: str) -> ast.expr | None:
    """The part of a written list, tuple or dictionary that `rest` selects (`[0]`, `['a']`)."""
    selected = re.match(r"\[(?P<key>\d+|'[^']*')\](?P<rest>.*)", rest)
    if selected is None:
        return None if rest else argument
    key = ast.literal_eval(selected["key"])
    match argument:
        case ast.List(elts=parts) | ast.Tuple(elts=parts) if isinstance(key, int):
            found = parts[key] if key < len(parts) else None
        case ast.Dict(keys=keys, values=values):
            found = next((v for k, v in zip(keys, values, strict=True)
                          if isinstance(k, ast.Constant) and k.value == key), None)  # fmt: skip
        case _:
            found = None
    return _inside(found, selected["rest"]) if found is not None else None


def assigned_tensor(failures: Failures) -> Found:
    """Assign a tensor to the attribute, key or global name that changes."""
    changes = []
    for guard in failures.numbers:
        last = _LAST.search(guard.source)
        if last is None or (guard.source.startswith("L") and _ROOT.fullmatch(guard.source)
                            and not _ROOT.fullmatch(guard.source)["rest"]):  # type: ignore[index]
            name = re.fullmatch(r"[LG]\['(\w+)'\]", guard.source)
        else:
            name = last
        key = next(filter(None, name.groups()), None) if name else None
        if key is None:
            continue
        changes += [
            failures.source.replace(value, f"torch.tensor({failures.source.segment(value)})")
            for value in _assigned(failures.source.tree, key)
        ]
    if changes:
        yield "number to tensor where it is assigned", "a tensor has no guard on its value", changes


def _assigned(tree: ast.Module, name: str) -> Iterator[ast.expr]:
    """The values that are assigned to a name, attribute or key."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(_is_named(target, name) for target in targets):
                yield node.value
        elif isinstance(node, ast.Dict):
            yield from (value for key, value in zip(node.keys, node.values, strict=True)
                        if isinstance(key, ast.Constant) and key.value == name)  # fmt: skip


def _is_named(target: ast.expr, name: str) -> bool:
    match target:
        case ast.Name(id=found) | ast.Attribute(attr=found):
            return found == name
        case ast.Subscript(slice=ast.Constant(value=found)):
            return bool(found == name)
    return False


SETTINGS = (
    ("allow_unspec_int_on_nn_module", "True", "integers of modules are dynamic"),
    ("force_parameter_static_shapes", "False", "sizes of parameters may be dynamic"),
    ("force_nn_module_property_static_shapes", "False", "sizes of tensors of modules are dynamic"),
    ("specialize_float", "False", "floats are inputs of the graph"),
)


def settings(failures: Failures) -> Found:
    """A setting of TorchDynamo for the kind of object that varies."""
    guards = failures.outcome.recompiles
    modules = any("self" in g.source or "_modules" in g.source or "_parameters" in g.source
                  or "." in g.source for g in guards)  # fmt: skip
    floats = any(not re.fullmatch(r"-?\d+", g.value) for g in failures.numbers)
    for name, value, what in SETTINGS:
        if (floats if name == "specialize_float" else modules):
            line = f"torch._dynamo.config.{name} = {value}"
            yield name, what, [failures.source.after_imports(line)]


# ---- objects -----------------------------------------------------------------------------------


def hoist(failures: Failures) -> Found:
    """Move a statement or an argument that does not depend on the loop out of it."""
    source = failures.source
    for call in failures.all_calls:
        loop = source.loop(call)
        if loop is None:
            continue
        bound = _bound(loop)
        for statement in loop.body if isinstance(loop, ast.For | ast.While) else ():
            movable = isinstance(statement, (*FUNCTIONS, ast.ClassDef, ast.Assign))
            if not movable or statement.lineno == call.lineno:
                continue
            if _reads(statement) & (bound - _bound_by(statement)):
                continue
            lines = source.lines_of(statement)
            yield ("hoist", "move out of the loop what does not depend on it",
                   [source.remove_lines(statement), source.before(loop, lines)])  # fmt: skip
        for position, argument in enumerate([*call.args, *(k.value for k in call.keywords)]):
            if isinstance(argument, ast.Lambda | ast.Call | ast.List | ast.Tuple | ast.Dict):
                if not _reads(argument) & bound:
                    name = f"hoisted_{position}"
                    yield ("hoist", "move out of the loop what does not depend on it",
                           [source.replace(argument, name), source.before(
                               loop, f"{name} = {source.segment(argument)}")])  # fmt: skip


def _bound(loop: ast.stmt) -> set[str]:
    """The names that a loop binds."""
    return {n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and not isinstance(
        n.ctx, ast.Load)} | {n.name for n in ast.walk(loop) if isinstance(
            n, (*FUNCTIONS, ast.ClassDef))}


def _bound_by(statement: ast.stmt) -> set[str]:
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return {statement.name, *(a.arg for a in ast.walk(statement) if isinstance(a, ast.arg))}
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}


def _reads(node: ast.AST) -> set[str]:
    own = {a.arg for a in ast.walk(node) if isinstance(a, ast.arg)}
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)
            and isinstance(n.ctx, ast.Load)} - own  # fmt: skip


def same_layout(failures: Failures) -> Found:
    """`.contiguous()`, `.detach()` or a dtype for an argument that differs only in that."""
    for word, method, what in (
        ("stride mismatch", ".contiguous()", "the argument always has the same layout"),
        ("dispatch key set mismatch", ".contiguous()", "the argument is always materialized"),
        ("requires_grad mismatch", ".detach()", "the argument never requires grad"),
        ("dtype mismatch", ".to(torch.float32)", "the argument always has the same dtype"),
        ("dtype mismatch", ".to(torch.float64)", "the argument always has the same dtype"),
    ):  # fmt: skip
        changes = []
        for guard in failures.outcome.recompiles:
            if word in guard.reason:
                given = [argument for _, argument, rest in failures.arguments(guard) if not rest]
                changes += [failures.source.replace(each, _operand(failures.source, each) + method)
                            for each in given]  # fmt: skip
        if changes:
            yield method, what, changes


def _operand(source: Source, node: ast.expr) -> str:
    """The text of an expression, in parentheses if a method cannot follow it."""
    simple = isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call)
    return source.segment(node) if simple else f"({source.segment(node)})"


def set_stance(failures: Failures) -> Found:
    """After the first call, run calls that match no compiled code in eager mode."""
    source, changes = failures.source, []
    for call in failures.all_calls:
        statement, loop = source.statement(call), source.loop(call)
        if statement is not None:
            line = 'torch.compiler.set_stance("{}")'
            changes.append(source.after(statement, line.format("eager_on_recompile")))
            changes.append(source.after(loop or statement, line.format("default")))
    if changes:
        what = "calls that match no compiled code run in eager mode: right for rare calls"
        yield "set_stance", what, changes


RULES: Sequence[Callable[[Failures], Found]] = (
    mark_dynamic, hoist, number_to_tensor, settings, assigned_tensor, same_layout, dynamic_true,
    mark_unbacked, pad, set_stance,
)  # fmt: skip
"""The mildest first: of two edits with the same number of compilations the first is better."""
