// SPDX-License-Identifier: GPL-2.0
/*
 * The door, between this program, which is runc and who gives the word, and a CRIU that is
 * none. The container's veth is a link of a network namespace of the test's own.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "link.h"
#include "rpc.h"

#define LINK "c-test"

enum {
	PATIENCE_MS = 30000,
};

static char dir[] = "/tmp/door.XXXXXX", folder[64], notes[64];
static int runc = -1, go = -1, says = -1;
static pid_t door;
static unsigned int lan;
static int images, logs; /* folders with a file of this name */

static void path_of(char *path, const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", folder, name);
}

/* until @fd has something, or has ended, or that time is over */
static bool comes(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) > 0;
}

/* ---- whoever gives the word -------------------------------------------- */

static void word(const char *text)
{
	MUST(write(go, text, strlen(text)) == (ssize_t)strlen(text));
}

/* the next line is that; "" : the end */
static bool said(const char *expected)
{
	char line[64];
	size_t n = 0;

	while (n < sizeof(line) - 1) {
		if (!comes(says, PATIENCE_MS))
			return false;
		if (read(says, line + n, 1) != 1 || line[n] == '\n')
			break;
		n++;
	}
	line[n] = 0;
	CHECK(!strcmp(line, expected), "%s", line);
	return !strcmp(line, expected);
}

/* ---- runc -------------------------------------------------------------- */

static bool ask(CriuReqType type, char *text)
{
	static struct rpc_message m;
	CriuReq q = CRIU_REQ__INIT;
	CriuOpts opts = CRIU_OPTS__INIT;

	q.type = type;
	q.opts = &opts;
	opts.images_dir_fd = images;
	opts.has_work_dir_fd = true;
	opts.work_dir_fd = logs;
	opts.log_file = text;
	m.bytes = criu_req__pack(&q, m.data);
	return rpc_send(runc, &m);
}

static bool ack(void)
{
	static struct rpc_message m;
	CriuReq q = CRIU_REQ__INIT;

	q.type = CRIU_REQ_TYPE__NOTIFY;
	q.has_notify_success = q.notify_success = true;
	m.bytes = criu_req__pack(&q, m.data);
	return rpc_send(runc, &m);
}

/* what CRIU says next: "dump" and "restore" if it has succeeded, "end" if it has ended */
static bool heard(const char *expected)
{
	static struct rpc_message m;
	const char *what = "nothing";
	CriuResp *r = NULL;
	bool is;

	if (!comes(runc, PATIENCE_MS))
		return false;
	if (rpc_receive(runc, &m) != 1) {
		what = "end";
	} else {
		r = rpc_response(&m);
		if (r && r->type == CRIU_REQ_TYPE__NOTIFY)
			what = r->notify->script;
		else if (r)
			what = r->success ? "success" : "failure";
		if (m.n_files) {
			CHECK(m.n_files == 1);
			CHECK(write(m.files[0], "x", 1) < 0 && errno == ENOSPC);
		}
		rpc_close_files(&m);
	}
	is = !strcmp(what, expected);
	CHECK(is, "%s", what);
	if (r)
		criu_resp__free_unpacked(r, NULL);
	return is;
}

/* ---- the door ---------------------------------------------------------- */

static void start(const char *fake)
{
	char path[PATH_MAX], number[16];
	int ends[2];

	printf("%s\n", fake);
	fflush(stdout);
	path_of(path, "go");
	MUST(!mkfifo(path, 0600));
	go = open(path, O_RDWR | O_CLOEXEC);
	path_of(path, "says");
	MUST(!mkfifo(path, 0600));
	says = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	path_of(path, "errors");
	close(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
	MUST(go >= 0 && says >= 0);
	MUST(!truncate(notes, 0));
	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	runc = ends[0];
	fflush(NULL);
	door = fork();
	MUST(door >= 0);
	if (!door) {
		fcntl(ends[1], F_SETFD, 0); /* not close-on-exec */
		snprintf(number, sizeof(number), "%d", ends[1]);
		setenv("FAKE", fake, 1);
		execl(DOOR, "criu", "swrk", number, NULL);
		_exit(127);
	}
	close(ends[1]);
	MUST(link_plug(LINK, lan));
}

/* CRIU is asked for that, and it waits */
static void begin(const char *fake, CriuReqType type)
{
	start(fake);
	CHECK(ask(type, "a.log"));
	CHECK(said("ready"));
}

static bool is_plugged(void)
{
	unsigned int master;

	MUST(link_master(LINK, &master));
	return master == lan;
}

/* @code: of CRIU; -1: by SIGKILL */
static void end(int code)
{
	char path[PATH_MAX];
	int status;

	MUST(waitpid(door, &status, 0) == door);
	CHECK(code < 0 ? WIFSIGNALED(status) : WIFEXITED(status));
	CHECK(code < 0 || WEXITSTATUS(status) == code, "%d", status);
	if (runc >= 0)
		close(runc);
	if (go >= 0)
		close(go);
	close(says);
	path_of(path, "go");
	unlink(path);
	path_of(path, "says");
	unlink(path);
}

static bool has_text(const char *path, const char *text)
{
	char buf[512];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, buf, sizeof(buf) - 1);

	close(fd);
	buf[n > 0 ? n : 0] = 0;
	return strstr(buf, text);
}

