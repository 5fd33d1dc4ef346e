"""`make docs`: the site in build/site/html, to be opened from the disk.

    python -m deploy.site.build [--into FOLDER] [--run 1 2]     only tutorials 1 and 2 are executed

Tutorials run once and are kept in a cache until their code changes; both languages share nothing
but it.  Ends with 1 if a link leads nowhere or a page needs the network.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy.site.check import problems
from deploy.site.gather import HERE, ROOT, gather
from deploy.site.home import first_screen, write_explorer
from deploy.site.llms import llms_text
from inductor_lab.course.language import LANGUAGES, Language

SPARED = ("labs/*/*",)
"""Patterns of notebooks, matched from the right; `**` is one folder."""


def build(into: Path, run: Sequence[int] | None = None) -> list[str]:
    """Make the site in both languages; what is wrong with its links.

    `run` are the numbers of tutorials to execute; the other notebooks have no outputs.  None
    executes all.  Raises RuntimeError, with Sphinx's words, if it warns of anything.
    """
    for language in LANGUAGES:
        source = into / "source" / language
        shutil.rmtree(source, ignore_errors=True)
        gather(language, source)
        start = source / "index.md"
        start.write_text(first_screen(start.read_text(encoding="utf-8"), language), "utf-8")
        left = not_executed(source / "notebooks", language, run)
        sphinx("html", source, into / "doctrees" / language, into / "html" / language, into,
               language, left)  # fmt: skip
        write_explorer(into / "html" / language, language)
    (into / "html" / "llms.txt").write_text(llms_text(), encoding="utf-8")
    shutil.copy(HERE / "start.html", into / "html" / "index.html")
    lite = into / "html" / "lite" / "start.html"
    if not lite.exists():
        lite.parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "deploy" / "lite" / "missing.html", lite)
    return list(problems(into / "html"))


def sphinx(builder: str, source: Path, doctrees: Path, target: Path, into: Path,
           language: Language, left: Sequence[str]) -> None:  # fmt: skip
    """Run a builder of Sphinx; notebooks that fit a pattern of `left` are not executed.

    `into` has the cache of executed notebooks.  Raises RuntimeError if Sphinx warns of anything.
    """
    env = os.environ | {
        "INDUCTOR_LAB_SITE_CODE": str(HERE),
        "INDUCTOR_LAB_SITE_BUILDER": builder,
        "INDUCTOR_LAB_SITE_LANGUAGE": {"en": "en", "zh": "zh_CN"}[language],
        "INDUCTOR_LAB_SITE_EXECUTION": "cache",
        "INDUCTOR_LAB_SITE_CACHE": str(into / "executed"),
        "INDUCTOR_LAB_SITE_SPARED": ",".join([*SPARED, *left]),
        "INDUCTOR_LAB_COURSE_FILE": str(into / "course.json"),
    }
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", builder,
               "-d", doctrees, source, target]  # fmt: skip
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}")


def not_executed(notebooks: Path, language: Language, run: Sequence[int] | None) -> list[str]:
    """Patterns of the tutorials that are not in `run`, and of all guides; none if `run` is None."""
    if run is None:
        return []
    tutorials = sorted((notebooks / "tutorials" / language).glob("*.ipynb"))
    return ["guides/*/*", *(f"**/{p.name}" for p in tutorials if int(p.name[:2]) not in run)]


def main() -> int:
    """Build and check; 1 if a link leads nowhere."""
    parser = argparse.ArgumentParser(prog="python -m deploy.site.build", description=__doc__)
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "site")
    parser.add_argument("--run", type=int, nargs="*", help="numbers of tutorials; none: all")
    given = parser.parse_args()
    wrong = build(given.into.resolve(), given.run)
    print("\n".join([*wrong, f"{given.into}/html/index.html"]))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
