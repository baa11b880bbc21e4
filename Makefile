# SPDX-License-Identifier: BSD-2-Clause
# rdmatest: `make help` lists the targets.

VERSION  := 0.1.0
BUILD    ?= build
CROSS_COMPILE ?=
CC       := $(if $(filter default,$(origin CC)),$(CROSS_COMPILE)gcc,$(CC))
CFLAGS   ?= -O2 -g
WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	    -Wcast-qual -Wwrite-strings -Wvla -Wundef -Wformat=2 -Wno-variadic-macros -Werror
ALL_CFLAGS  := -std=gnu11 $(WARNINGS) -I. -DVERSION='"$(VERSION)"' -D_GNU_SOURCE -fno-strict-aliasing $(CFLAGS)
ALL_LDFLAGS := -Wl,--as-needed $(LDFLAGS)
LIBS     := -lrdmacm -libverbs -lev

SOURCES  := $(sort $(wildcard core/*.c transport/*.c transport/verbs/*.c cmd/*.c cmd/*/*.c))
OBJECTS  := $(SOURCES:%.c=$(BUILD)/%.o)

all: $(BUILD)/rdmatest ## build the program

$(BUILD)/rdmatest: $(OBJECTS)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

-include $(OBJECTS:.o=.d)

clean: ## remove what was built
	rm -rf $(BUILD)

.PHONY: all clean
