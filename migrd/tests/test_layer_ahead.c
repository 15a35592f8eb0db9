// SPDX-License-Identifier: GPL-2.0
/*
 * Pre-setup: what migr-layer tells of a container before it moves, and what becomes of it.
 * Its process has the QP 17, of which the peer is 27.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer_rig.h"

#define QP17 QP("17", "117", "27", AT("127"))
/* two that lead to each other */
#define PAIR QP("18", "18", "19", "") ", " QP("19", "19", "18", "")
#define RECORD "{\"ok\": true, \"at\": 1}\n"
#define TAPED "{\"ok\": true, \"taped\": 3, \"presetup\": \"\"}\n"

static struct fake mover, partner;

/* each has its own */
static void owners(void)
{
	char text[128];

	snprintf(text, sizeof(text), "127 %d\n227 %d\n117 %d\n18 %d\n19 %d\n",
		 partner.pid, partner.pid, mover.pid, mover.pid, mover.pid);
	qps(text);
}

static void start_both(void)
{
	fake_start(&mover, LAYER, "ctr/box/run/migrrdma");
	fake_start(&partner, LAYER, "ctr/other/run/migrrdma");
	owners();
	answers(&mover, "names", NAMES(QP17, ""));
	answers(&partner, "names", NAMES(QP("27", "127", "17", AT("117")), ""));
}

static void check_ended(void)
{
	CHECK(fake_ended(&partner) == 'r');
	CHECK(fake_ended(&mover) == 'r');
}

/* its length was heard */
static void says_list(const char *word, const char *list)
{
	CHECK(strtoul(heard + strlen(word), NULL, 10) == strlen(list), "%s",
	      heard);
	CHECK(layer_says(list), "%s", heard);
}

/* where it is to go: to this host, under one name or the other */
static const char *target = "n2";

/* a shadow process has this real QP for the mover's */
static const char *made;

static void lead_there(void)
{
	char list[256], line[512];

	snprintf(list, sizeof(list),
		 "[{\"pid\":%d,\"made\":[[17,%s,\"" GID "\"]]}]", mover.pid,
		 made);
	snprintf(line, sizeof(line), "made %zu\n%s\n", strlen(list), list);
	layer_tell(line);
	CHECK(layer_says("led"), "%s", heard);
	snprintf(line, sizeof(line), "lead 27 %s " GID " %s\n", made, mover.id);
	CHECK(!strcmp(was_told(&partner), line));
}

/* what is said of it, and of its QPs, and when */
static void stop_early(const char *record, const char *records,
		       const char *peers, bool early)
{
	const char *told;

	answers(&mover, "record", record);
	layer_begin(target);
	CHECK(layer_says("checked"), "%s", heard);
	layer_tell("record\n");
	CHECK(layer_says_some("records "), "%s", heard);
	says_list("records ", records);
	if (early) {
		CHECK(layer_says("peers "), "%s", heard);
		says_list("peers ", peers);
	}
	CHECK(layer_says("recorded"), "%s", heard);
	CHECK(strstr(was_told(&partner), "\nprepare 1000 27\nnames\n"));
	if (made)
		lead_there();
	layer_tell("stop\n");
	if (!early) {
		CHECK(layer_says("peers "), "%s", heard);
		says_list("peers ", peers);
	}
	CHECK(layer_says("stopped"), "%s", heard);
	/* asked again only for what has not been told */
	told = was_told(&mover);
	CHECK(!strstr(told, "\ncheck\nnames\nhold") == early, "%s", told);
	told = was_told(&partner);
	CHECK(strstr(told, "\nreplace 1000 27\n"), "%s", told);
}

/* the same, and it is restored */
static void stop_when(const char *record, const char *records,
		      const char *peers, bool early)
{
	stop_early(record, records, peers, early);
	layer_tell("restored n2\n");
}

static void stop(const char *record, const char *records, const char *peers)
{
	stop_when(record, records, peers, false);
}

static void done(const char *taped)
{
	CHECK(layer_says("{\"check_ms\": ") && strstr(heard, taped), "%s",
	      heard);
	CHECK(layer_says("done") && !layer_ends());
	check_ended();
}

static void told_of(char *records, char *peers, size_t bytes)
{
	snprintf(records, bytes,
		 "[{\"pid\":%d,\"record\":{\"ok\":true,\"at\":1}}]", mover.pid);
	snprintf(peers, bytes,
		 "[{\"pid\":%d,\"peers\":[[17,127,\"" GID "\"]]}]", mover.pid);
}

