// SPDX-License-Identifier: GPL-2.0
/*
 * The daemon, and what it says to whom: the runtime is a script that knows one container
 */
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "talk.h"

static char dir[] = "/tmp/mover.XXXXXX", at[64], moves[64];
static pid_t daemon_pid;
static struct talk t;

static const char runtime[] =
	"#!/bin/sh\n"
	"[ \"$1\" != list ] || { echo '{\"containers\": []}'; exit; }\n"
	"echo 'script: rdma: it is broken' >&2\n"
	"echo 'another line' >&2\n"
	"exit 1\n";

static void put_file(const char *name, const char *text, mode_t mode)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);
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

static void start(void)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s:%s", dir, getenv("PATH"));
	daemon_pid = fork();
	MUST(daemon_pid >= 0);
	if (!daemon_pid) {
		setenv("PATH", path, 1);
		execl(MOVER, "migr-mover", "-k", "none", "-c", "none", "-a",
		      "none", "-s", at, "-d", moves, NULL);
		_exit(127);
	}
	for (int i = 0; i < 1000 && !dial(); i++)
		usleep(10000);
	talk_free(&t);
}

/* what is said first is who that is; @who: what migrd would say of the caller, or NULL */
static void call(const char *who)
{
	json_t *hello;

	MUST(dial());
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

/* the answer to that; why it was refused is in t.reason, "" if it was not */
static json_t *asked(const char *who, const char *line)
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

static bool refused(const char *who, const char *line, const char *why)
{
	json_t *o = asked(who, line);
	bool is = !o && strstr(t.reason, why);

	json_decref(o);
	talk_free(&t);
	return is;
}

static bool done(const char *who, const char *line, const char *key)
{
	json_t *o = asked(who, line);
	bool is = o && (!key || json_object_get(o, key));

	json_decref(o);
	talk_free(&t);
	return is;
}

static const char host[] = "{\"peer\": \"n9\", \"operator\": false}\n",
		  person[] = "{\"peer\": \"admin\", \"operator\": true}\n",
		  nobody[] = "{\"peer\": \"admin\"}\n";

#define ID "0123456789abcdef"

static void test_words(void)
{
	CHECK(done(NULL, "{\"do\": \"list\"}\n", "containers"));
	CHECK(done(person, "{\"do\": \"status\"}\n", "moves"));
	CHECK(done(host, "{\"do\": \"status\"}\n", "moves"));
	CHECK(refused(NULL, "{\"do\": \"dance\"}\n", "'dance' is no word"));
	CHECK(refused(NULL, "{}\n", "'' is no word"));
	CHECK(refused(NULL, "{\"do\": 7}\n", "'' is no word"));
	/* what cannot be understood is no longer listened to */
	CHECK(refused(NULL, "do\n", "ended"));
	CHECK(refused(NULL, "[\"do\"]\n", "ended"));
}

/* Somebody who moves containers is no host, nor is who is not said to be one. */
static void test_who(void)
{
	const char *const of_hosts[] = {
		"{\"do\": \"outcome\", \"id\": \"" ID "\"}\n",
		"{\"do\": \"forget\", \"id\": \"" ID "\"}\n",
		"{\"do\": \"would\", \"name\": \"c1\", \"needs\": {}}\n",
		"{\"do\": \"reserve\", \"id\": \"" ID "\", \"name\": \"c1\"}\n",
	};

	for (size_t i = 0; i < sizeof(of_hosts) / sizeof(of_hosts[0]); i++) {
		CHECK(refused(person, of_hosts[i], "not for admin"));
		CHECK(refused(nobody, of_hosts[i], "not for admin"));
	}
	CHECK(done(host, of_hosts[0], "answer"));
	CHECK(done(NULL, of_hosts[0], "answer"));
	CHECK(done(host, of_hosts[1], NULL));
	CHECK(refused(host, of_hosts[2], "the kernel here"));
}

static void test_names(void)
{
	CHECK(refused(
		person,
		"{\"do\": \"migrate\", \"name\": \"../c\", \"to\": \"n3\"}\n",
		"no name of a container"));
	CHECK(refused(person, "{\"do\": \"migrate\", \"name\": \"c1\"}\n",
		      "no host"));
	CHECK(refused(
		person,
		"{\"do\": \"migrate\", \"name\": \"c1\", \"to\": \"n3\", \"pre_copy\": 99}\n",
		"no number of rounds"));
	CHECK(refused(person,
		      "{\"do\": \"check\", \"name\": \"-c\", \"to\": \"n3\"}\n",
		      "no name of a container"));
	/* what our own plug-in says goes before the rest */
	CHECK(refused(person,
		      "{\"do\": \"check\", \"name\": \"c1\", \"to\": \"n3\"}\n",
		      "rdma: it is broken"));
	CHECK(refused(host,
		      "{\"do\": \"reserve\", \"id\": \"x\", \"name\": \".C\"}\n",
		      "no name of a container"));
	CHECK(refused(
		host,
		"{\"do\": \"reserve\", \"id\": \"x\", \"name\": \"C\", \"runtime\": \"lxc\"}\n",
		"C is of 'lxc', which is no runtime here"));
	CHECK(refused(person, "{\"do\": \"abort\", \"name\": \"c1\"}\n",
		      "no move of c1 is under way"));
	CHECK(refused(
		person,
		"{\"do\": \"recover\", \"name\": \"c1\", \"fenced\": \"n3\"}\n",
		"no move of c1 is under way"));
}

/* What the runtime complains of is nobody else's, and gone with who has asked. */
static void test_errors(void)
{
	glob_t left;

	CHECK(glob("/run/migrctl/errors*", 0, NULL, &left) == GLOB_NOMATCH);
}

/* of a move that was there before the daemon: it is over, at the target */
static void test_forget(void)
{
	char folder[128];

	snprintf(folder, sizeof(folder), "%s/" ID, moves);
	MUST(!mkdir(folder, 0700));
	put_file("moves/" ID "/record",
		 "{\"id\": \"" ID
		 "\", \"name\": \"c1\", \"peer\": \"n9\", \"role\": \"target\"}",
		 0600);
	put_file("moves/" ID "/state", "running\n", 0600);
	CHECK(refused("{\"peer\": \"n8\", \"operator\": false}\n",
		      "{\"do\": \"forget\", \"id\": \"" ID "\"}\n",
		      "not yours"));
	CHECK(refused(NULL, "{\"do\": \"forget\", \"id\": \"" ID "\"}\n",
		      "not yours"));
	CHECK(done(host, "{\"do\": \"forget\", \"id\": \"" ID "\"}\n", NULL));
	CHECK(access(folder, F_OK));
}

int main(void)
{
	char command[64];
	int status;

	MUST(mkdtemp(dir));
	snprintf(at, sizeof(at), "%s/sock", dir);
	snprintf(moves, sizeof(moves), "%s/moves", dir);
	put_file("migr-ctr", runtime, 0755);
	put_file("migr-podman", runtime, 0755);
	start();
	test_words();
	test_who();
	test_names();
	test_errors();
	test_forget();
	kill(daemon_pid, SIGTERM);
	MUST(waitpid(daemon_pid, &status, 0) == daemon_pid);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "%d", status);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK(!system(command));
	return check_result();
}
