"""The browser that the tests of pages share."""

import pytest
from web import CHROMIUM, DRIVER, Browser, driver_process


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not (CHROMIUM and DRIVER):
        pytest.skip("needs Chromium and chromedriver (Debian: chromium chromium-driver)")
    with driver_process() as address:
        opened = Browser(address, tmp_path_factory.mktemp("profile"))
        yield opened
        opened.quit()
