# Copyright The Clusterhub Authors.
# SPDX-License-Identifier: Apache-2.0

# `make help` lists the targets. All output goes to _output.
OUTPUT   := _output
BIN      := $(OUTPUT)/bin
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo v0.0.0)
COMMIT   := $(shell git rev-parse HEAD 2>/dev/null)
# gitVersion is not set: component-base uses it as the version of Kubernetes for feature gates.
LDFLAGS   = -s -w -X github.com/clusterhub/clusterhub/pkg/command.version=$(VERSION) -X k8s.io/component-base/version.gitCommit=$(COMMIT)
# Without cgo, so that our programs run in images without libraries, and tests run the same binaries. All others are built the same
# way: shared packages are compiled once.
export CGO_ENABLED := 0
build    = go build -trimpath $(STAMP) -ldflags '$(LDFLAGS)'
ARCHS    := amd64 arm64
IMAGES_OF := cluster-provider hub-agent hub-apiserver hub-controller-manager hub-operator hub-ui
FLEET    ?= 10000

.DEFAULT_GOAL := help
.PHONY: help up down status clean build kube authenticator kwok oauth2-proxy upstream test verify lint generate bench charts images release roots image-tool manifests tools-check

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Uses installed programs of Kubernetes, from PATH or KUBEBUILDER_ASSETS.
up: PRESENT := --present
up: build kube $(if $(IMAGES),roots) ## Start a hub on this machine, with an example fleet in it. DETACHED=1, EDGE=1 and CLUSTERS=2 add clusters. IMAGES=1 runs our servers in their images.
	@$(BIN)/localhub up $(if $(DETACHED),--detached) $(if $(EDGE),--edge) $(if $(CLUSTERS),--clusters=$(CLUSTERS)) $(if $(IMAGES),--images=$(OUTPUT)/local/roots)

down: ## Stop the hub and retain its data.
	@if [ -x $(BIN)/localhub ]; then $(BIN)/localhub down; else echo "The hub is not running: nothing has been built."; fi

status: ## Show the status of the processes of the hub.
	@if [ -x $(BIN)/localhub ]; then $(BIN)/localhub status; else echo "The hub is not running: nothing has been built."; fi

clean: ## Stop the hub and delete its data, but not the binaries.
	@if [ -x $(BIN)/localhub ]; then $(BIN)/localhub clean; fi

tools-check:
	@command -v go >/dev/null || { echo "go not found: install the version in go.mod or a later one (https://go.dev/dl)"; exit 1; }

build: tools-check ## Build our binaries.
	@mkdir -p $(BIN)
	@echo "  Building our programs (about four minutes on two cores the first time) …"
	@hack/progress.sh 'our programs' $(build) -v -o $(BIN)/ ./cmd/...

kube: tools-check ## Build etcd, kube-apiserver, kube-controller-manager and kubectl.
	@hack/programs.sh $(PRESENT) $@

authenticator: tools-check ## Build the authenticator of EKS, which tests use.
	@hack/programs.sh $@

kwok: tools-check ## Build kwok, which simulates the kubelet in tests.
	@hack/programs.sh $@

oauth2-proxy: tools-check ## Build oauth2-proxy, which tests run in front of hub-ui.
	@hack/programs.sh $@

upstream: tools-check ## Build Open Cluster Management's placement controller and work agent, which tests use.
	@hack/programs.sh $@

# Programs for tests have a fixed version: they are linked again only if their sources change.
test test-programs: VERSION := test
test test-programs: COMMIT :=
test test-programs: STAMP := -buildvcs=false
.PHONY: test-programs
test-programs: build kube authenticator kwok oauth2-proxy upstream # The programs that end-to-end tests run.

test: test-programs roots ## Run the unit, integration and end-to-end tests.
	hack/test.sh

.PHONY: world
world: VERSION := test
world: COMMIT :=
world: STAMP := -buildvcs=false
world: build kube ## Run a hub for end-to-end tests until it is interrupted. Test runs use it instead of starting one.
	@go build -trimpath -o $(OUTPUT)/tools/world ./test/world && exec $(OUTPUT)/tools/world

verify: tools-check ## Check that generated code is up to date, and lint.
	hack/verify.sh

lint: tools-check ## Run golangci-lint.
	hack/lint.sh

generate: tools-check ## Generate clients, deep copies, conversions, OpenAPI, CustomResourceDefinitions and the output of charts.
	hack/update-codegen.sh

.PHONY: site release-version
site: tools-check ## Render the documentation to _output/site, for a browser or any file server.
	@cd hack/docs/site && go run . --version='$(VERSION)' --source=https://github.com/clusterhub/clusterhub/blob/$$(git rev-parse HEAD 2>/dev/null || echo main) ../../.. ../../../$(OUTPUT)/site
	@echo "  Open $(OUTPUT)/site/index.html"

