# SPDX-License-Identifier: BSD-2-Clause
# rdmatest. `make help` lists the targets and settings.

VERSION := 0.1.0

# Settings, for the command line or the environment:
BUILD  ?= build#      where everything that is made goes
PREFIX ?= /usr/local#   what is installed goes to $(DESTDIR)$(PREFIX)
CFLAGS ?= -Os -g#       optimisation and debugging; LDFLAGS too
CROSS_COMPILE ?=#       the prefix of a cross compiler: aarch64-linux-gnu-
SANITIZE ?=#            1: AddressSanitizer and UBSan, built into $(BUILD)/sanitize
WITH_VERBS ?= 1#        0: without rdma-core; what is left is the soft transport, and libev
WITH_SOFT ?= 1#         0: without the soft transport, RoCE v2 in user space
WITH_JSON ?= 1#         0: without --json, --json-stream, --csv and --prometheus
WITH_DOCTOR ?= 1#       0: without the command doctor
WITH_SELFTEST ?= 1#     0: without the command selftest
STATIC ?=#              1: one file without shared libraries, built into $(BUILD)/static
STATIC_PROVIDERS ?= rxe,mlx5#  the drivers of rdma-core in such a file
LIBEV ?=#               a folder with libev's source, to be compiled in place of the installed library
LINKS ?= yes#           no: `make install` leaves out the links named rping, ucmatose and mckey; their pages are rdmatest-rping...
V ?=#                   1: show the commands
SCENARIO ?=#            the lab scenarios of `make lab`; all if empty
BENCH ?=#               what `make bench` measures; all if empty, "none": only print what was measured before
TIME ?= 600#            seconds of `make fuzz`
BASE ?= HEAD~1#         the commit that `make bloatcheck` compares with

