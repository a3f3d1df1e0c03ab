"""Every adapter of a real network owes the Publisher the same, however the network fails. A new one joins `SCENES`."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from devstack.networks.faults import Fault, Rule
from publisher_service.adapters.providers.adapter import CredentialsRefused, Proof
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import (
    Absent,
    Accepted,
    Ambiguous,
    AuthRefused,
    Finding,
    Found,
    NoProof,
    NotSent,
    Outcome,
    RateLimited,
    Rejected,
    Repeatable,
)
from tests.contract.publisher_service import scenes_linkedin, scenes_meta
from tests.contract.publisher_service.scene import MakeScene, Scene
from tests.contract.publisher_service.scenes_mail import MAIL_SCENES

SCENES: Sequence[MakeScene] = (
    scenes_meta.facebook,
    scenes_meta.facebook_photos,
    scenes_meta.facebook_video,
    scenes_meta.instagram,
    *scenes_linkedin.MAKERS,
    *MAIL_SCENES,
)


@pytest.fixture(params=SCENES, ids=lambda make: make.name)
async def scene(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Scene]:
    make: MakeScene = request.param
    async with make(tmp_path) as opened:
        yield opened
        assert opened.network.problems == []


def lost(fault: Fault, **facts: Any) -> dict[str, Rule]:
    """Returns the rules of a fault without and with effect."""
    return {
        f"{fault} before the effect": Rule(fault=fault, **facts),
        f"{fault} after the effect": Rule(fault=fault, effect=True, **facts),
    }


AMBIGUOUS: dict[str, Rule] = {
    **lost(Fault.RESET),
    **lost(Fault.HANG),
    **lost(Fault.ANSWER),
    **lost(Fault.HTML),
    **lost(Fault.ERROR_IN_200),
    **lost(Fault.ENDLESS),
    **lost(Fault.GZIP_BOMB),
    **lost(Fault.REDIRECT),
    "a nameless success": Rule(fault=Fault.NAMELESS, effect=True),
}
ANSWERED_200 = frozenset({Fault.HTML, Fault.ERROR_IN_200, Fault.ENDLESS, Fault.GZIP_BOMB, Fault.NAMELESS})
CASES: dict[str, tuple[Rule | None, type[Outcome]]] = {
    "accepted": (None, Accepted),
    "refused": (Rule(fault=Fault.REFUSAL), Rejected),
    "later": (Rule(fault=Fault.RATE_LIMIT, seconds=40), RateLimited),
    **{name: (rule, Ambiguous) for name, rule in AMBIGUOUS.items()},
}


@pytest.mark.parametrize("case", CASES)
async def test_each_answer_has_its_outcome(scene: Scene, case: str) -> None:
    rule, expected = CASES[case]
    post = await scene.ready()
    if rule is not None:
        scene.network.faults.add(replace(rule, operation=scene.publish))
    seen = await scene.adapter.send(post)
    accepts = scene.any_2xx_accepts and rule is not None and rule.fault in ANSWERED_200
    assert isinstance(seen, (Accepted if accepts else expected, *scene.also.get(case, ()))), seen
    assert post.access_token not in repr((seen, post))
    effects = scene.network.effects
    assert len(effects) == (case == "accepted" or bool(rule and rule.effect))
    if isinstance(seen, Accepted) and (effects or not accepts):
        assert [seen.external_id] == [each["id"] for each in effects], "accepted is what is out, by its name"
    if effects:
        assert not isinstance(seen, Rejected), "what is out was called refused"


async def test_a_network_that_is_away_got_nothing(scene: Scene) -> None:
    post = await scene.ready()
    await scene.network.stop()
    # The first request may break off on a connection that was kept.
    _, seen = [await scene.adapter.send(post) for _ in range(2)]
    assert isinstance(seen, NotSent)
    # What counts against the provider; the server of a webhook is that of one tenant.
    assert seen.is_unreachable == (scene.adapter.name != "webhook")


async def test_how_long_to_wait_is_said(scene: Scene) -> None:
    post = await scene.ready()
    scene.network.faults.add(Rule(fault=Fault.RATE_LIMIT, operation=scene.publish, seconds=120))
    seen = await scene.adapter.send(post)
    assert isinstance(seen, RateLimited)
    assert seen.retry_after.total_seconds() >= 120


# What a look says about a post that is out, and about one that is not.
PROOFS: dict[Proof, tuple[type[Finding], type[Finding]]] = {
    Proof.KEYED: (Repeatable, Repeatable),
    Proof.CHECKABLE: (Found, Absent),
    Proof.LOOKUP: (Found, Absent),
    Proof.BLIND: (NoProof, NoProof),
}


async def test_a_look_proves_what_its_class_can_prove(scene: Scene) -> None:
    out, absent = (
        scene.findings.get(name, kinds)
        for name, kinds in zip(("out", "absent"), PROOFS[scene.adapter.proof], strict=True)
    )
    post = await scene.ready()
    assert isinstance(await scene.adapter.look(post), absent)
    scene.network.faults.add(Rule(fault=Fault.RESET, effect=True, operation=scene.publish))
    await scene.adapter.send(post)
    seen = await scene.adapter.look(post)
    assert isinstance(seen, out), seen
    if isinstance(seen, Found):
        assert [seen.external_id] == [each["id"] for each in scene.network.effects]


@pytest.mark.parametrize(
    "fault", [Fault.RESET, Fault.HANG, Fault.ANSWER, Fault.HTML, Fault.ERROR_IN_200, Fault.ENDLESS]
)
async def test_a_look_that_fails_proves_nothing(scene: Scene, fault: Fault) -> None:
    if not scene.look:
        return
    post = await scene.ready()
    scene.network.faults.add(Rule(fault=fault, operation=scene.look, count=0))
    assert isinstance(await scene.adapter.look(post), NoProof)


async def test_a_token_that_is_refused_is_called_so(scene: Scene) -> None:
    post = replace(await scene.ready(), **scene.revoked)  # type: ignore[arg-type]
    assert isinstance(await scene.adapter.send(post), AuthRefused)
    with pytest.raises(CredentialsRefused):
        await scene.adapter.verify(
            "acme", post.external_account_id, Credentials(access_token=post.access_token), post.settings
        )
    assert scene.network.effects == []


async def test_good_credentials_are_accepted(scene: Scene) -> None:
    await scene.adapter.verify(
        "acme", scene.post.external_account_id, Credentials(access_token=scene.post.access_token), scene.post.settings
    )


async def test_a_second_request_makes_a_second_post_if_nothing_prevents_it(scene: Scene) -> None:
    post = await scene.ready()
    for _ in range(2):
        await scene.adapter.send(post)
    is_one = scene.is_repeatable or scene.adapter.proof in {Proof.KEYED, Proof.CHECKABLE}
    assert len(scene.network.effects) == (1 if is_one else 2)
