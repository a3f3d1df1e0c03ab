"""Containers of the sandbox provider: posts that are processed first and then published, each once.

All that a container is follows from its line in the ledger, the clock and the posts, so a restart forgets nothing.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from devstack.sandbox.checks import Refusal
from devstack.sandbox.journal import Journal
from devstack.sandbox.posts import Mode, Post, Posts, Surface

IN_PROGRESS = "IN_PROGRESS"
FINISHED = "FINISHED"
PUBLISHED = "PUBLISHED"
EXPIRED = "EXPIRED"
ERROR = "ERROR"


class Containers:
    def __init__(self, journal: Journal, posts: Posts) -> None:
        self._journal = journal
        self._posts = posts
        self._lines: dict[str, int] = {}
        for entry in journal.ledger.entries():
            if entry["kind"] == "container":
                self._lines[str(entry["id"])] = int(str(entry["seq"]))

    def make(self, post: Post, *, seconds: float, life: float, error: str) -> str:
        """Returns the id of a new container, which is processed for `seconds`; with an `error` that fails."""
        seq = self._journal.ledger.length + 1
        container = f"sc-{seq}"
        self._journal.write(
            {
                "kind": "container",
                "time": self._journal.time(),
                "id": container,
                "account": post.account,
                "channel": post.channel,
                "destination": post.destination,
                "idempotency_key": post.key,
                "text": post.text,
                "follows": post.follows,
                "seconds": seconds,
                "life": life,
                "error": error,
            }
        )
        self._lines[container] = seq
        return container

    def get(self, container: str) -> Mapping[str, object]:
        """Raises Refusal if there is none."""
        seq = self._lines.get(container)
        line = None if seq is None else self._journal.ledger.read(seq)
        if line is None:
            raise Refusal(404, "CONTAINER_NOT_FOUND", "there is no such container")
        return line

    def account_of(self, container: str) -> str:
        """Returns the account of a container; empty if there is none."""
        seq = self._lines.get(container)
        line = None if seq is None else self._journal.ledger.read(seq)
        return "" if line is None else str(line["account"])

    def status(self, line: Mapping[str, object]) -> str:
        if self._posts.of_container(str(line["id"])):
            return PUBLISHED
        age = self._journal.now() - datetime.fromisoformat(str(line["time"]))
        if age < timedelta(seconds=float(str(line["seconds"]))):
            return IN_PROGRESS
        if line["error"]:
            return ERROR
        return EXPIRED if age >= timedelta(seconds=float(str(line["life"]))) else FINISHED

    def publish(self, line: Mapping[str, object]) -> tuple[str, bool]:
        """Makes the post. Raises Refusal unless the container is FINISHED."""
        status = self.status(line)
        if status != FINISHED:
            raise Refusal(400, f"CONTAINER_{status}", f"the container is {status}, not {FINISHED}")
        return self._posts.publish(post_of(line), Mode.KEYED, self._journal.time())


def post_of(line: Mapping[str, object]) -> Post:
    return Post(
        account=str(line["account"]),
        channel=str(line["channel"]),
        destination=str(line["destination"]),
        text=str(line["text"]),
        key=str(line["idempotency_key"]),
        surface=Surface.CONTAINERS,
        container=str(line["id"]),
        follows=str(line.get("follows", "")),
    )
