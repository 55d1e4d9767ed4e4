"""Write the comparison of two runs as a page, as JSON, or as JUnit XML, which continuous integration reads."""

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree  # nosec B405  # XML is written, not read

from markupsafe import Markup

from wanbench.files import replace_file
from wanbench.methods.comparison.verdicts import CHANGED, UNDECIDED, Changes, text
from wanbench.methods.result import table_html

from .cells import clean
from .figures import read_figure
from .page import write_alone
from .pictures import EXPORT_PX, put_library, snippet
from .provenance import Source


def write_page(found: Changes, path: Path) -> None:
    """Write a comparison as a stand-alone HTML page, with the style inside and Plotly's script next to it."""
    figure = read_figure(json.loads(found.figure().to_json()), 1, set())
    # Snippet escapes.
    drawn = Markup(snippet(figure, Source(f"From {found.a} and {found.b}"), EXPORT_PX["blog"]))  # nosec B704
    table = table_html(found.differs.set_axis(["Set-up", "A", "B"], axis=1), "How the set-ups differ")
    # Table_html escapes.
    differs = Markup(table if len(found.differs) else "<p>The set-ups do not differ.</p>")  # nosec B704
    shown = {"a": found.a, "b": found.b, "differs": differs, "figure": drawn}
    write_alone("comparison.html", path, changes=Markup(clean(found._repr_html_())), **shown)  # pyright: ignore[reportPrivateUsage]  # nosec B704  # cleaned
    put_library(path)


def write_json(found: Changes, path: Path) -> None:
    """Write a comparison as JSON: its sentence, cautions, tables and exit code."""
    about = {"a": found.a, "b": found.b, "margin": found.margin, "exit_code": found.exit_code()}
    about |= {"sentence": found.sentence, "cautions": found.cautions}
    tables = {"differs": found.differs, "left_out": found.left_out, "comparisons": found.rows}
    about |= {name: json.loads(frame.to_json(orient="records", double_precision=9)) for name, frame in tables.items()}
    replace_file(path, (json.dumps(about, indent=2, ensure_ascii=False) + "\n").encode())


def write_junit(found: Changes, path: Path) -> None:
    """Write a comparison as JUnit XML: a test case for each row, failed if changed, skipped if undecided."""
    suites = ElementTree.Element("testsuites", name=f"{found.b} compared with {found.a}")
    for quantity, rows in found.rows.groupby("quantity", sort=False):
        about = {"name": quantity, "tests": str(len(rows)), "errors": "0"}
        about |= {kind: str(int((rows.verdict == one).sum())) for kind, one in STATES.items()}
        suite = ElementTree.SubElement(suites, "testsuite", about)
        for row in rows.itertuples():
            case = ElementTree.SubElement(suite, "testcase", classname=quantity, name=row.key)
            if row.verdict == CHANGED:
                ElementTree.SubElement(case, "failure", message=f"B is {text(row)} A")
            elif row.verdict == UNDECIDED:
                ElementTree.SubElement(case, "skipped", message=f"{row.reason}: B is {text(row)} A")
            ElementTree.SubElement(case, "system-out").text = f"B over A: {text(row)}; {row.basis}"
    ElementTree.indent(suites)
    replace_file(path, ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True) + b"\n")


STATES = {"failures": CHANGED, "skipped": UNDECIDED}
WRITERS: dict[str, Callable[[Changes, Path], None]] = {"json": write_json, "junit": write_junit, "page": write_page}
