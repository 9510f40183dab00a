// Package docs_test compiles the snippets of the pages, and checks their claims, links and tables.
package docs_test

import (
	"testing"

	"github.com/gocurator/curator/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