static bool noted(const char *text)
{
	return has_text(notes, text);
}

static bool complained(const char *text)
{
	char path[PATH_MAX];

	path_of(path, "errors");
	return has_text(path, text);
}

static void test_passes_on(void)
{
	begin("good", CRIU_REQ_TYPE__DUMP);
	for (int ms = 0; !noted("started") && ms < PATIENCE_MS; ms += 10)
		usleep(10000);
	/* it would not take that long */
	CHECK(!comes(runc, 200) && is_plugged() && !noted("1"));
	word("dump\n");
	CHECK(heard("network-lock"));
	CHECK(!is_plugged() && noted("1 dump a.log images logs"));
	CHECK(ack() && heard("post-dump") && !comes(says, 0));
	CHECK(ack());
	/* runc goes on from what it hears, and somebody from what that does */
	CHECK(comes(runc, PATIENCE_MS) && comes(says, 0));
	CHECK(said("criu 0") && heard("success"));
	CHECK(said("") && heard("end"));
	CHECK(!is_plugged());
	end(0);
}

static void test_restore(void)
{
	begin("good", CRIU_REQ_TYPE__RESTORE);
	word("restore\n");
	CHECK(heard("network-lock"));
	CHECK(is_plugged() && noted("2 restore a.log images logs"));
	CHECK(ack() && heard("post-dump"));
	CHECK(ack() && heard("success") && heard("end"));
	CHECK(said(""));
	end(0);
}

/* whatever is not to wait */
static void test_other(void)
{
	start("good");
	CHECK(ask(CRIU_REQ_TYPE__VERSION, "c.log"));
	CHECK(heard("success") && heard("end"));
	CHECK(noted("10 - c.log images logs") && !comes(says, 0));
	end(0);
}

static void test_file(void)
{
	begin("file", CRIU_REQ_TYPE__RESTORE);
	word("restore\n");
	CHECK(heard("network-lock") && ack());
	CHECK(heard("orphan-pts-master") && ack());
	CHECK(heard("post-dump") && ack() && heard("success"));
	end(0);
}

static void test_fails(void)
{
	begin("bad", CRIU_REQ_TYPE__DUMP);
	word("dump\n");
	CHECK(heard("network-lock") && !is_plugged() && ack());
	CHECK(heard("failure") && said("criu 1") && said(""));
	CHECK(is_plugged());
	end(1);
}

/* A mover is told when it stands still, and decides when all is dumped. */
static void test_held(void)
{
	MUST(!setenv("MIGR_CTR_HOLD", "1", 1));
	begin("good", CRIU_REQ_TYPE__DUMP);
	word("dump\n");
	CHECK(heard("network-lock") && said("frozen") && !is_plugged() &&
	      ack());
	CHECK(said("held"));
	word("leave\n");
	CHECK(heard("post-dump") && ack());
	CHECK(said("criu 0") && heard("success"));
	end(0);

	begin("good", CRIU_REQ_TYPE__DUMP);
	word("dump\n");
	CHECK(heard("network-lock") && said("frozen") && ack());
	CHECK(said("held"));
	word("stop\n");
	CHECK(said("criu 1") && is_plugged() && heard("failure"));
	end(1);
	MUST(!unsetenv("MIGR_CTR_HOLD"));
}

