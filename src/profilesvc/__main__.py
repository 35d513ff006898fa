"""The command line, as `profilesvc` and as `python -m profilesvc`."""

import sys

from profilesvc.fixtures import how_to_install


def main() -> None:
    """Run the command line, or print how to install what it needs.

    Raises:
        SystemExit: with one sentence if the extra `server` is not installed; 130 after Ctrl-C while it imports.
    """
    try:
        from profilesvc.cli import main as run
    except ModuleNotFoundError as error:
        missing = (error.name or "profilesvc").partition(".")[0]
        if missing == "profilesvc":
            raise
        sys.exit(
            "profilesvc: the commands need the server, which is not installed "
            f"(no package {missing}): {how_to_install('server')}"
        )
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
