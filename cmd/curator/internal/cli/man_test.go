package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gocurator/curator/internal/testenv/testclient"
)

func TestManWritesAPageForEachSubcommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "share", "man1")
	expect(t, nil, "man "+dir, "")
	host, err := os.Hostname()
	testclient.Must(t, err)
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	testclient.Must(t, err)
	pages := make(map[string]string)
	for _, name := range names {
		page, err := os.ReadFile(name)
		testclient.Must(t, err)
		pages[filepath.Base(name)] = string(page)
		if strings.Contains(string(page), `"`+host+`"`) {
			t.Errorf("%s has the name of this host", name)
		}
	}
	for _, want := range []struct{ page, text string }{
		{"curator.1", `\fBcurator-queue(1)\fP`},
		{"curator.1", `\fB--connect-timeout\fP=15s`},
		{"curator-queue.1", `\fBcurator-queue-requeue(1)\fP`},
		{"curator-queue-requeue.1", `\fB-n\fP, \fB--count\fP=`},
		{"curator-lock.1", "CURATOR_LOCK_TOKEN"},
		{"curator-rm.1", `\fB--fence\fP`},
	} {
		if !strings.Contains(pages[want.page], want.text) {
			t.Errorf("%s lacks %q", want.page, want.text)
		}
	}
	for page := range pages {
		if strings.HasPrefix(page, "curator-guard") || strings.HasPrefix(page, "curator-help") {
			t.Errorf("there is a page %s", page)
		}
	}
}
