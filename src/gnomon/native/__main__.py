"""`python -m gnomon.native`: compile the products again, after a change of products.c."""

import sys

from gnomon.native.build import LIBRARY, build

if __name__ == "__main__":
    sys.exit(build() or print(LIBRARY))
