/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/state.h"

#include <stdarg.h>
#include <stdio.h>

bool state_change(const char *const *texts, const uint16_t *next, unsigned from, unsigned to, const struct log *log,
		  const char *format, ...)
{
	bool allowed = next[from] & STATE_BIT(to);
	char object[ERROR_OBJECT_SIZE];
	va_list arguments;

	if (!WITH_DIAGNOSTICS || (allowed && !log->debug))
		return allowed;
	va_start(arguments, format);
	vsnprintf(object, sizeof(object), format, arguments);
	va_end(arguments);
	if (allowed)
		log_debug(log, "%s: %s -> %s", object, texts[from], texts[to]);
	else
		log_error(log, object, "defect: %s cannot follow %s", texts[to], texts[from]);
	return allowed;
}
