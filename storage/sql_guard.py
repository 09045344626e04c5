"""Which SQL of strangers may run: one statement that reads documented views, and nothing else.

The statement is parsed by the engine itself and its tree is searched, so that no spelling,
comment or quoting hides a table or a function. The session adds a read-only transaction, and the
process a locked configuration without access to files (see `headway.storage.sql_session`).
"""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

import duckdb

from headway.storage.sql_size import Size, TooLarge

LONGEST = 50_000
"""Most characters of a statement."""
TABLE_FUNCTIONS = frozenset({"generate_series", "json_each", "json_tree", "range", "unnest"})
"""What may stand in FROM beside views; all others read files, settings or the catalog."""
REFUSED_FUNCTIONS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "current_setting",
            "currval",
            "getenv",
            "getvariable",
            "json_serialize_plan",
            "nextval",
            "setseed",
            "stats",
            "write_log",
        ),
        "it tells or changes what belongs to the collector",
    ),
    # One call of these works for minutes or takes gigabytes before it can be interrupted.
    **dict.fromkeys(
        (
            "array_resize",
            "bitstring",
            "damerau_levenshtein",
            "editdist3",
            "format",
            "generate_series",
            "jaccard",
            "levenshtein",
            "list_resize",
            "lpad",
            "pg_sleep",
            "sleep_ms",
            "to_base",
            "printf",
            "range",
            "regexp_extract_all",
            "regexp_replace",
            "regexp_split_to_array",
            "repeat",
            "rpad",
            "str_split_regex",
            "string_split_regex",
        ),
        "one call can take more time or memory than can be limited",
    ),
}
"""Functions of expressions that are refused, and why."""

_EXPLAIN = re.compile(r"\s*EXPLAIN\s+(?:ANALYZE\s+)?", re.IGNORECASE)
_SPACE = re.compile(r"^\ufeff?(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_SCHEMAS = ("", "main")


class SqlRefused(ValueError):  # noqa: N818  # the condition reads as a name
    """A statement that must not run, or that failed; says why and what to do."""

    def __init__(self, sentence: str, next_step: str) -> None:
        """Keep both parts for whoever shows them apart."""
        super().__init__(sentence)
        self.next_step = next_step


def checked(
    connection: duckdb.DuckDBPyConnection,
    text: str,
    readable: Collection[str],
    given: Collection[str] = (),
) -> str:
    """Return the one statement of a text if it only reads what is readable.

    `given` are the names of the parameters that have a value.

    Raises:
        SqlRefused: anything else.
    """
    if len(text) > LONGEST:
        raise SqlRefused(
            f"the statement has {len(text)} characters, more than {LONGEST}", "Ask for less."
        )
    text = text[_beginning(text) :]
    try:
        statements = connection.extract_statements(text)
    except duckdb.Error as error:
        raise SqlRefused(_words(error), "Correct the statement.") from error
    if len(statements) != 1:
        raise SqlRefused(
            f"exactly one statement can be asked at a time, got {len(statements)}",
            "Send each statement by itself.",
        )
    kind = statements[0].type
    read = text
    if kind == duckdb.StatementType.EXPLAIN:
        plain = _EXPLAIN.match(text)
        if plain is None:
            raise SqlRefused("EXPLAIN takes no options here", "Write EXPLAIN SELECT ...")
        read = text[plain.end() :]
    elif kind != duckdb.StatementType.SELECT:
        raise SqlRefused(
            f"{kind.name} is not read-only; only SELECT and EXPLAIN can be asked",
            "Write a SELECT over the documented views.",
        )
    _check_parameters(statements[0].named_parameters, given)
    for statement in _trees(connection, read):
        _Check(readable).node(statement, frozenset())
        try:
            Size().columns(statement["node"], {})
        except TooLarge as error:
            raise SqlRefused(str(error), "Ask for less at a time.") from error
    return text


def _check_parameters(wanted: Collection[str], given: Collection[str]) -> None:
    """Refuse a statement whose parameters and whose values are not the same ones."""
    missing, needless = sorted({*wanted} - {*given}), sorted({*given} - {*wanted})
    if missing:
        names = ", ".join(f"${name}" for name in missing)
        raise SqlRefused(
            f"the statement has parameters without a value: {names}",
            "Give each a value, or write the values into the statement.",
        )
    if needless:
        raise SqlRefused(
            f"the statement has no parameter {', '.join(f'${name}' for name in needless)}",
            "Leave its value out, or use it in the statement.",
        )


def _beginning(text: str) -> int:
    """Return where a text begins that has white space and comments in front."""
    found = _SPACE.match(text)
    return 0 if found is None else found.end()


def _trees(connection: duckdb.DuckDBPyConnection, read: str) -> list[Any]:
    row = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [read]).fetchone()
    tree: dict[str, Any] = json.loads(row[0]) if row else {"error": True}
    if tree["error"]:
        raise SqlRefused(
            str(tree.get("error_message", "the statement cannot be read")),
            "Write a SELECT over the documented views.",
        )
    found: list[Any] = tree["statements"]
    return found


