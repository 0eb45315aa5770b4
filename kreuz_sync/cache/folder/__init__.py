"""What lies in the folder of a `DiskStore`: a diskcache database, body files, and change marks."""
