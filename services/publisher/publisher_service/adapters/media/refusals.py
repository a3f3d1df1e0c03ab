"""The problems of a file that a draft names. No message has the query of its URL, which may be a signature."""

from publisher_service.domain.media import MediaProblem, MediaReason


class MediaTrouble(Exception):
    is_transient: bool

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message

    @property
    def problem(self) -> MediaProblem:
        return MediaProblem(reason=self.reason, message=self.message, is_transient=self.is_transient)


class MediaRefused(MediaTrouble):
    """A definite problem of the file, its URL or its server's answer: somebody has to change something."""

    is_transient = False


class MediaChanged(MediaRefused):
    """The file is another one than the one whose hash was given."""

    def __init__(self, message: str) -> None:
        super().__init__(MediaReason.MEDIA_CHANGED.value, message)


class MediaUnavailable(MediaTrouble):
    """A problem that may pass by itself: DNS, the network, a busy or broken server, no room here."""

    is_transient = True
