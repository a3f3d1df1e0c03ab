"""Files have a cap of their kind."""

from channels.validation import MediaKind
from publisher_service.domain.media import MediaCaps


def test_each_kind_has_its_cap() -> None:
    caps = MediaCaps(image=1, video=3, document=2)
    assert [caps.of(kind) for kind in MediaKind] == [1, 3, 2]
    assert caps.largest == 3
