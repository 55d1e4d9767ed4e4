"""Pages in a browser without a network: nothing asked, every figure drawn and legible, accessible, printed."""

import importlib.util
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from example_site import built_site
from patience import comes_about

from wanbench.figures.theme import ALT_CHARACTERS
from wanbench.publish.pictures import browser

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.browser, pytest.mark.skipif(browser() is None, reason="no Chromium on this machine")]
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
A4_PX = {"width": 673, "height": 1000}  # What the margins of site.css leave of the paper's width.
ACROSS_PX = {"width": 1032, "height": 700}  # The ledger of claims is printed across.
AXE = (Path(importlib.util.find_spec("axe_playwright_python").origin).parent / "axe.min.js").read_text()
AXE_RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
    "preload": False,
    "resultTypes": ["violations"],
}
OF_LOOKS = AXE_RULES | {"runOnly": ["color-contrast", "link-in-text-block", "scrollable-region-focusable"]}
"""What a narrow screen and other colours can change; the rest of a page is the same on each screen."""
APART = ".main-svg, tbody tr:nth-child(n+21), details:not([open]) > :not(summary)"
RUN_AXE = """async ([apart, rules]) => {
    const put = [...document.querySelectorAll(apart)].map(one => {
        const place = document.createComment("");
        one.replaceWith(place);
        return [place, one];
    });
    const found = await axe.run(document, rules);
    put.forEach(([place, one]) => place.replaceWith(one));
    return found.violations;
}"""
"""
A drawing is one image to axe-core; rows of a table are made alike, so the first 20 stand for all; and axe-core does
not look at what a closed fold hides.
"""
MOST_TAB_STOPS = 120
TAB_STOPS = """[...document.querySelectorAll("a[href], button, input, select, summary, [tabindex]")]
    .filter(one => one.tabIndex >= 0 && one.checkVisibility()).length"""


@contextmanager
def offline_browser(screen=WIDE):
    """A context of a fresh browser without a network, with a screen of this size, where links scroll at once."""
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=browser(), args=["--no-sandbox"])
        try:
            yield started.new_context(offline=True, viewport=screen, reduced_motion="reduce")
        finally:
            started.close()


def faults_of_site(context, *paths):
    """
    What is wrong with HTML files of a built site, as sentences, each with its file's name; an empty list for good ones.

    Parameters
    ----------
    context : playwright BrowserContext
        Offline. All files are shown in one tab, which keeps Plotly compiled.
    """
    page = context.new_page()
    faults = []
    page.on("console", lambda message: faults.append(f"console: {message.text}") if message.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(f"script error: {error}"))
    page.on("requestfailed", lambda request: faults.append(f"failed: {request.url[:200]}"))
    page.on("request", lambda request: faults.append(f"asked: {request.url}") if _elsewhere(request.url) else None)
    found = []
    for path in sorted(paths):
        faults += faults_of_page(page, path)
        found += [f"{path.name}: {fault}" for fault in faults]
        faults.clear()
    page.close()
    return found


def faults_of_page(page, path):
    """What is wrong with one page: on a wide light screen, on paper, and drawn again on a narrow dark screen."""
    page.set_viewport_size(WIDE)
    page.emulate_media(media="screen", color_scheme="light")
    _show(page, path)
    page.evaluate(AXE)
    faults = _looks(page, AXE_RULES, "(1280 px, light)")
    for check in (_document, _figures, _tables, _anchors, _code, _print):
        faults += check(page)
    page.evaluate("delete document.documentElement.dataset.figures")
    page.set_viewport_size(NARROW)  # still on paper, which shows pictures: Plotly draws nothing for the new width
    page.emulate_media(media="screen", color_scheme="dark")
    _wait_for_figures(page)
    faults += _looks(page, OF_LOOKS, "(390 px, dark)")
    page.evaluate("document.body.replaceChildren()")  # nothing is left that the next page's colours would draw again
    return faults


def _looks(page, rules, where):
    return [f"{fault} {where}" for fault in (*_accessible(page, rules), *_legible(page), *_width(page))]


def _show(page, path):
    page.goto(path.as_uri())
    _wait_for_figures(page)


