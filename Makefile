# make test is all that a change has to pass; it works on a fresh machine with Go and root or sudo.

GO ?= go
GOLANGCI_LINT_VERSION = v2.12.2
GOLANGCI_LINT = .cache/bin/$(GOLANGCI_LINT_VERSION)/golangci-lint

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' Makefile

# The tests wait for timeouts more than they compute.
TEST = $(GO) test $(TAGS) $(RACE) -vet=off -count=1 -parallel=12 -timeout=25m
RACE = -race
# A process with the race detector waits for a second at its end, and the tests of the command have hundreds.
GORACE ?= atexit_sleep_ms=0
# The pipeline is a module of its own, and so are the command, the resolver and the login by Kerberos. The exporters of the
# pipeline, and with them gRPC, have a build tag.
TAGS = -tags=otlp
# The packages that take longest are the first, so that none of them runs alone at the end.
PACKAGES = ./internal/simulation ./recipes/locks ./framework ./recipes/queue ./internal/wire ./recipes/nodes \
	./recipes/cache ./cmd/curator/... ./internal/model ./... ./discovery/grpcresolver/... ./examples/pipeline/... \
	./sasl/kerberos/...
# The packages of the second pass: those that use a server, the longest first. docs/design/tests.md says what it finds in
# each.
SECOND = ./recipes/queue ./recipes/locks ./framework ./internal/conformance ./recipes/nodes ./curatortest ./builders \
	./interop ./cmd/curator/... ./recipes/cache ./recipes/leader ./discovery ./recipes/atomic ./recipes/barrier \
	./sasl/kerberos ./recipes/shared ./discovery/rest ./docs ./examples/... ./internal/testenv/...
export GO TAGS TEST PACKAGES SECOND GORACE

.PHONY: test
test: ## run every test (20 minutes, the first time a few more): on the in-process server, then on what it installs if it is missing, Apache ZooKeeper and Java
	@./scripts/run-tests.sh install vet memory real

.PHONY: test-in-memory
test-in-memory: ## run the tests that need no Java
	@./scripts/run-tests.sh memory

.PHONY: test-real
test-real: ## run the second pass of make test alone
	@./scripts/run-tests.sh install real

.PHONY: test-versions
test-versions: ## run the second pass of make test on ZooKeeper 3.9.3 and Curator 5.7.1, which it unpacks into .cache
	./scripts/install.sh
	versions=$$(./scripts/install-versions.sh) && eval "$$versions" && ./scripts/run-tests.sh real

.PHONY: peers
peers: ## run the tests of go-zookeeper on the in-process server
	GO="$(GO)" ./scripts/peers.sh $(ARGS)

# To compile client-go takes minutes, and go.work would give its requirements to every build: it is in neither of them.
.PHONY: test-client-go
test-client-go: ## vet and run the election by client-go of docs/leader.md, a module that make test leaves out
	GOWORK=off $(GO) -C examples/clientgo vet ./...
	GOWORK=off $(GO) -C examples/clientgo test -vet=off -count=1 -timeout=10m ./...

# The same holds for what the API server of Kubernetes checks a manifest with.
.PHONY: test-kubernetes
test-kubernetes: ## check the manifests of cmd/curator/kubernetes as Kubernetes does, which make test leaves out
	GOWORK=off $(GO) -C cmd/curator/kubernetes vet ./...
	GOWORK=off $(GO) -C cmd/curator/kubernetes test -vet=off -count=1 -timeout=10m ./...

# Here a test that bets on time fails. The race detector, which has had its turn, would take three times as long, so it is
# off unless RACE=-race. What is compiled is compiled before.
.PHONY: test-busy
test-busy: RACE =
test-busy: SPINNERS = 20
test-busy: ## run both passes of make test beside SPINNERS=20 processes that leave them little time
	./scripts/install.sh
	$(GO) test $(TAGS) $(RACE) -vet=off -run='^$$' $(PACKAGES) >/dev/null
	./scripts/busy.sh $(SPINNERS) ./scripts/run-tests.sh memory real

# The tests that have a full length. They get the machine for themselves, a few at a time: what else runs beside them would
# lose its sessions. -v shows how many faults and grants there were.
LONG = $(TEST) -p=1 -v -parallel=4 -timeout=90m -run='Chaos|Killed|Frozen|EarlierSession|Leaves?Nothing|ManyOperations' ./framework ./discovery ./discovery/grpcresolver ./interop ./recipes/... ./cmd/curator/...

.PHONY: chaos
chaos: ## run the recipes under random faults at full length, on both servers
	./scripts/install.sh
	CURATOR_TEST_SIZE=long $(LONG)
	CURATOR_TEST_SIZE=long CURATOR_TEST_SERVER=real $(LONG)

# It prints how much it has simulated, and after a violation the seed that brings it back: make simulate SEED=n.
SECONDS = 60
QUEUES = false
.PHONY: simulate
simulate: ## run the recipes under random faults in virtual time, for SECONDS=60 on all cores, or for one SEED=n; QUEUES=true adds queues, double barriers, counters, shared values and desired nodes
	CURATOR_SEED=$(SEED) $(GO) test -v -vet=off -count=1 -timeout=0 -run=TestSimulation ./internal/simulation \
		-seconds=$(SECONDS) -queues=$(QUEUES)

.PHONY: prove
prove: ## explore every order of steps and faults of the protocols in a model, at full bounds
	CURATOR_TEST_SIZE=long $(GO) test -v -vet=off -count=1 -timeout=90m ./internal/model

.PHONY: conformance
conformance: ## compare the in-process server with Apache ZooKeeper in 10,000 random sequences
	./scripts/install.sh
	CURATOR_TEST_SERVER=real $(GO) test -count=1 -timeout=90m ./internal/conformance -run Differential -sequences=10000

$(GOLANGCI_LINT):
	@echo "compiling golangci-lint $(GOLANGCI_LINT_VERSION) once, which takes some minutes; the program stays in .cache/bin"
	GOBIN="$(CURDIR)/$(@D)" $(GO) install -v github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

# The change is that of the list which internal/apicheck keeps.
BASE = origin/main
.PHONY: api
api: ## print what the public surface has lost (-) and gained (+) since BASE=origin/main, and its number of lines
	@git diff --unified=0 $(BASE) -- internal/apicheck/testdata/api.txt | grep '^[-+][a-z]' || true
	@git show $(BASE):internal/apicheck/testdata/api.txt | wc -l | xargs printf '%s lines before, '
	@wc -l <internal/apicheck/testdata/api.txt | xargs printf '%s now\n'

.PHONY: lint
lint: $(GOLANGCI_LINT) ## run the linters of .golangci.yaml
	$(GOLANGCI_LINT) run $(PACKAGES)

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## format the code
	$(GOLANGCI_LINT) fmt

.PHONY: release-check
release-check: ## check that HEAD can be released as VERSION=v0.1.0, and build the examples against it; publishes nothing
	GO="$(GO)" ./scripts/release-check.sh $(VERSION)

.PHONY: pictures
pictures: ## draw the pictures of the documentation from real runs; needs Debian's package prometheus
	./scripts/install.sh
	$(GO) run ./docs/pictures tour
	$(GO) run ./docs/pictures demo
	$(GO) run ./docs/pictures dashboard

.PHONY: bench
bench: ## measure against go-zookeeper and Java Curator; ARGS= goes to the program
	./scripts/install.sh
	$(GO) run ./bench $(ARGS)
