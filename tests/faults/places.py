"""Finds the places of a source file where a fault can be planted, by its syntax tree (libclang)."""

import dataclasses
import re
import shlex
import sys

try:
    import clang.cindex as clang
except ImportError:  # another Python than Debian's own
    sys.path.append("/usr/lib/python3/dist-packages")
    try:
        import clang.cindex as clang
    except ImportError:
        clang = None


class Problem(Exception):
    """Something the caller has to put right."""


class Unparsed(Problem):
    """A file that libclang does not understand by itself."""


@dataclasses.dataclass(frozen=True)
class Fault:
    """One change of one file. Offsets count bytes of the file as it is; start == end inserts."""

    file: str
    start: int
    end: int
    line: int
    what: str  # the name of the operator
    form: str  # how the switch is put around it: negation, value, shift, statement, entry
    text: str  # the source between start and end
    change: str  # the text with the fault; for a shift: +1 or -1

    def plain(self):
        """The text that a reader sees in the place."""
        if self.form == "shift":
            number = re.fullmatch(r"[0-9]+", self.text)
            return str(int(number[0]) + int(self.change)) if number else f"({self.text} {self.change[0]} 1)"
        if self.form == "statement":
            return ";"
        return f" {self.change}" if self.form == "entry" else self.change


SWAPS = {"<": ["<="], "<=": ["<"], ">": [">="], ">=": [">"], "==": ["!="], "!=": ["=="], "&&": ["||"], "||": ["&&"],
         "+": ["-"], "-": ["+"], "+=": ["-="], "-=": ["+="]}
NAMES = {"<": "compare", "=": "compare", ">": "compare", "!": "compare", "&": "logic", "|": "logic", "+": "arithmetic",
         "-": "arithmetic"}
