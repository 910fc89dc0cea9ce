"""Every setting stands in the README, and no other name does."""

import re
from pathlib import Path

from app.settings import PREFIX, Settings

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SETTINGS = {PREFIX + name.upper() for name in Settings.model_fields}


def test_every_setting_is_documented() -> None:
    missing = [name for name in sorted(SETTINGS) if not re.search(rf"\b{name}\b", README)]
    assert missing == []


def test_the_readme_names_no_setting_that_does_not_exist() -> None:
    named = set(re.findall(rf"\b{PREFIX}[A-Z_]*[A-Z]\b", README))
    assert named <= SETTINGS
