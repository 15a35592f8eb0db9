/* SPDX-License-Identifier: GPL-2.0 */
/*
 * TLS 1.3 between hosts of one cluster: both have a certificate of its CA.
 */
#ifndef MIGRD_TLS_H
#define MIGRD_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include <openssl/ssl.h>

struct tls_files {
	const char *key, *cert, *ca; /* PEM */
};

/* the options that all programs have: -k, -c and -a */
static inline void tls_file(struct tls_files *files, int option,
			    const char *name)
{
	*(option == 'k'	  ? &files->key
	  : option == 'c' ? &files->cert
			  : &files->ca) = name;
}

static inline bool tls_has_all(const struct tls_files *files)
{
	return files->key && files->cert && files->ca;
}

/**
 * tls_context - what connections are made with
 * @server: whether they are to be accepted
 * @reason: why there is none, with the name of the file
 *
 * Return: NULL if there is none
 */
SSL_CTX *tls_context(bool server, const struct tls_files *files, char *reason,
		     size_t bytes);

/* the peer has to prove that it is @name, a host or an address */
bool tls_expect(SSL *ssl, const char *name);

/* why @ssl has failed, with what its function has returned */
void tls_reason(SSL *ssl, int ret, char *reason, size_t bytes);

/* the common name of the peer's certificate, fit for a log */
void tls_peer(SSL *ssl, char *name, size_t bytes);

/*
 * Is the peer's certificate one of somebody who moves containers (OU=operator in its subject),
 * and not of a host?
 */
bool tls_is_operator(SSL *ssl);

/* Have both peers shown the same certificate? */
bool tls_same_peer(SSL *a, SSL *b);

#endif
