"""The explorer in a real browser: every panel in every language, its numbers the library's, and nothing leaves.

Debian's chromium does; without it, or without playwright, these tests are skipped. axe-core is that of explorer/.
"""

import re
import shutil
import sys
from functools import wraps
from pathlib import Path
from threading import Thread
from time import sleep

import pytest
import uvicorn

import gnomon as gn
from gnomon.explorer import Shelf, explorer, export, included
from gnomon.explorer.questions import STORIES
from gnomon.explorer.serve import bound
from gnomon.glossary import LANGUAGES, numeral
from gnomon.plots import inspect

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
]
PANELS = (
    "sinusoid",
    "rotary",
    "biases",
    "learned",
    "masks",
    "flow",
    "order",
    "generate",
    "space",
    "lab",
    "audit",
    "lessons",
)
OF_A_MODEL = {"learned", "masks", "flow", "order", "space"}
PHONE, DESKTOP = {"width": 360, "height": 780}, {"width": 1440, "height": 900}


@pytest.fixture(scope="module")
def address():
    """The explorer at work, with the small models."""
    listening = bound("127.0.0.1", 0)
    port = listening.getsockname()[1]
    app = explorer(Shelf(included()), [f"127.0.0.1:{port}"])
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none", timeout_graceful_shutdown=1))
    thread = Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield f"http://127.0.0.1:{port}/"
    server.should_exit = True
    thread.join(10)
    listening.close()


