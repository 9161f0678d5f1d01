# The front door. Every target does all the set-up that it needs.
#
#   make            build preset `release` into build/
#   make demo       build, then serve a dozen functions on two emulated GPUs
#   make test       build, all tests that need no GPU, formatting, clang-tidy, fuzzers for 10 s
#   make test-pytorch   PyTorch's own wheel on the emulated GPU against the CPU (installs 5 GB, once)
#   make fuzz       every fuzz target for FUZZ_SECONDS (default 600)
#   make soak       64 functions over memory for ten, SOAK_SECONDS (default 600) long, then 24 under
#                   80% load for half as long
#   make truth      the same requests on torpord and in torpor-sim: docs/truth.md
#   make bench      benchmarks, all or BENCHMARKS="NAME..."; results and plots in bench/results/
#   make bundle     a relocatable folder for a machine with a GPU: bundle/torpor.tar.xz
#   make asan tsan  the tests under sanitizers (build-asan/, build-tsan/)
#   make format     rewrite the sources in the project's format
#   make clean      remove every build folder

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
FUZZ_SECONDS ?= 600
SOAK_SECONDS ?= 600
BENCHMARKS ?=
TRUTH_FLAGS ?=
# 1: `make test` installs PyTorch for its tests where it is not there, in place of skipping them.
TORPOR_PYTORCH ?=
JOBS ?= $(shell nproc)
BUILD = cmake --preset $(1) -Wno-dev --log-level=WARNING && cmake --build --preset $(1) -j $(JOBS)
CTEST = ctest --output-on-failure -j $(JOBS) --no-tests=error

.PHONY: setup build demo test test-pytorch fuzz fuzz-build soak truth bench bundle asan tsan format clean help

help:
	@sed -n '3,/^$$/s/^# \{0,1\}//p' Makefile

setup:
	@tools/dev/install_packages.sh

build: setup
	@$(call BUILD,release)

demo: build
	@python3 tools/demo/demo.py --build-dir build

test: build fuzz-build
	@tools/dev/check_format.sh
	@echo "formatting: clean"
	@tools/dev/check_tidy.sh
	@tools/dev/run_fuzzers.sh 10
	@if [ "$(TORPOR_PYTORCH)" = 1 ]; then tools/dev/pytorch_environment.sh; fi
	@$(CTEST) --test-dir build -LE 'gpu|soak|^pytorch$$'

test-pytorch: build
	@tools/dev/pytorch_environment.sh
	@$(CTEST) --test-dir build -L pytorch

fuzz-build: setup
	@$(call BUILD,fuzz)

fuzz: fuzz-build
	@tools/dev/run_fuzzers.sh $(FUZZ_SECONDS)

soak: build
	@SOAK_SECONDS=$(SOAK_SECONDS) build/tests/soak_test

truth: build
	@tools/dev/truth.sh build $(TRUTH_FLAGS)

bench: build
	@tools/dev/run_benchmarks.sh build $(BENCHMARKS)

bundle: build
	@tools/bundle/bundle.sh build bundle

asan: setup
	@$(call BUILD,asan)
	@$(CTEST) --test-dir build-asan -LE 'gpu|soak|pytorch|jit'

# Debian's gRPC and Abseil are not instrumented; executors end without joining their threads.
TSAN_OPTIONS = ignore_noninstrumented_modules=1 report_thread_leaks=0 suppressions=$(CURDIR)/tools/dev/tsan.supp

tsan: setup
	@$(call BUILD,tsan)
	@TSAN_OPTIONS="$(TSAN_OPTIONS)" $(CTEST) --test-dir build-tsan -LE 'gpu|soak|pytorch|jit'

format:
	@tools/dev/check_format.sh --fix

clean:
	rm -rf build build-* bundle
