"""Charts of benchmarks, as trees of SVG; see `markup.py`.

The colours are distinguishable for colour-blind readers, and each row or curve also has its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from inductor_lab.bench.bench_result import BenchResult, Experiments, SweepResult
from inductor_lab.bench.roofs import Ceilings
from inductor_lab.compiler.step_time import StepTime, duration
from inductor_lab.notebook.language import say, translate
from inductor_lab.widgets.markup import Tree, element, text_of, tips
from inductor_lab.widgets.scales import Scale, log_scale
from inductor_lab.widgets.svg import description, themed

WIDTH = 860
LABEL = 190
TIMES, COMPILES = 542, 690
"""x of the times as text, with room for `12.3 ms, 1234.56x`; x of the compile times."""
LETTER = 7.25
"""Width of a letter of a name, in units of the view box."""
ROW = 36
DOTS = 120
"""Maximum number of rounds that are drawn as dots."""

BEYOND = 2.5
"""Rounds longer than this many times the slowest median are drawn at the edge."""

MOST_NUMBERED = 12
MARKERS = ("M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", "M-4 -4h8v8h-8z", "M0 -5l5 5l-5 5l-5 -5z",
           "M0 -5l5 9h-10z", "M-5 -1.5h3.5v-3.5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5z")  # fmt: skip

_LIGHT = ("#57606a", "#0072b2", "#c24e00", "#007a5a", "#b0508a", "#6b5b00", "#5b4bb5")
_DARK = ("#9da7b3", "#56b4e9", "#f0883e", "#3fcf9f", "#e398c5", "#d8c34a", "#a79bf5")
SHAPES = """
.lab-chart{max-width:100%;height:auto;border-radius:4px}
.lab-chart text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.lab-chart text{paint-order:stroke;stroke-width:4px}
.lab-chart .sub{font-size:11px}
.lab-chart .grid{stroke-width:1;fill:none}
.lab-chart .curve{fill:none;stroke-width:2}
.lab-chart .bar{fill-opacity:.35;stroke:none}
.lab-chart .dot{fill-opacity:.55;stroke:none}
.lab-chart .middle{stroke-width:3}
.lab-chart .roof{fill:none;stroke-width:2;stroke-dasharray:6 3}
"""


def _palette(series: Sequence[str], text: str, soft: str, line: str, back: str) -> dict[str, str]:
    rules = {"": f"background:{back};color:{text}", ".sub": f"fill:{soft}"}
    rules = {"text": f"fill:{text};stroke:{back}", **rules}
    rules |= {".grid": f"stroke:{line}", ".roof": f"stroke:{soft}"}
    rules |= {f".s{n}": f"fill:{hue};stroke:{hue}" for n, hue in enumerate(series)}
    return {**rules, ".curve": "fill:none"}


STYLE = SHAPES + themed(
    ".lab-chart",
    _palette(_LIGHT, "#1b1f24", "#57606a", "#d0d7de", "#fff"),
    _palette(_DARK, "#e6edf3", "#9da7b3", "#30363d", "#0d1117"),
)


def bench_chart(result: BenchResult) -> Tree | None:
    """A row for each contender: all rounds as dots, the median, and the compile times.

    None if nothing has been measured.
    """
    names = [c.name for c in result.contenders if not c.failure]
    height = ROW * len(names) + 62
    label = max(LABEL, *(LETTER * len(name) + 20 for name in names), 0)
    times = result.timings
    medians = [times.median_ms(name) for name in times.seconds] if times.rounds else [1.0]
    most = max((max(times.seconds[name], default=0.0) * 1e3 for name in times.seconds), default=1.0)
    per_call = Scale(0, min(max(most, max(medians)), BEYOND * max(medians)), label, TIMES - 16)
    took = {c.name: c.compile for c in result.contenders if c.compile}
    first = [s for t in took.values() for s in (t.cold, t.warm) if s is not None]
    if not first and not times.rounds:
        return None
    compiling = Scale(0, max(first, default=1.0), COMPILES, WIDTH - 12)
    body = [text_at(label, 16, say("time per call"), "sub"),
            *_axis(per_call, 24, height - 24, _ms)]
    if first:
        body.append(text_at(COMPILES, 16, say("first call: cold, warm"), "sub"))
        body += _axis(compiling, 24, height - 24, lambda s: f"{s:g} s", most=3)
    for number, name in enumerate(names):
        top = 30 + ROW * number
        body.append(text_at(label - 10, top + 17, name, anchor="end"))
        if times.rounds and name in times.seconds:
            samples = times.seconds[name]
            middle = times.median_ms(name)
            body += _rounds(name, [s * 1e3 for s in samples], middle, per_call, top, number)
            speed = "" if name == result.base else f", {result.speedup(name):.2f}x"
            body.append(text_at(TIMES, top + 17, f"{duration(middle / 1e3)}{speed}"))
        cold_warm = (took[name].cold, took[name].warm) if name in took else ()
        for place, seconds in enumerate(cold_warm):
            if seconds is not None:
                how = say(("cold compile", "warm compile")[place])
                tip = f"{name}, {how}: {seconds:.2f} s"
                body.append(_bar(compiling, seconds, top + 3 + 12 * place, 10, number, tip))
    return chart_page(say("time per call of {name}", name=result.title), height, body)


def sweep_chart(result: SweepResult) -> Tree | None:
    """A curve for each contender over the sizes, on logarithmic axes; None without measurements."""
    curves = {
        name: [
            (size, found.timings.median_ms(name))
            for size, found in zip(result.sizes, result.results, strict=False)
            if found.timed and name in found.timings.seconds
        ]
        for name in result.names
    }
    times = [ms for points in curves.values() for _, ms in points]
    if not times:
        return None
    height = 380
    across = log_scale([float(size) for size in result.sizes], 80, WIDTH - 230)
    up = log_scale(times, height - 40, 26)
    body = [text_at(80, 16, say("time per call"), "sub"),
            text_at(WIDTH - 230, height - 4, say("size"), "sub", "end")]  # fmt: skip
    body += _axis(across, 26, height - 40, lambda v: f"{v:,.0f}")
    body += side_axis(up, 80, WIDTH - 230, _ms)
    ends: list[tuple[float, int, str]] = []
    for number, (name, points) in enumerate(curves.items()):
        places = [(across.at(size), up.at(ms)) for size, ms in points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        body.append(element("polyline", {"class": f"curve s{number % 7}", "points": line}))
        for (x, y), (size, ms) in zip(places, points, strict=True):
            body.append(_marker(x, y, number, f"{name}, {size:,}: {duration(ms / 1e3)}"))
        if places:
            ends.append((places[-1][1], number, name))
    body += curve_names(ends, WIDTH - 214)
    return chart_page(result.title, height, body)


def experiments_chart(result: Experiments) -> Tree | None:
    """Speedups of every program in every mode, relative to a line at 1x."""
    rows = [
        (found, contender.name)
        for found in result.results
        for contender in found.contenders[1:]
        if found.timed and contender.name in found.timings.seconds
    ]
    names = list(dict.fromkeys(name for _, name in rows))
    if not rows:
        return None
    height = 22 * len(rows) + 24 * len(result.results) + 40
    speeds = [found.speedup(name) for found, name in rows]
    across = log_scale([*speeds, 0.5, 2.0], 270, WIDTH - 70)
    body = list(_axis(across, 14, height - 24, lambda v: f"{v:g}x"))
    line = {"class": "roof", "d": f"M{across.at(1):.1f} 14V{height - 24}"}
    body.append(element("path", line, element("title", {}, say("no speedup"))))
    top, before = 8.0, None
    for found, name in rows:
        if found is not before:
            body.append(text_at(8, top + 16, found.title))
            top, before = top + 24, found
        speed = found.speedup(name)
        body.append(text_at(262, top + 14, name, "sub", "end"))
        tip = f"{found.title}, {name}: {found.verdict(name)}"
        body.append(_bar(across, speed, top + 3, 14, names.index(name) + 1, tip, across.at(1)))
        body.append(text_at(max(across.at(speed), across.at(1)) + 6, top + 14, f"{speed:.2f}x"))
        top += 22
    return chart_page(result.title, height, body)


def roofline_chart(steps: Sequence[StepTime], limits: Ceilings) -> Tree | None:
    """Flop rate over arithmetic intensity, with the machine's roofs; None if no kernel computes."""
    shown = [(n, step) for n, step in enumerate(steps, 1) if step.flops and step.nbytes]
    if not shown:
        return None
    height = 380
    reach = [step.flops / step.nbytes for _, step in shown]
    peak = limits.flops_per_second("float32")
    memory, cache = limits.bandwidth[-1][1], max(rate for _, rate in limits.bandwidth)
    across = log_scale([*reach, peak / memory, 0.05], 80, WIDTH - 20)
    rates = [step.flop_rate / 1e9 for _, step in shown]
    up = log_scale([*rates, peak / 1e9, memory * across.low / 1e9], height - 40, 26)
    body = [text_at(80, 16, "GFLOP/s", "sub"),
            text_at(WIDTH - 20, height - 8, "flop / byte", "sub", "end")]  # fmt: skip
    body += _axis(across, 26, height - 40, lambda v: f"{v:g}")
    body += side_axis(up, 80, WIDTH - 20, lambda v: f"{v:g}")
    for rate, name in ((memory, say("memory")), (cache, say("cache"))):
        body += _roof(across, up, rate, peak, f"{name} {rate / 1e9:.0f} GB/s")
    peak_at = up.at(peak / 1e9) - 6
    body.append(text_at(WIDTH - 26, peak_at, f"{peak / 1e9:.0f} GFLOP/s", "sub", "end"))
    for rank, (number, step) in enumerate(sorted(shown, key=lambda s: -s[1].seconds)):
        x, y = across.at(step.flops / step.nbytes), up.at(step.flop_rate / 1e9)
        tip = f"{number}  {step.name}\n{translate(str(step))}"
        body.append(_marker(x, y, 1 if step.generated else 2, tip))
        if rank < MOST_NUMBERED:
            body.append(text_at(x + 7, y + 4, str(number), "sub"))
    return chart_page(say("roofline"), height, body)


