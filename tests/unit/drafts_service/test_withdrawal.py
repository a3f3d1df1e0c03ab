"""Publisher's answer to a withdrawal."""

import pytest

from drafts_service.domain.post_job import JobState, PostJob
from drafts_service.domain.target import Target
from drafts_service.domain.withdrawal import WithdrawalAnswer

OUT = PostJob(
    organization_id="org",
    id="job",
    draft_id="draft",
    version=1,
    target=Target(social_account_id="page", channel="facebook"),
    state=JobState.PUBLISHED,
)


@pytest.mark.parametrize(
    ("in_flight", "published", "clears"),
    [((), (), True), (("job",), (), False), ((), (OUT,), False), (("other",), (OUT,), False)],
)
def test_an_answer_clears_a_draft_with_no_older_text_in_flight_or_out(
    in_flight: tuple[str, ...], published: tuple[PostJob, ...], clears: bool
) -> None:
    assert WithdrawalAnswer(below=2, in_flight=in_flight, published=published).clears is clears
