// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "report.h"

#define NS_PER_S ((uint64_t)1000000000)
#define NS_PER_MS ((uint64_t)1000000)

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

void run_clock_start(struct run_clock *c)
{
	memset(c, 0, sizeof(*c));
	c->raw = now();
}

void run_clock_tick(struct run_clock *c, bool completed)
{
	uint64_t raw = now(), step = raw > c->raw ? raw - c->raw : 0;

	c->raw = raw;
	c->elapsed += step;
	c->active += step < NS_PER_S ? step : NS_PER_S;
	if (!completed)
		return;
	if (c->elapsed - c->last_done > c->max_gap)
		c->max_gap = c->elapsed - c->last_done;
	c->last_done = c->elapsed;
	c->last_active = c->active;
}

struct totals {
	uint64_t count[OP_KINDS], received, least, bytes, violations;
	uint64_t events, acked, limits;
};

static void sum_up(struct traffic *t, struct totals *s)
{
	struct traffic_qp *q;
	unsigned int i, k;

	memset(s, 0, sizeof(*s));
	s->least = UINT64_MAX;
	for (i = 0; i < t->shape.qps; i++) {
		q = &t->qp[i];
		pthread_mutex_lock(&q->lock);
		for (k = 0; k < OP_KINDS; k++)
			s->count[k] += q->count[k];
		s->received += q->received;
		if (q->received < s->least)
			s->least = q->received;
		s->bytes += q->bytes;
		pthread_mutex_unlock(&q->lock);
	}
	if (t->events.how)
		events_count(&t->events, &s->events, &s->acked);
	s->limits = t->srq.events;
	pthread_mutex_lock(&t->verdict.lock);
	s->violations = t->verdict.count;
	pthread_mutex_unlock(&t->verdict.lock);
}

static int format_totals(char *buf, size_t size, const struct traffic *t,
			 const struct totals *s)
{
	unsigned int k;
	int n = 0;

	n += snprintf(buf + n, size - n, "\"violations\":%" PRIu64 ",\"ops\":{",
		      s->violations);
	for (k = 0; k < OP_KINDS; k++)
		n += snprintf(buf + n, size - n, "\"%s\":%" PRIu64 ",",
			      op_info[k].name, s->count[k]);
	n += snprintf(buf + n, size - n,
		      "\"received\":%" PRIu64 ",\"least\":%" PRIu64
		      "},\"bytes\":%" PRIu64,
		      s->received, s->least, s->bytes);
	if (t->events.how)
		n += snprintf(buf + n, size - n,
			      ",\"events\":%" PRIu64
			      ",\"events_acked\":%" PRIu64,
			      s->events, s->acked);
	if (t->srq.srq)
		n += snprintf(buf + n, size - n,
			      ",\"srq_limit_events\":%" PRIu64, s->limits);
	return n;
}

int report_progress(const char *path, struct traffic *t,
		    const struct run_clock *c)
{
	char line[1024], tmp[512];
	struct totals s;
	int n, fd, rc;

	sum_up(t, &s);
	n = snprintf(line, sizeof(line),
		     "{\"seed\":%" PRIu64 ",\"ms\":%" PRIu64 ",", t->shape.seed,
		     c->elapsed / NS_PER_MS);
	n += format_totals(line + n, sizeof(line) - n, t, &s);
	n += snprintf(line + n, sizeof(line) - n, "}\n");
	snprintf(tmp, sizeof(tmp), "%s.tmp", path);
	fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return -1;
	rc = write(fd, line, n) == n ? 0 : -1;
	close(fd);
	return rc ? rc : rename(tmp, path);
}

static void put_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fputc('\\', f);
		fputc((unsigned char)*s < ' ' ? ' ' : *s, f);
	}
	fputc('"', f);
}

/* What of our memory sits in huge pages: a THP run without any proves less. */
static uint64_t huge_kb(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	uint64_t kb = 0;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "AnonHugePages: %" SCNu64, &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

void report_result(FILE *f, struct traffic *t, const struct run_clock *c)
{
	struct totals s;
	char line[1024];
	unsigned int i;

	sum_up(t, &s);
	format_totals(line, sizeof(line), t, &s);
	fprintf(f,
		"{\"result\":\"%s\",%s,\"stale_keys_refused\":%u,"
		"\"seed\":%" PRIu64 ",\"qps\":%u,"
		"\"seconds\":%.3f,\"max_gap_ms\":%.3f,\"huge_kb\":%" PRIu64,
		s.violations ? "FAIL" : "PASS", line, t->stale_refused,
		t->shape.seed, t->shape.qps, (double)c->elapsed / NS_PER_S,
		(double)c->max_gap / NS_PER_MS, huge_kb());
	for (i = 0; i < s.violations && i < VERDICT_KEPT; i++) {
		fputs(i ? "," : ",\"first\":[", f);
		put_string(f, t->verdict.text[i]);
	}
	fputs(s.violations ? "]}" : "}", f);
}
