"""What the nodes of every batch system share: settings, the manners of a hook, a job's features, the site's word to it.

The names are those of the three directories in a job's own directory.
"""

MACHINE_FEATURES = ".machinefeatures"
JOB_FEATURES = ".jobfeatures"
JOB_STATUS = ".jobstatus"
