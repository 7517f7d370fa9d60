#!/usr/bin/env bash
# Copyright The Clusterhub Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests: hack/test.sh [busy] [all|unit|e2e|detached|changed [REV]] [flags of go test]. Without one of the five it runs all jobs.
#
# all tries all combinations of computed matrices, and all tests of the folders of detachedhub.tsv on a detached hub. Other runs try a third of
# the combinations, another third for another commit: see test/sample.
#
# changed runs the tests that a change concerns: unit tests of the packages whose files differ from REV, of those that import them directly, and
# of how programs and manifests are put together; and the end-to-end tests that test/e2e/changed.tsv lists for the files. REV is HEAD by default,
# and HEAD~1 if nothing differs from HEAD.
#
# The end-to-end tests need the binaries of `make build kube authenticator kwok oauth2-proxy upstream roots`. detached are those of them that
# run on a detached hub a second time: test/e2e/detachedhub.tsv lists them.
#
# busy finds flaky tests: it runs unit tests 20 times and end-to-end tests 5 times while another
# process uses every core. It takes hours; -run limits the tests.
#
# End-to-end tests run our servers in their images, as `make roots` unpacks them. With PACKAGES, this requires IMAGES=1: without it they run
# the binaries.
#
# Jobs run at the same time, as test/run orders them; it prints what each costs. RECORD=1 writes that to test/run/figures.tsv. With
# LIMIT_GROWTH=35m a job of end-to-end tests that costs 15 % more than its figure runs again alone, if it ends within 35 minutes of the
# beginning, and fails if it costs 10 % more again.
#
# VERIFY=1 also runs `make verify`.
#
# PACKAGES="./pkg/x ./pkg/y" with unit, or PACKAGES=./test/e2e/sets with e2e or detached, runs the tests of these packages only.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

times() { :; }
if [ "${1:-}" = busy ]; then
  shift
  loops=()
  trap 'kill "${loops[@]}"' EXIT
  for ((i = 0; i < $(nproc); i++)); do
    while :; do :; done &
    loops+=($!)
  done
  # A hanging test is stopped when all its runs together have exceeded the timeout.
  times() { echo "-count $1 -timeout 6h"; }
fi

# changed_files prints the files that differ from a revision.
changed_files() {
  local rev=$1
  if [ -z "$rev" ]; then
    rev=HEAD
    [ -n "$(git status --porcelain)" ] || rev=HEAD~1
  fi
  { git diff --name-only "$rev" && git ls-files --others --exclude-standard; } | sort -u
}

# concerned prints the packages with tests that a change of files concerns.
concerned() {
  local files=$1 folders folder
  # A file that is not Go belongs to the closest parent folder that is a package, which embeds it.
  folders=$(while IFS= read -r file; do
    folder=$(dirname "$file")
    while [ "$folder" != . ] && ! compgen -G "$folder/*.go" >/dev/null; do folder=$(dirname "$folder"); done
    echo "$folder"
  done <<<"$files" | sort -u | tr '\n' ' ')
  # Packages that read files of other folders: manifests, and those that the documentation refers to.
  ! grep -q '^artifacts/' <<<"$files" || folders+=" hack/verify/monitoring hack/gen/reference"
  ! grep -qE '^(docs/|README)' <<<"$files" || folders+=" hack/docs hack/gen/reference"
  go list -e -f '{{.ImportPath}}|{{len .TestGoFiles}}{{len .XTestGoFiles}}|{{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}} ' ./... |
    awk -F'|' -v folders="$folders" '
      BEGIN { n = split(folders, all, " "); for (i = 1; i <= n; i++) changed["github.com/clusterhub/clusterhub/" all[i]] = 1 }
      $2 == "00" || $1 ~ /\/test\/(e2e|kubelet|netns)/ { next }
      $1 ~ /\/(test\/wiring|hack\/verify\/manifests|pkg\/local\/hub)$/ || $1 in changed { print $1; next }
      { m = split($3, imports, " "); for (i = 1; i <= m; i++) if (imports[i] in changed) { print $1; break } }'
}

