// SPDX-License-Identifier: GPL-2.0
/*
 * What a device answers: commands are counted by opcode, with the time that they
 * took; what is in flight is told; and whatever else comes is refused, without a
 * change.
 */
#include <inttypes.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "commands/cmd.h"
#include "control.h"
#include "nic.h"
#include "probe.h"
#include "rdma/wqe.h"

static struct rig *r;
static char answer[CONTROL_ANSWER];

static const char *ask(const char *request)
{
	control_request(r->nic, request, strlen(request), answer);
	return answer;
}

/* The number behind these words, in the answer; UINT64_MAX: they are not there. */
static uint64_t number(const char *words)
{
	const char *at = strstr(answer, words);
	uint64_t n;

	return at && sscanf(at + strlen(words), "%" SCNu64, &n) == 1
		       ? n
		       : UINT64_MAX;
}

static bool refuses(const char *request, size_t len)
{
	control_request(r->nic, request, len, answer);
	return !strncmp(answer, "{\"error\": \"", 11) &&
	       !strcmp(answer + strlen(answer) - 3, "\"}\n");
}

static void test_commands(void)
{
	uint64_t ns;

	r = rig_up();
	ask("counters");
	CHECK(number("\"ENABLE_HCA\": {\"count\": ") == 1 &&
		      number("\"ALLOC_PD\": {\"count\": ") == 1 &&
		      number("\"unknown_commands\": ") == 0,
	      "%s", answer);
	CHECK(!strstr(answer, "CREATE_QP"), "none was made: %s", answer);
	for (int i = 0; i < 3; i++) {
		rig_begin(r, MLX5_CMD_OP_ALLOC_PD, 16, 16);
		rig_id(r);
	}
	/* also those that fail, and one that nobody knows */
	CHECK(rig_run_id(r, MLX5_CMD_OP_DEALLOC_PD, 77), "a PD of that number");
	CHECK(rig_run_id(r, 0xfff, 0) && rig_run_id(r, 0xffff, 0), "known");
	ask("counters reset");
	ns = number("\"ALLOC_PD\": {\"count\": 4, \"ns\": ");
	CHECK(ns > 0 && ns < number("{\"ns\": "), "%s", answer);
	CHECK(number("\"DEALLOC_PD\": {\"count\": ") == 1 &&
		      number("\"unknown_commands\": ") == 2,
	      "%s", answer);
	ask("counters");
	CHECK(strstr(answer, "\"commands\": {}, \"unknown_commands\": 0,"),
	      "%s", answer);
	rig_begin(r, MLX5_CMD_OP_ALLOC_PD, 16, 16);
	rig_id(r);
	ask("counters");
	CHECK(number("\"commands\": {\"ALLOC_PD\": {\"count\": ") == 1, "%s",
	      answer);
	/* a reset of the device is no reset of what is counted */
	host_reset(r->host);
	ask("counters");
	CHECK(number("\"commands\": {\"ALLOC_PD\": {\"count\": ") == 1, "%s",
	      answer);
	rig_stop(r);
}

/* The longest answer that there can be */
static void test_longest(void)
{
	size_t rows = 0;

	r = rig_start();
	for (; cmd_row(rows); rows++)
		CHECK(cmd_row(rows)->op && cmd_row(rows)->op < CMD_OPS,
		      "opcode 0x%x", cmd_row(rows)->op);
	CHECK(rows > 90, "%zu rows", rows);
	memset(r->nic->cmd_count, 0xff, sizeof(r->nic->cmd_count));
	ask("counters");
	CHECK(!strcmp(answer + strlen(answer) - 3, "}}\n") &&
		      strlen(answer) < CONTROL_ANSWER - 512,
	      "%zu bytes", strlen(answer));
	rig_stop(r);
}

