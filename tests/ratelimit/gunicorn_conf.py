"""The settings of the tests' gunicorn. Names that a version does not know are passed over by it."""

workers = 2
control_socket_disable = True  # it would be a file in the home folder
