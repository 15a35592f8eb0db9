// SPDX-License-Identifier: GPL-2.0
#include "history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "note.h"

#define FILE_NAME "/var/log/migrctl.jsonl"

void history_add(json_t *o)
{
	int fd = open(FILE_NAME, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC,
		      0640);
	char *text;

	json_object_set_new(o, "time", json_integer((json_int_t)time(NULL)));
	text = json_dumps(o, JSON_COMPACT);
	if (fd < 0 || !text || dprintf(fd, "%s\n", text) < 0)
		note("%s: %s", FILE_NAME, strerror(errno));
	free(text);
	if (fd >= 0)
		close(fd);
}

void history_tell(struct talk *t, int n)
{
	FILE *f = fopen(FILE_NAME, "re");
	json_t *all = json_array(), *o;
	json_error_t error;
	char *line = NULL;
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0) {
		o = json_loads(line, JSON_REJECT_DUPLICATES, &error);
		if (o)
			json_array_append_new(all, o);
		if (json_array_size(all) > (size_t)n)
			json_array_remove(all, 0);
	}
	free(line);
	if (f)
		fclose(f);
	talk_say(t, json_pack("{sbso}", "ok", 1, "moves", all));
}
