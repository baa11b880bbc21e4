# SPDX-License-Identifier: BSD-2-Clause
# rdmatest. `make help` lists the targets and settings.

VERSION := 1.0.0

# Settings, for the command line or the environment:
BUILD  ?= build#      the folder for everything that is built
PREFIX ?= /usr/local#   what is installed goes to $(DESTDIR)$(PREFIX)
CFLAGS ?= -Os -g#       optimisation and debugging; LDFLAGS too
CROSS_COMPILE ?=#       the prefix of a cross compiler: aarch64-linux-gnu-
SANITIZE ?=#            1: AddressSanitizer and UBSan, built into $(BUILD)/sanitize
LTO ?= 1#               0: without optimisation of the whole program when it is linked
HARDEN ?= 1#            0: without stack protector, FORTIFY, PIE and full RELRO, for the smallest file
CONFIG ?=#              a file with lines as in cmd/small.config; the command line overrides it
COMMANDS ?= rping ucmatose mckey selftest doctor# the commands of the program
WITH_VERBS ?= 1#        0: without rdma-core: only the soft transport, which needs libev
WITH_SOFT ?= 1#         0: without the soft transport, RoCE v2 in user space
WITH_REPORT ?= 1#       0: without figures: no summary, progress, JSON, Prometheus, --histogram or --interval-report
WITH_HELP ?= 1#         0: --help lists the options without explaining them
WITH_NAMES ?= 1#        0: without look-ups: a host is a numeric address
WITH_EXTRAS ?= 1#       0: without most options of our own: path, pace, polling, service, --targets, --paths, --expect, --reconnect
WITH_DIAGNOSTICS ?= 1#  0: errors have the text of the kernel or library, without explanations, hints and traces
STATIC ?=#              1: one file without shared libraries, built into $(BUILD)/static
STATIC_PROVIDERS ?= rxe,mlx5#  the drivers of rdma-core in such a file
LIBEV ?=#               a folder with libev's source, to compile instead of using the installed library
LINKS ?= yes#           no: `make install` makes no links rping, ucmatose and mckey; the manual pages are rdmatest-rping...
V ?=#                   1: show the commands
WERROR ?=#              1: a compiler warning is an error, as in .ci/run and, unless this is 0, with SANITIZE

override BUILD := $(patsubst ./%,%,$(strip $(BUILD)))$(if $(SANITIZE),/sanitize)$(if $(STATIC),/static)
bin := $(DESTDIR)$(PREFIX)/bin
man := $(DESTDIR)$(PREFIX)/share/man/man1
doc := $(DESTDIR)$(PREFIX)/share/doc/rdmatest

parts := VERBS SOFT REPORT HELP NAMES EXTRAS DIAGNOSTICS
# CONFIG has lines as written by Kconfig. They override the environment, and are checked before make reads them.
ifneq ($(CONFIG),)
wrong := $(shell grep -m1 -HnvE '^(|\#.*|COMMANDS="[a-z ]*"|WITH_($(subst $() ,|,$(parts) CAUSES))=[yn])$$' $(CONFIG) 2>&1)
$(if $(wrong),$(error CONFIG has lines COMMANDS="..." and WITH_x=y or n: $(wrong)))
include $(abspath $(CONFIG))
override COMMANDS := $(subst ",,$(COMMANDS))
endif
# WITH_DIAGNOSTICS was WITH_CAUSES until 1.0. On the command line the new name takes precedence, and CONFIG over the environment.
ifeq ($(filter undefined $(if $(CONFIG),environment),$(origin WITH_CAUSES))$(filter command,$(origin WITH_DIAGNOSTICS)),)
override WITH_DIAGNOSTICS := $(WITH_CAUSES)
endif
$(foreach part,$(parts),$(eval override WITH_$(part) := $(patsubst n,0,$(patsubst y,1,$(strip $(WITH_$(part)))))))
$(foreach part,$(parts),$(if $(filter 0 1,$(WITH_$(part))),,$(error WITH_$(part)=$(WITH_$(part)): 0 or 1 is expected)))
unknown := $(foreach name,$(filter-out $(parts:%=WITH_%) WITH_CAUSES,$(filter WITH_%,$(.VARIABLES))),$(if $(filter command,$(origin $(name))),$(name)))
$(if $(unknown),$(error $(firstword $(unknown)): unknown; the parts are $(parts:%=WITH_%)))

# A command is a folder of cmd/ (except reporting); one with .linked in its row has a link and a manual page.
commands := $(filter-out reporting,$(patsubst cmd/%/,%,$(wildcard cmd/*/)))
linked = $(patsubst cmd/%/,%,$(dir $(shell grep -l '\.linked = true' $(wildcard cmd/*/*.c))))
unknown := $(filter-out $(commands),$(COMMANDS))
$(if $(unknown),$(error COMMANDS: $(firstword $(unknown)): unknown; choose from $(commands)))
$(if $(filter 1,$(WITH_VERBS) $(WITH_SOFT)),,$(error WITH_VERBS=0 WITH_SOFT=0: no transport is left))
explained := $(filter selftest doctor,$(COMMANDS)) $(foreach part,REPORT EXTRAS,$(if $(filter 1,$(WITH_$(part))),WITH_$(part)))
$(if $(filter 0,$(WITH_DIAGNOSTICS)),$(if $(strip $(explained)),$(error WITH_DIAGNOSTICS=0: not with $(firstword $(explained)))))
$(if $(strip $(COMMANDS)),,$(error COMMANDS is empty; choose from $(commands)))
$(if $(filter selftest,$(COMMANDS)),$(if $(filter rping ucmatose mckey,$(COMMANDS)),,$(error COMMANDS: selftest needs rping, ucmatose or mckey)))

