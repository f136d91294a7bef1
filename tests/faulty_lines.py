"""Lines that cannot be read, or whose label alone cannot be, each with the beginning of the reason."""

BAD_JSON = {
    b"nonsense": "not JSON",
    b'{"text": "a", "label": 1': "not JSON",
    b'{"text": NaN, "label": 1}': "field 'text' must be a string, got null",
    b'{"text": "\\ud800", "label": 1, "x": nan}': "not JSON",
    b"[" * 100_000 + b'"\\ud800"': "not JSON",
    b'{"text": "\xff", "label": 1': "not JSON",
    b"[1]": "it must be a JSON object, got a list",
    b"null": "it must be a JSON object, got null",
    b'{"label": 1}': "no field 'text'; its fields: label",
    b'{"text": null, "label": 1}': "field 'text' must be a string, got null",
    b'{"text": 5, "label": 1}': "field 'text' must be a string, got a number",
}
BLANK_IN_LIST = "each label of a list must be written, got a blank one"
WRONG_LABELS = {
    "0.5": "field 'label': label must be an integer below 2**53, got 0.5",
    "1e300": "field 'label': label must be an integer below 2**53, got 1e+300",
    '["x", ""]': f"field 'label': {BLANK_IN_LIST}",
    "[null]": f"field 'label': {BLANK_IN_LIST}",
    '[["x"]]': "field 'label': a label must be a bool, an int or a str, got ['x']",
    '["x", 0.5]': "field 'label': label must be an integer below 2**53, got 0.5",
    "{}": "field 'label': a label must be a bool, an int or a str, got {}",
    "9007199254740994.0": "field 'label': label must be an integer below 2**53, got 9007199254740994.0",
    f'"{"x" * 201}"': "a label must have at most 200 characters, got 201",
}
WRONG_JSON = {f'{{"text": "good", "label": {label}}}': reason for label, reason in WRONG_LABELS.items()}
BAD_VW = {
    "1": "no |",
    "1 |a x:nan": "value of feature 'x' must be a finite number, got 'nan'",
    "1 |a x:inf": "value of feature 'x' must be a finite number, got 'inf'",
    "1 |a x:1e999": "value of feature 'x' must be a finite number, got '1e999'",
    "1 |a x:1e308 x:1e308": "a feature's value must be finite",
    "1 |a x:": "value of feature 'x' must be a finite number, got ''",
    "1 |a x:1:2": "value of feature 'x' must be a finite number, got '1:2'",
    "1 |a x:1_0": "value of feature 'x' must be a finite number, got '1_0'",
    "1 |a http://x": "value of feature 'http' must be a finite number, got '//x'",
    "1 |a:b x": "weight of namespace 'a' must be a finite number, got 'b'",
    "1 -1 | x": "weight must be 0 or more, got '-1'",
    "1 nan | x": "weight must be a finite number, got 'nan'",
    "1 1 0.5 tag 'tag | x": "more than a label, a weight, an initial prediction and a tag",
    "1 1 half | x": "initial prediction must be a finite number, got 'half'",
    "shared |a x": "label must be a class, got 'shared', which is about actions",
    "0:1:.5 |a x": "label must be a class, got '0:1:.5', which is about actions",
    "1:0.5 2:1e3 | x": "label must be a class, got '1:0.5 2:1e3', which is about actions",
    "ccb slot 0:1:.5,1:2:.5 0,1 | x": "label must be a class, got 'ccb slot 0:1:.5,1:2:.5 0,1', which",
    "slates shared 0.8 | x": "label must be a class",
}
NO_CLASS = "must be a class, as an integer or a name, got"
WRONG_FEATURES = {
    "nan": "label must be a finite number, got 'nan'",
    "3.5": f"label {NO_CLASS} '3.5'",
    "-1e-3": f"label {NO_CLASS} '-1e-3'",
    "1,2.5": f"label {NO_CLASS} '2.5'",
    "1,,2": BLANK_IN_LIST,
    "1,": BLANK_IN_LIST,
}
WRONG_VW, WRONG_SVMLIGHT = ({y + end: why for y, why in WRONG_FEATURES.items()} for end in (" | x", " 1:1"))
BAD_SVMLIGHT = {
    "1 a:1": "a feature must be id:value, got 'a:1'",
    "1 5": "a feature must be id:value, got '5'",
    "1 -5:1": "a feature must be id:value, got '-5:1'",
    "1 1_0:1": "a feature must be id:value, got '1_0:1'",
    "1 1:2:3 4": "value of feature 1 must be a finite number, got '2:3'",
    "1 1:nan": "value of feature 1 must be a finite number, got 'nan'",
    "1 1:-inf": "value of feature 1 must be a finite number, got '-inf'",
    "1 1:1 1:2": "feature 1 occurs twice",
    "1 1:": "value of feature 1 must be a finite number, got ''",
    "1 1:\xff": "value of feature 1 must be a finite number, got '\xff'",
}
