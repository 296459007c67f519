# The two commands that matter are `make run` and `make test`; `make help` lists the rest, such as `make verify`, which CI runs.

SHELL := /bin/bash

KUBERNETES_VERSION ?= $(shell awk '$$1 == "k8s.io/kubernetes" { print substr($$2, 2) } $$2 == "k8s.io/kubernetes" { print substr($$3, 2) }' kubernetes/go.mod)
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
REPORT_DIR ?= out
ARGS ?=
SEED ?= $(shell date +%F)
VULNERABILITY_DB ?= https://vuln.go.dev

GO ?= go
# As in provider/embedded/build (compilerMemory): a sixth less work for the compiler.
COMPILE = GOGC=$(or $(GOGC),400) $(GO) build
# Tools have modules of their own, outside of the workspace. Those that start Go again do it in the workspace.
APART_BUILD = GOWORK=off $(COMPILE)
tool = $$(GOWORK=off $(GO) tool -n -modfile=tools/go.mod $(1))
SOURCES = $(shell find api cmd fixtures framework internal model provider suites -name node_modules -prune -o -type f ! -name '*_test.go' -print) go.mod go.sum
TEST_LOG = bin/test.json
ALLOWED_LICENCES = Apache-2.0,BSD-2-Clause,BSD-3-Clause,ISC,MIT,Unlicense
NODE_PACKAGES = containerd runc containernetworking-plugins busybox-static iptables conntrack

# The runner, its tests and tools are compiled as Kubernetes is (CompilerFlags in provider/embedded/build): Go then compiles once what they
# share, most of the runner. To debug, build with GOFLAGS= in front of `go build`.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath '-gcflags=all=-dwarf=false -l' -gcflags=std=-dwarf=false)
export CGO_ENABLED = 0

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: suites-on-node committed claims stores site image prose api-server-first projects environments snapshot release kind kind-job kind-image kind-deps help build kubernetes run test check importable verify format vet lint unit suites integrations test-times docs docs-check quotes supply-chain modules licences vulnerabilities node-deps browser-deps debian-deps bench stress soak mutants mutants-sample matrix debian clean fuzz typecheck faults explore-faults interruptions test-long pictures

help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo 'ARGS="..." passes flags on to the runner: make run ARGS="--suite graceful --report-dir out"'
	@echo 'KUBERNETES_VERSION=1.34.4 make run builds and uses another version'
	@echo 'KUBERNETES_BINARIES=DIR make run uses binaries that you have, and builds none'

# Where Kubernetes is from, if it is not there; see `bin/runner --help`.
export KUBERNETES_SOURCE ?= auto

# LOCAL says of which binaries an embedded cluster is made: those that are built, or KUBERNETES_BINARIES=DIR of yours.
LOCAL = --provider embedded $(if $(KUBERNETES_BINARIES),--kubernetes-binaries "$(KUBERNETES_BINARIES)",--kubernetes-version $(KUBERNETES_VERSION))

build: bin/runner $(if $(KUBERNETES_BINARIES),,kubernetes) ## Build bin/runner and the embedded Kubernetes

# Where Kubernetes is built, too, its modules arrive while the runner is compiled.
bin/runner: $(SOURCES)
	@echo "building the runner" >&2
	@$(if $(filter build,$(KUBERNETES_SOURCE)),$(if $(wildcard bin/kubernetes),,GOWORK=off $(GO) -C kubernetes list -deps . > /dev/null 2>&1 &)) \
	$(COMPILE) -ldflags "-X github.com/deletion-conformance/deletion-conformance/internal/cli.stamped=$(VERSION)" -o $@ ./cmd/runner

# The same commit gives the same digest. PLATFORMS and IMAGE are for an image of fewer platforms, or with another name, and PUSH also pushes it.
PLATFORMS ?= linux/amd64,linux/arm64
image: ## Build the image of the runner with kubectl for Jobs, as an OCI archive in bin/image.tar, without Docker (PLATFORMS, IMAGE, PUSH=REPOSITORY)
	@$(GO) run ./internal/release/image -archive bin/image.tar $(if $(IMAGE),-name "$(IMAGE)") -platforms "$(PLATFORMS)" -version "$(VERSION)" \
		-kubernetes-version "$(KUBERNETES_VERSION)" -commit "$$(git rev-parse HEAD)" -push "$(PUSH)" -date "$$(TZ=UTC git log -1 --format=%cd --date=format-local:%FT%TZ)"

