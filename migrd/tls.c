// SPDX-License-Identifier: GPL-2.0
#include "tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "note.h"

#define MOST_OF_A_CHAIN 32768 /* bytes */

static void last_reason(const char *what, char *reason, size_t bytes)
{
	unsigned long err = ERR_peek_last_error();
	const char *why = err ? ERR_reason_error_string(err) : NULL;

	snprintf(reason, bytes, "%s: %s", what,
		 why ? why : "OpenSSL does not say why");
	ERR_clear_error();
}

/* The library's own words for this are hard to understand. */
static bool can_read(const char *file, bool secret, char *reason, size_t bytes)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		snprintf(reason, bytes, "%s: %s", file, strerror(errno));
		if (fd >= 0)
			close(fd);
		return false;
	}
	close(fd);
	if (secret && st.st_mode & S_IRWXO) {
		snprintf(reason, bytes, "%s: others may use this private key",
			 file);
		return false;
	}
	return true;
}

static bool load(SSL_CTX *ctx, const struct tls_files *f, char *reason,
		 size_t bytes)
{
	const char *wrong = NULL;

	if (!can_read(f->ca, false, reason, bytes) ||
	    !can_read(f->cert, false, reason, bytes) ||
	    !can_read(f->key, true, reason, bytes))
		return false;
	if (SSL_CTX_load_verify_file(ctx, f->ca) != 1)
		wrong = f->ca;
	else if (SSL_CTX_use_certificate_file(ctx, f->cert, SSL_FILETYPE_PEM) !=
		 1)
		wrong = f->cert;
	else if (SSL_CTX_use_PrivateKey_file(ctx, f->key, SSL_FILETYPE_PEM) !=
			 1 ||
		 SSL_CTX_check_private_key(ctx) != 1)
		wrong = f->key;
	if (wrong)
		last_reason(wrong, reason, bytes);
	return !wrong;
}

SSL_CTX *tls_context(bool server, const struct tls_files *files, char *reason,
		     size_t bytes)
{
	SSL_CTX *ctx =
		SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());

	if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) != 1) {
		last_reason("TLS 1.3", reason, bytes);
		SSL_CTX_free(ctx);
		return NULL;
	}
	SSL_CTX_set_verify(ctx,
			   SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
			   NULL);
	/* The CA has signed it itself. */
	SSL_CTX_set_verify_depth(ctx, 0);
	SSL_CTX_set_max_cert_list(ctx, MOST_OF_A_CHAIN);
	/* A session that is resumed would outlive its certificate. */
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
	SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
				      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	if (!load(ctx, files, reason, bytes)) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	return ctx;
}

bool tls_expect(SSL *ssl, const char *name)
{
	struct in6_addr addr;

	if (inet_pton(AF_INET, name, &addr) == 1 ||
	    inet_pton(AF_INET6, name, &addr) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl),
						     name) == 1;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_WILDCARDS);
	return SSL_set1_host(ssl, name) == 1 &&
	       SSL_set_tlsext_host_name(ssl, name) == 1;
}

void tls_reason(SSL *ssl, int ret, char *reason, size_t bytes)
{
	long verified = SSL_get_verify_result(ssl);
	int saved = errno;

	if (verified != X509_V_OK) {
		snprintf(reason, bytes, "the peer's certificate: %s",
			 X509_verify_cert_error_string(verified));
		ERR_clear_error();
		return;
	}
	switch (SSL_get_error(ssl, ret)) {
	case SSL_ERROR_ZERO_RETURN:
		snprintf(reason, bytes, "the peer has closed the connection");
		break;
	case SSL_ERROR_SYSCALL:
		snprintf(reason, bytes, "%s",
			 saved ? strerror(saved) : "the connection has ended");
		break;
	default:
		last_reason("TLS", reason, bytes);
	}
	ERR_clear_error();
}

void tls_peer(SSL *ssl, char *name, size_t bytes)
{
	X509 *cert = SSL_get0_peer_certificate(ssl);

	if (!cert ||
	    X509_NAME_get_text_by_NID(X509_get_subject_name(cert),
				      NID_commonName, name, (int)bytes) < 0)
		snprintf(name, bytes, "no name");
	note_clean(name);
}

bool tls_is_operator(SSL *ssl)
{
	X509 *cert = SSL_get0_peer_certificate(ssl);
	char unit[32];

	return cert &&
	       X509_NAME_get_text_by_NID(X509_get_subject_name(cert),
					 NID_organizationalUnitName, unit,
					 sizeof(unit)) > 0 &&
	       !strcmp(unit, "operator");
}

bool tls_same_peer(SSL *a, SSL *b)
{
	const X509 *one = SSL_get0_peer_certificate(a),
		   *other = SSL_get0_peer_certificate(b);

	return one && other && !X509_cmp(one, other);
}
