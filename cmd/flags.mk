# SPDX-License-Identifier: BSD-2-Clause
# How a file is compiled and the program linked, for the Makefile: `compile`, `link` and `libraries`. A flag that makes the program smaller has
# a line of its own, with the bytes that rdmatest grows without it (gcc 12, x86-64).

# known FLAG: the flag, if the compiler knows it
known = $(shell $(CC) -Werror $(1) -S -o /dev/null -x c /dev/null >/dev/null 2>&1 && echo $(1))

# ---- warnings ----

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
WARNINGS += -Wpointer-arith -Wcast-qual -Wwrite-strings -Wvla -Wundef -Wformat=2
# Table rows omit zero members, and macros empty arguments, of which only clang warns.
WARNINGS += -Wno-missing-field-initializers
WARNINGS += -Wno-variadic-macros -Wno-gnu-zero-variadic-macro-arguments $(call known,-Wno-c23-extensions)
WARNINGS += $(if $(filter 1,$(or $(WERROR),$(SANITIZE))),-Werror)

# ---- sanitizers ----

ifneq ($(SANITIZE),)
# Only tests run it: -O1 compiles in half the time, -g1 has line numbers for the sanitizers' traces.
ifeq ($(origin CFLAGS),file)
CFLAGS := -O1 -g1
endif
sanitizers := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
# gcc's, for programs that start often: loading these libraries is a quarter of a start.
static_sanitizers = $(call known,-static-libasan -static-libubsan)
$(BUILD)/rdmatest $(BUILD)/conformance: private LDFLAGS += $(static_sanitizers)
endif

# ---- hardening ----

