#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What migrctl and migr-mover can say stands in docs/troubleshooting.md: of each message four words
# that follow each other, or all that it has. What is left out there is left out here.

. "$(dirname "$0")/lib.sh"

cat >"$tmp/look" <<'END'
import re, sys

# what only who changes this software can mend
INTERNAL = {
	"a frame is too long", "a line is too long", "cannot be understood", "no memory",
	"asks for '%.32s' in the state", "it has failed, and does not say why",
	"nobody says why", "that is no name of a device", "that move is not over, or not yours",
	"what was heard is no object of JSON",
}
CALL = re.compile(r"\b(?:move_fails(?:_by_doors)?|talk_refuse|complain|fails|breaks)\s*\(")
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')

def call_at(source, start):
	"""what is between the parentheses of a call"""
	depth, at = 1, start
	while depth:
		text = TEXT.match(source, at)
		if text:
			at = text.end()
			continue
		depth += {"(": 1, ")": -1}.get(source[at], 0)
		at += 1
	return source[start:at - 1]

def words(text):
	return re.findall(r"[\w'/=-]+", text)

def runs(text, of):
	"""the words of each part that is the same each time"""
	return [w for w in map(words, re.split(of, text)) if w]

def known(message, spans):
	for run in runs(message, r"%[-+ #0-9.]*(?:ll|z|l)?[a-z]"):
		n = min(4, len(run))
		if n < 2:
			continue
		for i in range(len(run) - n + 1):
			if tuple(run[i:i + n]) in spans:
				return True
	return False

docs, sources = sys.argv[1], sys.argv[2:]
spans, bad, seen = set(), 0, 0
for span in re.findall(r"`([^`\n]+)`", open(docs).read()):
	for run in runs(span, r"\b[A-Z]+\b(?<!CRIU)(?<!RDMA)|\.\.\."):
		for n in 2, 3, 4:
			spans.update(tuple(run[i:i + n]) for i in range(len(run) - n + 1))
for path in sources:
	source = re.sub(r'"\s*\n\s*"', "", open(path).read())
	for call in CALL.finditer(source):
		for text in TEXT.findall(call_at(source, call.end())):
			fixed = re.sub(r"%[-+ #0-9.]*(?:ll|z|l)?[a-z]", " ", text)
			if len(words(fixed)) < 2 or any(i in text for i in INTERNAL):
				continue
			seen += 1
			if not known(text, spans):
				print(f"{path}: {text}")
				bad = 1
if seen < 40:
	print(f"only {seen} messages were found")
	bad = 1
sys.exit(bad)
END

say "what migrctl says is explained"
python3 "$tmp/look" "$tree/docs/troubleshooting.md" "$tree"/migrctl/*.c || fail "these are not"
