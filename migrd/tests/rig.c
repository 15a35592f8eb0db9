// SPDX-License-Identifier: GPL-2.0
#include "rig.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <openssl/err.h>

#include "certs.h"

char dir[64] = "/tmp/migrd-test-XXXXXX";
char answer[ANSWER_ROOM];
static pid_t daemon_pid, other_pid;
static char port[8];

void rig_begin(void)
{
	struct ca ca;

	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	MUST(mkdtemp(dir));
	ca = ca_new(dir, "ca");
	cert_new(&ca, dir, "n1", "n1", 1, "serverAuth,clientAuth");
	cert_new(&ca, dir, "n2", "n2", 1, "serverAuth,clientAuth");
	cert_new(&ca, dir, "admin", "admin", 1, "clientAuth");
	ca_free(&ca);
}

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void rig_end(void)
{
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* --- the daemon --- */

/* one that nobody has now */
static void choose_port(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t bytes = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	MUST(!bind(fd, (struct sockaddr *)&addr, bytes) &&
	     !getsockname(fd, (struct sockaddr *)&addr, &bytes));
	snprintf(port, sizeof(port), "%d", ntohs(addr.sin_port));
	close(fd);
}

static void become_daemon(const char *name, const char *address,
			  const char *log_name, const char *first,
			  const char *second)
{
	char log[PATH_MAX], a[PATH_MAX], b[PATH_MAX];
	char key[PATH_MAX], cert[PATH_MAX], ca[PATH_MAX], meet[PATH_MAX];
	char mover[PATH_MAX];
	int fd;

	snprintf(meet, sizeof(meet), "%s/%s.meet", dir, name);
	snprintf(mover, sizeof(mover), "%s/%s.mover", dir, name);
	snprintf(log, sizeof(log), "%s/%s", dir, log_name);
	snprintf(key, sizeof(key), "%s/%s.key", dir, name);
	snprintf(cert, sizeof(cert), "%s/%s.crt", dir, name);
	snprintf(ca, sizeof(ca), "%s/ca.crt", dir);
	snprintf(a, sizeof(a), "%s/%s", dir, first);
	snprintf(b, sizeof(b), "%s/%s", dir, second);
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	MUST(fd >= 0 && dup2(fd, 2) == 2);
	MUST(!chdir(dir));
	execl(MIGRD, "migrd", "-k", key, "-c", cert, "-a", ca, "-l", address,
	      "-p", port, "-s", meet, "-m", mover, a, b, NULL);
	_exit(127);
}

static bool daemon_listens(void)
{
	char text[64];

	snprintf(text, sizeof(text), "listens on port %s", port);
	return daemon_logged_now(text);
}

/* Somebody else may have got the port meanwhile. */
void daemon_start(const char *first, const char *second)
{
	unsigned int tries = 0;

	do {
		MUST(tries++ < 3);
		choose_port();
		daemon_pid = fork();
		if (!daemon_pid)
			become_daemon("n2", "127.0.0.1", "log", first, second);
		MUST(daemon_pid > 0);
		MUST(SOME_TIME(daemon_listens() ||
			       waitpid(daemon_pid, NULL, WNOHANG) > 0));
	} while (!daemon_listens());
}

int daemon_fails(const char *first)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		become_daemon("n2", "127.0.0.7", "log", first, "none");
	MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static bool other_listens(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)atoi(port)) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	bool does;

	addr.sin_addr.s_addr = htonl((127u << 24) + 9);
	does = !connect(fd, (struct sockaddr *)&addr, sizeof(addr));
	close(fd);
	return does;
}

void other_daemon_start(const char *first)
{
	other_pid = fork();
	if (!other_pid)
		become_daemon("n1", "127.0.0.9", "log.other", first, "none");
	MUST(other_pid > 0 && SOME_TIME(other_listens()));
}

void other_daemon_end(void)
{
	kill(other_pid, SIGTERM);
	MUST(waitpid(other_pid, NULL, 0) == other_pid);
}

void daemon_signal(int signal)
{
	kill(daemon_pid, signal);
}

int daemon_end(void)
{
	int status;

	kill(daemon_pid, SIGTERM);
	MUST(waitpid(daemon_pid, &status, 0) == daemon_pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool daemon_logged_now(const char *text)
{
	char path[PATH_MAX], line[2048];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/log", dir);
	f = fopen(path, "r");
	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, text);
	if (f)
		fclose(f);
	return found;
}

void daemon_forget_log(void)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/log", dir);
	MUST(!truncate(path, 0));
}

bool daemon_logged(const char *text)
{
	return SOME_TIME(daemon_logged_now(text));
}

static void read_proc(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY);
	ssize_t bytes;

	MUST(fd >= 0);
	bytes = read(fd, text, room - 1);
	MUST(bytes >= 0 && !close(fd));
	text[bytes] = 0;
}

