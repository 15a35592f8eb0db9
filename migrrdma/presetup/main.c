// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The shadow process of one that is to come to this host: it makes what that one will
 * need, and hands it over.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <jansson.h>

#include "arena.h"
#include "clock.h"
#include "make.h"
#include "tape.h"

static int failed(const char *what, const char *why)
{
	fprintf(stderr, "migr-presetup: %s: %s\n", what, why);
	return 1;
}

/* libibverbs and its providers find this one. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (request == RDMA_VERBS_IOCTL && tape_is_used())
		return tape_command(fd, arg);
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

/*
 * What a context may do depends on who opens it, and the process that gets it may be
 * nobody: what is left is to open files and sockets, and to pin memory.
 */
static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct data[2];
	const uint32_t kept = 1u << CAP_DAC_OVERRIDE | 1u << CAP_IPC_LOCK;

	if (syscall(SYS_capget, &header, data))
		return -1;
	data[0].effective &= kept;
	data[0].permitted &= kept;
	data[0].inheritable = 0;
	data[1] = (struct __user_cap_data_struct){};
	return (int)syscall(SYS_capset, &header, data);
}

static int make_memory(const char *name, size_t bytes)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && ftruncate(fd, (off_t)bytes)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* It has the size that it will have. */
static bool seal(int fd, size_t bytes)
{
	return !ftruncate(fd, (off_t)bytes) &&
	       !fcntl(fd, F_ADD_SEALS,
		      F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

/* --- hand over --- */

static bool is_done(FILE *f, char *line, size_t bytes)
{
	if (!fgets(line, (int)bytes, f)) {
		snprintf(line, bytes, "it has hung up");
		return false;
	}
	line[strcspn(line, "\n")] = 0;
	return !strncmp(line, "{\"ok\": true", 11);
}

static int send_files(int sock, const int *fds, unsigned int n)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * (3 + MOST_TAPE_FILES))];
		struct cmsghdr align;
	} control = {};
	struct iovec iov = { "", 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = CMSG_SPACE(sizeof(int) * n),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * n);
	memcpy(CMSG_DATA(c), fds, sizeof(int) * n);
	return sendmsg(sock, &msg, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

/* The folder is the process' own, and a link there may lead to anybody's socket. */
static int dial(const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS,
	};
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, at = (int)syscall(SYS_openat2, AT_FDCWD, path, &how,
				  sizeof(how));

	if (at < 0)
		return -1;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d", at);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		close(fd);
		fd = -1;
	}
	close(at);
	return fd;
}