/* A WRITE of 8 KiB to a peer that is not there */
static void test_in_flight(void)
{
	struct probe p;
	uint64_t page;
	uint32_t key, qp;
	uint8_t *wqe;

	r = rig_start();
	probe_run(r, &p);
	ask("counters");
	CHECK(number("\"in_flight\": {\"packets\": ") == 0, "%s", answer);
	CHECK(!nic_limit(r->nic, 0, LINK_MAX_DELAY), "limit");
	page = rig_pages(r, 2);
	rig_mkey_in(r, page, page, 2 * RIG_PAGE);
	key = rig_id(r) << 8 | 0x5a;
	rig_address(r);
	((uint8_t *)AT(roce_addr_layout,
		       AT(set_roce_address_in, r->in, roce_address),
		       source_mac_47_32))[5] ^= 1;
	CHECK(!rig_run(r), "%s", r->log);
	rig_qp_in(r, 0, p.rx_cq.id);
	wqe = rig_mem(r, r->buf + (32 << 4));
	qp = rig_id(r);
	rig_connect(r, qp, qp);
	put_be32(wqe, WQE_WRITE);
	put_be32(wqe + 4, qp << 8 | 3);
	put_be32(wqe + 32, 2 * RIG_PAGE);
	put_be32(wqe + 36, key);
	put_be64(wqe + 40, page);
	put_be32(rig_mem(r, r->db) + 4, 1);
	rig_send_db(r, r->uar, qp);
	ask("counters");
	CHECK(number("\"in_flight\": {\"packets\": ") ==
			      r->nic->wire.limit->packets &&
		      number("\"packets\": ") > 1 &&
		      strstr(answer, "\"bytes\": 8192, \"read_bytes\": 0}, "
				     "\"unsent_bytes\": 0"),
	      "%s", answer);
	CHECK(strstr(answer, "\"limit\": {\"rate\": 0, \"delay_ns\": "
			     "60000000000, \"packets\": ") &&
		      number("\"delay_ns\": 60000000000, \"packets\": ") ==
			      r->nic->wire.limit->packets,
	      "%s", answer);
	rig_stop(r);
}

static void test_limit(void)
{
	r = rig_start();
	CHECK(!strcmp(ask("limit"), "{\"rate\": 0, \"delay_ns\": 0, "
				    "\"packets\": 0, \"bytes\": 0}\n"),
	      "%s", answer);
	ask("limit rate 200M delay 50us");
	CHECK(number("{\"rate\": ") == 200000000 &&
		      number("\"delay_ns\": ") == 50000,
	      "%s", answer);
	ask("limit delay 1ms");
	CHECK(number("{\"rate\": ") == 0 && number("\"delay_ns\": ") == 1000000,
	      "%s", answer);
	ask("limit rate 1G");
	CHECK(refuses("limit rate 25G delay 1s", 23) &&
		      strstr(answer, "16 MiB"),
	      "%s", answer);
	ask("limit");
	CHECK(number("{\"rate\": ") == 1000000000 &&
		      number("\"delay_ns\": ") == 0,
	      "%s", answer);
	ask("limit off");
	CHECK(number("{\"rate\": ") == 0, "%s", answer);
	nic_tick(r->nic);
	CHECK(!r->nic->wire.limit, "still there");
	rig_stop(r);
}

static bool tick_until_done(unsigned int commands)
{
	uint64_t end = nic_now() + 10000000000;

	while (r->nic->cmds < commands && nic_now() < end)
		nic_tick(r->nic);
	return r->nic->cmds == commands;
}

/* Each takes its time, and the others wait. */
static void test_command_time(void)
{
	uint64_t begin, ns;
	unsigned int n;

	r = rig_up();
	ask("commands");
	CHECK(!number("{\"command_ns\": "), "%s", answer);
	CHECK(refuses("commands 2s", 11) && refuses("commands 1ms off", 16) &&
		      refuses("commands soon", 13),
	      "%s", answer);
	ask("commands 20ms");
	CHECK(number("{\"command_ns\": ") == 20000000, "%s", answer);
	ask("counters reset");
	n = r->nic->cmds;
	begin = nic_now();
	rig_begin(r, MLX5_CMD_OP_NOP, 16, 16);
	rig_fill(r, 0);
	rig_fill(r, 1);
	rig_ring(r, 3);
	nic_tick(r->nic);
	CHECK(rig_result(r, 0) == RIG_PENDING && nic_due(r->nic) > 0,
	      "at once");
	CHECK(tick_until_done(n + 1) && nic_now() - begin >= 20000000, "first");
	CHECK(!rig_result(r, 0), "%s", r->log);
	rig_fill(r, 0); /* at once again, and it waits for its turn */
	rig_ring(r, 1);
	CHECK(tick_until_done(n + 2) && nic_now() - begin >= 40000000,
	      "second");
	CHECK(rig_result(r, 0) == RIG_PENDING && !rig_result(r, 1), "%s",
	      r->log);
	CHECK(tick_until_done(n + 3), "third");
	ask("counters");
	ns = number("\"NOP\": {\"count\": 3, \"ns\": ");
	CHECK(ns >= 60000000 && ns < number("{\"ns\": "), "%s", answer);
	ask("commands 1s");
	rig_fill(r, 0);
	rig_ring(r, 1);
	ask("commands off");
	nic_tick(r->nic);
	CHECK(!rig_result(r, 0), "still waiting: %s", r->log);
	CHECK(!rig_run(r), "not at once: %s", r->log);
	rig_stop(r);
}