which=all
# The seed of test/sample. A run of many times tries all combinations, too.
export CLUSTERHUB_TEST_SEED=${CLUSTERHUB_TEST_SEED-$(git rev-parse HEAD 2>/dev/null || true)}
[ -z "$(times 1)" ] || CLUSTERHUB_TEST_SEED=
case "${1:-}" in
  all)
    CLUSTERHUB_TEST_SEED=
    shift
    ;;
  unit | e2e | detached)
    which=$1
    shift
    ;;
  changed)
    which=changed
    shift
    rev=
    case "${1:-}" in
      "" | -*) ;;
      *)
        rev=$1
        shift
        ;;
    esac
    changes=$(changed_files "$rev")
    if [ -z "$changes" ]; then
      echo "hack/test.sh: no files differ from ${rev:-HEAD~1}"
      exit 0
    fi
    PACKAGES=$(concerned "$changes")
    ;;
  "" | -*) ;;
  *)
    echo "hack/test.sh: unknown argument \"$1\": must be busy, all, unit, e2e, detached, changed or a flag of go test" >&2
    exit 2
    ;;
esac

# Packages that were compiled in another checkout, or by make for our programs, need not be compiled again.
export GOFLAGS="-trimpath ${GOFLAGS:-}" CGO_ENABLED=0
# Less processor time for more memory, for go, tests and their processes: 5 to 16 % less, with half a gigabyte for each kube-apiserver.
export GOGC=${GOGC:-400}
export TEST_BIN_DIR=$PWD/_output/bin
# A cached object that a test or the code under it changes panics, and so does an informer whose watch delivers other
# objects than a list.
export KUBE_CACHE_MUTATION_DETECTOR=true
export KUBE_WATCHLIST_INCONSISTENCY_DETECTOR=true
if [ -x "$TEST_BIN_DIR/aws-iam-authenticator" ]; then
  export CLUSTERHUB_TEST_AWS_IAM_AUTHENTICATOR=$TEST_BIN_DIR/aws-iam-authenticator
fi

# concerned_e2e prints the folders of test/e2e that have tests for files, each with a tab and a regular expression of these tests.
concerned_e2e() {
  awk -F'\t' -v files="$1" '
    /^#/ { next }
    { n++; path[n] = $1; folder[n] = $2; tests[n] = $3 }
    END {
      for (i = split(files, all, "\n"); i > 0; i--) {
        longest = 0
        for (j = 1; j <= n; j++) if (index(all[i], path[j] "/") == 1 && length(path[j]) > longest) longest = length(path[j])
        for (j = 1; j <= n; j++) if (longest && index(all[i], path[j] "/") == 1 && length(path[j]) == longest && !seen[folder[j] tests[j]]++)
          run[folder[j]] = run[folder[j]] (run[folder[j]] ? "|" : "") tests[j]
      }
      for (f in run) print f "\t" run[f]
    }' test/e2e/changed.tsv
}

