"""Plain English: words that the style of this project does not use, and the form of commit subjects.

`make lint` runs it. It reads docstrings, comments, messages, names of tests, pages and templates, without code in
backticks.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.repository import git, text_files, without_code

CHECKED = (
    "src/",
    "tests/",
    "benchmarks/",
    "docs/",
    "README.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "CODE_OF_CONDUCT.md",
    ".github/",
)
EXAMPLES = {"tests/test_english.py"}  # has the words
BASE = "fddf844"  # the rules for commit subjects apply to its descendants
LONGEST_SUBJECT = 72

WORDS = {
    r"anew": "again",
    r"whoever|those who": "name the actor: the caller, clients, the owner",
    r"of which": "two sentences",
    r"what is not": "name the thing",
    r"(?:is|are|was|were|be|been) told|tells?(?! \w+ apart)": "return, report or show",
    r"blanks": "spaces",
    r"for ever": "forever",
    r"mend(?:s|ed|ing)?": "fix",
    r"bears?": "handle",
    r"beside": "next to",
    r"takes? (?:a|an|any|no|every)(?! (?:lock|snapshot|while|moment|second|minute|number))": "accept",
    r"stands?": "is",
    r"lies?": "is stored",
    r"(?:is|are|stays?|still|no longer|not) good": "is valid",
    r"alone(?=[.;:,)])": "only",
    r"(?-i:[Bb]eg(?:in|ins|an|un))": "start",  # BEGIN is SQL
    r"members?": "field",
    r"nobody": "the passive",
    r"surely": "certainly, or nothing",
}
LISTED = [
    (re.compile(rf"(?<![\w.])(?:{pattern})(?![\w`-])", re.IGNORECASE), better) for pattern, better in WORDS.items()
]
ANY = re.compile("|".join(pattern.pattern for pattern, _ in LISTED), re.IGNORECASE)  # a search instead of 15
IN_BACKTICKS = re.compile(r"``[^`]*``|`[^`\n]*`")
ROWS = r"(?:[AD]\d+\w?_(?:to_)?)*"  # before the words of a test's name
CLAUSE = re.compile(rf"{ROWS}(?:what|who|whoever|nor)_")  # as the subject of a test's name
FEWEST_WORDS = 3
SHORTER = re.compile(rf"{ROWS}[^\W_]+(?:_[^\W_]+){{0,{FEWEST_WORDS - 2}}}")
NAMED = re.compile(r"^ *(?:async )?def test_(\w+)", re.MULTILINE)
QUESTION = re.compile(r"(?:what|whether|which|how|who|where|when)\b", re.IGNORECASE)  # as the first word of a docstring
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
SUBJECT = re.compile(r"[a-z][\w /,.-]*: (?!(?:let|say|tell|hold|try|keep|show)s?\b)\S", re.IGNORECASE)

Line = tuple[int, str]


def of_python(source: str) -> Iterator[Line]:
    """The lines of comments, docstrings, messages and names of tests in a module that may have such a word."""
    if any(ANY.search(line, line.index("#")) for line in source.split("\n") if "#" in line):  # to tokenize is slow
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.lineno, node.name.removeprefix("test_").replace("_", " ")
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            for offset, line in enumerate(node.value.split("\n")):
                yield node.lineno + offset, line


def of_page(text: str) -> Iterator[Line]:
    """The lines of a page or template, without fenced code."""
    return enumerate(without_code(text).split("\n"), 1)


def problems(lines: Iterator[Line]) -> list[str]:
    """The words in these lines that have a plainer one."""
    return [
        f"{number}: {found[0]!r} -> {better}"
        for number, line in lines
        if ANY.search(line)
        for pattern, better in LISTED
        for found in pattern.finditer(IN_BACKTICKS.sub("``", line))
    ]


def clauses(source: str) -> list[str]:
    """The names of tests whose subject is a clause."""
    return [f"test_{name}" for name in NAMED.findall(source) if CLAUSE.match(name)]


def fragments(source: str) -> list[str]:
    """The names of tests with fewer words than a sentence has."""
    return [f"test_{name}" for name in NAMED.findall(source) if SHORTER.fullmatch(name)]


def headings(source: str) -> list[str]:
    """The classes that share no mark, fixture, helper or attribute between their tests."""
    nodes = ast.parse(source).body if "\nclass Test" in source else []
    classes = [node for node in nodes if isinstance(node, ast.ClassDef) and node.name.startswith("Test")]
    return [node.name for node in classes if not (node.decorator_list or node.bases) and all(map(is_test, node.body))]


def is_test(node: ast.stmt) -> bool:
    """Return whether a statement of a class is a test, or its docstring."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name.startswith("test_")
    return isinstance(node, ast.Expr)


