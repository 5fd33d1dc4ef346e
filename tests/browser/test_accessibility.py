"""axe-core finds no serious violation in any view of the explorer, light or dark, wide or narrow,
English or Chinese.

`axe-core/` is version 4.14.1 of the checker by Deque as published on npm, under MPL-2.0; it is
a tool of the tests and no part of the package.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
import torch

import inductor_lab as lab

AXE = Path(__file__).parent / "axe-core" / "axe.min.js.gz"
RUN = """async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations.filter((v) => ["serious", "critical"].includes(v.impact))
    .flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.target.join(" ")} | ${n.html.slice(0, 160)} | `
      + [...n.any, ...n.all, ...n.none].map((c) => c.message).join("; ").slice(0, 200)));
}"""


class Small(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.nn.functional.gelu(self.one(x))
        print("a graph break")
        return self.two(y).softmax(-1) + x.sum(0)


@pytest.fixture(scope="module")
def pages_of_all(tmp_path_factory) -> dict[str, Path]:
    """The same page in both languages."""
    folder, pages = tmp_path_factory.mktemp("axe"), {}
    c = lab.inspect(Small(), torch.randn(8, 16)).measure(0.05)
    for language in ("zh", "en"):
        lab.language(language)
        pages[language] = c.report(folder / f"{language}.html", assembly=True)
    return pages


@pytest.fixture
def page_of_all(pages_of_all: dict[str, Path]) -> Path:
    return pages_of_all["en"]


def violations(opened: Any) -> list[str]:
    return opened.page.evaluate(RUN)


@pytest.mark.parametrize(("dark", "language"), [(False, "en"), (True, "zh")])
def test_no_view_has_a_serious_violation(
    pages_of_all: dict[str, Path], open_page, dark: bool, language: str
) -> None:
    opened = open_page(pages_of_all[language], dark=dark)
    page = opened.page
    page.add_script_tag(content=gzip.decompress(AXE.read_bytes()).decode())
    found = {line: "first look" for line in violations(opened)}
    close = "document.querySelectorAll('.lab-pane-head > button:last-of-type')"
    page.evaluate(f"() => {{ {close}.forEach((b) => b.click()); }}")
    seen: set[str] = set()
    for number in range(page.locator(".lab-rail button").count()):
        page.locator(".lab-rail button").nth(number).click()
        for tab in range(max(1, page.locator(".lab-tabs button").count())):
            if page.locator(".lab-tabs button").count():
                page.locator(".lab-tabs button").nth(tab).click()
            name = page.locator(".lab-pane").get_attribute("aria-label").split("· ")[-1]
            if (key := f"{name} {tab}") in seen:  # the second graph has the same views
                continue
            seen.add(key)
            page.evaluate("() => document.querySelectorAll('.lab-open').forEach((b) => b.click())")
            found.update((line, key) for line in violations(opened))
    assert len(seen) > 15
    wrong = [f"{where}: {line}" for line, where in found.items()]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("state", ["narrow", "help", "pinned", "search"])
def test_no_state_has_a_serious_violation(page_of_all: Path, open_page, state: str) -> None:
    opened = open_page(page_of_all, width=800 if state == "narrow" else 1400, dark=state == "help")
    page = opened.page
    page.add_script_tag(content=gzip.decompress(AXE.read_bytes()).decode())
    if state == "help":
        page.locator(".lab-actions [aria-label='keyboard shortcuts']").click()
    if state == "pinned":
        page.locator(".lab-line.linked").first.click()
    if state == "search":
        page.locator("input[type=search]").fill("linear")
    wrong = violations(opened)
    assert not wrong, "\n".join(wrong)
