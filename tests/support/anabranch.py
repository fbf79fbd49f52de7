"""`python -m tests.support.anabranch` is `anabranch` with the kind that tests add, as is done for any other."""

from worker.commands import main

if __name__ == "__main__":
    main()
