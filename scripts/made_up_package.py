"""A package of one module that looks installed: its code and its metadata in a directory for sys.path."""

from __future__ import annotations

from pathlib import Path


def put_package(place: Path, package: str, entry_points: str, code: str = "", version: str = "1.0") -> None:
    """Put a package into `place`; its code is the module `PACKAGE_code`."""
    info = place / f"{package}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(entry_points)
    (place / f"{package.replace('-', '_')}_code.py").write_text(code)
