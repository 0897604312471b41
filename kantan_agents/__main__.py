"""``python -m kantan_agents``: the command line, for an environment whose scripts are not on the PATH."""

from kantan_agents.cli.app import main

if __name__ == "__main__":
    main()
