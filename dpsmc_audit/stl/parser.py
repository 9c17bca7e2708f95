"""Read a formula from text with an LALR parser. Errors say where the text is wrong and what was expected.

The operators, from the loosest to the tightest::

    implies  ->          groups to the right: a implies b implies c is a implies (b implies c)
    or  |  ||
    and  &  &&
    until[a,b]           groups to the right
    not  !  always[a,b]  eventually[a,b]
    < <= > >= == !=      between terms, one sign in a predicate
    + -                  group to the left
    * /                  group to the left
    - (in front)

So ``always[0,1] x > 0 and y > 0`` is ``(always[0,1] (x > 0)) and y > 0``. ``globally`` means always and ``finally``
means eventually. ``G[a,b]``, ``F[a,b]`` and ``U[a,b]`` are the three temporal operators, but only if an interval
follows the letter. Everywhere else F, G and U are names of signals.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from dpsmc_audit.errors import ParameterError, require
from dpsmc_audit.stl import syntax
from dpsmc_audit.stl.syntax import Node

if TYPE_CHECKING:
    from lark import Lark, Token
    from lark.exceptions import UnexpectedInput

__all__ = ["read"]

GRAMMAR = r"""
?formula: disjunction
    | disjunction _IMPLIES formula              -> implies
?disjunction: conjunction
    | conjunction (_OR conjunction)+            -> any_of
?conjunction: binary
    | binary (_AND binary)+                     -> all_of
?binary: unary
    | unary _UNTIL interval binary              -> until
?unary: atom
    | _NOT unary                                -> negation
    | _ALWAYS interval unary                    -> always
    | _EVENTUALLY interval unary                -> eventually
?atom: "(" formula ")"
    | TRUE                                      -> constant
    | FALSE                                     -> constant
    | sum RELATION sum                          -> predicate

interval:                                       -> whole
    | LBRACKET bound "," bound "]"              -> bounded
bound: MINUS? (NUMBER | INF)

?sum: product
    | sum (PLUS | MINUS) product                -> arithmetic
?product: factor
    | product (TIMES | OVER) factor             -> arithmetic
?factor: MINUS factor                           -> negative
    | NUMBER                                    -> number
    | NAME                                      -> signal
    | "(" sum ")"
    | ONE "(" sum ")"                           -> call
    | SEVERAL "(" sum ("," sum)+ ")"            -> call

