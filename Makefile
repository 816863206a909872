# The everyday commands. `make` lists them; CMakePresets.json is where the builds are described.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
BENCH ?=
SCALE ?= 10
STORE ?= file
FAULTS ?=
SECONDS ?= 60
SEEDS ?= 100000
ROUNDS ?= 1000
EDITS ?= 50
MATRIX ?=
comma := ,
URLS ?= memory file sqlite
WAITERS ?= 10000
GRANTS ?= 300
SEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')

# The build folders share one cache, because paths in it are relative to the project.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_SLOPPINESS := pch_defines,time_macros
export CTEST_PARALLEL_LEVEL ?= $(JOBS)
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(JOBS)

# The labels of tests/CMakeLists.txt that run under the sanitizers. A test run takes those that reach most code for their
# time; `make sanitize` takes them all.
asan_labels := unit quick conformance
tsan_labels := unit conformance

# Servers of other versions that a test run asks, too: the tests called conformance_NAME. `make matrix` asks many more.
other_servers := valkey8 etcd35

# A sanitizer makes everything several times slower; it looks for other things than rare timings.
SANITIZER_SCALE ?= 0.25

CTEST := ctest --output-on-failure --no-tests=error

.PHONY: help build run demo test test-long migrate-long worktree-long edit-long sanitize bench torture chain-campaign matrix waiters mutants model fuzz simulate lint format serve-campaign election-campaign openapi
.PHONY: install deb deb-test container-test clean
.PHONY: packages style build-release build-asan build-tsan run-release run-asan run-tsan

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

build: ## Build the command: build/bin/holdfast
	@scripts/install-packages.sh build
	@[[ -f build/build.ninja ]] || scripts/configure.sh release HOLDFAST_TESTS=OFF
	@cmake --build build --target holdfast

run: build ## Watch two processes compete for one lock
	@scripts/demo.sh build/bin/holdfast

demo: ## Start the sample web application with its daemon and the console, until Ctrl-C
	@scripts/install-packages.sh build
	@scripts/configure.sh release HOLDFAST_EXAMPLES=ON
	@cmake --build build --target holdfast_demo
	@exec examples/cockpit/start.sh build/demo

# A tested program mostly waits: for a lease to run out, for a killed server to come back. What the processors have left
# over meanwhile goes to the next build.
test: packages ## Run every test, also under ASan, UBSan and TSan
	@$(MAKE) build-release
	@$(MAKE) -j2 run-release build-asan BEHIND=1
	@$(MAKE) -j2 run-asan build-tsan BEHIND=1
	@$(MAKE) -j2 run-tsan style BEHIND=1
	@scripts/skipped.sh build build/asan build/tsan
	@echo "holdfast: all tests passed: release, asan+ubsan, tsan, and the style of sources and scripts"

packages:
	@scripts/install-packages.sh build test lint bench
	@scripts/npm-packages.sh tests/console
	@scripts/matrix-servers.sh $(other_servers) >/dev/null
	@scripts/recipe-tools.sh build/recipes/knex

# With the benchmarks, so that they cannot rot between measurements.
build-release:
	@scripts/configure.sh release HOLDFAST_TESTS=ON HOLDFAST_BENCH=ON
	@cmake --build build --target all all_verify_interface_header_sets

# One more than there are processors, since a test mostly waits.
run-release:
	@$(CTEST) --test-dir build --parallel $$(($(JOBS) + 1)) --label-exclude '^long$$'

# Behind running tests a build is quiet and polite.
build-asan build-tsan: build-%:
	@scripts/configure.sh $*
	@$(if $(BEHIND),nice -n 19) cmake --build build/$* --target $(addprefix tests_,$($*_labels)) $(if $(BEHIND),-- --quiet)

run-asan run-tsan: run-%:
	@HOLDFAST_TEST_SCALE=$(SANITIZER_SCALE) scripts/fixed-addresses.sh $(CTEST) --test-dir build/$* --label-regex "^($$(tr ' ' '|' <<<'$($*_labels)'))$$"

style:
	@$(if $(BEHIND),nice -n 19) scripts/lint.sh format shell mutants changes

