"""The consequences of a change of the channels of an account for its posts."""

from datetime import datetime

from publisher_service.adapters.postgres.jobs import find_job_of_channels
from publisher_service.adapters.postgres.parking import wake_offered
from publisher_service.domain.account import SocialAccount
from servicekit.faults import Refused
from servicekit.pg.database import Transaction


async def change_channels(tx: Transaction, known: SocialAccount, account: SocialAccount, *, now: datetime) -> None:
    """Refuses to take a channel from posts that have not ended; has those looked at that waited for a new one.

    The gate of the account is locked: a claim that has found the channel missing is over, or looks again.
    """
    key = (account.organization_id, account.id)
    if gone := sorted({*known.channels} - {*account.channels}):
        found = await find_job_of_channels(tx.connection, key, gone)
        if found is not None:
            job_id, channel = found
            raise Refused(
                "CHANNEL_IN_USE",
                f"posts of the account on {channel} have not ended",
                metadata={"channel": channel, "post_job_id": job_id},
            )
    await wake_offered(tx.connection, key, {*account.channels} - {*known.channels}, now=now)
