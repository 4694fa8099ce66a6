"""`python -m rehearsal.aws`: serves the account until it is told to stop."""

from rehearsal.aws.server import main

main()
