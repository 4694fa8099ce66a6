"""`python -m trainyard`: the tool, where its script is not on PATH."""

from trainyard.cli.main import main

if __name__ == "__main__":
    main()
