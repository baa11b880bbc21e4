# SPDX-License-Identifier: BSD-2-Clause
# With the archive of `make dist` in files/ beside this recipe. rdma-core's recipe is in meta-openembedded.
SUMMARY = "Test whether RDMA works between two hosts, and how well"
DESCRIPTION = "rping, ucmatose and mckey in one program, over RDMA devices or over UDP in user space"
SECTION = "console/network"
LICENSE = "BSD-2-Clause"
LIC_FILES_CHKSUM = "file://LICENSE;md5=abf024fa03ba2fe45aa44b0e5acad8c1"

SRC_URI = "file://${BP}.tar.gz"

DEPENDS = "libev"

# The parts of `make small`. Optional: selftest and doctor in the commands; help and extras in PACKAGECONFIG.
RDMATEST_COMMANDS ??= "rping ucmatose mckey"
PACKAGECONFIG ??= "verbs soft report names diagnostics"
PACKAGECONFIG[verbs] = "WITH_VERBS=y,WITH_VERBS=n,rdma-core"
PACKAGECONFIG[soft] = "WITH_SOFT=y,WITH_SOFT=n"
PACKAGECONFIG[report] = "WITH_REPORT=y,WITH_REPORT=n"
PACKAGECONFIG[help] = "WITH_HELP=y,WITH_HELP=n"
PACKAGECONFIG[names] = "WITH_NAMES=y,WITH_NAMES=n"
PACKAGECONFIG[extras] = "WITH_EXTRAS=y,WITH_EXTRAS=n"
# Without it neither report, extras, selftest nor doctor.
PACKAGECONFIG[diagnostics] = "WITH_DIAGNOSTICS=y,WITH_DIAGNOSTICS=n"

EXTRA_OEMAKE = "WARNINGS= 'CC=${CC}' 'AR=${AR}' PREFIX=${prefix} 'COMMANDS=${RDMATEST_COMMANDS}' ${PACKAGECONFIG_CONFARGS}"

# rdma-core has programs and pages with these names.
PACKAGES =+ "${PN}-links"
do_install() {
	oe_runmake install DESTDIR=${D} LINKS=no
	rm -r ${D}${datadir}/zsh
	for command in $(cat build/commands); do
		ln -s rdmatest ${D}${bindir}/$command
	done
}
FILES:${PN}-links = "${bindir}/rping ${bindir}/ucmatose ${bindir}/mckey"
RDEPENDS:${PN}-links = "${PN}"
FILES:${PN} += "${datadir}/bash-completion ${datadir}/fish"