static void list_children(char *list, size_t room)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", daemon_pid,
		 daemon_pid);
	read_proc(path, list, room);
}

int daemon_children(void)
{
	char list[4096];
	int n = 0;

	list_children(list, sizeof(list));
	for (const char *c = list; *c; c++)
		n += *c == ' ';
	return n;
}

char daemon_child_state(void)
{
	char list[64], path[64], stat[512], *state;

	list_children(list, sizeof(list));
	snprintf(path, sizeof(path), "/proc/%d/stat", atoi(list));
	read_proc(path, stat, sizeof(stat));
	state = strrchr(stat, ')');
	MUST(state);
	return state[2];
}

/* --- clients --- */

int dial_from(int n)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	const struct timeval most = { .tv_sec = 30 };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	addr.sin_addr.s_addr = htonl((127u << 24) + (uint32_t)n);
	MUST(fd >= 0 && !bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	addr.sin_port = htons((uint16_t)atoi(port));
	MUST(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)));
	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	close(fd);
	return -1;
}

int dial(void)
{
	return dial_from(1);
}

/* There may have been a daemon before. */
int silent_host(int n)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)atoi(port)) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	addr.sin_addr.s_addr = htonl((127u << 24) + (uint32_t)n);
	MUST(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) &&
	     !bind(fd, (struct sockaddr *)&addr, sizeof(addr)) &&
	     !listen(fd, 64));
	return fd;
}

static SSL_CTX *context(const char *cert, const char *ca, int version)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	char path[PATH_MAX];

	MUST(ctx && SSL_CTX_set_max_proto_version(ctx, version) == 1);
	snprintf(path, sizeof(path), "%s/%s.crt", dir, ca);
	MUST(SSL_CTX_load_verify_file(ctx, path) == 1);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	if (!cert)
		return ctx;
	snprintf(path, sizeof(path), "%s/%s.crt", dir, cert);
	MUST(SSL_CTX_use_certificate_file(ctx, path, SSL_FILETYPE_PEM) == 1);
	snprintf(path, sizeof(path), "%s/%s.key", dir, cert);
	MUST(SSL_CTX_use_PrivateKey_file(ctx, path, SSL_FILETYPE_PEM) == 1);
	return ctx;
}

static void explain(void)
{
	unsigned long err = ERR_peek_last_error();

	snprintf(answer, sizeof(answer), "%s",
		 err ? ERR_reason_error_string(err) : "the end");
	ERR_clear_error();
}

bool client_try(struct client *c, const char *cert, const char *ca, int version)
{
	SSL_CTX *ctx = context(cert, ca, version);

	c->fd = dial();
	MUST(c->fd >= 0);
	c->ssl = SSL_new(ctx);
	SSL_CTX_free(ctx);
	MUST(c->ssl && SSL_set_fd(c->ssl, c->fd) == 1);
	if (SSL_connect(c->ssl) == 1 && hear(c))
		return true;
	explain();
	client_close(c);
	return false;
}

void client_open(struct client *c)
{
	if (client_try(c, "n1", "ca", TLS1_3_VERSION))
		return;
	CHECK(false, "%s", answer);
	exit(1);
}

void client_close(struct client *c)
{
	SSL_shutdown(c->ssl);
	SSL_free(c->ssl);
	ERR_clear_error();
	close(c->fd);
}

void client_die(struct client *c)
{
	const struct linger now = { .l_onoff = 1 };

	setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(c->fd);
	SSL_free(c->ssl);
}

void put(struct client *c, const char *text, size_t bytes)
{
	int n;

	while (bytes && (n = SSL_write(c->ssl, text, (int)bytes)) > 0) {
		text += n;
		bytes -= (size_t)n;
	}
	ERR_clear_error();
}

bool hear(struct client *c)
{
	size_t n = 0;

	do {
		MUST(n < sizeof(answer) - 1);
		if (SSL_read(c->ssl, answer + n, 1) != 1) {
			answer[n] = 0;
			return false;
		}
	} while (answer[n++] != '\n');
	answer[n - 1] = 0;
	return true;
}

bool said(struct client *c, const char *line, const char *begin)
{
	static char all[70002];

	MUST(strlen(line) < sizeof(all) - 1);
	put(c, all, (size_t)sprintf(all, "%s\n", line));
	if (hear(c) && !strncmp(answer, begin, strlen(begin)))
		return true;
	fprintf(stderr, "%.80s: %.400s\n", line, answer);
	return false;
}

bool opened(struct client *c, const struct fake *f)
{
	char line[128];

	snprintf(line, sizeof(line), "open %s", f->id);
	return said(c, line, "{\"ok\":true}");
}

const char *daemon_port(void)
{
	return port;
}
