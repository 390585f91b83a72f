"""`python -m cli` is the `evalake` command."""

from cli.main import main

if __name__ == "__main__":
    main()
