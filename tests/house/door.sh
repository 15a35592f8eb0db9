#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# migr-criu waits for the word of migr-ctr, and not for ever if that has been killed.

. "$(dirname "$0")/lib.sh"

export MIGR_CTR_DOOR=$tmp/door MIGR_CTR_LINK=none
mkdir -p "$MIGR_CTR_DOOR/asked"
mkfifo "$MIGR_CTR_DOOR"/{go,says}

waits() { timeout 20 sh "$tree/vm-images/migr-criu" dump; }

say "migr-ctr is killed before somebody waits"
exec {says}<>"$MIGR_CTR_DOOR/says"
waits && fail "it has done something" || [ $? = 1 ] || fail "it waits"
read -r word <&"$says"
[ "$word" = ready ] || fail "it was not ready: $word"

say "and while somebody does"
exec {go}<>"$MIGR_CTR_DOOR/go"
(
	exec {go}>&-
	rc=0
	waits || rc=$?
	echo $rc >"$tmp/rc"
) &
read -r word <&"$says"
[ "$word" = ready ] || fail "it was not ready: $word"
exec {go}>&-
wait
[ "$(<"$tmp/rc")" = 1 ] || fail "it ends with $(<"$tmp/rc")"

say "a word that is none"
exec {go}<>"$MIGR_CTR_DOOR/go"
echo stop >&"$go"
waits && fail "it has done something" || [ $? = 1 ] || fail "it waits"
