"""Find the files in a job's directory on an execute node, before and since HTCondor 25.4; whose job it is.

Before: `dir_<pid>/` is the job's directory (0700, the user's) with the ads in it. Since: `dir_<pid>/` is the daemon's,
`dir_<pid>/htcondor/` holds the ads that can be trusted and `dir_<pid>/scratch/` is the job's directory.
"""

from __future__ import annotations

from drainwise.node.ad_text import literals, string
from drainwise.node.hook import read_bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from drainwise.facts.client_rules import ClientRules
    from drainwise.facts.clients import ClientProfile
    from drainwise.node.ad_text import Literal
    from drainwise.node.settings import NodeSettings

SCRATCH = "scratch"
ADS = "htcondor"
UPDATE_AD = ".update.ad"
MACHINE_AD = ".machine.ad"
JOB_AD = ".job.ad"
"""The job's own, which lies in its directory in both."""

AD_LIMIT = 4 << 20  # bytes; twice the largest environment that a process can have


def update_ad(scratch: str) -> str:
    """Return the path of the refreshed slot ad of the job in `scratch` (absolute, without a trailing slash)."""
    above, _, name = scratch.rpartition("/")
    return f"{above}/{ADS}/{UPDATE_AD}" if name == SCRATCH else f"{scratch}/{UPDATE_AD}"


def ad_at(path: str, directory: int | None = None, limit: int = AD_LIMIT) -> bytes:
    """Read an ad at a path below the open `directory`; empty when there is none (yet)."""
    try:
        return read_bounded(path, limit, directory)
    except OSError:
        return b""


def parent(path: str) -> str:
    """Return the directory that holds `path` (absolute, without a trailing slash)."""
    return path.rpartition("/")[0] or "/"


def below_execute(scratch: str) -> str:
    """Return the path of a job's directory (absolute, without a trailing slash) below $(EXECUTE).

    >>> below_execute("/var/lib/condor/execute/dir_7/scratch"), below_execute("/var/lib/condor/execute/dir_7")
    ('dir_7/scratch', 'dir_7')
    """
    above, _, name = scratch.rpartition("/")
    return f"{above.rpartition('/')[2]}/{name}" if name == SCRATCH else name


def kind_attributes(settings: NodeSettings) -> tuple[str, ...]:
    """Return the attributes of a slot that say of which kind its node is; none where the site has one kind."""
    if not settings.kinds:
        return ()
    return ("Machine", *(part.partition("=")[0] for part in settings.features_asked()))


def of_slot(settings: NodeSettings, slot: dict[str, Literal]) -> NodeSettings:
    """Return the settings for a slot's node. A feature is an attribute that is true, or `NAME=VALUE` that is so."""
    if not settings.kinds:
        return settings
    features = tuple(part for part in settings.features_asked() if _holds(slot, part))
    return settings.of_node(str(slot.get("Machine", "")), features)


def _holds(slot: dict[str, Literal], feature: str) -> bool:
    name, equals, wanted = feature.partition("=")
    value = slot.get(name)
    if value is None:
        return False
    return str(value).lower() == (wanted.strip().lower() if equals else "true")


def client_in(ad: bytes, rules: ClientRules) -> ClientProfile | None:
    """Return the profile of the job of this ad; None where the ad names no owner: then nothing of the job is known."""
    from drainwise.facts.client_rules import ACCOUNT, ATTRIBUTE, USER, user_texts  # noqa: PLC0415 - there already

    asked = rules.attributes()
    job = literals(ad, ("Owner", "User", "AcctGroup", "AccountingGroup", *asked))
    owner, user, group, charged = (string(job, name) for name in ("Owner", "User", "AcctGroup", "AccountingGroup"))
    if not owner and not user:
        return None
    # As patterns compare it: true and false in small letters, numbers as they are written.
    values = {name: str(job[name]) for name in asked if name in job}
    facts: dict[str, tuple[str, ...]] = {
        ATTRIBUTE + name: (text.lower() if isinstance(job[name], bool) else text,) for name, text in values.items()
    }
    facts[USER] = user_texts((user, owner))
    # The accountant's name of it is the group, and the user below it or in no group.
    facts[ACCOUNT] = tuple(text for text in (group, charged, (charged or "").rpartition(".")[0], user) if text)
    return rules.profile_of(facts)
