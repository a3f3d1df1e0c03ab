"""What Publisher answers to a withdrawal."""

from dataclasses import dataclass

from drafts_service.domain.post_job import PostJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """With nothing published, no revision below this one starts any more; otherwise nothing was forbidden."""

    below: int
    in_flight: tuple[str, ...] = ()  # post jobs whose older text is being sent or may be out
    published: tuple[PostJob, ...] = ()

    @property
    def clears(self) -> bool:
        """No older text is in flight or out."""
        return not (self.in_flight or self.published)
