import pytest

from channels import KNOWN, Action, UnknownChannel, action_of, normalise


@pytest.mark.parametrize("name", KNOWN)
def test_a_channel_is_its_own_normal_form(name: str) -> None:
    assert normalise(name) == name


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("instagram", "instagram_feed"),
        ("linkedin", "linkedin_profile"),
        (" Instagram ", "instagram_feed"),
        ("LinkedIn_Page", "linkedin_page"),
        ("FACEBOOK", "facebook"),
    ],
)
def test_other_spellings_are_understood(given: str, meant: str) -> None:
    assert normalise(given) == meant


@pytest.mark.parametrize("name", ["", "myspace", "insta gram", "facebook\0"])
def test_an_unknown_channel_is_refused_with_the_list_of_known_ones(name: str) -> None:
    with pytest.raises(UnknownChannel) as caught:
        normalise(name)
    assert all(known in str(caught.value) for known in KNOWN)
    assert caught.value.name == name


def test_only_what_goes_to_one_person_is_outreach() -> None:
    outreach = {channel: action_of(channel, "someone") for channel in KNOWN if action_of(channel) is not Action.POST}
    assert outreach == {
        "email": Action.EMAIL,
        "linkedin_connection": Action.CONNECTION_REQUEST,
        "linkedin_inmail": Action.INMAIL,
        "linkedin_message": Action.MESSAGE,
    }


def test_a_channel_of_a_newer_release_counts_as_a_post() -> None:
    assert action_of("holograms") is Action.POST
