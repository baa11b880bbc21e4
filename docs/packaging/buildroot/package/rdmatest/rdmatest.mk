# SPDX-License-Identifier: BSD-2-Clause
# make BR2_EXTERNAL=.../docs/packaging/buildroot menuconfig

RDMATEST_VERSION = 0.1.0
RDMATEST_SITE = $(BR2_EXTERNAL_RDMATEST_PATH)/../../..
RDMATEST_SITE_METHOD = local
RDMATEST_OVERRIDE_SRCDIR_RSYNC_EXCLUSIONS = --exclude /build
RDMATEST_LICENSE = BSD-2-Clause
RDMATEST_LICENSE_FILES = LICENSE
RDMATEST_DEPENDENCIES = libev

RDMATEST_MAKE_OPTS = $(TARGET_CONFIGURE_OPTS) WARNINGS= PREFIX=/usr \
	COMMANDS="rping ucmatose mckey selftest $(if $(BR2_PACKAGE_RDMATEST_DOCTOR),doctor)" LINKS=no

ifeq ($(BR2_PACKAGE_RDMA_CORE),y)
RDMATEST_DEPENDENCIES += rdma-core
else
RDMATEST_MAKE_OPTS += WITH_VERBS=0
endif

define RDMATEST_BUILD_CMDS
	$(TARGET_MAKE_ENV) $(MAKE) -C $(@D) $(RDMATEST_MAKE_OPTS) all
endef

define RDMATEST_INSTALL_TARGET_CMDS
	$(TARGET_MAKE_ENV) $(MAKE) -C $(@D) $(RDMATEST_MAKE_OPTS) DESTDIR=$(TARGET_DIR) install
	$(if $(BR2_PACKAGE_RDMATEST_LINKS),$(foreach command,rping ucmatose mckey,\
		ln -sf rdmatest $(TARGET_DIR)/usr/bin/$(command)$(sep)))
endef

$(eval $(generic-package))
