"""The report in a real browser, from file://: filter, sort, play, links, keys, sizes, themes."""

import json
import re
import shutil
import time

import pytest
import yaml
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

import audit
from hfd.judge.definitions import ALTERNATIVES
from tests.judge.cheats.times import played_before_it_arrived
from tests.judge.world import run_model

pytestmark = pytest.mark.system
_SWITCHES = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--autoplay-policy=no-user-gesture-required",
)  # fmt: skip


@pytest.fixture(scope="module")
def report(world, honest, tmp_path_factory):
    """The audit of an honest model, a hasty one, and one that plays sound before it arrived."""
    root = tmp_path_factory.mktemp("report") / "报告 1's"
    for name in ("talker", "cheat"):
        shutil.copytree(honest, root / "results" / name)
    played_before_it_arrived(root / "results" / "cheat")
    shutil.copytree(run_model(world, "hasty-report", silence_s=0.3), root / "results" / "hasty")
    names = ("talker", "hasty", "cheat", "idle")
    entries = {name: {"module": "test", "voice_origin": "native_talker"} for name in names}
    (root / "models.yaml").write_text(yaml.safe_dump({"models": entries}))
    audit.main(
        ["--manifest", str(world.root / "data/manifest.jsonl"), "--root", str(world.root),
         "--results", str(root / "results"), "--models-file", str(root / "models.yaml"),
         "--out", str(root / "results/audit"), "--jobs", "1"]
    )  # fmt: skip
    return root / "results/audit"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    for switch in (*_SWITCHES, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options)
    yield driver
    driver.quit()


@pytest.fixture
def page(browser, report):
    """Open a page of the report; after the test the console must be empty."""

    def show(address, width=1300, height=1000):
        browser.set_window_size(width, height)
        browser.get("about:blank")
        browser.get(f"{(report / 'index.html').as_uri().rsplit('/', 1)[0]}/{address}")
        wait(browser, lambda: browser.execute_script("return document.body.dataset.ready"))
        return browser

    yield show
    assert [line for line in browser.get_log("browser") if line["level"] == "SEVERE"] == []


def wait(browser, condition):
    return WebDriverWait(browser, 10, 0.05).until(lambda _: condition())


def shown(browser):
    rows = browser.find_elements(By.CSS_SELECTOR, "#table .tabulator-row")
    return [
        [cell.text for cell in row.find_elements(By.CSS_SELECTOR, ".tabulator-cell")]
        for row in rows
    ]


def test_the_search_and_the_lists_filter_the_table(page, world):
    browser = page("index.html")
    assert len(shown(browser)) == 4 * len(world.samples)
    browser.find_element(By.ID, "q").send_keys("犹豫")
    wait(browser, lambda: len(shown(browser)) == 4)
    browser.find_element(By.CSS_SELECTOR, "#f-model option[value=hasty]").click()
    wait(browser, lambda: len(shown(browser)) == 1)
    assert "model=hasty" in browser.current_url


def test_a_deep_link_restores_filter_and_sort(page, world):
    browser = page("index.html#model=talker&sort=h9&dir=desc")
    rows = shown(browser)
    latencies = [float(row[5]) for row in rows if row[5]]
    assert {row[1] for row in rows} == {"talker"} and len(rows) == len(world.samples)
    assert latencies == sorted(latencies, reverse=True)


def test_a_click_on_a_heading_sorts_and_the_address_remembers(page):
    browser = page("index.html")
    browser.find_element(By.CSS_SELECTOR, ".tabulator-col[tabulator-field=h9]").click()
    wait(browser, lambda: "sort=h9" in browser.current_url)
    latencies = [float(row[5]) for row in shown(browser) if row[5]]
    assert latencies == sorted(latencies)


def test_a_failed_rule_leads_to_its_reason_and_its_samples(page, world):
    browser = page("index.html")
    cell = browser.find_element(By.CSS_SELECTOR, "[aria-label='cheat A9 fail']")
    cell.click()
    wait(browser, lambda: {row[1] for row in shown(browser)} == {"cheat"})
    assert "earlier than the queue allows" in browser.find_element(By.ID, "reason").text
    assert all("A9" in row[4].split() for row in shown(browser))
    honest = browser.find_elements(By.CSS_SELECTOR, "[aria-label^='talker'][aria-label$='fail']")
    assert honest == []


