"""Parameters cells, given values, presets: what is allowed passes, everything else is refused by name."""

from pathlib import Path

import nbformat
import pytest

from wanbench.errors import ParameterError
from wanbench.plain_yaml import parse_yaml
from wanbench.publish.parameters import (
    check_parameters,
    declared_parameters,
    find_preset,
    kind_text,
    parse_assignment,
    preset_paths,
    read_parameters,
)

CELL = """
# where to measure
lab = "local"
n_regions: int = 8  # how many
loss = 0.01  # fraction
clouds = ["aws", "gcp"]  # which clouds
rate_bps: float | None = None  # None: not limited
sizes: list[float] = [
    1.0,
    2.5,
]  # in MB
protocol: Literal["tcp", "udp", "both"] = "tcp"
verbose = False
sysctls: dict[str, str] = {}
offset_ms = -5
anything = []
"""


def notebook(source, *, cells=1, tag="parameters"):
    made = [nbformat.v4.new_code_cell(source, metadata={"tags": [tag]}) for _ in range(cells)]
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Title"), *made])


def check(**given):
    return check_parameters(notebook(CELL), given, "02-x.ipynb")


def test_declarations_are_read():
    declared = declared_parameters(notebook(CELL), "02-x.ipynb")
    assert {name: parameter.default for name, parameter in declared.items()} == {
        "lab": "local",
        "n_regions": 8,
        "loss": 0.01,
        "clouds": ["aws", "gcp"],
        "rate_bps": None,
        "sizes": [1.0, 2.5],
        "protocol": "tcp",
        "verbose": False,
        "sysctls": {},
        "offset_ms": -5,
        "anything": [],
    }
    assert declared["lab"].comment == "where to measure"
    assert declared["sizes"].comment == "in MB"
    assert declared["verbose"].comment == ""
    assert kind_text(declared["rate_bps"].kind) == "float or None"
    assert kind_text(declared["clouds"].kind) == "list of str"


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("lab", "samples", "samples"),
        ("n_regions", 46, 46),
        ("loss", 1, 1.0),
        ("clouds", [], []),
        ("clouds", ("aws",), ["aws"]),
        ("rate_bps", None, None),
        ("rate_bps", 10, 10.0),
        ("sizes", [1, 2], [1.0, 2.0]),
        ("protocol", "udp", "udp"),
        ("verbose", True, True),
        ("sysctls", {"net.ipv4.tcp_rmem": "4096"}, {"net.ipv4.tcp_rmem": "4096"}),
        ("anything", [1, "a", None], [1, "a", None]),
    ],
)
def test_values_that_fit_pass(name, value, accepted):
    result = check(**{name: value})
    assert result == {name: accepted}
    assert type(result[name]) is type(accepted)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("n_regions", 8.0, r"'n_regions' must be int, not 8\.0 \(float\)"),
        ("n_regions", "8", r"must be int, not '8' \(str\)"),
        ("n_regions", True, r"must be int, not True \(bool\)"),
        ("n_regions", None, r"must be int, not None"),
        ("loss", True, r"must be float, not True"),
        ("lab", 7, r"must be str, not 7"),
        ("verbose", 1, r"must be bool, not 1"),
        ("clouds", "aws", r"must be list of str, not 'aws'"),
        ("clouds", ["aws", 3], r"must be str at \[1\], not 3"),
        ("rate_bps", "fast", r"must be float or None, not 'fast'"),
        ("sizes", [1, None], r"must be float at \[1\]"),
        ("protocol", "quic", r"must be 'tcp' or 'udp' or 'both', not 'quic'"),
        ("sysctls", {"a": 1}, r"must be str at \['a'\]"),
        ("sysctls", [], r"must be dict of str to str"),
        ("n_region", 8, r"unknown parameter 'n_region' \(did you mean 'n_regions'\?\); it has lab, n_regions"),
        ("zzz", 8, r"unknown parameter 'zzz'; it has lab"),
    ],
)
def test_values_that_do_not_fit_are_refused(name, value, message):
    with pytest.raises(ParameterError, match=r"^02-x\.ipynb: .*" + message):
        check(**{name: value})


def test_all_faults_are_listed_with_their_source():
    with pytest.raises(ParameterError) as caught:
        check_parameters(notebook(CELL), {"los": 1, "lab": 2}, "02-x.ipynb", source="papermill-params/02-x/q.yml")
    assert str(caught.value).startswith("papermill-params/02-x/q.yml for 02-x.ipynb: unknown parameter 'los'")
    assert "'lab' must be str" in str(caught.value)


