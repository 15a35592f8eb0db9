// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Cluster keys: root sets them through a write-only module parameter, images,
 * RESUME and RESUME_ACK are signed and checked with them. Two may be set at a
 * time, so that a cluster can go from one key to the next without a gap; the
 * one set last signs.
 */
#include <crypto/utils.h>
#include <linux/hex.h>
#include <linux/kref.h>
#include <linux/module.h>

#include "rxe.h"

#define DIGEST_BYTES	32	/* of HMAC-SHA-256 */

/* who uses one has a reference: a large image takes long, and nobody waits for it */
struct migr_key {
	struct kref		ref;
	struct crypto_shash	*tfm;
	u8			id;
};

static struct migr_key *keys[2];	/* [0] was set last; NULL: none */
static bool keys_end;	/* none is set any more */
static DEFINE_SPINLOCK(key_lock);

static void migr_key_free(struct kref *ref)
{
	struct migr_key *key = container_of(ref, struct migr_key, ref);

	crypto_free_shash(key->tfm);	/* wipes the key */
	kfree(key);
}

/* Context: process */
static void migr_key_put(struct migr_key *key)
{
	if (key)
		kref_put(&key->ref, migr_key_free);
}

/*
 * Forget the key with this id. Context: key_lock held
 * Return: it, to be put without the lock, or NULL
 */
static struct migr_key *migr_key_forget(u8 id)
{
	struct migr_key *key = NULL;

	if (keys[1] && keys[1]->id == id)
		swap(key, keys[1]);
	if (keys[0] && keys[0]->id == id) {
		swap(key, keys[0]);
		swap(keys[0], keys[1]);
	}

	return key;
}

/* with a reference, the newest key, or the one with an id; or NULL */
static struct migr_key *migr_key_get(int id)
{
	struct migr_key *key = NULL;
	int i;

	spin_lock(&key_lock);
	for (i = 0; i < ARRAY_SIZE(keys) && !key; i++)
		if (keys[i] && (id < 0 || keys[i]->id == id))
			key = keys[i];
	if (key)
		kref_get(&key->ref);
	spin_unlock(&key_lock);

	return key;
}

static int migr_key_use(u8 id, const u8 *raw)
{
	struct migr_key *key, *same, *oldest;
	struct crypto_shash *tfm;
	int err;

	key = kzalloc(sizeof(*key), GFP_KERNEL);
	if (!key)
		return -ENOMEM;

	tfm = crypto_alloc_shash("hmac(sha256)", 0, 0);
	if (IS_ERR(tfm)) {
		err = PTR_ERR(tfm);
		goto err_key;
	}
	err = crypto_shash_setkey(tfm, raw, MIGR_KEY_BYTES);
	if (err)
		goto err_tfm;

	kref_init(&key->ref);
	key->tfm = tfm;
	key->id = id;

	spin_lock(&key_lock);
	if (keys_end) {
		spin_unlock(&key_lock);
		err = -ENODEV;
		goto err_tfm;
	}
	same = migr_key_forget(id);
	oldest = keys[1];
	keys[1] = keys[0];
	keys[0] = key;
	spin_unlock(&key_lock);
	migr_key_put(same);
	migr_key_put(oldest);

	return 0;

err_tfm:
	crypto_free_shash(tfm);
err_key:
	kfree(key);
	return err;
}

/*
 * migr_key parameter: "ID:HEX" sets key ID (0..255) to 32 bytes, "ID:" forgets
 * it. Never shown again.
 */
