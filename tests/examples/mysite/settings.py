"""Its settings."""

SECRET_KEY = "not a secret"
ROOT_URLCONF = "mysite.urls"
ALLOWED_HOSTS = ["*"]
USE_TZ = True
TIME_ZONE = ""  # any other would become that of the process
INSTALLED_APPS: list[str] = []
