/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a program's tests, which TEST() puts into a section. */
#include "test/unit/unit.h"

extern const struct CMUnitTest __start_tests[], __stop_tests[];

int main(void)
{
	return _cmocka_run_group_tests("tests", __start_tests, (size_t)(__stop_tests - __start_tests), NULL, NULL);
}
