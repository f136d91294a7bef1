"""The description of the service as a page without scripts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from typing import Any

__all__ = ["docs"]

REF = "#/components/schemas/"


def docs(described: dict[str, Any]) -> str:
    """An HTML page with the content of an OpenAPI description."""
    info = described["info"]
    token = "<p>Each request carries <code>Authorization: Bearer …</code>, with the token of the service.</p>"
    operations = [
        _operation(f"{method.upper()} {path}", operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]
    schemas = [
        f'<section class="panel" id="{escape(name)}"><h3>{escape(name)}</h3>{_schema(schema)}</section>'
        for name, schema in described["components"]["schemas"].items()
    ]
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(info['title'])} {escape(info['version'])}: requests</title>",
            '<link rel="stylesheet" href="page.css"><link rel="stylesheet" href="panels.css"></head>\n<body>',
            f"<header><h1>{escape(info['title'])} {escape(info['version'])}</h1></header>\n<main>",
            f'<p>{escape(info["description"])} <a href="openapi.json">openapi.json</a> says the same to programs.</p>',
            token if "security" in described else "",
            *operations,
            "<h2>Types of requests and answers</h2>",
            *schemas,
            "</main>\n</body>\n</html>\n",
        ]
    )


def _operation(name: str, operation: dict[str, Any]) -> str:
    rows = [
        (escape(parameter["name"]), escape(parameter["description"]), _kind(parameter["schema"]))
        for parameter in operation.get("parameters", ())
    ]
    parts = [f"<h2><code>{escape(name)}</code></h2><p>{escape(operation['summary'])}.</p>"]
    parts += [_table(("parameter", "what it is", "type"), rows)] if rows else []
    parts += _content("Sent", operation.get("requestBody", {}))
    answers = operation["responses"]
    parts += _content("Answered", answers["200"])
    refusals = [
        (escape(status), escape(answer["description"])) for status, answer in answers.items() if status != "200"
    ]
    parts += [_table(("status", "why"), refusals)] if refusals else []
    return f'<section class="panel">{"".join(parts)}</section>'


def _content(title: str, body: dict[str, Any]) -> list[str]:
    """The types of a body, and its examples."""
    parts = []
    for media_type, content in body.get("content", {}).items():
        kind = _kind(content["schema"]) if "schema" in content else ""
        parts.append(f"<h3>{title}: {escape(media_type)}{' ' * bool(kind)}{kind}</h3>")
        for name, example in content.get("examples", {}).items():
            value = json.dumps(example["value"], ensure_ascii=False)
            parts.append(f"<p>{escape(name)}: <code>{escape(value)}</code></p>")
    return parts


def _kind(schema: dict[str, Any]) -> str:
    """A type in a few words, with links to types that have names."""
    if "$ref" in schema:
        name = escape(schema["$ref"].removeprefix(REF))
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(map(_kind, schema["anyOf"]))
    if schema.get("type") == "array" and isinstance(schema.get("items"), dict):
        return f"list of {_kind(schema['items'])}"
    default = f", {json.dumps(schema['default'])} by default" if schema.get("default") is not None else ""
    return escape(f"{schema.get('type', 'any')}{default}")


def _schema(schema: dict[str, Any]) -> str:
    about = f"<p>{escape(schema['description'])}</p>" if "description" in schema else ""
    rows = [(escape(name), _kind(schema_of_name)) for name, schema_of_name in schema.get("properties", {}).items()]
    return about + (_table(("name", "type"), rows) if rows else f"<p>{_kind(schema)}</p>")


def _table(names: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """An HTML table of cells."""
    head = "".join(f"<th>{name}</th>" for name in names)
    lines = ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
    return f"<table><thead><tr>{head}</tr></thead>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"
