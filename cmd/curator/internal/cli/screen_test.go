package cli

import (
	"fmt"
	"html"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/gocurator/curator/internal/testenv/testclient"
)

// words returns the screen with one space between words.
func words(s *screen) string {
	var lines []string
	for line := range strings.Lines(s.View().Content) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// newScreen returns a screen of a size, with a lock that two want.
func newScreen(width, height int, colors bool) *screen {
	s := &screen{root: "/demo", connected: true, colors: colors, rows: map[string]*row{}}
	s.Init()
	s.Update(tea.WindowSizeMsg{Width: width, Height: height})
	for i, state := range []string{"holds", "waits"} {
		h := holder{
			Recipe: "lock", Path: "/demo/locks/orders", State: state, Node: "lock-000000000" + string(rune('0'+i)),
			Since: s.now, Token: int64(i + 1), Session: "0x100000000000001", Address: "host-" + string(rune('1'+i)),
		}
		if i > 0 {
			h.For = "lock-0000000000"
		}
		s.Update(participantChanged{changeAdded, h})
	}
	s.Update(participantChanged{changeAdded, holder{
		Recipe: "members", Path: "/demo/hosts", State: "member", Node: "a", Since: s.now, ID: "a",
	}})
	return s
}

func TestScreenFitsTheTerminal(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {40, 6}, {200, 50}, {1, 1}, {0, 0}} {
		for _, colors := range []bool{true, false} {
			s := newScreen(size[0], size[1], colors)
			text := s.View().Content
			if strings.Contains(text, "\x1b") && !colors {
				t.Errorf("%v: colours without colours: %q", size, text)
			}
			lines := strings.Split(text, "\n")
			if want := max(size[1], 3); len(lines) > want {
				t.Errorf("%v: %d lines", size, len(lines))
			}
			for _, line := range lines {
				if ansi.StringWidth(line) > size[0] {
					t.Errorf("%v: a line is %d wide: %q", size, ansi.StringWidth(line), line)
				}
			}
		}
	}
}

func TestScreenShowsWhoWaits(t *testing.T) {
	s := newScreen(80, 24, false)
	text := words(s)
	for _, want := range []string{
		"holds host-1 0s lock-0000000000 -\n", "waits host-2 0s lock-0000000001 host-1\n", "member a",
		"/demo 3 participants", "q quit",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q on\n%s", want, text)
		}
	}
	s.Update(tea.KeyPressMsg{Code: 'w', Text: "w"})
	if text := words(s); strings.Contains(text, "member") || !strings.Contains(text, "holds host-1") {
		t.Errorf("after w:\n%s", text)
	}
	s.Update(connection(false))
	if text := words(s); !strings.Contains(text, "NOT CONNECTED") {
		t.Errorf("without a connection:\n%s", text)
	}
	if _, cmd := s.Update(tea.KeyPressMsg{Code: 'q', Text: "q"}); cmd == nil {
		t.Error("q does not end it")
	}
}

func TestScreenForgetsWhatIsGone(t *testing.T) {
	s := newScreen(80, 24, false)
	gone := holder{Recipe: "members", Path: "/demo/hosts", Node: "a"}
	s.Update(participantChanged{changeRemoved, gone})
	if text := words(s); !strings.Contains(text, "\n- /demo/hosts") {
		t.Errorf("what is gone has no mark:\n%s", text)
	}
	s.Update(second(s.now.Add(fresh + time.Second)))
	if text := words(s); strings.Contains(text, "/demo/hosts") {
		t.Errorf("what is gone is still there:\n%s", text)
	}
}

func TestScreenScrolls(t *testing.T) {
	s := newScreen(80, 5, false) // a line for a row at a time
	for range 9 {
		s.Update(tea.KeyPressMsg{Code: tea.KeyDown})
	}
	if text := words(s); !strings.Contains(text, "waits host-2") {
		t.Errorf("at the end:\n%s", text)
	}
	for range 9 {
		s.Update(tea.KeyPressMsg{Code: tea.KeyUp})
	}
	if text := words(s); !strings.Contains(text, "member a") {
		t.Errorf("at the beginning:\n%s", text)
	}
}

