"""`python -m rehearsal.account`: serves the account until it is told to stop."""

from rehearsal.account.server import main

main()
