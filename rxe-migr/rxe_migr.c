// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The driver's own uverbs methods, see rxe_migr_abi.h.
 */
#include <linux/capability.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/magic.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/vmalloc.h>

#define UVERBS_MODULE_NAME rdma_rxe
#include <rdma/uverbs_named_ioctl.h>
#include <rdma/uverbs_std_types.h>

#include "rxe.h"

#define STOP_TIMEOUT_MS	2000
/* longer than this nobody who destroys a QP waits for references to it */
#define MAX_TIMEOUT_MS	30000

static int may_migrate(void)
{
	return checkpoint_restore_ns_capable(&init_user_ns) ? 0 : -EPERM;
}

/* the file of this very context, from the caller's table */
static struct file *get_own_file(struct uverbs_attr_bundle *attrs, int fd)
{
	struct file *file = fget(fd);

	if (!file)
		return ERR_PTR(-EBADF);
	if (file->private_data != attrs->ufile) {
		fput(file);
		return ERR_PTR(-EBADF);
	}
	return file;
}

/* --- STOP, COMMIT, DUMP --- */

/* check everything that can be checked without disturbing the application */
static int stop_check(struct ib_ucontext *uc, struct rxe_qp **qps,
		      unsigned int n, const struct rxe_migr_stop *in,
		      struct rxe_migr_status *st)
{
	int err;

	err = rxe_migr_chk_context(uc, qps, n, st);
	if (!err)
		err = rxe_migr_ask(qps, n,
				   min(in->timeout_ms ?: STOP_TIMEOUT_MS,
				       MAX_TIMEOUT_MS), st);
	return err;
}

/*
 * Of a process of the caller's, with a count of its users. The capability to migrate is
 * none to look at other processes' memory. No module can call ptrace_may_access(), so this
 * is its strictest case: as if that were another user's, and not dumpable.
 */
static struct mm_struct *get_memory_of(pid_t nr)
{
	struct task_struct *task;
	struct mm_struct *mm;
	struct pid *pid;

	pid = find_get_pid(nr);
	task = get_pid_task(pid, PIDTYPE_PID);
	put_pid(pid);
	if (!task)
		return ERR_PTR(-ESRCH);
	mm = get_task_mm(task);
	put_task_struct(task);
	if (!mm)
		return ERR_PTR(-ESRCH);
	if (mm != current->mm && !ns_capable(mm->user_ns, CAP_SYS_PTRACE)) {
		mmput(mm);
		return ERR_PTR(-EACCES);
	}

	return mm;
}

static int chk_memory(struct ib_ucontext *uc, pid_t nr,
		      struct rxe_migr_status *st)
{
	struct mm_struct *mm;
	int err;

	if (!nr)
		return rxe_migr_chk_memory(uc, NULL, st);

	mm = get_memory_of(nr);
	if (IS_ERR(mm))
		return PTR_ERR(mm);
	err = rxe_migr_chk_memory(uc, mm, st);
	mmput(mm);

	return err;
}

/*
 * Has a process that is not one of its threads the table of descriptors of process @nr? In
 * doubt, for somebody looks at it just now, it has.
 */
static bool is_table_shared(pid_t nr)
{
	struct task_struct *task, *t;
	struct files_struct *files;
	struct pid *pid;
	int users = 0;

	pid = find_get_pid(nr);
	task = get_pid_task(pid, PIDTYPE_PID);
	put_pid(pid);
	if (!task)
		return false;

	task_lock(task);
	files = task->files;
	if (files) {
		users = atomic_read(&files->count);
		rcu_read_lock();
		/* for_each_thread() asks lockdep for a lock no module knows */
		list_for_each_entry_rcu(t, &task->signal->thread_head,
					thread_node)
			users -= READ_ONCE(t->files) == files;
		rcu_read_unlock();
	}
	task_unlock(task);
	put_task_struct(task);

	return users > 0;
}