static int hand_over(const char *path, const int *fds, unsigned int n)
{
	int fd = dial(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char line[512] = "";
	bool good;

	if (!f)
		return failed(path, strerror(errno));
	dprintf(fd, "presetup\n");
	good = is_done(f, line, sizeof(line));
	if (good && send_files(fd, fds, n)) {
		snprintf(line, sizeof(line), "%s", strerror(errno));
		good = false;
	}
	good = good && is_done(f, line, sizeof(line));
	fclose(f);
	if (!good)
		return failed(path, line);
	puts("handed");
	return 0;
}

/* --- all --- */

static int write_tape(const struct tape *t, size_t *bytes)
{
	const char *from = tape_bytes(t, bytes);
	int fd = make_memory("migr-presetup:tape", 0);
	ssize_t n = 1;

	for (size_t at = 0; fd >= 0 && n > 0 && at < *bytes; at += (size_t)n)
		n = write(fd, from + at, *bytes - at);
	if (n > 0)
		return fd;
	close(fd);
	return -1;
}

/* what is handed over, in this order */
enum {
	TAPE,
	QUEUES,
	MORE,
	FILES
};

/* Which they are; their length first, for shells. */
static bool tell_numbers(void)
{
	json_t *numbers = make_numbers();
	char *text = numbers ? json_dumps(numbers, JSON_COMPACT) : NULL;

	if (text)
		printf("connected %zu\n%s\n", strlen(text), text);
	free(text);
	json_decref(numbers);
	return text;
}

/* It may fail: then the process finds out, or connects them itself. */
static void connect_qps(const char *line, struct tape *t)
{
	json_error_t why;
	json_t *peers = json_loads(line, 0, &why);
	char reason[256] = "it is no list of peers";
	bool good;

	tape_cut(t);
	tape_use(t);
	good = peers && make_connected(peers, reason, sizeof(reason));
	tape_use(NULL);
	json_decref(peers);
	if (!good || !tell_numbers())
		printf("not connected: %s\n",
		       good ? "nobody knows their numbers" : reason);
	fflush(stdout);
}

static int obey(struct tape *t, int *fds)
{
	char *line = NULL;
	size_t room = 0, bytes;
	unsigned int n;
	const int *files;
	bool connected = false;

	while (getline(&line, &room, stdin) > 0) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "connect ", 8) && !connected) {
			connect_qps(line + 8, t);
			connected = true;
		} else if (!strncmp(line, "hand ", 5)) {
			if (!connected)
				tape_cut(t);
			fds[MORE] = write_tape(t, &bytes);
			if (fds[MORE] < 0)
				return failed("the tape", strerror(errno));
			files = tape_files(t, &n);
			memcpy(fds + FILES, files, n * sizeof(*files));
			return hand_over(line + 5, fds, FILES + n);
		} else {
			return failed("nobody knows what that is", line);
		}
	}
	return 0; /* it is not wanted any more */
}

static int wait_and_hand_over(struct tape *t, int queues, double ms)
{
	int fds[FILES + MOST_TAPE_FILES];
	size_t bytes;

	fds[TAPE] = write_tape(t, &bytes);
	fds[QUEUES] = queues;
	if (fds[TAPE] < 0 || !seal(queues, arena_used()))
		return failed("the tape or the queues", strerror(errno));
	printf("ready {\"commands\": %u, \"tape_bytes\": %zu, "
	       "\"queue_bytes\": %zu, \"ms\": %.1f}\n",
	       tape_commands(t), bytes, arena_used(), ms);
	fflush(stdout);
	return obey(t, fds);
}

static int make(json_t *record)
{
	json_int_t at = json_integer_value(json_object_get(record, "at"));
	uint64_t begin = clock_ns();
	struct tape *t = tape_new();
	int err, queues = make_memory("migr-presetup:queues", ARENA_BYTES);
	char reason[256];
	bool good;

	if (!t || queues < 0)
		return failed("memory", strerror(errno));
	err = at > 0 && !(at & (sysconf(_SC_PAGESIZE) - 1))
		      ? arena_map((uintptr_t)at, ARENA_BYTES, queues)
		      : EINVAL;
	if (err)
		return failed("its addresses for queues", strerror(err));
	make_ready(record);
	tape_use(t);
	good = make_all(record, reason, sizeof(reason));
	tape_use(NULL);
	if (!tape_end(t))
		return failed("what is to be made", tape_trouble(t));
	if (!good)
		return failed("what is to be made", reason);
	return wait_and_hand_over(t, queues,
				  (double)(clock_ns() - begin) / 1e6);
}

int main(int argc, char **argv)
{
	json_error_t why;
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	json_t *record;

	if (argc != 1) {
		bool asked = argc == 2 && !strcmp(argv[1], "-h");

		fprintf(asked ? stdout : stderr, "usage: migr-presetup\n");
		return asked ? 0 : 2;
	}
	signal(SIGPIPE, SIG_IGN);
	if (drop_capabilities())
		return failed("capabilities", strerror(errno));
	n = getline(&line, &room, stdin);
	if (n <= 0)
		return failed("the record", "there is none");
	record = json_loadb(line, (size_t)n, JSON_REJECT_DUPLICATES, &why);
	free(line);
	return record ? make(record) : failed("the record", why.text);
}
