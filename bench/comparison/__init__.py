"""What bench/compare is made of; one noun a module."""
