"""Every class, method and property is documented, and every example in the documentation runs."""

import ast
import doctest
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import koel
import numpy as np
import pytest

PAGE = Path(__file__).parents[3] / "docs" / "PYTHON.md"
CLUSTER = PAGE.with_name("CLUSTER.md")
README = Path(__file__).parents[1] / "README.md"
FIRST_PAGE = PAGE.parents[1] / "README.md"


def documented() -> Iterator[tuple[str, str | None]]:
    """Name and documentation of all that is public."""
    yield "koel", koel.__doc__
    for name in koel.__all__:
        thing = getattr(koel, name)
        if not inspect.isclass(thing) and not inspect.isroutine(thing):
            continue
        yield f"koel.{name}", thing.__doc__
        if not inspect.isclass(thing):
            continue
        for attribute, value in vars(thing).items():
            if not attribute.startswith("_"):
                yield f"koel.{name}.{attribute}", inspect.getdoc(value)


def run(name: str, text: str) -> int:
    test = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
    assert result.failed == 0, name
    return result.attempted


@pytest.mark.parametrize(("name", "text"), list(documented()))
def test_examples_of_the_documentation(name: str, text: str | None) -> None:
    assert text, f"{name} has no documentation"
    examples = run(name, text)
    is_plain = name.startswith(("koel.Full", "koel.ArrowArray", "koel.Comparison.", "koel.Estimate."))
    assert examples or is_plain, f"{name} has no example"


@pytest.mark.parametrize("page", [PAGE, CLUSTER, README, FIRST_PAGE], ids=lambda page: page.name)
def test_examples_of_the_pages(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(page.name, page.read_text()) > 3


def test_stubs_have_every_name() -> None:
    """The stubs and the compiled part name the same classes and methods."""
    stubs = Path(koel.__file__).with_name("_koel.pyi").read_text()
    compiled: ModuleType = koel._koel  # pyright: ignore
    for name in koel.__all__:
        thing = getattr(koel, name)
        if inspect.isclass(thing) and thing.__module__ == "koel" and name != "Full":
            assert f"class {name}" in stubs and getattr(compiled, name) is thing
            for attribute in vars(thing):
                if not attribute.startswith("_"):
                    assert f"def {attribute}(" in stubs, f"{name}.{attribute}"


def first_words(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())


def test_stubs_have_the_first_words_of_the_documentation() -> None:
    """Editors show them before anything is imported."""
    stubs = ast.parse(Path(koel.__file__).with_name("_koel.pyi").read_text())
    faces = [koel.CuckooFilter, koel.CountingFilter, koel.Maplet, koel.ExpiringFilter]
    compared = 0
    for stub in stubs.body:
        if not isinstance(stub, ast.ClassDef) or stub.name.startswith(("_Arrow", "_Reader")):
            continue
        classes = [getattr(koel, stub.name)] if hasattr(koel, stub.name) else faces
        if stub.name != "Full" and classes is not faces:
            assert first_words(ast.get_docstring(stub)) == first_words(inspect.getdoc(classes[0]))
        seen: set[str] = set()
        for function in stub.body:
            name = getattr(function, "name", "_")
            if not isinstance(function, ast.FunctionDef) or name in seen or name.startswith("_"):
                continue
            seen.add(name)
            real = [inspect.getdoc(vars(it)[name]) for it in classes if name in vars(it)]
            words = first_words(ast.get_docstring(function))
            assert words and words in map(first_words, real), f"{stub.name}.{name}"
            compared += 1
    assert compared > 80


def test_printed_arrays_are_those_of_this_numpy() -> None:
    assert repr(np.array([True, False])) == "array([ True, False])"