static int stop(struct uverbs_attr_bundle *attrs, struct ib_ucontext *uc,
		const struct rxe_migr_stop *in, struct rxe_migr_status *st)
{
	struct rxe_migr_uc *muc = to_migr_uc(uc);
	struct rxe_migr_guard *guard;
	struct file *own, *file = NULL;
	struct rxe_qp **qps;
	unsigned int n;
	int err;
	int fd = -1;

	own = get_own_file(attrs, in->fd);
	if (IS_ERR(own))
		return PTR_ERR(own);
	guard = rxe_migr_guard_new(uc, own);
	if (IS_ERR(guard))
		return PTR_ERR(guard);

	err = rxe_migr_key_active();
	if (!err) /* before anything is held for which others wait */
		err = chk_memory(uc, in->pid, st);
	if (!err)
		err = rxe_migr_collect(uc, &qps, &n);
	if (err)
		goto err_guard;

	err = stop_check(uc, qps, n, in, st);
	if (err || in->flags & RXE_MIGR_STOP_CHECK_ONLY)
		goto err_qps;

	/* until the last QP is at rest there is nothing to dump or commit */
	if (mutex_lock_killable(&muc->lock)) {
		err = -EINTR;
		goto err_qps;
	}
	err = rxe_migr_chk_resumed(muc, st);
	if (!err) {
		fd = rxe_migr_guard_file(guard, &file);
		err = min(fd, 0);
	}
	if (!err) {
		rxe_migr_stop_qps(qps, n);
		muc->stopped = true;
		WRITE_ONCE(muc->committed, false);
	}
	mutex_unlock(&muc->lock);
	if (err)
		goto err_qps;
	rxe_migr_release(uc, qps, n);

	st->guard_fd = fd;
	st->objects = n;
	st->table_shared = in->pid && is_table_shared(in->pid);
	err = uverbs_copy_to(attrs, RXE_MIGR_ATTR_OUT, st, sizeof(*st));
	if (err) {
		put_unused_fd(fd);
		fput(file);	/* UNSTOP */
		return err;
	}
	fd_install(fd, file);

	return 0;

err_qps:
	rxe_migr_release(uc, qps, n);
err_guard:
	rxe_migr_guard_drop(guard);
	return err;
}

static int UVERBS_HANDLER(RXE_MIGR_METHOD_STOP)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *uc = ib_uverbs_get_ucontext(attrs);
	struct rxe_migr_status st = { .guard_fd = -1 };
	struct rxe_migr_stop in;
	int err;

	if (IS_ERR(uc))
		return PTR_ERR(uc);
	err = may_migrate();
	if (!err)
		err = uverbs_copy_from(&in, attrs, RXE_MIGR_ATTR_IN);
	if (err)
		return err;
	if (in.flags & ~RXE_MIGR_STOP_CHECK_ONLY)
		return -EINVAL;

	err = stop(attrs, uc, &in, &st);
	if (err || in.flags & RXE_MIGR_STOP_CHECK_ONLY)
		if (uverbs_copy_to(attrs, RXE_MIGR_ATTR_OUT, &st, sizeof(st)))
			err = -EFAULT;

	return err;
}

/* without the lock: who gives up, or dies, does not wait */
static int wait_heard(struct ib_ucontext *uc, const struct rxe_migr_commit *in,
		      struct rxe_migr_status *st)
{
	struct rxe_qp **qps;
	unsigned int n;
	int err;

	if (!READ_ONCE(to_migr_uc(uc)->stopped))
		return -EINVAL;

	err = rxe_migr_collect(uc, &qps, &n);
	if (err)
		return err;
	err = rxe_migr_wait_heard(qps, n, in->timeout_ms, st);
	rxe_migr_release(uc, qps, n);

	return err;
}

static int commit(struct ib_ucontext *uc, const struct rxe_migr_commit *in,
		  struct rxe_migr_status *st)
{
	struct rxe_migr_uc *muc = to_migr_uc(uc);
	int err;

	err = wait_heard(uc, in, st);
	if (err == -ETIMEDOUT && in->flags & RXE_MIGR_COMMIT_FORCE)
		err = 0;
	if (err || in->flags & RXE_MIGR_COMMIT_CHECK_ONLY)
		return err;

	if (mutex_lock_killable(&muc->lock))
		return -EINTR;
	err = rxe_migr_guard_commit(muc);
	mutex_unlock(&muc->lock);

	return err;
}

static int UVERBS_HANDLER(RXE_MIGR_METHOD_COMMIT)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *uc = ib_uverbs_get_ucontext(attrs);
	struct rxe_migr_status st = { .guard_fd = -1 };
	struct rxe_migr_commit in;
	int err;

	if (IS_ERR(uc))
		return PTR_ERR(uc);
	err = may_migrate();
	if (!err)
		err = uverbs_copy_from(&in, attrs, RXE_MIGR_ATTR_IN);
	if (err)
		return err;
	if (in.flags & ~(RXE_MIGR_COMMIT_CHECK_ONLY | RXE_MIGR_COMMIT_FORCE))
		return -EINVAL;

	err = commit(uc, &in, &st);
	if (uverbs_copy_to(attrs, RXE_MIGR_ATTR_OUT, &st, sizeof(st)))
		err = -EFAULT;

	return err;
}

