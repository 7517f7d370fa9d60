#!/usr/bin/env bash
# Copyright The Clusterhub Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs a go build -v and prints how far it is, a line each 15 seconds: hack/progress.sh go build -v ARGUMENT... What go prints is printed only if it
# fails, without the names of modules and packages.
set -o errexit -o nounset -o pipefail

# Compilers take 15 % less processor time so, and more memory.
export GOGC=${GOGC:-400}
log=$(mktemp)
pid=
# The interrupt of a terminal does not end a background process of a script.
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -f "$log"' EXIT
trap 'exit 130' INT TERM
"$@" >"$log" 2>&1 &
pid=$!
printed=0
while kill -0 "$pid" 2>/dev/null; do
  sleep 0.2
  if ((SECONDS >= printed + 15)); then
    printed=$SECONDS
    echo "    $SECONDS s: $(grep -c '^go: downloading' "$log" || true) modules downloaded, $(grep -cE '^[^ :#]+$' "$log" || true) packages compiled"
  fi
done
if ! wait "$pid"; then
  pid=
  grep -vE '^go: downloading|^[^ :#]+$' "$log" >&2 || true
  exit 1
fi
pid=
