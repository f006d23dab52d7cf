"""Values that are sound, but for one or for none: of values drawn each by itself hardly any make sound ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st


def all_but_one(
    sound: Mapping[str, st.SearchStrategy[Any]], odd: st.SearchStrategy[Any] | Mapping[str, st.SearchStrategy[Any]]
) -> st.SearchStrategy[dict[str, Any]]:
    """Sound values by name; half of the time one name has an odd one. odd: for any name, or by name, also new ones."""
    by_name = odd if isinstance(odd, Mapping) else dict.fromkeys(sound, odd)
    one = st.one_of(*(st.fixed_dictionaries({name: values}) for name, values in by_name.items()))
    return st.builds(
        lambda whole, changed: {**whole, **changed}, st.fixed_dictionaries(dict(sound)), st.just({}) | one.map(dict)
    )