/* nobody has said that it may be unplugged, or what is said makes no sense */
static void test_strange(void)
{
	begin("plugged", CRIU_REQ_TYPE__DUMP);
	word("dump\n");
	CHECK(heard("failure") && said("criu 1") && said("") &&
	      noted("refused"));
	CHECK(is_plugged());
	end(1);

	begin("garbage", CRIU_REQ_TYPE__DUMP);
	word("dump\n");
	CHECK(heard("network-lock") && ack());
	CHECK(heard("post-dump") && ack());
	CHECK(said("criu 0") && heard("success"));
	end(0);

	/* and no request */
	start("good");
	MUST(send(runc, "\377", 1, 0) == 1);
	CHECK(heard("end") && !noted("started"));
	CHECK(complained("runc's request to CRIU cannot be read: Bad message"));
	end(1);
}

/* the one between them is killed, as well as CRIU */
static void test_killed(void)
{
	begin("dies", CRIU_REQ_TYPE__DUMP);
	word("dump\n");
	CHECK(heard("network-lock") && !is_plugged() && ack());
	CHECK(said("criu 1") && said("") && heard("end"));
	CHECK(is_plugged());
	end(-1);
}

/* nobody is left who would wait */
static void test_gives_up(void)
{
	static const char *const words[] = { "stop\n", "restore\n", "dump" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		begin("good", CRIU_REQ_TYPE__DUMP);
		word(words[i]);
		CHECK(said("") && heard("end") && is_plugged());
		end(1);
	}
	begin("good", CRIU_REQ_TYPE__DUMP);
	close(go);
	go = -1;
	CHECK(said("") && heard("end") && is_plugged());
	end(1);
	/* whoever would give the word was killed before it was listened to */
	start("good");
	close(go);
	go = -1;
	CHECK(ask(CRIU_REQ_TYPE__DUMP, "i.log"));
	CHECK(said("ready") && said("") && heard("end") && is_plugged());
	end(1);
}

static void test_alone(void)
{
	begin("early", CRIU_REQ_TYPE__DUMP);
	CHECK(said("") && heard("end") && is_plugged());
	end(1);

	/* runc is killed: while it waits, and while CRIU works */
	begin("good", CRIU_REQ_TYPE__DUMP);
	close(runc);
	runc = -1;
	CHECK(said("") && is_plugged());
	end(1);
	begin("good", CRIU_REQ_TYPE__DUMP);
	word("dump\n");
	CHECK(heard("network-lock") && !is_plugged());
	close(runc);
	runc = -1;
	CHECK(said("criu 1") && said("") && is_plugged());
	end(1);
}

static void test_no_link(void)
{
	begin("good", CRIU_REQ_TYPE__DUMP);
	MUST(!system("ip link del " LINK));
	word("dump\n");
	CHECK(heard("failure") && said("criu 1") && noted("refused"));
	CHECK(complained(LINK " cannot be unplugged: No such device"));
	end(1);
	MUST(!system("ip link add " LINK " type veth"));
}

static int folder_with(const char *name)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	MUST(!mkdir(path, 0700));
	fd = open(path, O_PATH | O_CLOEXEC);
	MUST(fd >= 0);
	close(openat(fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	return fd;
}

/* a folder that is none, and one that is not there */
static void test_no_folder(void)
{
	static const int bad[] = { 0, 999 };
	int good = images;

	for (size_t i = 0; i < 2; i++) {
		start("good");
		images = bad[i];
		CHECK(ask(CRIU_REQ_TYPE__DUMP, "n.log"));
		images = good;
		CHECK(heard("end") && said("") && !noted("1"));
		CHECK(complained("runc's request to CRIU cannot be held: "));
		end(1);
	}
}

int main(void)
{
	char path[PATH_MAX];

	signal(SIGPIPE, SIG_IGN);
	MUST(mkdtemp(dir));
	snprintf(folder, sizeof(folder), "%s/door", dir);
	snprintf(notes, sizeof(notes), "%s/notes", dir);
	MUST(!mkdir(folder, 0700));
	close(open(notes, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	setenv("FAKE_NOTES", notes, 1);
	setenv("MIGR_CTR_DOOR", folder, 1);
	setenv("MIGR_CTR_LINK", LINK, 1);
	images = folder_with("images");
	logs = folder_with("logs");
	MUST(!unshare(CLONE_NEWNET));
	MUST(!system("ip link add lan type bridge && ip link add " LINK
		     " type veth && ip link set dev " LINK " master lan"));
	MUST(link_master(LINK, &lan) && lan);
	test_passes_on();
	test_restore();
	test_other();
	test_file();
	test_fails();
	test_held();
	test_strange();
	test_killed();
	test_gives_up();
	test_alone();
	test_no_link();
	test_no_folder();
	snprintf(path, sizeof(path), "rm -r %s", dir);
	MUST(!system(path));
	return check_result();
}
