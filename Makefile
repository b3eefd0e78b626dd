# Every gate and every job of the project, for people and CI alike: `make certify`, `make test`, `make check`.
#   KERNEL=6.1|6.12|7.2   the stock Debian kernel that the lab boots (default 6.1); debug: Debian's source, built with KASAN, lockdep
#                         and the like (`make debug-kernel`); or the path of your own
#   NIC=connectx-6-dx     the card that the simulated NIC plays in `make certify` and `make test-hw`
#   CARD=mlx5             `make certify` with Debian's own mlx5_core on a ConnectX-6 Dx that cx6sim simulates, not with nicsim
#   LAB_CPUS=1..4         virtual CPUs of the lab (default 1)
#   JOBS=2                labs side by side in `make certify`, `example`, `test-hw`, `test-sw-fallback` and with MORE (default: one a core)
#   SECONDS=60            how long each part of `make fuzz` looks for trouble
#   SAMPLE=each           `make test-hw`: one test of each promise and cell, another one each day; SAMPLE=today: the same, without
#                         what says the same on every kernel; SAMPLE=promises (as `make test` has it for test-daemons,
#                         test-sw-fallback and test-nicsim): the same, and the tests without a promise, some of which take turns; SAMPLE=required
#                         (`make test-bench`): as few tests as the criteria ask of each required promise
#   T=test_sends          what `make try` or `make soak` runs: a test's id, a file, or an expression as for pytest -k
#   N=10 LOAD=8           `make soak`: how many runs, beside how many busy processes; STAGE=test-hw which stage
#   RESULT=results/TIME   the run whose failures `make replay` repeats
#   HOURS=1 SEED=4711     how long `make hunt` runs, and its first seed (default: a random one)
#   WRITE=1               `make certify-the-certifier` writes its table into docs/certify/bad-nics.md; changed code is recorded, too;
#                         `make pictures` renews the screenshots of README and docs/
#   DRAW=4711 COUNT=40    `make certify-the-certifier` draws so many bad cards at random; DEPTH=standard: for all scenarios of that depth
#   MORE=20               and adds the next 20 cards to the record of drawn ones (benchmarks/results/drawn.jsonl, docs/certify/bad-nics.md)
#   TIMES=3               how often `make certify-cards` certifies each card, and `make test-bench` each bench; there WRITE=1 writes
#                         into benchmarks/results/benches.md
#   TURN=                 `make test-rack` certifies both racks, and not the one whose turn it is today
#   SEEDS="1 2 3"         `make test-any-order`: one run in the order of each
#   CARDS="funeth nicsim" `make certify-cards`: these; without it, each profile without a certified run on KERNEL on record
#   GOOD=10               how many runs of a good card `make clean-runs` adds to the record
PYTHON ?= /usr/bin/python3
KERNEL ?= 6.1
NIC ?= connectx-6-dx
SECONDS ?= 60
GOOD ?= 10
HOURS ?= 1
COUNT ?= 40
TIMES ?= 1
TURN ?= --turn
SEEDS ?= 1 2 3
# one lab a core; `make test` runs its stages side by side instead, so each has one
JOBS ?= $(shell nproc)
# workers of the unit tests: one more than there are cores, as many tests wait for a child
WORKERS = $(shell expr $$(nproc) + 1)
N ?= 10
LOAD ?= 8
STAGE ?= test-sw-fallback
VENV := .venv
PINS := ci/constraints.txt
EXTRAS := report,wire,lab,test,dev,docs
PY := $(VENV)/bin/python
PYTEST := $(PY) -m pytest -q
LABS = $(if $(filter-out 1,$(JOBS)),-n $(JOBS) --dist worksteal --max-worker-restart 0)
LAB_PYTEST := ci/again $(PYTEST)

# containers set it, and then each of the thousand Pythons that tests start compiles what it imports
unexport PYTHONDONTWRITEBYTECODE
# containers set this, too, and it hides what a full disk below stderr does
unexport PYTHONUNBUFFERED

