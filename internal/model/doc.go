// Package model has tests alone. They hold the protocols of the recipes as small machines, and a checker that explores
// every state that these can reach. See docs/design/model.md.
package model
