"""A mail that is ready to be sent, and the ways in which it can leave."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from publisher_service.domain.delivery import Accepted, NotAccepted, Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    # Of its delivery: the same in every attempt.
    id: str
    sender: str
    recipient: str
    content: bytes


class Mailer(Protocol):
    async def send(self, mail: Mail) -> Result:
        """Makes one attempt, which ends in time."""
        ...


class FolderMailer:
    """Writes mails into a folder, for development. A repeated mail replaces the first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def send(self, mail: Mail) -> Result:
        try:
            await asyncio.to_thread(self._write, mail)
        except OSError as error:
            return NotAccepted(reason="FOLDER", message=f"the folder of mails cannot be written: {error.strerror}")
        return Accepted()

    def _write(self, mail: Mail) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = self._folder / f".{mail.id}.{os.getpid()}"
        partial.write_bytes(mail.content)
        partial.chmod(0o600)
        partial.replace(self._folder / f"{mail.id}.eml")
