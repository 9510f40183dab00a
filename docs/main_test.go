// Package docs_test compiles the snippets of the pages, and checks their claims, links and tables.
package docs_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
