"""The effect of process settings: each in a separate process, interleaved."""

from __future__ import annotations

import pytest

from inductor_lab.bench.surroundings import BASE, Setting, Surroundings, settings, surroundings
from inductor_lab.bench.timing import Timings
from inductor_lab.cli import main


def test_every_setting_says_how_it_is_made() -> None:
    found = list(settings())
    names = [setting.name for setting in found]
    assert len(set(names)) == len(names) and "threads stay on their cores" in names
    for setting in found:
        assert all(f"{name}={value}" in setting.set_with
                   for name, value in setting.environment.items())  # fmt: skip


def test_all_settings_run_the_same_work_interleaved() -> None:
    found = surroundings(rounds=3)
    assert found.timings.rounds == 3
    assert {BASE, *(setting.name for setting in found.settings)} == set(found.timings.seconds)
    assert all(took > 0 for samples in found.timings.seconds.values() for took in samples)
    assert str(found).startswith("measured: ") and "threads stay on their cores" in str(found)


def test_only_certainly_faster_settings_are_recommended() -> None:
    timings = Timings({BASE: (2.0,) * 15, "quick": (1.0,) * 15, "slow": (4.0,) * 15,
                       "unsure": (1.0, 3.0, 4.0) * 5})  # fmt: skip
    made = tuple(Setting(name, f"{name.upper()}=1") for name in ("quick", "slow", "unsure"))
    text = str(Surroundings(made, timings))
    assert "2x faster than now" in text and "-> QUICK=1" in text
    assert "2x slower than now" in text and "SLOW=1" not in text
    assert "too noisy to tell" in text and "UNSURE=1" not in text


def test_the_doctor_measures_when_asked(monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    said = Surroundings((), Timings({BASE: (0.5,)}))
    monkeypatch.setattr("inductor_lab.bench.surroundings.surroundings", lambda: said)
    main(["doctor"])
    assert "measured:" not in capsys.readouterr().out
    main(["doctor", "--measure"])
    assert "measured: 500.00 ms" in capsys.readouterr().out
