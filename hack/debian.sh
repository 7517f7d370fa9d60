#!/usr/bin/env bash
# Copyright The Clusterhub Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian packages that tests need and that are missing: hack/debian.sh PACKAGE... It needs root, and does nothing where
# all of them are there or where the system has no apt-get: then the tests say what they miss.
set -o errexit -o nounset -o pipefail

missing=()
for package in "$@"; do
  dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
if [ ${#missing[@]} = 0 ]; then
  exit 0
fi
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
  echo "hack/debian.sh: install ${missing[*]} by hand: this needs apt-get and root" >&2
  exit 0
fi
apt-get update -q
DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
