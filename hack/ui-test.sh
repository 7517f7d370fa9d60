#!/usr/bin/env bash
# Copyright The Clusterhub Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Installs axe, which finds accessibility problems of a page, into _output/page, like `make verify`, with the version that
# pkg/ui/web/package-lock.json pins. It needs npm, and the network once.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
page=_output/page
mkdir -p "$page"
if ! cmp -s pkg/ui/web/package-lock.json "$page/installed.json"; then
  command -v npm >/dev/null || { echo "hack/ui-test.sh: npm not found: install Node.js 20 or later" >&2; exit 1; }
  cp pkg/ui/web/package.json pkg/ui/web/package-lock.json "$page/"
  npm ci --prefix "$page" --ignore-scripts --no-audit --no-fund
  cp "$page/package-lock.json" "$page/installed.json"
fi
