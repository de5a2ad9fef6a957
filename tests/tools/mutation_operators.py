"""The mutants of a package, by the operators of Cosmic Ray, in whose environment this runs.

    python mutation_operators.py FOLDER

prints them as a JSON array of objects with `module` and `source`.
"""

import ast
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from cosmic_ray import plugins  # type: ignore[import-not-found]
from cosmic_ray.ast import ast_nodes, get_ast  # type: ignore[import-not-found]
from cosmic_ray.mutating import mutate_code  # type: ignore[import-not-found]


class _Behaviour(ast.NodeTransformer):
    """Takes out of a syntax tree what does nothing: docstrings and annotations."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)


def behaviour(source: str) -> str | None:
    """What two programs have in common that do the same, line by line; None: it is no program."""
    try:
        compile(source, "mutant", "exec")
    except SyntaxError:
        return None
    return ast.dump(_Behaviour().visit(ast.parse(source)))


def mutations(source: str) -> Iterator[str]:
    """Every change that an operator can make. Those that need arguments choose at random."""
    nodes = list(ast_nodes(get_ast(source)))
    for name in plugins.operator_names():
        operator = plugins.get_operator(name)
        if not operator.arguments():
            places = sum(1 for node in nodes for _ in operator().mutation_positions(node))
            for place in range(places):
                yield mutate_code(source, operator(), place)


def mutants(source: str) -> Iterator[str]:
    """Those of the changes that give another program, each once."""
    seen = {None, behaviour(source)}
    for mutated in mutations(source):
        if (does := behaviour(mutated)) not in seen:
            seen.add(does)
            yield mutated


def main() -> None:
    """Print the mutants of every module in a folder."""
    warnings.simplefilter("ignore", SyntaxWarning)  # a mutant may compare literals by `is`
    found = [
        {"module": path.stem, "source": mutant}
        for path in sorted(Path(sys.argv[1]).glob("*.py"))
        for mutant in mutants(path.read_text(encoding="utf-8"))
    ]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