static int migr_key_set(const char *val, const struct kernel_param *kp)
{
	u8 raw[MIGR_KEY_BYTES];
	const char *colon = strchr(val, ':');
	struct migr_key *key;
	char id_str[4];
	size_t len;
	u8 id;
	int err;

	if (!colon || colon == val || colon - val >= sizeof(id_str))
		return -EINVAL;
	memcpy(id_str, val, colon - val);
	id_str[colon - val] = '\0';
	err = kstrtou8(id_str, 10, &id);
	if (err)
		return err;

	len = strcspn(colon + 1, "\n");
	if (!len) {
		spin_lock(&key_lock);
		key = migr_key_forget(id);
		spin_unlock(&key_lock);
		migr_key_put(key);
		return 0;
	}

	if (len != 2 * MIGR_KEY_BYTES || colon[1 + len + !!colon[1 + len]] ||
	    hex2bin(raw, colon + 1, MIGR_KEY_BYTES))
		err = -EINVAL;
	else
		err = migr_key_use(id, raw);
	memzero_explicit(raw, sizeof(raw));

	return err;
}

static const struct kernel_param_ops migr_key_ops = {
	.set = migr_key_set,
};

module_param_cb(migr_key, &migr_key_ops, NULL, 0200);
MODULE_PARM_DESC(migr_key, "Cluster key, ID:64 hex digits, write-only");

/**
 * rxe_migr_key_active - is there a key to sign with?
 *
 * Return: 0 or -ENOKEY
 */
int rxe_migr_key_active(void)
{
	struct migr_key *key = migr_key_get(-1);

	migr_key_put(key);

	return key ? 0 : -ENOKEY;
}

/* the first @bytes of the digest; data can be a whole image */
static int migr_key_mac(struct crypto_shash *tfm, const u8 *data, size_t length,
			u8 *mac, size_t bytes)
{
	SHASH_DESC_ON_STACK(desc, tfm);
	u8 digest[DIGEST_BYTES];
	size_t n;
	int err;

	desc->tfm = tfm;
	err = crypto_shash_init(desc);
	for (; length && !err; data += n, length -= n) {
		n = min_t(size_t, length, SZ_1M);
		err = crypto_shash_update(desc, data, n);
		cond_resched();
	}
	if (!err)
		err = crypto_shash_final(desc, digest);
	if (!err)
		memcpy(mac, digest, bytes);
	memzero_explicit(digest, sizeof(digest));
	shash_desc_zero(desc);

	return err;
}

/**
 * rxe_migr_key_sign - compute a MAC with the newest key
 * @key_id: in @data, receives the id before the MAC is computed
 * @data: a packet's input as rxe_migr_wire.h says, or an image; MAC field zero
 * @length: bytes of it
 * @mac: receives the first @bytes of the HMAC
 * @bytes: at most 32
 *
 * Context: process; sleeps.
 * Return: 0, -ENOKEY or an error of the crypto layer
 */
int rxe_migr_key_sign(u8 *key_id, const void *data, size_t length, u8 *mac,
		      size_t bytes)
{
	struct migr_key *key = migr_key_get(-1);
	int err;

	if (!key)
		return -ENOKEY;

	*key_id = key->id;
	err = migr_key_mac(key->tfm, data, length, mac, bytes);
	migr_key_put(key);

	return err;
}

/**
 * rxe_migr_key_check - verify a MAC, in constant time
 * @key_id: which key
 * @data: as for rxe_migr_key_sign()
 * @length: bytes of it
 * @mac: @bytes as received
 * @bytes: at most 32
 *
 * Context: process; sleeps.
 * Return: 0, -ENOKEY without that key, -EBADMSG
 */
int rxe_migr_key_check(u8 key_id, const void *data, size_t length,
		       const u8 *mac, size_t bytes)
{
	struct migr_key *key = migr_key_get(key_id);
	u8 want[DIGEST_BYTES];
	int err;

	if (!key)
		return -ENOKEY;

	err = migr_key_mac(key->tfm, data, length, want, bytes);
	if (!err && crypto_memneq(want, mac, bytes))
		err = -EBADMSG;
	migr_key_put(key);

	return err;
}

/* The parameter is there for a moment longer. */
void rxe_migr_key_exit(void)
{
	struct migr_key *key[2] = {};

	spin_lock(&key_lock);
	keys_end = true;
	swap(key[0], keys[0]);
	swap(key[1], keys[1]);
	spin_unlock(&key_lock);
	migr_key_put(key[0]);
	migr_key_put(key[1]);
}
