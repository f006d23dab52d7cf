"""Features of a virtual machine: where it finds them, and the command by which its user destroys it.

Where: the metadata keys `machinefeatures` and `jobfeatures` of its cloud.

OpenStack has them among the machine's properties, in one JSON text; EC2 and what speaks like it as keys of their own or
as the machine's tags, behind a session token where the cloud wants one. The draft asks for one look in the lifetime of
each machine: what was found, also that there is nothing, is kept in a file together with the machine's own number, so
that a copy of the disk in another machine looks again.

How it ends: `$MACHINEFEATURES/shutdown_command`. That key may come over the network, so it names a file and no more:
without arguments, without a shell, and the file must be root's own, which nobody else may write.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import subprocess

from drainwise.common.local_file import kind_of, make_public, read_small, replace_file, small_text, split_path
from drainwise.facts.errors import FeatureError, UsageError
from drainwise.features.read import FeatureReader, open_features
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
_COMMAND = "shutdown_command"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

Locations = dict[str, str]


def find_locations(address: str = ADDRESS, kept: str = KEPT, number: str = NUMBER) -> Locations:
    """Return what the variables MACHINEFEATURES and JOBFEATURES hold here, as far as the cloud says.

    address: the base URL of the metadata. kept: the file of what was found; where this user may not write it, the cloud
    is asked each time. number: the file of the machine's number.
    Raises FeatureError when the cloud does not answer, or with what is no location.
    """
    machine = small_text(number, _LARGEST_KEPT)
    known = _kept_locations(kept, machine)
    if known is not None:
        return known
    found = ask_metadata(address.rstrip("/"))
    for name, value in found.items():
        try:
            open_features(value)
        except UsageError as error:
            raise FeatureError(f"the metadata key {KEYS[name]}: {error}") from None
    parent, name = split_path(kept)
    with contextlib.suppress(OSError):
        make_public(parent)
        replace_file(name, json.dumps({"machine": machine, **found}).encode("ascii") + b"\n", parent)
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


def checked_command(machine: FeatureReader) -> str:
    """Return the path of the command. Raises FeatureError where there is none, or one that is not to be trusted."""
    path = machine.text(_COMMAND)
    if path is None:
        raise FeatureError(f"{machine.location}: no {_COMMAND}: this machine cannot be shut down by its user")
    if not path.startswith("/"):
        raise FeatureError(f"{_COMMAND} {path!a}: expected an absolute path")
    try:
        status = os.stat(path)
    except OSError as error:
        raise FeatureError(f"{_COMMAND} {path!a}: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise FeatureError(f"{_COMMAND} {path!a}: expected a program, found {kind_of(status.st_mode)}")
    if status.st_uid != 0 or status.st_mode & _OTHERS_WRITE:
        raise FeatureError(f"{_COMMAND} {path!a}: others than root may write it; not run")
    if not os.access(path, os.X_OK):
        raise FeatureError(f"{_COMMAND} {path!a}: we may not run it")
    return path


def shut_down(machine: FeatureReader) -> int:
    """Run the command; its exit code. Raises FeatureError as `checked_command`, or when it cannot be started."""
    path = checked_command(machine)
    try:
        return subprocess.run([path], stdin=subprocess.DEVNULL, check=False).returncode
    except OSError as error:
        raise FeatureError(f"{_COMMAND} {path!a}: {error.strerror}") from None