$(if $(filter default,$(origin CC)),$(eval CC := $(CROSS_COMPILE)gcc))
AR := $(CROSS_COMPILE)ar
PKG_CONFIG ?= $(CROSS_COMPILE)pkg-config
include cmd/flags.mk

build = $(MAKE) --no-print-directory -j$$(nproc)
Q := $(if $(V),,@)
silent := $(findstring s,$(firstword -$(MAKEFLAGS)))
say = @$(if $(V)$(silent),:,printf '  %-5s %s\n' $(1) $(if $(filter LINK,$(1)),$@,$(patsubst $(BUILD)/%,%,$(patsubst $(BUILD)/whole/%,%,$(@:$(BUILD)/objects/%=%)))))

backends := $(if $(filter 1,$(WITH_VERBS)),transport/verbs/*.c) $(if $(filter 1,$(WITH_SOFT)),transport/soft/*.c transport/soft/*/*.c)
# Code that only a part calls needs no line here: the linker drops it.
all_sources := $(sort $(wildcard core/*.c transport/*.c $(backends) cmd/*.c cmd/reporting/*.c $(COMMANDS:%=cmd/%/*.c)))
# Without diagnostics X_tiny.c replaces X.c.
twins := $(filter %_tiny.c,$(all_sources))
sources := $(filter-out $(if $(filter 1,$(WITH_DIAGNOSTICS)),$(twins),$(twins:%_tiny.c=%.c)),$(all_sources))
object = $(1:%.c=$(BUILD)/objects/%.o)
# An object of the program: another one than for the tests if the linker optimises the whole program.
program_object = $(if $(whole_program),$(1:%.c=$(BUILD)/whole/%.o),$(object))
both_objects = $(sort $(object) $(program_object))
# Everything but main, for the tests.
archive := $(BUILD)/objects/rdmatest.a
settings := $(BUILD)/objects/settings
members := $(BUILD)/objects/members
headers := $(if $(filter 1,$(WITH_VERBS)),infiniband/verbs.h rdma/rdma_cma.h) ev.h stdio.h

all: $(BUILD)/rdmatest ## build the program

$(BUILD)/rdmatest: $(call program_object,$(sources)) $(libev) $(members)
	$(call say,LINK)
	$(Q)$(link) $(if $(whole_program),$(code) $(whole_program)) -o $@ $(filter %.o,$^) $(libraries)
	$(Q)echo $(COMMANDS) >$(BUILD)/commands.all
	$(Q)echo $(filter $(linked),$(COMMANDS)) >$(BUILD)/commands

$(archive): $(call object,$(filter-out cmd/main.c,$(sources))) $(libev) $(members)
	$(call say,AR)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $(filter %.o,$^)

# -MT: dependencies hold whichever way BUILD names the folder.
define compile_object
	$(call say,CC)
	$(Q)mkdir -p $(@D)
	$(Q)$(compile) -MMD -MP -MT '$(@:$(BUILD)/%=$$(BUILD)/%)' -c -o $@ $<
endef
$(BUILD)/objects/%.o: %.c $(settings)
	$(compile_object)
$(BUILD)/whole/%.o: private code += $(whole_program)
$(BUILD)/whole/%.o: %.c $(settings)
	$(compile_object)

ifneq ($(LIBEV),)
$(libev): $(LIBEV)/ev.c $(settings)
	$(call say,CC)
	$(Q)$(compile) -fno-lto -w -c -o $@ $<
endif

# The version in --version and JSON between releases, "1.0.0+gCOMMIT". Only these files have it, so that a commit rebuilds no
# others.
built_from := $(if $(wildcard .git),$(shell git describe --always --dirty --exclude '*' 2>/dev/null))
released := $(if $(built_from),$(filter v$(VERSION),$(shell git describe --exact-match --dirty --match 'v$(VERSION)' 2>/dev/null)))
versioned := $(call both_objects,cmd/main.c cmd/command.c cmd/reporting/json.c)
$(versioned): private commit := $(if $(built_from),$(if $(released),,+g$(built_from)))
$(versioned): $(BUILD)/objects/commit
# Functions with "...": flags.mk says why.
$(call both_objects,core/log.c core/output.c core/output_tiny.c core/sysfs.c cmd/run.c): private code += $(integers)
$(BUILD)/objects/commit: FORCE $(settings)
	@$(call remember,$(built_from) $(released))

# remember TEXT: the target changes with it
remember = text='$(subst ','\'',$(1))'; [ "$$text" = "$$(cat $@ 2>/dev/null)" ] || printf '%s\n' "$$text" >$@
find_headers = printf '\#include <%s>\n' $(headers) | $(compile) -E -x c - >/dev/null

can_write = mkdir -p $(1) 2>/dev/null && [ -w $(1) ] || \
	{ echo "make: cannot write to $(BUILD); choose another folder: make BUILD=/tmp/rdmatest" >&2; exit 1; }
writable:
	@$(call can_write,$(BUILD))

# What it is built with: all is built anew when that changes. The first build looks for the compiler, the headers, and the
# libraries of a static program.
$(settings): FORCE
	@$(call can_write,$(@D))
	@[ -e $@ ] || { $(find_headers) $(find_libraries); } >/dev/null 2>&1 || \
		{ test/setup -n test/packages/build $(if $(find_libraries),test/packages/static) && $(find_headers) $(find_libraries); }
	@$(call remember,$(compile) $(whole_program) $(link) $(libraries))

# The archives' sources: a removed file must disappear from its archive.
$(members): FORCE $(settings)
	@$(call remember,$(sources) $(wildcard test/network/*.c))
FORCE:

-include $(patsubst %.o,%.d,$(call both_objects,$(sources)))

tiny: ## rping, ucmatose and mckey, or COMMANDS, with classic options on verbs, into $(BUILD)/tiny
small: ## for small images: these on verbs and soft with JSON, without help texts, into $(BUILD)/small
tiny small:
	+@$(build) BUILD=$(BUILD)/$@ CONFIG=cmd/$@.config all

static: ## one file without shared libraries, into $(BUILD)/static
	+@$(build) STATIC=1 all

demo: writable setup-demo ## a tour of one to three minutes (verbs in a virtual machine, if there is no RDMA device here)
	+@test/quiet $(BUILD)/build.log 'building $(BUILD)/rdmatest' $(build) all
	@BUILD=$(BUILD) test/demo/run

# The tiers of the tests: test/README.md describes them and their cost. PART:WORD is test/PART/run WORD. When make ends, they
# end, too.
run_tests = env BUILD=$(BUILD) setpriv --pdeathsig TERM test/run
quick := layers unit
fast := $(quick) verbs cli fault:servers fault:calls fault:limits soft:conformance soft:commands soft:endings soft:two-hosts soft:routes soft:unanswered soft:paths fuzz walk cost make style
whole := lab:core $(fast) soft:benches builds:core size
nightly := debian:unstable debian:13 debian:12 $(filter-out soft:% fault:%,$(fast)) fault soft:all memcheck builds size load cluster completion cross packaging machine \
	   then soft:floods then lab then lab:sanitized then lab:tiny then lab:self then debian:lab then mutants

check-quick: writable setup-fast ## 13 s, while editing: the layers and the unit tests
	@$(run_tests) -b programs-quick $(quick)

check-fast: writable setup-fast ## 100 s, before a push: every test that needs no virtual machine
	@$(run_tests) -b programs-fast $(fast)

check: writable setup ## 4 to 7 min, before a merge: that, the core of the lab, and the builds that matter most
	@$(run_tests) -b programs $(whole)

test: check ## another name for check

check-all: writable setup-all ## 70 min, by night: everything
	@JOBS=$$(($$(nproc) + 2)) $(run_tests) -b programs $(nightly)

check-%: writable ## one part of the tests, a folder of test/ with a program "run"
	@$(run_tests) -b programs $*

check-cross: setup-cross
check-packaging: setup-packaging
check-debian: setup-debian

docs: all ## update manual pages, completions, the JSON Schema and transcripts from the sources and the program
	@docs/update $(BUILD)/rdmatest
	@docs/transcripts $(BUILD)/rdmatest README.md docs/*.md

# The documents that the manual pages name, and examples.
documents := $(addprefix docs/,cluster.md exit-codes.md json.md paths.md recipes.md report.schema.json security.md packaging/systemd/rdmatest-rping.service) \
	     $(wildcard docs/packaging/kubernetes/*.yaml)

# Links come first: a stock program in their place ends it before its manual page is overwritten. The program is installed as
# built: $(BUILD)/commands has the names of its links, with a page each; completions offer the commands in commands.all.
install: $(if $(wildcard $(BUILD)/commands),,all) ## install the program, links, manual pages, documents, completions (DESTDIR, PREFIX, LINKS=no)
	$(Q)install -D -m 755 $(stripped) $(BUILD)/rdmatest $(bin)/rdmatest
	$(Q)[ "$(LINKS)" = no ] || [ -z "$$(cat $(BUILD)/commands)" ] || \
		LIST=$(BUILD)/commands DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) ./symlinks.sh install
	$(Q)install -D -m 644 -t $(doc) $(documents)
	$(Q)sed -i 's,/usr/bin/,$(PREFIX)/bin/,' $(doc)/rdmatest-rping.service
	$(Q)install -D -m 644 docs/man/rdmatest.1 $(man)/rdmatest.1
	$(Q)for name in $$(cat $(BUILD)/commands); do \
		install -D -m 644 docs/man/$$name.1 $(man)/$(if $(filter no,$(LINKS)),rdmatest-)$$name.1; done
	$(Q)LIST=$(BUILD)/commands COMMANDS="$$(cat $(BUILD)/commands.all)" DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) LINKS=$(LINKS) \
		docs/completion/install add
	@$(if $(silent),:,echo) "installed: $(bin)/rdmatest$(if $(filter no,$(LINKS)),, and its links), its manual pages, documents and completions"

install-strip: stripped := --strip --strip-program=$(CROSS_COMPILE)strip
install-strip: install ## the same, with the program stripped of its symbols

# It starts commands on many hosts, and needs bash and jq, which an image or a package of the program does not.
install-all-pairs: ## install rdmatest-all-pairs, which tests a cluster from this host, and its manual page
	$(Q)install -D -m 755 docs/all-pairs $(bin)/rdmatest-all-pairs
	$(Q)install -D -m 644 docs/all-pairs.1 $(man)/rdmatest-all-pairs.1

uninstall: ## remove what install has installed
	$(Q)echo $(linked) | LIST=- DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) ./symlinks.sh remove
	$(Q)rm -f $(addprefix $(doc)/,$(notdir $(documents))) $(bin)/rdmatest $(bin)/rdmatest-all-pairs $(man)/rdmatest-all-pairs.1 \
		$$(grep -ls '^\.TH [A-Z]* 1 "[0-9-]*" rdmatest ' $(foreach name,rdmatest $(linked),$(man)/$(name).1 $(man)/rdmatest-$(name).1))
	$(Q)[ ! -d $(doc) ] || rmdir --ignore-fail-on-non-empty $(doc)
	$(Q)DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) docs/completion/install remove

archived := rdmatest-$(VERSION)
dist: writable ## the source as $(BUILD)/rdmatest-VERSION.tar.gz: the last commit, or this unpacked archive
	@docs/packaging/source $(BUILD) $(archived)

deb: setup-deb dist ## Debian packages of that, in $(BUILD)/deb
	@$(if $(V),,test/quiet $(BUILD)/deb.log 'building Debian packages') docs/packaging/deb $(BUILD)/$(archived).tar.gz $(BUILD)/deb
	@ls $(BUILD)/deb/*_$(VERSION)_*.deb

clean: ## remove what was built
	rm -rf $(BUILD)

help: ## this list
	@for file in Makefile test/tools.mk; do [ $$file = Makefile ] || printf '\nTests in full, and figures:\n'; \
		sed -n 's/^\([a-z][a-z%._ -]*\):[^#=]*## \(.*\)/\1|\2/p' $$file | while IFS='|' read -r names text; do \
		[ $${#names} -le 16 ] || { echo "  $$names"; names=; }; printf '  %-16s %s\n' "$$names" "$$text"; done; done
	@printf '\nSettings:\n'; sed -n 's/^\([A-Z_]*\) *?= *\([^#]*\)# *\(.*\)/\1|\2|\3/p' $(MAKEFILE_LIST) | \
		while IFS='|' read -r name value text; do printf '  %-16s %s%s\n' "$$name" "$$text" "$${value:+ ($$value)}"; done

include test/tools.mk

.PHONY: all writable tiny small static demo check test check-quick check-fast check-all docs install install-strip install-all-pairs uninstall dist deb clean help
