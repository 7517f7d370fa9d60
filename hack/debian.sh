#!/usr/bin/env bash
# Copyright The Clusterhub Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Gets the Debian packages that tests need: hack/debian.sh [--unpack] PACKAGE... It installs missing ones, which needs root. With
# --unpack it unpacks them to _output/debian without installing or starting anything: for programs without dependencies whose
# package would start a server. If that is not possible, it prints a message and succeeds: then the tests report what is missing.
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
  echo "hack/debian.sh: install ${missing[*]} manually: apt-get and root are required" >&2
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
  # apt downloads as a separate user, who may not write there.
  (cd "$fetched" && apt-get -q -o APT::Sandbox::User=root download "$package")
  dpkg-deb -x "$fetched"/*.deb _output/debian
  touch "_output/debian/.packages/$package"
  rm -rf "$fetched"
done
