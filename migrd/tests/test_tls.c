// SPDX-License-Identifier: GPL-2.0
/*
 * Who may come in
 */
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/pem.h>

#include "certs.h"
#include "rig.h"

static void test_peers(void)
{
	struct ca ca, other;
	struct client c;
	char path[128], link[128];

	puts("certificates");
	client_open(&c);
	CHECK(strstr(answer, "\"migrd\":1") && strstr(answer, "\"host\":\""));
	client_close(&c);
	CHECK(daemon_logged("127.0.0.1: n1 is connected"));

	CHECK(!client_try(&c, NULL, "ca", TLS1_3_VERSION));
	CHECK(strstr(answer, "certificate required"), "%s", answer);

	other = ca_new(dir, "other");
	cert_new(&other, dir, "stranger", "n1", 1, "serverAuth,clientAuth");
	CHECK(!client_try(&c, "stranger", "ca", TLS1_3_VERSION));
	CHECK(daemon_logged("unable to get local issuer"));
	/* we do not believe it either */
	CHECK(!client_try(&c, "n1", "other", TLS1_3_VERSION));
	CHECK(strstr(answer, "certificate verify failed"), "%s", answer);
	/* the same name, another key */
	ca_free(&other);
	other = ca_new(dir, "ca2");
	snprintf(path, sizeof(path), "%s/ca.key", dir);
	snprintf(link, sizeof(link), "%s/ca.crt", dir);
	ca = (struct ca){ 0 };
	{
		FILE *f = fopen(path, "r"), *g = fopen(link, "r");

		MUST(f && g);
		ca.key = PEM_read_PrivateKey(f, NULL, NULL, NULL);
		ca.cert = PEM_read_X509(g, NULL, NULL, NULL);
		fclose(f);
		fclose(g);
		MUST(ca.key && ca.cert);
	}
	X509_free(other.cert);
	other.cert = X509_dup(ca.cert);
	cert_new(&other, dir, "forged", "n1", 1, "serverAuth,clientAuth");
	CHECK(!client_try(&c, "forged", "ca", TLS1_3_VERSION));
	CHECK(daemon_logged("certificate signature failure"));

	cert_new(&ca, dir, "old", "n1", -1, "serverAuth,clientAuth");
	CHECK(!client_try(&c, "old", "ca", TLS1_3_VERSION));
	CHECK(strstr(answer, "certificate expired"), "%s", answer);
	CHECK(daemon_logged("certificate has expired"));
	cert_new(&ca, dir, "mail", "n1", 1, "emailProtection");
	CHECK(!client_try(&c, "mail", "ca", TLS1_3_VERSION));
	CHECK(daemon_logged("unsuitable certificate purpose"));
	ca_free(&other);
	ca_free(&ca);
}

static void test_versions(void)
{
	struct client c;

	puts("versions");
	CHECK(!client_try(&c, "n1", "ca", TLS1_2_VERSION));
	CHECK(strstr(answer, "protocol version"), "%s", answer);
	client_open(&c);
	CHECK(SSL_version(c.ssl) == TLS1_3_VERSION);
	CHECK(!SSL_SESSION_is_resumable(SSL_get_session(c.ssl)));
	client_close(&c);
}

static bool ends(int fd)
{
	char byte;
	ssize_t n;

	while ((n = recv(fd, &byte, 1, 0)) > 0)
		;
	return !n || errno == ECONNRESET;
}

static void test_garbage(void)
{
	static char all[4096];
	int fd;

	puts("what is no TLS");
	memset(all, 'x', sizeof(all));
	fd = dial();
	MUST(send(fd, "processes\n", 10, MSG_NOSIGNAL) == 10);
	CHECK(ends(fd));
	close(fd);
	fd = dial();
	send(fd, all, sizeof(all), MSG_NOSIGNAL);
	CHECK(ends(fd));
	close(fd);
	/* half a record */
	fd = dial();
	MUST(send(fd, "\x16\x03\x01\x02\x00\x01", 6, MSG_NOSIGNAL) == 6);
	close(fd);
	CHECK(SOME_TIME(!daemon_children()));
}

