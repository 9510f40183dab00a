// Package hook gives the client, its recipes, and the tests of other packages what a public package does not show. The
// package that owns a hook sets it as it is initialized.
package hook
