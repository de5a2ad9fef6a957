"""The grammar checker finds a fault and says where; the exceptions are accepted."""

from pathlib import Path

import pytest

from tests.tools import prose

FAULTY = "# Jobs\n\nSQS keeps each message.\n\nThis are an test of the queue.\n"


def checked(path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Return the checker's exit status for a text, and what it prints."""
    path.write_text(text, encoding="utf-8")
    status = prose.main([str(path)])
    return status, capsys.readouterr().out


def test_a_fault_is_found_and_its_place_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    status, printed = checked(page, FAULTY, capsys)

    assert status == 1
    assert f'{page}:5: "an": ' in printed
    assert 'Suggestion: "a".' in printed
    assert f"{page}:3" not in printed  # SQS is an abbreviation
    assert "faults. Rewrite them" in printed


def test_a_text_without_faults_passes_and_is_remembered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):  # Harper reads it once
        assert checked(tmp_path / "page.md", "Send the job again.\n", capsys) == (0, "")
    assert checked(tmp_path / "page.md", FAULTY, capsys)[0] == 1


def test_every_document_is_checked(tmp_path: Path) -> None:
    names = {path.name for path in prose.documents(tmp_path)}

    assert {"README.md", "CONTRIBUTING.md", "limits.md", "mutants.md", "runbook.md"} <= names
