"""`python -m takeback`."""

from takeback.surfaces.cli import main

if __name__ == "__main__":
    main()
