"""The modules of bench/compare, one for each noun."""
