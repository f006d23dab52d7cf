"""What the agent writes for each user beside its journal: of that user's pilots alone, for whoever may not read it."""
