from datetime import timedelta
from typing import Any, cast

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from servicekit.bus.delivery import Answers, Delivery, still_pending, stream_sequence

SHORT = "$JS.ACK.WORK.reader.3.41.57.1795003639032123974.12"
LONG = "$JS.ACK.domain.account.WORK.reader.3.41.57.1795003639032123974.12.token"


class Wire:
    """A connection that can be cut."""

    def __init__(self) -> None:
        self.is_connected = True
        self.stats = {"reconnects": 0}
        self.sent: list[tuple[str, bytes]] = []

    async def publish(self, subject: str, payload: bytes) -> None:
        assert self.is_connected
        self.sent.append((subject, payload))

    def cut(self) -> None:
        self.is_connected = False

    def mend(self) -> None:
        self.is_connected = True
        self.stats["reconnects"] += 1


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def answers(wire: Wire) -> Answers:
    return Answers(cast(Client, wire))


def _delivery(answers: Answers, reply: str = SHORT) -> Delivery:
    return Delivery(answers, Msg(cast(Any, None), subject="work.a", reply=reply, data=b"content"))


@pytest.mark.parametrize("reply", [SHORT, LONG])
def test_both_forms_of_the_reply_subject_are_read(answers: Answers, reply: str) -> None:
    assert stream_sequence(reply) == 41
    assert still_pending(reply) == 12
    assert _delivery(answers, reply).sequence == 41


async def test_an_answer_is_sent_at_once_on_a_working_connection(wire: Wire, answers: Answers) -> None:
    delivery = _delivery(answers)
    await delivery.in_progress()
    await delivery.retry_in(timedelta(seconds=0))
    await delivery.ack()
    await delivery.terminate()
    assert wire.sent == [(SHORT, b"+WPI"), (SHORT, b'-NAK {"delay": 1}'), (SHORT, b"+ACK"), (SHORT, b"+TERM")]


async def test_an_answer_waits_until_the_stream_is_known_to_be_the_same(wire: Wire, answers: Answers) -> None:
    wire.cut()
    await _delivery(answers).ack()
    wire.mend()
    await _delivery(answers, LONG).ack()
    assert not wire.sent
    await answers.resume()
    assert wire.sent == [(SHORT, b"+ACK"), (LONG, b"+ACK")]


async def test_the_last_answer_counts(wire: Wire, answers: Answers) -> None:
    answers.suspend()
    delivery = _delivery(answers)
    await delivery.retry_in(timedelta(hours=1))
    await delivery.ack()
    await delivery.in_progress()
    await answers.resume()
    assert wire.sent == [(SHORT, b"+ACK")]


async def test_answers_to_another_stream_are_dropped(wire: Wire, answers: Answers) -> None:
    answers.suspend()
    await _delivery(answers).ack()
    answers.void()
    await answers.resume()
    await _delivery(answers).ack()
    assert not wire.sent


async def test_answers_that_wait_through_a_second_cut_are_kept(wire: Wire, answers: Answers) -> None:
    answers.suspend()
    await _delivery(answers).ack()
    wire.cut()
    await answers.resume()
    assert not wire.sent
    wire.mend()
    await answers.resume()
    assert wire.sent == [(SHORT, b"+ACK")]
