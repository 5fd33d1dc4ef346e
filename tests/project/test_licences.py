"""We are under BSD-3-Clause, and nothing that we need forbids that: read from what is installed."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PERMISSIVE = re.compile(
    r"\b(MIT|BSD|Apache|ISC|PSF|Python Software Foundation|MPL|Mozilla|Unlicense|Zlib|0BSD|CC0|"
    r"HPND|CNRI)\b", re.IGNORECASE
)  # fmt: skip
NOT_ALL_OF_IT = {"docutils": "an Emacs mode is under the GPL, and is not in the wheel"}
COPYLEFT = re.compile(r"\bA?L?GPL\b|GNU|EPL|Eclipse", re.IGNORECASE)

def licences_of(package: str) -> str:
    """What the package says of its licence, in whichever of the three ways there are."""
    known = metadata(package)
    said = [known.get("License-Expression"), (known.get("License") or "")[:200]]
    said += [c for c in known.get_all("Classifier") or [] if c.startswith("License")]
    return "; ".join(filter(None, said))


def judged(text: str) -> bool:
    """May code under this licence be needed by ours?"""
    return bool(PERMISSIVE.search(text)) and not COPYLEFT.search(text)


def pinned() -> list[str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [line.split("==")[0] for line in lines if "==" in line and not line.startswith("#")]


@pytest.mark.parametrize("package", pinned())
def test_what_we_need_is_permissively_licensed(package: str) -> None:
    try:
        text = licences_of(package)
    except PackageNotFoundError:
        pytest.skip(f"{package} is not installed here")
    if package in NOT_ALL_OF_IT:
        text = text.replace("GNU General Public License (GPL)", "")
    assert judged(text), text


def test_incompatible_licences_are_detected() -> None:
    assert judged("BSD-3-Clause") and judged("License :: OSI Approved :: MIT License")
    assert not judged("GPLv2 | EPLv1") and not judged("LGPL-2.1-or-later AND MIT")
    assert not judged("Proprietary") and not judged("")


def test_our_licence_is_stated_everywhere() -> None:
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith("BSD 3-Clause License")
    for name in ("pyproject.toml", "CITATION.cff"):
        assert "BSD-3-Clause" in (ROOT / name).read_text(encoding="utf-8")
