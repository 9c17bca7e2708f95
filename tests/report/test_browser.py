"""The reports in a browser: no error, nothing fetched, they move when they are touched, and fit a telephone."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from dpsmc_audit.report.page_sweep import sweep_page
from tests.support import reports

SIZES = {"desk": (1280, 800), "telephone": (390, 844)}

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
)  # fmt: skip


@dataclass(frozen=True)
class Browser:
    """Chromium, by its driver."""

    driver: Any

    def open(self, page: Path, size: str = "desk") -> None:
        width, height = SIZES[size]
        shape = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == "telephone"}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)
        self.driver.get(page.as_uri())

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def text(self, selector: str) -> str:
        return str(self.find(selector).text)

    def complaints(self) -> list[Any]:
        """What the console said since last asked."""
        return list(self.driver.get_log("browser"))

    def requests(self) -> set[str]:
        """All addresses asked for since last asked."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return {m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    chromium, chromedriver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if chromium is None or chromedriver is None:
        message = "no browser: apt-get install chromium chromium-driver"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    try:
        yield Browser(driver)
    finally:
        driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One report of each kind; what users name is hostile."""
    top = tmp_path_factory.mktemp("reports")
    made = {}
    marginal = replace(reports.marginal(top / "marginal"), others=reports.curves("marginal"))
    made["marginal"] = marginal.page()
    made["expected"] = reports.expected(top / "expected", "monte_carlo").page()
    made["informed"] = reports.informed(top / "informed").page([reports.HOSTILE])
    hostile = reports.sampler(top / "sampler", name=reports.HOSTILE)
    hostile = hostile.found(witness=replace(hostile.audit.witness, what=reports.Odd()))
    made["sampler"] = hostile.page([reports.HOSTILE], [f"sampler={reports.HOSTILE}"])
    points = reports.estimates(top / "sweep", [reports.HOSTILE, "x < 1", "a < b"])
    made["sweep"] = sweep_page(top / "sweep", reports.HOSTILE, points, [reports.HOSTILE], [reports.HOSTILE])
    for name, page in made.items():
        (top / name / "report.html").write_text(page, encoding="utf-8")
    return {name: top / name / "report.html" for name in made}


def test_the_verdict_is_in_the_first_screen_and_nothing_is_fetched(browser: Browser, pages: dict[str, Path]) -> None:
    browser.complaints(), browser.requests()
    for name, page in pages.items():
        for size, (width, height) in SIZES.items():
            browser.open(page, size)
            verdict = browser.run("return document.querySelector('header.verdict').getBoundingClientRect().toJSON()")
            assert 0 <= verdict["top"] < verdict["bottom"] <= height, (name, size)
            assert browser.run("return document.documentElement.scrollWidth") <= width, (name, size)
            assert not browser.complaints(), (name, size)
            assert browser.requests() - {"data:,"} == {page.as_uri()}, (name, size)


def test_hostile_names_are_text(browser: Browser, pages: dict[str, Path]) -> None:
    """An alert would make the next command fail; and so would an element of theirs."""
    for name in ("sampler", "informed", "sweep"):
        browser.open(pages[name])
        assert reports.HOSTILE in browser.text("body")
        assert browser.run("return document.querySelectorAll('img, main script:not([type])').length") == 0
        assert browser.run("return document.scripts.length") == (2 if name == "informed" else 1)


@pytest.mark.parametrize("size", SIZES)
def test_the_slider_moves_and_observers_come_and_go(browser: Browser, pages: dict[str, Path], size: str) -> None:
    browser.open(pages["marginal"], size)
    seen = ".chart.wide" if size == "desk" else ".chart.narrow"
    assert browser.find(f".profiles {seen} svg").is_displayed()
    before = browser.text(".profiles .say"), browser.find(f"{seen} .cursor").get_attribute("x1")
    assert before[0].startswith("ε′ = 0.1 (the claimed ε)")
    browser.find("input[type=range]").send_keys("\ue014" * 5)  # the right arrow
    after = browser.text(".profiles .say"), browser.find(f"{seen} .cursor").get_attribute("x1")
    assert float(after[1]) > float(before[1])
    assert after[0] != before[0]
    curve = browser.find(f"{seen} .observer.informed .curve")
    assert curve.is_displayed()
    browser.find("input.toggle[value=informed]").click()
    assert not curve.is_displayed()
    assert "Informed" not in browser.text(".profiles .say")
    browser.find("input.toggle[value=informed]").click()
    assert curve.is_displayed()


@pytest.mark.parametrize("name", ["expected", "informed", "sampler"])
def test_pointing_at_a_bin_shows_its_values(browser: Browser, pages: dict[str, Path], name: str) -> None:
    from selenium.webdriver import ActionChains

    browser.open(pages[name])
    bins = browser.driver.find_elements("css selector", ".chart.wide .bin")
    for k in (3, 5):
        ActionChains(browser.driver).move_to_element(bins[k]).perform()
        assert browser.text("output.say") == bins[k].get_attribute("data-say")
        assert "with x = 1" in browser.text("output.say")
    browser.find(".chart.wide svg.bins").send_keys("\ue014")
    assert browser.text("output.say") == bins[6].get_attribute("data-say")


def test_a_click_on_a_heading_sorts(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["sweep"])

    def column() -> list[str]:
        return [str(e.text)[:6] for e in browser.driver.find_elements("css selector", "tbody tr td:nth-child(5)")]

    heading = next(e for e in browser.driver.find_elements("css selector", "thead th") if e.text == "p_phi")
    assert column() == ["0.9000", "0.8000", "0.7000"]
    heading.find_element("css selector", "button").click()
    assert (column(), heading.get_attribute("aria-sort")) == (["0.7000", "0.8000", "0.9000"], "ascending")
    heading.find_element("css selector", "button").click()
    assert (column(), heading.get_attribute("aria-sort")) == (["0.9000", "0.8000", "0.7000"], "descending")


def test_without_scripts_all_values_are_there(browser: Browser, pages: dict[str, Path]) -> None:
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open(pages["marginal"])
        assert not browser.find("input[type=range]").is_displayed()
        assert not browser.find("input.toggle").is_displayed()
        assert "ε′ = 0.1 (the claimed ε)" in browser.text(".profiles .say")
        titles = browser.driver.find_elements("css selector", ".chart.wide .bin title")
        assert len(titles) > 10
        assert "with x = 1" in titles[0].get_attribute("textContent")
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


A4 = 297 - 2 * 12
"""Millimetres between the margins of a sweep's page, which is printed in landscape."""


