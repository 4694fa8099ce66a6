"""Who exists before anybody creates anybody. Light on purpose: every part of the rehearsal imports
it."""

ACCOUNT = "123456789012"
DEVELOPER = "developer"
"""The user that people and the program are."""
DEVELOPER_KEY = "AKIAREHEARSALDEVELOP"
DEVELOPER_SECRET = "rehearsal-developer-secret-opens-nothing"
WORLD = "world"
"""The user that the rehearsal's own parts are, so that a log tells them from people."""
WORLD_KEY = "AKIAREHEARSALWORLD00"
WORLD_SECRET = "rehearsal-world-secret-that-opens-nothing"

USERS = {DEVELOPER: (DEVELOPER_KEY, DEVELOPER_SECRET), WORLD: (WORLD_KEY, WORLD_SECRET)}