#define OLD27 NAMES(QP("27", "127, \"next\": 227", "17", AT("117")), "")
#define NEW27 NAMES(QP("27", "227", "17", AT("117")), "")

static void asked_of(const char *qpns)
{
	const char *asked = was_asked();

	CHECK(!strcmp(asked, qpns), "%s", asked);
}

/* What is proven of QPs ahead is not asked again, if they are used where they are made for. */
static void test_proven(const char *records, const char *early)
{
	char text[128];

	puts("what partners have made is proven to be theirs before anybody stops");
	made = "117";
	answers(&partner, "replace.names", NEW27);
	stop_when(RECORD, records, early, true);
	done("\"taped\": 6,");
	asked_of("117 127 227 ");

	puts("if it is, and else nobody is led there");
	snprintf(text, sizeof(text), "127 %d\n227 %d\n117 %d\n", partner.pid,
		 mover.pid, mover.pid);
	qps(text);
	answers(&partner, "names", OLD27);
	answers(&partner, "replace.names", NEW27);
	stop_when(RECORD, records, early, true);
	CHECK(layer_says_some(
		"its QPs: QP 227 is another process': its connections are lost"));
	done("\"taped\": ");
	asked_of("117 127 227 227 ");

	puts("a container that has not arrived has what others have made nowhere");
	answers(&partner, "names", OLD27);
	owners();
	target = "N2";
	stop_early(RECORD, records, early, true);
	layer_tell("aborted\n");
	done("\"taped\": 6,");
	asked_of("117 127 227 117 127 ");
	target = "n2";
}

/* One may say much, but not all of them. */
static void test_long(void)
{
	enum {
		MORE = 4,
	};
	struct fake more[MORE];

	puts("long answers");
	for (int i = 0; i < MORE; i++) {
		fake_start(&more[i], LAYER, "ctr/box/run/migrrdma");
		answers(&more[i], "names", NAMES("", ""));
		answers(&more[i], "record", "long 14\n");
	}
	layer_begin(NULL);
	CHECK(layer_says("checked"), "%s", heard);
	layer_tell("record\n");
	CHECK(layer_says("failed n2: process ") &&
		      strstr(heard, "record: all together say too much"),
	      "%s", heard);
	CHECK(layer_ends() == 1);
	check_ended();
	for (int i = 0; i < MORE; i++)
		fake_kill(&more[i]);
	answers(&mover, "record", NULL);
}

/* what is no list of what was made */
static const char *const none[] = {
	"made 0\n\n",
	"made x\n[]\n",
	"made 3\n[]\nstop\n",
	"made 2\n{}\n",
	"made 3\n[7]\n",
	"made 99999999999\n[]\n",
	"made 21\n[{\"pid\":1,\"made\":[]}]\n",
};

static void begin_recorded(void)
{
	layer_begin("n2");
	CHECK(layer_says("checked"), "%s", heard);
	layer_tell("record\n");
	CHECK(layer_says_some("recorded"), "%s", heard);
}

static void refuses(const char *line)
{
	begin_recorded();
	layer_tell(line);
	CHECK(layer_says_some("failed that is no list of what was made"));
	CHECK(layer_ends() == 1);
	check_ended();
}

