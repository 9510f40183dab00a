package apicheck

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

const file = "testdata/api.txt"

var update = flag.Bool("update", false, "write "+file+" anew")

func TestSurfaceIsTheReviewedOne(t *testing.T) {
	got := surfaceOfModule(t)
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := compare(strings.Split(strings.TrimSpace(string(data)), "\n"), got); diff != "" {
		t.Errorf("the exported surface differs from %s (- reviewed, + now):\n%s"+
			"Run go test ./internal/apicheck -update if that is meant.", file, diff)
	}
}

func TestSurfaceNamesNoInternalType(t *testing.T) {
	for _, name := range leaksOf(surfaceOfModule(t)) {
		t.Errorf("%s names a type of an internal package", name)
	}
}

// compare returns the lines that two sorted lists do not share, in their order.
func compare(want, got []string) string {
	type change struct{ line, sign string }
	var changes []change
	for _, line := range want {
		if !slices.Contains(got, line) {
			changes = append(changes, change{line, "- "})
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			changes = append(changes, change{line, "+ "})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return strings.Compare(a.line, b.line) })
	var b strings.Builder
	for _, c := range changes {
		b.WriteString(c.sign + c.line + "\n")
	}
	return b.String()
}