override BUILD := $(strip $(BUILD))$(if $(SANITIZE),/sanitize)$(if $(STATIC),/static)
bin := $(DESTDIR)$(PREFIX)/bin
man := $(DESTDIR)$(PREFIX)/share/man/man1
pages := $(notdir $(wildcard docs/man/*.1))

ifeq ($(origin CC),default)
CC := $(CROSS_COMPILE)gcc
endif
AR := $(CROSS_COMPILE)ar
PKG_CONFIG ?= $(CROSS_COMPILE)pkg-config
WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
	    -Wpointer-arith -Wcast-qual -Wwrite-strings -Wvla -Wundef -Wformat=2 -Wno-variadic-macros -Werror
ifneq ($(SANITIZE),)
sanitizers := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
endif
compile = $(CC) -std=gnu11 $(WARNINGS) -I. -D_GNU_SOURCE -DRDMATEST_VERSION='"$(VERSION)"' -DWITH_VERBS=$(WITH_VERBS) \
	  -DWITH_SOFT=$(WITH_SOFT) -DWITH_JSON=$(WITH_JSON) -DWITH_DOCTOR=$(WITH_DOCTOR) -DWITH_SELFTEST=$(WITH_SELFTEST) \
	  -fno-strict-aliasing -fno-asynchronous-unwind-tables $(libev_headers) $(kernel_headers) $(sanitizers) \
	  $(CPPFLAGS) $(CFLAGS)
# The tables are full of pointers: packed, their relocations take 1 KiB instead of 20 (older linkers ignore the wish).
link = $(CC) $(sanitizers) $(CFLAGS) -Wl,--as-needed -Wl,-z,pack-relative-relocs $(static) $(LDFLAGS)
WITH_VERBS := $(strip $(WITH_VERBS))
WITH_SOFT := $(strip $(WITH_SOFT))
WITH_JSON := $(strip $(WITH_JSON))
WITH_DOCTOR := $(strip $(WITH_DOCTOR))
WITH_SELFTEST := $(strip $(WITH_SELFTEST))
LIBEV := $(strip $(LIBEV))
libraries := $(if $(filter 1,$(WITH_VERBS)),-lrdmacm -libverbs) $(if $(LIBEV),,-lev)

ifneq ($(LIBEV),)
# Only what core/loop.c uses of it; where both are compiled, the headers must be told the same.
libev_headers := -isystem $(LIBEV) -DEV_STANDALONE=1 -DEV_FEATURES=4 -DEV_SIGNAL_ENABLE=1 -DEV_ASYNC_ENABLE=1 \
		 -DEV_USE_EPOLL=1 -DEV_USE_POLL=1 -DEV_USE_SELECT=0 -DEV_USE_LINUXAIO=0 -DEV_USE_IOURING=0 \
		 -DEV_USE_EVENTFD=1 -DEV_USE_SIGNALFD=0 -DEV_USE_TIMERFD=0 -DEV_USE_MONOTONIC=1
libev := $(BUILD)/objects/libev.o
endif

ifneq ($(STATIC),)
comma := ,
static := -static -Wl,--gc-sections -Wl,--build-id=none -Wl,-z,noseparate-code -Wl,-T,cmd/static.ld
# A driver is in the program if something asks for it by name; a name that there is not ends the link.
ifeq ($(WITH_VERBS),1)
libraries := $(patsubst %,-Wl$(comma)--require-defined=verbs_provider_%,$(subst $(comma), ,$(strip $(STATIC_PROVIDERS)))) \
	     -Wl,--start-group $(shell $(PKG_CONFIG) --static --libs librdmacm libibverbs) -Wl,--end-group \
	     $(if $(LIBEV),,-lev) -lm
endif
endif

# Debian's musl-gcc knows the C library's headers alone: those of the kernel are where gcc has them.
ifeq ($(notdir $(firstword $(CC))),musl-gcc)
kernel_headers := $(addprefix -idirafter /usr/include/,. $(shell gcc -print-multiarch))
endif
build = $(MAKE) --no-print-directory -j$$(nproc)
Q := $(if $(V),,@)
silent := $(findstring s,$(firstword -$(MAKEFLAGS)))
say = @$(if $(V)$(silent),:,printf '  %-5s %s\n' $(1) $(patsubst $(BUILD)/%,%,$(@:$(BUILD)/objects/%=$(BUILD)/%)))

# Everything but main is an archive, so that unit tests can link to it.
backends := $(if $(filter 1,$(WITH_VERBS)),transport/verbs/*.c) $(if $(filter 1,$(WITH_SOFT)),transport/soft/*.c)
for_programs := core/report_json.c core/report_csv.c core/report_prometheus.c \
		$(patsubst %,cmd/reporting/%.c,json csv prometheus forms told_report)
left_out := $(if $(filter 1,$(WITH_JSON)),cmd/reporting/text_only.c,$(for_programs)) \
	    $(if $(filter 1,$(WITH_DOCTOR)),,cmd/doctor/%) $(if $(filter 1,$(WITH_SELFTEST)),,cmd/selftest/%) \
	    $(if $(filter 1,$(WITH_DOCTOR) $(WITH_SELFTEST)),,cmd/end.c)
sources := $(filter-out $(left_out),$(sort $(wildcard core/*.c transport/*.c $(backends) cmd/*.c cmd/*/*.c)))
object = $(1:%.c=$(BUILD)/objects/%.o)
main := $(call object,cmd/main.c)
archive := $(BUILD)/objects/rdmatest.a
settings := $(BUILD)/objects/settings
units := $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard test/unit/*.c)))
suite := $(sort $(wildcard test/conformance/*.c))
fuzz_flags := -O2 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -Wno-missing-field-initializers
fuzz := test/fuzz/network.c test/fuzz/world.c test/fuzz/attack.c

all: $(BUILD)/rdmatest ## build the program

$(BUILD)/rdmatest: $(main) $(archive)
	$(call say,LINK)
	$(Q)$(link) -o $@ $^ $(libraries)

$(archive): $(filter-out $(main),$(call object,$(sources))) $(libev)
	$(call say,AR)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(BUILD)/objects/%.o: %.c Makefile $(settings)
	$(call say,CC)
	$(Q)mkdir -p $(@D)
	$(Q)$(compile) -MMD -MP -c -o $@ $<

ifneq ($(LIBEV),)
$(libev): $(LIBEV)/ev.c $(settings)
	$(call say,CC)
	$(Q)$(compile) -w -c -o $@ $<
endif

# What it is built with: all is built anew when that changes.
$(settings): FORCE
	@mkdir -p $(@D)
	@settings='$(subst ','\'',$(compile) $(link) $(libraries))'; \
		[ "$$settings" = "$$(cat $@ 2>/dev/null)" ] || printf '%s\n' "$$settings" >$@
FORCE:

# A unit test names what else its link needs (say, -Wl,--wrap=rdma_connect) in a line "/* link: FLAGS */".
$(units): $(BUILD)/test/unit/%: $(BUILD)/objects/test/unit/%.o $(archive)
	$(call say,LINK)
	$(Q)mkdir -p $(@D)
	$(Q)$(link) $$(sed -n 's|^/\* link: \(.*\) \*/$$|\1|p' test/unit/$*.c) -o $@ $^ $(libraries) -lcmocka

# The suite that any backend of transport.h is put through; the lab runs it.
$(BUILD)/conformance: $(call object,$(suite)) $(archive)
	$(call say,LINK)
	$(Q)$(link) -o $@ $^ $(libraries)

