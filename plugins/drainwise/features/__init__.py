"""Site to job: what a job may know about its machine and about itself, as directories of one small file per key."""
