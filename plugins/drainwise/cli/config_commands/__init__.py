"""What `drainwise config` does beside rendering: check the site file, show what rendering would change."""
