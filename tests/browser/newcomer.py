"""A user of a notebook in JupyterLab: what a hand and an eye do there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Newcomer:
    """One page; cells are counted from 1, as their prompts are once all have run in order."""

    page: Any
    wrong: list[str] = field(default_factory=list)

    def cell(self, number: int) -> str:
        return f".jp-Cell:nth-child({number})"

    def run(self, number: int) -> str:
        """Run a cell as a user does; the text of its output."""
        self.page.keyboard.press("Escape")
        self.page.click(f"{self.cell(number)} .jp-InputArea-editor")
        self.page.keyboard.press("Control+Enter")
        self.page.wait_for_selector(f"{self.cell(number)} .jp-InputPrompt:has-text('[{number}]')")
        return self.output(number)

    def output(self, number: int) -> str:
        area = self.page.locator(f"{self.cell(number)} .jp-OutputArea")
        return area.inner_text() if area.count() else ""

    def explorer(self, number: int) -> Any:
        """The explorer of a cell, once there is somebody to ask."""
        found = self.page.locator(f"{self.cell(number)} .lab-explorer.live").first
        found.wait_for()
        return found

    def rail(self, number: int, pane: str) -> Any:
        """Show a pane; the pane."""
        explorer = self.explorer(number)
        explorer.locator(f'.lab-rail [data-pane="{pane}"]').click()
        return explorer.locator(f'.lab-pane[data-pane="{pane}"]')

    def verdict(self, number: int, holds: str) -> str:
        said = self.explorer(number).locator(f".lab-verdict:has-text('{holds}')")
        said.wait_for()
        return said.inner_text()
