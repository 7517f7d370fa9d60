#!/usr/bin/env bash
# Copyright The Clusterhub Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs golangci-lint over the whole module, with .golangci.yml. Takes golangci-lint's flags and packages, for example
# `hack/lint.sh --fix ./pkg/...`.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools=$PWD/_output/tools
# Beside Go's cache, like the programs of hack/programs.sh: its results are valid for every checkout with the same files.
cache=${CLUSTERHUB_CACHE:-$(dirname "$(go env GOCACHE)")/clusterhub}
export GOLANGCI_LINT_CACHE=$cache/golangci-lint

# A linter reads only code that its own Go version knows, so a new Go builds a new linter.
hack/programs.sh golangci-lint

exec "$tools/golangci-lint" run "$@"
