"""Publisher's answer to a withdrawal."""

from dataclasses import dataclass

from drafts_service.domain.post_job import PostJob


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawalAnswer:
    """Publisher's answer to "send no revision of this draft below `below`".

    If nothing is published, no such revision is sent any more. If something is, Publisher has forbidden nothing.
    """

    below: int
    in_flight: tuple[str, ...] = ()  # post jobs whose older text is being sent or may be out
    published: tuple[PostJob, ...] = ()

    @property
    def clears(self) -> bool:
        """True if no older text is in flight or out."""
        return not (self.in_flight or self.published)
