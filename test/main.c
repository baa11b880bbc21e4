/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the tests of a program, each of which TEST() has put into its section. */
#include "test/unit/unit.h"

extern const struct CMUnitTest __start_tests[], __stop_tests[];

int main(void)
{
	return _cmocka_run_group_tests("tests", __start_tests, (size_t)(__stop_tests - __start_tests), NULL, NULL);
}