/* in pieces: at once it may be INT_MAX bytes */
static int copy_out(const struct rxe_migr_buf *buf, const void *from, u64 left)
{
	void __user *to = u64_to_user_ptr(buf->addr);
	size_t n;

	for (; left; left -= n, to += n, from += n) {
		n = min_t(u64, left, SZ_1M);
		if (copy_to_user(to, from, n))
			return -EFAULT;
	}

	return 0;
}

static int UVERBS_HANDLER(RXE_MIGR_METHOD_DUMP)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *uc = ib_uverbs_get_ucontext(attrs);
	struct rxe_migr_dump_resp resp = {};
	struct rxe_migr_buf buf;
	struct rxe_migr_uc *muc;
	void *image = NULL;
	int err;

	if (IS_ERR(uc))
		return PTR_ERR(uc);
	err = may_migrate();
	if (!err)
		err = uverbs_copy_from(&buf, attrs, RXE_MIGR_ATTR_IN);
	if (err)
		return err;

	/* the guard cannot go while the image is taken */
	muc = to_migr_uc(uc);
	if (mutex_lock_killable(&muc->lock))
		return -EINTR;
	err = muc->stopped ? rxe_migr_dump(uc, attrs->ufile, buf.length, &image,
					   &resp) : -EINVAL;
	mutex_unlock(&muc->lock);

	if (!err)
		err = copy_out(&buf, image, resp.needed);
	vfree(image);
	if (uverbs_copy_to(attrs, RXE_MIGR_ATTR_OUT, &resp, sizeof(resp)))
		err = -EFAULT;

	return err;
}

/* --- TRACK --- */

static int track(struct rxe_migr_uc *muc, const struct rxe_migr_track *in,
		 struct rxe_migr_track_resp *resp)
{
	struct mm_struct *mm = NULL;
	int err;

	if (in->pid)
		mm = get_memory_of(in->pid);
	if (IS_ERR(mm))
		return PTR_ERR(mm);

	err = mutex_lock_killable(&muc->track_lock);
	if (!err) {
		if (in->flags & RXE_MIGR_TRACK_END)
			rxe_migr_track_end(muc, resp);
		else
			err = rxe_migr_track(muc, mm, in->round, resp);
		mutex_unlock(&muc->track_lock);
	}
	if (mm)
		mmput(mm);

	return err;
}

static int UVERBS_HANDLER(RXE_MIGR_METHOD_TRACK)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *uc = ib_uverbs_get_ucontext(attrs);
	struct rxe_migr_track_resp resp = {};
	struct rxe_migr_track in;
	int err;

	if (IS_ERR(uc))
		return PTR_ERR(uc);
	err = may_migrate();
	if (!err)
		err = uverbs_copy_from(&in, attrs, RXE_MIGR_ATTR_IN);
	if (!err && in.flags & ~RXE_MIGR_TRACK_END)
		err = -EINVAL;
	if (!err)
		err = track(to_migr_uc(uc), &in, &resp);
	if (!err)
		err = uverbs_copy_to(attrs, RXE_MIGR_ATTR_OUT, &resp,
				     sizeof(resp));

	return err;
}

/* --- RESOLVE --- */

/*
 * Event files have no type that a driver could ask for, but they come from the
 * same module as the context's file, which is none if that is built in, are of no
 * file system of the user's and have this name.
 */
static bool is_event_file(struct file *file, struct file *own)
{
	return file->f_op->owner == rxe_migr_stock_fops(own)->owner &&
	       file_inode(file)->i_sb->s_magic == ANON_INODE_FS_MAGIC &&
	       !strcmp(file->f_path.dentry->d_name.name, "[infinibandevent]");
}

