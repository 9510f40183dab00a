# make test is all that a change has to pass; it works on a fresh machine with Go and root or sudo.

GO ?= go
GOLANGCI_LINT = $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.12.2

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "%-6s %s\n", $$1, $$2 }' Makefile

.PHONY: test
test: ## install what is missing, vet, and run every test with the race detector
	./scripts/install.sh
	$(GO) vet ./...
	$(GO) test -race -count=1 -timeout=15m ./...

.PHONY: lint
lint: ## run the linters of .golangci.yaml
	$(GOLANGCI_LINT) run

.PHONY: fmt
fmt: ## format the code
	$(GOLANGCI_LINT) fmt

.PHONY: bench
bench: ## measure against go-zookeeper and Java Curator; ARGS= goes to the program
	./scripts/install.sh
	$(GO) run ./bench $(ARGS)
