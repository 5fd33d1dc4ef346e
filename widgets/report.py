"""The report: one self-contained HTML file with data, script and style."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from inductor_lab.compiler.base.display import write_text
from inductor_lab.compiler.base.garbage import no_collection
from inductor_lab.stock.stock_compilation import StockCompilation
from inductor_lab.widgets.compressed import zipped
from inductor_lab.widgets.model import add_group, linked_document
from inductor_lab.widgets.page import page, script, style
from inductor_lab.widgets.plain import STYLE, plain_document
from inductor_lab.widgets.static_pictures import static_pictures

if TYPE_CHECKING:
    from inductor_lab.api.compilation import Compilation

_BODY = """<div id="lab" class="lab-page">{plain}</div>
<script type="text/plain" id="lab-document">{data}</script>
<script type="module">
{script}
renderZipped(
  document.getElementById("lab"),
  document.getElementById("lab-document").textContent,
);
</script>"""


@no_collection()  # millions of new objects, none of them garbage
def report_html(
    compilation: Compilation | StockCompilation, ladder: str | None = None, assembly: bool = False
) -> str:
    """The page as text, with the requested panes below the code."""
    shown, links = linked_document(compilation)
    pictures: list[tuple[str, str]] = []
    if not isinstance(compilation, StockCompilation):
        pictures = static_pictures(compilation)
        if ladder is not None or assembly:
            from inductor_lab.widgets.ladder import low_level_panes

            add_group(shown, "machine code", low_level_panes(compilation, ladder, assembly, links))
    body = _BODY.format(
        plain=plain_document(shown, pictures), data=zipped(shown), script=script()
    )
    return page(compilation.name, body, STYLE, style())


def write_report(
    compilation: Compilation | StockCompilation,
    path: Path,
    ladder: str | None = None,
    assembly: bool = False,
) -> Path:
    """Write the page to `path`; raises CannotWrite."""
    return write_text(path, report_html(compilation, ladder, assembly), "report")
