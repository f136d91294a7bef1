"""Tools for every layer: checks of parameters, locks, packing, hints about missing extras.

| what | file |
|---|---|
| checks of parameters; the one form of errors | `checks`; `errors` |
| the declaration of a state, and its fields; arrays that are read in parts | `state`, `state_fields`, `lazy_columns` |
| conversion to JSON and back | `packing` |
| texts for display; bytes of any mail as text | `display`, `windows_1252` |
| locks of estimators and of files; files beside a model | `locks`, `file_lock`, `companions` |
| HTTP servers that are asked: addresses, keys, connections | `host_addresses`, `servers` |
| hints about missing packages | `extras` |
| one bad example among many; properties computed once; sums that round alike | `batch_then_single`, `cached`, `sums` |
"""