/* the CQ by which DUMP would name the channel: the first one that it meets */
static u32 channel_name(struct ib_ucontext *uc, struct ib_uobject *channel)
{
	void *wanted = rxe_migr_file_channel(channel);
	struct rxe_pool *pool = &to_rdev(uc->device)->cq_pool;
	struct rxe_pool_elem *elem;
	unsigned long index = 0;
	u32 name = RXE_MIGR_NO_HANDLE;

	while (name == RXE_MIGR_NO_HANDLE &&
	       (elem = rxe_migr_next(pool, uc, &index))) {
		struct rxe_cq *cq = elem->obj;

		if (cq->ibcq.uobject && rxe_migr_channel(&cq->ibcq) == wanted)
			name = rxe_migr_uobject(elem)->id;
		__rxe_put(elem);
	}

	return name;
}

static int resolve(struct uverbs_attr_bundle *attrs, struct file *file,
		   struct file *own, struct rxe_migr_resolve_resp *resp)
{
	struct ib_ucontext *uc;
	struct ib_uobject *uobj;

	if (file->private_data == attrs->ufile) {
		resp->type = RXE_MIGR_CONTEXT;
		/* but for @file and @own */
		resp->users = file_count(file) - 2;
		return 0;
	}

	if (!is_event_file(file, own))
		return -ENOENT;

	uobj = file->private_data;
	if (uobj->ufile != attrs->ufile)
		return -ENOENT;

	if (uobj->uapi_object->id != UVERBS_OBJECT_COMP_CHANNEL) {
		resp->type = RXE_MIGR_ASYNC_FD;
		return rxe_migr_is_default_async(attrs->ufile, uobj) ?
			0 : -EOPNOTSUPP;
	}

	uc = ib_uverbs_get_ucontext(attrs);
	if (IS_ERR(uc))
		return PTR_ERR(uc);
	resp->type = RXE_MIGR_COMP_CHANNEL;
	resp->handle = channel_name(uc, uobj);

	return 0;
}

static int UVERBS_HANDLER(RXE_MIGR_METHOD_RESOLVE)(struct uverbs_attr_bundle *attrs)
{
	struct rxe_migr_resolve_resp resp = {};
	struct rxe_migr_resolve in;
	struct file *file, *own;
	int err;

	err = may_migrate();
	if (!err)
		err = uverbs_copy_from(&in, attrs, RXE_MIGR_ATTR_IN);
	if (err)
		return err;

	own = get_own_file(attrs, in.context_fd);
	if (IS_ERR(own))
		return PTR_ERR(own);
	file = fget(in.fd);
	if (!file) {
		err = -EBADF;
		goto out_own;
	}

	err = resolve(attrs, file, own, &resp);
	if (!err)
		err = uverbs_copy_to(attrs, RXE_MIGR_ATTR_OUT, &resp,
				     sizeof(resp));
	fput(file);
out_own:
	fput(own);
	return err;
}

/* --- LOAD, REFILL, ATTACH, RESUME --- */

static int UVERBS_HANDLER(RXE_MIGR_METHOD_LOAD)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *uc = ib_uverbs_get_ucontext(attrs);
	struct rxe_migr_uc *muc;
	struct rxe_migr_buf buf;
	int err;

	if (IS_ERR(uc))
		return PTR_ERR(uc);
	err = may_migrate();
	if (!err)
		err = uverbs_copy_from(&buf, attrs, RXE_MIGR_ATTR_IN);
	if (err)
		return err;

	muc = to_migr_uc(uc);
	if (mutex_lock_killable(&muc->lock))
		return -EINTR;
	err = rxe_migr_load(muc, &buf);
	mutex_unlock(&muc->lock);

	return err;
}

/* of the object that the attribute REFILL_HANDLE names, which is of this type */
static int refill(struct uverbs_attr_bundle *attrs, enum rxe_migr_type type)
{
	struct ib_uobject *uobj = uverbs_attr_get_uobject(attrs,
						RXE_MIGR_ATTR_REFILL_HANDLE);
	struct rxe_migr_uc *muc = to_migr_uc(uobj->context);
	void *obj = uobj->object;
	int err;

	err = may_migrate();
	if (err)
		return err;

	if (mutex_lock_killable(&muc->lock))
		return -EINTR;
	if (type == RXE_MIGR_QP)
		err = rxe_migr_refill_qp(muc, to_rqp(obj), uobj->id);
	else if (type == RXE_MIGR_CQ)
		err = rxe_migr_refill_cq(muc, to_rcq(obj), uobj->id);
	else
		err = rxe_migr_refill_srq(muc, to_rsrq(obj), uobj->id);
	mutex_unlock(&muc->lock);

	return err;
}

