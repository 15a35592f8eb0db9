// SPDX-License-Identifier: GPL-2.0
/* A task that has a context of another driver, beside ours or not */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>

#define migr_cmd_resolve fake_resolve
#define migr_cmd_resume fake_resume
#define migr_cmd_resume_check fake_resume_check
#define rp_task_same_userns fake_same_userns
#include "../take.c"
#include "../late.c"
#undef migr_cmd_resolve
#undef migr_cmd_resume
#undef migr_cmd_resume_check
#undef rp_task_same_userns

#include "../../tests/check.h"

#define OURS 100
#define FOREIGN 200

struct rp_context *rp_contexts;
unsigned int rp_nr_contexts;

/* of all events these are the only ones that are ours */
static int our_events = -1, second_events = -1;

int fake_resolve(int fd, int other, struct rxe_migr_resolve_resp *resp)
{
	(void)fd;
	resp->type = RXE_MIGR_ASYNC_FD;
	if (other == second_events)
		return -EOPNOTSUPP;
	return other == our_events ? 0 : -ENOENT;
}

static bool same_userns = true;

bool fake_same_userns(pid_t pid)
{
	(void)pid;
	return same_userns;
}

static int dir;

int criu_get_image_dir(void)
{
	return dir;
}

int dump_settle_at_exit(void)
{
	return 0;
}

int rp_track_check_ended(pid_t pid)
{
	(void)pid;
	return 0;
}

int rp_track_last(pid_t pid, int number, int fd)
{
	(void)pid;
	(void)number;
	(void)fd;
	return 0;
}

bool dump_is_incremental(void)
{
	return false;
}

unsigned int log_warnings; /* of log.c */

static int inventory;

int add_inventory_plugin(const char *name)
{
	(void)name;
	inventory++;
	return 0;
}

bool check_and_remove_inventory_plugin(const char *name, size_t n)
{
	(void)name;
	(void)n;
	return inventory && inventory--;
}

/* Of the pipe, of which all files are one inode, these two are left */
static bool has_closed(int out, int in)
{
	int files = 0;
	struct stat st, of;

	MUST(!fstat(in, &st));
	for (int fd = 0; fd < 1024; fd++)
		files += fd != out && !fstat(fd, &of) &&
			 of.st_dev == st.st_dev && of.st_ino == st.st_ino;
	return files == 1;
}

static void events(void)
{
	struct rp_fd fds[] = { { .fd = 3, .kind = RP_UVERBS, .rdev = OURS },
			       { .fd = 4, .kind = RP_EVENT },
			       { .fd = 5, .kind = RP_UVERBS, .rdev = FOREIGN },
			       { .fd = 6, .kind = RP_EVENT } };
	struct rp_task task = { .pid = 17, .fds = fds, .nr_fds = 4 };
	struct rp_device dev = { .rdev = OURS };
	struct rp_task child = { .pid = 18, .fds = fds + 1, .nr_fds = 1 };
	int file[2], other[2];

	MUST(!pipe(file) && !pipe(other));
	our_events = dup(file[0]);
	MUST(!new_context(&task, fds, &dev, dup(file[1])));
	CHECK(!take_event(&task, fds + 1, our_events));
	CHECK(dump_contexts->has_async && dump_contexts->nr_fds == 2);
	CHECK(dump_find_file(file[0])->context == dump_contexts);
	CHECK(!take_event(&task, fds + 3, dup(file[0]))); /* again */
	CHECK(dump_contexts->nr_fds == 3);
	our_events = -1;
	/* a second one, and that of another task */
	second_events = dup(other[1]);
	CHECK(take_event(&task, fds + 1, second_events) == -EOPNOTSUPP);
	second_events = -1;
	CHECK(take_event(&child, fds + 1, dup(file[0])) == -EOPNOTSUPP);
	/* nobody's, who could say that it is in order */
	CHECK(take_event(&task, fds + 3, dup(other[0])) == -EOPNOTSUPP);
	CHECK(dump_contexts->nr_fds == 3 && !dump_find_file(other[0]));
	CHECK(!dump_foreign);
	task.suspended = true; /* the layer's */
	CHECK(!log_warnings);
	CHECK(!take_event(&task, fds + 3, dup(other[0])));
	CHECK(log_warnings == 1); /* it has no such device */
	CHECK(dump_find_file(other[0])->context == dump_foreign);
	dump_release_foreign();
	CHECK(!dump_foreign && !dump_find_file(other[0]));
	CHECK(has_closed(other[1], other[0]));
	CHECK(dump_find_file(file[0])->context == dump_contexts);
	CHECK(!take_event(&task, fds + 3, dup(other[0])));
	dump_release_all();
	CHECK(!dump_find_file(file[0]) && !dump_find_file(other[0]));
	CHECK(!dump_contexts && !dump_foreign);
	CHECK(inventory == 1);
	for (int i = 0; i < 2; i++) { /* CRIU has forgotten it, or not */
		dump_forget_plugin();
		CHECK(!inventory);
		CHECK(!dump_need_plugin() && !dump_need_plugin());
		CHECK(inventory == 1);
		inventory = i;
	}
	for (int i = 0; i < 2; i++)
		CHECK(!close(file[i]) && !close(other[i]));
}