# tested prints the packages below the given folders that have tests; a folder that does not exist has none.
tested() {
  local folder patterns=()
  for folder in "$@"; do
    if [ -d "$folder" ]; then
      patterns+=("./$folder/...")
    fi
  done
  if [ ${#patterns[@]} -gt 0 ]; then
    go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' "${patterns[@]}"
  fi
}

# job KIND TITLE PACKAGES FLAGS... adds a job of go test to those of this run, as the argument of the command in $within if there is one;
# test/run says what the kinds are.
jobs= within=
job() {
  local kind=$1 title=$2 packages=$3 json=
  shift 3
  # test/run reads how long each test takes, and prints what go test prints without -json.
  [ "$kind" != wait ] || [[ " $* " == *" -v "* ]] || json=" -json"
  if [ -z "$packages" ]; then
    echo "=== $title: none"
    return
  fi
  # shellcheck disable=SC2086 # one word per package
  jobs+="$title"$'\t'"$kind"$'\t'"$within go test$(printf ' %q' "$@")$json$(printf ' %q' $packages)"$'\n'
}

# built fails if a binary that the end-to-end tests run has not been built.
built() {
  local binary
  for binary in aws-iam-authenticator cluster-provider etcd kube-apiserver kubectl kubectl-hub hub-agent hub-apiserver hub-controller-manager hub-operator hub-ui kwok localhub oauth2-proxy upstream-placement upstream-work; do
    if [ ! -x "$TEST_BIN_DIR/$binary" ]; then
      echo "hack/test.sh: $binary is not in _output/bin; run 'make build kube authenticator kwok oauth2-proxy upstream'" >&2
      exit 1
    fi
  done
}

if [ "$which" = all ] || [ "$which" = unit ] || [ "$which" = changed ]; then
  packages=${PACKAGES:-$(tested pkg cmd hack test/await test/bench test/fakeaws test/leak test/mutants test/run test/typing test/wiring)}
  # The race detector finds nothing where nothing runs concurrently, and makes tests take up to ten times as long. A package needs it that starts
  # goroutines, serves or has informers, itself or in its tests; locks alone are no reason. Of those that are left out, some compute the most, each
  # with goroutines only around what other packages test; test/wiring assembles several programs in one process, which all set the logger of klog; and
  # in tests of pkg/cli, except for those of the page, one command does one thing after the other.
  concurrent='^[[:space:]]*go [[:alnum:]_.]+\(|^[[:space:]]*go func|\.Go\(|\.Parallel\(\)|synctest|"net/http|workqueue|informers|(agent|operator|work)test"'
  without='/(pkg/cli(/(access|clusters|edge|inspect|install|kit|management|placements|sets|why|works))?|pkg/constraint|pkg/controllers/works/manifestworkreplicaset|pkg/edge/archive|pkg/edge/engine|test/wiring)$'
  racing= plain= servers= waiting= together=
  for package in $packages; do
    folder=${package#github.com/clusterhub/clusterhub/}
    case "$folder" in
      # These wait for the servers that they start.
      pkg/cli/join | pkg/operator/clustermanager | pkg/operator/klusterlet) servers+=" $package" ;;
      pkg/agent | pkg/agent/work | pkg/clusterprovider/kubeconfig | pkg/local/provider) waiting+=" $package" ;;
      # So do these, each in a few tests. In the job that computes, whose weight is low, their servers would not start within the limits.
      pkg/agent/tasks/edge | pkg/agent/tasks/work | pkg/agent/work/* | pkg/apiserver | pkg/local/pods) together+=" $package" ;;
      *)
        if ! grep -qE "$without" <<<"/$folder" && grep -qE "$concurrent" "$folder"/*.go; then
          racing+=" $package"
        else
          plain+=" $package"
        fi
        ;;
    esac
  done
  # In most of their tests one command or one reconciler does one thing after the other, as often as there are writes: the race detector would
  # find nothing, and doubles what they cost. It is for those that run hub-operator or its watches.
  running='^Test(Attack_(AHub|AVersion|Events)|Available_|Detached_Makes|Follow_|Process_|Shared_|Sharing_|Observations_)'
  for package in $servers; do
    within=
    # shellcheck disable=SC2046 # several flags
    job wait "Unit tests of ${package##*/}" "$package" -skip "$running" -timeout 20m $(times 20) "$@"
    [[ $package != */pkg/cli/join ]] || continue # it runs commands alone
    within="env CGO_ENABLED=1" # the race detector needs C
    # shellcheck disable=SC2046 # several flags
    job wait "Concurrent unit tests of ${package##*/}" "$package" -race -run "$running" -timeout 20m $(times 20) "$@"
  done
  within="env CGO_ENABLED=1"
  for package in $waiting; do
    # shellcheck disable=SC2046 # several flags
    job wait "Unit tests of ${package#*/pkg/}" "$package" -race -timeout 20m $(times 20) "$@"
  done
  # shellcheck disable=SC2046 # several flags
  job wait "Unit tests with servers" "$together" -race -timeout 20m $(times 20) "$@"
  # shellcheck disable=SC2046 # several flags
  job compute "Unit tests" "$racing" -race -timeout 30m $(times 20) "$@"
  within=
  # shellcheck disable=SC2046 # several flags
  job compute "Unit tests without goroutines" "$plain" -timeout 20m $(times 20) "$@"
  if [ -z "${PACKAGES:-}" ]; then
    # A module of its own, so that AWS's retired SDK, which has the models, is none of the product's dependencies.
    job compute "Models of AWS" ./... -C test/fakeaws/models "$@"
    # The same, for Open Cluster Management's Go module.
    job compute "Types of upstream" ./... -C test/upstream "$@"
    # The same, for what renders the documentation. Not from go's cache, which does not know files outside of a module: docs, and charts.
    job compute "Site" ./... -C hack/docs/site -count 1 "$@"
    # The same, for Helm.
    job compute "Charts" . -C hack/charts -count 1 "$@"
    # The same, for what makes releases and their images.
    job compute "Images" ./image/... -C hack/release "$@"
    job compute "Releases" . -C hack/release "$@"
  fi
fi
if [ "$which" = changed ]; then
  endtoend=$(concerned_e2e "$changes")
  if [ -n "$endtoend" ]; then
    make --no-print-directory test-programs
    built
    while IFS=$'\t' read -r folder tests; do
      package=./test/e2e/$folder module=()
      [ "$folder" != ui ] || within="hack/ui-test.sh &&" package=./... module=(-C test/e2e/ui)
      # shellcheck disable=SC2046 # several flags
      job wait "End-to-end tests of $folder" "$package" "${module[@]}" -parallel 4 -count 1 -timeout 10m -run "$tests" $(times 5) "$@"
      within=
    done <<<"$endtoend"
  fi
