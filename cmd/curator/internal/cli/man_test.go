package cli

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/testenv/testclient"
)

// pagesIn returns the files of a directory.
func pagesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	pages := map[string]string{}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	testclient.Must(t, err)
	for _, name := range names {
		page, err := os.ReadFile(name)
		testclient.Must(t, err)
		pages[filepath.Base(name)] = string(page)
	}
	return pages
}

// TestManPagesAreThoseOfTheProgram compares the pages in the repository with those that the program writes.
func TestManPagesAreThoseOfTheProgram(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "share", "man1")
	expect(t, nil, "man "+dir, "")
	written := pagesIn(t, dir)
	if diff := cmp.Diff(pagesIn(t, filepath.Join("..", "..", "man")), written); diff != "" {
		t.Errorf("cmd/curator/man is old: run make man (-there +written):\n%s", diff)
	}
	for _, want := range []struct{ page, text string }{
		{"curator.1", "\\fBcurator\\-queue\\fR(1)\n"},
		{"curator.1", "\n.TP\n\\fB\\-o, \\-\\-output\\fR format\n"},
		{"curator-queue.1", "\\fBcurator\\-queue\\-requeue\\fR(1)\n"},
		{"curator-queue-requeue.1", "\n\\fB\\-n, \\-\\-count\\fR int\n"},
		{"curator-rm.1", "\n\\fB\\-\\-fence\\fR[=string]\n"},
		{"curator-completion-bash.1", "source <(curator completion bash)\n"},
	} {
		if !strings.Contains(written[want.page], want.text) {
			t.Errorf("%s lacks %q", want.page, want.text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(written)) {
		host, err := os.Hostname()
		testclient.Must(t, err)
		if strings.HasPrefix(name, "curator-guard") || strings.HasPrefix(name, "curator-help") ||
			strings.Contains(written[name], `(default "`+host+`")`) {
			t.Errorf("%s is not for everybody", name)
		}
	}
}

func TestManEscapesWhatRoffObeys(t *testing.T) {
	for text, want := range map[string]string{
		"one\ntwo":                    "one\ntwo\n",
		".TH\n'x' a-b \\n":            "\\&.TH\n\\&'x' a\\-b \\en\n",
		"\none\n\n\ntwo\n":            "one\n.PP\ntwo\n",
		"one\n  - kept\n   more\ntwo": "one\n.PP\n.RS 2\n.nf\n\\- kept\n more\n.fi\n.RE\n.PP\ntwo\n",
		"one\n\n\tkept\n\n\tlast":     "one\n.PP\n.RS 2\n.nf\n\tkept\n.fi\n.RE\n.PP\n.RS 2\n.nf\n\tlast\n.fi\n.RE\n",
		"  .kept":                     ".PP\n.RS 2\n.nf\n\\&.kept\n.fi\n.RE\n",
	} {
		p := &roff{}
		p.text(text)
		if diff := cmp.Diff(want, p.String()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
