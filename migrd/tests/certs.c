// SPDX-License-Identifier: GPL-2.0
#include "certs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "check.h"

enum {
	DAY = 24 * 60 * 60
};

static void extend(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509_EXTENSION *e;
	X509V3_CTX ctx;

	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	MUST(e && X509_add_ext(cert, e, -1) == 1);
	X509_EXTENSION_free(e);
}

static X509 *begin(EVP_PKEY *key, const char *cn, X509_NAME *issuer, int days)
{
	static long serial;
	X509 *cert = X509_new();
	X509_NAME *name;

	MUST(cert && X509_set_version(cert, X509_VERSION_3) == 1);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), ++serial);
	X509_gmtime_adj(X509_getm_notBefore(cert), -30L * DAY);
	X509_gmtime_adj(X509_getm_notAfter(cert), (long)days * DAY);
	MUST(X509_set_pubkey(cert, key) == 1);
	name = X509_get_subject_name(cert);
	MUST(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
					(const unsigned char *)cn, -1, -1,
					0) == 1);
	/* the one name that is no host's */
	MUST(strcmp(cn, "admin") != 0 ||
	     X509_NAME_add_entry_by_txt(name, "OU", MBSTRING_ASC,
					(const unsigned char *)"operator", -1,
					-1, 0) == 1);
	MUST(X509_set_issuer_name(cert, issuer ? issuer : name) == 1);
	return cert;
}

static FILE *new_file(const char *folder, const char *name, const char *suffix,
		      int mode)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s.%s", folder, name, suffix);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
	MUST(fd >= 0);
	return fdopen(fd, "w");
}

static void save(X509 *cert, EVP_PKEY *key, const char *folder,
		 const char *name)
{
	FILE *f = new_file(folder, name, "crt", 0644);

	MUST(f && PEM_write_X509(f, cert) == 1 && !fclose(f));
	f = new_file(folder, name, "key", 0600);
	MUST(f &&
	     PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL) == 1 &&
	     !fclose(f));
}

struct ca ca_new(const char *folder, const char *name)
{
	struct ca ca = { .key = EVP_EC_gen("P-256") };

	MUST(ca.key);
	ca.cert = begin(ca.key, name, NULL, 10);
	extend(ca.cert, ca.cert, NID_basic_constraints, "critical,CA:TRUE");
	extend(ca.cert, ca.cert, NID_subject_key_identifier, "hash");
	MUST(X509_sign(ca.cert, ca.key, EVP_sha256()));
	save(ca.cert, ca.key, folder, name);
	return ca;
}

void ca_free(struct ca *ca)
{
	EVP_PKEY_free(ca->key);
	X509_free(ca->cert);
}

void cert_new(const struct ca *ca, const char *folder, const char *file,
	      const char *cn, int days, const char *usage)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	char names[256];
	X509 *cert;

	MUST(key);
	cert = begin(key, cn, X509_get_subject_name(ca->cert), days);
	extend(cert, ca->cert, NID_basic_constraints, "critical,CA:FALSE");
	extend(cert, ca->cert, NID_ext_key_usage, usage);
	/* not where the file of queue pairs has them: that may be a container's address */
	snprintf(names, sizeof(names), "DNS:%s,IP:10.20.0.2", cn);
	extend(cert, ca->cert, NID_subject_alt_name, names);
	MUST(X509_sign(cert, ca->key, EVP_sha256()));
	save(cert, key, folder, file);
	EVP_PKEY_free(key);
	X509_free(cert);
}