sanitize: ## Run all tests of our code in motion under ASan, UBSan and TSan
	@scripts/install-packages.sh build test
	@$(MAKE) build-asan run-asan asan_labels='unit quick conformance process cli server'
	@$(MAKE) build-tsan run-tsan tsan_labels='unit quick conformance process cli server'

torture: ## Torture a store with the faults of a seed: STORE=file FAULTS=kill,stop SECONDS=60 SEED=1
	@scripts/install-packages.sh build test
	@scripts/configure.sh release HOLDFAST_TESTS=ON
	@cmake --build build --target torture
	@build/bin/torture --store $(STORE) --faults "$(FAULTS)" --seconds $(SECONDS) --seed $(SEED)

chain-campaign: ## Kill and stop the two processes of run, on sqlite or postgres: STORE=sqlite ROUNDS=1000 SEED=1
	@scripts/install-packages.sh build test
	@scripts/configure.sh release HOLDFAST_TESTS=ON
	@cmake --build build --target chain_test
	@HOLDFAST_TEST_SCALE=$$(awk 'BEGIN { print $(ROUNDS) / 8 }') HOLDFAST_SEED=$(SEED) \
	  build/bin/chain_test --gtest_filter='*/$(if $(filter file,$(STORE)),sqlite,$(STORE))' --gtest_brief=1

serve-campaign: ## Kill the daemon under load, and hold an event up: ROUNDS=100 SECONDS=60 SEED=1
	@scripts/install-packages.sh build test
	@scripts/configure.sh release HOLDFAST_TESTS=ON
	@cmake --build build --target daemon_kill_test keeper
	@HOLDFAST_TEST_SCALE=$$(awk 'BEGIN { print $(ROUNDS) / 4 }') build/bin/daemon_kill_test --gtest_filter='*Kill*'
	@HOLDFAST_TEST_SCALE=$$(awk 'BEGIN { print $(SECONDS) / 3 }') build/bin/daemon_kill_test --gtest_filter='LateEvent.*'

openapi: build ## Check the OpenAPI document with redocly and spectral, from npm
	@scripts/npm-packages.sh tests/openapi
	@tests/openapi/check.sh build/bin/holdfast

election-campaign: ## Take the server away in the middle of elections: ROUNDS=50 SEED=1
	@scripts/install-packages.sh build test
	@scripts/configure.sh release HOLDFAST_TESTS=ON
	@cmake --build build --target election_outage_test keeper
	@HOLDFAST_TEST_SCALE=$(ROUNDS) HOLDFAST_SEED=$(SEED) \
	  $(CTEST) --test-dir build --tests-regex '^election_outage_test$$' --timeout 86400 --verbose

matrix: ## Run conformance and torture on the servers that people run: MATRIX=valkey8,mysql9 SECONDS=60 SEED=1
	@scripts/install-packages.sh build test matrix
	@scripts/configure.sh release HOLDFAST_TESTS=ON
	@cmake --build build --target store_conformance_test postgres_failover_test redis_cluster_test torture
	@scripts/matrix.sh build $(SECONDS) $(SEED) $(subst $(comma), ,$(MATRIX))

test-long: ## Run the process tests longer, from a random seed: SCALE=10 SEED=...
	@scripts/install-packages.sh build test
	@scripts/configure.sh release HOLDFAST_TESTS=ON
	@cmake --build build
	@echo "SCALE=$(SCALE) SEED=$(SEED)"
	@HOLDFAST_TEST_SCALE=$(SCALE) HOLDFAST_SEED=$(SEED) $(CTEST) --test-dir build --label-regex '^process$$' --timeout 86400

migrate-long: ## Migrations of two processes at once, killed at random points, and of 200 schemas: SCALE=100 SEED=...
	@scripts/install-packages.sh build test
	@scripts/configure.sh release HOLDFAST_TESTS=ON
	@cmake --build build --target migrate_test keeper
	@echo "SCALE=$(SCALE) SEED=$(SEED)"
	@HOLDFAST_TEST_SCALE=$(SCALE) HOLDFAST_SEED=$(SEED) $(CTEST) --test-dir build --tests-regex '^migrate_test$$' --timeout 86400

