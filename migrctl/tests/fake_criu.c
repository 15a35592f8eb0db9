// SPDX-License-Identifier: GPL-2.0
/*
 * criu swrk FD, as far as the door sees it. FAKE is what becomes of a dump or restore:
 *	good	it is done, after all notifications
 *	bad	its network is locked, and then it fails
 *	dies	so it does when its network is locked
 *	early	it ends before it hears what it is asked for
 *	plugged	it does not say that its network is to be locked
 *	garbage	it says what nobody understands when its network is locked
 *	file	it sends a file with a notification
 * FAKE_NOTES gets a line for what it is asked for, and "refused" if a notification is.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc.h"

static int sock;
static const char *fake;
static FILE *notes;

static void send_response(CriuResp *r, int file)
{
	static struct rpc_message m;

	m.n_files = 0;
	if (file >= 0)
		m.files[m.n_files++] = file;
	m.bytes = criu_resp__pack(r, m.data);
	if (!rpc_send(sock, &m))
		exit(1);
}

static CriuReq *hear(void)
{
	static struct rpc_message m;
	CriuReq *q;

	if (rpc_receive(sock, &m) != 1)
		exit(1);
	q = criu_req__unpack(NULL, m.bytes, m.data);
	if (!q)
		exit(1);
	return q;
}

static bool notify(char *script, int file)
{
	CriuResp r = CRIU_RESP__INIT;
	CriuNotify n = CRIU_NOTIFY__INIT;
	CriuReq *q;
	bool ok;

	r.type = CRIU_REQ_TYPE__NOTIFY;
	r.success = true;
	r.notify = &n;
	n.script = script;
	send_response(&r, file);
	q = hear();
	ok = q->type == CRIU_REQ_TYPE__NOTIFY && q->notify_success;
	criu_req__free_unpacked(q, NULL);
	if (!ok)
		fprintf(notes, "refused\n");
	return ok;
}

static bool work(void)
{
	if (strcmp(fake, "plugged") && !notify("network-lock", -1))
		return false;
	if (!strcmp(fake, "dies"))
		raise(SIGKILL);
	if (!strcmp(fake, "garbage"))
		send(sock, "\377", 1, MSG_NOSIGNAL);
	if (!strcmp(fake, "bad"))
		return false;
	if (!strcmp(fake, "file"))
		notify("orphan-pts-master", open("/dev/full", O_RDWR));
	return notify("post-dump", -1);
}

/* CRIU does it in this way. */
static const char *file_at(int number, const char *name)
{
	struct ucred of;
	socklen_t size = sizeof(of);
	char path[64];

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &of, &size))
		return "nobody";
	snprintf(path, sizeof(path), "/proc/%d/fd/%d/%s", (int)of.pid, number,
		 name);
	return access(path, F_OK) ? "nothing" : name;
}

int main(int argc, char **argv)
{
	CriuResp r = CRIU_RESP__INIT;
	const char *request = getenv("MIGR_CTR_REQUEST");
	CriuReq *q;

	if (argc != 3 || strcmp(argv[1], "swrk"))
		return 3;
	fake = getenv("FAKE");
	notes = fopen(getenv("FAKE_NOTES"), "a");
	if (!fake || !notes)
		return 3;
	setvbuf(notes, NULL, _IONBF, 0);
	fprintf(notes, "started\n");
	sock = atoi(argv[2]);
	if (!strcmp(fake, "early"))
		return 1;
	q = hear();
	fprintf(notes, "%d %s %s %s %s\n", (int)q->type,
		request ? request : "-", q->opts->log_file,
		file_at(q->opts->images_dir_fd, "images"),
		file_at(q->opts->work_dir_fd, "logs"));
	r.type = q->type;
	r.success = (q->type != CRIU_REQ_TYPE__DUMP &&
		     q->type != CRIU_REQ_TYPE__RESTORE) ||
		    work();
	criu_req__free_unpacked(q, NULL);
	send_response(&r, -1);
	return !r.success;
}