/* Who says nothing is not waited for. Others of the address have to, and not too many. */
static void test_slow(void)
{
	enum {
		SLOW = 20
	};
	struct client c;
	int fd[SLOW + 2];

	puts("slow peers");
	daemon_forget_log();
	CHECK(SOME_TIME(!daemon_children()));
	for (int i = 0; i < 4; i++) {
		fd[i] = dial();
		MUST(fd[i] >= 0);
	}
	CHECK(SOME_TIME(daemon_children() == 4));
	client_open(&c);
	CHECK(daemon_logged("refused: the peer takes too long"));
	for (int i = 0; i < 4; i++) {
		CHECK(ends(fd[i]));
		close(fd[i]);
	}
	client_close(&c);
	CHECK(SOME_TIME(!daemon_children()));

	for (int i = 0; i < SLOW + 2; i++) {
		fd[i] = dial();
		MUST(fd[i] >= 0);
	}
	CHECK(ends(fd[SLOW]) && ends(fd[SLOW + 1]));
	CHECK(daemon_logged("too many of this address"));
	CHECK(daemon_children() == 4);
	for (int i = 0; i < SLOW + 2; i++)
		close(fd[i]);
	CHECK(SOME_TIME(!daemon_children()));
	/* a byte now and then is not enough */
	fd[0] = dial();
	for (int i = 0; i < 40; i++) {
		if (send(fd[0], "\x16\x03\x01\x02\x00\x01" + i % 5, 1,
			 MSG_NOSIGNAL) < 0)
			break;
		usleep(200000);
	}
	CHECK(ends(fd[0]));
	close(fd[0]);
}

/* Who has many addresses takes the places of those without certificates, and no others. */
static void test_addresses(void)
{
	enum {
		ADDRESSES = 16,
		EACH = 4,
		MOST = 32,
	};
	int fd[ADDRESSES * EACH];
	struct client c;

	puts("slow peers of many addresses");
	daemon_forget_log();
	CHECK(SOME_TIME(!daemon_children()));
	for (int i = 0; i < ADDRESSES * EACH; i++) {
		fd[i] = dial_from(2 + i / EACH);
		MUST(fd[i] >= 0);
	}
	CHECK(SOME_TIME(daemon_children() == MOST));
	CHECK(ends(fd[0]));
	CHECK(daemon_children() <= MOST);
	client_open(&c);
	client_close(&c);
	for (int i = 0; i < ADDRESSES * EACH; i++)
		close(fd[i]);
	CHECK(!daemon_logged_now("there are too many connections"));
	CHECK(SOME_TIME(!daemon_children()));
}