def _words(error: duckdb.Error) -> str:
    return str(error).partition("\n")[0]


def _holds_lambda(node: Any) -> bool:
    if isinstance(node, dict):
        return node.get("type") == "LAMBDA" or any(map(_holds_lambda, node.values()))
    return isinstance(node, list) and any(map(_holds_lambda, node))


class _Check:
    """Walks the tree of one statement; `known` are the common table expressions in scope."""

    def __init__(self, readable: Collection[str]) -> None:
        self._readable = readable

    def node(self, node: Any, known: frozenset[str]) -> None:
        if isinstance(node, list):
            for item in node:
                self.node(item, known)
        elif isinstance(node, dict):
            self._object(node, known)

    def _object(self, node: Mapping[str, Any], known: frozenset[str]) -> None:
        match node.get("type"):
            case "BASE_TABLE":
                self._table(node, known)
            case "TABLE_FUNCTION":
                self._table_function(node["function"])
                # Its name is judged; its arguments are expressions like any.
                self.node(node["function"]["children"], known)
                return
            case "LAMBDA" if _holds_lambda(node["expr"]):
                raise SqlRefused(
                    "a lambda within a lambda can take more time than can be limited",
                    "Use unnest, or ask twice.",
                )
            case "SHOW_REF" if node["query"] is None:
                raise self._hidden("the list of tables")
            case _ if "function_name" in node:
                self._function(node["function_name"].lower())
        for entry in node.get("cte_map", {}).get("map", ()):
            name, query = entry["key"].lower(), entry["value"]["query"]
            self._common_table(name, query, known)
            known |= {name}
        for name, child in node.items():
            if name != "cte_map":
                self.node(child, known)

    def _common_table(self, name: str, query: Any, known: frozenset[str]) -> None:
        """Check `WITH name AS (query)`, which sees itself only in the part that recurs."""
        inner = query["node"]
        if inner["type"] == "RECURSIVE_CTE_NODE":
            self.node({**inner, "right": None}, known)
            self.node(inner["right"], known | {name})
        else:
            self.node(query, known)

    def _table(self, node: Mapping[str, Any], known: frozenset[str]) -> None:
        name, schema = node["table_name"], node["schema_name"]
        if not schema and name.lower() in known:
            return
        if node["catalog_name"] or schema.lower() not in _SCHEMAS:
            parts = (node["catalog_name"], schema, name)
            raise self._hidden(".".join(part for part in parts if part))
        if name.lower() not in self._readable:
            raise self._hidden(name)

    def _table_function(self, function: Mapping[str, Any]) -> None:
        name = function.get("function_name", "").lower()
        if name not in TABLE_FUNCTIONS:
            raise SqlRefused(
                f"the table function {name!r} cannot be used here",
                f"These can: {', '.join(sorted(TABLE_FUNCTIONS))}.",
            )

    def _function(self, name: str) -> None:
        if name in REFUSED_FUNCTIONS:
            raise SqlRefused(
                f"the function {name!r} cannot be used here: {REFUSED_FUNCTIONS[name]}",
                "Write the statement without it.",
            )

    def _hidden(self, name: str) -> SqlRefused:
        return SqlRefused(
            f"{name!r} cannot be read with SQL", f"These can: {', '.join(self._readable)}."
        )