.PHONY: all certify replay test check certify-cards certify-the-certifier bench bench-lab bench-wire bench-meter bench-cost bench-endurance bench-iperf bench-history bench-operator bench-handover bench-migration bench-channels bench-video bench-ipsec \
	iperf3 fuzz fuzz-wire fuzz-core fuzz-adversary fuzz-native hunt deb rpm man docs clean-runs mutate test-driver example pictures soak \
	setup setup-check venv pins build fetch fetch-driver clean try try-down \
	debug-kernel test-debug-kernel \
	test-unit test-any-order test-daemons test-native test-sw-fallback test-hw test-certify test-nicsim test-vm test-rack test-bench test-broken-drivers \
	check-python check-text check-native check-module check-profiles
all: build

certify: build  ## the whole run against the simulated NIC: leaves results/<time>/report.html
	$(PY) -m offload certify --kernel $(KERNEL) --nic $(NIC) $(if $(CARD),--card $(CARD)) --jobs $(JOBS)

replay: build  ## repeat what failed in RESULT=results/<time>
	$(PY) -m offload certify --replay $(RESULT)

certify-the-certifier: build  ## every bad card of the catalogue, two labs at once; CARD=mlx5: those below the real driver; DRAW=SEED: COUNT random ones, and how many escape
	$(PY) -m benchmarks.$(if $(CARD),silicon $(if $(WRITE),--write),$(if $(MORE),drawn --more $(MORE) --labs $(JOBS),$(if $(DRAW),drawn --draw $(DRAW) --count $(COUNT) $(if $(DEPTH),--depth $(DEPTH)),certifier $(if $(WRITE),--write)))) --kernel $(KERNEL)

certify-cards: build  ## each profile certified whole on KERNEL, into benchmarks/results/cards.md; 3 to 15 minutes each, resumes; CARD=mlx5: the real driver; DEPTH=standard
	$(PY) -m tests.lib.catalogue.card_run --kernel $(KERNEL) $(if $(DEPTH),--depth $(DEPTH),--jobs $(JOBS)) --times $(TIMES) $(if $(CARD),--model $(CARD)) $(CARDS)

clean-runs: build  ## GOOD=10 runs of a good card into benchmarks/results/clean-runs.jsonl
	$(PY) -m benchmarks.certifier --kernel $(KERNEL) --card $(NIC) --good $(GOOD) $(if $(WRITE),--write)

mutate: build  ## what if one of the suite's checks were not there? 15 minutes, resumes
	$(PY) -m tests.nicsim.escape --mutate --write

# One stage more than there are cores runs at a time, because a lab waits for a sixth of its time. Native tests and daemons (+) mostly
# wait and do not count. If a set-up (!) fails, nothing after it runs. Only fetch and fetch-driver download; native tests need none
# of it. The stages:
#   test-unit             the package itself, first: most mistakes show here
#   fetch-driver          Debian's mlx5_core with TLS for 6.1, built; test-certify waits for it
#   test-certify          all promises of a card that offloads both ways, on 6.1, by that driver: what a person runs, every test
#                         and its verdict
#   test-sw-fallback      the same promises without a card: each promise and cell by one test, another each day; of the rest
#                         all but what takes turns
#   test-daemons          programs on this host: all but what takes turns, since a test that kills at each step starts them fifty times
#   test-nicsim           bad cards are caught, by name; where two tests boot much to say little each takes its turn, by the day
#   test-rack 6.12        `certify --lab` over ssh, on the kernel between: each required promise of a ConnectX-6 Dx or, every
#                         other day, of a T6, which only transmits; the peer's card is a plain one
#   test-hw 7.2           the newest kernel with two virtual CPUs, as one alone would hide races: of what kernels differ in, each
#                         promise and cell by one test, another each day. Last, since it can use both cores when nothing else is left
test: $(PYTHON)  ## every test of the project, with its own set-up; prints the time of each stage
	JOBS=1 ci/stages '!setup-check' '!build' +test-native '!fetch' +fetch-driver +test-daemons:SAMPLE=promises '*test-unit' test-nicsim:SAMPLE=promises \
		test-certify:CARD=mlx5 test-rack:KERNEL=6.12 \
		test-sw-fallback:SAMPLE=promises test-hw:KERNEL=7.2,LAB_CPUS=2,SAMPLE=today

test-unit: venv  ## the package itself, on all cores: no root, no kernel, no daemon
	$(PYTEST) -n $(WORKERS) --dist worksteal --durations 10 tests/unit

test-any-order: venv  ## the unit tests in three random orders: none may need what another left behind
	for seed in $(SEEDS); do \
		$(PYTEST) -n $(WORKERS) --dist worksteal -p tests.lib.rig.shuffle --shuffle $$seed tests/unit || exit 1; \
	done

