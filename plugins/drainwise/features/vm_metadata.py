"""Where a virtual machine finds its features: the metadata keys `machinefeatures` and `jobfeatures` of its cloud.

OpenStack has them among the machine's properties, in one JSON text; EC2 and what speaks like it as keys of their own or
as the machine's tags, behind a session token where the cloud wants one. The draft asks for one look in the lifetime of
each machine: what was found, also that there is nothing, is kept in a file together with the machine's own number, so
that a copy of the disk in another machine looks again.
"""

from __future__ import annotations

import contextlib
import json
import os

from drainwise.common.local_file import make_public, read_small, replace_file, split_path
from drainwise.facts.errors import FeatureError, UsageError
from drainwise.features.read import open_features
from drainwise.features.read_http import ask

KEYS = {"MACHINEFEATURES": "machinefeatures", "JOBFEATURES": "jobfeatures"}
"""The metadata key that holds each variable's value."""
ADDRESS = "http://169.254.169.254"
"""Where clouds answer."""
KEPT = "/var/lib/drainwise/features-location"
NUMBER = "/sys/class/dmi/id/product_uuid"
"""The number that a cloud gives each machine; root's alone to read."""

_TIMEOUT_SECS, _LARGEST, _LARGEST_KEPT = 5.0, 1 << 20, 4096
_OPENSTACK = "openstack/latest/meta_data.json"
_EC2 = ("latest/meta-data/{}", "latest/meta-data/tags/instance/{}")
_EC2_SESSION, _EC2_TTL, _EC2_TOKEN = (
    "latest/api/token",
    "X-aws-ec2-metadata-token-ttl-seconds",
    "X-aws-ec2-metadata-token",
)

Locations = dict[str, str]


def find_locations(address: str = ADDRESS, kept: str = KEPT, number: str = NUMBER) -> Locations:
    """Return what the variables MACHINEFEATURES and JOBFEATURES hold here, as far as the cloud says.

    address: the base URL of the metadata. kept: the file of what was found; where this user may not write it, the cloud
    is asked each time. number: the file of the machine's number.
    Raises FeatureError when the cloud does not answer, or with what is no location.
    """
    machine = _machine_number(number)
    known = _kept_locations(kept, machine)
    if known is not None:
        return known
    found = {name: value for name, value in ask_metadata(address.rstrip("/")).items() if _is_location(name, value)}
    with contextlib.suppress(OSError):
        _keep(kept, machine, found)
    return found


def ask_metadata(address: str) -> Locations:
    """Ask the cloud at this base URL; empty where it has neither key. Raises FeatureError when it does not answer."""
    found = _openstack(f"{address}/{_OPENSTACK}")
    if found:
        return found
    session = ask(f"{address}/{_EC2_SESSION}", {_EC2_TTL: "60", "Content-Length": "0"}, _TIMEOUT_SECS, "PUT")
    headers = {_EC2_TOKEN: session.body.decode("latin-1").strip()} if session.status == 200 else {}
    for place in _EC2:
        for name, key in KEYS.items():
            answer = ask(f"{address}/{place.format(key)}", headers, _TIMEOUT_SECS)
            if answer.status == 200 and name not in found:
                found[name] = answer.body.decode("latin-1").strip()
    return found


def _openstack(url: str) -> Locations:
    answer = ask(url, {}, _TIMEOUT_SECS, largest=_LARGEST)
    if answer.status != 200:
        return {}
    try:
        properties = json.loads(answer.body).get("meta", {})
        return {name: str(properties[key]) for name, key in KEYS.items() if key in properties}
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise FeatureError(f"{url}: expected the JSON text of a machine's metadata") from None


def _is_location(name: str, value: str) -> bool:
    try:
        open_features(value)
    except UsageError as error:
        raise FeatureError(f"the metadata key {KEYS[name]}: {error}") from None
    return True


def _machine_number(file: str) -> str | None:
    try:
        found = read_small(file, _LARGEST_KEPT)
    except FeatureError:
        return None
    return None if found is None else found[0].decode("latin-1").strip()


def _kept_locations(kept: str, machine: str | None) -> Locations | None:
    """Return what was kept by root or us for this machine; None when there is nothing of the kind."""
    try:
        found = read_small(kept, _LARGEST_KEPT)
        if found is None or found[1].st_uid not in {0, os.geteuid()} or found[1].st_mode & 0o022:
            return None
        said = json.loads(found[0])
        if machine is not None and said["machine"] not in {None, machine}:
            return None
        return {name: str(said[name]) for name in KEYS if name in said}
    except (FeatureError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _keep(kept: str, machine: str | None, found: Locations) -> None:
    parent, name = split_path(kept)
    make_public(parent)
    directory = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        replace_file(name, json.dumps({"machine": machine, **found}).encode("ascii") + b"\n", directory)
    finally:
        os.close(directory)
