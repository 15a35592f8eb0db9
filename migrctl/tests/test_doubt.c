// SPDX-License-Identifier: GPL-2.0
/*
 * What an end makes of what the other one says, or does not: that is this program
 */
#include <fcntl.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "move.h"
#include "peer.h"

#define BOOT "b3"

static char dir[] = "/tmp/doubt.XXXXXX";
static const char *answer; /* NULL: there is nobody */
static struct move m;

bool move_fails(struct move *to, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(to->reason, sizeof(to->reason), fmt, args);
	va_end(args);
	return false;
}

/* It has answered already. */
bool peer_dial(struct talk *t, const char *host, json_t **hello)
{
	size_t n = answer ? strlen(answer) : 0;
	int ends[2];

	(void)hello;
	CHECK(!strcmp(host, "n3"));
	*t = (struct talk){ .fd = -1, .reason = "no route" };
	if (!answer)
		return false;
	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	MUST(write(ends[1], answer, n) == (ssize_t)n);
	MUST(talk_init(t, ends[0]));
	/* what is asked is not read */
	MUST(dup2(ends[1], 100) == 100);
	close(ends[1]);
	return true;
}

#define SAYS(what, more)                                                       \
	"{\"ok\": true, \"answer\": \"" what "\", \"boot\": \"" BOOT "\"" more \
	"}\n"

#define ID "0123456789abcdef"

static void begins(void)
{
	MUST(journal_new(&m.journal, MOVE_SOURCE,
			 json_pack("{ssssss}", "id", ID, "name", "c1",
				   "peer_boot", BOOT)));
}

/* It stays where it was, with that reason, and somebody may vouch for the other end, or not. */
static void stays(const char *said, const char *why, bool in_doubt)
{
	enum move_state state = m.journal.state;

	answer = said;
	CHECK(move_ask(&m) == state);
	CHECK(strstr(m.reason, why), "%s", m.reason);
	CHECK(!strcmp(journal_text(&m.journal, "reason"), m.reason));
	CHECK(doubt_is(&m.journal) == in_doubt, "%s", why);
}

static void becomes(const char *said, enum move_state next)
{
	answer = said;
	m.reason[0] = m.warning[0] = 0;
	CHECK(move_ask(&m) == next);
}

static void is_in(enum move_role role, enum move_state state)
{
	m.journal.role = role;
	m.journal.state = state;
}

static void test_stays(void)
{
	stays(NULL, "n3 does not say what has become of c1: no route", true);
	stays(SAYS("wait", ""), "n3 has not come to its end", false);
	stays(SAYS("unknown", ""), "migrctl recover c1 --fenced n3", true);
	CHECK(strstr(m.reason, "n3 knows nothing"));
	stays(SAYS("strange", ""), "n3 has not come to its end", false);
	/* nobody vouches for himself */
	stays(SAYS("fenced", ""), "n3 has not come to its end", false);
	stays("{\"ok\": true, \"answer\": \"unknown\", \"boot\": \"b4\"}\n",
	      "n3 was started anew", true);
}

static void test_source(void)
{
	is_in(MOVE_SOURCE, MOVE_GRANTED);
	test_stays();
	becomes(SAYS("runs", ""), MOVE_LEFT);
	CHECK(!*m.warning);
	becomes(SAYS("runs", ", \"warning\": \"no hook\\u0007\""), MOVE_LEFT);
	CHECK(!strcmp(m.warning, "no hook?"), "%s", m.warning);
	becomes(SAYS("dropped", ", \"reason\": \"CRIU fails\""), MOVE_BACK);
	CHECK(!strcmp(m.reason, "n3: CRIU fails"), "%s", m.reason);
	becomes(SAYS("dropped", ""), MOVE_BACK);
	CHECK(*m.reason);
}

static void test_target(void)
{
	is_in(MOVE_TARGET, MOVE_READY);
	test_stays();
	becomes(SAYS("go", ""), MOVE_GRANTED);
	becomes(SAYS("drop", ""), MOVE_DROPPED);
	/* where the word is not waited for nobody is to give one */
	is_in(MOVE_TARGET, MOVE_GRANTED);
	CHECK(!doubt_is(&m.journal));
}

static void test_fenced(void)
{
	char path[JOURNAL_PATH + 32];

	is_in(MOVE_SOURCE, MOVE_GRANTED);
	snprintf(path, sizeof(path), "%s/fenced", m.journal.folder);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	becomes(NULL, MOVE_BACK);
	CHECK(strstr(m.reason, "n3 was said to be fenced"), "%s", m.reason);
	CHECK(access(path, F_OK)); /* that was for this time */
}

/* It is over here, and kept for as long as the other end may ask for it. */
static void test_forgets(void)
{
	static const struct {
		const char *said;
		bool kept;
	} cases[] = {
		{ NULL, true },
		{ SAYS("wait", ""), true },
		{ SAYS("died", ""), true }, /* that is not for it to say */
		{ SAYS("unknown", ""), false },
		{ "{\"ok\": true, \"answer\": \"unknown\", \"boot\": \"b4\"}\n",
		  false },
	};
	char path[JOURNAL_PATH + 32];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begins();
		is_in(MOVE_TARGET, MOVE_RUNNING);
		snprintf(path, sizeof(path), "%s/state", m.journal.folder);
		MUST(!utimensat(AT_FDCWD, path, (const struct timespec[2]){},
				0));
		CHECK(journal_is_due(&m.journal, 30, 3600));
		answer = cases[i].said;
		target_forget(&m);
		CHECK(!access(path, F_OK) == cases[i].kept, "%zu", i);
		if (!cases[i].kept)
			continue;
		MUST(journal_open(&m.journal, ID));
		CHECK(!journal_is_due(&m.journal, 30, 3600));
		journal_remove(&m.journal);
	}
}

static void set_time(const char *file, time_t at)
{
	const struct timespec both[2] = { { at, 0 }, { at, 0 } };
	char path[JOURNAL_PATH + 32];

	snprintf(path, sizeof(path), "%s/%s", m.journal.folder, file);
	MUST(!utimensat(AT_FDCWD, path, both, 0));
}

/* It was over so long ago, and asked about last. */
static bool is_due(time_t over, time_t asked)
{
	const time_t now = time(NULL);

	set_time("record", now - over);
	set_time("state", now - asked);
	return journal_is_due(&m.journal, 30, 3600);
}

/* A source that is gone for good is asked less and less often. */
static void test_due(void)
{
	begins();
	is_in(MOVE_TARGET, MOVE_RUNNING);
	CHECK(!is_due(20, 20));
	CHECK(is_due(40, 40));
	CHECK(!is_due(400, 100));
	CHECK(is_due(400, 210));
	CHECK(!is_due(1000000, 3000));
	CHECK(is_due(1000000, 3700));
	/* the clock was set back */
	CHECK(is_due(-100, -100));
	journal_remove(&m.journal);
}

int main(void)
{
	MUST(mkdtemp(dir));
	journal_moves = dir;
	m.name = "c1";
	m.other = "n3";
	begins();
	test_source();
	test_target();
	test_fenced();
	journal_remove(&m.journal);
	test_forgets();
	test_due();
	CHECK(!rmdir(dir));
	return check_result();
}
