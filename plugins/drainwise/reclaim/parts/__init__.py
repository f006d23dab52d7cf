"""Parts of pilots: which cores they are asked to return, and what comes free until when."""
