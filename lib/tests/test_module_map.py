"""docs/modules.md lists every module as it is now, so that whoever reads the documents alone finds the right file."""

from pathlib import Path

from module_map import module_map

ROOT = Path(__file__).parents[2]


def test_the_map_is_current():
    written = (ROOT / "docs" / "modules.md").read_text("utf-8")
    assert written == module_map(), "run .venv/bin/python scripts/module_map.py > docs/modules.md"


def test_a_module_is_listed_with_its_sentence_and_names(tmp_path):
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "one.py").write_text(
        '"""Do this. And that."""\n\nLIMIT = 3\n_A = 1\n\n\ndef run():\n    pass\n'
    )
    (tmp_path / "room" / "programs.csv").write_text("")
    lines = module_map(tmp_path).splitlines()
    assert "- **one.py**: Do this. *`LIMIT`, `run`*" in lines and "- **programs.csv**" in lines
