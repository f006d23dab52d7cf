"""The demonstration on the local batch system: alice's pilots fill it, bob comes, the cheapest give cores back."""
