#!/usr/bin/env bash
# Copyright The Clusterhub Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Builds the third-party programs that hubs and tests need: hack/programs.sh [--present] NAME..., where NAME is kube, authenticator, kwok,
# oauth2-proxy or upstream, a separate module in hack/bin, or golangci-lint. The programs are stored beside Go's cache, or in CLUSTERHUB_CACHE, and
# linked into _output/bin by each checkout with the same versions. Programs that were not used for 30 days are deleted at the next build.
#
# With --present, programs of kube that have not been built are used from the folder KUBEBUILDER_ASSETS or from PATH, if they have the same
# minor version.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
cache=${CLUSTERHUB_CACHE:-$(dirname "$(go env GOCACHE)")/clusterhub}
go=$(go env GOVERSION GOOS GOARCH)
progress=$PWD/hack/progress.sh
kube=v1.37.1
kube_flags="-s -w -X k8s.io/component-base/version.gitVersion=$kube -X k8s.io/component-base/version.gitMajor=1
  -X k8s.io/component-base/version.gitMinor=37 -X k8s.io/component-base/version.gitTreeState=clean"
export CGO_ENABLED=0

# stored prints the path in the cache of BINARY, built from PACKAGE of hack/bin/MODULE with FLAGS. The key has the path of the module in go.mod: a
# new path builds all its programs again, so the paths are still those from before the folder hack/bin.
stored() {
  local module=$1 flags=$2 binary=$3 package=$4 key
  key=$({ cat "hack/bin/$module/go.mod" "hack/bin/$module/go.sum" && find "hack/bin/$module" -name '*.go' | sort | xargs cat; echo "$package $flags $go"; } |
    sha256sum | cut -c1-16)
  echo "$cache/$binary-$key/$binary"
}

# present prints the path of an installed program with a suitable version, if any. It ignores the one in FOLDER: users have
# _output/bin in PATH.
present() {
  local folder=$1 binary=$2 candidate want=${kube%.*} got
  [ "$binary" != etcd ] || want=v$(sed -n 's|.*go.etcd.io/etcd/server/v3 v\([0-9]*\.[0-9]*\)\..*|\1|p' hack/bin/kube/go.mod)
  for candidate in "${KUBEBUILDER_ASSETS:+$KUBEBUILDER_ASSETS/$binary}" "$(command -v "$binary" || true)"; do
    [ -n "$candidate" ] && [ -x "$candidate" ] && ! [ "$candidate" -ef "$folder/$binary" ] || continue
    case "$binary" in
      kubectl) got=$("$candidate" version --client 2>/dev/null | sed -n 's/^Client Version: //p' || true) ;;
      etcd) got=$("$candidate" --version 2>/dev/null | sed -n 's/^etcd Version: /v/p' || true) ;;
      *) got=$("$candidate" --version 2>/dev/null | sed -n 's/^Kubernetes //p' || true) ;;
    esac
    if [ "${got%.*}" = "$want" ]; then
      echo "  Using $candidate, $got" >&2
      echo "$candidate"
      return
    fi
    echo "  Not using $candidate: expected version $want, got ${got:-an unknown version}" >&2
  done
}

# programs FOLDER MODULE TIME FLAGS BINARY=PACKAGE... has the binaries in a folder of _output, linked from the cache. Those that are not in the cache
# are built from packages of hack/bin/MODULE first, all at once, with one line every 15 seconds. TIME is the duration of all on two cores.
programs() {
  local folder=_output/$1 module=$2 time=$3 flags=$4 item binary file found dir missing=() packages=()
  shift 4
  mkdir -p "$folder"
  for item in "$@"; do
    binary=${item%%=*}
    [ ! -x "$(stored "$module" "$flags" "$binary" "${item#*=}")" ] || continue
    if [ -n "$use_present" ]; then
      found=$(present "$folder" "$binary")
      if [ -n "$found" ]; then
        ln -sfn "$(readlink -f "$found")" "$folder/$binary"
        continue
      fi
    fi
    missing+=("$item") packages+=("${item#*=}")
  done
  if [ ${#missing[@]} -gt 0 ]; then
    echo "  Building ${missing[*]%%=*} (all of hack/bin/$module: about $time on two cores, once) …"
    mkdir -p "$cache"
    find "$cache" -mindepth 1 -maxdepth 1 -mtime +30 -exec rm -rf {} +
    dir=$(mktemp -d "$cache/.building-XXXXXX")
    mkdir "$dir/out"
    if ! (cd "hack/bin/$module" && "$progress" "${missing[*]%%=*}" go build -v -trimpath -ldflags "$flags" -o "$dir/out/" "${packages[@]}"); then
      rm -rf "$dir"
      echo "  → ${missing[*]%%=*} could not be built from hack/bin/$module: fix the errors of go above" >&2
      return 1
    fi
    for item in "${missing[@]}"; do
      binary=${item%%=*} file=$(stored "$module" "$flags" "${item%%=*}" "${item#*=}")
      mkdir "$dir/$binary"
      # go build names a program after the last element of its package, before a major version.
      found=${item#*=} found=${found%/v[0-9]*}
      mv "$dir/out/${found##*/}" "$dir/$binary/$binary"
      # Another checkout may have built it concurrently: its result is equivalent.
      mv -T "$dir/$binary" "$(dirname "$file")" 2>/dev/null || true
    done
    rm -rf "$dir"
  fi
  for item in "$@"; do
    binary=${item%%=*} file=$(stored "$module" "$flags" "${item%%=*}" "${item#*=}")
    [ -x "$file" ] || continue # one that was present
    touch "$(dirname "$file")"
    if ! [ "$file" -ef "$folder/$binary" ] && ! cmp -s "$file" "$folder/$binary"; then
      ln -f "$file" "$folder/$binary" 2>/dev/null || cp -f "$file" "$folder/$binary"
    fi
  done
}

use_present=
if [ "${1:-}" = --present ]; then
  use_present=yes
  shift
fi
for name in "$@"; do
  case "$name" in
    kube)
      programs bin kube "eight minutes" "$kube_flags" etcd=./etcd kube-apiserver=k8s.io/kubernetes/cmd/kube-apiserver \
        kube-controller-manager=k8s.io/kubernetes/cmd/kube-controller-manager kubectl=k8s.io/kubernetes/cmd/kubectl
      ;;
    authenticator) programs bin authenticator "a minute" "-s -w" aws-iam-authenticator=sigs.k8s.io/aws-iam-authenticator/cmd/aws-iam-authenticator ;;
    kwok) programs bin kwok "a minute" "-s -w" kwok=sigs.k8s.io/kwok/cmd/kwok ;;
    oauth2-proxy) programs bin oauth2-proxy "a minute" "-s -w" oauth2-proxy=github.com/oauth2-proxy/oauth2-proxy/v7 ;;
    upstream)
      programs bin upstream "three minutes" "-s -w" upstream-placement=open-cluster-management.io/ocm/cmd/placement \
        upstream-work=open-cluster-management.io/ocm/cmd/work
      ;;
    golangci-lint) programs tools golangci "two minutes" "-s -w" golangci-lint=github.com/golangci/golangci-lint/v2/cmd/golangci-lint ;;
    *)
      echo "hack/programs.sh: unknown program \"$name\": must be kube, authenticator, kwok, oauth2-proxy, upstream or golangci-lint" >&2
      exit 2
      ;;
  esac
done
