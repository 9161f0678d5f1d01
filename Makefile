# The front door. Every target does all the set-up that it needs.
#
#   make            build the product, preset `release`, into build/; no tests, no benchmarks
#   make demo       build, then serve a dozen functions on two emulated GPUs
#   make test       build all, every test but GPU, soak and long PyTorch ones, some under sanitizers,
#                   formatting, clang-tidy, fuzzers for 10 s
#   make sanitized  that part of `make test` under sanitizers, in minutes
#   make test-pytorch   PyTorch's own wheel on the emulated GPU against the CPU (installs 5 GB, once)
#   make fuzz       every fuzz target for FUZZ_SECONDS (default 600)
#   make soak       64 functions over memory for ten, SOAK_SECONDS (default 600) long, then 24 under
#                   80% load for half as long
#   make chaos      24 functions on 4 GPUs, CHAOS_SECONDS (default 600) long, while processes are killed
#                   (CHAOS_SEED, CHAOS_KILLS, CHAOS_VICTIMS, CHAOS_JSON: docs/chaos.md)
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
CHAOS_SECONDS ?= 600
BENCHMARKS ?=
TRUTH_FLAGS ?=
# 1: `make test` installs PyTorch for its tests where it is not there, in place of skipping them.
TORPOR_PYTORCH ?=
JOBS ?= $(shell nproc)
# $(call BUILD,PRESET[,TARGETS]): the product, or the targets named.
BUILD = cmake --preset $(1) -Wno-dev --log-level=WARNING && \
        cmake --build --preset $(1) -j $(JOBS) $(if $(2),--target $(2))
# The emulated driver is as strict as NVIDIA's (docs/emulator.md).
CTEST = TORPOR_EMULATOR_STRICT=true ctest --output-on-failure -j $(JOBS) --no-tests=error

# Test programs of `make sanitized`: rich in bytes from outside (asan) or in threads (tsan). Both lists
# build in a few minutes; `make asan tsan` run all.
ASAN_TESTS = base_test nvidia_cudnn_test nvidia_fatbin_test wire_test client_core_test memory_test
TSAN_TESTS = base_test client_core_test session_test
# Seconds of clang-tidy in `make test`: files beyond are left to tools/dev/check_tidy.sh.
TIDY_SECONDS ?= 180

.PHONY: setup toolkit build build-all sanitized demo test test-pytorch fuzz fuzz-build soak chaos truth bench bundle asan tsan format clean help

help:
	@sed -n '3,/^$$/s/^# \{0,1\}//p' Makefile

setup:
	@tools/dev/install_packages.sh
	@tools/dev/install_cuda_toolkit.sh

# Tests need the whole toolkit, the product a part.
toolkit: setup
	@tools/dev/install_cuda_toolkit.sh --all

build: setup
	@$(call BUILD,release)

build-all: toolkit
	@$(call BUILD,release,all tests/all bench/all)

demo: build
	@python3 tools/demo/demo.py --build-dir build

test: build-all sanitized fuzz-build
	@tools/dev/check_format.sh
	@echo "formatting: clean"
	@tools/dev/check_tidy.sh --seconds $(TIDY_SECONDS)
	@tools/dev/run_fuzzers.sh 10
	@if [ "$(TORPOR_PYTORCH)" = 1 ]; then tools/dev/pytorch_environment.sh; fi
	@$(CTEST) --test-dir build -LE 'gpu|soak|^pytorch$$'

test-pytorch: build-all
	@tools/dev/pytorch_environment.sh
	@$(CTEST) --test-dir build -L pytorch

fuzz-build: toolkit
	@$(call BUILD,fuzz)

fuzz: fuzz-build
	@tools/dev/run_fuzzers.sh $(FUZZ_SECONDS)

soak: build-all
	@SOAK_SECONDS=$(SOAK_SECONDS) build/tests/soak_test

chaos: build-all
	@CHAOS_SECONDS=$(CHAOS_SECONDS) CHAOS_JUDGE_TIMES=1 TORPOR_EMULATOR_STRICT=true build/tests/chaos_test

truth: build-all
	@tools/dev/truth.sh build $(TRUTH_FLAGS)

bench: build-all
	@tools/dev/run_benchmarks.sh build $(BENCHMARKS)

bundle: setup
	@$(call BUILD,release,all tests/e2e/programs/all cuda_layers_server ptx_conformance handle_benchmark link_benchmark)
	@tools/bundle/bundle.sh build bundle

# Libraries of the system that no sanitizer knows keep memory at exit.
LSAN_OPTIONS = suppressions=$(CURDIR)/tools/dev/lsan.supp

asan: toolkit
	@$(call BUILD,asan,all tests/all)
	@LSAN_OPTIONS="$(LSAN_OPTIONS)" $(CTEST) --test-dir build-asan -LE 'gpu|soak|pytorch|jit'

# Debian's gRPC and Abseil are not instrumented; executors end without joining their threads.
TSAN_OPTIONS = ignore_noninstrumented_modules=1 report_thread_leaks=0 suppressions=$(CURDIR)/tools/dev/tsan.supp

tsan: toolkit
	@$(call BUILD,tsan,all tests/all)
	@TSAN_OPTIONS="$(TSAN_OPTIONS)" $(CTEST) --test-dir build-tsan -LE 'gpu|soak|pytorch|jit'

sanitized: toolkit
	@$(call BUILD,asan,$(ASAN_TESTS))
	@for test in $(ASAN_TESTS); do echo "asan: $$test"; \
	  LSAN_OPTIONS="$(LSAN_OPTIONS)" build-asan/tests/$$test --gtest_brief=1; done
	@$(call BUILD,tsan,$(TSAN_TESTS))
	@for test in $(TSAN_TESTS); do echo "tsan: $$test"; \
	  TSAN_OPTIONS="$(TSAN_OPTIONS)" build-tsan/tests/$$test --gtest_brief=1; done

format:
	@tools/dev/check_format.sh --fix

clean:
	rm -rf build build-* bundle