@pytest.fixture(scope="module")
def browser():
    """A browser of this machine."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine: apt install chromium")
    with api.sync_playwright() as play:
        made = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield made
        made.close()


@pytest.fixture
def page(browser, address):
    """A page that keeps what went wrong in `page.wrong`: messages of the console, and requests to anywhere else."""
    context = browser.new_context(viewport=DESKTOP, locale="en-US", reduced_motion="reduce", accept_downloads=True)
    made = context.new_page()
    made.wrong = []

    def sent(request):
        if not request.url.startswith((address, "data:", "blob:", "file:")):
            made.wrong.append(request.url)

    made.on("console", lambda m: made.wrong.append(m.text) if m.type in ("error", "warning") else None)
    made.on("pageerror", lambda error: made.wrong.append(str(error)))
    made.on("request", sent)
    yield made
    assert made.wrong == []
    context.close()


def settle(page, name):
    """Wait until a panel shows what it was opened for."""
    page.wait_for_selector("main h1")
    if name in OF_A_MODEL:
        page.wait_for_selector("main figure h2")
    page.wait_for_function("() => !document.querySelector('.state.show')")


@pytest.mark.parametrize("name", PANELS)
def test_a_panel_is_whole_in_each_language_and_axe_finds_nothing(page, address, root, name):
    axe = root / "explorer" / "node_modules" / "axe-core" / "axe.min.js"
    titles = set()
    for n, lang in enumerate(LANGUAGES):
        page.set_viewport_size(PHONE if n == 1 else DESKTOP)
        page.goto(f"{address}#/{name}?lang={lang}")
        page.reload()
        settle(page, name)
        assert page.evaluate("document.documentElement.lang") == lang
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, f"{lang}: wider than the window"
        titles.add(page.locator("nav h2, nav option").all_inner_texts()[0] + page.locator(".says").inner_text())
        assert "undefined" not in page.locator("main").inner_text()
        for picture in page.locator("svg.picture").all():
            assert len(picture.get_attribute("aria-label")) > 20
        if axe.is_file():
            page.evaluate(axe.read_text(encoding="utf-8"))
            if n == 2:
                page.locator("header.top button").click()  # the dark theme
            found = page.evaluate("axe.run().then((r) => r.violations.map((v) => [v.id, v.nodes.map((n) => n.html)]))")
            assert found == [], (lang, found)
    assert len(titles) == len(LANGUAGES)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_numbers_in_the_page_are_the_library_s(page, address, lang):
    page.goto(f"{address}#/flow?model=tiny-rope&text=def%20main&layer=2&head=3&lang={lang}")
    settle(page, "flow")
    seen = inspect(gn.load(included()[0], dtype="float32"), "def main")
    page.locator("figure", has=page.locator("svg.picture")).first.get_by_role("button", pressed=False).first.click()
    cells = page.locator("figure tbody tr").nth(1).locator("td").all_inner_texts()
    shown = [float(re.sub("[ \u202f]", "", cell).replace(",", ".").replace("−", "-")) for cell in cells[1:3]]
    assert shown == pytest.approx(seen.attention[1][2][1, :2].tolist(), abs=1e-5)
    best = seen.guesses[0]
    assert numeral(100 * best.probability, ".1f", lang) in page.locator("figure").last.inner_html()


@pytest.fixture
def slow_writing(monkeypatch):
    """The tokens that the server has written, each a tenth of a second after the one before."""
    written, write = [], STORIES["write"]

    @wraps(write)
    def slowly(*args, **values):
        for step in write(*args, **values):
            written.append(step["id"])
            sleep(0.1)
            yield step

    monkeypatch.setitem(STORIES, "write", slowly)
    return written


@pytest.mark.parametrize("leave", ["stop", "close"])
def test_nothing_is_written_for_a_reader_who_stopped_or_left(page, address, slow_writing, leave):
    page.goto(f"{address}#/generate?model=tiny-rope&length=128&lang=en")
    page.locator(".settings > button.primary").click()
    page.wait_for_selector(".tokens button:nth-child(3)")
    if leave == "stop":
        page.get_by_role("button", name="Stop").click()
        page.wait_for_selector(".settings > button.primary")
        assert page.locator(".tokens button").count() >= 3
    else:
        page.close()
    sleep(0.6)
    so_far = len(slow_writing)
    sleep(0.6)
    assert len(slow_writing) == so_far < 128


def test_a_link_brings_the_same_picture_back(page, address):
    page.goto(f"{address}#/rotary?m=17&n=2&kind=yarn&lang=pt")
    said = page.locator("p.result").inner_text()
    page.get_by_role("slider", name="Consulta em m").press("ArrowRight")
    page.wait_for_function("() => location.hash.includes('m=18')")
    assert page.locator("p.result").inner_text() != said
    page.goto(f"{address}#/rotary?m=17&n=2&kind=yarn&lang=pt")
    page.wait_for_function("() => location.hash.includes('m=17')")
    assert page.locator("p.result").inner_text() == said


@pytest.mark.parametrize("kind", ["PNG", "SVG", "CSV"])
def test_a_picture_is_saved_as_a_file(page, address, tmp_path, kind):
    page.goto(f"{address}#/sinusoid?lang=en")
    with page.expect_download() as download:
        page.locator("figure").first.get_by_role("button", name=f"as {kind}").click()
    data = Path(download.value.path()).read_bytes()
    assert download.value.suggested_filename.endswith(kind.lower())
    assert data.startswith({"PNG": b"\x89PNG", "SVG": b"<svg", "CSV": b"\xef\xbb\xbfDimension"}[kind])
    assert len(data) > 2000


def test_a_slider_that_moves_is_drawn_in_each_frame(page, address):
    """Each step of the slider is drawn in the very next frame, with all of its clocks."""
    page.goto(f"{address}#/sinusoid?lang=en&length=256&d=128")
    page.wait_for_selector("svg.picture")
    count = page.evaluate("""async () => {
        const slider = [...document.querySelectorAll('input[type=range]')].at(-1);
        let work = 0;
        for (let i = 0; i < 30; i++) {
            const before = performance.now();
            slider.value = String(i);
            slider.dispatchEvent(new Event('input', { bubbles: true }));
            await new Promise(requestAnimationFrame);
            work += document.querySelectorAll('svg.picture circle.face').length;
        }
        return work;
    }""")
    assert count == 30 * 24  # each of the thirty frames has its clocks


def test_keys_alone_reach_a_panel_and_a_cell(page, address):
    page.goto(f"{address}#/sinusoid?lang=en")
    page.wait_for_selector("svg.picture")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className").startswith("skip")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.locator("svg.picture").first.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert "Position 2" in page.locator("p.read").first.inner_text()


def test_a_server_that_is_gone_is_said(page, address):
    page.goto(f"{address}#/flow?model=tiny-rope&lang=en")
    settle(page, "flow")
    page.route("**/api/**", lambda route: route.abort())
    page.locator("input[type=range]").first.press("ArrowRight")
    page.wait_for_selector("[role=alert]")
    assert "does not answer any more" in page.locator("[role=alert]").inner_text()
    page.wrong = [text for text in page.wrong if "ERR_FAILED" not in text]


def test_an_export_shows_the_recorded_model_from_a_file(page, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["gnomon.explorer.export"], "AUDITED", 0)
    name = included()[0]
    folder = export(Shelf([name]), tmp_path / "site")
    for panel in ("flow", "order", "learned", "lab", "rotary"):
        page.goto("about:blank")
        page.goto(f"{(folder / 'index.html').as_uri()}#/{panel}?lang=en")
        page.wait_for_selector("main figure h2")
        assert page.locator("[role=alert]").count() == 0, panel


def test_a_lesson_is_taken_answered_and_kept_as_done(page, address):
    page.goto(f"{address}#/lessons?lang=es")
    page.get_by_role("button", name="Empezar: Relojes: la tabla sinusoidal").click()
    page.wait_for_selector("aside")
    assert "#/sinusoid" in page.url
    page.get_by_role("button", name="Siguiente").click()
    page.get_by_label("Pregunta").fill("11")
    page.get_by_role("button", name="Comprobar").click()
    assert "Todavía no" in page.locator("aside form [role=status]").inner_text()
    page.get_by_label("Pregunta").fill("10")
    page.get_by_role("button", name="Comprobar").click()
    assert "Correcto" in page.locator("aside form [role=status]").inner_text()
    page.goto("about:blank")
    page.goto(f"{address}#/lessons?lang=es")
    assert "hecha" in page.locator("main li").nth(1).inner_text()
