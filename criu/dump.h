/* SPDX-License-Identifier: GPL-2.0 */
/* What take.c and foreign.c have taken, and dump.c writes */
#ifndef DUMP_H
#define DUMP_H

#include "rdma_plugin.h"

struct dump_context {
	struct rp_task *task;
	struct rp_device dev;
	int number;	    /* of its fd in the task, the smallest */
	int fd;		    /* the same file, ours */
	bool has_async;	    /* its asynchronous event file is open */
	uint32_t *channels; /* names of its completion channels in the task */
	size_t nr_channels;
	int guard;     /* -1: not stopped */
	uint32_t *fds; /* all numbers in the task that are this context's */
	size_t nr_fds;
	size_t nr_own;	   /* so many of them are of the context's own file */
	size_t nr_ours;	   /* so many descriptors of CRIU's are that file */
	bool table_shared; /* the task's descriptors are another one's, too */
	void *data;
	struct migr_image img;
	struct rp_rings rings; /* of img */
	struct dump_context *next;
};

/* a file of a context, or one without */
struct dump_file {
	int fd;			      /* ours */
	struct dump_context *context; /* RP_FILE_CM: NULL; _DEAD: itself */
	uint32_t type;		      /* as struct rp_file_image has it, */
	uint32_t channel;	      /* too */
};

struct dump_task {
	struct rp_task scan;
	struct dump_task *next;
};

/* in the order in which CRIU named the tasks */
extern struct dump_task *dump_tasks;
extern struct dump_context *dump_contexts;
/*
 * Files of devices that cannot migrate, and of events of those, which have no
 * device here. Of a context they have `task`, `dev`, `number` and `fd`.
 */
extern struct dump_context *dump_foreign;

/* What has been taken as this file; NULL: nothing */
const struct dump_file *dump_find_file(int fd);
/* Takes ownership of the file, which is a new one */
int dump_keep_file(const struct dump_file *file);
/* In no list yet. Takes ownership of `fd`; NULL if there is no memory */
struct dump_context *dump_new_context(struct rp_task *task, int number,
				      const struct rp_device *dev, int fd);
/* Its own file, as dump_keep_file() */
int dump_keep_context(struct dump_context *c, uint32_t type);
/* The task has event files that are of another one: -EOPNOTSUPP and log */
int dump_refuse_shared(const struct rp_task *task, int number,
		       const struct dump_file *known);
/* The restore needs us */
int dump_need_plugin(void);
/* The restore does not know yet that it needs us */
void dump_forget_plugin(void);
bool dump_is_incremental(void);
/* Has a process that is not dumped one of the contexts? -EOPNOTSUPP and log */
int dump_check_outside(void);
/* Give everything back; a guard that is closed before COMMIT is UNSTOP */
void dump_release_all(void);
/* Of the files of dump_foreign: nothing is decided about them later */
void dump_release_foreign(void);
/* Both take ownership of `fd`, the task's file */
int dump_take_foreign(struct rp_task *task, const struct rp_fd *f,
		      const struct rp_device *dev, int fd);
int dump_take_foreign_event(struct rp_task *task, const struct rp_fd *f,
			    int fd);
bool dump_owns_foreign_map(const struct rp_task *task,
			   const struct rp_map *map);
int dump_write_foreign(void);
/* To be called once, when the first context has been taken */
int dump_settle_at_exit(void);

#endif /* DUMP_H */