int main(void)
{
	char records[256], peers[256], early[256];
	const char *told;

	rig_begin();
	daemon_start("ctr/*/run/migrrdma", "none");
	start_both();
	told_of(records, peers, sizeof(records));
	strcpy(early, peers);

	puts("nothing was spared");
	stop(RECORD, records, peers);
	done("\"taped\": 0,");
	puts("something was");
	answers(&mover, "replace", TAPED);
	answers(&mover, "connect", TAPED);
	stop(RECORD, records, peers);
	done("\"taped\": 6,");

	puts("a partner makes them when all is suspended");
	answers(&partner, "replace", "{\"ok\": true, \"objects\": 5}\n");
	stop(RECORD, records, peers);
	done("\"late\": 5}");
	answers(&partner, "replace", NULL);

	puts("partners have made what is to come, before anybody stops");
	answers(&partner, "names",
		NAMES(QP("27", "127, \"next\": 227", "17", AT("117")), ""));
	sprintf(strstr(early, "127"), "227%s", strstr(peers, "127") + 3);
	stop_when(RECORD, records, early, true);
	done("\"taped\": 6,");

	puts("and are led to where the container's will be, or will not");
	was_asked();
	made = "117";
	stop_when(RECORD, records, early, true);
	done("\"taped\": 6,");
	told = was_told(&partner);
	CHECK(strstr(told, "names\nkeys ") && !strstr(told, "replace"), "%s",
	      told);
	puts("whose a shadow process' queue pair is was not asked");
	told = was_asked();
	CHECK(!strcmp(told, "117 127 227 127 "), "%s", told);
	made = "317";
	stop_when(RECORD, records, early, true);
	done("\"taped\": 6,");
	told = was_told(&partner);
	CHECK(strstr(told, "names\nreplace 1000 27\nnames\nkeys "), "%s", told);
	told = was_asked();
	CHECK(!strcmp(told, "117 127 227 117 127 "), "%s", told);
	test_proven(records, early);
	made = NULL;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		refuses(none[i]);
	answers(&partner, "names",
		NAMES(QP("27", "127, \"next\": 1.5", "17", AT("117")), ""));
	layer_begin(NULL);
	CHECK(layer_says("failed ") && strstr(heard, "QP 27 is no QP"), "%s",
	      heard);
	CHECK(layer_ends() == 1);
	check_ended();
	answers(&partner, "names", NAMES(QP("27", "127", "17", AT("117")), ""));

	puts("what a mover says of that itself is not believed");
	answers(&partner, "names",
		NAMES(QP("27", "127, \"next\": 227", "17", AT("117")), ""));
	for (int i = 0; i < 2; i++) { /* the second time only at first */
		answers(&mover, "names",
			NAMES(QP("17", "117, \"next\": 317", "27", AT("127")),
			      ""));
		if (i)
			answers(&mover, "record.names", REFUSAL("no"));
		begin_recorded();
		was_told(&partner);
		layer_tell("made 2\n[]\n");
		CHECK(layer_says("led"), "%s", heard);
		CHECK(!*was_told(&partner));
		layer_hang_up();
		CHECK(!layer_ends());
		check_ended();
	}
	answers(&mover, "names", NAMES(QP17, ""));

	puts("nobody is stopped if a partner does not answer");
	answers(&partner, "prepare", "hang up\n");
	layer_begin("n2");
	CHECK(layer_says("checked"), "%s", heard);
	layer_tell("record\n");
	CHECK(layer_says_some("failed 10.10.0.2: process "));
	CHECK(layer_ends() == 1);
	CHECK(!strstr(was_told(&mover), "suspend"));
	answers(&partner, "prepare", NULL);
	answers(&partner, "names", NAMES(QP("27", "127", "17", AT("117")), ""));

	puts("partners who cannot prepare, or do not know how");
	answers(&partner, "prepare", REFUSAL("full"));
	stop(RECORD, records, peers);
	done("\"taped\": 6,");
	answers(&partner, "prepare", NULL);

	puts("who leads to himself has no peers that are known before");
	answers(&mover, "names", NAMES(QP17 ", " PAIR, ""));
	stop(RECORD, records, "[]");
	done("\"taped\": 6,");
	answers(&mover, "names", NAMES(QP17, ""));

	puts("who cannot is left out, and says why");
	answers(&mover, "replace",
		"{\"ok\": true, \"taped\": 0, \"presetup\": \"command 5\"}\n");
	answers(&mover, "connect", NULL);
	stop(REFUSAL("rxe"), "[]", peers);
	CHECK(layer_says("migr-layer: ") &&
		      strstr(heard, "of no use: command 5"),
	      "%s", heard);
	done("\"taped\": 0,");
	answers(&mover, "replace", NULL);

	puts("who does not answer at all is not spoken to any more");
	answers(&mover, "record", "hang up");
	layer_begin(NULL);
	CHECK(layer_says("checked"), "%s", heard);
	layer_tell("record\n");
	CHECK(layer_says("failed ") && strstr(heard, "record: "), "%s", heard);
	CHECK(layer_ends() == 1);
	check_ended();
	answers(&mover, "record", NULL);

	test_long();

	puts("connected in another way: once more, and partners not before that");
	answers(&mover, "connect", REFUSAL("tape"));
	stop(RECORD, records, peers);
	CHECK(layer_says_some("connect: tape: once more, without pre-setup"));
	CHECK(layer_says_some("failed "));
	CHECK(layer_ends() == 1);
	check_ended();
	told = strstr(was_told(&mover), "connect\nreplace 1000\nnames\n");
	CHECK(told && strstr(told + 8, "peer 17") &&
	      strstr(told + 8, "connect\n"));

	fake_kill(&mover);
	fake_kill(&partner);
	CHECK(!daemon_end());
	rig_end();
	return check_result();
}