bin/kwok: tools/go.mod
	@echo "building KWOK, which tests use" >&2
	@$(APART_BUILD) -modfile=tools/go.mod -o $@ sigs.k8s.io/kwok/cmd/kwok

bin/sample-apiserver: tools/sample-apiserver/go.mod
	@echo "building sample-apiserver, which tests use" >&2
	@$(APART_BUILD) -modfile=tools/sample-apiserver/go.mod -o $@ k8s.io/sample-apiserver

bin/sonobuoy: tools/sonobuoy/go.mod
	@echo "building Sonobuoy, which a test uses" >&2
	@$(APART_BUILD) -modfile=tools/sonobuoy/go.mod -o $@ github.com/vmware-tanzu/sonobuoy

bin/otel-collector: tools/otel-collector/go.mod tools/otel-collector/main.go
	@echo "building an OpenTelemetry Collector, which tests use" >&2
	@$(APART_BUILD) -C tools/otel-collector -o ../../$@ .

bin/kine: tools/kine/go.mod
	@echo "building kine, with which other stores are tested" >&2
	@$(APART_BUILD) -modfile=tools/kine/go.mod -tags nats -o $@ github.com/k3s-io/kine

bin/cluster-api: tools/cluster-api/go.mod
	@echo "building the controllers of Cluster API, whose resources are tested with them" >&2
	@$(APART_BUILD) -modfile=tools/cluster-api/go.mod -o $@ sigs.k8s.io/cluster-api/core

bin/kueue: tools/kueue/go.mod
	@echo "building the controllers of Kueue, whose resources are tested with them" >&2
	@$(APART_BUILD) -modfile=tools/kueue/go.mod -o $@ sigs.k8s.io/kueue/cmd/kueue

bin/kyverno: tools/kyverno/go.mod
	@echo "building Kyverno's admission controller, with which the suites are tested" >&2
	@$(APART_BUILD) -modfile=tools/kyverno/go.mod -o $@ github.com/kyverno/kyverno/cmd/kyverno

bin/gatekeeper: tools/gatekeeper/go.mod
	@echo "building Gatekeeper, with which the suites are tested" >&2
	@$(APART_BUILD) -modfile=tools/gatekeeper/go.mod -o $@ github.com/open-policy-agent/gatekeeper/v3

bin/go-licenses: tools/go.mod
	@$(APART_BUILD) -modfile=tools/go.mod -o $@ github.com/google/go-licenses/v2

kubernetes: bin/runner
	@bin/runner cluster build --module kubernetes --kubernetes-version $(KUBERNETES_VERSION) > /dev/null

run: api-server-first build ## Run the suites against the embedded Kubernetes, with reports in out/
	@bin/runner $(LOCAL) --report-dir $(REPORT_DIR) $(ARGS)

# On a machine that has built nothing yet, what an API server alone can show is tested before the rest is built, minutes earlier.
api-server-first: bin/runner
ifeq ($(KUBERNETES_BINARIES)$(ARGS),)
	@alone=$$(bin/runner cluster build --module kubernetes --api-server-alone --kubernetes-version $(KUBERNETES_VERSION)) || exit; test -z "$$alone" || { \
	echo "testing what needs only an API server while the rest is not built; the whole run follows" >&2; \
	bin/runner --provider embedded --kubernetes-binaries "$$alone" --label-filter '!(features: containsAny {gc, kcm, node, kubectl, controller})'; \
	test $$? -lt 2; }
endif

# The suites run with nothing next to them: on a slow machine the other tests make pods start after a minute.
test: SUITES_FORMAT = pkgname-and-test-fails
test: SUITES_FLAGS = -short -vet=off
# Behaviors on a node take longer than all others; `make verify` runs them, too.
test: export SUITES_NODES = 0
test: format vet suites unit ## Run what a change needs: formatting, vet, the tests, and the suites on the embedded Kubernetes without a node

