"""`make bench`: every measurement, one after the other, each with its comparison from the same
minutes."""

from benchmarks import check, estate, manifests, program

check.main()
manifests.main()
estate.main()
program.main()
