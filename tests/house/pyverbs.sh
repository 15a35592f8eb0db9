#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# tests/lib-pyverbs.sh: a module that crashes, or of which nothing is heard, has a
# result that is not ok; and what fails now and then is told from what is left to chance.

. "$(dirname "$0")/lib.sh"

. "$tree/tests/lib-pyverbs.sh"

# This machine is the node.
# shellcheck disable=SC2034 # for run_on
pyverbs=$tmp
ask() { bash -c "$2"; }
rdma_dev() { echo some; }
seconds() { echo $(($1 / 100)); } # a fast machine

a_module() # NAME LINE...
{
	echo "importlib.import_module('.test_$1', __name__)" >>"$tmp/tests/__init__.py"
	printf '%s\n' 'import os, unittest' 'class Test(unittest.TestCase):' \
		"${@:2}" >"$tmp/tests/test_$1.py"
}

mkdir "$tmp/tests"
printf '%s\n' 'import importlib' 'tests = importlib.import_module(".", __name__)' \
	>"$tmp/tests/__init__.py"
printf '%s\n' 'class parser:' '    def parse_args(): pass' \
	>"$tmp/tests/args_parser.py"
a_module good '    def test_a(self): pass' '    def test_b(self): self.skipTest("no")'
a_module bad '    def test_a(self): self.fail()'
a_module aborts '    def test_a(self): pass' '    def test_b(self): os.abort()'
a_module empty '    pass'
a_module hangs '    def test_a(self): import time; time.sleep(100)'

say "all results, and those of modules"
cat >"$tmp/wanted" <<-END
	test_aborts.Test.test_a ok
	test_aborts.module ERROR
	test_bad.Test.test_a FAIL
	test_empty.module none
	test_good.Test.test_a ok
	test_good.Test.test_b skipped
	test_hangs.module ERROR
END
run_on n1 test_good test_aborts test_empty test_hangs test_bad | LC_ALL=C sort >"$tmp/got"
diff "$tmp/wanted" "$tmp/got" || fail "see $tmp/log: $(cat "$tmp/log")"

say "a single test"
[ "$(run_on n1 test_good.Test.test_b)" = "test_good.Test.test_b skipped" ] ||
	fail "$(cat "$tmp/log")"

say "what differs is repeated, and is well if it is the same then"
grep -v "test_aborts.module" "$tmp/got" >"$tmp/good"
sed 's/test_good.Test.test_b skipped/test_good.Test.test_b ok/' "$tmp/good" >"$tmp/other"
same_results n1 "$tmp/good" n2 "$tmp/other" || fail "it is the same"
say "but not what a module has not come to"
! same_results n1 "$tmp/good" n2 "$tmp/got" || fail "it crashed"

# The results of a test, from the first run on, of stock and of ours
repeated() # STOCK OURS
{
	printf 'test_x.X.test_y %s\n' "${1%% *}" >"$tmp/stock"
	printf 'test_x.X.test_y %s\n' "${2%% *}" >"$tmp/ours"
	tr ' ' '\n' <<<"$1" >"$tmp/n1"
	tr ' ' '\n' <<<"$2" >"$tmp/n2"
	(
		# shellcheck disable=SC2317,SC2329 # as_good calls it
		run_on() # NODE NAME
		{
			sed -i 1d "$tmp/$1"
			echo "$2 $(head -n 1 "$tmp/$1")"
		}
		same_results n1 "$tmp/stock" n2 "$tmp/ours"
	)
}

say "nor what fails again, unless the stock module fails, too, now and then"
repeated "ok ok ok ok" "ERROR ok ok ok" || fail "that was once"
repeated "FAIL FAIL FAIL ok" "ok ok ok ok" || fail "it is better"
repeated "ok FAIL ok ok" "FAIL ok FAIL ok" || fail "stock does that, too"
! repeated "ok ok ok ok" "FAIL ok FAIL ok" || fail "it fails half of the time"
! repeated "ok FAIL ok ok" "FAIL ok ERROR ok" || fail "that is another failure"
! repeated "ok ok ok ok" "FAIL ok ok" || fail "there was no result at last"
