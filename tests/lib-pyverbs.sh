# shellcheck shell=bash disable=SC2016 # expanded by the nodes' shells
# SPDX-License-Identifier: GPL-2.0
#
# rdma-core's tests of verbs, on a node's device: sourced after lib.sh.

pyverbs=/tmp/pyverbs # on the node
run_env='' # of all that runs, as words for env(1)

# Those of other devices are left away, since all that is there is loaded.
copy="rm -rf $pyverbs && mkdir $pyverbs &&
	cp -r /usr/share/doc/rdma-core/tests $pyverbs/ &&
	cd $pyverbs/tests && rm -f test_mlx5* test_efa* test_cuda* &&
	gunzip *.gz"
prepare() { ask "$1" "$copy"; } # NODE

# As rdma-core's run_tests.py, but a process for each test module: all in one
# end in a crash of the interpreter while it tidies up, on any rxe. They are
# children of one that has loaded everything, which takes longest. More of Python
# may be said in MORE.
runner='
import os, signal, sys, unittest
from importlib.machinery import SourceFileLoader
from args_parser import parser

dev, limit, names = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
sys.argv[1:] = ["--dev", dev, "--gid", "1"]
tests = SourceFileLoader("tests", os.path.abspath("__init__.py")).load_module()
parser.parse_args()
exec(os.environ.get("MORE", ""))
for name in names:
    child = os.fork()
    if not child:
        signal.alarm(limit)
        unittest.main(module=tests, argv=["tests", "-v", "tests." + name], exit=False)
        sys.stderr.flush()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status:
        print("\nMODULE ERROR", name, status, flush=True)
'

# The name and the result of a test may have other output, or its description,
# between them. A module that crashes, hangs or has no tests has a result, too.
results='
	function module(test) { sub(/[.].*/, "", test); return test }
	BEGIN { for (i = split(tests, t, " "); i; i--) asked[module(t[i])] }
	match($0, /^test_[a-z0-9_]+ \([^)]*\)/) {
		name = $2
		gsub(/[()]|tests\./, "", name)
	}
	match($0, /(ok|ERROR|FAIL|skipped .*)$/) && name != "" {
		print name, $0 ~ /skipped .*$/ ? "skipped" : $NF
		delete asked[module(name)]
		name = ""
	}
	/^MODULE ERROR / { print $3 ".module ERROR"; delete asked[module($3)]; name = "" }
	END { for (m in asked) print m ".module none" }'

# stdout: "NAME RESULT" lines
run_on() # NODE TEST...
{
	ask "$1" "cd $pyverbs/tests && env $run_env python3 -c '$runner' \
			$(rdma_dev "$1") $(seconds 300) ${*:2} 2>&1 |
		tee $pyverbs/log" | awk -v tests="${*:2}" "$results"
}

# as_good NODE RESULT NODE RESULT NAME: of a test that differed, which is repeated three
# times on both nodes. Each time the second has to be as good as the first; or all that
# it gives the first gives, too, which then leaves it to chance.
as_good()
{
	local a b bad=0 first=" $2 " second=$4

	for _ in 1 2 3; do
		a=$(run_on "$1" "$5" | cut -d' ' -f2) || true
		b=$(run_on "$3" "$5" | cut -d' ' -f2) || true
		echo "$5, again: ${a:-none} on $1, ${b:-none} on $3"
		first+="$a " second+=" ${b:-none}"
		[[ -n $b && ($b = ok || $b = "$a") ]] || bad=1
	done
	[ $bad != 0 ] || return 0
	for b in $second; do
		[[ $first = *" $b "* ]] || return 1
	done
}

# same_results NODE FILE NODE FILE: of two runs, sorted. What differs is repeated,
# but of a module there is nothing to repeat: some of its results are missing.
same_results()
{
	local name a b bad=0

	while read -r name a b <&3; do
		echo "$name: $a on $1, $b on $3"
		[[ $name = *.module ]] || ! as_good "$1" "$a" "$3" "$b" "$name" ||
			continue
		case $name in
		*.test_resize_cq) echo "$name: left to chance by rxe" ;;
		*) bad=1 ;;
		esac
	done 3< <(join -a 1 -a 2 -e none -o 0,1.2,2.2 "$2" "$4" |
		awk '$2 != $3')
	return $bad
}
