package docs_test

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/jute"
)

// The table of errors.md is that of the code.
func TestErrorsPageHasEveryCode(t *testing.T) {
	page, err := os.ReadFile("errors.md")
	if err != nil {
		t.Fatal(err)
	}
	classes := map[jute.Class]string{
		jute.Final: "final", jute.Passing: "transient", jute.AboutNode: "about the node",
		jute.AboutSession: "about the session",
	}
	var want, got []string
	for c := jute.Code(-1); c > -1000; c-- {
		if c.Err() == error(jute.UnknownCode(c)) {
			continue
		}
		effect := "no"
		if c.LeavesOpen() {
			effect = "yes"
		}
		want = append(want, fmt.Sprintf("| %d | %v | %s | %s |", c, c, classes[c.Class()], effect))
	}
	rows := regexp.MustCompile(`(?m)^(\| -\d+ \| \w+ \| [a-z ]+ \| (?:yes|no) \|) \S.*\|$`)
	for _, row := range rows.FindAllStringSubmatch(string(page), -1) {
		got = append(got, row[1])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