func TestScreenLeavesColumnsOut(t *testing.T) {
	for _, test := range []struct {
		width int
		want  string // the headers and the waiting one
	}{
		{90, "PATH RECIPE STATE WHO FOR NODE WAITS FOR/demo/locks/orders lock waits host-2 0s lock-0000000001 host-1"},
		{70, "PATH RECIPE STATE WHO FOR WAITS FOR/demo/locks/orders lock waits host-2 0s host-1"},
		{55, "PATH RECIPE STATE WHO FOR WAITS FOR…mo/locks/orders lock waits host-2 0s host-1"},
		{50, "PATH STATE WHO FOR WAITS FOR…mo/locks/orders waits host-2 0s host-1"},
		{40, "PATH STATE WHO FOR…mo/locks/orders waits host-2 0s"},
		{32, "PATH STATE WHO…mo/locks/orders waits host-2"},
	} {
		lines := strings.Split(words(newScreen(test.width, 24, false)), "\n")
		got := lines[1]
		for _, line := range lines {
			if strings.Contains(line, "waits") && strings.HasPrefix(line, "+ ") {
				got += line[2:]
			}
		}
		if got != test.want {
			t.Errorf("%d columns:\n%s, not\n%s", test.width, got, test.want)
		}
	}
}

func TestScreenDoesNotObeyNames(t *testing.T) {
	s := newScreen(80, 24, false)
	s.root = "/\x1b[31m"
	for _, h := range []holder{
		{Recipe: "members", State: "member", Path: "/a\x1b[2J", Node: "n\x1b]0;t\a", ID: "\u009b31m", Address: "\x1b[1m"},
		{Recipe: "lock", State: "holds", Path: "/b", Node: "lock-1", ID: "\x1b[2J"},
		{Recipe: "lock", State: "waits", Path: "/b", Node: "lock-2", For: "lock-1"},
		{Recipe: "lock", State: "waits", Path: "/b", Node: "lock-3", For: "\x1b[2J"},
	} {
		s.Update(participantChanged{changeAdded, h})
	}
	v := s.View()
	if text := v.Content + v.WindowTitle; strings.ContainsAny(text, "\x1b\a\u009b") {
		t.Errorf("the screen obeys: %q", text)
	}
}

func TestDemoScreenFitsTheTerminal(t *testing.T) {
	addrs := []string{"127.0.0.1:40001", "127.0.0.1:40002", "127.0.0.1:40003"}
	for _, size := range [][2]int{{80, 24}, {40, 6}, {200, 50}, {1, 1}, {0, 0}} {
		for _, environ := range []string{"NO_COLOR=1", "NO_COLOR="} {
			a := &app{Env: Env{Getenv: environment([]string{environ}).Getenv}}
			d := a.newDemoScreen("a demo", addrs)
			d.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			d.Update(participantChanged{changeAdded, holder{
				Recipe: "members", Path: "/demo/hosts", State: "member", ID: "host-2", Session: "0x1",
			}})
			for _, h := range []holder{
				{Recipe: "lock", Path: "/demo/locks/orders", State: "holds", Node: "1", Session: "0x2", ID: "\x1b[2J"},
				{Recipe: "lock", Path: "/demo/locks/orders", State: "waits", Node: "2", Session: "0x1"},
				{Recipe: "queue-locks", Path: "/demo/jobs-locks", State: "consumed", Node: "2", Session: "0x1"},
			} {
				d.Update(participantChanged{changeAdded, h})
			}
			text := d.View().Content
			if strings.Contains(text, "\x1b[2J") || strings.Contains(text, "\x1b") && environ == "NO_COLOR=1" {
				t.Errorf("%v: %q", size, text)
			}
			lines := strings.Split(text, "\n")
			if want := max(size[1], 2); len(lines) != want {
				t.Errorf("%v: %d lines, not %d", size, len(lines), want)
			}
			for _, line := range lines {
				if ansi.StringWidth(line) > size[0] {
					t.Errorf("%v: a line is %d wide: %q", size, ansi.StringWidth(line), line)
				}
			}
			if size[0] < 80 {
				continue
			}
			shown := ansi.Strip(text)
			for _, want := range []string{
				"host-1    host-2    host-3    you\n", "/demo/locks/orders     -         waits     -         holds\n",
				"/demo/jobs             -         works     -         0 waiting\n",
				"  export CURATOR_CONNECT=127.0.0.1:40001,127.0.0.1:40002,127.0.0.1:40003\n", "host-2       takes a job\n",
			} {
				if !strings.Contains(shown, want) {
					t.Errorf("no %q on\n%s", want, shown)
				}
			}
		}
	}
}

