/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/verbs/provider/pair.h"

#include "cmd/command.h"
#include "core/clock.h"

static void interrupt(void *context)
{
	struct pair *pair = context;

	child_run_interrupt(&pair->server, INTERRUPTION_SIGNAL);
	child_run_interrupt(&pair->client, INTERRUPTION_SIGNAL);
}

static void later(void *context)
{
	struct pair *pair = context;

	pair->later(pair);
}

static const struct command *command_of(const char *line)
{
	const struct command *const *row = command_table;
	size_t length = strcspn(line, " ");

	while (strncmp((*row)->name, line, length) != 0 || (*row)->name[length])
		row++;
	return *row;
}

/* "COMMAND ARGUMENTS" */
static void start(struct pair *pair, struct child_run *child, const char *role, const char *line)
{
	size_t length = strcspn(line, " ");
	char arguments[CHILD_RUN_ARGUMENTS_SIZE];

	log_fill(arguments, sizeof(arguments) - 32, line + length + (line[length] == ' '), "10.0.0.1", "239.1.2.3");
	strcat(strcat(arguments, " --timeout "), pair->timeout);
	child_run_start(child, &pair->run, command_of(line), role, 5 * CLOCK_NS_PER_S, arguments);
}

/* A client may connect. */
static void server_is_ready(struct pair *pair)
{
	if (pair->ready)
		pair->ready(pair);
	if (pair->later)
		loop_timer_start(pair->run.loop, &pair->moment, pair->later_ms * CLOCK_NS_PER_MS, later, pair);
	if (pair->client_line)
		start(pair, &pair->client, "client", pair->client_line);
}

static void run_both(struct pair *pair, const char *server_line)
{
	struct loop *loop = pair->run.loop;

	if (server_line)
		start(pair, &pair->server, "server", server_line);
	while (child_run_goes_on(&pair->server) && !pair->server.run.ready.family)
		loop_run(loop);
	if (!server_line || pair->server.run.ready.family)
		server_is_ready(pair);
	while (child_run_goes_on(&pair->server) && (!pair->client_line || child_run_goes_on(&pair->client)))
		loop_run(loop);
	if (server_line)
		loop_timer_start(loop, &pair->timer, (pair->grace_ms ? pair->grace_ms : 150) * CLOCK_NS_PER_MS,
				 interrupt, pair);
	while (child_run_goes_on(&pair->server) || child_run_goes_on(&pair->client))
		loop_run(loop);
}

static char *take_text(struct child_run *child)
{
	char *text;

	child_run_stop(child);
	text = strdup(child->text ? child->text : "");
	assert_non_null(text);
	child_run_free(child);
	return text;
}

void pair_run(struct pair *pair, const char *server_line, const char *client_line, const char *timeout)
{
	struct run *run = &pair->run;

	*run = (struct run){
		.loop = loop_create(),
		.log = { .name = "test", .debug = getenv("PROVIDER_DEBUG") != NULL, .errors = &pair->errors },
	};
	pair->timeout = timeout ? timeout : "5s";
	if (!getenv("PROVIDER_DEBUG"))
		capture_begin(&pair->capture);
	assert_int_equal(transport_open("verbs", run->loop, &run->log, &(struct error){ 0 }, &run->transport), 0);
	if (pair->begun)
		pair->begun(pair);
	pair->client_line = client_line;
	run_both(pair, server_line);
	loop_timer_stop(&pair->timer);
	loop_timer_stop(&pair->moment);
	pair->server_outcome = pair->server.run.outcome;
	pair->client_outcome = pair->client.run.outcome;
	pair->server_text = take_text(&pair->server);
	pair->client_text = take_text(&pair->client);
	transport_close(run->transport);
	loop_destroy(run->loop);
	if (!getenv("PROVIDER_DEBUG"))
		capture_end(&pair->capture);
}

enum outcome line_run(const char *line, struct capture *errors, char **text)
{
	const struct command *command = command_of(line);
	char words[256], *rest = words, *argv[16] = { 0 };
	struct output output;
	enum outcome outcome;
	size_t length;
	int argc = 0;

	snprintf(words, sizeof(words), "%s", line);
	while (rest) {
		assert_true(argc + 1 < (int)LENGTH(argv));
		argv[argc++] = strsep(&rest, " ");
	}
	output = (struct output){ .stream = open_memstream(text, &length) };
	capture_begin(errors);
	outcome = command_run(command, command->name, argc, argv, &output);
	capture_end(errors);
	fclose(output.stream);
	return outcome;
}

void pair_free(struct pair *pair)
{
	free(pair->server_text);
	free(pair->client_text);
	memset(pair, 0, sizeof(*pair));
}

void pair_finish(struct pair *pair, const char *tried, bool good)
{
	if (!good) {
		print_message("# %s\n# seed %u, server %d, client %s: %d\n# stderr:\n%s# server:\n%s# client:\n%s\n",
			      tried, provider.seed, (int)pair->server_outcome, pair->client_line,
			      (int)pair->client_outcome, pair->capture.text, pair->server_text, pair->client_text);
		fail();
	}
	pair_free(pair);
	provider_end();
}