@pytest.mark.parametrize("columns", [4, 13, 40])
def test_a_sweep_is_printed_on_a4_without_cut_columns(browser: Browser, tmp_path: Path, columns: int) -> None:
    """Every cell lies within the page, and only where there are many columns are words broken."""
    page = tmp_path / "report.html"
    points = reports.estimates(tmp_path, ["x < 1", "x < 2"])
    page.write_text(sweep_page(tmp_path, "sweep", points, [], []), encoding="utf-8")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shape = {"width": int(A4 / 25.4 * 96), "height": 700, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)
    try:
        browser.driver.get(page.as_uri())
        browser.run(WIDER, columns)
        right, width = browser.run(
            "const cells = [...document.querySelectorAll('.sortable th, .sortable td')];"
            "return [Math.max(...cells.map(c => c.getBoundingClientRect().right)), document.body.clientWidth];"
        )
        assert right <= width + 1
        printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
        pages = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", base64.b64decode(printed["data"]))
        assert {tuple(round(float(side)) for side in each) for each in pages} == {(842, 595)}
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


WIDER = """
const table = document.querySelector(".sortable");
for (const row of table.rows) {
  while (row.cells.length > 2) row.deleteCell(-1);
  for (let k = row.cells.length; k < arguments[0]; k++) {
    const cell = row.appendChild(document.createElement(row.rowIndex ? "td" : "th"));
    cell.textContent = row.rowIndex ? "0.000123" : "privacy delta at 2 eps";
    if (row.rowIndex) cell.className = "num";
  }
}
table.classList.toggle("many", arguments[0] > 14);
"""
"""Makes a table with so many columns, as the template would."""
