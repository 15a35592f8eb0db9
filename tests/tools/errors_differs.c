// SPDX-License-Identifier: GPL-2.0
/*
 * Where a device does not do what the table of cases says. docs/verbs-errors.md
 * has the same for people.
 */
#include "errors_text.h"

const struct difference differences[] = { {} };