static const struct rp_device foreign = { .ibdev = "foreign0",
					  .rdev = FOREIGN };

static void needs_the_sign(void)
{
	struct rp_fd fds[] = { { .fd = 5, .kind = RP_UVERBS, .rdev = FOREIGN },
			       { .fd = 6, .kind = RP_EVENT } };
	struct rp_task task = { .pid = 17, .fds = fds, .nr_fds = 2 };
	struct rp_task child = { .pid = 18, .fds = fds, .nr_fds = 2 };
	int file[2];

	MUST(!pipe(file));
	inventory = 0;
	dump_forget_plugin();
	CHECK(dump_take_foreign(&task, fds, &foreign, dup(file[0])) ==
	      -EOPNOTSUPP);
	CHECK(!dump_foreign && !dump_find_file(file[0]) && !inventory);
	task.suspended = child.suspended = true;
	CHECK(!dump_take_foreign(&child, fds, &foreign, dup(file[0])));
	log_warnings = 0;
	CHECK(!take_event(&task, fds + 1, dup(file[1])));
	CHECK(log_warnings == 1); /* another one has the device */
	dump_release_all();
	inventory = 0;
	dump_forget_plugin();
	CHECK(!dump_take_foreign(&task, fds, &foreign, dup(file[0])));
	CHECK(!take_event(&task, fds + 1, dup(file[1])));
	CHECK(log_warnings == 1);
	CHECK(inventory == 1);
	CHECK(dump_find_file(file[0])->type == RP_FILE_DEAD);
	CHECK(dump_find_file(file[1])->type == RP_FILE_DEAD);
	/* by other numbers, and in another process that says the same */
	CHECK(!take_uverbs(&task, fds, dup(file[0])));
	CHECK(!take_event(&task, fds + 1, dup(file[1])));
	CHECK(take_uverbs(&child, fds, dup(file[0])) == -EOPNOTSUPP);
	CHECK(take_event(&child, fds + 1, dup(file[1])) == -EOPNOTSUPP);
	CHECK(has_taken(dump_foreign, &task));
	CHECK(!has_taken(dump_foreign, &child));
	CHECK(dump_foreign->next && !dump_foreign->next->next);
	dump_release_all();
	CHECK(!close(file[0]) && !close(file[1]));
}

/* where the restore would have no right to what is ours, but to a dead file */
static void in_user_namespace(void)
{
	struct rp_fd fds[] = { { .fd = 3, .kind = RP_UVERBS, .rdev = OURS },
			       { .fd = 5, .kind = RP_UVERBS, .rdev = FOREIGN } };
	struct rp_task task = {
		.pid = getpid(), .suspended = true, .fds = fds, .nr_fds = 2
	};
	struct rp_device dev = { .rdev = OURS };
	int file[2];

	MUST(!pipe(file));
	same_userns = false;
	MUST(!dump_take_foreign(&task, fds + 1, &foreign, file[0]));
	CHECK(!check_task(&task));
	MUST(!new_context(&task, fds, &dev, file[1]));
	CHECK(check_task(&task) == -EOPNOTSUPP);
	same_userns = true;
	CHECK(!check_task(&task));
	dump_release_all();
}

