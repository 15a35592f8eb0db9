// SPDX-License-Identifier: GPL-2.0
#include "at_door.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "link.h"

char dir[] = "/tmp/door.XXXXXX";
int runc = -1, go = -1, says = -1, images;
pid_t door;

static char folder[64], notes[64];
static unsigned int lan;
static int logs;

void path_of(char *path, const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", folder, name);
}

bool comes(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) > 0;
}

/* ---- whoever gives the word -------------------------------------------- */

void word(const char *text)
{
	MUST(write(go, text, strlen(text)) == (ssize_t)strlen(text));
}

bool said(const char *expected)
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

bool ask(CriuReqType type, char *text)
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

bool ack(void)
{
	static struct rpc_message m;
	CriuReq q = CRIU_REQ__INIT;

	q.type = CRIU_REQ_TYPE__NOTIFY;
	q.has_notify_success = q.notify_success = true;
	m.bytes = criu_req__pack(&q, m.data);
	return rpc_send(runc, &m);
}

bool heard(const char *expected)
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

void start(const char *fake)
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

void begin(const char *fake, CriuReqType type)
{
	start(fake);
	CHECK(ask(type, "a.log"));
	CHECK(said("ready"));
}

bool is_plugged(void)
{
	unsigned int master;

	MUST(link_master(LINK, &master));
	return master == lan;
}

void end(int code)
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

bool noted(const char *text)
{
	return has_text(notes, text);
}

bool complained(const char *text)
{
	char path[PATH_MAX];

	path_of(path, "errors");
	return has_text(path, text);
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

void door_is_made(void)
{
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
}

void door_is_gone(void)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "rm -r %s", dir);
	MUST(!system(path));
}
