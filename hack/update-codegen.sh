#!/usr/bin/env bash
# Copyright The Clusterhub Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Regenerates all generated files: registrations of kinds, deepcopies, defaults, conversions, validations, OpenAPI, model names, the clients in pkg/generated, the
# CustomResourceDefinitions in artifacts/deploy/operator, docs/reference, the script of the page of kubectl hub ui with the types that it is written
# against, and the output of the charts: manifests in artifacts/deploy, schemas of values, tables in docs/helm.md.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
module=github.com/clusterhub/clusterhub

# The generators are those of the k8s.io modules in go.mod; they are built into _output, not into the user's GOBIN.
export GOBIN="$root/_output/tools"
mkdir -p "$GOBIN"
codegen=$(go list -m -f '{{.Dir}}' k8s.io/code-generator)
if [ -z "$codegen" ]; then
  go mod download k8s.io/code-generator
  codegen=$(go list -m -f '{{.Dir}}' k8s.io/code-generator)
fi
# shellcheck source=/dev/null
source "$codegen/kube_codegen.sh"

kube::codegen::gen_register --boilerplate hack/gen/boilerplate.go.txt pkg/apis
kube::codegen::gen_helpers --boilerplate hack/gen/boilerplate.go.txt pkg/apis

# gen_validations writes the functions that check the bounds of the types of versions, into the folder of their group's validation. The generator
# reads a copy of the types, in which hack/gen/validation-markers.awk rewrites the markers that openapi-gen reads.
gen_validations() (
  copy=$(mktemp -d)
  trap 'rm -rf "$copy"' EXIT
  mkdir "$copy/pkg"
  cp go.mod go.sum "$copy"
  cp -r pkg/apis "$copy/pkg"
  find "$copy" \( -name zz_generated.validations.go -o -name '*_test.go' \) -delete
  packages=()
  for version in "$@"; do
    types=pkg/apis/$version
    for file in "$copy/$types"/*.go; do
      awk -f hack/gen/validation-markers.awk "$file" >"$copy/file"
      mv "$copy/file" "$file"
    done
    package=pkg/apis/${version%/*}/validation/${version#*/}
    packages+=("./$package")
    # The linter wants presence declared for each field; here it is where a bound needs it.
    {
      echo "// +k8s:validation-gen=TypesWithField=TypeMeta"
      echo "// +k8s:validation-gen-input=$module/$types"
      echo "// +k8s:validation-gen-nolint"
      cat "$package/doc.go"
    } >"$copy/$package/doc.go"
  done
  # The types of this package are opaque.
  readonly_packages=()
  for package in "${KUBE_CODEGEN_READONLY_PKGS[@]}"; do
    [ "$package" = k8s.io/apimachinery/pkg/apis/meta/v1 ] || readonly_packages+=(--readonly-pkg "$package")
  done
  cd "$copy"
  "$GOBIN/validation-gen" "${readonly_packages[@]}" --output-file zz_generated.validations.go \
    --go-header-file "$root/hack/gen/boilerplate.go.txt" "${packages[@]}"
  for package in "${packages[@]}"; do
    cp "$package/zz_generated.validations.go" "$root/$package"
  done
)
gen_validations cluster/v1 cluster/v1alpha1 cluster/v1beta1 cluster/v1beta2 edge/v1alpha1 openmcp/v1alpha1 work/v1 work/v1alpha1

kube::codegen::gen_openapi \
  --output-dir pkg/generated/openapi \
  --output-pkg "$module/pkg/generated/openapi" \
  --report-filename hack/gen/api-violations.list \
  ${UPDATE_API_VIOLATIONS:+--update-report} \
  --output-model-name-file zz_generated.model_name.go \
  --boilerplate hack/gen/boilerplate.go.txt \
  --extra-pkgs k8s.io/api/rbac/v1 \
  --extra-pkgs k8s.io/apimachinery/pkg/util/intstr \
  pkg/apis

rbac=k8s.io/api/rbac/v1
configurations=k8s.io/client-go/applyconfigurations/rbac/v1
schema=$(mktemp)
trap 'rm -f "$schema"' EXIT
go run ./hack/gen/models-schema >"$schema"
kube::codegen::gen_client \
  --with-watch \
  --with-applyconfig \
  --applyconfig-openapi-schema "$schema" \
  --applyconfig-externals "$rbac.PolicyRule:$configurations,$rbac.Subject:$configurations" \
  --output-dir pkg/generated \
  --output-pkg "$module/pkg/generated" \
  --boilerplate hack/gen/boilerplate.go.txt \
  pkg/apis

# The generator of CustomResourceDefinitions has a module of its own, and its version from there: it is written into the generated files.
version=$(cd hack/bin/controller-gen && go list -m -f '{{.Version}}' sigs.k8s.io/controller-tools)
(cd hack/bin/controller-gen && go build -trimpath -buildvcs=false -ldflags "-X sigs.k8s.io/controller-tools/pkg/version.version=$version" \
  -o "$GOBIN/" sigs.k8s.io/controller-tools/cmd/controller-gen)
"$GOBIN/controller-gen" crd:headerFile=hack/gen/boilerplate.yaml.txt paths=./pkg/apis/operator/v1 output:crd:dir=artifacts/deploy/operator

go run ./hack/gen/reference
# With the flags of make build: shared packages are compiled once, wherever the tree is.
CGO_ENABLED=0 go run -trimpath ./hack/gen/cli
(cd hack/gen/ui && go run . --schema "$schema" --web "$root/pkg/ui/web" --out "$root/pkg/ui/assets")
go run ./hack/gen/dashboard artifacts/monitoring/dashboard.json
(cd hack/charts && go run ./cmd/charts generate ../..)
