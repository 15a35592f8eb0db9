// SPDX-License-Identifier: GPL-2.0
/*
 * What has become of a move: the other end is asked, and may not know, or not answer
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "move.h"
#include "note.h"
#include "peer.h"

static enum move_answer answer_in(struct move *m, const json_t *said)
{
	const char *boot = json_string_value(json_object_get(said, "boot"));
	enum move_answer answer = ANSWER_WAIT;

	answer_of(json_string_value(json_object_get(said, "answer")), &answer);
	/* those that come then are nothing that a peer may say */
	if (answer > ANSWER_UNKNOWN)
		answer = ANSWER_WAIT;
	if (answer == ANSWER_UNKNOWN && boot &&
	    strcmp(boot, journal_text(&m->journal, "peer_boot")) != 0)
		answer = ANSWER_DIED;
	return answer;
}

/* what is to be known of an answer: what was missing at the end, or why there is none yet */
static void explain(struct move *m, enum move_answer answer, const json_t *said)
{
	const char *why = talk_text(said, "reason");

	switch (answer) {
	case ANSWER_RUNS:
		snprintf(m->warning, sizeof(m->warning), "%s",
			 talk_text(said, "warning"));
		note_clean(m->warning);
		break;
	case ANSWER_DROPPED:
		move_fails(m, "%s: %s", m->other,
			   *why ? why : "nothing of it is left there");
		break;
	case ANSWER_WAIT:
		move_fails(m, "%s has not come to its end of the move of %s",
			   m->other, m->name);
		break;
	case ANSWER_UNKNOWN:
		move_fails(
			m,
			"%s knows nothing of this move: if nothing of %s runs there or elsewhere, say so by migrctl recover %s --fenced %s",
			m->other, m->name, m->name, m->other);
		break;
	case ANSWER_DIED:
		move_fails(
			m,
			"%s was started anew: if nothing of %s runs there or elsewhere, say so by migrctl recover %s --fenced %s",
			m->other, m->name, m->name, m->other);
		break;
	default:
		break;
	}
}

/* @answers: it does, and works at the move */
static enum move_answer ask_once(struct move *m, bool *answers)
{
	enum move_answer answer = ANSWER_WAIT;
	json_t *said = NULL;
	struct talk t;

	if (peer_dial(&t, m->other, NULL) &&
	    talk_say(&t, json_pack("{ssss}", "do", "outcome", "id",
				   journal_text(&m->journal, "id"))))
		said = talk_answered(&t, DIAL_MS);
	*answers = said;
	if (said) {
		answer = answer_in(m, said);
		explain(m, answer, said);
		*answers = answer == ANSWER_WAIT;
	} else {
		move_fails(m, "%s does not say what has become of %s: %s",
			   m->other, m->name, t.reason);
	}
	json_decref(said);
	talk_free(&t);
	return answer;
}

static bool is_fenced(const struct move *m)
{
	char path[JOURNAL_PATH + 32];

	snprintf(path, sizeof(path), "%s/fenced", m->journal.folder);
	return !unlink(path);
}

bool doubt_is(const struct journal *j)
{
	return j->state ==
		       (j->role == MOVE_SOURCE ? MOVE_GRANTED : MOVE_READY) &&
	       json_is_true(json_object_get(j->record, "doubt"));
}

/* Who is there must not be vouched for. */
static void doubt(struct move *m, bool answers)
{
	struct journal *j = &m->journal;

	if (!strcmp(m->reason, journal_text(j, "reason")) &&
	    doubt_is(j) == !answers)
		return;
	note("%s: %s: %s", m->name, state_name(j->state), m->reason);
	json_object_set_new(j->record, "reason", json_string(m->reason));
	json_object_set_new(j->record, "doubt", json_boolean(!answers));
	journal_write(j);
}

/* There is none any more, or its host was started anew. */
void target_forget(struct move *m)
{
	bool answers;
	enum move_answer answer = ask_once(m, &answers);

	if (answer == ANSWER_UNKNOWN || answer == ANSWER_DIED) {
		journal_remove(&m->journal);
	} else {
		journal_renew(&m->journal);
		journal_close(&m->journal);
	}
}

enum move_state move_ask(struct move *m)
{
	enum move_state state = m->journal.state, next;
	enum move_answer answer;
	bool answers = false;

	if (is_fenced(m)) {
		answer = ANSWER_FENCED;
		move_fails(m, "%s was said to be fenced", m->other);
	} else {
		answer = ask_once(m, &answers);
	}
	next = state_after(m->journal.role, state, answer);
	if (next == state)
		doubt(m, answers);
	return next;
}
