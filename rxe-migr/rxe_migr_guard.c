// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The guard file that keeps a context Stopped: who closes it, or dies, undoes STOP.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <rdma/restrack.h>

#include "rxe.h"

/* links between contexts and guards, rxe_migr_uc.guard and rxe_migr_guard.uc */
static DEFINE_SPINLOCK(links_lock);

/**
 * struct rxe_migr_guard - as long as this is open the context is Stopped
 * @uc: the context; NULL once it is gone. Under links_lock
 * @dev: its device, with a reference
 * @file: the context's own file, with a reference
 * @committed: closing does not mean UNSTOP. Under links_lock
 */
struct rxe_migr_guard {
	struct ib_ucontext	*uc;
	struct ib_device	*dev;
	struct file		*file;
	bool			committed;
};

/*
 * Undo whatever STOP did. It needs no memory: nobody is there to hear of a
 * failure. Context: lock of the context held
 */
static void unstop(struct ib_ucontext *uc)
{
	struct rxe_pool *pool = &to_rdev(uc->device)->qp_pool;
	struct rxe_pool_elem *elem;
	unsigned long index = 0;

	while ((elem = rxe_migr_next(pool, uc, &index))) {
		rxe_migr_unstop_qp(elem->obj);
		__rxe_put(elem);
	}
}

static void guard_free(struct rxe_migr_guard *guard)
{
	ib_device_put(guard->dev);
	fput(guard->file);
	kfree(guard);
}

static void guard_unlink(struct rxe_migr_guard *guard)
{
	spin_lock(&links_lock);
	if (guard->uc)
		to_migr_uc(guard->uc)->guard = NULL;
	spin_unlock(&links_lock);
}

/* the context of a guard, with a reference: dealloc_ucontext waits for it */
static struct rxe_migr_uc *guard_context(struct rxe_migr_guard *guard)
{
	struct rxe_migr_uc *muc = NULL;

	spin_lock(&links_lock);
	if (guard->uc && rxe_get(to_ruc(guard->uc)))
		muc = to_migr_uc(guard->uc);
	spin_unlock(&links_lock);

	return muc;
}

/*
 * Is the process that made the context being killed, with files still to close?
 * A thread whose exit_state is set has closed what it had.
 */
static bool owner_dies(struct ib_ucontext *uc)
{
	struct task_struct *owner, *t;
	bool dies = false;

	if (!rdma_restrack_get(&uc->res))
		return true;

	owner = uc->res.task;
	if (READ_ONCE(owner->signal->flags) & SIGNAL_GROUP_EXIT) {
		rcu_read_lock();
		/* for_each_thread() asks lockdep for a lock no module knows */
		list_for_each_entry_rcu(t, &owner->signal->thread_head,
					thread_node)
			if (!READ_ONCE(t->exit_state))
				dies = true;
		rcu_read_unlock();
	}
	rdma_restrack_put(&uc->res);

	return dies;
}

/*
 * Is the application dead? Then it has not come to close the context's file yet,
 * or nobody else has it: in this order, since it is dying meanwhile. Context:
 * reference to the context held
 */
static bool is_dead(struct rxe_migr_guard *guard, struct ib_ucontext *uc)
{
	return owner_dies(uc) || file_count(guard->file) <= 1;
}

static int guard_release(struct inode *inode, struct file *file)
{
	struct rxe_migr_guard *guard = file->private_data;
	struct rxe_migr_uc *muc = guard_context(guard);

	if (muc) {
		mutex_lock(&muc->lock);
		/* what QPs of the dead acknowledged would be in no image */
		if (!guard->committed && !is_dead(guard, &muc->uc.ibuc))
			unstop(&muc->uc.ibuc);
		muc->stopped = false;
		guard_unlink(guard);
		mutex_unlock(&muc->lock);
		rxe_put(&muc->uc);
	}

	guard_free(guard);
	return 0;
}

static const struct file_operations guard_fops = {
	.owner		= THIS_MODULE,
	.release	= guard_release,
	.llseek		= noop_llseek,
};

/**
 * rxe_migr_guard_new - a guard for a context, linked to it
 * @uc: the context, which nobody else can stop meanwhile
 * @file: its own file; the reference goes to the guard, or is given back
 *
 * Return: the guard, or -ENOMEM, -ENODEV, or -EALREADY if there is one
 */
struct rxe_migr_guard *rxe_migr_guard_new(struct ib_ucontext *uc,
					  struct file *file)
{
	struct rxe_migr_uc *muc = to_migr_uc(uc);
	struct rxe_migr_guard *guard;

	guard = kzalloc(sizeof(*guard), GFP_KERNEL);
	if (!guard || !ib_device_try_get(uc->device)) {
		kfree(guard);
		fput(file);
		return ERR_PTR(guard ? -ENODEV : -ENOMEM);
	}
	guard->uc = uc;
	guard->dev = uc->device;
	guard->file = file;

	spin_lock(&links_lock);
	if (muc->guard) {
		spin_unlock(&links_lock);
		guard_free(guard);
		return ERR_PTR(-EALREADY);
	}
	muc->guard = guard;
	spin_unlock(&links_lock);

	return guard;
}

/**
 * rxe_migr_guard_drop - give up a guard that has no file yet
 * @guard: the guard
 */
void rxe_migr_guard_drop(struct rxe_migr_guard *guard)
{
	guard_unlink(guard);
	guard_free(guard);
}

/**
 * rxe_migr_guard_file - a guard's file, with a descriptor that is not visible yet
 * @guard: the guard, which goes with the file from now on
 * @file: receives it
 *
 * Return: the descriptor, or -errno
 */
int rxe_migr_guard_file(struct rxe_migr_guard *guard, struct file **file)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);

	if (fd < 0)
		return fd;

	*file = anon_inode_getfile("[rxe_migr_guard]", &guard_fops, guard,
				   O_CLOEXEC);
	if (IS_ERR(*file)) {
		put_unused_fd(fd);
		return PTR_ERR(*file);
	}

	return fd;
}

/**
 * rxe_migr_guard_commit - closing the guard does not mean UNSTOP any more
 * @muc: the context; the lock is held
 *
 * Return: 0, or -EINVAL if it is not Stopped
 */
int rxe_migr_guard_commit(struct rxe_migr_uc *muc)
{
	int err = 0;

	spin_lock(&links_lock);
	if (muc->stopped) {
		muc->guard->committed = true;
		WRITE_ONCE(muc->committed, true);
	} else {
		err = -EINVAL;
	}
	spin_unlock(&links_lock);

	return err;
}

/**
 * rxe_migr_uc_init - hook in rxe_alloc_ucontext()
 * @uc: the context
 */
void rxe_migr_uc_init(struct rxe_ucontext *uc)
{
	struct rxe_migr_uc *muc = to_migr_uc(&uc->ibuc);

	mutex_init(&muc->lock);
	mutex_init(&muc->track_lock);
	muc->id = get_random_u64() ?: 1;
}

/**
 * rxe_migr_uc_cleanup - hook in rxe_dealloc_ucontext()
 * @uc: the context
 */
void rxe_migr_uc_cleanup(struct rxe_ucontext *uc)
{
	struct rxe_migr_uc *muc = to_migr_uc(&uc->ibuc);

	spin_lock(&links_lock);
	if (muc->guard)
		muc->guard->uc = NULL;
	spin_unlock(&links_lock);
	rxe_migr_track_cleanup(muc);
	rxe_migr_unload(muc);
}
