# SPDX-License-Identifier: BSD-2-Clause
# Targets for tests, measurements and documents: read by the Makefile, whose settings and functions it uses.

# Settings, for the command line or the environment:
SCENARIO ?=#            the lab scenarios of `make lab`; all if empty
BENCH ?=#               what `make bench` measures; all if empty, "none": only print what was measured before
TIME ?= 600#            seconds of `make fuzz` and `make load`
CLIENTS ?= 10000#       connections at once of `make load`
SEED ?=#                what repeats its random times; one by chance if empty
PINGS ?= 10000000#      of `make soak`, over one connection
CONNECTIONS ?= 1000000# of `make soak`, in all
TARGET ?=#              what `make fuzz` tries; all of test/fuzz/targets.c if empty
DEPTH ?= 3#             how far `make walk` goes: each step more takes some thirty times as long
BASE ?= HEAD~1#         the commit that `make bloatcheck` and `make bench-since` compare with
DEVICE ?=#              the RDMA device of `make check-hardware`
MUTANTS ?=#             the rows of `make mutants`, as a shell pattern of their first lines; all if empty

# ---- programs of the tests ----

# A fake has unused parameters, and defines a function declared elsewhere.
$(BUILD)/objects/test/%.o: private WARNINGS += -Wno-unused-parameter -Wno-missing-prototypes
$(BUILD)/inject.so: private WARNINGS += -Wno-unused-parameter

units := $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard test/unit/*.c)))
network := $(BUILD)/objects/test/network.a
simulated := -Wl,@test/network/network.wrap
suite := $(sort $(wildcard test/conformance/*.c))
scramble := $(if $(filter 1,$(WITH_SOFT)),test/network/scramble.c)
fuzz_flags := -O2 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all \
	      -fsanitize-coverage-ignorelist=test/fuzz/uncounted
fuzz := $(patsubst %,test/fuzz/%.c,world attack formats command_line peer targets)

# The simulated network: a program links the parts that it names.
$(network): $(call object,$(sort $(wildcard test/network/*.c))) $(members)
	$(call say,AR)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $(filter %.o,$^)

# A unit test names further linker flags (such as -Wl,--wrap=rdma_connect) in a line "/* link: FLAGS */".
$(units): $(BUILD)/test/unit/%: $(BUILD)/objects/test/unit/%.o $(call object,test/main.c) $(network) $(archive)
	$(call say,LINK)
	$(Q)mkdir -p $(@D)
	$(Q)$(link) $$(sed -n 's|^/\* link: \(.*\) \*/$$|\1|p' test/unit/$*.c) -o $@ $^ $(libraries) -lcmocka

# The suite for any backend of transport.h; the lab runs it.
$(BUILD)/conformance: $(call object,$(suite) $(scramble)) $(archive)
	$(call say,LINK)
	$(Q)$(link) -o $@ $^ $(libraries)

# Programs on the simulated provider, which replaces librdmacm and libibverbs. The suite's own main stays.
verbs_tests := $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard test/verbs/*.c)))
provider := $(call object,$(wildcard test/verbs/provider/*.c))
$(verbs_tests): $(BUILD)/test/verbs/%: $(BUILD)/objects/test/verbs/%.o $(call object,test/conformance/pair.c) $(provider) $(archive)
	$(call say,LINK)
	$(Q)mkdir -p $(@D)
	$(Q)$(link) $$(sed -n 's|^/\* link: \(.*\) \*/$$|\1|p' test/verbs/$*.c) -Wl,@test/verbs/provider/wrap -o $@ \
		$(filter %.o,$^) $(archive) $(filter-out -lrdmacm -libverbs,$(libraries)) -lcmocka

$(BUILD)/test/verbs/suite: $(call object,$(filter-out %/pair.c,$(suite)))
$(filter-out %/suite,$(verbs_tests)): $(call object,test/main.c)

$(BUILD)/hostile: $(call object,test/fault/hostile.c)
	$(call say,LINK)
	$(Q)$(link) -o $@ $^ $(libraries)

