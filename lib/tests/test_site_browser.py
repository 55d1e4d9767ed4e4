"""Pages in a browser without a network: nothing asked or failed, every figure drawn, links work, it prints."""

from contextlib import contextmanager
from functools import partial

import pytest
from example_site import built_site
from patience import comes_about

from wanbench.publish.pictures import browser

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.browser, pytest.mark.skipif(browser() is None, reason="no Chromium on this machine")]
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@contextmanager
def offline_browser(screen=WIDE):
    """A context of a fresh browser that has no network, with a screen of this size."""
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=browser(), args=["--no-sandbox"])
        try:
            yield started.new_context(offline=True, viewport=screen)
        finally:
            started.close()


def faults_of_page(context, path):
    """
    What is wrong with one page, as sentences; an empty list for a good page.

    Parameters
    ----------
    context : playwright BrowserContext
        Offline.
    path : Path
        An HTML file of a built site.
    """
    faults = []
    page = context.new_page()
    page.on("console", lambda message: faults.append(f"console: {message.text}") if message.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(f"script error: {error}"))
    page.on("requestfailed", lambda request: faults.append(f"failed: {request.url[:200]}"))
    page.on("request", lambda request: faults.append(f"asked: {request.url}") if _elsewhere(request.url) else None)
    page.goto(path.as_uri())
    if page.query_selector("figure.plot"):
        page.wait_for_function("document.documentElement.dataset.figures === 'done'", timeout=120_000)
    for check in (_document, _figures, _anchors, _code, _print, _widths):
        faults += check(page)
    page.close()
    return faults


def faults_of_site(context, folder):
    """What is wrong with any page of a site, each fault with the name of its page."""
    return [
        f"{path.name}: {fault}" for path in sorted(folder.glob("*.html")) for fault in faults_of_page(context, path)
    ]


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


def _figures(page):
    faults = []
    for figure in page.locator("figure.plot").all():
        name = figure.get_attribute("id")
        if "drawn" not in figure.get_attribute("class").split():
            faults.append(f"{name} is not drawn")
            continue
        box = figure.locator("svg.main-svg").first.bounding_box()
        if not box or box["width"] < 100 or box["height"] < 100:
            faults.append(f"{name} has no size: {box}")
        if not figure.locator(".drawing").get_attribute("aria-label"):
            faults.append(f"{name} has no alt text")
        if figure.locator("img.static:visible").count():
            faults.append(f"{name} shows its static file beside the drawing")
    return faults


def _leads_to(page, link, anchor):
    """Whether a click leads there; it is tried again, as a figure that is drawn meanwhile can move the link away."""
    link.click()
    return page.evaluate("location.hash") == anchor


def _anchors(page):
    faults = []
    links = page.locator("nav.contents a")
    for number, anchor in enumerate(links.evaluate_all("all => all.map(one => one.getAttribute('href'))")):
        place = page.locator(anchor)
        if place.count() != 1:
            faults.append(f"{anchor} of the contents leads nowhere")
        elif number == links.count() - 1:
            if not comes_about(partial(_leads_to, page, links.nth(number), anchor), every_s=0.5):
                faults.append(f"a click on {anchor} in the contents leads elsewhere")
            try:
                playwright.expect(place).to_be_in_viewport(timeout=5000)
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


def _widths(page):
    """On the screen as it is, and then on a narrow one: every change of width draws all figures again."""
    for size in dict.fromkeys((page.viewport_size["width"], NARROW["width"])):
        page.set_viewport_size(NARROW | {"width": size})
        try:
            page.wait_for_function("document.documentElement.scrollWidth <= innerWidth", timeout=15_000)
        except playwright.TimeoutError:
            width = page.evaluate("document.documentElement.scrollWidth")
            return [f"is {width} px wide on a screen of {size} px"]
    return []


def _print(page):
    faults = []
    page.emulate_media(media="print")
    if page.locator("nav.contents:visible, #toggle-code:visible").count():
        faults.append("prints what only a screen needs")
    for figure in page.locator("figure.plot").all():
        shown = "img.static" if figure.locator("img.static").count() else ".interactive"
        hidden = ".interactive" if shown == "img.static" else ".static"
        if not figure.locator(shown).is_visible() or figure.locator(hidden).is_visible():
            faults.append(f"{figure.get_attribute('id')} does not print")
    page.emulate_media(media="screen")
    return faults


@pytest.fixture(scope="module")
def context():
    with offline_browser() as context:
        yield context


def test_example_site_has_no_faults(context):
    site = built_site() / "site"
    assert sorted(path.name for path in site.glob("*.html")) == ["00-example.html", "index.html"]
    assert faults_of_site(context, site) == []


BREAK = {
    '<link rel="icon" href="data:,">': ('<script src="https://cdn.example/x.js"></script>', "asked: https://cdn"),
    "assets/plotly.min.js": ("assets/plotly.max.js", "failed: file:///"),
    'id="figure-figure-2"': ('id="figure-undrawn"', "figure-undrawn is not drawn"),
    'href="#the-model"': ('href="#the-modal"', "#the-modal of the contents leads nowhere"),
    '<details class="code">': ('<details class="code" open>', "code is not folded"),
    "<h1": ("<h1>More</h1><h1", "has 2 h1 headings"),
    'lang="en"': ("", "has no language"),
    '<p class="files">': ('<p style="width: 2000px">', "px wide on a screen of 390 px"),
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
    found = faults_of_page(context, path)
    assert [fault for _, fault in BREAK.values() if not any(fault in one for one in found)] == []


def test_a_figure_that_fails_does_not_keep_the_next_from_being_drawn(context, broken_page):
    found = faults_of_page(context, broken_page({'"text":"Latency': '"text":,"Latency'}))
    assert [one for one in found if "is not drawn" in one] == ["figure-rtt-by-distance is not drawn"]