# ---- pieces ------------------------------------------------------------------------------------


def chart_page(
    title: str, height: float, body: Sequence[Tree], width: float = WIDTH
) -> Tree:
    """A chart of these parts with its style."""
    text = description(text_of(tip) for part in body for tip in tips(part))
    attributes = {
        "class": "lab-chart", "xmlns": "http://www.w3.org/2000/svg", "role": "img",
        "aria-label": title, "width": f"{width:.0f}", "height": f"{height:.0f}",
        "viewBox": f"0 0 {width:.0f} {height:.0f}",
    }  # fmt: skip
    return element("svg", attributes, element("desc", {}, text), element("style", {}, STYLE), *body)


def text_at(x: float, y: float, text: str, style: str = "", anchor: str = "start") -> Tree:
    """Text in a chart; the style "sub" is small and grey."""
    name = {"class": style} if style else {}
    return element("text", {**name, "x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}, text)


def _bar(
    scale: Scale,
    value: float,
    y: float,
    height: float,
    series: int,
    tip: str,
    foot: float | None = None,
) -> Tree:
    """A bar to `value` from the start of the scale, or from the pixel `foot`."""
    left, right = sorted((scale.start if foot is None else foot, scale.at(value)))
    place = {"x": f"{left:.1f}", "y": f"{y:.1f}", "height": f"{height:.1f}",
             "width": f"{max(right - left, 1):.1f}"}  # fmt: skip
    return element("rect", {"class": f"bar s{series % 7}", **place}, element("title", {}, tip))


def _rounds(
    name: str, samples: list[float], median: float, scale: Scale, top: float, series: int
) -> Iterator[Tree]:
    """A pale bar up to the median, a line at the median, and the rounds as dots."""
    tip = say("{name}: median {median:.4g} ms of {n} rounds, minimum {least:.4g} ms",
              name=name, median=median, n=len(samples), least=min(samples))  # fmt: skip
    yield _bar(scale, median, top + 3, 22, series, tip)
    for number, value in enumerate(samples[:: max(1, len(samples) // DOTS)]):
        y = top + 6 + 16 * (number * 0.618 % 1)
        place = {"cx": f"{scale.at(value):.1f}", "cy": f"{y:.1f}", "r": "2"}
        yield element("circle", {"class": f"dot s{series % 7}", **place})
    line = f"M{scale.at(median):.1f} {top + 2}v24"
    yield element("path", {"class": f"middle s{series % 7}", "d": line})


def _axis(
    scale: Scale, top: float, bottom: float, text: Callable[[float], str], most: int = 9
) -> Iterator[Tree]:
    ticks = scale.ticks()
    for value in ticks[:: max(1, -(-len(ticks) // most))]:
        x = scale.at(value)
        yield element("path", {"class": "grid", "d": f"M{x:.1f} {top:.1f}V{bottom:.1f}"})
        yield text_at(x, bottom + 15, text(value) if value else "0", "sub", "middle")


def side_axis(
    scale: Scale, left: float, right: float, text: Callable[[float], str]
) -> Iterator[Tree]:
    for value in scale.ticks():
        y = scale.at(value)
        yield element("path", {"class": "grid", "d": f"M{left:.1f} {y:.1f}H{right:.1f}"})
        yield text_at(left - 8, y + 4, text(value) if value else "0", "sub", "end")


def _marker(x: float, y: float, series: int, tip: str) -> Tree:
    place = {"transform": f"translate({x:.1f} {y:.1f})", "d": MARKERS[series % len(MARKERS)]}
    return element("path", {"class": f"dot s{series % 7}", **place}, element("title", {}, tip))


def curve_names(ends: list[tuple[float, int, str]], x: float) -> Iterator[Tree]:
    """Names next to the ends of curves, moved apart where they would overlap."""
    lowest = 0.0
    for y, number, name in sorted(ends):
        lowest = max(y, lowest + 16)
        yield _marker(x, lowest, number, name)
        yield text_at(x + 10, lowest + 4, name)


def _roof(across: Scale, up: Scale, rate: float, peak: float, name: str) -> Iterator[Tree]:
    """A roof: the slope of one bandwidth up to the peak flop rate, then flat."""
    start = max(across.low, up.low * 1e9 / rate)
    points = [(start, rate * start), (peak / rate, peak), (across.high, peak)]
    line = " ".join(f"{across.at(x):.1f},{up.at(y / 1e9):.1f}" for x, y in points)
    yield element("polyline", {"class": "roof", "points": line})
    middle = (start * peak / rate) ** 0.5
    x, y = across.at(middle), up.at(rate * middle / 1e9)
    yield text_at(x - 6, y - 6, name, "sub", "end")


def _ms(milliseconds: float) -> str:
    return duration(milliseconds / 1e3)
