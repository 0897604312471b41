"""The functions of SQLite that the shared statements use.

JSON that Postgres cannot represent counts as missing and fails no search.
"""

from __future__ import annotations

from typing import Final

from kantan_agents.traces.postgres.dialect import PREFIX

_JSON: Final = f"{PREFIX}json"
_AT: Final = f"{PREFIX}json_at(given, path)"
_NUMBER: Final = f"{PREFIX}number"


def _function(name: str, arguments: str, result: str, body: str, language: str = "sql") -> str:
    return (
        f"CREATE OR REPLACE FUNCTION {PREFIX}{name}({arguments}) RETURNS {result} "
        f"LANGUAGE {language} IMMUTABLE PARALLEL SAFE AS $$ {body} $$"
    )


FUNCTIONS: Final = (
    _function("json_valid", "given text", "boolean", "SELECT given IS JSON"),
    _function(
        "json",
        "given text",
        "jsonb",
        "BEGIN RETURN given::jsonb; EXCEPTION WHEN OTHERS THEN RETURN NULL; END",
        "plpgsql",
    ),
    _function("repair", "given text", "text", "SELECT NULL::text"),
    # Only paths of names, such as $.span_data.data.tool, and one quoted name.
    _function(
        "json_at",
        "given text, path text",
        "jsonb",
        f"SELECT {_JSON}(given) #> CASE WHEN path LIKE '$.\"%\"' "
        "THEN ARRAY[substr(path, 4, length(path) - 4)] ELSE string_to_array(substr(path, 3), '.') END",
    ),
    _function("json_extract", "given text, path text", "text", f"SELECT ({_AT} #>> '{{}}') COLLATE \"C\""),
    _function(
        "json_each",
        "given text",
        "TABLE(value bigint)",
        "SELECT one::bigint FROM json_array_elements_text(given::json) AS one",
    ),
    _function("contains", "given text, word text", "boolean", "SELECT strpos(given, word) > 0"),
    _function("bytes", "given text", "bytea", "SELECT convert_to(given, 'UTF8')"),
    _function("bytes", "given bytea", "bytea", "SELECT given"),
    # A number, and a boolean as SQLite's number.
    _function(
        "number",
        "given jsonb",
        "numeric",
        "SELECT CASE jsonb_typeof(given) WHEN 'number' THEN (given #>> '{}')::numeric "
        "WHEN 'boolean' THEN (given #>> '{}')::boolean::int::numeric END",
    ),
    _function(
        "json_is",
        "given text, path text, wanted text",
        "boolean",
        f"SELECT jsonb_typeof({_AT}) = 'string' AND {_AT} #>> '{{}}' = wanted",
    ),
    _function(
        "json_is", "given text, path text, wanted numeric", "boolean", f"SELECT {_NUMBER}({_AT}) = wanted"
    ),
)
