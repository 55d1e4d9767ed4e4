"""Programs that run on hosts reached by SSH, with nothing but Python there."""