# Fast checks come first.
check: docs-check typecheck supply-chain lint ## Check what needs no cluster: documents, other systems, modules, licenses, vulnerabilities, code, workflows and prose

verify: SAMPLE = -build-within 5m
verify: test check suites-on-node integrations mutants-sample ## Run everything that must pass
	@.ci/count $(TEST_LOG).suites $(TEST_LOG) $(TEST_LOG).node $(TEST_LOG).apart $(TEST_LOG).integrations $(TEST_LOG).mutants

format: ## Check that all Go files are formatted
	@unformatted=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
	if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi

vet: ## Vet all Go code
	$(GO) vet ./...

lint: prose ## Lint code, workflows and prose
	GOWORK=off $(GO) tool -modfile=tools/actionlint/go.mod actionlint
	$(call tool,golangci-lint) run

# Vale contains parsers in C. Without a C compiler the prose is not checked.
bin/vale: tools/vale/go.mod
	@if command -v $${CC:-cc} > /dev/null; then CGO_ENABLED=1 $(APART_BUILD) -modfile=tools/vale/go.mod -o $@ github.com/vale-cli/vale/v3/cmd/vale; fi

prose: bin/vale bin/runner ## Check documents, help texts, comments, statements, errors and skip reasons against the word list in tools/vale
	@if ! [ -x bin/vale ]; then echo "prose is not checked: vale needs a C compiler" >&2; exit 0; fi; \
	rm -rf bin/help && mkdir -p bin/help && \
	for command in "" list preflight explore cleanup collect fixture compare merge report claim verify site "cluster up" "cluster build"; do \
		bin/runner $$command --help > "bin/help/$${command:-runner}.txt" || exit 1; done && \
	bin/vale --output=line README.md CONTRIBUTING.md CHANGELOG.md docs bin/help && .ci/prose bin/vale

# What other projects import. They get the versions of go.mod.
IMPORTED = ./api/... ./conformance/... ./fixtures/... ./framework/... ./model/... ./suites/...

# `make snapshot` compiles for all systems; that takes ten times as long.
typecheck: ## Check that the runner compiles for other systems, and what other projects import with the versions of go.mod
	@mkdir -p bin && $(GO) build -o bin/typecheck ./hack/typecheck
	@for system in darwin/arm64 windows/amd64; do export GOOS=$${system%/*} GOARCH=$${system#*/}; \
	bin/typecheck $$($(GO) list -deps ./cmd/runner | grep "^$$(GOWORK=off $(GO) list -m)/") || exit 1; done
	@GOWORK=off bin/typecheck -tests $(IMPORTED)

importable: ## Test what other projects import with the versions of go.mod
	@GOWORK=off $(GO) test -short -vet=off $(IMPORTED) > $(TEST_LOG).importable || { cat $(TEST_LOG).importable; exit 1; }

# Go repeats no package that passed and has not changed since. It does not know what tests start: TEST_RUN identifies that. Another value,
# as in `TEST_RUN=again make test`, repeats all tests that start something.
BUILT = $(shell (cat bin/runner bin/kubernetes/*/.built-from bin/kubernetes/*/.kubectl-built-from 2> /dev/null; ls bin/kubernetes/downloads 2> /dev/null) | cksum | tr -d ' ')
suites suites-on-node unit integrations: export TEST_RUN ?= $(BUILT)
# Tests start hundreds of processes for a few seconds each, which have memory to spare.
suites suites-on-node unit integrations: export GOGC ?= 400
# test/e2e begins first because it takes longest. `make vet` vets more than `go test`.
unit: build ## Run the unit tests and the harness's own tests, on embedded clusters
	@$(call tool,gotestsum) --format pkgname-and-test-fails --jsonfile $(TEST_LOG) -- -short -vet=off -timeout 60m -skip '^TestSuites$$|$(APART)' ./test/e2e \
		$$($(GO) list ./... | grep -vE '$(INTEGRATIONS)')

