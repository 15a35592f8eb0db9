// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "words.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ahead.h"
#include "control.h"
#include "elsewhere.h"
#include "met.h"
#include "peer.h"
#include "presetup.h"
#include "suspend.h"
#include "swap.h"
#include "tell.h"

enum {
	MOST_MS = 600000,
	MOST_SECONDS = 86400,
	MOST_WORDS = 8192,
	QPNS = 1 << 24,
};

/* the words of a line */
struct words {
	char *word[MOST_WORDS];
	unsigned int n;
};

/* One space is between them, and nothing but the end of the line behind the last. */
static bool split(char *line, struct words *w)
{
	char *end = strchr(line, '\n');

	w->n = 0;
	if (!end || end[1])
		return false;
	*end = 0;
	for (char *at = line; at; w->n++) {
		if (w->n == MOST_WORDS)
			return false;
		w->word[w->n] = at;
		at = strchr(at, ' ');
		if (at)
			*at++ = 0;
		if (!*w->word[w->n])
			return false;
	}
	return true;
}

/* a number below @limit, decimal or, with 0x, hexadecimal */
static bool number(const char *word, uint64_t limit, uint64_t *n)
{
	char *end;

	if (!isdigit((unsigned char)*word))
		return false;
	errno = 0;
	*n = strtoull(word, &end, word[1] == 'x' ? 16 : 10);
	return !errno && !*end && *n < limit;
}

static bool number32(const char *word, uint64_t limit, uint32_t *n)
{
	uint64_t n64;

	if (!number(word, limit, &n64))
		return false;
	*n = (uint32_t)n64;
	return true;
}

/* MS [QPN...] behind the first word */
static bool limit_and_qpns(const struct words *w, uint32_t *ms, uint32_t *qpns)
{
	if (w->n < 2 || !number32(w->word[1], MOST_MS + 1, ms))
		return false;
	for (unsigned int i = 2; i < w->n; i++)
		if (!number32(w->word[i], QPNS, &qpns[i - 2]))
			return false;
	return true;
}

/* of a process: what does not need to be escaped */
static bool is_id(const char *word)
{
	size_t bytes = strlen(word);

	for (const char *c = word; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr(".:-_@", *c))
			return false;
	return bytes < PEER_ID_BYTES;
}

__attribute__((format(printf, 2, 3))) static void
answer(int fd, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (control_may_answer(fd))
		vdprintf(fd, format, arguments);
	va_end(arguments);
}

static void refuse(int fd, int err, const char *reason)
{
	answer(fd, "{\"ok\": false, \"errno\": %d, \"reason\": \"%s\"}\n", err,
	       reason[0] ? reason : strerror(err));
}

static void done(int fd, int err, const char *reason)
{
	if (err)
		refuse(fd, err, reason);
	else
		answer(fd, "{\"ok\": true}\n");
}

/* Each does what its word says, with those behind it; false if they are wrong. */

static bool do_suspend(int fd, const struct words *w)
{
	uint32_t qpns[MOST_WORDS], ms;
	struct suspension s;
	int err;

	if (!limit_and_qpns(w, &ms, qpns))
		return false;
	err = w->n > 2 ? layer_suspend_some(qpns, w->n - 2, ms, &s)
		       : layer_suspend(ms, &s);
	if (err)
		refuse(fd, err, s.reason);
	else
		answer(fd,
		       "{\"ok\": true, \"qps\": %u, \"markers\": %u, \"taken\": %u, "
		       "\"wait_us\": %" PRIu64 ", \"drain_us\": %" PRIu64 "}\n",
		       s.qps, s.markers, s.taken, s.wait_ns / 1000,
		       s.drain_ns / 1000);
	return true;
}

static bool do_resume(int fd, const struct words *w)
{
	struct suspension s;
	int err;

	if (w->n != 1)
		return false;
	err = layer_resume(&s);
	done(fd, err, s.reason);
	return true;
}

static bool do_names(int fd, const struct words *w)
{
	int err;

	if (w->n != 1)
		return false;
	err = tell_names(fd);
	if (err)
		refuse(fd, err,
		       err == ETIMEDOUT ? "a verb does not return" : "");
	return true;
}

