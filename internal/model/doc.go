// Package model contains only tests. They model the protocols of the recipes as small machines, and a checker explores
// every reachable state. See docs/design/model.md.
package model
