"""`python -m gnomon.native`: compile the C files again, after a change of one."""

import sys

from gnomon.native.build import HERE, build

if __name__ == "__main__":
    sys.exit(build() or print(HERE))