# The fault matrix: what runs its cells, and what is preloaded into the program to make a library call fail.
$(BUILD)/faults: $(call object,test/fault/matrix.c test/fault/cells.c)
	$(call say,LINK)
	$(Q)$(link) -o $@ $^

$(BUILD)/hostile: $(call object,test/fault/hostile.c)
	$(call say,LINK)
	$(Q)$(link) -o $@ $^ $(libraries)

$(BUILD)/inject.so: test/fault/inject.c Makefile $(settings)
	$(call say,LINK)
	$(Q)$(compile) -fPIC -shared -o $@ $<

# What the benches compare with, and a clock outside of what they start.
$(BUILD)/udp_echo $(BUILD)/first_packet $(BUILD)/verbs_ping: $(BUILD)/%: $(BUILD)/objects/test/bench/%.o $(archive)
	$(call say,LINK)
	$(Q)$(link) -o $@ $^ $(libraries)

# The fuzz target on the packets of the soft transport, for libFuzzer (clang) and to replay inputs without it.
$(BUILD)/fuzz $(BUILD)/replay: $(BUILD)/%: $(call object,$(fuzz)) $(archive)
	$(call say,LINK)
	$(Q)$(link) -Wl,@test/fuzz/world.wrap -o $@ $^ $(libraries)

$(BUILD)/fuzz: $(call object,test/fuzz/target.c)
$(BUILD)/replay: $(call object,test/fuzz/replay.c)

-include $(patsubst %.o,%.d,$(call object,$(sources) $(suite) $(wildcard test/unit/*.c test/fuzz/*.c test/bench/*.c test/fault/*.c)))

units: $(units)
conformance: $(BUILD)/conformance
faults-tools: $(BUILD)/faults $(BUILD)/inject.so $(if $(filter 1,$(WITH_VERBS)),$(BUILD)/hostile)

tiny: ## the three commands on verbs alone, into $(BUILD)/tiny
	+@$(build) BUILD=$(BUILD)/tiny WITH_SOFT=0 WITH_JSON=0 WITH_DOCTOR=0 WITH_SELFTEST=0 all

static: ## one file without shared libraries, into $(BUILD)/static
	+@$(build) STATIC=1 all

demo: setup-demo ## show rping, ucmatose and mckey at work (in the lab, if there is no RDMA device here)
	+@$(build) all
	@BUILD=$(BUILD) test/demo/run

check: setup ## run every test
	+@$(build) all conformance faults-tools static
	@BUILD=$(BUILD) test/run style unit cli completion fuzz fault memcheck layers builds soft cluster lab sanitized

check-fast: setup-fast ## run every test but the lab's and valgrind's, in a few minutes
	+@$(build) all conformance
	@BUILD=$(BUILD) test/run style unit cli completion fuzz fault layers soft cluster

check-unit check-cli check-completion check-fuzz check-style check-layers check-builds check-cluster: check-%: all ## run one part of the tests
	@BUILD=$(BUILD) test/$*/run

# Not a part of check: its compilers take half a gigabyte, and what they would find changes seldom.
check-cross: setup-cross all ## the soft transport on other processors, emulated, against this one
	@BUILD=$(BUILD) test/cross/run

# Not either: it packs the last commit, not what one works on.
check-packaging: setup-deb all ## the source archive, the Debian packages and the other recipes of docs/packaging
	@BUILD=$(BUILD) test/packaging/run

fuzz: setup-fuzz ## hostile packets into the soft transport, with libFuzzer, for TIME seconds
	+@$(build) BUILD=$(BUILD)/libfuzzer CC=clang CFLAGS="$(fuzz_flags)" LDFLAGS=-fsanitize=fuzzer $(BUILD)/libfuzzer/fuzz
	+@$(build) SANITIZE=1 $(BUILD)/sanitize/replay
	@BUILD=$(BUILD) test/fuzz/search $(TIME)

faults: setup ## the fault matrix, in full, into docs/reliability.md: an hour and more
	+@$(build) all conformance faults-tools static
	@BUILD=$(BUILD) test/fault/document

style: check-style ## clang-format, shellcheck and the licence lines

lab check-lab: all conformance faults-tools static ## run lab scenarios: all, or those of SCENARIO="rping ucmatose/server"
	@RDMATEST=$(abspath $(BUILD))/rdmatest test/lab/run $(SCENARIO)

lab-long: all conformance faults-tools static ## run every lab scenario, with the long ones that check leaves out
	@RDMATEST=$(abspath $(BUILD))/rdmatest test/lab/run -a

lab-shell: all conformance faults-tools static ## a shell in a lab guest with everything in it
	@RDMATEST=$(abspath $(BUILD))/rdmatest test/lab/shell

setup: ## install what building and testing need, if it is missing
	@test/setup test/packages/build test/packages/check test/lab/packages

setup-fast:
	@test/setup test/packages/build test/packages/check

setup-fuzz:
	@test/setup test/packages/build test/packages/fuzz

setup-bench:
	@test/setup test/packages/build test/packages/bench test/lab/packages >&2

setup-deb:
	@test/setup test/packages/build test/packages/deb

setup-cross:
	@test/setup test/packages/build test/packages/cross

setup-demo:
	@test/setup test/packages/build test/lab/packages

docs: all ## fill what manual pages and completions have from the option tables
	@docs/update $(BUILD)/rdmatest

size: ## the sizes of all builds next to the stock tools, as docs/size.md has them
	@BUILD=$(BUILD) test/size/report

bloatcheck: ## what has become larger since the commit BASE, symbol by symbol
	@BUILD=$(BUILD) BASE=$(BASE) test/size/bloat

bench: setup-bench all $(BUILD)/udp_echo $(BUILD)/first_packet $(BUILD)/verbs_ping ## measure beside the stock tools, as docs/performance.md has it
	@BUILD=$(BUILD) test/bench/run $(BENCH)

# What was built is installed as it was built. A program for another machine cannot list its commands here.
install: $(if $(wildcard $(BUILD)/rdmatest),,all) ## install the program, the links, manual pages and completions (DESTDIR, PREFIX, LINKS=no)
	install -D -m 755 $(stripped) $(BUILD)/rdmatest $(bin)/rdmatest
	install -D -m 755 docs/all-pairs $(bin)/rdmatest-all-pairs
	$(if $(filter no,$(LINKS)),,$(if $(CROSS_COMPILE),LIST=$(BUILD)/commands )DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) ./symlinks.sh install)
	for page in $(pages); do install -D -m 644 docs/man/$$page $(man)/$(if $(filter no,$(LINKS)),rdmatest-)$$page; done
	$(if $(filter no,$(LINKS)),mv $(man)/rdmatest-rdmatest.1 $(man)/rdmatest.1)
	DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) LINKS=$(LINKS) docs/completion/install add

ifneq ($(CROSS_COMPILE),)
install: $(BUILD)/commands
endif

install-strip: stripped := --strip --strip-program=$(CROSS_COMPILE)strip
install-strip: install ## the same, with the program stripped of its symbols

uninstall: $(BUILD)/commands ## remove what install has put there
	LIST=$(BUILD)/commands DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) ./symlinks.sh remove
	rm -f $(bin)/rdmatest $(bin)/rdmatest-all-pairs \
		$$(grep -ls '^\.TH [A-Z]* 1 "" rdmatest ' $(pages:%=$(man)/%) $(pages:%=$(man)/rdmatest-%))
	DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) docs/completion/install remove