# What few changes touch: what the project brings beside the runner and its suites, the embedded Kubernetes, which all other tests run on,
# controllers that the runner stops, explorations, and servers that lack something, fail or are slow.
APART = ^TestExplore_(Kubernetes|RefusedOwners|FaultAndReplay|Operator|InjectedFaults|InjectedRefusal|KilledWithWebhook|RestartOfOthersCluster)$$|^TestFaultyServer_|^TestAllResources$$|^TestResource_NoDeletedEvents$$|$\
  ^TestRun_(MissingKinds|Outage|SelectorsIgnored|SilentCluster|WatchesCut)$$|^TestAPIServerAlone$$|^TestFinalizersOfOthers_Awaited$$|$\
  ^TestCredentials_Expired$$|^TestDownload$$
INTEGRATIONS = /(internal/report/html/browser|internal/release/image|test/platform/kwok|examples/[a-z]+|provider/embedded|test/e2e/operator)$$
integrations: build bin/kwok ## Test the page in a browser, the image, simulated nodes, the examples, the embedded Kubernetes, stopped controllers, explorations, and servers that lack something
	@$(call tool,gotestsum) --format pkgname-and-test-fails --jsonfile $(TEST_LOG).apart -- -short -vet=off -timeout 60m -run '$(APART)' ./test/e2e
	@$(call tool,gotestsum) --format pkgname-and-test-fails --jsonfile $(TEST_LOG).integrations -- -short -vet=off -timeout 60m \
		$$($(GO) list ./... | grep -E '$(INTEGRATIONS)')

