"""What tests of every room share."""

import os
from pathlib import Path

import pytest

from app.inference.embedders.e5_files import converted_files


@pytest.fixture(scope="session")
def model_folder(pytestconfig: pytest.Config) -> Path:
    """The folder of converted models (`Settings(models=model_folder)`), with the embedded model in it.

    FOOTNOTE_MODELS names another than `.pytest_cache/models`, where later runs find it converted.
    """
    configured = os.environ.get("FOOTNOTE_MODELS")
    folder = Path(configured) if configured else pytestconfig.rootpath / ".pytest_cache" / "models"
    converted_files(folder)
    return folder
