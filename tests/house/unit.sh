#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# tests/unit counts what ctest counts, and fails when ctest itself does.

. "$(dirname "$0")/lib.sh"

export UNIT_BUILD=$tmp UNIT_CTEST=$tmp/ctest
mkdir -p "$tmp/asan" "$tmp/user/dissector"
touch "$tmp"/{asan,user/dissector}/CTestTestfile.cmake

counts() # COUNTS: for what ctest says and returns
{
	local got

	printf '#!/bin/sh\necho "%s"\nexit %s\n' "$2" "$3" >"$tmp/ctest"
	chmod +x "$tmp/ctest"
	for spare in 0 2; do
		# shellcheck disable=SC2016 # expanded there
		got=$(UNIT_SPARE=$spare "$tests/unit" sh -c '
			until [ -s "$UNIT_RESULT" ]; do sleep 0.1; done
			cat "$UNIT_RESULT"' | tail -n 1)
		[ "$got" = "$1" ] ||
			fail "$got instead of $1: ctest says $2, code $3"
	done
}

counts "24 0" "100% tests passed, 0 tests failed out of 12" 0
counts "18 6" "75% tests passed, 3 tests failed out of 12" 8
counts "0 2" "No tests were found!!!" 1
counts "24 2" "100% tests passed, 0 tests failed out of 12" 8
rm "$tmp/asan/CTestTestfile.cmake"
counts "12 1" "100% tests passed, 0 tests failed out of 12" 0
