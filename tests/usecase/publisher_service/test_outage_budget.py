"""A provider that cannot be reached costs a handful of probes, not one for each post; its end is noticed soon."""

from datetime import timedelta

from devstack.sandbox.provider import Sandbox
from testkit.eventually import eventually
from tests.usecase.publisher_service.rig import Rig, Start

LONG_LINE, ACCOUNTS, EACH = 100, 20, 3
# What is out together when the outage begins, and a few probes.
SENDERS = 8
MOST_REQUESTS = SENDERS + 40


async def requests_in_vain(rig: Rig) -> int:
    (row,) = await rig.rows("select count(*) as n from attempt where error_reason = 'CONNECTION_REFUSED'")
    return int(row.n)


async def test_an_outage_costs_a_handful_of_probes_and_no_post(start: Start, sandbox: Sandbox) -> None:
    async with start(senders=SENDERS, retry_first=timedelta(seconds=1)) as rig:
        await rig.connect("page")
        for number in range(ACCOUNTS):
            await rig.connect(f"page{number}")
        port = sandbox.port
        await sandbox.stop()
        names = await rig.post_many(LONG_LINE)
        for number in range(ACCOUNTS):
            names += await rig.post_many(EACH, account=f"page{number}", prefix=f"p{number}-")

        async def is_down() -> bool:
            (row,) = await rig.rows("select count(*) as n from post_job where state in ('SCHEDULED', 'PENDING')")
            return int(row.n) == 0

        await eventually(is_down, within=30)
        before = await requests_in_vain(rig)
        assert before <= MOST_REQUESTS
        rows = await rig.rows("select state, count(*) as n from post_job group by 1")
        assert {row.state for row in rows} <= {"READY", "WAITING", "SENDING"}, rows
        await sandbox.start(port=port)
        await rig.all_in("PUBLISHED", len(names), within=30)
        assert await requests_in_vain(rig) <= MOST_REQUESTS
        assert len(rig.sandbox.effects()) == len(names)
        most = await rig.rows("select max(attempts) as n from post_job")
        assert most[0].n <= 3