$(BUILD)/commands: cmd/table.c
	@mkdir -p $(@D)
	@sed -n 's/^\t&\(.*\)_command,$$/\1/p' $< >$@

# The same commit makes the same bytes, whoever and wherever one is.
dist: ## the source of the last commit as $(BUILD)/rdmatest-VERSION.tar.gz
	@mkdir -p $(BUILD)
	git -c tar.umask=0022 archive --format=tar --prefix=rdmatest-$(VERSION)/ HEAD | gzip -9 -n >$(BUILD)/rdmatest-$(VERSION).tar.gz

deb: setup-deb dist ## Debian packages of that, in $(BUILD)/deb
	docs/packaging/deb $(BUILD)/rdmatest-$(VERSION).tar.gz $(BUILD)/deb

clean: ## remove what was built
	rm -rf $(BUILD)

help: ## this list
	@sed -n 's/^\([a-z][a-z -]*\):[^#=]*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r names text; do \
		[ $${#names} -le 16 ] || { echo "  $$names"; names=; }; printf '  %-16s %s\n' "$$names" "$$text"; done
	@echo; echo "Settings:"; sed -n 's/^\([A-Z_]*\) *?= *\([^#]*\)# *\(.*\)/\1|\2|\3/p' Makefile | \
		while IFS='|' read -r name value text; do printf '  %-16s %s%s\n' "$$name" "$$text" "$${value:+ ($$value)}"; done

.PHONY: all units conformance tiny static demo check check-fast check-unit check-cli check-completion check-fuzz check-style \
	check-layers check-builds check-cluster check-packaging check-cross fuzz faults faults-tools style lab check-lab lab-shell lab-long \
	setup setup-fast setup-demo setup-fuzz setup-bench setup-deb setup-cross docs size bloatcheck bench install install-strip uninstall dist deb clean help