bench: build kube ## Run benchmarks against the same clusters as custom resources; FLEET=10000 clusters by default.
	go run ./test/bench --fleet=$(FLEET) --bin-dir=$(BIN) --output=$(OUTPUT)/bench

charts: tools-check ## Package the Helm charts, with the version of the images, into _output/charts.
	@cd hack/charts && go run ./cmd/charts package ../.. '$(VERSION)' ../../$(OUTPUT)/charts

# image runs hack/release/image, whose images have the time of the commit: the same commit has the same digests.
image = SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || echo 0) $(BIN)/image
image-build = $(image) build --version=$(VERSION) --revision=$$(git rev-parse HEAD 2>/dev/null)

image-tool: tools-check
	@mkdir -p $(BIN)
	@cd hack/release && ../progress.sh 'hack/release/image' go build -v -trimpath $(STAMP) -o ../../$(BIN)/image ./image

images: image-tool manifests ## Build the container images for amd64 and arm64, and manifests that refer to them. PUSH=REGISTRY/PREFIX pushes them.
	@for arch in $(ARCHS); do \
	  echo "  Building our programs for linux/$$arch …"; \
	  mkdir -p $(OUTPUT)/programs/linux/$$arch && \
	  GOOS=linux GOARCH=$$arch $(build) -o $(OUTPUT)/programs/linux/$$arch/ $(addprefix ./cmd/,$(IMAGES_OF)) || exit 1; \
	done
	@$(image-build) --output=$(OUTPUT)/images $(foreach a,$(ARCHS),$(a)=$(OUTPUT)/programs/linux/$(a))
	@$(if $(PUSH),$(image) push --from=$(OUTPUT)/images --prefix=$(PUSH))

# A release with another download location: make release URL=https://downloads.example/VERSION
URL ?= https://github.com/clusterhub/clusterhub/releases/download/$(VERSION)
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

release: release-version images site ## Create a release of the commit's tag in _output/release: kubectl-hub for all platforms, charts, manifests, checksums, SBOMs, notes.
	@for p in $(PLATFORMS); do \
	  echo "  Building kubectl-hub for $$p …"; \
	  GOOS=$${p%/*} GOARCH=$${p#*/} $(build) -o $(OUTPUT)/programs/$$p/kubectl-hub ./cmd/kubectl-hub || exit 1; \
	done
	@rm -rf $(OUTPUT)/charts
	@$(MAKE) --no-print-directory charts VERSION=$(VERSION)
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) && export SOURCE_DATE_EPOCH && cd hack/release && go run . --version=$(VERSION) --url=$(URL) \
	  --license=../../LICENSE --changes=../../docs/changes --manifests=../../$(OUTPUT)/deploy --site=../../$(OUTPUT)/site --add=../../$(OUTPUT)/images/DIGESTS \
	  $$(ls ../../$(OUTPUT)/charts/*.tgz | sed 's/^/--add=/') --output=../../$(OUTPUT)/release \
	  $(foreach a,$(ARCHS),$(foreach i,$(IMAGES_OF),--bill=linux/$(a)=../../$(OUTPUT)/programs/linux/$(a)/$(i))) \
	  $(foreach p,$(PLATFORMS),$(p)=../../$(OUTPUT)/programs/$(p)/kubectl-hub)
	@cd hack/release && go run . check ../../$(OUTPUT)/release
	@echo "  _output/release has the release, and _output/images its images"

release-version: # Runs before the images, which take minutes.
	@echo '$(VERSION)' | grep -Eqx 'v[0-9]+\.[0-9]+\.[0-9]+(-(alpha|beta|rc)\.[0-9]+)?' || { \
	  echo "$(VERSION) is not a release version: tag the commit, such as v1.2.3, in a clean working tree."; exit 1; }

roots: build image-tool ## Build the images for this machine only, and unpack them for IMAGES=1 and tests.
	@echo "  Building images of our programs, and unpacking them …"
	@arch=$$(go env GOARCH); $(image-build) --output=$(OUTPUT)/local/images $$arch=$(BIN) >/dev/null
	@$(image) unpack --from=$(OUTPUT)/local/images --output=$(OUTPUT)/local/roots

manifests: ## Write the manifests with the version of the images to _output/deploy.
	@rm -rf $(OUTPUT)/deploy && mkdir -p $(OUTPUT) && cp -R artifacts/deploy $(OUTPUT)/deploy
	@find $(OUTPUT)/deploy -name '*.yaml' -exec sed -i.bak 's|\(image[:=] *clusterhub/[a-z-]*\):v0\.0\.0$$|\1:$(VERSION)|' {} +
	@find $(OUTPUT)/deploy -name '*.bak' -delete
