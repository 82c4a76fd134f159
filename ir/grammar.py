"""Grammar of the text format (lark, LALR with the contextual lexer).

Tokens are coarse - a list of values, a list of types, a whole ``{...}`` of attributes - because lark spends its time per
token; `tpc.ir.atoms` reads what is inside. A comment may stand between tokens, so not inside such a list.
"""

from __future__ import annotations

from tpc.ir.names import SCOPE, STRING

_AT = f"@(?:{SCOPE}|{STRING})"
_TYPE = r'\w+\s*\[[^\]\n"{}%]*\]'
_VALUE = r"%[\w.]+"


def _several(item: str) -> str:
    return rf"{item}(?:\s*,\s*{item})*"


_RULES = """
start: version? program*
version: "tpc" VERSION
program: head op* "return" [VALUES] "}"
head: "program" NAME "(" [inputs] ")" _ARROW "(" [outputs] ")" "{"
inputs: input ("," input)*
input: VALUE ":" TYPE
outputs: output ("," output)*
output: TYPE ["into" VALUE]
op: VALUES "=" OPERATOR [VALUES] [ATTRS] ":" TYPES [SCOPES] [LOC] body*
body: body_head op* "return" [VALUES] "}"
body_head: BODY [NAME] "(" [inputs] ")" "{"
BODY: "body"
_ARROW: "->"
%ignore WS
%ignore COMMENT
"""

_TOKENS = {
    "VERSION": "[0-9]{1,9}",
    "NAME": _AT,
    "VALUE": _VALUE,
    "VALUES": _several(_VALUE),
    "OPERATOR": r"[A-Za-z_]\w*",
    "TYPE": _TYPE,
    "TYPES": _several(_TYPE),
    "ATTRS": rf'\{{[^{{}}"]*(?:{STRING}[^{{}}"]*)*\}}',
    "SCOPES": _several(_AT),
    "LOC": rf"loc\({STRING}:-?[0-9]+(?: in {STRING})?\)",
    "COMMENT": r"//[^\n]*",
    "WS": r"\s+",
}

GRAMMAR = _RULES + "\n".join([name + ": /" + pattern.replace("/", "\\/") + "/" for name, pattern in _TOKENS.items()])

WORDS = {
    "VERSION": "a version number",
    "NAME": "a name (@name)",
    "VALUE": "a value (%name)",
    "VALUES": "a value (%name)",
    "OPERATOR": "an operator",
    "TYPE": "a type (f32[2,3])",
    "TYPES": "a type (f32[2,3])",
    "ATTRS": "attributes ({name=value})",
    "SCOPES": "a scope (@name)",
    "LOC": 'a location (loc("file":1))',
    "LPAR": "'('",
    "RPAR": "')'",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "COLON": "':'",
    "COMMA": "','",
    "EQUAL": "'='",
    "_ARROW": "'->'",
    "PROGRAM": "'program'",
    "RETURN": "'return'",
    "INTO": "'into'",
    "BODY": "'body'",
    "TPC": "'tpc'",
    "$END": "the end of the text",
}
"""What people call a token, for error messages."""