static int UVERBS_HANDLER(RXE_MIGR_METHOD_QP_REFILL)(struct uverbs_attr_bundle *attrs)
{
	return refill(attrs, RXE_MIGR_QP);
}

static int UVERBS_HANDLER(RXE_MIGR_METHOD_CQ_REFILL)(struct uverbs_attr_bundle *attrs)
{
	return refill(attrs, RXE_MIGR_CQ);
}

static int UVERBS_HANDLER(RXE_MIGR_METHOD_SRQ_REFILL)(struct uverbs_attr_bundle *attrs)
{
	return refill(attrs, RXE_MIGR_SRQ);
}

static int attach(struct uverbs_attr_bundle *attrs, struct ib_ucontext *uc,
		  int fd, struct rxe_migr_status *st)
{
	struct rxe_migr_uc *muc = to_migr_uc(uc);
	struct file *file;
	int err;

	file = get_own_file(attrs, fd);
	if (IS_ERR(file))
		return PTR_ERR(file);

	if (mutex_lock_killable(&muc->lock)) {
		err = -EINTR;
		goto out;
	}
	if (!muc->restored)
		err = -EINVAL;
	else if (muc->attached)
		err = -EALREADY;
	else
		err = mutex_lock_killable(&muc->track_lock);
	if (!err) {
		/* TRACK takes an MR for whole that has got its pages */
		err = rxe_migr_attach_mrs(uc, st);
		mutex_unlock(&muc->track_lock);
	}
	if (!err)
		err = rxe_migr_open_doorbell(file);
	if (!err)
		muc->attached = true;
	mutex_unlock(&muc->lock);

out:
	fput(file);
	return err;
}

static int UVERBS_HANDLER(RXE_MIGR_METHOD_ATTACH)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *uc = ib_uverbs_get_ucontext(attrs);
	struct rxe_migr_status st = { .guard_fd = -1 };
	struct rxe_migr_attach in;
	int err;

	if (IS_ERR(uc))
		return PTR_ERR(uc);
	err = uverbs_copy_from(&in, attrs, RXE_MIGR_ATTR_IN);
	if (err)
		return err;
	if (in.reserved)
		return -EINVAL;

	err = attach(attrs, uc, in.fd, &st);
	if (uverbs_copy_to(attrs, RXE_MIGR_ATTR_OUT, &st, sizeof(st)))
		err = -EFAULT;

	return err;
}

static int UVERBS_HANDLER(RXE_MIGR_METHOD_RESUME)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *uc = ib_uverbs_get_ucontext(attrs);
	struct rxe_migr_status st = { .guard_fd = -1 };
	struct rxe_migr_uc *muc;
	u32 flags;
	int err;

	if (IS_ERR(uc))
		return PTR_ERR(uc);
	err = may_migrate();
	if (!err)
		err = uverbs_get_flags32(&flags, attrs, RXE_MIGR_ATTR_IN,
					 RXE_MIGR_RESUME_CHECK_ONLY);
	if (err)
		return err;

	muc = to_migr_uc(uc);
	if (mutex_lock_killable(&muc->lock))
		return -EINTR;
	err = rxe_migr_resume(uc, attrs->ufile, flags, &st);
	mutex_unlock(&muc->lock);

	if (uverbs_copy_to(attrs, RXE_MIGR_ATTR_OUT, &st, sizeof(st)))
		err = -EFAULT;

	return err;
}

/* --- tables --- */

#define OUT(type)							\
	UVERBS_ATTR_PTR_OUT(RXE_MIGR_ATTR_OUT,				\
			    UVERBS_ATTR_TYPE(struct type), UA_MANDATORY)

#define IN(type)							\
	UVERBS_ATTR_PTR_IN(RXE_MIGR_ATTR_IN,				\
			   UVERBS_ATTR_TYPE(struct type), UA_MANDATORY)

#define IN_OUT(in_type, out_type)	IN(in_type), OUT(out_type)

#define REFILL(object)							\
	UVERBS_ATTR_IDR(RXE_MIGR_ATTR_REFILL_HANDLE, object,		\
			UVERBS_ACCESS_WRITE, UA_MANDATORY)

DECLARE_UVERBS_NAMED_METHOD(RXE_MIGR_METHOD_STOP,
			    IN_OUT(rxe_migr_stop, rxe_migr_status));
