"""Frames for large pictures: boxes grouped by `nn.Module`, and identical layers in one row.

    encoder.layer.0.attention.self          encoder
    encoder.layer.0.attention.output   →      layer ×12
    encoder.layer.1.attention.self              layer.0
    ...                                           attention ...

Boxes without a module (inputs, parameters) are placed in the module that uses them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from inductor_lab.notebook.language import say
from inductor_lab.widgets.picture import ROOT, Frame


def module_frames(
    paths: Mapping[str, str], kinds: Mapping[str, str], edges: Sequence[tuple[str, str]]
) -> tuple[list[Frame], dict[str, str]]:
    """Frames, outer before inner, and the frame of each box.

    `paths` has the module path of every box in program order ("" for none); `kinds` has the kind of
    each op, for comparing layers.  A module with one op, or one that only contains another module,
    gets no frame.  All frames are closed, except a single outermost one.
    """
    place = _placed(paths, edges)
    inside: dict[str, list[str]] = defaultdict(list)
    for name, path in place.items():
        for prefix in _prefixes(path):
            inside[prefix].append(name)
    content = {path: [kinds[n] for n in names if n in kinds] for path, names in inside.items()}
    modules = sorted((p for p in inside if len(content[p]) > 1), key=_order)
    shells = {_parent(p, modules) for p in modules if _fills(p, modules, inside)}
    modules = [p for p in modules if p not in shells]
    frame_of = {name: _frame_name(_nearest(path, modules)) for name, path in place.items()}
    frames = _frames(modules, content)
    named = [replace(f, name=_frame_name(f.name), parent=_frame_name(f.parent)) for f in frames]
    return named, frame_of


def _frame_name(path: str) -> str:
    """The name of a frame; the prefix distinguishes it from a box of the same name (`pooler`)."""
    return path if path == ROOT else f"module {path}"


def _frames(paths: Sequence[str], content: Mapping[str, Sequence[str]]) -> list[Frame]:
    rows = _rows(paths, content)
    frames: dict[str, Frame] = {}
    for path in paths:
        family = path.rpartition(".")[0]
        row = rows.get(path)
        if row and row not in frames:
            count = sum(rows.get(p) == row for p in paths)
            parent = _parent(path, paths)
            alone = parent == family != ROOT and count * len(content[path]) == len(content[family])
            parent = frames.pop(family).parent if alone else parent
            label = f"{_below(family, parent) or say('layers')} ×{count}"
            sub = say("{n} ops each, identical", n=len(content[path]))
            tip = say("{family}: {n} identical layers", family=family, n=count)
            frames[row] = Frame(row, label, sub, tip, parent)
        parent = _parent(path, paths)
        label = _below(path, family.rpartition(".")[0] if row else parent)
        frames[path] = Frame(path, label, _ops(len(content[path])), path, row or parent)
    outer = [f for f in frames.values() if f.parent == ROOT]
    if len(outer) == 1:
        frames[outer[0].name] = replace(outer[0], open=True)
    return list(frames.values())


def _ops(count: int) -> str:
    return say("1 op" if count == 1 else "{n} ops", n=count)


def _parent(path: str, paths: Sequence[str]) -> str:
    return _nearest(path.rpartition(".")[0], paths)


def _nearest(path: str, paths: Sequence[str]) -> str:
    """The longest prefix of a path that is one of the paths, or the root."""
    known = set(paths)
    return next((p for p in reversed(_prefixes(path)) if p in known), ROOT)


def _below(path: str, parent: str) -> str:
    """The path relative to its parent; a number keeps the name before it (`layer.0`)."""
    rest = path[len(parent) :].lstrip(".")
    return f"{parent.rpartition('.')[2]}.{rest}" if rest[:1].isdigit() and parent else rest


def _fills(path: str, paths: Sequence[str], inside: Mapping[str, Sequence[str]]) -> bool:
    parent = _parent(path, paths)
    return parent != ROOT and len(inside[parent]) == len(inside[path])


def _placed(paths: Mapping[str, str], edges: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Boxes without a module go to the innermost module that contains all their users."""
    targets: dict[str, list[str]] = defaultdict(list)
    for source, target in edges:
        targets[source].append(target)
    place = dict(paths)
    for name in reversed(list(paths)):
        if not place[name]:
            place[name] = common_module(place.get(user, "") for user in targets[name])
    return place


def common_module(paths: Iterable[str]) -> str:
    """The innermost module that contains all of these paths; empty paths are ignored."""
    split = [path.split(".") for path in {*paths} if path]
    common = takewhile(lambda level: len(set(level)) == 1, zip(*split, strict=False))
    return ".".join(level[0] for level in common)


def _prefixes(path: str) -> list[str]:
    parts = path.split(".") if path else []
    return [".".join(parts[: i + 1]) for i in range(len(parts))]


def _order(path: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(p), "") if p.isdigit() else (-1, p) for p in path.split("."))


def _rows(paths: Sequence[str], content: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Three or more numbered siblings with the same ops → the name of their common row."""
    alike: dict[tuple[str, tuple[tuple[str, int], ...]], list[str]] = defaultdict(list)
    for path in paths:
        parent, _, last = path.rpartition(".")
        if last.isdigit():
            shape = tuple(sorted(Counter(content[path]).items()))
            alike[parent, shape].append(path)
    rows = {}
    for members in alike.values():
        if len(members) >= 3:
            rows.update(dict.fromkeys(members, f"{members[0]} ×{len(members)}"))
    return rows
