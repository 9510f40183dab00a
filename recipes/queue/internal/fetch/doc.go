// Package fetch decides which items a queue claims, and when.
//
// Fetcher.Next returns the next item that is ours. Its mode says how it learns of items: from a list, or from watches.
package fetch
