"""The report, written: page (HTML), markdown and shape (JSON) have the same content; picture draws its activity."""
