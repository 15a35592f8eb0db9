// SPDX-License-Identifier: GPL-2.0
/*
 * The door, for who stops a container to dump it, or restores it
 */
#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "at_door.h"
#include "check.h"

static void test_passes_on(void)
{
	begin("good", CRIU_REQ_TYPE__DUMP);
	for (int ms = 0; !noted("started") && ms < PATIENCE_MS; ms += 10)
		usleep(10000);
	/* it would not take that long */
	CHECK(!comes(runc, 200) && is_plugged() && !noted("1"));
	word("dump\n");
	CHECK(heard("network-lock"));
	CHECK(!is_plugged() && noted("1 dump a.log images logs"));
	CHECK(ack() && heard("post-dump") && !comes(says, 0));
	CHECK(ack());
	/* runc goes on from what it hears, and somebody from what that does */
	CHECK(comes(runc, PATIENCE_MS) && comes(says, 0));
	CHECK(said("criu 0") && heard("success"));
	CHECK(said("") && heard("end"));
	CHECK(!is_plugged());
	end(0);
}

static void test_restore(void)
{
	begin("good", CRIU_REQ_TYPE__RESTORE);
	word("restore\n");
	CHECK(heard("network-lock"));
	CHECK(is_plugged() && noted("2 restore a.log images logs"));
	CHECK(ack() && heard("post-dump"));
	CHECK(ack() && heard("success") && heard("end"));
	CHECK(said(""));
	end(0);
}

/* whatever is not to wait */
static void test_other(void)
{
	start("good");
	CHECK(ask(CRIU_REQ_TYPE__VERSION, "c.log"));
	CHECK(heard("success") && heard("end"));
	CHECK(noted("10 - c.log images logs") && !comes(says, 0));
	end(0);
}

static void test_file(void)
{
	begin("file", CRIU_REQ_TYPE__RESTORE);
	word("restore\n");
	CHECK(heard("network-lock") && ack());
	CHECK(heard("orphan-pts-master") && ack());
	CHECK(heard("post-dump") && ack() && heard("success"));
	end(0);
}

static void test_fails(void)
{
	begin("bad", CRIU_REQ_TYPE__DUMP);
	word("dump\n");
	CHECK(heard("network-lock") && !is_plugged() && ack());
	CHECK(heard("failure") && said("criu 1") && said(""));
	CHECK(is_plugged());
	end(1);
}

/* nobody has said that it may be unplugged, or what is said makes no sense */
static void test_strange(void)
{
	begin("plugged", CRIU_REQ_TYPE__DUMP);
	word("dump\n");
	CHECK(heard("failure") && said("criu 1") && said("") &&
	      noted("refused"));
	CHECK(is_plugged());
	end(1);

	begin("garbage", CRIU_REQ_TYPE__DUMP);
	word("dump\n");
	CHECK(heard("network-lock") && ack());
	CHECK(heard("post-dump") && ack());
	CHECK(said("criu 0") && heard("success"));
	end(0);

	/* and no request */
	start("good");
	MUST(send(runc, "\377", 1, 0) == 1);
	CHECK(heard("end") && !noted("started"));
	CHECK(complained("runc's request to CRIU cannot be read: Bad message"));
	end(1);
}

/* the one between them is killed, as well as CRIU */
static void test_killed(void)
{
	begin("dies", CRIU_REQ_TYPE__DUMP);
	word("dump\n");
	CHECK(heard("network-lock") && !is_plugged() && ack());
	CHECK(said("criu 1") && said("") && heard("end"));
	CHECK(is_plugged());
	end(-1);
}

/* nobody is left who would wait */
static void test_gives_up(void)
{
	static const char *const words[] = { "stop\n", "restore\n", "dump" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		begin("good", CRIU_REQ_TYPE__DUMP);
		word(words[i]);
		CHECK(said("") && heard("end") && is_plugged());
		end(1);
	}
	begin("good", CRIU_REQ_TYPE__DUMP);
	close(go);
	go = -1;
	CHECK(said("") && heard("end") && is_plugged());
	end(1);
	/* whoever would give the word was killed before it was listened to */
	start("good");
	close(go);
	go = -1;
	CHECK(ask(CRIU_REQ_TYPE__DUMP, "i.log"));
	CHECK(said("ready") && said("") && heard("end") && is_plugged());
	end(1);
}

static void test_alone(void)
{
	begin("early", CRIU_REQ_TYPE__DUMP);
	CHECK(said("") && heard("end") && is_plugged());
	end(1);

	/* runc is killed: while it waits, and while CRIU works */
	begin("good", CRIU_REQ_TYPE__DUMP);
	close(runc);
	runc = -1;
	CHECK(said("") && is_plugged());
	end(1);
	begin("good", CRIU_REQ_TYPE__DUMP);
	word("dump\n");
	CHECK(heard("network-lock") && !is_plugged());
	close(runc);
	runc = -1;
	CHECK(said("criu 1") && said("") && is_plugged());
	end(1);
}

static void test_no_link(void)
{
	begin("good", CRIU_REQ_TYPE__DUMP);
	MUST(!system("ip link del " LINK));
	word("dump\n");
	CHECK(heard("failure") && said("criu 1") && noted("refused"));
	CHECK(complained(LINK " cannot be unplugged: No such device"));
	end(1);
	MUST(!system("ip link add " LINK " type veth"));
}

/* a folder that is none, and one that is not there */
static void test_no_folder(void)
{
	static const int bad[] = { 0, 999 };
	int good = images;

	for (size_t i = 0; i < 2; i++) {
		start("good");
		images = bad[i];
		CHECK(ask(CRIU_REQ_TYPE__DUMP, "n.log"));
		images = good;
		CHECK(heard("end") && said("") && !noted("1"));
		CHECK(complained("runc's request to CRIU cannot be held: "));
		end(1);
	}
}

int main(void)
{
	door_is_made();
	test_passes_on();
	test_restore();
	test_other();
	test_file();
	test_fails();
	test_strange();
	test_killed();
	test_gives_up();
	test_alone();
	test_no_link();
	test_no_folder();
	door_is_gone();
	return check_result();
}
