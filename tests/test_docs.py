"""Code in the documentation runs as it stands."""

import re
from pathlib import Path

import numpy as np
import pytest

import spenn
from spenn.systems import OSCILLATOR

DOCS = Path(__file__).parents[1] / "docs"
CONFIG = spenn.FitConfig(width=6, depth=1, steps=20, race_steps=10, races=2, batch=64)


def test_a_method_of_your_own():
    data = spenn.simulate(OSCILLATOR, OSCILLATOR.draw(np.random.default_rng(0), 8))
    train, calibration, test = data.split(3, 4, 1)
    model = spenn.fit_deterministic(train, 0, CONFIG)
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "own-method.md").read_text(), re.DOTALL)
    names = {"model": model, "calibration": calibration, "test": test}
    exec(code, names)
    assert names["forecast"].samples.shape == (20, 1000, 3)
    assert np.all(names["forecast"].std[-1] > 0)
    assert np.all(names["lower"][1:] < names["upper"][1:])
    with pytest.raises(ValueError, match="a ShakenEnergy cannot be saved"):
        names["mine"].save("never.spenn")


def test_an_inverse_problem_of_your_own():
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "inverse.md").read_text(), re.DOTALL)
    names = {}
    exec(code, names)
    assert names["fields"].shape == (1000, 25, 1)
    for name, truth in (("c", 0.4), ("k", 2.29)):
        values = np.asarray(names["constants"][name])
        assert values.shape == (1000,) and np.all(values > 0)
        assert abs(values.mean() - truth) < 3 * values.std() < 0.5


def test_data_in_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "data.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = {}
    exec(code, names)
    np.testing.assert_array_equal(names["again"].states, names["states"])
    assert [len(names[part]) for part in ("train", "calibration", "test")] == [6, 2, 2]
    (table,) = re.findall(r"```csv\n(.*?)```", text, re.DOTALL)
    Path("table.csv").write_text(table)
    data = spenn.read("table.csv")
    assert data.names == ("q", "p") and data.units == ("m", "kg m/s") and data.time_unit == "s"
    assert data.lengths.tolist() == [3, 2]
