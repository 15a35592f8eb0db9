// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Is a MAC right? Only who gives Wireshark the cluster keys of the testbed
 * (Preferences > Protocols > MigrOS) is told.
 */
#include <wireshark.h>

#include <epan/prefs.h>
#include <epan/uat.h>

#include "migros.h"
#include "rxe_migr_wire.h"

/* What the MAC covers, as offsets from the BTH. */
#define OPCODE 0
#define DEST_QPN 5
#define PSN 9
#define AETH 12
#define METH 16
#define MAC (METH + MIGR_METH_MAC)

struct key {
	unsigned id;
	unsigned char *key;
	unsigned bytes;
};

static struct key *keys;
static unsigned key_count;

UAT_DEC_CB_DEF(keys, id, struct key)
UAT_BUFFER_CB_DEF(keys, key, struct key, key, bytes)

static uat_field_t key_fields[] = {
	UAT_FLD_DEC(keys, id, "Key id", "0 to 255"),
	UAT_FLD_BUFFER(keys, key, "Key", "64 hexadecimal digits"),
	UAT_END_FIELDS,
};

static void *copy_key(void *to, const void *from, size_t size _U_)
{
	const struct key *old = from;
	struct key *new = to;

	*new = *old;
	new->key = g_memdup2(old->key, old->bytes);
	return new;
}

static bool check_key(void *record, char **error)
{
	const struct key *key = record;

	*error = NULL;
	if (key->id > UINT8_MAX)
		*error = g_strdup("a key id is a number from 0 to 255");
	else if (key->bytes != MIGR_KEY_BYTES)
		*error = g_strdup("a key is 32 bytes, 64 hexadecimal digits");
	return !*error;
}

static void free_key(void *record)
{
	g_free(((struct key *)record)->key);
}

static const struct key *find_key(uint8_t id)
{
	for (unsigned i = 0; i < key_count; i++)
		if (keys[i].id == id && keys[i].bytes == MIGR_KEY_BYTES)
			return &keys[i];
	return NULL;
}

static void make_mac(const struct key *key, tvbuff_t *tvb, const uint8_t *from,
		     const uint8_t *to, uint8_t *mac)
{
	uint8_t in[MIGR_MAC_INPUT_BYTES] = { 0 };
	size_t size = 32;
	GHmac *hmac;

	in[0] = tvb_get_uint8(tvb, OPCODE);
	tvb_memcpy(tvb, in + 1, DEST_QPN, 3);
	tvb_memcpy(tvb, in + 4, PSN, 3);
	tvb_memcpy(tvb, in + 7, AETH, 4);
	tvb_memcpy(tvb, in + MIGR_MAC_METH, METH, MIGR_METH_MAC);
	/* and a MAC of 0 */
	memcpy(in + MIGR_MAC_FROM, from, 16);
	memcpy(in + MIGR_MAC_TO, to, 16);
	hmac = g_hmac_new(G_CHECKSUM_SHA256, key->key, key->bytes);
	g_hmac_update(hmac, in, sizeof(in));
	g_hmac_get_digest(hmac, mac, &size);
	g_hmac_unref(hmac);
}

/*
 * @tvb begins with the BTH and has all of the METH. The receiver takes the sender
 * to be at @from, and is at @to itself.
 */
enum migros_mac migros_check_mac(tvbuff_t *tvb, const uint8_t from[16],
				 const uint8_t to[16])
{
	const struct key *key =
		find_key(tvb_get_uint8(tvb, METH + MIGR_METH_KEY_ID));
	uint8_t mac[32]; /* all of it; the packet has the first half */

	if (!key)
		return MIGROS_MAC_UNCHECKED;
	make_mac(key, tvb, from, to, mac);
	return tvb_memeql(tvb, MAC, mac, MIGR_MAC_BYTES) ? MIGROS_MAC_BAD
							 : MIGROS_MAC_GOOD;
}

void migros_mac_init(int proto)
{
	module_t *module = prefs_register_protocol(proto, NULL);
	uat_t *uat = uat_new("MigrOS cluster keys", sizeof(struct key),
			     "migros_keys", true, &keys, &key_count,
			     UAT_AFFECTS_DISSECTION, NULL, copy_key, check_key,
			     free_key, NULL, NULL, key_fields);

	prefs_register_uat_preference(module, "keys", "Cluster keys",
				      "Keys to check MACs with", uat);
}
