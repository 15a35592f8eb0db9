/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Certificates, made when they are wanted
 */
#ifndef CERTS_H
#define CERTS_H

#include <openssl/x509.h>

struct ca {
	EVP_PKEY *key;
	X509 *cert;
};

/* writes FOLDER/NAME.crt */
struct ca ca_new(const char *folder, const char *name);
void ca_free(struct ca *ca);

/**
 * cert_new - write FOLDER/FILE.crt and FOLDER/FILE.key
 * @cn: its common name, and a host's name
 * @days: in which it expires, may be past
 * @usage: of extended keys, "serverAuth,clientAuth"
 */
void cert_new(const struct ca *ca, const char *folder, const char *file,
	      const char *cn, int days, const char *usage);

#endif