# Long tests call clustertest.Long: -short skips them, and this target runs nothing else.
LONG_TESTS = $(shell awk '/^func / { name = $$2 ~ /^Test/ ? $$2 : ""; sub(/[(][^)]*$$/, "", name) } /clustertest[.]Long[(]t[)]/ && name { print name }' \
	test/*/*_test.go test/*/*/*_test.go | paste -sd'|')

test-long: build bin/kwok bin/sample-apiserver bin/sonobuoy bin/otel-collector ## Run the tests of the harness that take minutes: roles, hostile servers, interruptions, network faults, other API servers, go install
	$(GO) test ./test/e2e ./test/e2e/aggregated ./test/e2e/operator ./test/faults -count 1 -timeout 60m -parallel 2 -run '^($(LONG_TESTS))$$'

# A test starts the run, on a cluster with an audit log, and then checks what the run wrote, read and left.
SUITES_FORMAT = standard-verbose
SUITES_FLAGS = -count 1
suites: build ## Run the suites on the embedded Kubernetes, and check what the run did to the cluster (SUITES_NODES=0: without a node)
	@SUITES_REPORT_DIR=$(abspath $(REPORT_DIR)) KUBERNETES_VERSION=$(KUBERNETES_VERSION) KUBERNETES_BINARIES=$(abspath $(KUBERNETES_BINARIES)) \
	$(call tool,gotestsum) --format $(SUITES_FORMAT) --jsonfile $(TEST_LOG).$(or $(SUITES_LOG),suites) -- $(SUITES_FLAGS) -timeout 30m -run '^TestSuites$$' ./test/e2e \
	$(if $(ARGS),-args -- $(ARGS))

suites-on-node: SUITES_FORMAT = pkgname-and-test-fails
suites-on-node: ## Run the behaviors that need nodes like `make suites`, with two nodes where the machine allows them
	@$(MAKE) --no-print-directory suites SUITES_NODES=2 SUITES_LOG=node SUITES_FORMAT=$(SUITES_FORMAT) \
		ARGS="--label-filter 'features: containsAny {node, two-nodes}'"

test-times: ## Print the slowest 20 packages and tests of the last `make unit`
	@awk -F '"' '/"Action":"(pass|fail)"/ && !/"Test":/ { elapsed = $$NF; gsub(/[:}]/, "", elapsed); print elapsed "s", $$12 }' $(TEST_LOG).suites $(TEST_LOG) | sort -rn | head -20
	@$(call tool,gotestsum) tool slowest --jsonfile $(TEST_LOG) --num 20

interruptions: build ## Interrupt runs at 30 random moments, and show that nothing is left (INTERRUPTIONS=30 INTERRUPTIONS_SEED=1)
	@INTERRUPTIONS=$(or $(INTERRUPTIONS),30) INTERRUPTIONS_SEED=$(or $(INTERRUPTIONS_SEED),1) $(GO) test -count 1 -timeout 20m -run TheInventoryIsTheSame ./test/e2e

fuzz: ## Fuzz what reads responses, report files, kubeconfigs and timelines, and what writes reports, a minute each (FUZZTIME=60s)
	@git grep -oE '^func Fuzz\w+' -- '*_test.go' | while IFS=: read -r file target; do \
		echo "$${target#func } in $${file%/*}"; \
		$(GO) test -run '^$$' -fuzz "^$${target#func }$$" -fuzztime $(or $(FUZZTIME),60s) -fuzzminimizetime 10x -parallel 2 "./$${file%/*}" || exit 1; \
	done

docs: bin/go-licenses ## Generate docs/behaviors.md, docs/track-record.md, docs/licences.md, the fixes that behaviors notice, and the copy of kubernetes/ that the runner carries
	@$(GO) run ./test/mutation -write
	@$(MAKE) bin/runner
	@bin/runner list --output markdown > docs/behaviors.md
	@$(LICENCES) > docs/licences.md
	@$(GO) generate ./provider/embedded/build

# WEBSITE is a checkout of github.com/kubernetes/website; without one it is cloned.
WEBSITE ?= bin/website
quotes: ## Compare the promises with the pages that they quote, and record them in hack/quotes/record.yaml (WEBSITE=DIR)
	@test -d "$(WEBSITE)" || git clone --quiet --depth 1 https://github.com/kubernetes/website "$(WEBSITE)"
	@$(GO) run ./hack/quotes -website "$(WEBSITE)"

docs-check: bin/runner site
	@bin/runner list --output markdown | diff -u docs/behaviors.md - || { echo "docs/behaviors.md is out of date: run make docs" >&2; exit 1; }

supply-chain: modules licences ## Check the modules that are built from: their sums, their licences, known vulnerabilities
	@.ci/vulnerabilities $(VULNERABILITY_DB) $(call tool,govulncheck) || [ $$? -eq 3 ]

# Modules of tools, which nothing released contains, are compared with go.sum when they are downloaded.
modules:
	@for module in . kubernetes; do GOWORK=off $(GO) -C "$$module" mod verify > /dev/null || exit 1; done

# The same licences on every platform: those of the runner for Linux. What go-licenses warns of is assembly, and web pages of
# licences that it cannot find, which are not asked for.
# A binary with trimmed paths must be told where the standard library is.
GO_LICENCES = GOROOT="$$($(GO) env GOROOT)" GOOS=linux GOARCH=amd64 bin/go-licenses
# The licences of these modules are the notice of the Apache License without its text, which go-licenses does not take for a licence.
APACHE_NOTICES = github.com/cyberphone/json-canonicalization github.com/in-toto/attestation github.com/in-toto/in-toto-golang
NOT_THESE = $(patsubst %,--ignore %,$(shell GOWORK=off $(GO) list -m) $(APACHE_NOTICES))
LICENCES = { $(GO_LICENCES) report ./cmd/runner $(NOT_THESE) --template tools/licences.md.tmpl 2> /dev/null; \
	$(GO) list -m -f '| {{.Path}} | {{.Version}} | Apache-2.0 |' $(APACHE_NOTICES); }

licences: bin/go-licenses
	@said=$$($(GO_LICENCES) check ./cmd/runner $(NOT_THESE) --allowed_licenses $(ALLOWED_LICENCES) 2>&1) || \
	{ grep -v '^[W/]' <<< "$$said" >&2; exit 1; }
	@for module in $(APACHE_NOTICES); do \
	grep -q 'Licensed under the Apache License, Version 2.0' "$$($(GO) list -m -f '{{.Dir}}' $$module)/LICENSE" || { echo "$$module has another license" >&2; exit 1; }; done
	@$(LICENCES) | diff -u docs/licences.md - || { echo "docs/licences.md is out of date: run make docs" >&2; exit 1; }

vulnerabilities: ## Look for known vulnerabilities in the runner and the embedded Kubernetes, and report those of tools (VULNERABILITY_DB=https://mirror)
	@.ci/vulnerabilities $(VULNERABILITY_DB) $(call tool,govulncheck)

bench: build ## Measure builds and runs beside those of a recorded revision, what dependencies cost, 1 to 16 workers, a busy cluster, explore (BENCH=Revision for one, REVISION)
	$(if $(BENCH),,$(GO) run ./test/load/buildcost)
	$(GO) test -run '^$$' -bench '$(or $(BENCH),.)' -benchtime 3x -count 1 -timeout 6h ./test/load/bench

faults: build ## Run the suites with network faults, RUNS times with other seeds, and compare the outcomes (RUNS, SEED, ARGS="-faults latency")
	$(GO) test ./test/faults -count 1 -timeout 10h -v -filter '' -runs $(or $(RUNS),10) -seed $(if $(filter file,$(origin SEED)),1,$(SEED)) $(ARGS)

explore-faults: build ## Explore each scenario with network faults, and with injected faults, and an operator: nothing may be found (FOR=5m, SEED)
	$(GO) test ./test/faults -count 1 -timeout 24h -v -artifacts -outputdir $(CURDIR)/bin -run '^TestExplore_Faults$$' -explore $(or $(FOR),5m) -seed $(if $(filter file,$(origin SEED)),1,$(SEED))
	$(GO) test ./test/e2e/operator -count 1 -timeout 24h -v -artifacts -outputdir $(CURDIR)/bin -run '^TestExplorations$$/^one_without' -explore $(or $(FOR),5m)

stress: build ## Run the suites 20 times, 5 times with all cores loaded, and 40 times four at a time on one cluster (RUNS, LOADED, SHARED, ARGS)
	test/load/stress/stress.sh $(or $(RUNS),20) $(or $(LOADED),5) $(or $(SHARED),40) $(ARGS)

soak: build ## Run the suites 200 times on one cluster, and every tenth time with a node, too: nothing may grow (RUNS, NODE_EVERY, ARGS)
	@$(GO) run ./test/load/soak -runs $(or $(RUNS),200) -node-every $(or $(NODE_EVERY),10) -- $(ARGS)

mutants: ## Run the suites against mutants of Kubernetes and show which behaviors kill them (ARGS="grace/* node/grace-ignored", ARGS=-list)
	@$(GO) run ./test/mutation $(ARGS)

mutants-sample: ## Run the mutants that a change touches, and a handful of others each day (SEED=2026-03-04 for those of that day)
	@mkdir -p bin; set -o pipefail; $(GO) run ./test/mutation -sample $(SEED) $(SAMPLE) | tee $(TEST_LOG).mutants

matrix: $(if $(ARGS),bin/runner,committed) ## Run the suites on several versions of Kubernetes and write docs/versions.md, and claims to docs/results (ARGS=-all, ARGS="-- --suite cascade")
	@$(GO) run ./hack/survey matrix $(ARGS)

projects: $(if $(ARGS),,committed) build bin/cluster-api bin/kueue ## Test the custom resources of well-known projects, of two with their controllers, and write docs/projects.md, and claims to docs/results (ARGS="-- --suite watch")
	@$(GO) run ./hack/survey projects $(ARGS)

environments: build bin/kyverno bin/gatekeeper ## Run the suites on clusters with policies, webhooks and controllers as in production and write docs/environments.md (ARGS="-only kyverno", ARGS=-list)
	@$(GO) run ./hack/survey environments $(ARGS)

# Nobody else can test again with a runner of uncommitted changes. With TRIAL=1, claims go to bin/results.
committed: bin/runner
	@[ -n "$(TRIAL)" ] || ! bin/runner version | grep -q -e -dirty || \
	{ echo "bin/runner contains uncommitted changes: commit them and remove bin/runner, or set TRIAL=1 to write claims to bin/results" >&2; exit 1; }

site: bin/runner ## Verify the claims in docs/results and write them as a site into bin/site
	@bin/runner site docs/results --output-dir bin/site

claims: committed build bin/kwok bin/sample-apiserver ## Run all suites with nodes, on an API server alone, envtest, KWOK, sample-apiserver and kcp, and write claims to docs/results (ARGS="-only kwok", KCP_SOURCE=DIR is a clone of kcp)
	@$(GO) run ./hack/survey claims $(ARGS)

stores: committed build bin/kine ## Run the suites and explore on clusters that store in SQLite, NATS and PostgreSQL, by kine, and write docs/stores.md, and claims to docs/results (ARGS="-only sqlite")
	@$(GO) run ./hack/survey stores -kubernetes-version $(KUBERNETES_VERSION) $(ARGS)

debian: build ## Try a real node on a stock Debian in a virtual machine: systemd, control groups v2, AppArmor (ARGS)
	@test/platform/debian/debian.sh bin/debian/disk "$(NODE_PACKAGES)" $(KUBERNETES_VERSION) $(ARGS)

# KIND_IMAGE is the image of a kind cluster's nodes that is made here.
KIND_IMAGE = registry.invalid/deletion-conformance/kind-node:v$(KUBERNETES_VERSION)
comma = ,

kind: $(if $(ARGS),,committed) build ## Test a kind cluster of two nodes, on a Docker of its own, with the image of make kind-image, and write a claim to docs/results (ARGS)
	@test/platform/kind/kind.sh bin/kind $(KIND_IMAGE) outside $(ARGS)

kind-job: build ## Run behaviors in a Job on a kind cluster and from outside, and compare the results (ARGS selects them)
	@test/platform/kind/kind.sh bin/kind $(KIND_IMAGE) job $(or $(ARGS),--suite=admission$(comma)finalizers$(comma)graceful$(comma)kubectl)

kind-image: build ## Make an image for kind's nodes, of Debian's packages and Kubernetes from source, without a registry
	@test/platform/kind/image.sh bin/kind $(KUBERNETES_VERSION) $(KIND_IMAGE)

kind-deps: ## Install what make kind and make kind-image need (Debian and Ubuntu, as root)
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker.io containerd runc iptables debootstrap jq iproute2

GORELEASER = $$(GOWORK=off $(GO) tool -n -modfile=$(CURDIR)/tools/goreleaser/go.mod goreleaser)

snapshot: ## Make a release of the last commit in a clone of its own, publish nothing, and check what came of it
	@rm -rf bin/snapshot && git clone --quiet . bin/snapshot
	@cd bin/snapshot && $(GORELEASER) release --snapshot --clean --skip=sign
	@$(GO) run ./hack/snapshot -dist bin/snapshot/bin/dist

release: ## Publish the release of the tag that is checked out, with the notes of CHANGELOG.md
	@mkdir -p bin && awk '/^## /{ its = index($$0, "[$(VERSION:v%=%)]") } its' CHANGELOG.md > bin/notes.md
	@[ -s bin/notes.md ] || { echo "CHANGELOG.md has no section [$(VERSION:v%=%)]: write it, and tag that commit" >&2; exit 1; }
	@$(GORELEASER) release --clean --release-notes bin/notes.md

node-deps: ## Install what a real node requires (Debian and Ubuntu, as root)
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(NODE_PACKAGES)

debian-deps: ## Install what make debian needs (Debian and Ubuntu on amd64, as root)
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends qemu-system-x86 debootstrap e2fsprogs

bin/freeze: tools/freeze/go.mod
	@$(APART_BUILD) -modfile=tools/freeze/go.mod -o $@ github.com/charmbracelet/freeze

pictures: build bin/freeze ## Make the pictures in README.md and docs (needs make browser-deps)
	PICTURES=$(CURDIR)/docs $(GO) test -count 1 -run 'Picture' ./internal/report/html/browser
	bin/runner $(LOCAL) --nodes 0 --suite watch > bin/run.txt
	bin/freeze bin/run.txt --language console --window --font.size 13 --font.family monospace --output docs/pictures/run.svg

browser-deps: ## Install the browser and the npm packages that the report and GitLab's pipeline are tested with (Debian and Ubuntu, as root)
	@command -v chromium > /dev/null && command -v npm > /dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core $$(command -v npm > /dev/null || echo nodejs npm); }
	npm ci --silent --prefix internal/report/html/browser
	npm ci --silent --prefix test/e2e/gitlab

clean: ## Remove what was built and reported
	rm -rf bin $(REPORT_DIR)
