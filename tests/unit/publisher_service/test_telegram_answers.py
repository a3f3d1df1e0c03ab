"""Any answer of Telegram is read without an error, and only what is certain counts."""

from hypothesis import given
from hypothesis import strategies as st

from publisher_service.adapters.providers.http_origin import Answer
from publisher_service.adapters.providers.telegram import accepted
from publisher_service.adapters.providers.telegram_errors import moved_to, telegram_error
from publisher_service.domain.outcome import Accepted, Ambiguous
from publisher_service.domain.provider_error import ErrorClass, outcome_of, preparing_of
from tests.unit.publisher_service.json_answers import answers, objects

NUMBERS = st.one_of(st.integers(), st.just(-1001234567890))
CHATS = objects({"id": NUMBERS, "type": st.sampled_from(["channel", "private"]), "username": st.just("example")})
MESSAGES = objects({"message_id": NUMBERS, "chat": CHATS, "date": NUMBERS})
RESULTS = objects({"ok": st.just(True), "result": st.one_of(MESSAGES, st.lists(MESSAGES, max_size=3))})
ERRORS = objects(
    {
        "ok": st.just(False),
        "error_code": st.integers(),
        "description": st.sampled_from(["Bad Request: chat not found", "Forbidden: x", "\0\ud800", "x" * 9000]),
        "parameters": objects({"retry_after": NUMBERS, "migrate_to_chat_id": NUMBERS}),
    }
)


@given(answers(ERRORS))
def test_every_answer_is_an_error_of_some_class(answer: Answer) -> None:
    error = telegram_error(answer)
    assert outcome_of(error) is not None
    assert preparing_of(error) is not None
    assert len(error.message) <= 500
    if moved_to(answer) is not None:
        assert answer.status == 400
    if b'"ok": false' not in answer.body:
        assert error.kind is ErrorClass.UNKNOWN_OUTCOME


@given(answers(RESULTS))
def test_a_success_names_the_message_or_proves_nothing(answer: Answer) -> None:
    seen = accepted(answer)
    if isinstance(seen, Accepted):
        chat, _, message = seen.external_id.partition("/")
        assert (int(chat), int(message)) is not None
        assert seen.external_url == "" or seen.external_url.startswith("https://t.me/")
    else:
        assert isinstance(seen, Ambiguous)
