// SPDX-License-Identifier: GPL-2.0
#include "at_mover.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

char dir[] = "/tmp/mover.XXXXXX", moves[64];
struct talk t;

static char at[64];
pid_t daemon_pid;

/* It knows no container, and can unmake one. */
static const char plain[] =
	"#!/bin/sh\n"
	"echo \"$3\" >>\"${0%/*}/verbs\"\n"
	"[ \"$3\" != unmake ] || exit 0\n"
	"[ \"$1\" != list ] || { echo '{\"containers\": []}'; exit; }\n"
	"echo 'script: rdma: it is broken' >&2\n"
	"echo 'another line' >&2\n"
	"exit 1\n";

void put_file(const char *name, const char *text, mode_t mode)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	MUST(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

bool mover_dial(void)
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

void mover_start(const char *stops_at)
{
	char path[4096];
	json_t *hello;

	snprintf(path, sizeof(path), "%s:%s", dir, getenv("PATH"));
	unlink(at);
	daemon_pid = fork();
	MUST(daemon_pid >= 0);
	if (!daemon_pid) {
		/* a test that ends early leaves nobody */
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		setenv("PATH", path, 1);
		if (stops_at)
			setenv("MIGR_MOVER_STOPS_AT", stops_at, 1);
		execl(MOVER, "migr-mover", "-k", "none", "-c", "none", "-a",
		      "none", "-s", at, "-d", moves, NULL);
		_exit(127);
	}
	for (int i = 0; i < 1000 && !mover_dial(); i++)
		usleep(10000);
	/* it answers when it has looked at what there was */
	hello = talk_answered(&t, 20000);
	CHECK(hello, "%s", t.reason);
	json_decref(hello);
	talk_free(&t);
}

/* what is said first is who that is; @who: what migrd would say of the caller, or NULL */
static void call(const char *who)
{
	json_t *hello;

	MUST(mover_dial());
	hello = talk_answered(&t, 10000);
	CHECK(json_integer_value(json_object_get(hello, "migr-mover")) == 1);
	CHECK(json_string_length(json_object_get(hello, "boot")) == 36);
	json_decref(hello);
	if (who)
		MUST(send(t.fd, who, strlen(who), 0) == (ssize_t)strlen(who));
}

static void put(const char *line)
{
	MUST(send(t.fd, line, strlen(line), 0) == (ssize_t)strlen(line));
}

json_t *asked(const char *who, const char *line)
{
	json_t *o;

	call(who);
	put(line);
	t.reason[0] = 0;
	o = talk_answered(&t, 20000);
	printf("%s%s", who ? who : "", line);
	printf("\t%s\n", o ? "ok" : t.reason);
	return o;
}

bool refused(const char *who, const char *line, const char *why)
{
	json_t *o = asked(who, line);
	bool is = !o && strstr(t.reason, why);

	json_decref(o);
	talk_free(&t);
	return is;
}

bool done(const char *who, const char *line, const char *key)
{
	json_t *o = asked(who, line);
	bool is = o && (!key || json_object_get(o, key));

	json_decref(o);
	talk_free(&t);
	return is;
}

/* The lock of a container is below /var/lib, which is nobody else's here. */
static void own_var_lib(void)
{
	MUST(!unshare(CLONE_NEWNS));
	MUST(!mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL));
	MUST(!mount("tmpfs", "/var/lib", "tmpfs", 0, NULL));
}

void mover_house(const char *runtime)
{
	own_var_lib();
	MUST(mkdtemp(dir));
	snprintf(at, sizeof(at), "%s/sock", dir);
	snprintf(moves, sizeof(moves), "%s/moves", dir);
	put_file("migr-ctr", runtime ?: plain, 0755);
	put_file("migr-podman", runtime ?: plain, 0755);
}

void mover_begins(void)
{
	mover_house(NULL);
	mover_start(NULL);
}

void mover_stop(void)
{
	int status;

	kill(daemon_pid, SIGTERM);
	MUST(waitpid(daemon_pid, &status, 0) == daemon_pid);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "%d", status);
}

void mover_again(void)
{
	mover_stop();
	mover_start(NULL);
}

void mover_leaves_house(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK(!system(command));
}

void mover_ends(void)
{
	mover_stop();
	mover_leaves_house();
}