def test_a_notebook_without_parameters_takes_none():
    plain = notebook("x = 1", tag="other")
    assert check_parameters(plain, {}, "n") == {}
    with pytest.raises(ParameterError, match="it has no parameters"):
        check_parameters(plain, {"x": 2}, "n")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = None", "'x' is None; annotate its type"),
        ("x = 1 + 1", "'1 \\+ 1' is not a literal"),
        ("x = y", "is not a literal"),
        ("import os", "not an assignment"),
        ("x, y = 1, 2", "not an assignment"),
        ("x: int", "not an assignment"),
        ("x = 1\nx = 2", "line 2 .* second time"),
        ("x: int = 'a'", "'x': must be int, not 'a'"),
        ("x: Path = 'a'", "annotation 'Path' is not supported"),
        ("x: Literal[y] = 1", "is not supported"),
        ("x = {1, 2}", "is not a plain value"),
        ("x = b'a'", "is not a plain value"),
        ("x = (", "is not valid Python"),
    ],
)
def test_bad_declarations_are_refused(source, message):
    with pytest.raises(ParameterError, match=message):
        declared_parameters(notebook(source), "n")


def test_two_tagged_cells_are_refused():
    with pytest.raises(ParameterError, match="2 cells are tagged"):
        declared_parameters(notebook("x = 1", cells=2), "n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n_regions=4", ("n_regions", 4)),
        ("lab=7", ("lab", "7")),
        ("lab=a=b", ("lab", "a=b")),
        ("clouds=[aws, gcp]", ("clouds", ["aws", "gcp"])),
        ("rate_bps=null", ("rate_bps", None)),
        ("rate_bps=1e8", ("rate_bps", 1e8)),
        ("unknown=5", ("unknown", 5)),
    ],
)
def test_command_line_assignments(text, expected):
    assert parse_assignment(text, declared_parameters(notebook(CELL), "n")) == expected


@pytest.mark.parametrize("text", ["n_regions", "=4", ""])
def test_bad_command_line_assignments(text):
    with pytest.raises(ParameterError, match="write name=value"):
        parse_assignment(text, {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", r"p\.yml, line 3: key 'a' is repeated"),
        ("a: !!python/object/apply:os.system ['true']", "could not determine a constructor"),
        ("a: [1", r"line 1"),
        ("? [1, 2]\n: 3\n", "found unhashable key"),
        ("a: \x01", "is not YAML"),
        ("a: &x [1]\nb: *x\n", r"p\.yml, line 2: the alias \*x is not allowed"),
        ("a: &x {c: 1}\nb: {<<: [*x, *x]}\n", r"line 2: the alias \*x is not allowed"),
        ("a: 1\nb: !!map [c]\n", r"p\.yml, line 2: expected a mapping node, but found sequence"),
        ("!!set word", r"p\.yml, line 1: expected a mapping node, but found scalar"),
    ],
)
def test_yaml_that_is_refused(text, message):
    with pytest.raises(ParameterError, match=message):
        parse_yaml(text, "p.yml")


@pytest.mark.parametrize(
    ("text", "value"), [("1e8", 1e8), ("2.5E+3", 2500.0), ("1_000", 1000), ("1e", "1e"), ("1e3 s", "1e3 s")]
)
def test_yaml_numbers(text, value):
    parsed = parse_yaml(text, "p")
    assert parsed == value and type(parsed) is type(value)


@pytest.mark.parametrize("text", ["- a", "1: 2", "word"])
def test_parameter_files_hold_names_with_values(tmp_path, text):
    (tmp_path / "p.yml").write_text(text)
    with pytest.raises(ParameterError, match=r"p\.yml: expected lines of `name: value`"):
        read_parameters(tmp_path / "p.yml")


def test_parameter_files(tmp_path):
    (tmp_path / "p.yml").write_text("n: 1\nclouds: [aws]\n")
    assert read_parameters(tmp_path / "p.yml") == {"n": 1, "clouds": ["aws"]}
    (tmp_path / "empty.yml").write_text("# all defaults\n")
    assert read_parameters(tmp_path / "empty.yml") == {}
    with pytest.raises(ParameterError, match=r"none\.yml: the parameters cannot be read: No such file"):
        read_parameters(tmp_path / "none.yml")
    with pytest.raises(ParameterError, match=r"/dev/zero: the parameters cannot be read: .* 1,048,576 characters"):
        read_parameters(Path("/dev/zero"))


def test_presets_are_found_by_name(tmp_path):
    folder = tmp_path / "papermill-params/02-x"
    folder.mkdir(parents=True)
    for name in ("quick", "full"):
        (folder / f"{name}.yml").write_text("")
    assert list(preset_paths("02-x", tmp_path)) == ["full", "quick"]
    assert find_preset("02-x", "quick", tmp_path) == folder / "quick.yml"
    assert find_preset("00-tour", "quick", tmp_path) is None
    with pytest.raises(ParameterError, match=r"no preset 'quik' \(did you mean 'quick'\?\); it has full, quick"):
        find_preset("02-x", "quik", tmp_path)