static bool do_replace(int fd, const struct words *w)
{
	uint32_t qpns[MOST_WORDS], ms;
	struct swap s;
	int err;

	if (!limit_and_qpns(w, &ms, qpns))
		return false;
	err = layer_replace(qpns, w->n - 2, ms, &s);
	if (err)
		refuse(fd, err, s.reason);
	else
		answer(fd,
		       "{\"ok\": true, \"qps\": %u, \"objects\": %u, \"recvs\": %u, "
		       "\"build_us\": %" PRIu64 ", \"regions_us\": %" PRIu64
		       ", \"stop_us\": %" PRIu64 ", \"swap_us\": %" PRIu64
		       ", \"destroy_us\": %" PRIu64 ", \"taped\": %u"
		       ", \"presetup\": \"%s\"}\n",
		       s.qps, s.objects, s.recvs, s.build_ns / 1000,
		       s.regions_ns / 1000, s.stop_ns / 1000, s.swap_ns / 1000,
		       s.destroy_ns / 1000, s.taped, s.presetup);
	return true;
}

static bool do_prepare(int fd, const struct words *w)
{
	uint32_t qpns[MOST_WORDS], ms;
	struct swap s;
	int err;

	if (!limit_and_qpns(w, &ms, qpns) || w->n == 2)
		return false;
	err = layer_prepare(qpns, w->n - 2, ms, &s);
	if (err)
		refuse(fd, err, s.reason);
	else
		answer(fd,
		       "{\"ok\": true, \"qps\": %u, \"build_us\": %" PRIu64
		       "}\n",
		       s.objects, s.build_ns / 1000);
	return true;
}

static bool do_hold(int fd, const struct words *w)
{
	uint32_t ms, seconds;
	struct swap s;
	int err;

	if (w->n != 3 || !number32(w->word[1], MOST_MS + 1, &ms) ||
	    !number32(w->word[2], MOST_SECONDS + 1, &seconds) || !seconds)
		return false;
	err = layer_hold(ms, seconds, &s);
	if (err)
		refuse(fd, err, s.reason);
	else
		answer(fd,
		       "{\"ok\": true, \"qps\": %u, \"stop_us\": %" PRIu64
		       "}\n",
		       s.qps, s.stop_ns / 1000);
	return true;
}

struct peers {
	uint32_t qpn[MOST_WORDS / 2], real[MOST_WORDS / 2];
	unsigned int n;
	union ibv_gid gid;
	const char *id;
};

/* QPN REAL GID ID [QPN REAL...] behind the first word: at the same place, in the same process */
static bool read_peers(const struct words *w, struct peers *p)
{
	p->n = 0;
	if (w->n < 5 || !(w->n % 2) ||
	    inet_pton(AF_INET6, w->word[3], p->gid.raw) != 1 ||
	    !is_id(w->word[4]))
		return false;
	p->id = w->word[4];
	for (unsigned int i = 1; i < w->n; i += i == 1 ? 4 : 2, p->n++)
		if (!number32(w->word[i], QPNS, &p->qpn[p->n]) ||
		    !number32(w->word[i + 1], QPNS, &p->real[p->n]))
			return false;
	return true;
}

static bool do_peer(int fd, const struct words *w)
{
	struct peers p;
	struct swap s = {};
	int err = 0;

	if (!read_peers(w, &p))
		return false;
	for (unsigned int i = 0; i < p.n && !err; i++)
		err = layer_set_peer(p.qpn[i], p.real[i], &p.gid, p.id, &s);
	done(fd, err, s.reason);
	return true;
}

static bool do_lead(int fd, const struct words *w)
{
	struct peers p;
	struct swap s;
	int err;

	if (!read_peers(w, &p))
		return false;
	err = layer_lead(p.qpn, p.real, p.n, &p.gid, &s);
	done(fd, err, s.reason);
	return true;
}

/* GID AT WAS IS [WAS IS...] behind the first word: kept; nothing: all those come to be so */
static bool do_elsewhere(int fd, const struct words *w)
{
	struct elsewhere qp;
	struct swap s = {};
	int err = 0;

	if (w->n == 1) {
		done(fd, layer_elsewhere(&s), s.reason);
		return true;
	}
	if (w->n < 5 || w->n % 2 == 0 ||
	    inet_pton(AF_INET6, w->word[1], qp.gid.raw) != 1 ||
	    inet_pton(AF_INET6, w->word[2], qp.at.raw) != 1)
		return false;
	for (unsigned int i = 3; i < w->n && !err; i += 2) {
		if (!number32(w->word[i], QPNS, &qp.was) ||
		    !number32(w->word[i + 1], QPNS, &qp.is)) {
			elsewhere_forget();
			return false;
		}
		err = elsewhere_add(&qp, 1);
	}
	done(fd, err, "");
	return true;
}