test-daemons: setup-check build  ## with sshd, labgrid, stunnel, nginx, QEMU, kbuild and dpkg; most need root
	$(PYTEST) --durations 10 tests/daemons $(if $(SAMPLE),--sample=$(SAMPLE))

test-native: setup-check build  ## compiled parts in user space, under sanitizers
	$(MAKE) -j 4 --output-sync=recurse -C native check

test-sw-fallback: build  ## no offload NIC: the same promises kept by software
	$(LAB_PYTEST) tests/sw-fallback --kernel $(KERNEL) $(if $(SAMPLE),--sample=$(SAMPLE)) $(LABS)

test-hw: build  ## the promises of a NIC, against the simulated one
	$(LAB_PYTEST) tests/hw --kernel $(KERNEL) --profile $(NIC) $(if $(SAMPLE),--sample=$(SAMPLE)) $(LABS)

test-certify: build  ## make certify, and no test of this good card fails: its verdict may forgive some; CARD=mlx5: the real driver
	rm -rf build/certified
	$(PY) -m offload certify --kernel $(KERNEL) --nic $(NIC) $(if $(CARD),--card $(CARD)) --jobs $(JOBS) --out build/certified
	$(PY) -m tests.lib.catalogue.none_failed build/certified

test-nicsim: build  ## deliberately bad NICs: the suite has to catch each one
	$(LAB_PYTEST) tests/nicsim --kernel $(KERNEL) -m 'not long' $(if $(SAMPLE),--sample=$(SAMPLE))

test-rack: build  ## `certify --lab` over ssh: each required promise of a T6 or, every other day, of a ConnectX-6 Dx
	$(PY) -m tests.lib.catalogue.bench_run --kernel $(KERNEL) --sample required $(TURN) chelsio-t6,plain connectx-6-dx,plain

test-bench: build  ## `certify --lab` on racks and on one host, every test: an hour; SAMPLE=required TIMES=3 WRITE=1 as on record
	$(PYTEST) tests/nicsim -m long --ignore tests/nicsim/drivers --kernel $(KERNEL)
	$(PY) -m tests.lib.catalogue.bench_run --kernel $(KERNEL) $(if $(SAMPLE),--sample $(SAMPLE)) --times $(TIMES) $(if $(WRITE),--write) \
		connectx-6-dx,plain connectx-6-dx,chelsio-t6 chelsio-t6,plain one-host

test-driver: build  ## Debian's drivers with TLS offload, on three kernels: built, loaded in the VM; half an hour
	$(VENV)/bin/ktls-offload lab fetch 6.1 6.12 7.2
	for k in 6.1 6.12 7.2; do \
		for d in mlx5 ch_ktls; do $(VENV)/bin/ktls-offload driver build $$d --kernel $$k || exit 1; done; \
		$(PYTEST) tests/nicsim/test_41_driver.py --kernel $$k || exit 1; \
	done

test-broken-drivers: build  ## mlx5_core on a simulated ConnectX-6 Dx: settings, counters, self-test, devlink, mstflint, recovery; three broken ones are caught and named; notes of its profile; three minutes
	$(VENV)/bin/ktls-offload lab fetch 6.1
	$(PY) -m tests.lib.catalogue.mstflint
	$(VENV)/bin/ktls-offload driver build mlx5 --kernel 6.1
	$(PYTEST) tests/nicsim/drivers --kernel 6.1

debug-kernel: venv  ## a kernel with KASAN, lockdep, kmemleak and the like, from Debian's source, into the cache; for KERNEL=debug
	$(VENV)/bin/ktls-offload lab fetch debug

test-debug-kernel: build  ## five drivers whose bugs only a debug kernel sees, and good cards on it, after `make debug-kernel`; six minutes
	$(LAB_PYTEST) tests/nicsim/test_10_catalogue.py --kernel debug --slice all

check-profiles: build  ## every profile against its driver's tables in Debian's source of three kernels; fetches 3 x 160 MB, once
	$(VENV)/bin/ktls-offload lab fetch 6.1 6.12 7.2
	$(PYTEST) tests/drivers

