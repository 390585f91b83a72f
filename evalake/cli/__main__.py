"""`python -m evalake.cli` is the `evalake` command."""

from evalake.cli.main import main

if __name__ == "__main__":
    main()