static bool do_keys(int fd, const struct words *w)
{
	struct swap s;
	int err;

	if (w->n != 2 || !is_id(w->word[1]))
		return false;
	err = layer_forget_keys(w->word[1], &s);
	done(fd, err, s.reason);
	return true;
}

/* QPN PEER GID ID behind the first word */
static bool do_met(int fd, const struct words *w)
{
	uint32_t qpn, peer_num;
	union ibv_gid gid;
	struct swap s;
	int err;

	if (w->n != 5 || !number32(w->word[1], QPNS, &qpn) ||
	    !number32(w->word[2], QPNS, &peer_num) ||
	    inet_pton(AF_INET6, w->word[3], gid.raw) != 1 || !is_id(w->word[4]))
		return false;
	err = layer_met(qpn, peer_num, &gid, w->word[4], &s);
	done(fd, err, s.reason);
	return true;
}

/* ID VIRTUAL REAL [VIRTUAL REAL...] behind the first word */
static bool do_key(int fd, const struct words *w)
{
	const uint64_t keys = (uint64_t)UINT32_MAX + 1;
	uint32_t key[MOST_WORDS / 2], real[MOST_WORDS / 2];
	unsigned int n = 0;
	struct swap s = {};
	int err = 0;

	if (w->n < 4 || w->n % 2 || !is_id(w->word[1]))
		return false;
	for (unsigned int i = 2; i < w->n; i += 2, n++)
		if (!number32(w->word[i], keys, &key[n]) ||
		    !number32(w->word[i + 1], keys, &real[n]))
			return false;
	for (unsigned int i = 0; i < n && !err; i++)
		err = layer_set_key(w->word[1], key[i], real[i], &s);
	done(fd, err, s.reason);
	return true;
}

static bool do_check(int fd, const struct words *w)
{
	struct swap s;
	int err;

	if (w->n != 1)
		return false;
	err = layer_check(&s);
	done(fd, err, s.reason);
	return true;
}

static bool do_connect(int fd, const struct words *w)
{
	struct swap s;
	int err;

	if (w->n != 1)
		return false;
	err = layer_connect(&s);
	if (err)
		refuse(fd, err, s.reason);
	else
		answer(fd, "{\"ok\": true, \"qps\": %u, \"taped\": %u}\n",
		       s.qps, s.taped);
	return true;
}

static bool do_record(int fd, const struct words *w)
{
	struct swap s;
	int err;

	if (w->n != 1)
		return false;
	err = presetup_record(fd, &s);
	if (err)
		refuse(fd, err, s.reason);
	return true;
}

/* Who speaks waits for the first answer, or his files would be lost. */
static bool do_presetup(int fd, const struct words *w)
{
	struct swap s;
	int err;

	if (w->n != 1)
		return false;
	done(fd, 0, "");
	err = presetup_take(fd, &s);
	done(fd, err, s.reason);
	return true;
}

void words_obey(int fd, char *line)
{
	static const struct {
		const char *word;
		bool (*obey)(int fd, const struct words *w);
	} all[] = {
		{ "suspend", do_suspend }, { "resume", do_resume },
		{ "names", do_names },	   { "prepare", do_prepare },
		{ "lead", do_lead },	   { "replace", do_replace },
		{ "peer", do_peer },	   { "keys", do_keys },
		{ "key", do_key },	   { "met", do_met },
		{ "connect", do_connect }, { "hold", do_hold },
		{ "record", do_record },   { "presetup", do_presetup },
		{ "check", do_check },	   { "elsewhere", do_elsewhere },
	};
	struct words w;

	if (split(line, &w))
		for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
			if (!strcmp(w.word[0], all[i].word)) {
				if (all[i].obey(fd, &w))
					return;
				break;
			}
	done(fd, EINVAL, "");
}
