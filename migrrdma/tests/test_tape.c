// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A tape of commands to a kernel that is none
 */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>

#include "app.h"
#include "handles.h"
#include "tape_inner.h"

#define ATTRS 5

/* what a provider says in one command */
struct command {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[ATTRS];
};

/* --- the kernel --- */

static unsigned int asked; /* so often */
static int events[2];	   /* ends of pipes, in the place of event files */

static struct ib_uverbs_attr *attr_of(struct ib_uverbs_ioctl_hdr *hdr,
				      uint16_t id)
{
	for (unsigned int i = 0; i < hdr->num_attrs; i++)
		if (hdr->attrs[i].attr_id == id)
			return hdr->attrs + i;
	return NULL;
}

static void give(struct ib_uverbs_ioctl_hdr *hdr, uint16_t id, uint32_t value)
{
	struct ib_uverbs_attr *a = attr_of(hdr, id);

	MUST(a && a->len >= sizeof(value));
	memcpy((void *)(uintptr_t)a->data, &value, sizeof(value));
	a->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
}

static int kernel(int fd, struct ib_uverbs_ioctl_hdr *hdr)
{
	uint32_t number;

	(void)fd;
	asked++;
	switch (hdr->object_id) {
	case UVERBS_OBJECT_DEVICE:
		if (hdr->method_id != UVERBS_METHOD_INVOKE_WRITE)
			return (int)asked;
		give(hdr, UVERBS_ATTR_CORE_OUT, (uint32_t)events[1]);
		return 0;
	case UVERBS_OBJECT_ASYNC_EVENT:
		hdr->attrs[0].data_s64 = events[0];
		return 0;
	case UVERBS_OBJECT_CQ:
		CHECK(handle_number(
			attr_of(hdr, UVERBS_ATTR_CREATE_CQ_USER_HANDLE)->data,
			&number));
		attr_of(hdr, UVERBS_ATTR_CREATE_CQ_HANDLE)->data = 7;
		give(hdr, UVERBS_ATTR_CREATE_CQ_RESP_CQE, 255);
		return 0;
	default:
		errno = ENOSPC;
		return -1;
	}
}

/* --- the provider --- */

static struct ib_uverbs_attr of_memory(uint16_t id, const void *memory,
				       uint16_t bytes)
{
	return (struct ib_uverbs_attr){
		.attr_id = id,
		.len = bytes,
		.data = (uintptr_t)memory,
	};
}

static struct ib_uverbs_attr of_value(uint16_t id, uint16_t bytes,
				      uint64_t value)
{
	return (struct ib_uverbs_attr){
		.attr_id = id,
		.len = bytes,
		.data = value,
	};
}

static int say(int fd, struct command *c, uint16_t object, uint16_t method,
	       uint16_t attrs)
{
	c->hdr = (struct ib_uverbs_ioctl_hdr){
		.length = (uint16_t)(sizeof(c->hdr) +
				     attrs * sizeof(c->attrs[0])),
		.object_id = object,
		.method_id = method,
		.num_attrs = attrs,
	};
	return ioctl(fd, RDMA_VERBS_IOCTL, &c->hdr);
}

static int open_device(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	MUST(fd >= 0);
	return fd;
}

struct world {
	int device, async, channel;
	char cq[32]; /* is somewhere else in the other process */
	int32_t out[4];
	uint32_t handle, cqe;
	char buffer[24]; /* of which the address is the same */
	int err;
};

static int get_async(struct world *w)
{
	struct command c = {
		.attrs = { of_value(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0,
				    0) }
	};
	int err = say(w->device, &c, UVERBS_OBJECT_ASYNC_EVENT,
		      UVERBS_METHOD_ASYNC_EVENT_ALLOC, 1);

	w->async = (int)c.attrs[0].data_s64;
	return err;
}

/* The address for the answer comes first, or is all: another one in each process. */
static int write_to(struct world *w, uint32_t cmd, uint16_t bytes)
{
	const uint64_t in[2] = { (uintptr_t)w->out, 1 };
	struct command c = { .attrs = {
				     of_value(UVERBS_ATTR_WRITE_CMD, 4, cmd),
				     of_memory(UVERBS_ATTR_CORE_IN, in, bytes),
				     of_memory(UVERBS_ATTR_CORE_OUT, w->out,
					       sizeof(w->out)),
			     } };

	if (bytes == sizeof(in[0]))
		c.attrs[1].data = in[0];
	return say(w->device, &c, UVERBS_OBJECT_DEVICE,
		   UVERBS_METHOD_INVOKE_WRITE, 3);
}

static int get_channel(struct world *w)
{
	int err = write_to(w, IB_USER_VERBS_CMD_QUERY_DEVICE, 16);

	if (err)
		return err;
	w->out[0] = -1;
	err = write_to(w, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, 8);
	w->channel = w->out[0];
	return err;
}

