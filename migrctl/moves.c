// SPDX-License-Identifier: GPL-2.0
#include "moves.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "move.h"

struct wanted {
	const char *name;
	char id[JOURNAL_ID + 1];
};

static void find_name(struct journal *j, void *arg)
{
	struct wanted *w = arg;

	if (!strcmp(journal_text(j, "name"), w->name) &&
	    !state_is_last(j->state))
		snprintf(w->id, sizeof(w->id), "%s", journal_text(j, "id"));
}

/* one that is not over, of that container */
static bool find(struct caller *c, const json_t *asked, struct journal *j)
{
	struct wanted w = { .name = talk_text(asked, "name") };

	journal_each(find_name, &w);
	if (journal_open(j, w.id))
		return true;
	talk_refuse(&c->talk, "no move of %.32s is under way here", w.name);
	return false;
}

/*
 * Until it is decided: it is over, and not granted to the other end, if it was the source's to
 * decide, and still is.
 */
static bool is_aborted(const char *id)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	enum move_state last = MOVE_PREPARING;
	struct journal j;

	while (journal_open(&j, id)) {
		last = j.state;
		journal_close(&j);
		if (last >= MOVE_GRANTED)
			break;
		nanosleep(&pause, NULL);
	}
	return last < MOVE_GRANTED || last == MOVE_BACK || last == MOVE_DROPPED;
}

void moves_abort(struct caller *c, const json_t *asked)
{
	char id[JOURNAL_ID + 1];
	struct journal j;
	pid_t pid;

	if (!find(c, asked, &j))
		return;
	snprintf(id, sizeof(id), "%s", journal_text(&j, "id"));
	pid = journal_holder(&j);
	/* who has the lock cannot have ended, and be somebody else, in this moment only */
	if (j.state == MOVE_GRANTED || pid <= 0 || kill(pid, SIGTERM))
		talk_refuse(&c->talk, "%s cannot be aborted in the state %s",
			    journal_text(&j, "name"), state_name(j.state));
	else if (is_aborted(id))
		talk_say(&c->talk, json_pack("{sb}", "ok", 1));
	else
		talk_refuse(&c->talk, "it was too late: %s is the other end's",
			    talk_text(asked, "name"));
	journal_close(&j);
}

/* Somebody vouches for it that the other end's host is fenced: nothing runs there. */
void moves_recover(struct caller *c, const json_t *asked)
{
	char path[JOURNAL_PATH + 32];
	struct journal j;
	FILE *f;

	if (!find(c, asked, &j))
		return;
	snprintf(path, sizeof(path), "%s/fenced", j.folder);
	if (strcmp(journal_text(&j, "peer"), talk_text(asked, "fenced")) != 0) {
		talk_refuse(&c->talk, "the other end of this move is %s",
			    journal_text(&j, "peer"));
	} else if (!doubt_is(&j)) {
		talk_refuse(&c->talk, "%s is not in doubt, in the state %s",
			    journal_text(&j, "name"), state_name(j.state));
	} else {
		f = fopen(path, "we");
		if (f) {
			fclose(f);
			talk_say(&c->talk, json_pack("{sb}", "ok", 1));
		} else {
			talk_refuse(&c->talk, "%s: %s", path, strerror(errno));
		}
	}
	journal_close(&j);
}

void moves_outcome(struct caller *c, const json_t *asked)
{
	const char *id = talk_text(asked, "id");
	/* who asks may forget the move if there is none */
	enum move_answer answer =
		journal_is_none(id) ? ANSWER_UNKNOWN : ANSWER_WAIT;
	json_t *o = json_pack("{sbss}", "ok", 1, "boot", journal_boot());
	struct journal j;

	if (journal_open(&j, id)) {
		answer = state_answer(j.role, j.state);
		json_object_set(o, "reason",
				json_object_get(j.record, "reason"));
		json_object_set(o, "warning",
				json_object_get(j.record, "warning"));
		journal_close(&j);
	}
	json_object_set_new(o, "answer", json_string(answer_name(answer)));
	talk_say(&c->talk, o);
}

/*
 * Its source is back, then: nothing was granted. Who waits for its word, and may not reach it, or
 * have noticed that the connection is lost, need not any longer.
 */
static void give_up(const struct journal *j)
{
	pid_t pid = journal_holder(j);

	if (j->state < MOVE_GRANTED && pid > 0)
		kill(pid, SIGTERM);
}

void moves_forget(struct caller *c, const json_t *asked)
{
	struct journal j;
	bool is_its;

	if (journal_open(&j, talk_text(asked, "id"))) {
		is_its = j.role == MOVE_TARGET &&
			 !strcmp(journal_text(&j, "peer"), c->from);
		if (!is_its || !state_is_last(j.state) || journal_holder(&j)) {
			if (is_its)
				give_up(&j);
			talk_refuse(&c->talk,
				    "that move is not over, or not yours");
			journal_close(&j);
			return;
		}
		journal_remove(&j);
	}
	talk_say(&c->talk, json_pack("{sb}", "ok", 1));
}
