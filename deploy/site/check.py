"""Does every link of the site lead somewhere, and does a page need nothing from the network?"""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
NOT_FETCHED = {"canonical", "alternate", "next", "prev", "search", "index", "author"}


class Page(HTMLParser):
    """Names of anchors, links, and what a browser fetches on its own."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        self.anchors |= {known[name] for name in ("id", "name") if name in known}
        address = known.get(FETCHED.get(tag, "href" if tag == "a" else ""), "")
        if tag in FETCHED and known.get("rel") not in NOT_FETCHED and address:
            self.fetched.append(address)
        elif tag == "a" and address:
            self.links.append(address)


def problems(site: Path) -> Iterator[str]:
    """A line for each link that leads nowhere, and each file that comes from the network."""
    pages = {
        path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")
    }
    for path, page in sorted(pages.items()):
        name = path.relative_to(site.resolve())
        for address in page.fetched:
            if urlsplit(address).netloc:
                yield f"{name} fetches {address}"
        for address in {*page.links, *page.fetched}:
            link = urlsplit(address)
            if link.scheme or link.netloc:
                continue
            target = (path.parent / unquote(link.path)).resolve() if link.path else path
            if not target.exists():
                yield f"{name} links to {address}, which is not there"
            elif link.fragment and target in pages:
                if unquote(link.fragment) not in pages[target].anchors:
                    yield f"{name} links to {address}: no such place in that page"
