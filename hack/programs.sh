#!/usr/bin/env bash
# Copyright The Clusterhub Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Builds the programs of others that hubs and tests need: hack/programs.sh NAME..., where NAME is kube, authenticator, kwok, oauth2-proxy or
# upstream, a module of its own in hack, or golangci-lint. What is built is kept beside Go's cache, and linked into _output/bin by each
# checkout that has the same versions: CLUSTERHUB_CACHE is another place for it. What was not used for 30 days goes when something is built.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
cache=${CLUSTERHUB_CACHE:-$(dirname "$(go env GOCACHE)")/clusterhub}
go=$(go env GOVERSION GOOS GOARCH)
kube=v1.37.1
kube_flags="-s -w -X k8s.io/component-base/version.gitVersion=$kube -X k8s.io/component-base/version.gitMajor=1
  -X k8s.io/component-base/version.gitMinor=37 -X k8s.io/component-base/version.gitTreeState=clean"
export CGO_ENABLED=0

# program FOLDER MODULE BINARY PACKAGE TIME FLAGS has BINARY in a folder of _output, linked from the cache, and builds PACKAGE of hack/MODULE first if
# the cache does not have it. TIME is how long that takes on two cores.
program() {
  local folder=_output/$1 module=$2 binary=$3 package=$4 time=$5 flags=${6:--s -w}
  local key stored log pid seconds=0
  key=$({ cat "hack/$module/go.mod" "hack/$module/go.sum" && find "hack/$module" -name '*.go' | sort | xargs cat; echo "$package $flags $go"; } |
    sha256sum | cut -c1-16)
  stored=$cache/$binary-$key/$binary
  mkdir -p "$folder"
  if [ ! -x "$stored" ]; then
    echo "  Building $binary (about $time on two cores, once) …"
    mkdir -p "$cache"
    find "$cache" -mindepth 1 -maxdepth 1 -mtime +30 -exec rm -rf {} +
    log=$(mktemp -d "$cache/.building-XXXXXX")
    (cd "hack/$module" && exec go build -trimpath -ldflags "$flags" -o "$log/$binary" "$package") >"$log/log" 2>&1 &
    pid=$!
    while kill -0 "$pid" 2>/dev/null; do
      sleep 1
      seconds=$((seconds + 1))
      if ((seconds % 15 == 0)); then
        echo "    $binary: $seconds s, $(grep -c '^go: downloading' "$log/log" || true) modules downloaded"
      fi
    done
    if ! wait "$pid"; then
      grep -v '^go: downloading' "$log/log" >&2 || true
      rm -rf "$log"
      echo "  → $binary could not be built from hack/$module: put right what go says above" >&2
      return 1
    fi
    rm -f "$log/log"
    # Another checkout may have built it in the meantime: its result is as good.
    mv -T "$log" "$(dirname "$stored")" 2>/dev/null || rm -rf "$log"
  fi
  touch "$(dirname "$stored")"
  if ! [ "$stored" -ef "$folder/$binary" ] && ! cmp -s "$stored" "$folder/$binary"; then
    ln -f "$stored" "$folder/$binary" 2>/dev/null || cp -f "$stored" "$folder/$binary"
  fi
}

for name in "$@"; do
  case "$name" in
    kube)
      program bin kube kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver "four minutes" "$kube_flags"
      program bin kube etcd ./etcd "a minute" "$kube_flags"
      program bin kube kube-controller-manager k8s.io/kubernetes/cmd/kube-controller-manager "two minutes" "$kube_flags"
      program bin kube kubectl k8s.io/kubernetes/cmd/kubectl "half a minute" "$kube_flags"
      ;;
    authenticator) program bin authenticator aws-iam-authenticator sigs.k8s.io/aws-iam-authenticator/cmd/aws-iam-authenticator "a minute" ;;
    kwok) program bin kwok kwok sigs.k8s.io/kwok/cmd/kwok "a minute" ;;
    oauth2-proxy) program bin oauth2-proxy oauth2-proxy github.com/oauth2-proxy/oauth2-proxy/v7 "a minute" ;;
    upstream)
      program bin upstream upstream-placement open-cluster-management.io/ocm/cmd/placement "two minutes"
      program bin upstream upstream-work open-cluster-management.io/ocm/cmd/work "a minute"
      ;;
    golangci-lint) program tools golangci golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint "two minutes" ;;
    *)
      echo "hack/programs.sh: \"$name\" is none of kube, authenticator, kwok, oauth2-proxy, upstream, golangci-lint" >&2
      exit 2
      ;;
  esac
done