DECLARE_UVERBS_NAMED_METHOD(RXE_MIGR_METHOD_COMMIT,
			    IN_OUT(rxe_migr_commit, rxe_migr_status));
DECLARE_UVERBS_NAMED_METHOD(RXE_MIGR_METHOD_DUMP,
			    IN_OUT(rxe_migr_buf, rxe_migr_dump_resp));
DECLARE_UVERBS_NAMED_METHOD(RXE_MIGR_METHOD_RESOLVE,
			    IN_OUT(rxe_migr_resolve, rxe_migr_resolve_resp));
DECLARE_UVERBS_NAMED_METHOD(RXE_MIGR_METHOD_ATTACH,
			    IN_OUT(rxe_migr_attach, rxe_migr_status));
DECLARE_UVERBS_NAMED_METHOD(RXE_MIGR_METHOD_RESUME,
			    UVERBS_ATTR_FLAGS_IN(RXE_MIGR_ATTR_IN,
						 enum rxe_migr_resume_flags,
						 UA_OPTIONAL),
			    OUT(rxe_migr_status));
DECLARE_UVERBS_NAMED_METHOD(RXE_MIGR_METHOD_LOAD, IN(rxe_migr_buf));
DECLARE_UVERBS_NAMED_METHOD(RXE_MIGR_METHOD_TRACK,
			    IN_OUT(rxe_migr_track, rxe_migr_track_resp));
DECLARE_UVERBS_NAMED_METHOD(RXE_MIGR_METHOD_QP_REFILL,
			    REFILL(UVERBS_OBJECT_QP));
DECLARE_UVERBS_NAMED_METHOD(RXE_MIGR_METHOD_CQ_REFILL,
			    REFILL(UVERBS_OBJECT_CQ));
DECLARE_UVERBS_NAMED_METHOD(RXE_MIGR_METHOD_SRQ_REFILL,
			    REFILL(UVERBS_OBJECT_SRQ));

ADD_UVERBS_METHODS(rxe_migr_device, UVERBS_OBJECT_DEVICE,
		   &UVERBS_METHOD(RXE_MIGR_METHOD_STOP),
		   &UVERBS_METHOD(RXE_MIGR_METHOD_COMMIT),
		   &UVERBS_METHOD(RXE_MIGR_METHOD_DUMP),
		   &UVERBS_METHOD(RXE_MIGR_METHOD_RESOLVE),
		   &UVERBS_METHOD(RXE_MIGR_METHOD_ATTACH),
		   &UVERBS_METHOD(RXE_MIGR_METHOD_RESUME),
		   &UVERBS_METHOD(RXE_MIGR_METHOD_LOAD),
		   &UVERBS_METHOD(RXE_MIGR_METHOD_TRACK));
ADD_UVERBS_METHODS(rxe_migr_qp_methods, UVERBS_OBJECT_QP,
		   &UVERBS_METHOD(RXE_MIGR_METHOD_QP_REFILL));
ADD_UVERBS_METHODS(rxe_migr_cq_methods, UVERBS_OBJECT_CQ,
		   &UVERBS_METHOD(RXE_MIGR_METHOD_CQ_REFILL));
ADD_UVERBS_METHODS(rxe_migr_srq_methods, UVERBS_OBJECT_SRQ,
		   &UVERBS_METHOD(RXE_MIGR_METHOD_SRQ_REFILL));

ADD_UVERBS_ATTRIBUTES_SIMPLE(rxe_migr_invoke, UVERBS_OBJECT_DEVICE,
			     UVERBS_METHOD_INVOKE_WRITE,
	UVERBS_ATTR_PTR_IN(RXE_MIGR_ATTR_RESTORE,
			   UVERBS_ATTR_TYPE(struct rxe_migr_restore),
			   UA_OPTIONAL));

const struct uapi_definition rxe_migr_uapi_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &rxe_migr_device),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &rxe_migr_invoke),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_QP, &rxe_migr_qp_methods),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_CQ, &rxe_migr_cq_methods),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_SRQ, &rxe_migr_srq_methods),
	{}
};

int rxe_migr_init(void)
{
	rxe_migr_absent_init();
	rxe_migr_tomb_init();
	rxe_migr_track_init();
	return rxe_migr_proto_init();
}

void rxe_migr_exit(void)
{
	rxe_migr_proto_exit();
	rxe_migr_tomb_exit();
	rxe_migr_key_exit();
}
