/* SPDX-License-Identifier: BSD-2-Clause */
/* Namespaces and capabilities of this process. */
#include <linux/capability.h>
#include <sched.h>
#include <sys/wait.h>

#include "test/unit/unit.h"

#include "core/privileges.h"

/* Whether /proc/self/status has the capability among the effective ones. */
static bool status_has(unsigned capability)
{
	char line[256];
	unsigned long long mask = 0;
	FILE *file = fopen("/proc/self/status", "r");

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		sscanf(line, "CapEff: %llx", &mask);
	fclose(file);
	return mask >> capability & 1;
}

static void test_capability(void **state)
{
	(void)state;
	for (unsigned capability = 0; capability <= CAP_BPF; capability++)
		assert_int_equal(privileges_have(capability), status_has(capability));
}

/* A child in a new user namespace has every capability there, and is not in the initial one. */
static void test_user_namespace(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	if (!child) {
		if (unshare(CLONE_NEWUSER))
			_exit(2);
		_exit(privileges_in_container() && !privileges_user_namespace_is_initial() &&
				      privileges_have(CAP_IPC_LOCK)
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WEXITSTATUS(status) == 2)
		skip();
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_capability),
		cmocka_unit_test(test_user_namespace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
