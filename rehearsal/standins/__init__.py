"""Programs that training containers find first on their PATH; they must need nothing but the
standard library."""
