"""`postflow mailbox` shows the mails of a folder, and nothing in them commands the terminal."""

import os
import subprocess
import sysconfig
from pathlib import Path

import pytest


def mailbox(folder: Path, *arguments: str) -> tuple[int, str, str]:
    script = Path(sysconfig.get_path("scripts"), "postflow")
    done = subprocess.run(
        [script, "mailbox", "--folder", folder, *arguments], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(12):
        file = tmp_path / f"{number:08d}-mail.eml"
        file.write_text(f"To: ann@example.com\nSubject: mail {number}\nDate: today\n\nLine of {number}\n\x1b[31mred\n")
        os.utime(file, (number, number))
    (tmp_path / ".partial").write_text("half a mail")
    return tmp_path


def test_the_newest_mails_are_listed_oldest_first(folder: Path) -> None:
    code, out, _ = mailbox(folder, "--count", "3")
    assert code == 0
    assert [line.rpartition("  ")[2] for line in out.splitlines()] == ["mail 9", "mail 10", "mail 11"]
    assert len(mailbox(folder)[1].splitlines()) == 10


def test_one_mail_is_shown_as_a_whole(folder: Path) -> None:
    code, out, _ = mailbox(folder, "00000007")
    assert code == 0
    assert "Subject: mail 7" in out
    assert "Line of 7" in out
    assert "\x1b" not in out


def test_a_mail_that_is_not_there_is_named(tmp_path: Path) -> None:
    for arguments in ((), ("x",)):
        code, out, err = mailbox(tmp_path / "nowhere", *arguments)
        assert (code, out) == (1, "")
        assert "nowhere has no such mail" in err