elif [ "$which" != unit ]; then
  packages=
  [ "$which" = detached ] || packages=$(tested test/kubelet test/netns test/e2e examples)
  [ "$which" != e2e ] || packages=${PACKAGES:-$packages}
  # What users do with a hub, where its servers run elsewhere: the tests of the list, which exercise what differs there, or all tests of
  # their folders without a seed. harness.OnlyLocal skips those that start, end or set up processes of their hub. Folders of these processes
  # (apiserver, install) are not in the list, nor is registration: it sets up each hub in its own way, and test/e2e/detached has clusters
  # join detached hubs, as those of edgeagents would.
  listed=test/e2e/detachedhub.tsv
  detached=$(awk -F'\t' '!/^#/ && !seen[$1]++ { print "./test/e2e/" $1 }' "$listed")
  of_detached=(-run "^($(awk -F'\t' '!/^#/ { print $2 }' "$listed" | paste -s -d '|'))\$")
  if [ -n "${PACKAGES:-}" ] || [ -z "$CLUSTERHUB_TEST_SEED" ]; then
    # Not a second time, as they take long: one compares with a cluster of its own, the others are about many objects at once.
    of_detached=(-skip '^(TestAccessAPI_MatchesCRDs|TestAccessScheduler_ManyClusters|TestStatus_ManyJoinsAreFewWrites)$')
  fi
  case "$which" in
    detached) detached=${PACKAGES:-$detached} ;;
    e2e) [ -z "${PACKAGES:-}" ] || detached= ;;
  esac
  # A module of its own, so that what drives the browser is none of the product's dependencies.
  page=
  case "$which ${PACKAGES:-}" in
    "all "* | "e2e ") page=./... ;;
    "e2e ./test/e2e/ui") page=./... packages= ;;
  esac
  [ -z "$packages$detached$page" ] || built
  # What their hub runs as does not matter to the tests, so they show that the images run at no cost.
  roots=
  if [ -n "$packages" ] && { [ -n "${IMAGES:-}" ] || [ -z "${PACKAGES:-}" ]; }; then
    roots=$PWD/_output/local/roots
    for root in "$roots"/*; do # without any, this is about "*"
      if ! cmp -s "$root/usr/local/bin/component" "$TEST_BIN_DIR/$(basename "$root")"; then
        echo "hack/test.sh: the image of $(basename "$root") is not that of the binary in _output/bin; run 'make roots'" >&2
        exit 1
      fi
    done
  fi
  # Four tests of a folder at a time, where they may: most of the time a test waits for a server.
  # Never from go's cache, which does not know the binaries under test.
  for package in $packages; do
    within="env CLUSTERHUB_TEST_IMAGES=$roots"
    # shellcheck disable=SC2046 # several flags
    job wait "End-to-end tests of ${package##*/}" "$package" -parallel 4 -count 1 -timeout 30m $(times 5) "$@"
  done
  if [ -n "$page" ]; then
    within="hack/ui-test.sh &&"
    # shellcheck disable=SC2046 # several flags
    job wait "End-to-end tests of the page" "$page" -C test/e2e/ui -count 1 -timeout 30m $(times 5) "$@"
  fi
  within=
  # As in hubs of users: by Helm, on a real cluster, with the programs as the charts' pods.
  # shellcheck disable=SC2046 # several flags
  [ "$which" = detached ] || [ -n "${PACKAGES:-}" ] || job wait "Charts on a cluster" ./e2e -C hack/charts -count 1 -timeout 20m $(times 5) "$@"
  within="go run ./test/detachedhub"
  # shellcheck disable=SC2046 # several flags
  job wait "End-to-end tests on a detached hub" "$detached" -p 1 -parallel 4 -count 1 -timeout 30m "${of_detached[@]}" $(times 5) "$@"
fi

# What has nothing to do with behavior, for a run of all: it computes while other jobs wait.
[ -z "${VERIFY:-}" ] || jobs+="Verification"$'\t'"compute"$'\t'"make verify"$'\n'

mkdir -p _output/tools
go build -o _output/tools/run ./test/run
printf '%s' "$jobs" | _output/tools/run ${RECORD:+--record} ${LIMIT_GROWTH:+--limit-growth="$LIMIT_GROWTH"}
