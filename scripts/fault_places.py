"""Faults that a program could have: small changes of its syntax tree, each of which changes what it does."""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

PLACES = (
    # the decision
    "reclaim/**/*.py requests/*.py "
    # the order channels
    "htcondor/pool/*_channel.py htcondor/pool/collector.py htcondor/pool/knobs.py htcondor/pool/pool.py "
    "htcondor/node/order_list.py htcondor/node/cron_state.py slurm/pool/orders.py slurm/pool/pool.py "
    "slurm/pool/transport.py slurm/pool/old_release.py slurm/jobs/order_mark.py slurm/jobs/job.py "
    "slurm/jobs/admin_comment.py local/pool.py local/control.py local/leases.py "
    # the readers of users' files
    "pilotad/*.py features/read*.py node/payloads/*.py node/glidein*.py htcondor/node/job_directories.py "
    "htcondor/node/parts.py slurm/node_agent/work_dir*.py slurm/node_agent/user_task*.py"
)
"""The modules from which faults are drawn, as patterns below the package."""

OTHERS = {"Lt": "LtE GtE", "LtE": "Lt Gt", "Gt": "GtE LtE", "GtE": "Gt Lt", "Eq": "NotEq", "NotEq": "Eq", "Is": "IsNot"}
OTHERS |= {"IsNot": "Is", "In": "NotIn", "NotIn": "In", "Add": "Sub", "Sub": "Add", "Mult": "FloorDiv", "Div": "Mult"}
OTHERS |= {"FloorDiv": "Mult", "And": "Or", "Or": "And", "BitAnd": "BitOr", "BitOr": "BitAnd"}
OTHERS |= {"min": "max", "max": "min", "any": "all", "all": "any"}
"""What may stand in place of an operator or a function."""
TELLING = {"print", "warn", "debug", "info", "warning", "error", "exception", "log"}
"""Calls whose texts tell somebody something and decide nothing."""
TEXTS = (ast.List, ast.Tuple, ast.JoinedStr)
UNSEEN = {"annotation", "returns", "decorator_list", "bases", "exc"}
"""Parts of a tree that are types, or the message of a fault."""

Change = tuple[ast.AST, ast.AST]


class Fault(NamedTuple):
    """A node of a file that is another."""

    path: Path
    node: ast.expr | ast.stmt
    other: ast.AST

    @property
    def lines(self) -> range:
        """Where the node stands."""
        return range(self.node.lineno, (self.node.end_lineno or self.node.lineno) + 1)

    def __str__(self) -> str:
        before, after = (ast.unparse(ast.fix_missing_locations(one)) for one in (self.node, self.other))
        return f"{before} → {after}"

    def text(self) -> bytes:
        """The file with the fault."""
        source = self.path.read_bytes()
        lines = source.splitlines(keepends=True)
        begin = len(b"".join(lines[: self.lines[0] - 1])) + self.node.col_offset
        end = len(b"".join(lines[: self.lines[-1] - 1])) + (self.node.end_col_offset or 0)
        put = ast.unparse(ast.fix_missing_locations(self.other))
        return source[:begin] + (f"({put})" if isinstance(self.other, ast.expr) else put).encode() + source[end:]


def _with(node: ast.AST, field: str, value: object) -> Change:
    changed = copy.copy(node)
    setattr(changed, field, value)
    return node, changed


def _others(operator: ast.AST) -> list[ast.AST]:
    return [getattr(ast, name)() for name in OTHERS.get(type(operator).__name__, "").split()]


def _changed_values(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            for other in _others(operator):
                yield _with(node, "ops", [*node.ops[:place], other, *node.ops[place + 1 :]])
    elif isinstance(node, ast.BinOp):
        # A list or a text less another is a TypeError, which says nothing of the tests.
        if not any(isinstance(one, TEXTS) or type(getattr(one, "value", 0)) is str for one in (node.left, node.right)):
            yield from (_with(node, "op", other) for other in _others(node.op))
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Invert):
        yield node, node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
        value, is_whole = node.value, isinstance(node.value, int)
        # Of ten and more another one is the double: a limit or a time that is longer by one changes next to nothing.
        more = not value if isinstance(value, bool) else value + 1 if is_whole and value < 10 else 2 * value + 1
        yield node, ast.Constant(more)
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in OTHERS:
            yield _with(node, "func", ast.Name(OTHERS[node.func.id]))
        for keyword in node.keywords:
            yield _with(node, "keywords", [one for one in node.keywords if one is not keyword])


def _changed_conditions(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.BoolOp):
        yield _with(node, "op", _others(node.op)[0])
        for value in node.values:
            rest = [one for one in node.values if one is not value]
            yield _with(node, "values", rest) if rest[1:] else (node, rest[0])
    elif isinstance(node, (ast.If, ast.While)):
        yield from ((node.test, ast.UnaryOp(ast.Not(), node.test)), (node.test, ast.Constant(False)))
    elif isinstance(node, ast.IfExp):
        yield from ((node, node.body), (node, node.orelse))
    elif isinstance(node, ast.comprehension):
        yield from ((test, ast.Constant(True)) for test in node.ifs)


def _changed_statements(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Return) and not isinstance(node.value, (ast.Constant, type(None))):
        yield node, ast.Return(ast.Constant(None))
    elif isinstance(node, ast.AugAssign):
        yield from (_with(node, "op", other) for other in _others(node.op))
    elif (
        isinstance(node, (ast.Continue, ast.Break, ast.Raise))
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        or (isinstance(node, ast.Assign) and not isinstance(node.targets[0], (ast.Name, ast.Tuple)))
    ):
        yield node, ast.Pass()


def _decides_nothing(node: ast.AST) -> bool:
    """Whether a node is only types, texts for people or names."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).rpartition(".")[2] in TELLING
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) in {"__all__", "TYPE_CHECKING"}
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or _decides_nothing(node.value)
    return isinstance(node, ast.JoinedStr)


def _changes(node: ast.AST) -> Iterator[Change]:
    """Each node below `node` that could be another, and that other."""
    if not _decides_nothing(node):
        for changed in (_changed_values, _changed_conditions, _changed_statements):
            yield from changed(node)
        for field, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if field not in UNSEEN and isinstance(child, ast.AST):
                    yield from _changes(child)


def faults_of(path: Path) -> list[Fault]:
    """Every fault that could be put into a file."""
    changes = _changes(ast.parse(path.read_bytes()))
    return [Fault(path, node, other) for node, other in changes if isinstance(node, (ast.expr, ast.stmt))]


def modules(package: Path, places: Iterable[str]) -> list[Path]:
    """Return the modules of a package that fit the patterns. Raises ValueError for one that none fits."""
    found = {place: set(package.glob(place)) for place in places}
    if holes := [place for place, files in found.items() if not files]:
        raise ValueError(f"no module fits {' '.join(holes)}: say where it is now")
    return sorted(set().union(*found.values()))


def drawn(paths: list[Path], number: int, seed: int) -> list[Fault]:
    """Draw faults, at most one for a line: each line that can have one is as likely as any other."""
    lines: dict[tuple[Path, int], list[Fault]] = {}
    for path in sorted(paths):
        for fault in faults_of(path):
            lines.setdefault((path, fault.lines[0]), []).append(fault)
    choose = random.Random(seed)  # noqa: S311 - drawn again by the same number
    return [choose.choice(lines[place]) for place in choose.sample(sorted(lines), min(number, len(lines)))]