static void written(void)
{
	struct rp_fd fd = { .fd = 5, .kind = RP_UVERBS, .rdev = FOREIGN };
	struct rp_map maps[] = {
		{ 0x1000, 0x2000, 0x5000, PROT_READ, true, FOREIGN },
		{ 0x2000, 0x3000, 0x5000, PROT_READ, true, OURS },
		{ 0x3000, 0x4000, 0x5000, PROT_READ, false, FOREIGN },
		{ 0x8000, 0xa000, 0, PROT_READ | PROT_WRITE, true, FOREIGN },
	};
	struct dump_task other = {
		.scan = { .pid = 16, .maps = maps, .nr_maps = 4 }
	};
	struct dump_task task = { .scan = { .pid = 17,
					    .vpid = 4,
					    .max_fd = 5,
					    .suspended = true,
					    .maps = maps,
					    .nr_maps = 4 },
				  .next = &other };
	const struct rp_dead_image *dead;
	char path[] = "/tmp/criu-test-XXXXXX";
	const struct rp_vma *vma;
	int file[2];
	void *img;

	MUST(mkdtemp(path) && !pipe(file));
	dir = open(path, O_RDONLY | O_DIRECTORY);
	MUST(dir >= 0);
	dump_tasks = &task;
	CHECK(!dump_write_foreign());
	CHECK(rp_read_image(dir, "rdma-dead-0.img", RP_IMAGE_DEAD, &img));
	MUST(!dump_take_foreign(&task.scan, &fd, &foreign, file[0]));
	MUST(!dump_take_foreign_event(&task.scan, &fd, file[1]));
	for (int i = 0; i < 4; i++) {
		CHECK(dump_owns_foreign_map(&task.scan, maps + i) ==
		      (i % 3 == 0));
		CHECK(!dump_owns_foreign_map(&other.scan, maps + i));
	}
	CHECK(!dump_write_foreign());
	CHECK(rp_read_image(dir, "rdma-dead-1.img", RP_IMAGE_DEAD, &img));
	MUST(!rp_read_image(dir, "rdma-dead-0.img", RP_IMAGE_DEAD, &img));
	dead = img;
	vma = rp_dead_vmas(dead);
	CHECK(dead->vpid == 4 && dead->max_fd == 5);
	CHECK(dead->nr_files == 2 && dead->nr_vmas == 2);
	CHECK(vma[0].start == 0x1000 && vma[0].end == 0x2000);
	CHECK(vma[0].offset == 0x5000 && vma[0].prot == PROT_READ);
	CHECK(vma[1].start == 0x8000 && vma[1].end == 0xa000);
	free(img);
	/* what no restore has room for */
	task.scan.max_fd = RP_MAX_FD + 1;
	CHECK(dump_write_foreign() == -EINVAL);
	dump_tasks = NULL;
	dump_release_all();
	CHECK(!rp_remove_images(dir) && !close(dir) && !rmdir(path));
}

/* a memfd that has the name of our stand-ins is an ordinary file */
static void by_name(void)
{
	struct rp_fd fd = { .fd = memfd_create(RP_STANDIN_NAME, 0),
			    .kind = RP_STANDIN };
	struct rp_task task = { .pid = getpid(), .fds = &fd, .nr_fds = 1 };

	MUST(fd.fd >= 0);
	CHECK(!has_any(&task));
	CHECK(!take_kinds(&task, false) && !take_kinds(&task, true));
	CHECK(!dump_find_file(fd.fd));
	CHECK(rp_dump_take(getpid()) == RP_NOT_OURS && !dump_tasks);
	close(fd.fd);
}

static int closed[8], nr_closed;

int rp_inject_close(struct rp_inject *inj, int fd)
{
	(void)inj;
	MUST(nr_closed < 8);
	closed[nr_closed++] = fd;
	return 0;
}

static void leaks(void)
{
	struct rp_task_image img = { .vpid = 17, .fd = 3, .max_fd = 9 };
	struct rp_context context = { .task = &img };
	struct rp_dead_image dead_img = { .vpid = 18, .max_fd = 4 };
	struct rp_dead dead = { .img = &dead_img };
	struct rp_fd fds[] = { { .fd = 3, .kind = RP_UVERBS, .rdev = OURS },
			       { .fd = 5, .kind = RP_UVERBS, .rdev = FOREIGN },
			       { .fd = 9, .kind = RP_EVENT },
			       { .fd = RP_HIGH_FD(9), .kind = RP_UVERBS },
			       { .fd = RP_HIGH_FD(9) + 1,
				 .kind = RP_STANDIN } };
	struct rp_task task = { .vpid = 17, .fds = fds, .nr_fds = 5 };

	rp_contexts = &context;
	rp_nr_contexts = 1;
	rp_dead = &dead;
	rp_nr_dead = 1;
	CHECK(!close_leaked(NULL, &task));
	CHECK(nr_closed == 2 && closed[0] == RP_HIGH_FD(9) &&
	      closed[1] == RP_HIGH_FD(9) + 1);
	task.vpid = 18;
	nr_closed = 0;
	CHECK(!close_leaked(NULL, &task) && nr_closed == 4 && closed[0] == 5);
	rp_contexts = NULL;
	rp_nr_contexts = 0;
	rp_dead = NULL;
	rp_nr_dead = 0;
}

