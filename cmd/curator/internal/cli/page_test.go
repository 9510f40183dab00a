package cli

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/gocurator/curator/internal/testenv/testclient"
)

// TestPageHasSubcommandsFlagsAndExitCodes compares docs/command.md with the program.
func TestPageHasSubcommandsFlagsAndExitCodes(t *testing.T) {
	content, err := os.ReadFile("../../../../docs/command.md")
	testclient.Must(t, err)
	page := string(content)
	root := (&app{}).root()
	names := map[string]bool{"completion": true, "help": true}
	for _, c := range root.Commands() {
		names[c.Name()] = true
		if !c.Hidden && !strings.Contains(page, "`curator "+c.Name()) {
			t.Errorf("the page has no `curator %s`", c.Name())
		}
	}
	for _, part := range strings.Split(page, "`curator ")[1:] {
		name, _, _ := strings.Cut(part, "`")
		name, _, _ = strings.Cut(name, " ")
		if !names[name] {
			t.Errorf("there is no curator %s", name)
		}
	}
	lock, _, err := root.Find([]string{"lock"})
	testclient.Must(t, err)
	for _, flag := range []string{"wait", "try", "grace", "margin", "on-lost", "json"} {
		f := lock.Flags().Lookup(flag)
		if f == nil || !strings.Contains(page, "`--"+flag) {
			t.Errorf("--%s of the page or of the program is missing", flag)
		}
		if f != nil && (flag == "grace" || flag == "margin" || flag == "on-lost") &&
			!strings.Contains(page, "`--"+flag+" "+f.DefValue+"`") {
			t.Errorf("--%s: the page has another default than %s", flag, f.DefValue)
		}
	}
	for _, code := range []int{CodeOK, CodeFailed, CodeUsage, CodeNoNode, CodeNotAcquired, CodeLost, CodeRefused} {
		if !bytes.Contains(content, []byte("\n| "+strconv.Itoa(code)+" |")) {
			t.Errorf("the page has no exit code %d", code)
		}
	}
}