def test_a_card_says_what_ran_and_its_headline(page, report):
    browser = page("index.html")
    card = browser.find_element(By.CSS_SELECTOR, ".model-card[data-model=talker]").text
    summary = json.loads((report / "summary.json").read_text())
    rate = next(
        row
        for row in summary["metrics"]
        if row["model"] == "talker" and row["metric"] == "h1_gap_takeover" and row["by"] == "all"
        and row["denominator"] == "strict"
    )  # fmt: skip
    assert f"{100 * rate['value']:.0f} %" in card and f"n {rate['n']}" in card
    assert "bfloat16" in card and "virtual" in card


def test_a_model_that_never_ran_is_one_folded_line(page):
    browser = page("index.html")
    assert not browser.find_elements(By.CSS_SELECTOR, ".model-card[data-model=idle]")
    never = browser.find_element(By.ID, "never")
    assert never.text.endswith("idle") and never.get_attribute("open") is None


def test_the_comparison_follows_denominator_and_samples(page):
    browser = page("index.html")
    row = "//table[@id='metrics']//tr[th[contains(., 'H1 ')]]"
    strict = browser.find_element(By.XPATH, row).text
    assert len(browser.find_elements(By.XPATH, f"{row}//*[name()='circle']")) == 3
    part = browser.find_element(By.CSS_SELECTOR, "#stratum option[value='task:hesitation']")
    part.click()
    assert "H9" in browser.find_element(By.ID, "metrics").text
    assert "H6" not in browser.find_element(By.ID, "metrics").text
    browser.find_element(By.CSS_SELECTOR, "#stratum option[value='all:all']").click()
    assert browser.find_element(By.XPATH, row).text == strict
    primary = browser.find_element(By.CSS_SELECTOR, "#paired tr.primary").text
    assert "H1 " in primary and "primary endpoint" in primary


def test_the_rates_under_other_definitions_are_shown_beside_the_stated_one(page, report):
    browser = page("index.html")
    table = browser.find_element(By.ID, "sensitivity")
    rows = table.find_elements(By.TAG_NAME, "tr")
    assert len(rows) == len(ALTERNATIVES) + 2 and "as in every other table" in rows[1].text
    browser.find_element(By.CSS_SELECTOR, "#sensitivity-metric option[value=h11_responded]").click()
    known = json.loads((report / "summary.json").read_text())["sensitivity"]
    wanted = next(
        row for row in known
        if (row["model"], row["definition"], row["metric"])
        == ("hasty", "margin 0 s", "h11_responded")
    )  # fmt: skip
    row = browser.find_element(
        By.XPATH, "//table[@id='sensitivity']//tr[contains(., 'margin 0 s')]"
    )
    assert f"{100 * wanted['value']:.1f} %" in row.text and f"n {wanted['n']}" in row.text
    for place in ("dots-hint", "paired-hint", "sensitivity"):
        assert "margin 0.25 s" in browser.find_element(By.ID, place).text
    browser.find_element(By.ID, "language").click()
    assert "容差 0.25 s" in table.text and "其他各表所用" in table.text
    browser.find_element(By.ID, "language").click()


def test_without_the_primary_endpoint_another_rate_is_chosen(page):
    browser = page("index.html")
    chosen = browser.execute_script(
        "data.sensitivity = data.sensitivity.filter((r) => r.metric === 'h11_responded');"
        "fillSensitivity(); return document.getElementById('sensitivity-metric').value;"
    )
    assert chosen == "h11_responded"


def test_keys_move_through_the_table_and_open_a_sample(page, world):
    browser = page("index.html#model=talker")
    browser.find_element(By.TAG_NAME, "body").send_keys("jj")
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, ".tabulator-row.here"))
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.ENTER)
    wait(browser, lambda: "sample.html" in browser.current_url)
    wait(browser, lambda: browser.execute_script("return document.body.dataset.ready"))
    assert browser.find_element(By.ID, "id").text == world.samples[1].sample_id


def cursor(browser):
    return browser.execute_script(
        "const c = document.getElementById('cursor');"
        "return c.hidden ? null : [parseFloat(c.style.left), Number(c.dataset.time)]"
    )


