"""The output of `inductor-lab doctor`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from inductor_lab.compiler.runtime.toolchain import thread_team
from inductor_lab.compiler.runtime.toolchain.find_compiler import find_toolchain
from inductor_lab.compiler.torch_door import torch_names
from inductor_lab.debug import doctor as doctor_module
from inductor_lab.debug.doctor import report


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INDUCTOR_LAB_CACHE_DIR", str(tmp_path))


def test_a_machine_with_a_compiler_is_healthy() -> None:
    doctor = report()
    assert doctor.healthy
    text = str(doctor)
    assert "compiled, loaded and ran on" in text
    for name in ("python", "torch", "C++ compiler", "OpenMP", "GPU", "cache", "[notebook]"):
        assert f"\n{name} " in f"\n{text}"
    assert len(text.splitlines()) <= 24, "one screen"
    assert "memory pool" not in text and "memory pool" in str(report(every_name=True))


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(doctor_module.EXTRAS, "notebook", ("ipython", "no-such-package"))
    rows = {row.name: row for row in report().rows}
    assert rows["[notebook]"].found.startswith("ipython ")
    missing = rows["  rest of [notebook]"]
    assert missing.todo == "pip install 'inductor-lab[notebook]', for no-such-package"


def test_it_fits_on_a_screen_if_everything_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setitem(sys.modules, "ziglang", None)
    (tmp_path / "open").mkdir(mode=0o777)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "open"))
    monkeypatch.setattr(torch_names, "missing", lambda feature: torch_names.OPTIONAL[feature].names)
    extras = {extra: (*packages, "absent") for extra, packages in doctor_module.EXTRAS.items()}
    monkeypatch.setattr(doctor_module, "EXTRAS", extras)
    lines = str(report()).splitlines()
    assert len(lines) <= 40, "one screen"
    shown = [line for line in lines if line.startswith("  memory pool")]
    assert len(shown) == 1 and sum("more features are off" in line for line in lines) == 1
    every = str(report(every_name=True))
    assert all(f"\n  {name} " in every for name in torch_names.OPTIONAL)


def test_triton_for_windows_is_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"triton-windows": "3.8.0.post29"}
    monkeypatch.setattr(doctor_module, "_installed", lambda package: versions.get(package, ""))
    rows = {row.name: row for row in report().rows}
    assert rows["triton"].found == "3.8.0.post29 (triton-windows)"


def test_it_says_why_graphs_are_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "open"))
    (tmp_path / "open").mkdir()
    assert f"{tmp_path / 'open' / 'aotautograd'}" in str(report())
    (tmp_path / "open").chmod(0o777)
    assert "not kept on disk: everybody may write to" in str(report())


def test_without_a_compiler_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setitem(sys.modules, "ziglang", None)
    doctor = report()
    assert not doctor.healthy
    assert "MISSING" in str(doctor) and "install" in str(doctor)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "OpenMP's; our own on a busy machine"), ("team", "our own"), ("openmp", "OpenMP's")],
)
def test_whose_threads_run_kernels(
    monkeypatch: pytest.MonkeyPatch, value: str | None, expected: str
) -> None:
    if not thread_team.is_possible(find_toolchain()):
        expected = "OpenMP's"
    monkeypatch.delenv(thread_team.VARIABLE, raising=False)
    if value:
        monkeypatch.setenv(thread_team.VARIABLE, value)
    (row,) = (row for row in report().rows if row.name == "threads")
    assert row.found.endswith(f", {expected}")
