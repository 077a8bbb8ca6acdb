"""Style sheets without the rules that no page of the site can use."""

import posixpath
import re

TOKENS = re.compile(r"""url\([^)"']*\)|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[{};]|[^"'{};u]+|u""")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
NAME = re.compile(r"[.#](-?[_a-zA-Z](?:[\w-]|\\.)*)")
ADDRESS = re.compile(r"""url\(\s*(["']?)(?!data:|#|[a-z]+:)([^)"']+)\1\s*\)""")
IMPORT = re.compile(r"""@import\s+(?:url\()?["']?([^"')]+)["']?\)?\s*;""")
GROUPS = ("@media", "@supports", "@layer", "@container")
# site.js, and the theme's script, make these when they are wanted; no page has them before.
MADE_LATER = re.compile(r"^(?:show|dropdown[\w-]*)$")


def whole(path, top):
    """The text of a style sheet with what it imports, and with addresses that hold from the folder ``top``."""
    text = COMMENT.sub("", path.read_text(encoding="utf-8"))
    first = [whole((path.parent / name.split("?")[0]).resolve(), top) for name in IMPORT.findall(text)]
    folder = posixpath.relpath(str(path.parent), str(top))

    def moved(match):
        return f'url("{posixpath.normpath(posixpath.join(folder, match[2]))}")'

    own = IMPORT.sub("", text)
    return "\n".join([*first, own if folder == "." else ADDRESS.sub(moved, own)])


def prune(css, names):
    """A style sheet without rules for classes and ids that are not among ``names``, and without icon fonts.

    What stands in ``:is()``, ``:not()``, ``:where()`` and ``:has()`` is not judged, so such a rule stays.
    """
    return _rules(iter(TOKENS.findall(css)), names)


def _rules(tokens, names):
    kept, prelude = [], ""
    for token in tokens:
        if token == "}":
            break
        if token == ";":
            kept.append(f"{prelude.strip()};")
        elif token != "{":
            prelude += token
            continue
        elif prelude.strip().startswith(GROUPS):
            inner = _rules(tokens, names)
            kept.append(f"{prelude.strip()}{{{inner}}}" if inner.strip() else "")
        else:
            kept.append(_rule(prelude.strip(), _block(tokens), names))
        prelude = ""
    return "\n".join(filter(None, kept))


def _block(tokens):
    depth, block = 1, []
    for token in tokens:
        depth += {"{": 1, "}": -1}.get(token, 0)
        if not depth:
            break
        block.append(token)
    return "".join(block)


def _rule(prelude, block, names):
    if prelude.startswith("@"):
        return "" if prelude == "@font-face" and "Awesome" in block else f"{prelude}{{{block}}}"
    used = [selector for selector in _selectors(prelude) if _usable(selector, names)]
    return f"{','.join(used)}{{{block}}}" if used else ""


def _selectors(prelude):
    """The selectors of a rule: commas within brackets part nothing."""
    depth, start, found = 0, 0, []
    for place, letter in enumerate(prelude):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(letter, 0)
        if letter == "," and not depth:
            found.append(prelude[start:place])
            start = place + 1
    return [*found, prelude[start:]]


def _usable(selector, names):
    plain = re.sub(r"\[[^\]]*\]", "", selector)
    while (inner := re.sub(r"\([^()]*\)", "", plain)) != plain:
        plain = inner
    needed = (name.replace("\\", "") for name in NAME.findall(plain))
    return all(name in names or MADE_LATER.match(name) for name in needed)
