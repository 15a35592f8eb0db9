/* SPDX-License-Identifier: GPL-2.0 */
/*
 * CRIU plug-in for processes with RDMA objects on a migratable rdma_rxe.
 * README.md says which hook does what.
 */
#ifndef RDMA_PLUGIN_H
#define RDMA_PLUGIN_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "migr_cmd.h"

#define RP_NAME "rdma_plugin" /* also in CRIU's inventory image */
/* of memfds */
#define RP_STANDIN_NAME "rdma_plugin_memory"
#define RP_SUSPENDED_NAME "libmigrrdma:suspended"

/*
 * ---- log: CRIU exports print_on_level(), but installs no header for it.
 * The levels are those of compel/loglevels.h. ----
 */
void print_on_level(unsigned int level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#define rp_err(fmt, ...)                                                   \
	print_on_level(1, "Error (%s:%d): rdma: " fmt "\n", __FILE_NAME__, \
		       __LINE__, ##__VA_ARGS__)
#define rp_warn(fmt, ...)                                                  \
	print_on_level(2, "Warn  (%s:%d): rdma: " fmt "\n", __FILE_NAME__, \
		       __LINE__, ##__VA_ARGS__)
#define rp_info(fmt, ...) print_on_level(3, "rdma: " fmt "\n", ##__VA_ARGS__)

/*
 * What the hooks say is not theirs. Not -ENOTSUP, CRIU's word for it: that is
 * also EOPNOTSUPP, an ordinary failure of what is below.
 */
#define RP_NOT_OURS (-4096)

/* ---- what /proc and /sys tell (proc.c, device.c) ---- */

enum rp_kind {
	RP_OTHER,
	RP_UVERBS, /* a verbs device */
	RP_CM,	   /* /dev/infiniband/rdma_cm */
	RP_EVENT,  /* async or completion events: only RESOLVE knows which */
	RP_STANDIN, /* has the name of memory that a restore maps for a device's */
	RP_SUSPENDED, /* the layer's sign, see foreign.c */
};

struct rp_fd {
	int fd; /* number in the task */
	enum rp_kind kind;
	dev_t rdev; /* of a verbs device */
};

/* a mapping of a verbs device; those of providers are shared */
struct rp_map {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	uint32_t prot; /* PROT_* */
	bool shared;
	dev_t rdev;
};

struct rp_task {
	pid_t pid;	   /* as seen by CRIU */
	pid_t vpid;	   /* in its own, innermost pid namespace */
	int max_fd;	   /* the largest number in use, -1: no files at all */
	bool suspended;	   /* by the layer, it says */
	struct rp_fd *fds; /* RDMA files, and stand-ins */
	size_t nr_fds;
	struct rp_map *maps;
	size_t nr_maps;
};

struct rp_device {
	char name[32];	/* uverbs0 */
	char ibdev[64]; /* rxe0 */
	dev_t rdev;
};

/* What is the character device, by its class in sysfs? */
enum rp_kind rp_char_kind(dev_t rdev);
/* Is it a character device, and which? No file server is asked */
bool rp_is_device(int dirfd, const char *name, dev_t *rdev);
/* What is the target of a /proc/PID/fd link that is no device? */
enum rp_kind rp_link_kind(const char *target);
/* One line of /proc/PID/maps; false if it is no file's mapping */
bool rp_parse_map(const char *line, struct rp_map *map);

/*
 * Has the task ended that an error is of, or closed the file? Of who is about to end nothing is
 * copied, and nothing of his is tracked any more
 */
static inline bool rp_is_gone(int err)
{
	return err == -ESRCH || err == -ENOENT || err == -EBADF;
}

int rp_task_scan(pid_t pid, struct rp_task *task);
/* the same without its mappings */
int rp_task_scan_files(pid_t pid, struct rp_task *task);
void rp_task_free(struct rp_task *task);
/* Has any of its threads? A first one that has ended has none, and the others go on. */
bool rp_task_has_memory(pid_t pid);
pid_t rp_task_vpid(pid_t pid);
pid_t rp_task_parent(pid_t pid);

/* bytes */
struct rp_pins {
	uint64_t pinned; /* by all of its MRs, as often as they have the page */
	uint64_t limit;	 /* RLIMIT_MEMLOCK */
	bool unlimited;	 /* CAP_IPC_LOCK */
};

int rp_task_pins(pid_t pid, struct rp_pins *pins);
/* Could it pin all this, being what it is now? */
bool rp_pins_fit(const struct rp_pins *pins);
/* Is it in our user namespace? Also no, if nobody can tell */
bool rp_task_same_userns(pid_t pid);
/* Has SIGKILL been sent, or is it dead already? */
bool rp_task_dying(pid_t pid);
/* A duplicate of another task's file; -1 and errno */
int rp_take_fd(pid_t pid, int fd);
/* 0: two descriptors of one file; else an order, as for qsort() */
int rp_compare_files(int a, int b);

int rp_device_of(dev_t rdev, struct rp_device *dev);
int rp_device_by_ibdev(const char *ibdev, struct rp_device *dev);
/* That of rdma_cm, which is of no RDMA device */
int rp_device_cm(struct rp_device *dev);
/* Open the device's file as this mount namespace shows it; -1 and log */
int rp_device_open(const struct rp_device *dev);
/* Is it rdma_rxe, migratable or not? */
bool rp_device_is_rxe(const struct rp_device *dev);
/* Does the driver know our methods, and its GIDs? -errno and log */
int rp_device_probe(const struct rp_device *dev, struct migr_gids *gids);

/* ---- ids of rdma_cm that are bound to a device (cm.c) ---- */

struct rp_cm_ids {
	pid_t pid;	      /* of the process that is asked for */
	int fd;		      /* its channel, here */
	unsigned int own;     /* made by threads of it */
	unsigned int unclear; /* whose maker has ended, or has no other channel */
};

int rp_cm_ids(pid_t pid, int fd, struct rp_cm_ids *ids);
/* who is given the attributes of each message of an answer */
struct rp_cm_dump {
	int (*fn)(const void *attrs, size_t length, void *arg);
	void *arg;
};
struct nlmsghdr;
/* One datagram of an answer: 1 if it was the last one, -errno if it says so */
int rp_cm_take_answer(const struct nlmsghdr *h, int length,
		      const struct rp_cm_dump *d);
/* Count those in the attributes of one answer */
int rp_cm_see_ids(const void *attrs, size_t length, void *ids);

/* ---- image files (images.c) ---- */

#define RP_IMAGE_MAGIC "RDMACRIU" /* without NUL */
#define RP_IMAGE_VERSION 4

/*
 * Where the restore keeps its files in a task: above the task's own numbers and
 * above CRIU's service files, which lie below a power of two that is at most
 * 2 * (max_fd + 29).
 */
#define RP_HIGH_FD(max_fd) (512 + 4 * (max_fd))
/*
 * The limit during a restore is fs.nr_open, 1048576 by default. One eighth of
 * it remains for our files: the contexts' own and their event files until CRIU
 * has taken them, then one for each mapping, of which a task has 65530.
 */
#define RP_MAX_FD (((1U << 20) - (1U << 17) - RP_HIGH_FD(0)) / 4)

enum rp_image_kind {
	RP_IMAGE_FILE = 1,
	RP_IMAGE_TASK,
	RP_IMAGE_DEAD,
	RP_IMAGE_TRACKED
};

/* little-endian; crc32 as zlib's, with the field 0 */
struct rp_image_hdr {
	char magic[8];
	uint32_t version;
	uint32_t kind;
	uint32_t length; /* of the whole file */
	uint32_t crc32;
	uint64_t dump; /* a random number, the same in all images of a dump */
};

/* beside the driver's types of files, those of no context: */
#define RP_FILE_CM 0x80000000U	 /* a channel of rdma_cm */
#define RP_FILE_DEAD 0x80000001U /* of a device that cannot migrate */

/* rdma-file-<id>.img: one per struct file, <id> is CRIU's */
struct rp_file_image {
	struct rp_image_hdr hdr;
	uint32_t context; /* number of its rdma-ctx-<n>.img, or no handle */
	uint32_t type;	/* RXE_MIGR_CONTEXT, _ASYNC_FD, _COMP_CHANNEL or ours */
	uint32_t flags; /* F_GETFL */
	/* a channel: the CQ by which the context's image knows it; else none */
	uint32_t channel;
};

bool rp_file_has_context(uint32_t type);

struct rp_vma {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	uint32_t prot;
	uint32_t reserved;
};

/* rdma-task-<n>.img: how the task uses context <n> */
struct rp_task_image {
	struct rp_image_hdr hdr;
	uint32_t context;
	uint32_t vpid;
	uint32_t fd;	   /* the context's file in the task */
	uint32_t max_fd;   /* the largest number the task uses */
	uint32_t contexts; /* how many the task has */
	uint32_t nr_fds;   /* RDMA files of the context, duplicates too */
	uint32_t nr_vmas;
	uint32_t context_crc32; /* in the header of the context's image */
	/* nr_vmas times struct rp_vma, nr_fds times uint32_t */
};

/* rdma-dead-<n>.img: a task with devices that cannot migrate */
struct rp_dead_image {
	struct rp_image_hdr hdr;
	uint32_t vpid;
	uint32_t max_fd;
	uint32_t nr_files; /* of RP_FILE_DEAD that are the task's */
	uint32_t nr_vmas;
	/* nr_vmas times struct rp_vma */
};

/*
 * rdma-tracked.img: what was tracked when a round copied memory, with the tasks frozen.
 * hdr.dump is the number of the round, for the driver, too
 */
#define RP_TRACKED_NAME "rdma-tracked.img"

struct rp_tracked_image {
	struct rp_image_hdr hdr;
	uint32_t nr;
	uint32_t lost; /* the module's count then: migr_lost (rxe_migr_abi.h) */
	uint64_t contexts[]; /* that are tracked: the driver's numbers */
};

const struct rp_vma *rp_dead_vmas(const struct rp_dead_image *img);
size_t rp_dead_image_size(size_t nr_vmas);
const struct rp_vma *rp_image_vmas(const struct rp_task_image *img);
const uint32_t *rp_image_fds(const struct rp_task_image *img);
size_t rp_task_image_size(size_t nr_vmas, size_t nr_fds);
/* Those that are sealed from now on are of another dump: -errno and log */
int rp_image_new_dump(void);
/* Their random number, which is not 0 */
uint64_t rp_image_dump(void);
/* What is read next may be of any dump, and all that follows is of the same */
void rp_image_any_dump(void);
/* Fill in the header, the rest must be in place */
void rp_image_seal(void *img, enum rp_image_kind kind, size_t length);
/* NULL if the image is whole and sane, else what is wrong with it */
const char *rp_image_check(const void *img, size_t length,
			   enum rp_image_kind kind);
/* NULL: none there, or another one */
const struct rp_vma *rp_find_vma(const struct rp_vma *vmas, uint32_t nr,
				 uint64_t start, uint64_t offset);

/* The rings of a context's image, by mmap offset; they point into it */
struct rp_rings {
	const struct rxe_migr_ring **ring;
	size_t nr;
};

int rp_rings_init(struct rp_rings *rings, const struct migr_image *img);
/* Also if they have never been initialized, but zero */
void rp_rings_free(struct rp_rings *rings);
/* NULL: none at this offset */
const struct rxe_migr_ring *rp_rings_find(const struct rp_rings *rings,
					  uint64_t offset);

int rp_write_file(int dir, const char *name, const void *data, size_t length);
/* A buffer from malloc(); -errno */
int rp_read_file(int dir, const char *name, void **data, size_t *length);
/* One of ours, checked, from malloc(); -errno and log */
int rp_read_image(int dir, const char *name, enum rp_image_kind kind,
		  void **img);
/*
 * Call `fn` for each file <prefix><number>.img; the number is written in
 * `base`. Stops at the first result that is not 0 and returns it.
 */
int rp_for_each_image(int dir, const char *prefix, int base,
		      int (*fn)(int dir, const char *name, uint32_t number));
/* Does CRIU write there only what differs from older images? */
bool rp_is_incremental(int dir);
/* Remove the files of a dump that failed, or of an older one */
int rp_remove_images(int dir);

/* ---- dump side (take.c, dump.c) ---- */

/*
 * One process of CRIU may do several dumps and restores, with RPC: what is left of
 * a dump is settled first, whatever comes
 */
void rp_dump_settle(void);
void rp_dump_begin(void);
/* Take and stop the contexts of a task; RP_NOT_OURS: it has none */
int rp_dump_take(pid_t pid);
int rp_dump_file(int lfd, uint32_t id);
/* Is it the device of a context, or of a dead file, that is being dumped? */
bool rp_dump_knows(dev_t rdev);
/* CRIU is done: restart the QPs now, or when the tasks turn out to live */
void rp_dump_finish(bool failed, bool tasks_live);

/* ---- rounds before a dump, and what comes after them (track.c) ---- */

/* A round begins, or a dump, with a number for its images */
void rp_track_begin(void);
/*
 * A task that will be frozen: its contexts are tracked from now on, or it is refused, if a
 * device of it does not say what it writes
 */
int rp_track_note(pid_t pid);
/* A mapping of a device, of tasks that are frozen: all that the devices wrote is dirty */
int rp_track_round(dev_t rdev);
/* The same of one context, once it is stopped, for a dump */
int rp_track_last(pid_t pid, int number, int fd);
/* In a dump that is a difference: has a context ended since that had lost track? */
int rp_track_check_ended(pid_t pid);

/* ---- restore side (restore.c, late.c) ---- */

struct rp_context {
	struct rp_task_image *task;
	void *data;
	struct migr_image img;
	struct rp_device dev;
	struct migr_gids gids; /* of the device; in its first context only */
	unsigned int nr_files; /* that have an image, but channels without CQs */
	/* in the restored task */
	bool open;
	bool *is_made; /* by the task that its image names; all processes see it */
	/* in the master */
	int late_fd; /* attached, to be resumed; -1 */
};

extern struct rp_context *rp_contexts;
extern unsigned int rp_nr_contexts;

int rp_restore_init(void);
void rp_restore_fini(void);
/* The new fd; RP_NOT_OURS; another negative number: failed */
int rp_restore_file(uint32_t id);
int rp_restore_vma(uint64_t start, uint64_t offset, uint64_t *new_offset,
		   int *fd);

/* ---- files and mappings that are restored as dead ones (dead.c) ---- */

struct rp_dead {
	struct rp_dead_image *img;
	uint64_t *place; /* of each mapping in their memory, then its size */
	/* in the master */
	bool done; /* nothing is left in the task that the restore needed */
};

extern struct rp_dead *rp_dead;
extern unsigned int rp_nr_dead;

int rp_dead_read(int dir);
void rp_dead_free(void);
/* How many dead files there are in all tasks */
uint64_t rp_dead_files(void);
/* NULL: the task has none */
struct rp_dead *rp_dead_of(uint32_t vpid);
/* A new dead file; -1 and errno */
int rp_dead_open(void);
/* Memory for all dead mappings of a task */
uint64_t rp_dead_size(const struct rp_dead *dead);
/* Has this very task such a dead mapping? Its place in that memory */
const struct rp_dead *rp_dead_find_vma(uint64_t start, uint64_t offset,
				       uint64_t *place);

/* ---- tasks restored but not yet running (late.c) ---- */

void rp_late_begin(void);
/* Complete a task's contexts and mappings; with the last task, resume them all */
int rp_late_attach(pid_t pid);
/* Nothing has been left behind */
bool rp_late_done(void);
/* Kill every task that CRIU is restoring */
void rp_late_kill(void);

/* ---- system calls in a stopped task (inject.c) ---- */

struct rp_inject;

struct rp_inject *rp_inject_begin(pid_t pid);
void rp_inject_end(struct rp_inject *inj);
int rp_inject_close(struct rp_inject *inj, int fd);
int rp_inject_mmap(struct rp_inject *inj, const struct rp_vma *vma, int fd);
int rp_inject_attach(struct rp_inject *inj, int fd, struct rxe_migr_status *st);

#endif /* RDMA_PLUGIN_H */
