"""Errors that providers have answered, each with its class: docs, sources of servers and public issues say so."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from publisher_service.adapters.providers import (
    linkedin_errors,
    meta_errors,
    smtp_replies,
    telegram_errors,
    unipile_errors,
    webhook,
)
from publisher_service.adapters.providers.http_origin import Answer
from publisher_service.domain.provider_error import ErrorClass, outcome_of, preparing_of

FIXTURES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("provider_errors.json").read_text())["fixtures"]
Classify = Callable[[Answer], Any]
# By the provider of the fixture: what makes an error of an answer.
CLASSIFIERS: Mapping[str, Classify] = {
    "facebook_page": meta_errors.meta_error,
    "instagram": meta_errors.meta_error,
    "linkedin": linkedin_errors.linkedin_error,
    "meta": meta_errors.meta_error,
    "smtp": lambda reply: smtp_replies.classify_reply(reply.status, reply.body.decode()),
    "telegram": telegram_errors.telegram_error,
    "unipile": unipile_errors.classify_unipile,
    "webhook": webhook.classify_webhook,
}
# Adapters of these are still to be written.
LATER = {"bluesky", "mastodon"} | {
    "telegram_mtproto",
    "threads",
    "x",
}


def answer_of(fixture: Mapping[str, Any]) -> Answer:
    body = fixture["body"]
    text = body if isinstance(body, str) else json.dumps(body)
    headers = {name.lower().encode(): str(value).encode() for name, value in (fixture["headers"] or {}).items()}
    return Answer(fixture["http"], headers, text.encode())


def label(number: int) -> str:
    return f"{number}-{FIXTURES[number]['provider']}-{FIXTURES[number]['cls']}"


@pytest.mark.parametrize("number", [n for n, each in enumerate(FIXTURES) if each["provider"] in CLASSIFIERS], ids=label)
def test_an_error_has_the_class_that_its_source_gives_it(number: int) -> None:
    fixture = FIXTURES[number]
    error = CLASSIFIERS[fixture["provider"]](answer_of(fixture))
    assert error.kind == fixture["cls"], fixture["action"]


def test_every_provider_of_the_fixtures_is_here_or_comes_later() -> None:
    assert {each["provider"] for each in FIXTURES} - LATER == set(CLASSIFIERS)


@pytest.mark.parametrize("kind", ErrorClass)
def test_the_classes_are_those_of_the_fixtures(kind: ErrorClass) -> None:
    assert kind.value in {each["cls"] for each in FIXTURES}


def test_every_class_means_something_to_a_send_and_to_a_preparation() -> None:
    from publisher_service.domain.provider_error import ProviderError

    for kind in ErrorClass:
        error = ProviderError(kind=kind, reason="R", message="m")
        assert outcome_of(error) is not None
        assert preparing_of(error) is not None
