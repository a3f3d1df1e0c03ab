"""Turns of lines: whose first post is claimed next, and that no command overtakes a line."""

from datetime import timedelta

from postflow.bus.v1.bus_pb2 import Envelope
from postflow.publisher.v1.publisher_events_pb2 import CommandsAccepted, PostJobChanged
from publisher_service.adapters.postgres.lines import lock_due_lines
from publisher_service.domain.claim import Lane
from testkit.readers import all_readers_held
from tests.usecase.publisher_service.replica import DUE, Replica, a_command, a_draft, a_sent, claims_in


async def test_a_line_whose_first_post_is_refused_has_its_next_turn_at_once(replica: Replica) -> None:
    names = await replica.posts(3, account="page")
    answers = await replica.claim([a_command(name, "page") for name in names])
    for name in names:
        await replica.withdraw("acme", name, 2)
    await replica.settle([a_sent(each) for each in claims_in(answers)])
    turns = [await replica.turns() for _ in range(3)]
    assert [(len(each.claimed), each.more) for each in turns] == [(0, True), (0, True), (0, False)]
    assert await replica.states() == {"PUBLISHED": 1, "BLOCKED WITHDRAWN": 2}
    assert await replica.rows("select 1 from account_gate where lined or wake_time is not null") == []


async def test_a_command_does_not_overtake_a_line(replica: Replica, another: Replica) -> None:
    *names, last = await replica.posts(4, account="page")
    answers = await replica.claim([a_command(name, "page") for name in names])
    await replica.settle([a_sent(each) for each in claims_in(answers)])
    assert claims_in(await another.claim([a_command(last, "page")])) == []
    assert await replica.states() == {"PUBLISHED": 1, "READY IN_LINE": 3}
    assert len(await replica.next_in_line()) == 1


async def test_a_line_has_its_turn_beside_a_thousand_of_one_organization(replica: Replica) -> None:
    await replica.write(
        """
        insert into account_gate (organization_id, social_account_id, provider, connected, lined, wake_time)
        select organization_id, 'page-' || n, 'sandbox', true, true, cast(:due as timestamptz) + n * interval '1 second'
        from generate_series(1, 1300) n, lateral (
            select case when n <= 1200 then 'm' when n <= 1250 then 'b' || n else 'z' || n end as organization_id
        ) o
        """,
        due=DUE,
    )
    lanes = [Lane(provider="sandbox", room=101, lease=timedelta(seconds=15))]
    async with replica.database.transaction() as tx:
        due = await lock_due_lines(tx.connection, lanes, now=DUE + timedelta(hours=1), most=200)
    assert len(set(due)) == len({organization for organization, _ in due}) == 101


async def test_turns_go_round_organizations_within_each_providers_room(replica: Replica) -> None:
    for organization, provider, count, minute in (("big", "a", 9, 0), ("small", "a", 1, 9), ("other", "b", 9, 0)):
        await replica.write(
            """
            insert into account_gate (organization_id, social_account_id, provider, connected, lined, wake_time)
            select cast(:organization as text), 'page-' || n, cast(:provider as text), true, true,
                cast(:due as timestamptz) + n * interval '1 second'
            from generate_series(1, cast(:count as integer)) n
            """,
            organization=organization,
            provider=provider,
            count=count,
            due=DUE + timedelta(minutes=minute),
        )
    lanes = [Lane(provider=name, room=room, lease=timedelta(seconds=15)) for name, room in (("a", 3), ("b", 2))]
    async with replica.database.transaction() as tx:
        due = await lock_due_lines(tx.connection, lanes, now=DUE + timedelta(hours=1), most=100)
    assert sorted(due) == [
        ("big", "page-1"),
        ("big", "page-2"),
        ("other", "page-1"),
        ("other", "page-2"),
        ("small", "page-1"),
    ]


async def test_a_crowded_organization_has_no_turn_and_takes_no_share(replica: Replica) -> None:
    await replica.write(
        """
        insert into account_gate (organization_id, social_account_id, provider, connected, lined, wake_time)
        select o.id, p.name || '-' || n, p.name, true, true, cast(:due as timestamptz) + n * interval '1 second'
        from (values ('big'), ('small')) as o (id), (values ('a'), ('b')) as p (name), generate_series(1, 4) n
        """,
        due=DUE,
    )
    lanes = [
        Lane(provider="a", room=4, lease=timedelta(seconds=15), crowded=("big",)),
        Lane(provider="b", room=2, lease=timedelta(seconds=15)),
    ]
    async with replica.database.transaction() as tx:
        due = await lock_due_lines(tx.connection, lanes, now=DUE + timedelta(hours=1), most=100)
    assert sorted(due) == [("big", "b-1"), *(("small", f"a-{n}") for n in (1, 2, 3, 4)), ("small", "b-1")]


async def test_lines_have_their_turns_while_lists_hold_all_readers(replica: Replica) -> None:
    names = await replica.posts(2, account="page")
    answers = await replica.claim([a_command(name, "page") for name in names])
    await replica.settle([a_sent(each) for each in claims_in(answers)])
    async with all_readers_held(replica.database):
        due, now = await replica.claims.next_turn(replica.lanes)
    assert due is not None
    assert due <= now


async def test_a_post_without_a_slot_is_announced_by_itself(replica: Replica) -> None:
    """Queue knows commands by their slots, and would not apply an event with one that has none."""
    await replica.posts(3, account="page")
    assert len(claims_in(await replica.claim([a_command("d0", "page")]))) == 1
    await replica.publish(a_draft("d1", "page"))
    assert claims_in(await replica.claim([*(await replica.recover()).due, a_command("d2", "page")])) == []
    assert await replica.states() == {"SENDING": 1, "READY IN_LINE": 2}

    events = [
        event
        for row in await replica.rows("select payload from outbox order by position")
        for event in Envelope.FromString(row.payload).events
    ]
    (accepted,) = (each for each in events if each.type == CommandsAccepted.DESCRIPTOR.full_name)
    assert [each.draft_id for each in CommandsAccepted.FromString(accepted.payload).commands] == ["d2"]
    job = PostJobChanged.FromString(events[-1].payload).post_job
    assert (job.draft_id, job.slot_id, job.state_reason) == ("d1", "", "IN_LINE")
