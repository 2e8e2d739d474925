"""No two types have one qualified name: the linker would take either for the other, silently."""

import functools
import re
import unittest
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Comments, literals and preprocessor lines are no code of ours.
NOISE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\''
    r"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
    re.S | re.M,
)
NAMESPACE = re.compile(r"(?:inline\s+)?\bnamespace\b\s*([\w:]*)\s*$")
TYPE = re.compile(
    r"\b(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+(?:alignas\([^)]*\)\s*)?"
    r"(?:\[\[[^\]]*\]\]\s*)?([\w:]+)\s*(?:final\s*)?(?::(?!:)[^;{}=]*)?$"
)


def types_of(text: str) -> list[str]:
    """Qualified names of the types that a file defines, but for those of unnamed namespaces and of
    functions, which no other file sees."""
    code = NOISE.sub(" ", text)
    found = []
    scopes: list[str | None] = []  # None: nothing in it has a name outside
    begin = 0
    for place in re.finditer(r"[{};]", code):
        head = code[begin : place.start()].strip()
        begin = place.end()
        if place.group() == "}":
            scopes.pop()
        if place.group() != "{":
            continue
        namespace = NAMESPACE.search(head)
        # What templates and attributes stand before does not matter; an initializer does.
        kind = TYPE.search(re.sub(r"template\s*<[^{}]*?>\s*(?=class|struct|union)", "", head))
        if namespace:
            scopes.append(namespace.group(1) or None)
        elif kind and not head.endswith(")"):
            if None not in scopes:
                found.append("::".join([*scopes, kind.group(1)]))
            scopes.append(kind.group(1))
        else:
            scopes.append(None)
    return found


@functools.cache
def types_in(path: Path) -> tuple[str, ...]:
    return tuple(types_of(path.read_text()))


def files_of(*folders: str) -> list[Path]:
    return sorted(
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".h", ".cpp")
    )


def defined_twice(files: list[Path]) -> dict[str, set[str]]:
    places = defaultdict(set)
    for path in files:
        for name in types_in(path):
            places[name].add(str(path.relative_to(ROOT)))
    return {name: where for name, where in places.items() if len(where) > 1}


class Names(unittest.TestCase):
    def test_parser_knows_what_is_a_definition(self):
        text = """
          namespace riffle { struct A; class B : public C<int> { enum class D { x }; };
          namespace { struct Hidden {}; }
          template <typename T> struct E { T t = {}; };
          struct F *f(struct A* a) { struct Local {}; return nullptr; }  // struct G {};
          auto h = "struct I {"; }
          namespace riffle::inner { class alignas(64) J final : K { }; A l = A{}; }
        """
        self.assertEqual(
            types_of(text),
            ["riffle::B", "riffle::B::D", "riffle::E", "riffle::inner::J"],
        )

    def test_no_type_of_the_library_and_its_programs_is_defined_twice(self):
        files = files_of("include", "src", "cli", "python/src")
        self.assertGreater(sum(len(types_in(path)) for path in files), 300)
        self.assertEqual(defined_twice(files), {})

    def test_no_test_defines_a_type_of_the_library(self):
        library = files_of("include", "src")
        for folder in sorted(path for path in (ROOT / "tests").iterdir() if path.is_dir()):
            with self.subTest(folder.name):
                own = files_of(f"tests/{folder.name}")
                self.assertEqual(defined_twice(library + own), {})


if __name__ == "__main__":
    unittest.main()