soak: build  ## STAGE N times beside LOAD busy processes, shuffled: how often does each test fail?
	@ci/setup soak
	ci/soak $(N) $(LOAD) build/soak/$$(date -u +%Y%m%dT%H%M%SZ)-$$$$ $(PYTEST) --kernel $(KERNEL) --profile $(NIC) \
		$(if $(filter test-unit,$(STAGE)),-n $(WORKERS) --dist worksteal) \
		$(if $(findstring /,$(T)),'$(T)',$(STAGE:test-%=tests/%) $(if $(T),-k '$(T)'))

test-vm: test-hw test-sw-fallback  ## everything that boots the lab, on KERNEL=...

hunt: build  ## random scenarios for HOURS; keeps each failure with its seed in results/hunt-TIME; Ctrl-C stops it and prints the table
	$(PY) -m tests.lib.scenario.hunt --hours $(HOURS) --kernel $(KERNEL) --nic $(NIC) $(if $(SEED),--seed $(SEED))

bench: bench-lab bench-wire bench-meter bench-cost  ## lab, wire verifier, CPU meter, cost mode; benchmarks/results has a run of each

bench-lab: build  ## the lab's own: boot, round trip, memory
	$(PY) -m benchmarks.lab --kernel $(KERNEL)

bench-wire: build  ## the wire verifier beside libcrypto, its oracle and tshark
	@ci/setup bench
	$(PY) -m benchmarks.wire

bench-meter: venv  ## the CPU meter: known loads, its own cost
	$(PY) -m benchmarks.meter

bench-cost: build  ## cost mode: three boots, beside their bars
	$(PY) -m benchmarks.cost --kernel $(KERNEL)

iperf3: setup  ## build/iperf3-tls: iperf3 with TLS on its data streams
	$(MAKE) -C native/iperf3

bench-iperf: iperf3 venv  ## plain iperf3-tls beside the stock iperf3: counted in a VM; minutes
	$(PY) -m benchmarks.iperf_cost --kernel $(KERNEL)

bench-history: venv  ## 10,000 results: words, JSON, page
	$(PY) -m benchmarks.history

bench-handover: build  ## connect beside a running stunnel; 10,000 hand-overs, 1,000 failures
	$(MAKE) -s -C native/ktls-handoff check
	$(PY) -m benchmarks.handover

bench-migration: build  ## a live migration by stunnel, QEMU's TLS and kernel TLS: here, then in the lab
	$(PY) -m benchmarks.migration
	$(PY) -m benchmarks.migration --kernel $(KERNEL) --rounds 1

bench-channels: build  ## 1 to 8 TLS channels, counted in a cost VM; then here, what needs no kernel TLS
	$(PY) -m benchmarks.channels --kernel $(KERNEL) --host

bench-video: build  ## files and films, counted in a cost VM; then nginx here
	@ci/setup bench
	$(PY) -m benchmarks.video --kernel $(KERNEL) --host

bench-ipsec: build  ## ESP beside kernel TLS, counted in a cost VM
	$(PY) -m benchmarks.ipsec --kernel $(KERNEL)

example: build  ## build/example: a certified and a failed report from real runs, with pictures; 5 to 10 minutes
	$(PY) -m tests.lib.catalogue.example_runs build/example --kernel $(KERNEL) --jobs $(JOBS)

pictures: build  ## build/example/pictures again, from the runs of `make example`, by a Chromium of the cache; WRITE=1: those of docs/, too
	$(PY) -m tests.lib.catalogue.browser
	$(PY) -m tests.lib.catalogue.example_runs build/example --pictures $(if $(WRITE),--show docs/assets)

bench-operator: build  ## what doctor, ls and enable take, in the VM and here
	$(PY) -m benchmarks.verbs --kernel $(KERNEL)

deb:  ## build/ktls-offload_VERSION_all.deb and ktls-offload-suite, and ktls-offload-handoff of this machine's release
	@packaging/build-deb-handoff --check
	packaging/build-deb
	packaging/build-deb-handoff

rpm:  ## build/ktls-offload-VERSION-1.noarch.rpm, for RHEL 9 and compatible; needs the Debian package rpm
	packaging/build-rpm

man: venv  ## build/ktls-offload.1 from the parser's words; man -l reads it
	@mkdir -p build
	$(PY) -m offload.cli.man build/ktls-offload.1

docs: venv  ## build/site: these pages as a web site, with search; a broken link fails
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict

