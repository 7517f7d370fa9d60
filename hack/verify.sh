#!/usr/bin/env bash
# Copyright The Clusterhub Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Checks that are not tests: hack/verify.sh [step ...]. Without a step it runs them all, also after one has failed. It
# checks the working tree, whether committed or not, and does not change it.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# As in hack/test.sh, so that nothing is compiled a second time.
export GOFLAGS="-trimpath ${GOFLAGS:-}" CGO_ENABLED=0
steps=(format headers binaries length scripts names words structure manifests modules compatible generated page lint)

# files prints the tree's files that match the given patterns: all but deleted and ignored ones.
files() {
  git -c core.quotePath=off ls-files --cached --others --exclude-standard -- "$@" | while IFS= read -r file; do
    [ ! -f "$file" ] || echo "$file"
  done
}

# over runs a command with the names that it reads appended.
over() { tr '\n' '\0' | xargs -0 -r "$@"; }

# over_each runs it once for each name.
over_each() { tr '\n' '\0' | xargs -0 -r -n 1 "$@"; }

# none fails if there are findings. It prints them and how to fix them.
none() {
  if [ -n "$1" ]; then
    printf '%s\n' "$1"
    echo "  → $2"
    return 1
  fi
}

# The findings are assigned before they are checked: the exit code of a command in an argument is lost.

step_format() {
  found=$(files '*.go' | over gofmt -l)
  none "$found" "run 'gofmt -w' on these files"
}

