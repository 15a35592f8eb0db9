// SPDX-License-Identifier: GPL-2.0
/*
 * The end of a move where the container comes to, by the layer: what the runtime, which is a
 * script, is told, and in which order, when all is well, and when the move is given up, or loses
 * its connection or its process, at each step.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "talk.h"

static char dir[] = "/tmp/target.XXXXXX", at[64];
static pid_t daemon_pid;
static struct talk t;

/* Each says in the file "log" what it is told. */
static const char runtime[] =
	"#!/bin/sh\n"
	"says() { echo \"$@\" >>$HOUSE/log; }\n"
	/* until nobody is left who decides, as CRIU does */
	"hears() {\n"
	"	until read -r w <&3; do\n"
	"		grep -q granted $images/../state || exit\n"
	"		sleep 0.1\n"
	"	done\n"
	"	says $verb $w\n"
	"}\n"
	"verb=$3 images=$4\n"
	"case $verb in\n"
	"restore | ahead) exec 3<$MIGR_CTR_DOOR/go ;;\n"
	"*) says $verb ;;\n"
	"esac\n"
	"case $verb in\n"
	"make) cat >/dev/null; echo '{\"at\": \"/tmp\", \"names\": [\"none\"]}' ;;\n"
	"restore) echo ready; hears; [ \"$w\" = restore ] || exit 1\n"
	"	echo restored; hears; [ \"$w\" = resume ] || exit 1\n"
	"	echo 0 >$MIGR_CTR_DOOR/runc ;;\n"
	"ahead) [ ! -e $HOUSE/ahead_fails ] || exit 1\n"
	"	cp $images/ahead/records $images/ahead/made; echo made\n"
	"	while hears && [ $w = connect ]; do :; done\n"
	"	echo 0 >$MIGR_CTR_DOOR/runc ;;\n"
	"runs) echo '{\"runs\": true}' ;;\n"
	"esac\n";

static void put_file(const char *name, const char *text, mode_t mode)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	MUST(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static bool dial(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, at);
	MUST(fd >= 0);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		close(fd);
		return false;
	}
	MUST(talk_init(&t, fd));
	return true;
}

/* @stops_at: or NULL */
static void start(const char *stops_at)
{
	char path[4096], moves[64];

	snprintf(path, sizeof(path), "%s:%s", dir, getenv("PATH"));
	snprintf(moves, sizeof(moves), "%s/moves", dir);
	put_file("log", "", 0600);
	unlink(at);
	daemon_pid = fork();
	MUST(daemon_pid >= 0);
	if (!daemon_pid) {
		setenv("PATH", path, 1);
		setenv("HOUSE", dir, 1);
		if (stops_at)
			setenv("MIGR_MOVER_STOPS_AT", stops_at, 1);
		execl(MOVER, "migr-mover", "-k", "none", "-c", "none", "-a",
		      "none", "-s", at, "-d", moves, NULL);
		_exit(127);
	}
	for (int i = 0; i < 1000 && !dial(); i++)
		usleep(10000);
	talk_free(&t);
}

static void end(void)
{
	char command[128];

	talk_free(&t);
	kill(daemon_pid, SIGTERM);
	waitpid(daemon_pid, NULL, 0);
	snprintf(command, sizeof(command),
		 "umount %s/moves/*/images 2>&-; rm -rf %s/moves/*", dir, dir);
	if (system(command))
		return;
}

/* ---- what the source says ------------------------------------------------------- */

static bool answered(void)
{
	json_t *said = talk_answered(&t, 20000);

	json_decref(said);
	return said;
}

static bool asks(json_t *o)
{
	return talk_say(&t, o) && answered();
}

static bool word(const char *what)
{
	return asks(json_pack("{ss}", "do", what));
}

static bool reserve(void)
{
	struct utsname u;
	json_t *hello;

	uname(&u);
	MUST(dial());
	hello = talk_answered(&t, 10000);
	json_decref(hello);
	talk_say(&t, json_pack("{sssb}", "peer", "n9", "operator", 0));
	return hello &&
	       asks(json_pack("{sssssssss{ss}s{sssssssss{}sisb}}", "do",
			      "reserve", "id", "0123456789abcdef", "name", "c1",
			      "boot", "b", "spec", "rdma", "", "needs",
			      "kernel", u.release, "machine", u.machine, "cpu",
			      "", "module", "", "devices", "bytes", 0, "layer",
			      1));
}

static bool give(void)
{
	uint64_t bytes = 0;
	char command[128];
	bool given;
	FILE *f;

	snprintf(command, sizeof(command), "tar -C %s -cf - ahead", dir);
	if (!talk_say(&t, json_pack("{ssss}", "do", "take", "what", "image")))
		return false;
	f = popen(command, "r");
	MUST(f);
	given = talk_give(&t, fileno(f), &bytes);
	pclose(f);
	return given && answered();
}

static bool ahead(void)
{
	uint64_t bytes = 0;
	bool taken;
	int fd;

	if (!word("ahead"))
		return false;
	fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	taken = talk_take(&t, fd, &bytes);
	close(fd);
	return taken && bytes == strlen("records");
}

/* so far: 1 is reserved, 2 has what is to be made, 3 has made it, 4 is restored */
static bool comes_to(int step)
{
	return reserve() && (step < 2 || give()) && (step < 3 || ahead()) &&
	       (step < 4 || word("restore"));
}

