"""A Django site, small as can be: what the documentation's `mysite` stands for."""
