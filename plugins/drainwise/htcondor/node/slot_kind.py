"""The settings of the kind of nodes that a slot is on, by the slot's ad."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from drainwise.node.ad_text import Literal
    from drainwise.node.settings import NodeSettings

_MACHINE = "Machine"


def kind_attributes(settings: NodeSettings) -> tuple[str, ...]:
    """Return the attributes of a slot that say of which kind its node is; none where the site has one kind."""
    if not settings.kinds:
        return ()
    return (_MACHINE, *(part.partition("=")[0] for part in settings.features_asked()))


def of_slot(settings: NodeSettings, slot: dict[str, Literal]) -> NodeSettings:
    """Return the settings for a slot's node. A feature is an attribute that is true, or `NAME=VALUE` that is so."""
    if not settings.kinds:
        return settings
    features = tuple(part for part in settings.features_asked() if _holds(slot, part))
    return settings.of_node(str(slot.get(_MACHINE, "")), features)


def _holds(slot: dict[str, Literal], feature: str) -> bool:
    name, equals, wanted = feature.partition("=")
    value = slot.get(name)
    if value is None:
        return False
    return str(value).lower() == (wanted.strip().lower() if equals else "true")
