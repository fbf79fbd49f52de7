"""`python -m worker` is `anabranch`."""

from worker.commands import main

main()