static int make_cq(struct world *w)
{
	struct command c = { .attrs = {
				     of_value(UVERBS_ATTR_CREATE_CQ_HANDLE, 0,
					      0),
				     of_value(UVERBS_ATTR_CREATE_CQ_USER_HANDLE,
					      8, (uintptr_t)w->cq),
				     of_value(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL,
					      0, (uint64_t)w->channel),
				     /* as ibv_create_qp()'s capabilities: what
				      * is asked is where the answer comes */
				     of_memory(UVERBS_ATTR_CREATE_CQ_RESP_CQE,
					       w->buffer, 4),
				     of_memory(UVERBS_ATTR_UHW_IN, w->buffer,
					       sizeof(w->buffer)),
			     } };
	int err;

	memset(w->buffer, 0, sizeof(w->cqe));
	err = say(w->device, &c, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, 5);

	w->handle = (uint32_t)c.attrs[0].data;
	memcpy(&w->cqe, w->buffer, sizeof(w->cqe));
	return err;
}

static int fail(struct world *w)
{
	struct command c = { .attrs = { of_memory(UVERBS_ATTR_UHW_OUT, w->cq,
						  sizeof(w->cq)) } };
	int err = say(w->device, &c, UVERBS_OBJECT_XRCD, 0, 1);

	w->err = errno;
	return err;
}

/* Return: how often the kernel has been asked, by this, too */
static int ask_for_gids(struct world *w)
{
	struct command c = {};

	return say(w->device, &c, UVERBS_OBJECT_DEVICE,
		   UVERBS_METHOD_QUERY_GID_TABLE, 0);
}

static void make(struct world *w)
{
	w->device = open_device();
	CHECK(!get_async(w) && !get_channel(w));
	CHECK(fail(w) == -1);
	CHECK(!make_cq(w));
}

/* --- tests --- */

static struct tape *record(struct world *w)
{
	struct tape *t = tape_new();
	int ends[2];

	MUST(t && !pipe(ends));
	events[0] = ends[0];
	events[1] = ends[1];
	strcpy(w->buffer, "where the queue is");
	asked = 0;
	tape_use(t);
	make(w);
	tape_use(NULL);
	CHECK(asked == 5 && tape_commands(t) == 5 && tape_end(t));
	return t;
}

static void end(struct world *w)
{
	CHECK(!close(w->device) && !close(w->async) && !close(w->channel));
}

/* as another process has them */
static struct tape *hand_over(const struct tape *t, const char **why)
{
	int fds[MOST_TAPE_FILES];
	const void *tape;
	const int *files;
	unsigned int n;
	size_t bytes;

	files = tape_files(t, &n);
	tape = tape_bytes(t, &bytes);
	for (unsigned int i = 0; i < n; i++)
		MUST((fds[i] = dup(files[i])) >= 0);
	return tape_load(tape, bytes, fds, n, why);
}

static void same_file(int a, int b)
{
	struct stat x, y;

	CHECK(a != b && !fstat(a, &x) && !fstat(b, &y) && x.st_ino == y.st_ino);
}

/* the next commands of both are on a tape of their own */
static void plays_more(struct tape *t, struct world *s, struct tape *played,
		       struct world *p)
{
	const void *bytes;
	const char *why;
	size_t n;

	tape_cut(t);
	tape_use(t);
	fail(s);
	fail(s);
	tape_use(NULL);
	CHECK(tape_commands(t) == 2);
	bytes = tape_bytes(t, &n);
	CHECK(tape_more(played, bytes, n, &why), "%s", why);
	asked = 0;
	tape_use(played);
	CHECK(fail(p) == -1 && p->err == ENOSPC);
	CHECK(fail(p) == -1 && fail(p) == -1 && p->err == EIO);
	tape_use(NULL);
	CHECK(!asked && strstr(tape_trouble(played), "no command 2"));
}

static void test_plays(void)
{
	struct ib_uverbs_comp_event_desc event = { HANDLE(0) };
	struct world s = {}, p = {};
	struct tape *t, *played;
	const char *why;
	int ends[2];

	puts("the same commands get the same answers");
	t = record(&s);
	MUST(played = hand_over(t, &why));
	memcpy(p.buffer, s.buffer, sizeof(p.buffer));
	asked = 0;
	tape_use(played);
	make(&p);
	CHECK(!asked && ask_for_gids(&p) == 1);
	tape_use(NULL);
	CHECK(asked == 1 && tape_end(played), "%s", tape_trouble(played));
	CHECK(p.handle == 7 && p.cqe == 255 && p.err == ENOSPC);
	same_file(p.async, s.async);
	same_file(p.channel, s.channel);
	CHECK(fcntl(p.device, F_GETFD) & FD_CLOEXEC);
	plays_more(t, &s, played, &p);
	tape_free(played);
	tape_free(t);

	puts("events have this process' addresses");
	MUST(!pipe(ends));
	MUST(write(ends[1], &event, sizeof(event)) == sizeof(event));
	handles_begin();
	CHECK(read(ends[0], &event, sizeof(event)) == sizeof(event));
	handles_end();
	CHECK(event.cq_handle == (uintptr_t)p.cq);
	event.cq_handle = HANDLE(0);
	MUST(write(ends[1], &event, sizeof(event)) == sizeof(event));
	event.cq_handle = 0;
	CHECK(read(ends[0], &event, sizeof(event)) == sizeof(event));
	CHECK(event.cq_handle == HANDLE(0)); /* a program's own data */
	close(ends[0]);
	close(ends[1]);

	CHECK(make_cq(&p) == -1 && errno == ENOTTY); /* nothing is taped */
	end(&s);
	end(&p);
}

