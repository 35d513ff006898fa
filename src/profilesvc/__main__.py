"""The command line as `python -m profilesvc`."""

from profilesvc.cli import main

if __name__ == "__main__":
    main()
