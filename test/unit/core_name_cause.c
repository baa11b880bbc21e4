/* SPDX-License-Identifier: BSD-2-Clause */
/* A look-up's files, in the test's own folder. */
#include "test/unit/unit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/name_cause.h"

static char root[] = "/tmp/name_cause.XXXXXX";
static const char *const files[] = { "hosts", "nsswitch.conf" };

static char *path_of(const char *name)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/etc/%s", root, name);
	return path;
}

/* text: NULL for no file. */
static void write_file(const char *name, const char *text)
{
	FILE *file;

	unlink(path_of(name));
	if (!text)
		return;
	file = fopen(path_of(name), "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

TEST(causes)
{
	static const struct {
		const char *hosts, *nsswitch, *name, *text;
	} rows[] = {
		{ "10.0.0.5 node5\n", "hosts: dns\n", "node5",
		  "/etc/hosts has it, as 10.0.0.5, but the hosts line of /etc/nsswitch.conf lacks the word files" },
		{ "127.0.0.1 localhost\nfd00::5\track1-5 NODE5 # five\n",
		  "passwd: files\n hosts:\tdns [NOTFOUND=return] # files\n", "node5",
		  "/etc/hosts has it, as fd00::5, but the hosts line of /etc/nsswitch.conf lacks the word files" },
		{ "10.0.0.5 node5\n", "hosts: files dns\n", "node5", "" },
		{ "10.0.0.5 node5\n", "hosts:dns files", "node5", "" },
		{ "10.0.0.5 node5\n", "passwd: dns\n", "node5", "" },
		{ "10.0.0.5 node5\n", NULL, "node5", "" },
		{ "10.0.0.5 node50 # node5\nnode5 10.0.0.5\n10.0.0.5", "hosts: dns\n", "node5", "" },
		{ NULL, "hosts: dns\n", "node5", "" },
		{ "", "", "worker-0.nccl.default.svc", "a name of a Kubernetes cluster: known in its pods only" },
		{ NULL, NULL, "a.b.svc.k8s.example", "a name of a Kubernetes cluster: known in its pods only" },
		{ "", "", "10-0-0-5.default.pod.cluster.local",
		  "a name of a Kubernetes cluster: known in its pods only" },
		{ "", "", "host.svc2", "" },
		{ "", "", ".svc", "" },
		{ "", "", "cluster.local.example", "" },
	};
	char text[NAME_CAUSE_SIZE], folder[64];

	unsetenv("KUBERNETES_SERVICE_HOST");
	assert_non_null(mkdtemp(root));
	snprintf(folder, sizeof(folder), "%s/etc", root);
	assert_int_equal(mkdir(folder, 0755), 0);
	for (size_t row = 0; row < LENGTH(rows); row++) {
		write_file("hosts", rows[row].hosts);
		write_file("nsswitch.conf", rows[row].nsswitch);
		assert_int_equal(name_cause(root, rows[row].name, text), *rows[row].text != '\0');
		assert_string_equal(text, rows[row].text);
	}
	/* In a pod such a name is like any other. */
	setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1);
	assert_false(name_cause(root, "worker-0.nccl.default.svc", text));
	for (size_t i = 0; i < LENGTH(files); i++)
		unlink(path_of(files[i]));
	rmdir(folder);
	rmdir(root);
}
