"""Media of posts: the facts of a file that a draft names by its URL, or the problem that it has."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from channels.validation import MediaKind


class MediaReason(StrEnum):
    """The reasons for which a file is refused, beside those for which its URL is."""

    MEDIA_CHANGED = "MEDIA_CHANGED"
    MEDIA_EMPTY = "MEDIA_EMPTY"
    MEDIA_ENCODED = "MEDIA_ENCODED"
    MEDIA_NOT_SERVED = "MEDIA_NOT_SERVED"
    MEDIA_REDIRECTED = "MEDIA_REDIRECTED"
    MEDIA_TOO_LARGE = "MEDIA_TOO_LARGE"
    MEDIA_TYPE_UNKNOWN = "MEDIA_TYPE_UNKNOWN"
    MEDIA_UNREADABLE = "MEDIA_UNREADABLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaFacts:
    """The facts of a file by its bytes, not by what its server says of them."""

    kind: MediaKind
    content_type: str
    size: int  # bytes
    sha256: str  # hexadecimal
    # As it is shown, after the rotation that the file asks for; 0 for documents and WebM.
    width: int = 0
    height: int = 0
    # Of a video, if it says so.
    duration: timedelta | None = None
    # Of a document, if it can be found without a parser; else 0.
    page_count: int = 0
    is_animated: bool = False
    # Its server declares another type. Providers that fetch the file themselves may refuse it.
    is_mislabeled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaProblem:
    """The problem of a file that cannot be used; the message is for the author of the draft."""

    reason: str
    message: str
    # It may work later, without anybody changing anything.
    is_transient: bool


Inspected = MediaFacts | MediaProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaCaps:
    """The largest file of each kind, in bytes."""

    image: int
    video: int
    document: int

    @property
    def largest(self) -> int:
        return max(self.image, self.video, self.document)

    def of(self, kind: MediaKind) -> int:
        match kind:
            case MediaKind.IMAGE:
                return self.image
            case MediaKind.VIDEO:
                return self.video
            case MediaKind.DOCUMENT:
                return self.document
