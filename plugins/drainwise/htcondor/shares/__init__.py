"""What HTCondor's accountant says: records, quotas and priorities, and what each account is owed by them."""