_IMPLIES.2: /implies\b|->/
_OR.2: /or\b|\|\|?/
_AND.2: /and\b|&&?/
_NOT.2: /not\b|!(?!=)/
_UNTIL.2: /until\b|U(?=\s*\[)/
_ALWAYS.2: /(always|globally)\b|G(?=\s*\[)/
_EVENTUALLY.2: /(eventually|finally)\b|F(?=\s*\[)/
TRUE.2: /true\b/
FALSE.2: /false\b/
INF.2: /inf\b/
ONE.2: /(abs|sqrt)(?=\s*\()/
SEVERAL.2: /(min|max)(?=\s*\()/
RELATION: /[<>=!]=|<|>/
PLUS: "+"
MINUS: "-"
TIMES: "*"
OVER: "/"
LBRACKET: "["
NUMBER: /(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?/
NAME: /[^\W\d]\w*/
%ignore /\s+/
"""

_TERM = {"NAME", "NUMBER", "MINUS", "LPAR", "ONE", "SEVERAL"}
_HINTS = (
    ({"_NOT", "_ALWAYS", "_EVENTUALLY", "TRUE", "FALSE"} | _TERM, "a formula"),
    (_TERM, "a number, a signal or abs(), sqrt(), min(), max()"),
    ({"NUMBER", "INF"}, "a time in seconds"),
    ({"RELATION"}, "a comparison (< <= > >= == !=)"),
    ({"PLUS", "MINUS", "TIMES", "OVER"}, "arithmetic (+ - * /)"),
    ({"LBRACKET"}, "an interval [a,b]"),
    ({"_UNTIL", "_AND", "_OR", "_IMPLIES"}, "an operator (and or implies until)"),
    ({"COMMA"}, "','"),
    ({"LPAR"}, "'('"),
    ({"RPAR"}, "')'"),
    ({"RSQB"}, "']'"),
    ({"$END"}, "the end"),
)
"""Sets of symbols that are expected together, and their names. The larger sets come first."""


def read(text: str) -> Node:
    """Parse a formula.

    Parameters
    ----------
    text : str
        The formula.

    Returns
    -------
    Node
        Its syntax tree.

    Raises
    ------
    ParameterError
        If the text is not a formula. The message names line and column.
    """
    from lark.exceptions import UnexpectedInput

    require(isinstance(text, str), f"a formula must be text, got {text!r}")
    try:
        return cast(Node, _parser().parse(text))
    except UnexpectedInput as error:
        raise ParameterError(_explained(error, text)) from None


def _explained(error: UnexpectedInput, text: str) -> str:
    """Say where the text stops being a formula, what stands there, and what was expected."""
    end = len(text.rstrip())
    position = end if error.pos_in_stream is None else min(error.pos_in_stream, end)
    before = text[:position]
    token = getattr(error, "token", None)
    if position == end or (token is not None and token.type == "$END"):
        before, found = text[:end], "the formula ends too early"
    else:
        found = f"unexpected {(token or text[position])[:30]!r}"
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    return f"formula, line {line}, column {column}: {found}; expected {_expected(before)}"


def _expected(before: str) -> str:
    """List what may follow the beginning of a formula."""
    state = _parser().parse_interactive(before)
    state.exhaust_lexer()
    symbols, hints = set(state.accepts()), []  # type: ignore[no-untyped-call]
    for group, hint in _HINTS:
        if group <= symbols:
            hints.append(hint)
            symbols = symbols - group
    return " or ".join(hints)


@lru_cache(maxsize=1)
def _parser() -> Lark:
    from lark import Lark

    return Lark(GRAMMAR, start="formula", parser="lalr", lexer="basic", transformer=_builder())


def _builder() -> Any:
    """Make nodes while parsing. Without a parse tree, deep formulas need no recursion here."""
    from lark import Transformer, v_args

    @v_args(inline=True)
    class Builder(Transformer[Any, Node]):
        negation = syntax.Not
        always = syntax.Always
        eventually = syntax.Eventually
        until = syntax.Until
        implies = syntax.Implies

        def any_of(self, *operands: Node) -> Node:
            return syntax.Or(operands)

        def all_of(self, *operands: Node) -> Node:
            return syntax.And(operands)

        def constant(self, token: Token) -> Node:
            return syntax.Constant(token == "true")

        def predicate(self, left: Node, sign: Token, right: Node) -> Node:
            return syntax.Predicate(str(sign), left, right)

        def whole(self) -> syntax.Interval:
            return syntax.WHOLE

        def bounded(self, bracket: Token, begin: float, end: float) -> syntax.Interval:
            with _located(bracket):
                return syntax.Interval(begin, end)

        def bound(self, *tokens: Token) -> float:
            return float("".join(tokens))

        def arithmetic(self, left: Node, sign: Token, right: Node) -> Node:
            return syntax.Arithmetic(str(sign), left, right)

        def negative(self, _sign: Token, operand: Node) -> Node:
            return syntax.Negative(operand)

        def number(self, token: Token) -> Node:
            with _located(token):
                return syntax.Number(float(token))

        def signal(self, token: Token) -> Node:
            return syntax.Signal(str(token))

        def call(self, function: Token, *arguments: Node) -> Node:
            return syntax.Call(str(function), arguments)

    return Builder()


@contextmanager
def _located(token: Token) -> Iterator[None]:
    """Add the position of a token to the errors of its value."""
    try:
        yield
    except ParameterError as error:
        raise ParameterError(f"formula, line {token.line}, column {token.column}: {error}") from None