/* What is done differently fails, and so does all that follows. */
static void differently(void (*change)(struct world *w), const char *trouble)
{
	struct world s = {}, p = {};
	struct tape *t, *played;
	const char *why;

	t = record(&s);
	MUST(played = hand_over(t, &why));
	memcpy(p.buffer, s.buffer, sizeof(p.buffer));
	asked = 0;
	tape_use(played);
	p.device = open_device();
	change(&p);
	CHECK(get_async(&p) == -1 && errno == EIO);
	tape_use(NULL);
	CHECK(!asked && !tape_end(played));
	CHECK(tape_trouble(played) && strstr(tape_trouble(played), trouble),
	      "%s", tape_trouble(played));
	tape_free(played);
	tape_free(t);
	end(&s);
	close(p.device);
}

static void begin(struct world *w)
{
	CHECK(!get_async(w) && !get_channel(w) && fail(w) == -1);
}

static void end_begun(struct world *w)
{
	close(w->async);
	close(w->channel);
}

static void another_address(struct world *w)
{
	begin(w);
	w->buffer[4] = '!';
	CHECK(make_cq(w) == -1 && errno == EIO);
	end_begun(w);
}

static void another_channel(struct world *w)
{
	int channel;

	begin(w);
	channel = w->channel;
	w->channel = w->async;
	CHECK(make_cq(w) == -1);
	w->channel = channel;
	end_begun(w);
}

static void another_command(struct world *w)
{
	CHECK(make_cq(w) == -1 && errno == EIO);
}

static void one_more(struct world *w)
{
	begin(w);
	CHECK(!make_cq(w) && make_cq(w) == -1);
	end_begun(w);
}

static void another_device(struct world *w)
{
	close(w->device);
	w->device = open("/dev/zero", O_RDWR);
	CHECK(get_async(w) == -1 && errno == EIO);
}

static void test_differs(void)
{
	struct world s = {}, p = {};
	struct tape *t, *played;
	const char *why;

	puts("other commands are refused");
	differently(
		another_address,
		"command 4, method 0 of object 0x3: attribute 0x1000 differs at byte 4");
	differently(another_channel, "differs");
	differently(another_command,
		    "command 0 is method 0 of object 0x3, and on the tape");
	differently(one_more, "no command 5");
	differently(another_device, "another device");

	puts("fewer commands are refused");
	t = record(&s);
	MUST(played = hand_over(t, &why));
	tape_use(played);
	p.device = open_device();
	CHECK(!get_async(&p));
	tape_use(NULL);
	CHECK(!tape_end(played) && strstr(tape_trouble(played), "more"));
	tape_free(played);
	tape_free(t);
	end(&s);
	close(p.device);
	close(p.async);
}

/* whatever comes of it */
static void play(struct tape *t)
{
	struct world p = { .async = -1, .channel = -1 };

	if (!t)
		return;
	tape_use(t);
	p.device = open_device();
	strcpy(p.buffer, "where the queue is");
	if (!get_async(&p) && !get_channel(&p)) {
		fail(&p);
		make_cq(&p);
	}
	tape_use(NULL);
	tape_free(t);
	close(p.device);
	if (p.async > 2)
		close(p.async);
	if (p.channel > 2)
		close(p.channel);
}

static void test_broken(void)
{
	struct world s = {};
	struct tape *t, *bad;
	const char *why;
	char *byte;
	size_t n;

	puts("what is no tape is refused, or harmless");
	t = record(&s);
	tape_bytes(t, &n);
	for (size_t i = 0; i < n; i++) {
		byte = t->bytes + i;
		for (int bit = 0; bit < 8; bit++) {
			*byte = (char)(*byte ^ 1 << bit);
			bad = hand_over(t, &why);
			*byte = (char)(*byte ^ 1 << bit);
			play(bad);
		}
	}
	for (size_t shorter = 1; shorter < n; shorter++) {
		t->n = n - shorter;
		bad = hand_over(t, &why);
		play(bad);
	}
	t->n = n;
	tape_free(t);
	end(&s);
}

int main(void)
{
	tape_kernel = kernel;
	test_plays();
	test_differs();
	test_broken();
	handles_are(NULL, 0);
	return app_end();
}