static void test_malformed(void)
{
	static const char *const bad[] = {
		"",
		" ",
		"limits",
		"commands 1",
		"Limit",
		" limit",
		"limit ",
		"limit  off",
		"limit\toff",
		"limit off\n",
		"limit off off",
		"limit on",
		"limit rate",
		"limit rate 1M delay",
		"limit rate 1M rate 2M",
		"limit delay 1ms delay 1ms",
		"limit rate 1M delay 1ms x",
		"limit rate 1M delay 1ms off now please",
		"limit rate -1M",
		"limit rate 0",
		"limit rate 1e9",
		"limit delay 1",
		"limit delay 61s",
		"limit \"rate\" 1M",
		"counters please",
		"counters reset now",
		"counters\xff",
		"%s%n",
	};
	char request[CONTROL_REQUEST + 1];

	r = rig_up();
	ask("limit rate 77k delay 7us");
	for (size_t i = 0; i < N_ELEM(bad); i++)
		CHECK(refuses(bad[i], strlen(bad[i])), "'%s': %s", bad[i],
		      answer);
	CHECK(refuses("limit off\0", 10) && refuses("limit\0off", 9) &&
		      refuses("\0", 1),
	      "a NUL: %s", answer);
	memset(request, 'x', sizeof(request));
	CHECK(refuses(request, CONTROL_REQUEST) &&
		      refuses(request, CONTROL_REQUEST + 1),
	      "too long: %s", answer);
	srand(1);
	for (int i = 0; i < 100000; i++) {
		size_t len = rand() % sizeof(request);

		strcpy(request, rand() % 2 ? "limit rate 1M delay 1ms"
					   : "counters reset");
		for (int k = 1 + rand() % 3; k; k--)
			request[rand() % 30] = rand() % 3 ? rand() : ' ';
		control_request(r->nic, request, len, answer);
		CHECK(answer[0] == '{' &&
			      !strcmp(answer + strlen(answer) - 2, "}\n"),
		      "%s", answer);
		nic_limit(r->nic, 77000, 7000);
	}
	rig_stop(r);
}

/* ---- the socket ---- */

static struct control c;
static const char *path;

static int connect_client(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	strcpy(addr.sun_path, path);
	MUST(!connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
	return fd;
}

/* what the program does with it; false: there was nothing to do */
static bool turn(void)
{
	struct pollfd fd = { control_fd(&c), POLLIN, 0 };

	if (poll(&fd, 1, 0) <= 0)
		return false;
	control_serve(&c, r->nic);
	return true;
}

static bool gets(int fd)
{
	ssize_t n = recv(fd, answer, sizeof(answer) - 1, 0);

	answer[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static void test_socket(void)
{
	char dir[] = "/tmp/mlx5soft-XXXXXX", name[64];
	int first, second, i;
	struct stat st;

	MUST(mkdtemp(dir));
	snprintf(name, sizeof(name), "%s/ctl", dir);
	path = name;
	r = rig_start();
	MUST(!control_open(&c, path));
	CHECK(!stat(path, &st) && !(st.st_mode & 077), "mode 0%o", st.st_mode);
	CHECK(!turn(), "somebody is there");
	first = connect_client();
	second = connect_client();
	CHECK(turn() && !turn(), "one is served");
	CHECK(send(first, "limit rate 1M", 13, 0) == 13 &&
		      send(second, "limit", 5, 0) == 5,
	      "send");
	CHECK(turn() && !turn(), "and answered");
	CHECK(gets(first) && number("{\"rate\": ") == 1000000, "%s", answer);
	CHECK(!gets(second), "out of turn: %s", answer);
	/* one with more than a request may have, one who does not read */
	for (i = 0; i < 200 && c.client >= 0; i++) {
		CHECK(send(first, answer, i ? 1 : CONTROL_REQUEST + 1, 0) > 0,
		      "send");
		CHECK(turn(), "not served");
		if (!i)
			CHECK(gets(first) && strstr(answer, "error"), "%s",
			      answer);
	}
	close(first);
	while (turn())
		;
	CHECK(gets(second) && number("{\"rate\": ") == 1000000, "%s", answer);
	/* it goes in the middle of it */
	CHECK(send(second, "limit off", 9, 0) == 9, "send");
	close(second);
	while (turn())
		;
	CHECK(c.client < 0, "it is still there");
	control_close(&c, path);
	CHECK(stat(path, &st), "a socket is left");
	/* one that a killed device has left is no obstacle; a file is */
	MUST(!control_open(&c, path));
	close(c.listener);
	MUST(!control_open(&c, path));
	control_close(&c, path);
	MUST(fclose(fopen(path, "w")) == 0);
	CHECK(control_open(&c, path) && errno == EADDRINUSE && c.listener < 0,
	      "a file is in the way");
	unlink(path);
	rmdir(dir);
	rig_stop(r);
}

int main(void)
{
	test_commands();
	test_longest();
	test_in_flight();
	test_limit();
	test_command_time();
	test_malformed();
	test_socket();
	return check_result();
}