# Log lines, and expressions without effect.
NO_STATEMENT = re.compile(rb"(spdlog::|static_cast<void>|\(void\)|(\w+(\.|->|::))*log\w*\(|(\w+(\.|->))?may_log)")
COMMENT_OR_TEXT = re.compile(
    rb'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
INTEGRAL = re.compile(r"^(const )?(unsigned |signed )?(char|short|int|long|long long|unsigned)( int)?$")
NUMBER = re.compile(rb"^(0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9][0-9']*)[uUlL]*$")


def blank(source):
    """The source with comments and literals blanked out, each byte where it was."""
    def spaces(match):
        if match[0].startswith(b"'") and re.search(rb"[0-9a-fA-F]$", source[:match.start()][-1:]):
            return match[0]  # 1'000'000
        return re.sub(rb"[^\n]", b" ", match[0])
    return COMMENT_OR_TEXT.sub(spaces, source)


def template_arguments(code):
    """Ranges between < and > of template arguments: the formatter puts no space before those, and one before "less"."""
    ranges = []
    for match in re.finditer(rb"\w<(?![<=])", code):
        depth, at = 0, match.end() - 1
        while at < len(code):
            char = code[at:at + 1]
            depth += (char in b"<(") - (char in b">)")
            if char in b";{" or depth == 0:
                break
            at += 1
        if code[at:at + 1] == b">":
            ranges.append((match.end() - 1, at + 1))
    return ranges


def macro_uses(code):
    """Ranges of macro arguments, asserts among them: a switch in there would not be where it seems."""
    ranges = []
    for match in re.finditer(rb"\b(assert|static_assert|noexcept|sizeof|alignof|decltype|[A-Z][A-Z0-9_]{2,})\(", code):
        depth, at = 0, match.end() - 1
        while at < len(code):
            depth += (code[at:at + 1] == b"(") - (code[at:at + 1] == b")")
            at += 1
            if depth == 0:
                break
        ranges.append((match.start(), at))
    return ranges


class Finder:
    """Walks the tree of one file and collects faults."""

    def __init__(self, name, source):
        self.name = name
        self.source = source
        self.code = blank(source)
        self.closed = template_arguments(self.code) + macro_uses(self.code)
        self.found = []
        self.member = False  # within the initializer of a member
        K = clang.CursorKind
        self.skipped = {K.STATIC_ASSERT, K.ENUM_DECL, K.TYPE_REF, K.TEMPLATE_REF, K.NAMESPACE_REF, K.TYPEDEF_DECL,
                        K.TYPE_ALIAS_DECL, K.CXX_UNARY_EXPR, K.TEMPLATE_NON_TYPE_PARAMETER,
                        K.USING_DECLARATION}

    # The places of nodes.
    def span(self, node):
        return node.extent.start.offset, node.extent.end.offset

    def is_here(self, node):
        place = node.extent.start.file
        return place is not None and place.name == self.file

    def text(self, start, end):
        return self.source[start:end].decode("utf-8")

    def add(self, what, form, start, end, change):
        if any(a <= start < b and (end <= b or start == a) for a, b in self.closed):
            return
        # A fault is one line for the reader and copied within the file: not with text over lines, or code of its own.
        if form == "value" and (b'R"' in self.source[start:end] or re.search(rb"\bco_await\b|\]\s*[({]|[{;]",
                                                                             self.code[start:end])):
            return
        line = self.source.count(b"\n", 0, start) + 1
        self.found.append(Fault(self.name, start, end, line, what, form, self.text(start, end), change))

    def faults(self, unit, file):
        self.file = file
        for node in unit.cursor.get_children():
            if self.is_here(node):
                self.walk(node, None, False)
        return sorted(set(self.found), key=lambda f: (f.start, f.end, f.what, f.change))

    def walk(self, node, parent, within):
        """within: inside a function's body, or an initializer that runs."""
        K = clang.CursorKind
        if node.kind in self.skipped:
            return
        children = list(node.get_children())
        if node.kind in (K.VAR_DECL, K.FIELD_DECL, K.PARM_DECL):
            children, within = self.initializers(node, children, within)
        elif node.kind == K.CASE_STMT:
            children = children[1:]
        elif node.kind in (K.FUNCTION_DECL, K.CXX_METHOD, K.DESTRUCTOR, K.CONSTRUCTOR, K.FUNCTION_TEMPLATE,
                           K.CONVERSION_FUNCTION):
            if b"consteval" in self.code[node.extent.start.offset:node.location.offset]:
                return  # no program runs it
            self.on_function(node, children)
            within = True
        elif within:
            children = self.on_code(node, parent, children)
        outer, self.member = self.member, self.member or node.kind == K.FIELD_DECL
        for child in children:
            self.walk(child, node, within)
        self.member = outer

    def initializers(self, node, children, within):
        K = clang.CursorKind
        head = self.code[node.extent.start.offset:node.location.offset]
        if b"constexpr" in head or b"constinit" in head or "[" in node.type.spelling:
            return [], within
        if node.kind == K.VAR_DECL and not within:  # made before main
            return [], within
        after = [child for child in children if child.extent.start.offset > node.location.offset]
        return after, within or node.kind == K.FIELD_DECL

    def on_function(self, node, children):
        K = clang.CursorKind
        if not children or children[-1].kind != K.COMPOUND_STMT or node.kind == K.CONSTRUCTOR:
            return
        start, end = self.span(children[-1])
        body = self.code[start + 1:end - 1].strip()
        if not body or re.fullmatch(rb"return[^;{]*;", body):
            return
        result = node.result_type.spelling
        if "&" in result or "auto" in result or node.spelling == "main":
            return
        word = "co_return" if re.search(rb"\bco_(await|return)\b", body) else "return"
        value = "" if result == "void" or node.kind == K.DESTRUCTOR or "awaitable<void>" in result else " {}"
        self.add("early return", "entry", start + 1, start + 1, f"{word}{value};")

    # One node of code: adds its faults, gives the children to go on with.
    def on_code(self, node, parent, children):
        K = clang.CursorKind
        if node.kind == K.IF_STMT:
            return self.on_if(node, children)
        if node.kind == K.CONDITIONAL_OPERATOR and children:
            self.negate(children[0])
        elif node.kind in (K.BINARY_OPERATOR, K.COMPOUND_ASSIGNMENT_OPERATOR) and len(children) == 2:
            self.swap(node, *children)
        elif node.kind == K.CALL_EXPR and node.spelling.startswith("operator"):
            arguments = list(node.get_arguments())
            if len(arguments) == 2:
                self.swap(node, *arguments)
        elif node.kind == K.INTEGER_LITERAL:
            self.constant(node)
        elif node.kind == K.CXX_BOOL_LITERAL_EXPR:
            start, end = self.span(node)
            if self.source[start:end] in (b"true", b"false"):
                self.add("swap a bool", "value", start, end, "false" if self.source[start:end] == b"true" else "true")
        elif node.kind == K.DECL_REF_EXPR:
            self.named_constant(node)
            return []
        self.statement(node, parent)
        return children

    def on_if(self, node, children):
        start, _ = self.span(node)
        head = re.compile(rb"if\s*(constexpr\s*)?\(").match(self.code, start)
        if not head:
            return []
        depth, at = 1, head.end()
        while depth and at < len(self.code):
            depth += (self.code[at:at + 1] == b"(") - (self.code[at:at + 1] == b")")
            at += 1
        conditions = [c for c in children if c.extent.end.offset <= at - 1]
        branches = [c for c in children if c.extent.start.offset >= at]
        if head[1]:
            return branches
        # Not a name that the condition itself declares.
        if conditions and self.code[:conditions[-1].extent.start.offset].rstrip()[-1:] in b"(;":
            self.negate(conditions[-1])
        return conditions + branches

    def negate(self, node):
        start, end = self.span(node)
        if end > start:
            text = " ".join(self.text(start, end).split())
            simple = re.fullmatch(r"[\w.:>()-]*", text)
            change = text[1:] if re.fullmatch(r"![\w.:>()-]*", text) else f"!{text}" if simple else f"!({text})"
            self.add("negate", "negation", start, end, change)

    def swap(self, node, left, right):
        start, end = self.span(node)
        a, b = left.extent.end.offset, right.extent.start.offset
        if not start < a < b < end or right.extent.end.offset != end or left.extent.start.offset != start:
            return
        sign = self.code[a:b].strip().decode("utf-8", "replace")
        if sign[:1] in "+-" and not INTEGRAL.match(left.type.get_canonical().spelling):
            return
        for other in SWAPS.get(sign, []):
            change = f"{self.text(start, a)} {other} {self.text(b, end)}"
            self.add(NAMES[sign[0]], "value", start, end, " ".join(change.split()))

    def constant(self, node):
        start, end = self.span(node)
        if self.source[start:end] == b"0" and self.member:
            return  # the zero that a member begins with: mostly overwritten before anybody reads it
        if NUMBER.match(self.source[start:end]):
            for sign in ["+1", "-1"]:
                self.add("constant", "shift", start, end, sign)

    def named_constant(self, node):
        K = clang.CursorKind
        start, end = self.span(node)
        to = node.referenced
        if (to is not None and to.kind == K.VAR_DECL and re.match(r"k[A-Z]", to.spelling)
                and INTEGRAL.match(to.type.get_canonical().spelling)
                and re.fullmatch(rb"[\w:]+", self.source[start:end])):
            for sign in ["+1", "-1"]:
                self.add("constant", "shift", start, end, sign)

    def statement(self, node, parent):
        K = clang.CursorKind
        holders = (K.COMPOUND_STMT, K.IF_STMT, K.FOR_STMT, K.WHILE_STMT, K.CXX_FOR_RANGE_STMT, K.CASE_STMT,
                   K.DEFAULT_STMT)
        if parent is None or parent.kind not in holders:
            return
        start, end = self.span(node)
        tail = re.compile(rb"\s*;").match(self.code, end)
        if not tail or self.code[:start].rstrip()[-1:] not in b"{};):" and not self.code[:start].rstrip().endswith(
                b"else"):
            return
        if parent.kind in (K.FOR_STMT, K.WHILE_STMT, K.CXX_FOR_RANGE_STMT) and not (
                end <= parent.extent.end.offset <= tail.end()):
            return  # in the loop's head
        if node.kind in (K.BREAK_STMT, K.CONTINUE_STMT):
            self.add("skip a jump", "statement", start, tail.end(), "")
        elif node.kind == K.RETURN_STMT:
            if parent.kind == K.IF_STMT or self.ends_a_guard(parent, node):
                self.add("skip a jump", "statement", start, tail.end(), "")
        elif node.kind.is_expression() and not NO_STATEMENT.match(self.code, start):
            self.add("drop a statement", "statement", start, tail.end(), "")

    def ends_a_guard(self, block, node):
        """The last statement of a block that an if governs."""
        start, end = self.span(block)
        before = self.code[:start].rstrip()
        inside = self.code[node.extent.end.offset + 1:end - 1].strip(b" \n;")
        return before.endswith(b")") and not inside and self.code[end:].lstrip()[:4] != b"else" and (
            re.search(rb"\bif\s*\([^;{}]*\)$", before[-400:]) is not None)


def compiler_options(command):
    """The parts of a compile command that matter for the tree."""
    words, options = shlex.split(command), []
    for at, word in enumerate(words):
        if word in ("-isystem", "-I", "-D", "-include"):
            options += words[at:at + 2]
        elif word.startswith(("-I", "-D", "-std=", "-isystem")):
            options.append(word)
    return options


def find(path, name, options):
    """The faults that file path, called name, has room for. Raises Unparsed where it does not parse."""
    if clang is None:
        raise Problem("needs libclang for Python: apt-get install python3-clang-16 (or the version of your clang)")
    source = path.read_bytes()
    unit = clang.Index.create().parse(str(path), [*options, "-xc++"])
    errors = [str(d) for d in unit.diagnostics if d.severity >= clang.Diagnostic.Error]
    if errors:
        raise Unparsed(f"{name}, which does not parse: {errors[0]}")
    return Finder(name, source).faults(unit, str(path))
