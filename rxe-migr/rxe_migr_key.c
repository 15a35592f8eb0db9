// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Cluster keys: root sets them through a write-only module parameter, images,
 * RESUME and RESUME_ACK are signed and checked with them. Two may be set at a
 * time, so that a cluster can go from one key to the next without a gap; the
 * one set last signs.
 */
#include <crypto/utils.h>
#include <linux/hex.h>
#include <linux/module.h>
#include <linux/rwsem.h>

#include "rxe.h"

#define DIGEST_BYTES	32	/* of HMAC-SHA-256 */

struct migr_key {
	struct crypto_shash	*tfm;	/* NULL: slot is empty */
	u8			id;
};

static struct migr_key keys[2];		/* [0] was set last */
static DECLARE_RWSEM(key_sem);

static void key_clear(struct migr_key *key)
{
	if (key->tfm)
		crypto_free_shash(key->tfm);	/* wipes the key */
	key->tfm = NULL;
}

/* forget the key with this id. Context: key_sem held for writing */
static void key_forget(u8 id)
{
	if (keys[1].tfm && keys[1].id == id)
		key_clear(&keys[1]);
	if (keys[0].tfm && keys[0].id == id) {
		key_clear(&keys[0]);
		swap(keys[0], keys[1]);
	}
}

static int key_set(u8 id, const u8 *raw)
{
	struct crypto_shash *tfm;
	int err;

	tfm = crypto_alloc_shash("hmac(sha256)", 0, 0);
	if (IS_ERR(tfm))
		return PTR_ERR(tfm);

	err = crypto_shash_setkey(tfm, raw, MIGR_KEY_BYTES);
	if (err) {
		crypto_free_shash(tfm);
		return err;
	}

	down_write(&key_sem);
	key_forget(id);
	key_clear(&keys[1]);
	keys[1] = keys[0];
	keys[0].tfm = tfm;
	keys[0].id = id;
	up_write(&key_sem);

	return 0;
}

/*
 * migr_key parameter: "ID:HEX" sets key ID (0..255) to 32 bytes, "ID:" forgets
 * it. Never shown again.
 */
static int migr_key_set(const char *val, const struct kernel_param *kp)
{
	u8 raw[MIGR_KEY_BYTES];
	const char *colon = strchr(val, ':');
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
		down_write(&key_sem);
		key_forget(id);
		up_write(&key_sem);
		return 0;
	}

	if (len != 2 * MIGR_KEY_BYTES || colon[1 + len + !!colon[1 + len]] ||
	    hex2bin(raw, colon + 1, MIGR_KEY_BYTES))
		err = -EINVAL;
	else
		err = key_set(id, raw);
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
	int err;

	down_read(&key_sem);
	err = keys[0].tfm ? 0 : -ENOKEY;
	up_read(&key_sem);

	return err;
}

/* the first @bytes of the digest; data can be a whole image */
static int key_mac(struct crypto_shash *tfm, const u8 *data, size_t length,
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
	int err = -ENOKEY;

	down_read(&key_sem);
	if (keys[0].tfm) {
		*key_id = keys[0].id;
		err = key_mac(keys[0].tfm, data, length, mac, bytes);
	}
	up_read(&key_sem);

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
	u8 want[DIGEST_BYTES];
	int err = -ENOKEY;
	int i;

	down_read(&key_sem);
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		if (!keys[i].tfm || keys[i].id != key_id)
			continue;
		err = key_mac(keys[i].tfm, data, length, want, bytes);
		if (!err && crypto_memneq(want, mac, bytes))
			err = -EBADMSG;
		break;
	}
	up_read(&key_sem);

	return err;
}

void rxe_migr_key_exit(void)
{
	key_clear(&keys[0]);
	key_clear(&keys[1]);
}
