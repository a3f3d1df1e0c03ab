"""`postflow mailbox`: shows the mails that Publisher has written into a folder, which it does in development."""

import argparse
import sys
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

from postflow_cli.subcommand import Subcommands, complain
from postflow_cli.text import printable

_FOLDER = ".postflow/mail"
_DESCRIPTION = """Shows the newest mails of a folder, oldest first, or one of them as a whole. With the setting MAIL_URL
file:///folder Publisher writes its mails there instead of sending them; `make run` does so."""


def add_to(commands: Subcommands) -> None:
    parser = commands.add_parser("mailbox", help="show mails that were written into a folder", description=_DESCRIPTION)
    parser.add_argument("id", nargs="?", default="", help="the beginning of a mail's id: show all of that mail")
    parser.add_argument("--folder", type=Path, default=Path(_FOLDER), help=f"where the mails are (default: {_FOLDER})")
    parser.add_argument("--count", type=int, default=10, metavar="N", help="the most mails to list (default: 10)")
    parser.set_defaults(run=run, program=parser.prog)


def run(options: argparse.Namespace) -> int:
    files = sorted(options.folder.glob("*.eml"), key=lambda file: (file.stat().st_mtime_ns, file.name))
    if options.id:
        files = [file for file in files if file.name.startswith(options.id)]
    if not files:
        return complain(options.program, f"{options.folder} has no such mail", 1)
    for file in files[-max(options.count, 1) :]:
        message = message_from_bytes(file.read_bytes(), policy=policy.default)
        sys.stdout.write(_whole(message) if options.id else _line(file, message))
    return 0


def _line(file: Path, message: EmailMessage) -> str:
    shown = (file.stem[:8], message["Date"], message["To"], message["Subject"])
    return "  ".join(printable(each or "") for each in shown) + "\n"


def _whole(message: EmailMessage) -> str:
    head = [f"{name}: {printable(message[name] or '')}" for name in ("From", "To", "Date", "Subject", "Message-ID")]
    body = message.get_body(("plain",))
    text = "" if body is None else str(body.get_content())
    return "\n".join([*head, "", *map(printable, text.splitlines()), "", ""])