/* ---- what is made of it ----------------------------------------------------------- */

#define MADE "vacant\nmake\n"
#define GONE "unmake\n"

/* Within ten seconds the runtime has been told just that. */
static bool told(const char *all)
{
	char path[64], log[1024] = "";
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/log", dir);
	for (int i = 0; i < 1000 && strcmp(log, all); i++) {
		usleep(10000);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		n = read(fd, log, sizeof(log) - 1);
		close(fd);
		log[n > 0 ? n : 0] = 0;
	}
	if (strcmp(log, all))
		printf("it was told:\n%s", log);
	return !strcmp(log, all);
}

static void test_moves(void)
{
	json_t *o;

	start(NULL);
	CHECK(comes_to(3), "%s", t.reason);
	CHECK(word("connect"));
	CHECK(told(MADE "ahead connect\n"));
	CHECK(word("restore"));
	CHECK(talk_say(&t, json_pack("{ss}", "do", "grant")));
	/* the source need not wait for the rest */
	o = talk_answered(&t, 20000);
	CHECK(!strcmp(talk_text(o, "state"), "resumed"));
	json_decref(o);
	o = talk_answered(&t, 20000);
	CHECK(json_is_array(json_object_get(o, "steps")));
	json_decref(o);
	CHECK(told(
		MADE
		"ahead connect\nrestore restore\nrestore resume\nahead hand\nattach\n"));
	end();
}

/* It is no part of what is needed: without it a move goes on. */
static void test_is_gone(void)
{
	char command[128];

	start(NULL);
	CHECK(comes_to(3));
	snprintf(command, sizeof(command),
		 "pkill -KILL -f 'migr-ctr [d]river c1 ahead %s'", dir);
	CHECK(!system(command));
	CHECK(word("restore"));
	CHECK(talk_say(&t, json_pack("{ss}", "do", "grant")));
	CHECK(answered() && answered());
	CHECK(told(MADE "restore restore\nrestore resume\nattach\n"));
	end();
}

static void test_refused(void)
{
	char path[64];

	start(NULL);
	CHECK(comes_to(1));
	CHECK(!word("ahead"));
	CHECK(strstr(t.reason, "in the state preparing"), "%s", t.reason);
	CHECK(told(MADE "restore stop\n" GONE));
	end();

	put_file("ahead_fails", "", 0600);
	start(NULL);
	CHECK(comes_to(2));
	CHECK(!word("ahead"));
	CHECK(told(MADE "restore stop\n" GONE));
	end();
	snprintf(path, sizeof(path), "%s/ahead_fails", dir);
	unlink(path);
}

static const char *const given_up[] = {
	[1] = MADE "restore stop\n" GONE,
	[2] = MADE "restore stop\n" GONE,
	[3] = MADE "restore stop\nahead stop\n" GONE,
	[4] = MADE "restore restore\nrestore stop\nahead stop\n" GONE,
};
/* Whoever hears the end of its pipe needs no word. */
static const char *const killed[] = {
	[1] = MADE GONE,
	[2] = MADE GONE,
	[3] = MADE GONE,
	[4] = MADE "restore restore\n" GONE,
};

/* of that daemon there is one child, which is the move */
static void kill_move(void)
{
	char command[64];

	snprintf(command, sizeof(command), "pkill -KILL -P %d", daemon_pid);
	CHECK(!system(command));
}

static void test_given_up(void)
{
	for (int step = 1; step <= 4; step++) {
		start(NULL);
		CHECK(comes_to(step));
		CHECK(!word("drop") && strstr(t.reason, "has given it up"));
		CHECK(told(given_up[step]), "step %d", step);
		end();

		start(NULL);
		CHECK(comes_to(step));
		kill_move();
		CHECK(told(killed[step]), "killed, step %d", step);
		end();
	}
	/* when it is ready only the source knows what a lost connection means */
	for (int step = 1; step <= 3; step++) {
		start(NULL);
		CHECK(comes_to(step));
		talk_free(&t);
		CHECK(told(given_up[step]), "lost, step %d", step);
		end();
	}
}

static void test_granted(void)
{
	start("granted");
	CHECK(comes_to(4));
	CHECK(talk_say(&t, json_pack("{ss}", "do", "grant")));
	CHECK(told(MADE "restore restore\n"));
	kill_move();
	CHECK(told(MADE
		   "restore restore\nrestore resume\nahead hand\nattach\n"));
	end();
}

/* What a mover needs of its host is this test's own. */
static bool is_alone(void)
{
	return !unshare(CLONE_NEWNS) &&
	       !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("tmpfs", "/var/lib", "tmpfs", 0, NULL) &&
	       !mount("tmpfs", "/sys/kernel", "tmpfs", 0, NULL);
}

int main(void)
{
	char command[64];

	if (!is_alone()) {
		puts("it takes root, and a file system that can be mounted");
		return 77;
	}
	MUST(mkdtemp(dir));
	snprintf(at, sizeof(at), "%s/sock", dir);
	put_file("migr-ctr", runtime, 0755);
	snprintf(command, sizeof(command), "mkdir %s/ahead", dir);
	MUST(!system(command));
	put_file("ahead/records", "records", 0600);
	signal(SIGPIPE, SIG_IGN);
	test_moves();
	test_is_gone();
	test_refused();
	test_given_up();
	test_granted();
	snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK(!system(command));
	return check_result();
}
