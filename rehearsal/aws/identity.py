"""Identities that exist before anybody creates one. This file is light on purpose: every part of
the rehearsal imports it. The secrets are made anew for each world: rehearsal/paths.py."""

ACCOUNT = "123456789012"
DEVELOPER = "developer"
"""The user that people and the program are."""
DEVELOPER_KEY = "AKIAREHEARSALDEVELOP"
WORLD = "world"
"""The user that the rehearsal's own parts are, so that a log tells them from people."""
WORLD_KEY = "AKIAREHEARSALWORLD00"