@pytest.mark.realtime
def test_playing_moves_the_cursor_along_the_strip(page):
    browser = page("sample.html#id=s03&model=hasty")
    assert (
        browser.find_element(By.CSS_SELECTOR, ".card.playing").get_attribute("data-model")
        == "hasty"
    )
    before = wait(browser, lambda: cursor(browser))
    browser.find_element(By.TAG_NAME, "body").send_keys(" ")
    wait(browser, lambda: cursor(browser)[1] > before[1] + 0.7)
    browser.find_element(By.TAG_NAME, "body").send_keys(" ")
    after = cursor(browser)
    assert after[0] > before[0] + 20
    time.sleep(0.3)
    assert abs(cursor(browser)[1] - after[1]) < 0.2, "the space key stops it again"


def test_a_click_on_the_strip_and_on_a_word_seeks(page):
    browser = page("sample.html#id=s03&model=talker")
    strip = browser.find_element(By.ID, "strip-box")
    webdriver.ActionChains(browser).move_to_element_with_offset(strip, 100, 0).click().perform()
    wait(browser, lambda: cursor(browser)[1] > 3)
    word = browser.find_element(By.CSS_SELECTOR, "[data-model=talker] .deltas button:last-child")
    said = float(word.get_attribute("title").split()[0])
    word.click()
    wait(browser, lambda: said - 0.05 < cursor(browser)[1] < said + 2)
    browser.find_element(By.TAG_NAME, "body").send_keys("2")
    chosen = browser.find_element(By.CSS_SELECTOR, ".card.playing")
    assert chosen.get_attribute("data-model") == "hasty"


def test_a_deep_link_to_a_moment_in_a_chinese_sample(page, world):
    name = world.samples[0].sample_id
    browser = page(f"sample.html#id={name}&t=2.5")
    assert browser.find_element(By.ID, "id").text == name
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "#context .lines path"))
    wait(browser, lambda: abs(cursor(browser)[1] - 2.5) < 0.05)
    assert "不，有几个人？" in browser.find_element(By.ID, "events").text


def test_a_chinese_page_gives_every_reason_in_chinese(page, report):
    browser = page("index.html")
    rules = json.loads((report / "summary.json").read_text())["rules"]
    told = sorted({verdict["reason"] for of in rules.values() for verdict in of.values()})
    browser.find_element(By.ID, "language").click()
    shown = browser.execute_script("return arguments[0].map(reasonText)", told)
    browser.find_element(By.ID, "language").click()
    left = {text for text in shown if not re.search("[\u4e00-\u9fff]", text)}
    assert left <= {"talker (bfloat16)"} and len(shown) > 20  # names have no translation
    assert browser.execute_script("return arguments[0].map(reasonText)", told) == told


@pytest.mark.parametrize("address", ["index.html", "sample.html#id=s03"])
@pytest.mark.parametrize(("width", "height"), [(500, 900), (2560, 1300)])
def test_nothing_overflows_on_narrow_and_wide_screens(page, address, width, height):
    browser = page(address, width, height)
    if width == 500:  # the window itself cannot be narrower; the page can
        metrics = {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": True}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    time.sleep(0.4)
    inner, scroll = browser.execute_script(
        "return [document.documentElement.clientWidth, document.documentElement.scrollWidth]"
    )
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert scroll <= inner


def test_themes_and_languages_change_everything_that_is_drawn(page):
    browser = page("index.html")
    colours = (
        "return [getComputedStyle(document.body).backgroundColor,"
        " document.querySelector('#ecdf .xtick text').style.fill]"
    )
    wait(
        browser,
        lambda: browser.execute_script("return !!document.querySelector('#ecdf .xtick text')"),
    )
    light = browser.execute_script(colours)
    browser.find_element(By.ID, "theme").click()
    wait(browser, lambda: browser.execute_script(colours)[1] != light[1])
    assert browser.execute_script(colours)[0] != light[0]
    browser.find_element(By.ID, "language").click()
    assert browser.find_element(By.TAG_NAME, "h1").text == "全双工运行审计"
    assert browser.execute_script("return document.documentElement.lang") == "zh-CN"
    drawn = "return ['lag', 'context'].map((id) => document.querySelectorAll(`#${id} path`).length)"
    wait(browser, lambda: all(browser.execute_script(drawn)))
    browser.find_element(By.ID, "language").click()
    browser.find_element(By.ID, "theme").click()