worktree-long: ## 200 writers during snapshots, 200 holders that are overtaken, and every call killed: SCALE=25 SEED=...
	@scripts/install-packages.sh build test
	@scripts/configure.sh release HOLDFAST_TESTS=ON
	@cmake --build build --target holdfast worktree_snapshot_test worktree_test worktree_crash_test
	@echo "SCALE=$(SCALE) SEED=$(SEED)"
	@HOLDFAST_TEST_SCALE=$(SCALE) HOLDFAST_SEED=$(SEED) $(CTEST) --test-dir build --tests-regex '^worktree_(snapshot_|crash_)?test$$' --timeout 86400

edit-long: packages ## Every test of the sample application's pages; two tabs click Edit at the same time: EDITS=50
	@scripts/configure.sh release HOLDFAST_TESTS=ON
	@cmake --build build --target holdfast cockpit cockpit_pages
	@HOLDFAST_EDIT_ROUNDS=$(EDITS) $(CTEST) --test-dir build --tests-regex '^edit_pages_'

mutants: ## Plant known bugs one by one and check that a test finds each
	@scripts/install-packages.sh build test
	@scripts/mutants.sh

model: ## Search the models of the protocol exhaustively, with and without faults
	@scripts/install-packages.sh model
	@scripts/model.sh

fuzz: ## Search every decoder with libFuzzer: SECONDS=60 for each
	@scripts/install-packages.sh build test fuzz
	@scripts/configure.sh fuzz
	@cmake --build build/fuzz --target fuzzers
	@scripts/fuzz.sh $(SECONDS)

simulate: ## Play simulated weather from random seeds: SEEDS=100000 SEED=...
	@scripts/install-packages.sh build test
	@scripts/configure.sh release HOLDFAST_TESTS=ON
	@cmake --build build --target simulate
	@build/bin/simulate --seeds $(SEEDS) --from $(SEED)

waiters: ## Put 10,000 waiters of one process on one lock: URLS='memory file sqlite' WAITERS=10000 GRANTS=300
	@scripts/install-packages.sh build test
	@scripts/configure.sh release HOLDFAST_TESTS=ON
	@cmake --build build --target waiters
	@build/bin/waiters --waiters $(WAITERS) --grants $(GRANTS) $(URLS)

bench: ## Measure, beside what people would use instead: BENCH=P1,P9 BENCH_GROWTH=1000000
	@BENCH=$(BENCH) scripts/bench.sh

lint: ## Check format, shell scripts and, with clang-tidy, all of src/
	@scripts/install-packages.sh build test lint
	@scripts/lint.sh format shell analysis

format: ## Format every source file in place
	@scripts/install-packages.sh lint
	@scripts/lint.sh apply-format

# The folder is built into the programs, so another one is another build.
install: ## Install below PREFIX=/usr/local (and DESTDIR)
	@scripts/configure.sh release $$([[ -f build/build.ninja ]] || echo HOLDFAST_TESTS=OFF) CMAKE_INSTALL_PREFIX=$(abspath $(PREFIX))
	@cmake --build build --target holdfast holdfast_installed
	@cmake --install build

deb: ## Build the Debian packages into build/deb, and check them with lintian
	@scripts/install-packages.sh build deb
	@scripts/deb.sh build lint

deb-test: ## Install the packages of `make deb` in a clean root, and reach every store from there
	@scripts/install-packages.sh build test deb
	@scripts/configure.sh release HOLDFAST_TESTS=ON
	@cmake --build build --target keeper
	@scripts/deb.sh try

container-test: ## Build the images of the container files with buildah, and try them
	@scripts/install-packages.sh build container
	@[[ -f build/build.ninja ]] || scripts/configure.sh release HOLDFAST_TESTS=OFF
	@cmake --build build --target holdfast holdfast_installed
	@scripts/container.sh sources $$([[ -f build/deb/holdfast-root.tar ]] && echo packages)

clean: ## Remove the build folder
	@rm -rf build
