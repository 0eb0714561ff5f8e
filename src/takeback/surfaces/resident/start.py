"""What a hook's command runs. A script is compiled at every start, a module once: so this one is short, and imports the
client by its folder, which costs less than importing a package."""

import sys

sys.path.insert(0, __file__.rpartition("/" if "/" in __file__ else "\\")[0])
import client  # type: ignore[import-not-found]

client.main(sys.argv[1:])
