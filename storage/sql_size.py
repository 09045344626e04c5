"""How large a statement is for the engine once it is planned, from its tree.

Planning hears no interrupt, and some statements double with each line: columns of `*` from a table
beside itself, a column that names the one before it twice. Both are counted here, beforehand.
"""

from collections.abc import Mapping, Sequence
from typing import Any

MOST_COLUMNS = 10_000
MOST_PARTS = 30_000
MOST_TABLES = 50
"""Most columns of any part of a statement, parts of any expression, tables in all. What a statement
of the longest length says without doubling has fewer parts."""
_WIDEST = 64
"""Columns of a view or of a function, at the most."""

Widths = Mapping[str, int]
"""Columns of common tables by name, lower case."""
_LARGE = MOST_COLUMNS + MOST_PARTS


class TooLarge(ValueError):  # noqa: N818  # the condition reads as a name
    """Planning the statement could take for ever; says what there is too much of."""


class Size:
    """Counts over the tree of one statement."""

    def __init__(self) -> None:
        """Start without tables."""
        self._num_tables = 0

    def columns(self, query: Mapping[str, Any], known: Widths) -> int:
        """Return the most columns that a query can have; counts all within it.

        Raises:
            TooLarge: it, or a part of it, is too large.
        """
        for entry in query.get("cte_map", {}).get("map", ()):
            name = entry["key"].lower()
            inner = entry["value"]["query"]["node"]
            recurs = inner["type"] == "RECURSIVE_CTE_NODE"
            width = self.columns({**inner, "right": None} if recurs else inner, known)
            known = {**known, name: width}
            if recurs:  # it sees itself in the part that recurs
                self.columns(inner["right"], known)
        if "select_list" in query:
            return self._of_select(query, known)
        parts = [query[side] for side in ("left", "right") if query.get(side)]
        parts += query.get("children", ())
        return max((self.columns(part, known) for part in parts), default=_WIDEST)

    def _of_select(self, query: Mapping[str, Any], known: Widths) -> int:
        there = self._of_table(query.get("from_table"), known)
        sizes: dict[str, int] = {}
        width = 0
        for one in query["select_list"]:
            size = self._parts(one, sizes, known)
            sizes[(one.get("alias") or "").lower()] = size
            width += there if _holds_star(one) else 1
        for name in ("where_clause", "group_expressions", "having", "qualify", "modifiers"):
            self._parts(query.get(name), sizes, known)
        if width > MOST_COLUMNS:
            raise TooLarge(f"the statement has more than {MOST_COLUMNS} columns once it is read")
        return width

    def _of_table(self, table: Any, known: Widths) -> int:
        if not isinstance(table, dict):
            return 0
        match table.get("type"):
            case "JOIN":
                both = self._of_table(table["left"], known) + self._of_table(table["right"], known)
                self._parts(table.get("condition"), {}, known)
                return min(both, _LARGE)
            case "SUBQUERY":
                return self.columns(table["subquery"]["node"], known)
            case "BASE_TABLE":
                self._count_table()
                return known.get(table["table_name"].lower(), _WIDEST)
            case "PIVOT":
                source = self._of_table(table.get("source"), known)
                given = sum(len(one.get("entries", ())) for one in table.get("pivots", ()))
                return min(source + (given + 1) * max(len(table.get("aggregates", ())), 1), _LARGE)
        self._count_table()
        self._parts([child for name, child in table.items() if name != "type"], {}, known)
        return _WIDEST

    def _count_table(self) -> None:
        self._num_tables += 1
        if self._num_tables > MOST_TABLES:
            raise TooLarge(
                f"the statement has more than {MOST_TABLES} tables and SELECTs without one"
            )

    def _parts(self, node: Any, sizes: Mapping[str, int], known: Widths) -> int:
        """Return of how many parts an expression is; `sizes` are those of columns before it."""
        if isinstance(node, Mapping):
            if "select_list" in node or "cte_map" in node:
                self.columns(node, known)
                return 1
            own = int("class" in node)
            names: Sequence[str] = node.get("column_names") or ()
            if names:
                own = sizes.get(names[-1].lower(), 1)
            total = own + sum(self._parts(child, sizes, known) for child in node.values())
        elif isinstance(node, list):
            total = sum(self._parts(child, sizes, known) for child in node)
        else:
            return 0
        if total > MOST_PARTS:
            raise TooLarge(f"an expression has more than {MOST_PARTS} parts once it is read")
        return total


def _holds_star(node: Any) -> bool:
    if isinstance(node, dict):
        return node.get("type") == "STAR" or any(map(_holds_star, node.values()))
    return isinstance(node, list) and any(map(_holds_star, node))