step_headers() {
  # The header of a generated file comes after its build constraint.
  found=$(files '*.go' '*.sh' '*.yaml' '*.yml' '*Makefile' .ci ':!*testdata/*' | over awk '
    function report() { if (name != "" && lines < 2) print name }
    FNR == 1 { report(); name = FILENAME; lines = 0 }
    FNR <= 6 && /(#|\/\/) Copyright The Clusterhub Authors\.$/ { lines++ }
    FNR <= 6 && /(#|\/\/) SPDX-License-Identifier: Apache-2\.0$/ { lines++ }
    END { report() }')
  none "$found" "begin these files with the two lines of hack/gen/boilerplate.go.txt"
}

step_binaries() {
  found=$(git -c core.quotePath=off ls-files --eol --cached --others --exclude-standard -- ':!docs/images/*.png' |
    awk -F'\t' '$1 ~ /^(i\/-text|i\/ +w\/-text)/ { print $2 }')
  none "$found" "the tree has no binaries but pictures of the docs: delete these, such as the test binaries of go test -cpuprofile"
}

step_length() {
  found=$(files '*.go' ':!*zz_generated*' ':!pkg/generated' | over awk 'FNR == 401 { print FILENAME }')
  none "$found" "a Go file has one topic and at most 400 lines: split these"
}

# scripts prints the shell scripts, also those without the ending.
scripts() { { files '*.sh'; files | over grep -lIE -m1 '^#!.*[/ ]bash$' || true; } | sort -u; }

step_scripts() {
  found=$(scripts | over_each bash -n 2>&1 || true)
  none "$found" "fix the errors of bash"
  found=$(scripts | while IFS= read -r script; do [ -x "$script" ] || echo "$script"; done)
  none "$found" "run 'chmod +x' on these scripts"
}

step_names() {
  # The brackets keep the patterns from finding themselves.
  local paths='(^|[^[:alnum:]_.~$}/-])/(home|root|work|Users)/[[:alnum:]]'
  local hosts='(docker|quay|ghcr|gcr|mcr)[.](io|com)|(registry|proxy|goproxy)[.][a-z0-9-]+[.](io|com|org|net|dev)'
  found=$(files ':!LICENSE' ':!*go.sum' | over grep -nIE "$paths|(^|[^[:alnum:].-])($hosts)" || true)
  none "$found" "paths of a machine and registry hosts are not allowed in the tree: use a relative path, or a setting of the user"
}

step_words() {
  # The brackets keep the pattern from finding itself.
  found=$(files ':!LICENSE' ':!*go.sum' ':!pkg/generated' ':!*zz_generated*' ':!pkg/ui/assets/app.js' | over grep -nIwiE "s?[h]e|[h]im(self)?|[h]is|[h]ers?(elf)?" || true)
  none "$found" "a user is not a man or a woman: say they, the user, or the name"
  go run ./hack/verify/words || { echo "  → see docs/design/style.md" && return 1; }
}

step_structure() {
  files '*.go' | go run ./hack/verify/structure
}

step_manifests() {
  go test -count 1 ./hack/verify/manifests || { echo "  → fix the violations of the rules in hack/verify/manifests above" && return 1; }
}

step_modules() {
  local module difference failed=0
  for module in $(files '*go.mod' ':!*testdata/*'); do
    module=$(dirname "$module")
    if ! difference=$(cd "$module" && go mod tidy -diff 2>&1); then
      printf '%s\n' "$difference" | sed -e '/^go: downloading /d' | head -n 40 || true
      echo "  → run 'go mod tidy' in $module"
      failed=1
    fi
  done
  found=$(grep -E '^(require )?[[:space:]]*k8s\.io/kubernetes ' go.mod || true)
  none "$found" "the product does not require k8s.io/kubernetes: whoever imports it would inherit its replace lines" || failed=1
  return $failed
}

step_compatible() {
  # Compares the public Go packages with the last release.
  (cd hack/release && go run . compare ../..) || { echo "  → fix the incompatible changes above" && return 1; }
}

step_generated() {
  # Generating deletes files before it writes them, so it runs on a copy: concurrent builds and
  # uncommitted changes are not affected.
  local copy=$PWD/_output/verify
  rm -rf "$copy"
  mkdir -p "$copy/before" "$copy/after/_output" _output/tools
  cp -R go.mod go.sum artifacts docs hack pkg "$copy/before/"
  cp -R "$copy/before/." "$copy/after/"
  ln -s "$PWD/_output/tools" "$copy/after/_output/tools"
  if ! "$copy/after/hack/update-codegen.sh" >"$copy/log" 2>&1; then
    tail -n 30 "$copy/log"
    echo "  → hack/update-codegen.sh failed; fix the errors above, then run 'make generate'"
    return 1
  fi
  rm -rf "$copy/after/_output"
  if ! (cd "$copy" && diff -ruN before after >diff); then
    head -n 60 "$copy/diff"
    (cd "$copy" && diff -rqN before after) | awk '{ sub("before/", "", $2); print "  differs: " $2 }'
    echo "  → run 'make generate' (all differences: _output/verify/diff)"
    return 1
  fi
  rm -rf "$copy"
}

step_page() {
  # The page of kubectl hub ui: its types, and the tests that need no browser. step_generated checks the bundle itself.
  local page=$PWD/_output/page
  for tool in node npm; do
    command -v "$tool" >/dev/null || { echo "$tool not found  → install Node.js 20 or later" && return 1; }
  done
  mkdir -p "$page"
  cp pkg/ui/web/package.json pkg/ui/web/package-lock.json "$page/"
  # The lock file of the installed packages is stored; npm runs again when it changes.
  if ! cmp -s "$page/package-lock.json" "$page/installed.json"; then
    (cd "$page" && npm ci --no-audit --no-fund --ignore-scripts >npm.log 2>&1) || { cat "$page/npm.log" && echo "  → npm could not download TypeScript" && return 1; }
    cp "$page/package-lock.json" "$page/installed.json"
  fi
  "$page/node_modules/.bin/tsc" --project pkg/ui/web || { echo "  → fix the errors of tsc above" && return 1; }
  (cd hack/gen/ui && go run . --tests --web ../../../pkg/ui/web --out "$page")
  node --test "$page/tests.mjs" >"$page/tests.log" 2>&1 || { cat "$page/tests.log" && echo "  → fix the failed tests of pkg/ui/web above" && return 1; }
}

step_lint() {
  hack/lint.sh || { echo "  → fix the findings of golangci-lint above; 'hack/lint.sh --fix' fixes some of them" && return 1; }
}

# A step is a separate process: bash ignores errexit in a function whose result is checked.
if [ "${1:-}" = --one ]; then
  "step_$2"
  exit
fi

git rev-parse --is-inside-work-tree >/dev/null || { echo "hack/verify.sh: not a git repository: git lists the files to check" >&2 && exit 1; }
failed=()
for step in "${@:-${steps[@]}}"; do
  if [[ " ${steps[*]} " != *" $step "* ]]; then
    echo "hack/verify.sh: unknown step \"$step\": must be one of ${steps[*]}" >&2
    exit 2
  fi
  started=$SECONDS result=passed
  echo "=== $step"
  "$BASH" hack/verify.sh --one "$step" || { result=FAILED && failed+=("$step"); }
  echo "=== $step: $result ($((SECONDS - started)) s)"
done

if [ ${#failed[@]} -gt 0 ]; then
  echo "Failed: ${failed[*]}. Follow the instructions after →, then run 'hack/verify.sh ${failed[*]}'." >&2
  exit 1
fi
