"""The label sheet in a real browser, from file://: by keys alone, two raters, saved and read."""

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import label_sheet
from hfd.files import read_json
from hfd.judge.labels import read_labels
from tests.judge.test_report_in_chromium import browser, wait  # noqa: F401  a fixture

pytestmark = pytest.mark.system


@pytest.fixture
def sheet(world, honest, tmp_path):
    out = tmp_path / "标注"
    label_sheet.main(
        ["--manifest", str(world.root / "data/manifest.jsonl"), "--root", str(world.root),
         "--results", str(honest.parent), "--models", "talker", "--nonce", "w", "--out", str(out)]
    )  # fmt: skip
    return out


def label(browser, rater, turns):  # noqa: F811
    """Mark every clip by keys alone: an answer, and an onset 1.5 s in."""
    browser.execute_script("localStorage.clear(); labels = {}; open(0);")
    name = browser.find_element(By.ID, "rater")
    name.clear()
    name.send_keys(rater, Keys.ENTER)
    body = browser.find_element(By.TAG_NAME, "body")
    for key in turns:
        wait(browser, lambda: browser.execute_script("return audio.readyState > 0"))
        body.send_keys(key, 3 * Keys.ARROW_RIGHT)
        wait(browser, lambda: browser.execute_script("return !audio.seeking"))
        body.send_keys("m", Keys.ENTER)
    body.send_keys("s")


def test_two_raters_label_a_sheet_by_keys_and_the_audit_reads_their_files(sheet, browser):  # noqa: F811
    key = read_json(next(sheet.glob("key_*.json")))
    browser.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(sheet)}
    )
    browser.get(next(sheet.glob("sheet_*.html")).as_uri())
    wait(browser, lambda: browser.execute_script("return document.body.dataset.ready"))
    body = browser.find_element(By.TAG_NAME, "body")
    body.send_keys("s")
    assert "your name" in browser.find_element(By.ID, "message").text
    label(browser, "Ann", "112300")
    assert f"6 of 6 · {6} done" in browser.find_element(By.ID, "place").text
    label(browser, "鲍 勃", "112301")
    files = wait(browser, lambda: (f := sorted(sheet.glob("labels_*.json"))) and len(f) == 2 and f)
    assert files[0].name == f"labels_{key['sheet']}_Ann.json"
    found = read_labels(sheet)
    assert set(found.marks) == {"Ann", "鲍 勃"}
    in_order = [found.marks["Ann"][one["name"]] for one in key["clips"]]
    assert [mark.turn for mark in in_order] == ["held", "held", "pause", "speech", None, None]
    assert all(abs(mark.onset_s - 1.5) < 0.05 for mark in in_order)
    assert not [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]


def test_a_clip_plays_and_the_page_speaks_chinese(sheet, browser):  # noqa: F811
    browser.get(next(sheet.glob("sheet_*.html")).as_uri())
    wait(browser, lambda: browser.execute_script("return document.body.dataset.ready"))
    browser.find_element(By.TAG_NAME, "body").send_keys(" ")
    wait(browser, lambda: browser.execute_script("return audio.currentTime > 0.3"))
    browser.find_element(By.TAG_NAME, "body").send_keys(" ")
    assert browser.execute_script("return audio.paused")
    strip = browser.find_element(By.ID, "strip")
    webdriver.ActionChains(browser).move_to_element(strip).click().perform()
    middle = "return Math.abs(audio.currentTime - clip().seconds / 2) < 0.2"
    wait(browser, lambda: browser.execute_script(middle))
    browser.find_element(By.ID, "language").click()
    assert browser.find_element(By.TAG_NAME, "h1").text == "谁在抢话，何时开始？"
    browser.find_element(By.ID, "silent").click()
    assert browser.find_element(By.ID, "onset").text == "没有语音"
