"""The profiles by which a task's figures are calculated: JEDI's document, or panda-server as it is run today."""

from __future__ import annotations

from drainwise.estimate.panda_figures import panda_figures
from drainwise.estimate.scouts import Figure, Sample
from drainwise.estimate.settings import PANDA, Settings


def figures_of(sample: Sample, settings: Settings) -> tuple[Figure, ...]:
    """Return all estimates for which at least one job counts, by the profile of the settings."""
    if settings.profile == PANDA:
        return panda_figures(sample.jobs, sample.parameters, settings)
    return sample.figures(settings)