# Before a packager's flags, which take precedence. FORTIFY needs optimisation, adds nothing to the sanitizers, and is left to those
# who set it themselves. A static program is not position-independent.
ifeq ($(strip $(HARDEN)),1)
optimises := $(filter-out -O0,$(lastword $(filter -O%,$(CFLAGS))))
fortify = $(if $(or $(SANITIZE),$(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS) $(CC))),,\
	  $(if $(optimises),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
harden_code = -fstack-protector -fPIE $(fortify)
harden_file = $(if $(STATIC),,-pie) -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack
else
# Compilers may make a PIE unasked.
harden_code = -fno-pie
harden_file = $(if $(STATIC),,-no-pie)
endif

# ---- size: code ----

# Always. The objects have no unwind tables (gdb reads those of -g); the linker leaves out sections that nothing refers to.
code := -fno-strict-aliasing
code += -fno-asynchronous-unwind-tables -fno-unwind-tables # aarch64: 50,000
code += -ffunction-sections -fdata-sections

# In place of -Os, where the compiler knows them.
small := -Oz                           # 2,700
small += -fno-optimize-sibling-calls   # 600
small += -fno-caller-saves             # 700
small += -fno-expensive-optimizations  # 900
small += -fno-tree-forwprop            # 600
small += -malign-data=abi              # 700
small += $(if $(STATIC),,-mcmodel=tiny)# aarch64 alone: 8,300; a static program is too large for it

# By gcc for x86 alone, which knows -malign-data=abi. Calls by way of the GOT are safe: full RELRO has filled it before main().
small_x86 := -fno-tree-dominator-opts  # 430; aarch64: -200
small_x86 += $(if $(STATIC),,-fno-plt) # 2,110; aarch64: -3,100, clang: -1,500

# Tried: -fno-tree-loop-im (-700) and -fno-move-loop-invariants (-500) cost 9 and 2 % of the rate of large messages.
known_small := $(if $(filter -Os,$(CFLAGS)),$(if $(SANITIZE),,$(foreach flag,$(small),$(call known,$(flag)))))
smaller := $(known_small) $(if $(filter -malign-data=abi,$(known_small)),$(small_x86))

# Whole-program optimisation: 4,700; aarch64: 12,000
ifeq ($(strip $(LTO))$(SANITIZE),1)
whole_program := $(call known,-flto -flto-partition=none)
endif

# For files with functions with "...", which then save no floating-point registers: 640. test/layers checks that no floating-point
# number is passed to them.
integers := $(call known,-mgeneral-regs-only)

# ---- size: the file ----

smaller_file := -Wl,--gc-sections -Wl,--as-needed
# The tables are full of pointers: packed, their relocations take 1 KiB instead of 20. Older linkers ignore the flag.
smaller_file += -Wl,-z,pack-relative-relocs
# LDFLAGS come later: -Wl,--build-id and -Wl,-z,separate-code there undo these two.
smaller_file += -Wl,--build-id=none          # 36
smaller_file += -Wl,-z,noseparate-code       # 4,096, by one segment for code and constants
smaller_file += -Wl,--sort-section=alignment # 50, of gaps
# An undefined weak symbol needs no dynamic entry, and without unwind tables no index of them is needed.
smaller_dynamic := -Wl,-z,nodynamic-undefined-weak
smaller_dynamic += -Wl,--no-eh-frame-hdr
# Of glibc's start files (2.34 on) only the one that calls main() is needed: 580.
start_file = $(shell file=$$($(CC) -print-file-name=Scrt1.o 2>/dev/null) && echo 'int main(void) { return 0; }' | \
	     $(CC) -pie -fPIE -x c - -x none -nostartfiles "$$file" -o /dev/null 2>/dev/null && echo "-nostartfiles $$file")
smaller_dynamic += $(if $(harden_file),$(start_file))
smaller_file += $(if $(sanitizers)$(STATIC),,$(smaller_dynamic))

# ---- libraries ----

LIBEV := $(strip $(LIBEV))
libraries := $(if $(filter 1,$(WITH_VERBS)),-lrdmacm -libverbs) $(if $(LIBEV),,-lev)

ifneq ($(LIBEV),)
# Only the parts that core/loop.c uses. libev and the files that include ev.h need the same settings.
libev_headers := -isystem $(LIBEV) -DEV_STANDALONE=1 -DEV_FEATURES=4 -DEV_SIGNAL_ENABLE=1 -DEV_ASYNC_ENABLE=1 \
		 -DEV_USE_EPOLL=1 -DEV_USE_POLL=0 -DEV_USE_SELECT=0 -DEV_USE_LINUXAIO=0 -DEV_USE_IOURING=0 \
		 -DEV_USE_EVENTFD=1 -DEV_USE_SIGNALFD=0 -DEV_USE_TIMERFD=0 -DEV_USE_MONOTONIC=1
libev := $(BUILD)/objects/libev.o
endif

ifneq ($(STATIC),)
comma := ,
static := -static -Wl,-T,cmd/static.ld
# A driver is linked if it is requested by name; an unknown name ends the link.
ifeq ($(WITH_VERBS),1)
libraries := $(patsubst %,-Wl$(comma)--require-defined=verbs_provider_%,$(subst $(comma), ,$(strip $(STATIC_PROVIDERS)))) \
	     -Wl,--start-group $(shell $(PKG_CONFIG) --static --libs librdmacm libibverbs 2>/dev/null) -Wl,--end-group \
	     $(if $(LIBEV),,-lev) -lm
# An empty program is linked first: otherwise a missing library shows only after minutes of compiling.
find_libraries = && $(PKG_CONFIG) --print-errors --exists librdmacm libibverbs && \
		 echo 'int main(void) { return 0; }' | $(CC) -x c - -x none $(filter-out $(CC),$(link)) -o /dev/null $(libraries)
endif
endif

# Debian's musl-gcc only finds the C library's headers: the kernel's are in gcc's path.
ifeq ($(notdir $(firstword $(CC))),musl-gcc)
kernel_headers := $(addprefix -idirafter /usr/include/,. $(shell gcc -print-multiarch))
endif

# ---- all of it ----

# The settings, for the sources.
defines = -DRDMATEST_VERSION='"$(VERSION)"' -DRDMATEST_COMMIT='"$(commit)"' \
	  $(foreach part,$(parts),-DWITH_$(part)=$(WITH_$(part))) -D'COMMANDS(ROW)=$(foreach name,$(COMMANDS),ROW($(name)))' \
	  $(foreach name,$(commands),-DCOMMAND_$(name)=$(if $(filter $(name),$(COMMANDS)),1,0)) \
	  -DHAS_WORDS=$(if $(filter 1,$(WITH_EXTRAS))$(filter ucmatose mckey,$(COMMANDS)),1,0) \
	  -DHAS_GROUPS=$(if $(filter mckey doctor,$(COMMANDS)),1,0) -DHAS_GIDS=$(if $(filter ucmatose mckey doctor,$(COMMANDS)),1,0)

# Assertions are only for the tests, which have the sanitizers.
compile = $(CC) -std=gnu11 $(WARNINGS) -I. -D_GNU_SOURCE $(defines) $(code) $(harden_code) $(libev_headers) $(kernel_headers) \
	  $(or $(sanitizers),-DNDEBUG) $(CPPFLAGS) $(CFLAGS) $(smaller)
link = $(CC) $(sanitizers) $(harden_file) $(if $(whole_program),$(harden_code)) \
       $(CFLAGS) $(smaller) $(smaller_file) $(static) $(LDFLAGS)