# The library preloaded into the program to make a library call fail. It comes before the sanitizers, so it cannot use them.
$(BUILD)/inject.so: test/fault/inject.c Makefile $(settings)
	$(call say,LINK)
	$(Q)$(compile) -fno-sanitize=all -fPIC -shared -o $@ $<

# The benches' references and measuring programs.
bench_programs := $(patsubst %,$(BUILD)/%,udp_echo udp_limit verbs_ping most_memory)
$(bench_programs): $(BUILD)/%: $(BUILD)/objects/test/bench/%.o $(archive)
	$(call say,LINK)
	$(Q)$(link) -o $@ $^ $(libraries)

# The program's own code, on a device as fast as memory.
$(BUILD)/own_code: $(call object,test/bench/own_code.c) $(provider) $(archive)
	$(call say,LINK)
	$(Q)$(link) -Wl,@test/verbs/provider/wrap -o $@ $(filter %.o,$^) $(archive) $(filter-out -lrdmacm -libverbs,$(libraries)) -lcmocka

# The fuzz targets, for libFuzzer (clang) and to replay inputs without it; every interleaving of losses, copies, late packets
# and timers, up to a depth; the program whose instructions are counted.
$(BUILD)/fuzz $(BUILD)/replay $(BUILD)/walk $(BUILD)/cost: $(BUILD)/%: $(call object,test/network/network.c) $(archive)
	$(call say,LINK)
	$(Q)$(link) $(simulated) -o $@ $(filter %.o,$^) $(archive) $(libraries)

$(BUILD)/fuzz: $(call object,$(fuzz) $(scramble) test/fuzz/engine.c)
$(BUILD)/replay: $(call object,$(fuzz) $(scramble) test/fuzz/replay.c)
$(BUILD)/walk: $(call object,test/walk/walk.c test/walk/ends.c test/network/rules.c)
$(BUILD)/cost: $(call object,test/cost/cost.c)

