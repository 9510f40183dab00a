// Package model holds the protocols of the recipes as small machines, and a checker that explores every state that they can
// reach. Nothing of the library imports it. See docs/design/model.md.
package model