def questions(source: str) -> list[str]:
    """The first lines of docstrings that start like a question."""
    documented = [node for node in ast.walk(ast.parse(source)) if isinstance(node, DOCUMENTED)]
    lines = [(ast.get_docstring(node) or "").partition("\n")[0] for node in documented]
    return [line for line in lines if QUESTION.match(line)]


def checked() -> dict[str, str]:
    """The files whose English is checked."""
    return {
        name: text
        for name, text in text_files().items()
        if name.startswith(CHECKED) and Path(name).suffix in {".py", ".md", ".html"} and name not in EXAMPLES
    }


def test_the_words_are_found_where_people_read_them() -> None:
    found = problems(of_python('x = 1  # made anew\n"""A text.\n\nIt is told."""\nlet("beside"); say("lies here")\n'))
    assert [each.split(" ->")[0] for each in found] == ["1: 'anew'", "4: 'is told'", "5: 'lies'"]
    assert problems(of_page("`beside` and\n```sh\nanew\n```\ntake a lock, takes a token")) == ["5: 'takes a' -> accept"]


def test_the_english_is_plain() -> None:
    """One test, because one for each of a thousand files takes as long as the search."""
    found = [
        f"{name}:{problem}"
        for name, text in checked().items()
        for problem in problems(of_python(text) if name.endswith(".py") else of_page(text))
    ]
    assert found == []


def test_a_name_with_a_clause_is_found() -> None:
    names = ["A007_what_is_no_object", "who_may_ask", "what", "the_check_sees_what_is_not_allowed"]
    assert clauses("".join(f"def test_{name}(): ...\n" for name in names)) == [f"test_{name}" for name in names[:2]]


def test_the_name_of_a_test_starts_with_its_subject() -> None:
    found = [(name, each) for name, text in checked().items() if name.startswith("tests/") for each in clauses(text)]
    assert found == [], "do not start with a clause: what, who"


def test_a_name_that_is_no_sentence_is_found() -> None:
    names = ["type", "A090_A102_sizes", "D30_two_sites", "A058_to_A081_a_token_is_rejected", "a_key_is_listed"]
    assert fragments("".join(f"def test_{name}(): ...\n" for name in names)) == [f"test_{name}" for name in names[:3]]


def test_a_class_that_only_groups_by_name_is_found() -> None:
    test = "def test_a(self): ..."
    assert headings(f'"""A."""\nclass TestA:\n    """A class."""\n    {test}\n') == ["TestA"]
    for shared in ("def helper(self): ...", "limit = 1", "@pytest.fixture\n    def settings(self): ..."):
        assert headings(f'"""A."""\nclass TestA:\n    {shared}\n    {test}\n') == []
    assert headings(f'"""A."""\n@slow\nclass TestA:\n    {test}\n') == []


def test_the_name_of_a_test_is_a_sentence_without_its_class() -> None:
    modules = {name: text for name, text in checked().items() if Path(name).name.startswith("test_")}
    found = [(name, each) for name, text in modules.items() for each in [*fragments(text), *headings(text)]]
    assert found == [], f"write a sentence of at least {FEWEST_WORDS} words; a class needs a mark, fixture or helper"


def test_a_docstring_that_starts_like_a_question_is_found() -> None:
    source = '"""What it is."""\nclass A:\n    """A class."""\n    def f(self): "Whether it is so."\n'
    assert questions(source) == ["What it is.", "Whether it is so."]


def test_a_docstring_starts_with_a_noun_or_a_verb() -> None:
    modules = {name: text for name, text in checked().items() if name.startswith("src/") and name.endswith(".py")}
    found = [(name, each) for name, text in modules.items() for each in questions(text)]
    assert found == [], 'write a noun phrase, or "Return whether"'


@pytest.mark.parametrize(
    ("subject", "is_plain"),
    [
        ("storage: time out a batch before its callers do", True),
        ("cli, docs: add a command", True),
        ("storage: let a batch wait", False),
        ("Storage is better", False),
    ],
)
def test_a_subject_has_an_area_and_a_verb(subject: str, is_plain: bool) -> None:
    assert bool(SUBJECT.match(subject)) is is_plain


def test_commit_subjects_are_plain() -> None:
    if not git("rev-parse", "--verify", "--quiet", f"{BASE}^{{commit}}"):
        pytest.skip("the history is not here")
    subjects = git("log", "--no-merges", "--format=%s", f"{BASE}..HEAD").splitlines()
    found = [each for each in subjects if len(each) > LONGEST_SUBJECT or not SUBJECT.match(each)]
    assert found == [], "write `area: verb object`, and not with let, say, tell, hold, try, keep or show"
