"""The shipped JSON Schemas are those of the types, and old documents stay valid."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from inductor_lab.cli import main
from inductor_lab.saved.documents.kinds import KINDS, schema, schema_name
from tests.saved.schemas import FOLDER, generated, text

OLD = sorted(Path(__file__).with_name("old").glob("*.json"))
"""Documents of version 0.1.0, the first with schemas.  Later versions must accept them.  They are
never written anew.  Paths in two of them were replaced by hand."""


def test_shipped_schemas_are_generated_from_the_types(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        for kind in KINDS:
            (FOLDER / f"{schema_name(kind)}.json").write_text(text(kind), encoding="utf-8")
    shipped = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    for kind in KINDS:
        assert shipped[schema_name(kind)] == text(kind), "run pytest --update-golden"
        Draft202012Validator.check_schema(schema(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_described(kind: str) -> None:
    made = generated(kind)
    for each in (made, *made.get("$defs", {}).values()):
        assert each["description"]
        for name, field in each["properties"].items():
            assert field["description"], name
            assert field["description"].endswith("."), name


@pytest.mark.parametrize("path", OLD, ids=[path.stem for path in OLD])
def test_old_documents_are_valid(path: Path) -> None:
    """No field was removed, and no new field is required: a closed schema accepts the document."""
    old = json.loads(path.read_text(encoding="utf-8"))
    kind = path.stem.partition(".")[0]
    validator = Draft202012Validator(generated(kind, closed=True))
    assert [error.message for error in validator.iter_errors(old)] == []


def test_there_is_an_old_document_of_every_kind() -> None:
    assert {path.stem.partition(".")[0] for path in OLD} == {*KINDS}


def test_a_removed_field_and_a_new_required_field_are_noticed() -> None:
    path = next(path for path in OLD if path.stem.startswith("decision."))
    old = json.loads(path.read_text(encoding="utf-8"))
    made = generated("decision", closed=True)
    removed = {**made, "properties": {k: v for k, v in made["properties"].items() if k != "fused"}}
    required = {**made, "required": [*made["required"], "new"]}
    for changed in (removed, required):
        assert not Draft202012Validator(changed).is_valid(old)


def test_the_command_prints_schemas(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert capsys.readouterr().out.split() == [*KINDS]
    assert main(["schema", "kernel"]) == 0
    assert json.loads(capsys.readouterr().out) == schema("kernel")
    assert main(["schema", "kernle"]) == 2
    assert "did you mean 'kernel'?" in capsys.readouterr().err
