#!/usr/bin/env bash
# Copyright The Clusterhub Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Gets the Debian packages that tests need: hack/debian.sh [--unpack] PACKAGE... It installs those that are missing, which needs root. With
# --unpack it puts them into _output/debian, and nothing is installed or started: for programs that need no other package, and whose
# package would start a server. Where that cannot be done it says so and succeeds: then the tests say what they miss.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
unpack=
if [ "${1:-}" = --unpack ]; then
  unpack=yes
  shift
fi
missing=()
for package in "$@"; do
  if [ -n "$unpack" ]; then
    [ -e "_output/debian/.packages/$package" ] || missing+=("$package")
  else
    dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  fi
done
if [ ${#missing[@]} = 0 ]; then
  exit 0
fi
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
  echo "hack/debian.sh: get ${missing[*]} by hand: this needs apt-get and root" >&2
  exit 0
fi
apt-get update -q
if [ -z "$unpack" ]; then
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
  exit
fi
mkdir -p _output/debian/.packages
for package in "${missing[@]}"; do
  fetched=$(mktemp -d "$PWD/_output/debian/.fetch-XXXXXX")
  trap 'rm -rf "$fetched"' EXIT
  # apt fetches as a user of its own, who may not write there.
  (cd "$fetched" && apt-get -q -o APT::Sandbox::User=root download "$package")
  dpkg-deb -x "$fetched"/*.deb _output/debian
  touch "_output/debian/.packages/$package"
  rm -rf "$fetched"
done
