# What the Makefiles of the compiled programs share: where things go, the compilers' options, how checks are run.
NATIVE := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
BUILD ?= ../../build
PYTHON ?= $(or $(wildcard $(abspath $(NATIVE)/../.venv/bin/python)),python3)
CLANG ?= clang

WARN := -std=gnu11 -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes
HARD := -O2 -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fPIE -pie -Wl,-z,relro,-z,now
SAN := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

# $(CHECK) tests --program FILE [--preload LIBRARY] [-k WORD]
CHECK := $(PYTHON) -B -m pytest -c $(NATIVE)/pytest.ini
# in a network namespace of its own: as root, or in a user namespace
PRIVATE = $(shell unshare --net true 2>/dev/null && echo unshare --net || echo unshare --net --map-root-user)
# the same, with a loopback: no other program can take a port between its choice and its use
ALONE = $(PRIVATE) sh -c 'ip link set lo up && exec "$$@"' sh
