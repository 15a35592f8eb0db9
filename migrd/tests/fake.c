// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"

static void tell(int fd, const char *text)
{
	MUST(write(fd, text, strlen(text)) >= 0 || errno == EPIPE);
}

static void tell_much(int fd)
{
	static char all[1 << 20];

	memset(all, 'x', sizeof(all));
	for (int i = 0; i < 20; i++)
		if (send(fd, all, sizeof(all), MSG_NOSIGNAL) < 0)
			return;
	tell(fd, "\n");
}

static void tell_urgently(int fd)
{
	char path[PATH_MAX];

	MUST(send(fd, "!", 1, MSG_OOB) == 1);
	snprintf(path, sizeof(path), "%s/%d.urgent", dir, getpid());
	MUST(!close(open(path, O_WRONLY | O_CREAT, 0600)));
}

static void tell_long(int fd, int mib)
{
	char *all = malloc(((size_t)mib << 20) + 64);
	int n;

	MUST(all);
	n = sprintf(all, "{\"ok\": true, \"x\": \"");
	memset(all + n, 'x', (size_t)mib << 20);
	strcpy(all + n + (mib << 20), "\"}\n");
	for (const char *c = all; *c;) {
		ssize_t sent = send(fd, c, strlen(c), MSG_NOSIGNAL);

		if (sent < 0)
			break;
		c += sent;
	}
	free(all);
}

/* from this word on */
static void has_other_names(const char *path)
{
	char then[PATH_MAX + 8], names[PATH_MAX];

	snprintf(then, sizeof(then), "%s.names", path);
	snprintf(names, sizeof(names), "%s/%d.names", dir, getpid());
	rename(then, names);
}

/* It hears that a peer is gone. */
static bool is_gone(const char *line)
{
	unsigned int qpn, real;

	return sscanf(line, "peer %u %u ", &qpn, &real) == 2 && !real;
}

static bool layer_answers(int fd, const char *line)
{
	const char *word = is_gone(line) ? "gone" : line;
	char path[PATH_MAX], text[65536] = "{\"ok\": true}\n";
	FILE *f;

	if (*line == '\n') {
		tell(fd, "{\"ok\": false}\n");
		return true;
	}
	snprintf(path, sizeof(path), "%s/%d.said", dir, getpid());
	f = fopen(path, "a");
	MUST(f && fputs(line, f) >= 0 && !fclose(f));
	snprintf(path, sizeof(path), "%s/%d.%.*s", dir, getpid(),
		 (int)strcspn(word, " \n"), word);
	has_other_names(path);
	f = fopen(path, "r");
	if (f) {
		MUST(fgets(text, sizeof(text), f));
		fclose(f);
	}
	if (!strcmp(text, "hang up\n"))
		return false;
	if (!strcmp(text, "stop\n")) {
		tell(fd, "{\"ok\": true}\n");
		shutdown(fd, SHUT_RDWR);
		raise(SIGSTOP);
		return false;
	}
	if (!strncmp(text, "long ", 5)) {
		tell_long(fd, atoi(text + 5));
		return true;
	}
	tell(fd, text);
	return strncmp(line, "hold ", 5) || !strstr(text, "true");
}

/* false if it wants to hear no more */
static bool answer_to(int fd, enum manner manner, int n, const char *line,
		      bool *suspended)
{
	if (!strcmp(line, "suspend\n"))
		*suspended = true;
	if (!strcmp(line, "resume\n"))
		*suspended = false;
	if (!strcmp(line, "die\n"))
		_exit(0);
	if (!strcmp(line, "fork\n") && !fork()) {
		sleep(5); /* with all that the process has */
		_exit(0);
	}
	if (manner == LAYER)
		return layer_answers(fd, line);
	switch (n ? manner : GOOD) {
	case NEVER_ANSWERS:
		return true;
	case NO_END:
		tell(fd, "{\"ok\": tr");
		return false;
	case HUGE:
		tell_much(fd);
		return true;
	case TALKS:
		tell(fd, "{\"ok\": true}\n{\"ok\": true}\n");
		return true;
	case NO_JSON:
		tell(fd, "\x1b[2J{\"ok\": true}\n");
		return true;
	default:
		dprintf(fd, "{\"ok\": %s, \"n\": %d, \"bytes\": %zu}\n",
			*line == '\n' ? "false" : "true", n, strlen(line));
		if (manner == CHATTY && n) {
			usleep(200000);
			tell(fd, "garbage\n");
		}
		if (manner == URGENT && n)
			tell_urgently(fd);
		return true;
	}
}

static void serve(int fd, enum manner manner, int told)
{
	static char line[70000];
	FILE *f = fdopen(fd, "r");
	bool suspended = false;

	for (int n = 0; fgets(line, sizeof(line), f); n++)
		if (!answer_to(fd, manner, n, line, &suspended))
			break;
	fclose(f);
	tell(told, suspended ? "s" : "r");
}

static void run(enum manner manner, const char *where, int told)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_STREAM, 0), fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s/%d.sock", dir,
		 where, getpid());
	MUST(!bind(sock, (struct sockaddr *)&addr, sizeof(addr)) &&
	     !listen(sock, 4));
	tell(told, "l");
	while (manner == NEVER_ACCEPTS)
		pause();
	while ((fd = accept(sock, NULL, NULL)) >= 0)
		serve(fd, manner, told);
	_exit(0);
}

static void make_folders(const char *where)
{
	char path[PATH_MAX];

	for (const char *c = where; *c; c++) {
		snprintf(path, sizeof(path), "%s/%.*s", dir,
			 (int)strcspn(c, "/") + (int)(c - where), where);
		mkdir(path, 0755);
		c += strcspn(c, "/");
		if (!*c)
			return;
	}
}

/* "n2:123:456", as the daemon calls it */
static void get_id(struct fake *f)
{
	static char line[65536];
	char pid[64], *at = NULL;
	struct client c;

	client_open(&c);
	snprintf(pid, sizeof(pid), "\"pid\":%d,", f->pid);
	MUST(said(&c, "processes", "{\"ok\":true,\"processes\":["));
	snprintf(line, sizeof(line), "%s", answer);
	at = strstr(line, pid);
	if (at) {
		*at = 0;
		at = strrchr(line, '{');
		MUST(sscanf(at, "{\"id\":\"%63[^\"]\"", f->id) == 1);
	}
	client_close(&c);
}

void fake_start(struct fake *f, enum manner manner, const char *where)
{
	int both[2];
	char byte;

	*f = (struct fake){ 0 };
	make_folders(where);
	MUST(!pipe(both));
	f->pid = fork();
	if (!f->pid) {
		close(both[0]);
		run(manner, where, both[1]);
	}
	close(both[1]);
	f->told = both[0];
	MUST(f->pid > 0 && read(f->told, &byte, 1) == 1 && byte == 'l');
	get_id(f);
	/* whoever has asked who it is: nobody asks again */
	if (*f->id && manner != NEVER_ACCEPTS)
		MUST(fake_ended(f) == 'r');
}

void fake_kill(struct fake *f)
{
	kill(f->pid, SIGKILL);
	waitpid(f->pid, NULL, 0);
	close(f->told);
}

char fake_ended(struct fake *f)
{
	char byte;

	MUST(read(f->told, &byte, 1) == 1);
	return byte;
}
