#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Parts of lab by themselves: for how long an answer about KVM is believed.

. "$(dirname "$0")/lib.sh"

. "$tree/vm-images/lab/options.sh"

images=$tmp/images
toolbox=false # whose guests do not run
mkdir "$images"
answer() { accel | tail -n 1; }

say "whether there is KVM is asked once, after each boot of the host"
echo "kvm of-another-boot" >"$images/accel"
[ "$(answer)" = tcg ] || fail "an old answer is believed"
echo "kvm $(cat /proc/sys/kernel/random/boot_id)" >"$images/accel"
[ "$(answer)" = kvm ] || fail "it is asked again"
