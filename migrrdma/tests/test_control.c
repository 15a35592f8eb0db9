// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The socket by which a process is suspended
 */
#include <limits.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "suspend_rig.h"

/* --- the socket --- */

static int dial(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const struct timeval most = { .tv_sec = 20 };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%d.sock", dir,
		 getpid());
	MUST(fd >= 0 && !connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
	MUST(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)));
	return fd;
}

static char answer[256];

static void put(int fd, const char *line)
{
	MUST(write(fd, line, strlen(line)) == (ssize_t)strlen(line));
}

static void hear(int fd)
{
	size_t n = 0;

	do {
		MUST(n < sizeof(answer) - 1 && read(fd, answer + n, 1) == 1);
	} while (answer[n++] != '\n');
	answer[n] = 0;
}

static void say(int fd, const char *line)
{
	put(fd, line);
	hear(fd);
}

static bool said(int f, const char *line, const char *start)
{
	say(f, line);
	return !strncmp(answer, start, strlen(start));
}

static void test_socket(void)
{
	static const char *const wrong[] = {
		"\n",
		"resume \n",
		"Resume\n",
		"suspend\n",
		"suspend x\n",
		"suspend 10 \n",
		"suspend 10x\n",
		"suspend -1\n",
		"suspend 600001\n",
		"suspend 4000000000\n",
		"resume 1\n",
	};
	struct ibv_qp *qp, *real;
	struct ibv_cq *cq, *real_cq;
	struct ibv_wc wc;
	int f, second;
	char line[128];
	int qps;

	puts("the socket");
	cq = new_cq(8, &real_cq);
	qp = new_qp(IBV_QPT_RC, cq, &real);
	f = dial();
	put(f,
	    "resume\nsuspend 4294967296\n"); /* two at once; one that wraps */
	hear(f);
	hear(f);
	CHECK(strstr(answer, "\"errno\": 22"), "%s", answer);
	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(said(f, wrong[i], "{\"ok\": false, \"errno\": 22, "),
		      "%s%s", wrong[i], answer);
	/* a line of too much is no word, nor is the end of it */
	memset(line, 'x', 63);
	strcpy(line + 63, "suspend 20000\n");
	put(f, line);
	MUST(!shutdown(f, SHUT_WR));
	while (read(f, line, sizeof(line)) > 0)
		;
	MUST(!close(f));
	f = dial();
	CHECK(said(f, "resume\n", "{\"ok\": false, \"errno\": 22, "));
	CHECK(!fake_sends(real));

	CHECK(!send_one(qp, 1, IBV_SEND_SIGNALED));
	say(f, "suspend 20000\n");
	CHECK(sscanf(answer,
		     "{\"ok\": true, \"qps\": %d, \"markers\": 1, "
		     "\"taken\": 1, \"wait_us\": %*u, \"drain_us\": %*u}\n",
		     &qps) == 1 &&
		      qps == 1,
	      "%s", answer);
	CHECK(said(f, "suspend 20000\n", "{\"ok\": false, \"errno\": 16, "));
	CHECK(!send_one(qp, 2, 0));
	SENT(real, 1);
	CHECK(said(f, "resume\n", "{\"ok\": true}"));
	SENT(real, 1, 2);
	CHECK(said(f, "resume\n", "{\"ok\": false, \"errno\": 22, "));
	prompt = false;
	say(f, "suspend 1\n");
	CHECK(strstr(answer, "\"errno\": 110") && strstr(answer, "drained"));
	prompt = true;
	fake_finish(real, UINT_MAX, IBV_WC_SUCCESS);
	CHECK(ibv_poll_cq(cq, 1, &wc) == 1 && wc.wr_id == 1);
	check_nothing(cq);

	puts("who goes away leaves nothing suspended; the next one is served");
	CHECK(said(f, "suspend 20000\n", "{\"ok\": true, "));
	CHECK(!send_one(qp, 3, 0));
	second = dial();
	put(second, "suspend 20000\n");
	SENT(real, 1, 2);
	MUST(!close(f));
	hear(second);
	CHECK(!strncmp(answer, "{\"ok\": true, \"qps\": 1, ", 22), "%s",
	      answer);
	SENT(real, 1, 2, 3);
	CHECK(!send_one(qp, 4, 0));
	SENT(real, 1, 2, 3);
	/* half a word is none */
	put(second, "resume");
	MUST(!close(second));
	WAIT(fake_waiting(real));
	SENT(real, 1, 2, 3, 4);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

int main(void)
{
	rig_open();
	test_socket();
	return rig_close();
}