-include $(patsubst %.o,%.d,$(call object,test/main.c $(wildcard test/*/*.c test/verbs/provider/*.c)))

units: $(units)
verbs-tests: $(verbs_tests)
conformance: $(BUILD)/conformance
faults-tools: $(BUILD)/inject.so $(if $(filter 1,$(WITH_VERBS)),$(BUILD)/hostile)

# Built before the parts start, because these run in parallel.
programs-quick: all $(archive) $(call object,cmd/main.c)
	+@$(build) SANITIZE=1 units

programs-fast: all $(call object,cmd/main.c) conformance faults-tools $(BUILD)/walk $(BUILD)/cost
	+@$(build) SANITIZE=1 all units conformance verbs-tests $(BUILD)/sanitize/replay $(BUILD)/sanitize/walk

programs: programs-fast
	+@$(build) static

# ---- long runs, which keep their results in docs ----

fuzz: setup-fuzz ## hostile packets, messages, peers, files and command lines, with libFuzzer, for TIME seconds
	+@$(build) BUILD=$(BUILD)/libfuzzer CC=clang CFLAGS="$(fuzz_flags)" LDFLAGS=-fsanitize=fuzzer no_start_files= $(BUILD)/libfuzzer/fuzz
	+@$(build) SANITIZE=1 $(BUILD)/sanitize/replay
	@BUILD=$(BUILD) test/fuzz/search $(TIME) $(TARGET)

fuzz-corpus: ## minimise the corpus in test/fuzz/corpus, with what was found
	@BUILD=$(BUILD) test/fuzz/search --keep $(TARGET)

walk: all ## all interleavings of loss, copies, late packets and timers on the soft transport, to DEPTH deviations
	@BUILD=$(BUILD) test/walk/run $(DEPTH)

load: all ## CLIENTS connections at once to an rping server, for TIME seconds; a tenth of the clients is killed
	@BUILD=$(BUILD) test/load/clients $(TIME) $(CLIENTS) $(SEED)

soak: all ## millions of pings over one connection (PINGS), and of connections (CONNECTIONS)
	@BUILD=$(BUILD) test/load/soak $(PINGS) $(CONNECTIONS)

coverage: writable setup-fast ## the lines that the tests without a virtual machine reach, by folder
	@BUILD=$(BUILD) test/apart test/coverage/run

faults: setup ## the fault matrix, in full: minutes
	+@$(build) all faults-tools
	@BUILD=$(BUILD) test/fault/run all

faults-sanitized: setup ## the fault matrix with AddressSanitizer and UBSan
	+@$(build) all faults-tools
	+@$(build) SANITIZE=1 static_sanitizers= all
	@BUILD=$(BUILD) test/fault/run sanitized

# ---- the lab ----

lab: all conformance faults-tools static ## run lab scenarios: all, or those of SCENARIO="rping ucmatose/server"
	@RDMATEST=$(abspath $(BUILD))/rdmatest test/lab/run $(SCENARIO)

lab-shell: all conformance faults-tools static ## a shell in a lab guest with everything in it
	@RDMATEST=$(abspath $(BUILD))/rdmatest test/lab/shell

check-hardware: all $(BUILD)/conformance ## the conformance suite and the commands on DEVICE, a page to send in (docs/hardware.md)
	@BUILD=$(BUILD) DEVICE=$(DEVICE) test/hardware/run

# ---- packages ----

setup: ## install missing packages for building and testing
	@test/setup test/packages/build test/packages/check test/lab/packages

setup-all: setup setup-cross setup-packaging setup-fuzz setup-debian
	@test/libev $(BUILD)/libev
	@for processor in amd64 arm64 armhf riscv64; do BUILD=$(BUILD) test/sysroot $$processor >/dev/null || exit; done
	@BUILD=$(BUILD) test/lab/prepare arm64

setup-fast:
	@test/setup test/packages/build test/packages/check

setup-fuzz:
	@test/setup test/packages/build test/packages/fuzz

setup-bench:
	@test/setup test/packages/build test/packages/bench test/lab/packages >&2

setup-deb:
	@test/setup test/packages/build test/packages/deb

setup-packaging:
	@test/setup test/packages/build test/packages/deb test/packages/packaging

setup-debian:
	@test/setup test/packages/debian

setup-cross:
	@test/setup test/packages/build test/packages/cross

setup-demo:
	@test/setup test/packages/build test/lab/packages

mutants: writable setup-fast ## small wrong changes, one at a time: the part of the tests named for each must detect it
	@BUILD=$(BUILD) test/mutants/run $(MUTANTS)

# ---- editors ----

known_sources = $(sort $(sources) $(wildcard test/*/*.c test/*/*/*.c))
compile_commands.json: ## the compiler's command line of each source, for clangd and other editors' helpers
	@mark='['; for file in $(known_sources); do \
		printf '%s\n{"directory": "%s", "file": "%s", "command": "%s -c %s"}' "$$mark" '$(CURDIR)' "$$file" \
			'$(subst ','\'',$(subst ",\",$(compile)))' "$$file"; mark=,; \
	done >$@; echo ']' >>$@

# ---- sizes and speed ----

size: ## the sizes of all builds next to the stock tools, into docs/size.md and README.md
	@$(MAKE) --no-print-directory -s setup-cross >&2
	@BUILD=$(BUILD) test/size/report

bloatcheck: ## which symbols have become larger since the commit BASE
	@BUILD=$(BUILD) BASE=$(BASE) test/size/bloat

bench: setup-bench all $(bench_programs) $(BUILD)/own_code ## measure speed beside the stock tools, as in docs/performance.md
	@BUILD=$(BUILD) test/bench/run $(BENCH)

bench-since: setup-bench all $(bench_programs) ## measure beside the program of the commit BASE
	@BUILD=$(BUILD) BASE=$(BASE) test/bench/since

.PHONY: check-hardware units verbs-tests conformance faults-tools programs programs-fast programs-quick fuzz fuzz-corpus walk load soak coverage \
	faults faults-sanitized lab lab-shell setup setup-fast setup-all setup-demo setup-fuzz \
	setup-bench setup-deb setup-packaging setup-debian setup-cross mutants compile_commands.json size bloatcheck bench bench-since