bench-endurance: build  ## 64 MiB each way under 2 % loss; minutes
	$(PY) -m benchmarks.endurance --kernel $(KERNEL)

fuzz: fuzz-wire fuzz-native  ## hostile bytes for every parser under ASan and UBSan, and a hostile card for the wire verifier

fuzz-wire: setup-check build  ## the wire verifier: parsers and a hostile card side by side, for SECONDS; then plants and its oracle
	$(MAKE) -j 2 --output-sync=target fuzz-core fuzz-adversary
	$(PY) -m tests.lib.wiregen.plants --count 10000
	WIRE_CASES=4000 $(PYTEST) -n auto --dist worksteal tests/unit/suite/wire/test_wire_good.py tests/unit/suite/wire/test_wire_differential.py

fuzz-core:
	$(MAKE) -C offload/suite/wire/core fuzz

fuzz-adversary:
	$(PY) -m tests.lib.wiregen.adversary --seconds $(SECONDS)

fuzz-native: setup-check build  ## ktls-handoff by its number of inputs; cx6sim, wirebox and nicsim's receiver for SECONDS each
	$(MAKE) -C native/ktls-handoff fuzz
	$(MAKE) -C native/cx6sim fuzz
	$(MAKE) -C native/wirebox fuzz
	$(MAKE) -C native/nicsim/tests fuzz FUZZ_SECONDS=$(SECONDS)

check: check-python check-text check-native check-module  ## every linter and static check

check-python: venv
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

check-text: setup-check venv
	$(VENV)/bin/codespell
	$(PY) ci/prose
	shellcheck $$(git -c 'safe.directory=*' ls-files -z | LC_ALL=C xargs -0 awk 'FNR == 1 && /^#!(\/usr\/bin\/env bash|\/bin\/(ba)?sh)/ { print FILENAME }')

check-native: setup-check
	$(MAKE) -C native lint

check-module: build setup-check  ## W=1 and sparse on each kernel, checkpatch --strict
	$(PY) -m offload.suite.bench.cards.module lint --kernel 6.1
	$(PY) -m offload.suite.bench.cards.module lint --kernel 6.12
	$(PY) -m offload.suite.bench.cards.module lint --kernel 7.2
	native/nicsim/checkpatch

build: setup venv
	$(MAKE) -s -C native
	@$(PY) -m compileall -q offload  # the guest cannot write here, and compiling under emulation is slow

fetch: setup-check build  ## what the tests need of the network, into the cache: kernels, QEMU, modules, nginx and wrk, tlshd, HAProxy, network managers, Python 3.9, Chromium
	$(VENV)/bin/ktls-offload lab fetch
	$(PY) -m tests.lib.rig.fetch

fetch-driver: build  ## the real driver with what its lab needs, into the cache: another QEMU, mlx5_core built for KERNEL; two minutes
	$(VENV)/bin/ktls-offload lab fetch $(KERNEL) --kind mlx5

setup:
	@ci/setup run

$(PYTHON):  # a minimal Debian has none, and ci/stages needs it
	@ci/setup run

setup-check:
	@ci/setup check

venv: setup $(VENV)/.stamp
$(VENV)/.stamp: pyproject.toml $(PINS)
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -c $(PINS) -e '.[$(EXTRAS)]'
	touch $@

pins: setup  ## the newest releases that pyproject.toml allows, into ci/constraints.txt; `make test` then says if they serve
	$(PYTHON) -m venv --clear build/pins
	build/pins/bin/pip install --quiet --disable-pip-version-check -e '.[$(EXTRAS)]'
	sed '/^[^#]/d' $(PINS) >build/pins.txt
	build/pins/bin/pip freeze --exclude-editable >>build/pins.txt
	mv build/pins.txt $(PINS)
	rm -r build/pins

try:  ## a test or some (T=...) against a lab that stays up for the next call; without T it ends
	@[ $(VENV)/.stamp -nt pyproject.toml -a $(VENV)/.stamp -nt $(PINS) ] || $(MAKE) build
	@$(MAKE) -s --no-print-directory -C native
	@$(PY) -m tests.lib.catalogue.tryout "$(T)" --kernel $(KERNEL) --profile $(NIC)

try-down:  ## end the labs of `make try`
	@$(PY) -m tests.lib.catalogue.tryout ""

clean:  ## what was built here; the download cache stays
	rm -rf build results $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
	$(MAKE) -s -C native clean
