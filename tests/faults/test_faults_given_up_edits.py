"""Drafts dies during an edit that is never repeated: the approved text still goes out."""

from contextlib import suppress

import grpc
import pytest

from devstack.stack import Stack
from drafts_service.application.update_draft import INTENDED, WITHDRAWN
from testkit.eventually import eventually
from testkit.stack.posting import PATIENCE, Posting


@pytest.mark.parametrize("place", [INTENDED, WITHDRAWN])
async def test_the_approved_text_goes_out_after_its_edit_was_given_up(
    stack: Stack, posting: Posting, place: str
) -> None:
    await stack.restart("drafts", {"POSTFLOW_DRAFTS_FAILPOINTS": f"{place}=kill"})
    await posting.tenant.clients.ready()
    await posting.schedule("post", ahead=4)
    with suppress(grpc.aio.AioRpcError):
        await posting.tenant.change_text("post", "Never repeated")
    await eventually(lambda: not stack.running("drafts"), within=PATIENCE)
    await stack.start("drafts", {"POSTFLOW_DRAFTS_FAILPOINTS": ""})
    await posting.tenant.clients.ready()
    await eventually(lambda: len(posting.effects()) == 1, within=PATIENCE)
    await posting.check_all_published()
    draft = await posting.tenant.draft("post")
    assert draft.approved
    assert posting.effects()[0]["text"] == draft.content.text != "Never repeated"