static int resumes, unready = -1;

int fake_resume_check(int fd, struct rxe_migr_status *st)
{
	*st = (struct rxe_migr_status){ 0 };
	return fd == unready ? -ENOKEY : 0;
}

int fake_resume(int fd, struct rxe_migr_status *st)
{
	(void)fd;
	(void)st;
	resumes++;
	return 0;
}

/* traced, as CRIU has them */
static pid_t start_task(void)
{
	pid_t pid = fork();

	MUST(pid >= 0);
	if (!pid)
		for (;;)
			pause();
	MUST(!ptrace(PTRACE_SEIZE, pid, 0, 0));
	return pid;
}

/* A context is complete, two tasks with dead files are not */
static void in_order(void)
{
	pid_t pid[] = { start_task(), start_task(), start_task() };
	struct rp_task_image img = { .vpid = 1 << 22, .fd = 3, .max_fd = 9 };
	bool made = false;
	struct rp_context context = { .task = &img,
				      .late_fd = dup(0),
				      .is_made = &made };
	struct rp_dead_image dead_img[] = { { .vpid = rp_task_vpid(pid[0]) },
					    { .vpid = rp_task_vpid(pid[1]) } };
	struct rp_dead dead[] = { { .img = dead_img },
				  { .img = dead_img + 1 } };

	MUST(context.late_fd >= 0);
	CHECK(rp_late_done()); /* of nothing */
	rp_dead = dead;
	rp_nr_dead = 2;
	CHECK(!rp_late_done());
	rp_contexts = &context;
	rp_nr_contexts = 1;
	CHECK(!rp_late_done());
	/* nobody has this number, and nobody else could be resumed */
	CHECK(rp_late_attach(pid[1]) == -ESRCH && !dead[1].done);
	img.vpid = rp_task_vpid(pid[2]);
	made = true;
	CHECK(rp_late_attach(getpid()) == RP_NOT_OURS);
	CHECK(!rp_late_attach(pid[1]));
	CHECK(dead[1].done && !dead[0].done);
	CHECK(!resumes && !rp_late_done());
	CHECK(!rp_late_attach(pid[0]));
	CHECK(resumes == 1 && rp_late_done() && context.late_fd == -1);
	rp_contexts = NULL;
	rp_nr_contexts = 0;
	rp_dead = NULL;
	rp_nr_dead = 0;
	for (int i = 0; i < 3; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
}

/* of two contexts one cannot be resumed: the partners of the other do not hear of it */
static void all_or_none(void)
{
	struct rp_task_image img = { .vpid = 17 };
	struct rp_context contexts[] = { { .task = &img, .late_fd = dup(0) },
					 { .task = &img, .late_fd = dup(0) } };

	rp_contexts = contexts;
	rp_nr_contexts = 2;
	resumes = 0;
	unready = contexts[1].late_fd;
	CHECK(resume_all() == -ENOKEY);
	CHECK(!resumes);
	unready = -1;
	CHECK(!resume_all());
	CHECK(resumes == 2);
	rp_contexts = NULL;
	rp_nr_contexts = 0;
}

struct rp_inject *rp_inject_begin(pid_t pid)
{
	static char some;

	(void)pid;
	return (void *)&some;
}

void rp_inject_end(struct rp_inject *inj)
{
	(void)inj;
}

/* not reached here */
int rp_inject_mmap(struct rp_inject *inj, const struct rp_vma *vma, int fd)
{
	(void)inj;
	(void)vma;
	(void)fd;
	return -1;
}

int rp_inject_attach(struct rp_inject *inj, int fd, struct rxe_migr_status *st)
{
	(void)inj;
	(void)fd;
	(void)st;
	return -1;
}

int main(void)
{
	events();
	needs_the_sign();
	in_user_namespace();
	written();
	by_name();
	leaks();
	in_order();
	all_or_none();
	return check_result();
}