func TestDemoKnowsItsName(t *testing.T) {
	const ran = "/tmp/go-build1/b001/exe/curator"
	if got := programName(ran); got != ran { // whoever is elsewhere types what there is
		t.Errorf("outside of a clone: %q", got)
	}
	t.Chdir("../../../..")
	for arg, want := range map[string]string{
		ran: "go run ./cmd/curator", "curator": "curator", "/usr/bin/curator": "/usr/bin/curator",
	} {
		if got := programName(arg); got != want {
			t.Errorf("%s: %q, not %q", arg, got, want)
		}
	}
}

// TestDemoIsThatOfThePicture holds the picture of the documentation to the program: make pictures draws it again.
func TestDemoIsThatOfThePicture(t *testing.T) {
	t.Chdir("../../../..")
	svg, err := os.ReadFile("docs/demo.svg")
	testclient.Must(t, err)
	shown := html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(string(svg), ""))
	const clone = "/go-build/curator" // of go run
	wanted := []string{"$ go run ./cmd/curator demo --port 2181\n", demoTitle(3) + "\n", "\nq quit\n"}
	for _, line := range demoLines(clone, "127.0.0.1:2181,127.0.0.1:2182,127.0.0.1:2183") {
		wanted = append(wanted, "\n  "+line+"\n")
	}
	for _, row := range demoRows {
		wanted = append(wanted, fmt.Sprintf("\n  %-10s %-22s ", row.what, row.path))
	}
	for _, want := range wanted {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in\n%s", want, shown)
		}
	}
}

// TestDemoScreenShowsAllHosts is about screens that have no room for all of the picture beside each other.
func TestDemoScreenShowsAllHosts(t *testing.T) {
	addrs := []string{"127.0.0.1:40001", "127.0.0.1:40002", "127.0.0.1:40003"}
	for width := 29; width <= 100; width++ {
		for _, others := range []bool{false, true} {
			a := &app{Env: Env{Getenv: environment([]string{"NO_COLOR=1"}).Getenv}}
			d := a.newDemoScreen("a demo", addrs)
			d.Update(tea.WindowSizeMsg{Width: width, Height: 40})
			states := []string{"reads", "waits", "holds"}
			for i, state := range states {
				session := fmt.Sprintf("0x%d", i)
				d.Update(participantChanged{changeAdded, holder{
					Recipe: "members", Path: "/demo/hosts", State: "member", Node: session, Session: session,
					ID: fmt.Sprintf("host-%d", i+1),
				}})
				d.Update(participantChanged{changeAdded, holder{
					Recipe: "semaphore", Path: "/demo/licences", Node: session, Session: session, State: state,
				}})
			}
			heads := []string{"host-1", "host-2", "host-3"}
			if others {
				d.Update(participantChanged{changeAdded, holder{
					Recipe: "semaphore", Path: "/demo/licences", Node: "9", Session: "0x9", State: "writes",
				}})
				heads, states = append(heads, "you"), append(states, "writes")
			}
			screen := ansi.Strip(d.View().Content)
			for _, want := range []string{strings.Join(heads, " +"), strings.Join(states, " +")} {
				if !regexp.MustCompile("(?m)" + want + "$").MatchString(screen) {
					t.Errorf("%d columns, others %v: no %q on\n%s", width, others, want, screen)
				}
			}
			for _, want := range []string{"semaphore", "rw lock", "service", "queue"} {
				if !strings.Contains(screen, "  "+want) {
					t.Errorf("%d columns: no %q on\n%s", width, want, screen)
				}
			}
			commands := strings.ReplaceAll(screen, " \\\n", " ") // as a shell reads them
			for _, want := range []string{`lock\s+/demo/locks/orders\s+--\s+sleep\s+5`, `holders\s+/demo/locks\s+--follow`} {
				if width >= 45 && !regexp.MustCompile(want).MatchString(commands) {
					t.Errorf("%d columns: no %q on\n%s", width, want, screen)
				}
			}
			for line := range strings.Lines(screen) {
				if ansi.StringWidth(strings.TrimRight(line, "\n")) > width {
					t.Errorf("%d columns: a line is wider: %q", width, line)
				}
			}
		}
	}
}
