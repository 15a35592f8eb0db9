// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The doorbell of a restored context.
 *
 * ib_uverbs_write() accepts a write only from the very struct cred that opened
 * the file (ib_safe_file_access()), so that nobody can trick a more privileged
 * process into writing to it. A restored process has other credentials than
 * the restorer that opened its files, and each of its threads has a struct
 * cred of its own. So when the process attaches itself to a restored context,
 * the file's credentials become its own, and the file gets operations whose
 * write lets in callers with credentials that are equal to these in every
 * respect. Such a caller borrows nothing that it does not have.
 */
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/security.h>

#include "rxe.h"

static const struct file_operations *stock_fops;
static struct file_operations doorbell_fops;

static bool groups_equal(const struct group_info *a, const struct group_info *b)
{
	int i;

	if (a == b)
		return true;
	if (!a || !b || a->ngroups != b->ngroups)
		return false;
	for (i = 0; i < a->ngroups; i++)
		if (!gid_eq(a->gid[i], b->gid[i]))
			return false;
	return true;
}

static bool caps_equal(kernel_cap_t a, kernel_cap_t b)
{
	return cap_issubset(a, b) && cap_issubset(b, a);
}

static bool creds_equal(const struct cred *a, const struct cred *b)
{
	u32 secid_a, secid_b;

	security_cred_getsecid(a, &secid_a);
	security_cred_getsecid(b, &secid_b);

	return uid_eq(a->uid, b->uid) && uid_eq(a->euid, b->euid) &&
	       uid_eq(a->suid, b->suid) && uid_eq(a->fsuid, b->fsuid) &&
	       gid_eq(a->gid, b->gid) && gid_eq(a->egid, b->egid) &&
	       gid_eq(a->sgid, b->sgid) && gid_eq(a->fsgid, b->fsgid) &&
	       groups_equal(a->group_info, b->group_info) &&
	       caps_equal(a->cap_inheritable, b->cap_inheritable) &&
	       caps_equal(a->cap_permitted, b->cap_permitted) &&
	       caps_equal(a->cap_effective, b->cap_effective) &&
	       caps_equal(a->cap_bset, b->cap_bset) &&
	       caps_equal(a->cap_ambient, b->cap_ambient) &&
	       a->securebits == b->securebits && a->user_ns == b->user_ns &&
	       secid_a == secid_b;
}

static ssize_t doorbell_write(struct file *file, const char __user *buf,
			      size_t len, loff_t *pos)
{
	const struct cred *old;
	ssize_t ret;

	/* everybody else meets the stock check */
	if (!creds_equal(current_cred(), file->f_cred))
		return stock_fops->write(file, buf, len, pos);

	old = override_creds(file->f_cred);
	ret = stock_fops->write(file, buf, len, pos);
	revert_creds(old);

	return ret;
}

/* --- what the credentials replaced --- */

/*
 * Whoever holds the file may look at f_cred without a lock, so the credentials
 * that opened it stay until nobody does.
 */
struct opener {
	struct hlist_node	node;
	struct file		*file;	/* not a reference; release removes */
	const struct cred	*cred;
};

static DEFINE_HASHTABLE(openers, 6);
static DEFINE_SPINLOCK(openers_lock);	/* also: who attaches a file */

/* Context: openers_lock held */
static struct opener *find_opener(struct file *file)
{
	struct opener *o;

	hash_for_each_possible(openers, o, node, (unsigned long)file)
		if (o->file == file)
			return o;

	return NULL;
}

static int doorbell_release(struct inode *inode, struct file *file)
{
	struct opener *o;

	spin_lock(&openers_lock);
	o = find_opener(file);
	if (o)
		hash_del(&o->node);
	spin_unlock(&openers_lock);

	if (o)
		put_cred(o->cred);
	kfree(o);

	return stock_fops->release(inode, file);
}

/* Context: openers_lock held */
static int replace_cred(struct file *file, struct opener *o)
{
	if (find_opener(file))
		return -EALREADY;

	if (!stock_fops) {
		stock_fops = file->f_op;
		doorbell_fops = *stock_fops;
		doorbell_fops.owner = THIS_MODULE;
		doorbell_fops.write = doorbell_write;
		doorbell_fops.release = doorbell_release;
	}
	if (WARN_ON_ONCE(file->f_op != stock_fops))
		return -EALREADY;

	o->file = file;
	o->cred = file->f_cred;
	hash_add(openers, &o->node, (unsigned long)file);

	/* first the credentials, then the write that relies on them */
	smp_store_release(&file->f_cred, get_current_cred());

	/* the module stays as long as a file uses its operations */
	__module_get(THIS_MODULE);
	replace_fops(file, &doorbell_fops);

	return 0;
}

/**
 * rxe_migr_open_doorbell - make the caller's credentials those of the file
 * @file: the uverbs file of a restored context, held by the caller
 *
 * Context: process, the application itself.
 * Return: 0, -EALREADY or -ENOMEM
 */
int rxe_migr_open_doorbell(struct file *file)
{
	struct opener *o = kzalloc(sizeof(*o), GFP_KERNEL);
	int err;

	if (!o)
		return -ENOMEM;

	spin_lock(&openers_lock);
	err = replace_cred(file, o);
	spin_unlock(&openers_lock);
	if (err)
		kfree(o);

	return err;
}

/**
 * rxe_migr_stock_fops - the file operations that ib_uverbs gave a file
 * @file: a uverbs file
 *
 * Return: them, whether or not the doorbell is open
 */
const struct file_operations *rxe_migr_stock_fops(struct file *file)
{
	return file->f_op == &doorbell_fops ? stock_fops : file->f_op;
}