def _wait_for_figures(page):
    page.wait_for_function("document.documentElement.dataset.figures === 'done'", timeout=120_000)


def _accessible(page, rules):
    """What axe-core finds, and more stops of the Tab key than anybody wants."""
    found = page.evaluate(RUN_AXE, [APART, rules])
    faults = [f"axe {one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]
    stops = page.evaluate(TAB_STOPS)
    return [*faults, f"has {stops} tab stops"] if stops > MOST_TAB_STOPS else faults


def _legible(page):
    """Texts of drawings that lie over each other or are cut at the edge."""
    drawn = page.locator("figure.plot.drawn")
    found = drawn.evaluate_all("all => all.map(one => [one.id, textFaults(one)])")
    return [f"{name}: {fault}" for name, faults in found for fault in faults]


def _tables(page):
    names = page.locator("table").evaluate_all("all => all.map(one => one.caption?.textContent || '')")
    return ["has a table without a caption"] if not all(names) else []


def _elsewhere(url):
    return not url.startswith(("file:", "data:", "blob:"))


def _document(page):
    faults = []
    if page.evaluate("document.documentElement.lang") != "en":
        faults.append("has no language")
    if page.locator("h1").count() != 1:
        faults.append(f"has {page.locator('h1').count()} h1 headings")
    if not page.title().strip():
        faults.append("has no title")
    if page.evaluate("[...document.images].some(one => !one.hasAttribute('alt'))"):
        faults.append("has an image without alt text")
    broken = page.evaluate("[...document.images].filter(one => one.naturalWidth === 0).map(one => one.src)")
    faults += [f"image not shown: {source[:100]}" for source in broken]
    page.keyboard.press("Tab")
    if page.evaluate("document.activeElement.className") != "skip":
        faults.append("does not begin with its skip link")
    return faults


FIGURES = """all => all.map(one => {
    const [picture, drawing] = [one.querySelector(".static"), one.querySelector(".interactive")];
    const box = one.querySelector("svg.main-svg")?.getBoundingClientRect();
    const shown = [picture.matches("img"), picture.checkVisibility(), drawing.checkVisibility()];
    const words = [drawing.getAttribute("aria-label") ?? "", one.querySelector(".source").textContent];
    return [one.id, one.classList.contains("drawn"), box?.width ?? 0, box?.height ?? 0, ...shown, ...words];
})"""


def _figures(page):
    faults = []
    for name, drawn, width, height, _, picture, _, alt, source in page.locator("figure.plot").evaluate_all(FIGURES):
        if not drawn:
            faults.append(f"{name} is not drawn")
            continue
        if width < 100 or height < 100:
            faults.append(f"{name} has no size: {width} by {height} px")
        if not 0 < len(alt) <= ALT_CHARACTERS:
            faults.append(f"{name} has an alt text of {len(alt)} characters")
        if picture:
            faults.append(f"{name} shows its static file beside the drawing")
        if "wanbench" not in source:  # a closed fold may hide it
            faults.append(f"{name} does not show where its numbers come from")
    return faults


def _leads_to(page, link, anchor):
    """Whether a click leads there; it is tried again, as a figure that is drawn meanwhile can move the link away."""
    link.click()
    return page.evaluate("location.hash") == anchor


COUNTED = "all => all.map(one => one.getAttribute('href')).map(one => [one, document.querySelectorAll(one).length])"


def _anchors(page):
    links = page.locator("nav.contents a")
    counted = links.evaluate_all(COUNTED)
    faults = [f"{anchor} of the contents leads nowhere" for anchor, count in counted if count != 1]
    if counted and counted[-1][1] == 1:
        anchor = counted[-1][0]
        if not comes_about(partial(_leads_to, page, links.last, anchor), every_s=0.5):
            faults.append(f"a click on {anchor} in the contents leads elsewhere")
        try:
            playwright.expect(page.locator(anchor)).to_be_in_viewport(timeout=5000)
        except AssertionError:
            faults.append(f"{anchor} of the contents is not scrolled to")
    return faults


def _code(page):
    folds = page.locator("details.code")
    if not folds.count():
        return []
    faults = []
    if page.locator("details.code[open]").count():
        faults.append("code is not folded at first")
    page.locator("#toggle-code").click()
    if page.locator("details.code[open]").count() != folds.count():
        faults.append("the button does not unfold all code")
    page.locator("#toggle-code").click()
    if page.locator("details.code[open]").count():
        faults.append("the button does not fold all code")
    return faults


def _width(page):
    """A page that is wider than its screen."""
    try:
        page.wait_for_function("document.documentElement.scrollWidth <= innerWidth", timeout=15_000)
    except playwright.TimeoutError:
        width = page.evaluate("document.documentElement.scrollWidth")
        return [f"is {width} px wide"]
    return []


def _print(page):
    """On paper, with everything unfolded; the page stays on paper, folded as it was."""
    faults = []
    page.evaluate("shut = document.querySelectorAll('details:not([open])'); shut.forEach(one => { one.open = true; })")
    page.emulate_media(media="print")
    if page.locator("nav.contents:visible, #toggle-code:visible").count():
        faults.append("prints what only a screen needs")
    for name, *_, has_picture, picture, drawing, _, _ in page.locator("figure.plot").evaluate_all(FIGURES):
        if (picture, drawing) != (has_picture, not has_picture):
            faults.append(f"{name} does not print")
    for paper, parts in ((A4_PX, "main *:not(table.ledger, table.ledger *)"), (ACROSS_PX, "table.ledger *")):
        page.set_viewport_size(paper)
        cut = page.evaluate(
            f"[...document.querySelectorAll('{parts}')].filter(one => one.checkVisibility() && !one.matches('.unseen')"
            " && !one.closest('.drawing, math') && one.getBoundingClientRect().right > innerWidth + 1)"
            ".map(one => one.tagName)"
        )
        faults += [f"is cut on paper: {', '.join(dict.fromkeys(cut))}"] if cut else []
    page.evaluate("shut.forEach(one => { one.open = false; })")
    return faults


@pytest.fixture(scope="module")
def context():
    with offline_browser() as context:
        yield context


def test_example_site_has_no_faults(context):
    pages = sorted((built_site() / "site").glob("*.html"))
    assert [path.name for path in pages] == ["00-example.html", "index.html"]
    assert faults_of_site(context, *pages) == []


def test_search_finds_sections_of_all_pages_from_any_page(context):
    page = context.new_page()
    for name in ("index", "00-example"):
        _show(page, built_site() / f"site/{name}.html")
        page.get_by_role("searchbox", name="Search").fill("light NEEDS")
        playwright.expect(page.locator("form.search output")).to_have_text("1 places found")
        link = page.locator("form.search li a")
        assert link.get_attribute("href") == "00-example.html#the-model"
        assert page.locator("form.search mark").all_inner_texts() == ["Light", "needs"]
        page.keyboard.press("Escape")
        playwright.expect(link).to_have_count(0)
    page.close()


def test_the_ledger_is_filtered_by_choices_and_words(context):
    page = context.new_page()
    _show(page, built_site() / "site/00-example.html")
    filters, shown = page.get_by_role("search", name="Filter the claims"), page.locator("form.filters output")
    playwright.expect(shown).to_have_text("2 of 2 claims shown")
    filters.get_by_label("By the re-run").select_option("undecided")
    playwright.expect(shown).to_have_text("1 of 2 claims shown")
    assert page.locator("table.ledger tbody tr:visible").inner_text().split("\t")[1] == "Another"
    filters.get_by_label("Text").fill("doubles")
    playwright.expect(shown).to_have_text("0 of 2 claims shown")
    filters.get_by_label("By the re-run").select_option("all")
    playwright.expect(shown).to_have_text("1 of 2 claims shown")
    page.close()


def test_the_tools_of_a_figure_are_one_tab_stop_and_zoom(context):
    page = context.new_page()
    _show(page, built_site() / "site/00-example.html")
    tools = page.get_by_role("toolbar").first
    width = "document.querySelector('.interactive')._fullLayout.xaxis.range.reduce((low, high) => high - low)"
    before = page.evaluate(width)
    tools.get_by_role("button", name="Save PNG").press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.textContent") == "Zoom in"
    assert page.evaluate(width) == pytest.approx(before / 1.5)
    tools.get_by_role("button", name="Reset").click()
    page.wait_for_function(f"Math.abs({width} - {before}) < 1e-6 * {before}")
    with page.expect_download() as download:
        tools.get_by_role("button", name="Save SVG").click()
    assert download.value.suggested_filename == "rtt-by-distance.svg"
    assert tools.locator("[tabindex='0']").count() == 1
    page.close()


def test_figures_follow_the_colours_of_the_screen(context):
    page = context.new_page()
    page.emulate_media(color_scheme="dark")
    _show(page, built_site() / "site/00-example.html")
    ground = "getComputedStyle(document.querySelector('.main-svg')).backgroundColor"
    dark = page.evaluate(ground)
    assert dark == page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"
    picture = "getComputedStyle(document.querySelector('img[src$=svg]')).filter"
    assert page.evaluate(picture).startswith("invert")
    page.emulate_media(color_scheme="light")
    page.wait_for_function(f"{ground} === 'rgb(255, 255, 255)'")
    page.close()


BREAK = {
    '<link rel="icon" href="data:,">': ('<script src="https://cdn.example/x.js"></script>', "asked: https://cdn"),
    "assets/plotly.min.js": ("assets/plotly.max.js", "failed: file:///"),
    'id="figure-figure-2"': ('id="figure-undrawn"', "figure-undrawn is not drawn"),
    'href="#the-model"': ('href="#the-modal"', "#the-modal of the contents leads nowhere"),
    '<details class="code">': ('<details class="code" open>', "code is not folded"),
    "<h1": ("<h1>More</h1><h1", "has 2 h1 headings"),
    'lang="en"': ("", "has no language"),
    "<figcaption>": ('<figcaption><p style="width: 40rem; max-width: none">x</p>', "px wide (390 px, dark)"),
    '<caption class="unseen">': ('<caption hidden></caption><caption class="unseen">', "a table without a caption"),
    '<aside aria-label="About the data">': ("<div><button></button>", "axe button-name"),
    '<a class="skip"': ('<a href="#x">x</a><a class="skip"', "skip link"),
    "figure-2-800x450.svg": ("none.svg", "image not shown"),
    '<p class="banner"': ('<img src="data:,"><p class="banner"', "image without alt text"),
}


@pytest.fixture
def broken_page():
    """Write a page of the example with parts replaced; it is gone after the test."""
    path = built_site() / "site/broken.html"

    def write(replacements):
        html = (built_site() / "site/00-example.html").read_text()
        for old, new in replacements.items():
            assert old in html, old
            html = html.replace(old, new)
        path.write_text(html)
        return path

    yield write
    path.unlink(missing_ok=True)


def test_faults_are_noticed(context, broken_page):
    path = broken_page({old: new for old, (new, _) in BREAK.items()})
    found = faults_of_site(context, path)
    assert [fault for _, fault in BREAK.values() if not any(fault in one for one in found)] == []


NOTE = '{"text":"a note","x":0.5,"y":0.5,"xref":"paper","yref":"paper","showarrow":false}'
CUT = NOTE.replace("a note", "a note that goes on and on " * 9).replace('"y":0.5', '"y":0.1')


def test_texts_that_no_reader_can_read_are_noticed(context, broken_page):
    found = faults_of_site(context, broken_page({'"layout":{': f'"layout":{{"annotations":[{NOTE},{NOTE},{CUT}],'}))
    for fault in ("over each other: a note | a note", f"cut: {('a note that goes on and on ' * 9).strip()}"):
        for where in ("(1280 px, light)", "(390 px, dark)"):
            assert f"broken.html: figure-rtt-by-distance: {fault} {where}" in found


def test_a_figure_that_fails_does_not_keep_the_next_from_being_drawn(context, broken_page):
    found = faults_of_site(context, broken_page({'"text":"Latency': '"text":,"Latency'}))
    assert [one for one in found if "is not drawn" in one] == ["broken.html: figure-rtt-by-distance is not drawn"]