/* The queue is full, of few addresses: others come in all the same, at once or in their turn. */
static void test_full_queue(void)
{
	enum {
		FEW = 4,  /* addresses */
		SOME = 4, /* of each that have a child */
		EACH = 20,
		ALL = FEW * EACH,
		MORE = 4 * SOME, /* so that nobody may have a child any more */
	};
	int fd[ALL + MORE], another;
	struct client c;
	char byte;

	puts("slow peers of few addresses, and many of each");
	daemon_forget_log();
	CHECK(SOME_TIME(!daemon_children()));
	for (int i = 0; i < ALL; i++) {
		fd[i] = dial_from(2 + i % FEW);
		MUST(fd[i] >= 0);
		if (i == FEW * SOME - 1)
			CHECK(SOME_TIME(daemon_children() == FEW * SOME));
	}
	client_open(&c);
	client_close(&c);
	CHECK(SOME_TIME(daemon_children() == FEW * SOME));
	for (int i = 0; i < MORE; i++) {
		fd[ALL + i] = dial_from(2 + FEW + i / SOME);
		MUST(fd[ALL + i] >= 0);
	}
	CHECK(SOME_TIME(daemon_children() == FEW * SOME + MORE));
	another = dial();
	MUST(another >= 0);
	CHECK(ends(fd[ALL - 1]));
	CHECK(daemon_logged("refused: fewer of another address wait"));
	CHECK(recv(another, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	close(another);
	for (int i = 0; i < ALL + MORE; i++)
		close(fd[i]);
	CHECK(SOME_TIME(!daemon_children()));
}

/* Many knock, and at the first of them there is a signal: it is not the last thing. */
static void test_signal(void)
{
	enum {
		MANY = 25
	};
	char path[128], log[16384];
	int fd[MANY];
	size_t n;
	FILE *f;

	puts("a signal while many knock");
	CHECK(!daemon_logged_now("child"));
	daemon_forget_log();
	daemon_signal(SIGSTOP);
	for (int i = 0; i < MANY; i++) {
		fd[i] = dial();
		MUST(fd[i] >= 0);
	}
	snprintf(path, sizeof(path), "%s/signal", dir);
	f = fopen(path, "w");
	MUST(f && !fclose(f));
	daemon_signal(SIGCONT);
	CHECK(daemon_logged("too many of this address") &&
	      daemon_logged("certificates are read again"));
	snprintf(path, sizeof(path), "%s/log", dir);
	f = fopen(path, "r");
	MUST(f);
	n = fread(log, 1, sizeof(log) - 1, f);
	fclose(f);
	log[n] = 0;
	CHECK(strstr(log, "certificates are read again") <
		      strstr(log, "too many of this address"),
	      "%s", log);
	for (int i = 0; i < MANY; i++)
		close(fd[i]);
	CHECK(SOME_TIME(!daemon_children()));
}

/* one after the other, so that they are known */
static void test_many(void)
{
	static struct client c[65];
	int n = 0, fd;

	puts("many peers");
	daemon_forget_log();
	CHECK(SOME_TIME(!daemon_children()));
	for (; n < 64; n++)
		client_open(&c[n]);
	CHECK(!client_try(&c[64], "n1", "ca", TLS1_3_VERSION));
	CHECK(daemon_logged("too many connections"));
	/* who comes when there is no place has one when somebody has gone */
	fd = dial();
	MUST(fd >= 0);
	client_die(&c[--n]);
	CHECK(daemon_logged("refused: the peer takes too long"));
	CHECK(ends(fd));
	close(fd);
	CHECK(SOME_TIME(daemon_children() == 63));
	client_open(&c[n++]);
	while (n > 0)
		client_close(&c[--n]);
	CHECK(SOME_TIME(!daemon_children()));
}

static void test_new_files(void)
{
	struct ca other = ca_new(dir, "ca");
	struct client c;
	char path[128];

	puts("other files");
	cert_new(&other, dir, "n1", "n1", 1, "serverAuth,clientAuth");
	cert_new(&other, dir, "n2", "n2", 1, "serverAuth,clientAuth");
	snprintf(path, sizeof(path), "%s/n2.key", dir);
	MUST(!chmod(path, 0604));
	daemon_signal(SIGHUP);
	CHECK(daemon_logged("others may use this private key"));
	CHECK(!client_try(&c, "n1", "ca", TLS1_3_VERSION));
	MUST(!chmod(path, 0600));
	daemon_signal(SIGHUP);
	CHECK(SOME_TIME(client_try(&c, "n1", "ca", TLS1_3_VERSION)));
	client_close(&c);
	ca_free(&other);
}

int main(void)
{
	rig_begin();
	daemon_start("run", "none");
	test_peers();
	test_versions();
	test_garbage();
	test_slow();
	test_addresses();
	test_full_queue();
	test_many();
	test_new_files();
	test_signal();
	CHECK(!daemon_end());
	CHECK(!daemon_logged_now("child"));
	rig_end();
	return check_result();
}
