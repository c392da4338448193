"""`spenn reproduce`: one page for all tables, and nothing done twice."""

import json
import sys

import pytest

from spenn import cli, experiment
from spenn.experiment import _run, _write
from support import tiny


@pytest.fixture
def type_command(monkeypatch, tmp_path):
    """Type `spenn reproduce` with a tiny preset, one system and one method."""
    monkeypatch.setattr(experiment, "preset", tiny)
    monkeypatch.setattr(experiment, "SYSTEMS", ("oscillator",))
    monkeypatch.setattr(experiment, "METHODS", ("deep-ensemble",))
    out = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["spenn", "reproduce", "--out", str(out)])
    return out


def _refuse(*_, **__):
    raise AssertionError("this was finished before")


def _no_space(*_):
    raise ValueError("no space is left on the device.")


def test_it_goes_on_where_it_stopped(type_command, monkeypatch, capsys):
    out = type_command
    with monkeypatch.context() as patch, pytest.raises(SystemExit) as stop:
        patch.setattr(_write, "write", _no_space)
        cli.main()
    assert stop.value.code == 2 and "no space is left" in capsys.readouterr().err
    assert not (out / "oscillator" / "results.json").exists()
    kept = sorted(p.name for p in (out / "oscillator" / ".parts").iterdir())
    assert kept == ["base", "deep-ensemble", "fingerprint"]

    with monkeypatch.context() as patch:
        for name in ("fit_deterministic", "fit_ensemble", "_deterministic", "_probabilistic"):
            patch.setattr(_run, name, _refuse)
        cli.main()
    assert not (out / "oscillator" / ".parts").exists()
    results = json.loads((out / "oscillator" / "results.json").read_text())
    assert set(results["methods"]) == {"base", "deep-ensemble"}
    assert (out / "oscillator" / "report.html").exists()
    page = (out / "index.html").read_text()
    ours = results["methods"]["deep-ensemble"]["crps"]["q"]
    for value in (ours, 1.1e-3, ours / 1.1e-3):
        assert f'data-value="{value!r}"' in page
    assert 'href="oscillator/report.html"' in page

    monkeypatch.setattr(_run, "run", _refuse)
    capsys.readouterr()
    cli.main()
    assert "oscillator: finished before" in capsys.readouterr().out


def test_parts_of_another_configuration_are_not_used(tmp_path):
    config = tiny("quick", "oscillator")
    parts = _run.Parts(tmp_path, config)
    (tmp_path / ".parts").mkdir()
    (tmp_path / ".parts" / "fingerprint").write_text("of something else")
    assert parts.get("base") is None
