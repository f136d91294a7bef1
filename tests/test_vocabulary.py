"""The code speaks the field's language: see `vocabulary.py`, which counts."""

import ast
from functools import cache

import vocabulary

figures = cache(vocabulary.figures)


def test_names_say_what_they_hold_and_do():
    told = figures()
    n_names, pronouns = told["names"]
    assert n_names > 10_000 and pronouns.total() < 0.015 * n_names
    assert told["functions"][0] > 2_000 and told["functions"][1].total() < 40


def test_no_class_and_no_module_has_the_name_of_another():
    told = figures()
    assert told["classes"][0] > 200 and not told["classes"][1]
    assert told["modules"][0] > 200 and {*told["modules"][1]} == {"text.py"}  # pickles of before name both


def test_types_are_not_lost_at_the_door():
    counts = figures()["types"][1]
    assert counts["model or learner: Any"] == 0
    assert counts[": Any"] < 200 and counts["type: ignore"] < 40 and counts["getattr("] < 30


def test_errors_say_what_must_be():
    n_errors, old = figures()["errors"]
    assert n_errors > 500 and not old
    assert vocabulary.OLD_ERROR.search(ast.unparse(ast.parse("raise ValueError(f'{x!r} is no label')")))
