import argparse
from pathlib import Path

import pytest

from devstack.layout import SERVICES
from testkit.stack.mixed_run import programs


def test_a_checkout_that_was_not_set_up_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(
        argparse.ArgumentTypeError, match=r"there is no .*/\.venv/bin/postflow-schedule: run tools/boot"
    ):
        programs(str(tmp_path))


def test_the_programs_of_a_checkout_are_found(tmp_path: Path) -> None:
    scripts = tmp_path / ".venv/bin"
    scripts.mkdir(parents=True)
    for service in SERVICES:
        (scripts / f"postflow-{service}").touch()
    assert programs(str(tmp_path)) == scripts
