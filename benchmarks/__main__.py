"""`make bench`: every measurement, one after the other, each with its comparison from the same minutes."""

from benchmarks import check, program

check.main()
program.main()
