from dataclasses import dataclass
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicekit.run.settings import SettingsError, load
from topology import (
    EVENTS,
    PARTITIONS,
    PUBLISH,
    StreamSettings,
    event_consumer,
    events_subject,
    partition,
    publish_consumers,
    publish_subject,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service(StreamSettings):
    listen: str = ""
    metrics_listen: str = ""


IDS = st.text("abcdefgXYZ0123456789_-", min_size=1, max_size=64)


@given(st.integers(1, PARTITIONS))
def test_every_partition_belongs_to_exactly_one_durable(durables: int) -> None:
    specs = publish_consumers(durables)
    assert len({spec.durable for spec in specs}) == durables
    if durables == 1:
        assert specs[0].filter_subjects == ("publish.>",)
        return
    covered = [subject for spec in specs for subject in spec.filter_subjects]
    assert sorted(covered) == sorted(f"publish.{token}.>" for token in range(PARTITIONS))


@given(st.integers(1, PARTITIONS), st.integers(1, PARTITIONS))
def test_two_layouts_share_no_durable(one: int, other: int) -> None:
    names, other_names = ({spec.durable for spec in publish_consumers(number)} for number in (one, other))
    assert one == other or not names & other_names


@given(st.integers(1, PARTITIONS))
def test_every_durable_knows_its_whole_layout(durables: int) -> None:
    specs = publish_consumers(durables)
    assert all(spec.layout == {each.durable for each in specs} for spec in specs)


@pytest.mark.parametrize("durables", [0, -1, PARTITIONS + 1])
def test_an_impossible_number_of_durables_is_refused(durables: int) -> None:
    with pytest.raises(ValueError, match="partitions"):
        publish_consumers(durables)


@given(IDS, IDS)
def test_an_account_always_has_the_same_partition(organization: str, account: str) -> None:
    assert 0 <= partition(organization, account) < PARTITIONS
    subject = publish_subject(organization, account)
    assert subject == f"publish.{partition(organization, account)}.{organization}"


def test_known_partitions_do_not_change() -> None:
    """Checks values that are stored in streams: a held command keeps its subject."""
    assert [partition("acme", f"account-{number}") for number in range(6)] == [1, 23, 45, 59, 24, 14]


def test_accounts_spread_over_the_partitions() -> None:
    counts = [0] * PARTITIONS
    for number in range(6400):
        counts[partition("acme", f"account-{number}")] += 1
    assert min(counts) > 50
    assert max(counts) < 200


def test_subjects_of_events_have_context_and_kind() -> None:
    """Releases before 0.2 put the organization between them. A consumer of either reads the events of both."""
    assert events_subject("publisher", "post_job") == "events.publisher.post_job"
    assert event_consumer("drafts", "publisher", "queue").filter_subjects == ("events.publisher.>", "events.queue.>")


def test_streams_have_the_limits_of_the_environment() -> None:
    environ = {
        "POSTFLOW_STREAM_REPLICAS": "3",
        "POSTFLOW_EVENTS_MAX_BYTES": "-1",
        "POSTFLOW_EVENTS_MAX_AGE": "3600",
        "POSTFLOW_PUBLISH_MAX_BYTES": "1000",
        "POSTFLOW_QUEUE_PUBLISH_MAX_MESSAGES": "10",
    }
    settings = load(Service, "queue", environ)
    events, publish = settings.events_stream, settings.publish_stream
    assert (events.replicas, events.max_bytes, events.max_age) == (3, -1, timedelta(hours=1))
    assert (publish.replicas, publish.max_bytes, publish.max_messages) == (3, 1000, 10)


def test_the_default_command_stream_has_room_for_all_durables() -> None:
    settings = load(Service, "queue", {})
    assert (settings.events_stream, settings.publish_stream) == (EVENTS, PUBLISH)
    assert 0 < EVENTS.max_bytes < 2**33, "the server reserves it, on a laptop too"
    assert PUBLISH.work_queue
    assert PUBLISH.max_messages > 10_000 * PARTITIONS


@pytest.mark.parametrize("variable", ["STREAM_REPLICAS", "EVENTS_MAX_BYTES", "PUBLISH_MAX_BYTES"])
def test_a_stream_without_room_is_refused(variable: str) -> None:
    with pytest.raises(SettingsError, match=f"^POSTFLOW_QUEUE_{variable}: 0 is n"):
        load(Service, "queue", {f"POSTFLOW_QUEUE_{variable}": "0"})


def test_an_even_number_of_replicas_is_refused() -> None:
    with pytest.raises(SettingsError, match="POSTFLOW_STREAM_REPLICAS: 2 is none of 1, 3, 5"):
        load(Service, "queue", {"POSTFLOW_STREAM_REPLICAS": "2"})
