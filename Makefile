# make test is all that a change has to pass; it works on a fresh machine with Go and root or sudo.

GO ?= go
GOLANGCI_LINT = $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.12.2

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' Makefile

# The tests wait for timeouts more than they compute. They are vetted before.
TEST = $(GO) test $(RACE) -vet=off -count=1 -p=$(P) -parallel=12 -timeout=15m
P = 4
RACE = -race
# The pipeline is a module of its own.
PACKAGES = ./... ./examples/pipeline/...
# The second pass leaves out long tests that never use a server.
SECOND = $$($(GO) list $(PACKAGES) | grep -v -e /internal/model$$ -e /internal/exec$$)

.PHONY: test
test: ## run every test: on the in-process server, then on what it installs if it is missing, Apache ZooKeeper and Java
	./scripts/install.sh
	$(GO) vet $(PACKAGES)
	$(MAKE) --no-print-directory test-in-memory
	CURATOR_TEST_SERVER=real $(TEST) $(SECOND)

.PHONY: test-in-memory
test-in-memory: P = 5
test-in-memory: ## run the tests that need no Java
	$(TEST) $(PACKAGES)

.PHONY: test-versions
test-versions: ## run the second pass of make test on ZooKeeper 3.9.3 and Curator 5.7.1, which it unpacks into .cache
	./scripts/install.sh
	versions=$$(./scripts/install-versions.sh) && eval "$$versions" && CURATOR_TEST_SERVER=real $(TEST) $(SECOND)

.PHONY: peers
peers: ## run the tests of go-zookeeper on the in-process server
	GO="$(GO)" ./scripts/peers.sh $(ARGS)

# Here a test that bets on time fails. The race detector, which has had its turn, would take three times as long, so it is
# off unless RACE=-race. What is compiled is compiled before.
.PHONY: test-busy
test-busy: P = 5
test-busy: RACE =
test-busy: SPINNERS = 20
test-busy: ## run the tests that need no Java beside SPINNERS=20 processes that leave them little time
	$(GO) test $(RACE) -vet=off -run='^$$' $(PACKAGES) >/dev/null
	./scripts/busy.sh $(SPINNERS) $(TEST) $(PACKAGES)

# The tests that have a full length. They get the machine for themselves, a few at a time: what else runs beside them would
# lose its sessions. -v shows how many faults and grants there were.
LONG = $(TEST) -v -parallel=4 -timeout=90m -run='Chaos|Killed|Frozen|EarlierSession|Leaves?Nothing|ManyOperations' ./framework ./recipes/...

.PHONY: chaos
chaos: P = 1
chaos: ## run the recipes under random faults at full length, on both servers
	./scripts/install.sh
	CURATOR_TEST_SIZE=long $(LONG)
	CURATOR_TEST_SIZE=long CURATOR_TEST_SERVER=real $(LONG)

# It prints how much it has simulated, and after a violation the seed that brings it back: make simulate SEED=n.
SECONDS = 60
QUEUES = false
.PHONY: simulate
simulate: ## run the recipes under random faults in virtual time, for SECONDS=60 on all cores, or for one SEED=n; QUEUES=true adds queues and double barriers
	CURATOR_SEED=$(SEED) $(GO) test -v -vet=off -count=1 -timeout=0 -run=TestSimulation ./internal/simulation \
		-seconds=$(SECONDS) -queues=$(QUEUES)

.PHONY: prove
prove: ## explore every order of steps and faults of the protocols in a model, at full bounds
	CURATOR_TEST_SIZE=long $(GO) test -v -vet=off -count=1 -timeout=90m ./internal/model

.PHONY: conformance
conformance: ## compare the in-process server with Apache ZooKeeper in 10,000 random sequences
	./scripts/install.sh
	CURATOR_TEST_SERVER=real $(GO) test -count=1 -timeout=90m ./internal/conformance -run Differential -sequences=10000

.PHONY: lint
lint: ## run the linters of .golangci.yaml
	$(GOLANGCI_LINT) run $(PACKAGES)

.PHONY: fmt
fmt: ## format the code
	$(GOLANGCI_LINT) fmt

.PHONY: release-check
release-check: ## check that HEAD can be released as VERSION=v0.1.0, and build the examples against it; publishes nothing
	GO="$(GO)" ./scripts/release-check.sh $(VERSION)

.PHONY: bench
bench: ## measure against go-zookeeper and Java Curator; ARGS= goes to the program
	./scripts/install.sh
	$(GO) run ./bench $(ARGS)
