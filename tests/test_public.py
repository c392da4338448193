"""The public names are pinned: adding or removing one is a decision."""

import inspect

import spenn

PUBLIC = {
    "FitConfig": inspect.isclass,
    "Forecast": inspect.isclass,
    "Model": inspect.isclass,
    "Physics": inspect.isclass,
    "Trajectories": inspect.isclass,
    "add_uncertainty": inspect.isfunction,
    "fit": inspect.isfunction,
    "fit_deterministic": inspect.isfunction,
    "load": inspect.isfunction,
    "read": inspect.isfunction,
    "read_physics": inspect.isfunction,
    "simulate": inspect.isfunction,
    "write": inspect.isfunction,
}


def test_public_names_are_what_they_should_be():
    assert set(spenn.__all__) == set(PUBLIC)
    for name, kind in PUBLIC.items():
        thing = getattr(spenn, name)
        assert kind(thing), name
        assert thing.__doc__, name


def test_they_stay_so_after_submodules_are_imported():
    import spenn.experiment._run
    import spenn.fitting

    assert inspect.isfunction(spenn.fit)
