#!/usr/bin/env bash
# Copyright The Clusterhub Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs a go build -v and prints its progress, a line every 15 seconds and one at its end if it took a second:
# hack/progress.sh WHAT go build -v ARGUMENT... The output of go is printed only on failure, without the names of modules and packages.
set -o errexit -o nounset -o pipefail

what=$1
shift
# Compilers use 15 % less processor time this way, and more memory.
export GOGC=${GOGC:-400}
every=${PROGRESS_SECONDS:-15}
log=$(mktemp)
pid=
# The interrupt of a terminal does not stop a background process of a script.
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -f "$log"' EXIT
trap 'exit 130' INT TERM

# say prints the progress.
say() {
  echo "    $what: $1 $SECONDS s, $(grep -c '^go: downloading' "$log" || true) modules downloaded, $(grep -cE '^[^ :#]+$' "$log" || true) packages compiled"
}

"$@" >"$log" 2>&1 &
pid=$!
printed=0 said=
while kill -0 "$pid" 2>/dev/null; do
  sleep 0.2
  if ((SECONDS >= printed + every)); then
    printed=$SECONDS said=yes
    say "building for"
  fi
done
if ! wait "$pid"; then
  pid=
  grep -vE '^go: downloading|^[^ :#]+$' "$log" >&2 || true
  exit 1
fi
pid=
[ -z "$said" ] && ((SECONDS < 1)) || say "built in"
