//go:build unix

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// terminal is one of tmux, which interprets what a program writes as the terminal of a user does.
type terminal struct {
	tb            testing.TB
	dir           string
	width, height int
}

// openTerminal starts the program in a terminal, below a shell that has written a line before it. tmux is one of the
// programs that make test installs, and only before the tests on Apache ZooKeeper.
func openTerminal(tb testing.TB, width, height int, environ []string, args ...string) *terminal {
	tb.Helper()
	testenv.RequireReal(tb)
	dir, err := os.MkdirTemp("", "tmux") //nolint:usetesting // the name of a socket must be short
	testclient.Must(tb, err)
	tb.Cleanup(func() { _ = os.RemoveAll(dir) }) // the system removes what is left
	environ = append(slices.Clone(environ), "PATH="+nameProgram(tb))
	term := &terminal{tb, dir, width, height}
	script := `stty -g >"$0/before"; echo "$ curator"; sh -c 'echo $$ >"$0/pid"; exec env "$@"' "$0" "$@"; code=$?; ` +
		`stty -g >"$0/after"; echo "ended with $code"; exec cat` // the end of cat ends the terminal
	command := []string{
		"-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height),
		"sh", "-c", script, dir, asProgram, "GORACE=atexit_sleep_ms=0",
	}
	tb.Cleanup(func() {
		if err := exec.Command("tmux", "-S", term.socket(), "kill-server").Run(); err != nil {
			tb.Errorf("end of tmux: %v", err)
		}
	})
	term.tmux(slices.Concat(command, environ, []string{"curator"}, args)...)
	return term
}

// nameProgram gives the program its name, and returns a PATH where it is.
func nameProgram(tb testing.TB) string {
	tb.Helper()
	self, err := os.Executable()
	testclient.Must(tb, err)
	dir := tb.TempDir()
	testclient.Must(tb, os.Symlink(self, filepath.Join(dir, "curator")))
	return dir + string(filepath.ListSeparator) + os.Getenv("PATH")
}

func (t *terminal) socket() string { return filepath.Join(t.dir, "s") }

// tmux runs a command of tmux and returns its output.
func (t *terminal) tmux(args ...string) string {
	t.tb.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command("tmux", append([]string{"-u", "-S", t.socket()}, args...)...)
	for _, e := range os.Environ() { // a terminal around the tests is none of theirs
		if !strings.HasPrefix(e, "TMUX") && !strings.HasPrefix(e, "NO_COLOR=") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.tb.Fatalf("tmux %q: %v: %s", args, err, stderr.String())
	}
	return string(out)
}

// lines returns what the terminal shows, and fails if a line is longer than the terminal is wide.
func (t *terminal) lines() []string {
	t.tb.Helper()
	lines := strings.Split(strings.TrimSuffix(t.tmux("capture-pane", "-p", "-J"), "\n"), "\n") // a wrapped line is one
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
		if w := ansi.StringWidthWc(lines[i]); w > t.width {
			t.tb.Errorf("a line is %d wide, not %d: %q", w, t.width, line)
		}
	}
	return lines
}

// text returns what the terminal shows, with one space between words.
func (t *terminal) text() string {
	t.tb.Helper()
	var lines []string
	for _, line := range t.lines() {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// await waits until the terminal shows something that matches, and returns all that it shows then.
func (t *terminal) await(pattern string) string {
	t.tb.Helper()
	re, text := regexp.MustCompile(pattern), ""
	defer func() {
		if t.tb.Failed() {
			t.tb.Logf("the terminal, when it was to show %s:\n%s", pattern, text)
		}
	}()
	testenv.Eventually(t.tb, func() bool {
		text = t.text()
		return re.MatchString(text)
	}, pattern)
	return text
}

// keys types keys, by their names in tmux.
func (t *terminal) keys(names ...string) {
	t.tb.Helper()
	t.tmux(append([]string{"send-keys"}, names...)...)
}

// resize gives the terminal another size.
func (t *terminal) resize(width, height int) {
	t.tb.Helper()
	t.width, t.height = max(width, t.width), max(height, t.height) // until it is drawn again
	t.tmux("resize-window", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height))
	testenv.Eventually(t.tb, func() bool {
		return t.is("#{pane_width} #{pane_height}") == fmt.Sprint(width, " ", height)
	}, "the size")
	t.width, t.height = width, height
}

// is returns the value of a format of tmux.
func (t *terminal) is(format string) string {
	t.tb.Helper()
	return strings.TrimSpace(t.tmux("display-message", "-p", format))
}

// requireRestored waits for the end of the program, and checks that the terminal is as it was before it.
func (t *terminal) requireRestored(code int) {
	t.tb.Helper()
	text := t.await(fmt.Sprintf(`(?m)^ended with %d$`, code))
	if !strings.Contains(text, "$ curator\n") {
		t.tb.Errorf("what was there before the program is gone:\n%s", text)
	}
	const state = "alternate #{alternate_on}, cursor #{cursor_flag}, mouse #{mouse_any_flag}, keypad #{keypad_flag}"
	if got, want := t.is(state), "alternate 0, cursor 1, mouse 0, keypad 0"; got != want {
		t.tb.Errorf("the terminal after the program: %s, not %s", got, want)
	}
	before, err := os.ReadFile(filepath.Join(t.dir, "before"))
	testclient.Must(t.tb, err)
	after, err := os.ReadFile(filepath.Join(t.dir, "after"))
	testclient.Must(t.tb, err)
	if !bytes.Equal(before, after) {
		t.tb.Errorf("the modes of the terminal are %s, not %s", after, before)
	}
}

// record has all bytes which the program writes from here on in a file, and returns a function that reads it.
func (t *terminal) record() func() string {
	t.tb.Helper()
	name := filepath.Join(t.dir, "bytes")
	t.tmux("pipe-pane", "-O", "exec cat >"+name)
	return func() string {
		t.tb.Helper()
		data, err := os.ReadFile(name)
		if !errors.Is(err, fs.ErrNotExist) {
			testclient.Must(t.tb, err)
		}
		return string(data)
	}
}

// colors matches the sequences that set a color.
var colors = regexp.MustCompile(`\x1b\[(?:[0-9;:]*[;:])?(?:[349][0-7]|10[0-7]|[34]8[;:][0-9;:]*)(?:[;:][0-9;:]*)?m`)

// holdersOf returns a client, two contenders for /locks/a, and the terminal of holders --follow.
func holdersOf(
	t *testing.T, width, height int, environ ...string,
) (client *framework.Client, first string, term *terminal) {
	t.Helper()
	testenv.RequireReal(t)
	servers, connect := connected(t)
	client = testclient.Connect(t, connect)
	first = contend(t, client, "/locks/a", "one")
	contend(t, client, "/locks/a", "two")
	return client, first, openTerminal(t, width, height, slices.Concat(environ, servers), "holders", "/locks", "--follow")
}

func TestTerminalShowsHolders(t *testing.T) {
	for _, test := range []struct {
		name, environ string
		width, height int
		code          int
		colors        bool
	}{
		{name: "colors", environ: "TERM=screen-256color", width: 80, height: 24, colors: true},
		{name: "true colors", environ: "COLORTERM=truecolor", width: 80, height: 24, colors: true},
		{name: "no colors", environ: "NO_COLOR=1", width: 80, height: 24},
		{name: "narrow", environ: "TERM=tmux", width: 40, height: 10, colors: true},
		{name: "wide", environ: "TERM=screen", width: 200, height: 50, colors: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			client, first, term := holdersOf(t, test.width, test.height, test.environ)
			written := term.record()
			term.await(`(?s)/locks/a .*holds one .*/locks/a .*waits two .*q quit`)
			if got := term.is("#{alternate_on} #{cursor_flag}"); got != "1 0" {
				t.Errorf("alternate screen and cursor: %s", got)
			}
			third := contend(t, client, "/locks/a", "three")
			term.await(`waits three `)
			testclient.Must(t, client.Delete().ForPath(t.Context(), first))
			// What is gone goes, after a while in which it has a mark.
			term.await(`(?m)^PATH .*\n(?:\+ )?/locks/a .*holds two .*\n(?:\+ )?/locks/a .*waits three .*\n\n`)
			testclient.Must(t, client.Delete().ForPath(t.Context(), third))
			term.await(`(?m)^PATH .*\n(?:\+ )?/locks/a .*holds two .*\n\n`)
			shown := term.tmux("capture-pane", "-p", "-e")
			if got := colors.MatchString(shown); got != test.colors {
				t.Errorf("colors: %t, not %t, in %q", got, test.colors, shown)
			}
			term.keys("q")
			term.requireRestored(CodeOK)
			if bytes := written(); colors.MatchString(bytes) && !test.colors {
				t.Errorf("colors in what was written: %q", colors.FindAllString(bytes, -1))
			}
		})
	}
}

func TestTerminalIsRestored(t *testing.T) {
	for _, key := range []string{"q", "C-c", "Escape"} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			_, _, term := holdersOf(t, 80, 24)
			term.await(`holds one`)
			term.keys(key)
			term.requireRestored(CodeOK)
		})
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			_, _, term := holdersOf(t, 80, 24)
			term.await(`holds one`)
			text, err := os.ReadFile(filepath.Join(term.dir, "pid"))
			testclient.Must(t, err)
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			testclient.Must(t, err)
			testclient.Must(t, syscall.Kill(pid, signal))
			term.requireRestored(CodeOK)
		})
	}
	t.Run("error", func(t *testing.T) {
		t.Parallel()
		client, _, term := holdersOf(t, 80, 24)
		term.await(`holds one`)
		testclient.Must(t, client.Delete().DeletingChildrenIfNeeded().ForPath(t.Context(), "/locks"))
		term.requireRestored(CodeNoNode)
		term.await(`(?m)^curator: getData /locks: node does not exist$`)
	})
}

func TestTerminalIsResized(t *testing.T) {
	_, _, term := holdersOf(t, 80, 24)
	term.await(`(?m)^/locks/a lock holds one \S+ lock-0000000000 -$\n^/locks/a lock waits two \S+ lock-0000000001 one$`)
	for _, size := range [][2]int{{40, 8}, {100, 30}, {20, 5}, {80, 24}} {
		term.resize(size[0], size[1])
		text := term.await(fmt.Sprintf(`(?s)^\d\d:.*\n(.*\n){%d}q quit`, size[1]-2))
		if size[0] >= 40 && !regexp.MustCompile(`(?s)holds one.*waits two`).MatchString(text) {
			t.Errorf("at %v:\n%s", size, text)
		}
	}
	term.keys("q")
	term.requireRestored(CodeOK)
}

// TestTerminalDoesNotObeyNames has names and data that a terminal would obey, or whose characters are not as wide as
// others.
func TestTerminalDoesNotObeyNames(t *testing.T) {
	testenv.RequireReal(t)
	servers, connect := connected(t)
	client := testclient.Connect(t, connect)
	contend(t, client, "/x/locks/"+strings.Repeat("very-long/", 30)+"end", strings.Repeat("long", 50))
	contend(t, client, "/x/ロック/漢字漢字漢字漢字漢字漢字", "ホスト一")
	contend(t, client, "/x/한국어", "🔒 host")
	contend(t, client, "/x/e\u0301a\u0308", "o\u0308 ✔\ufe0f 🇩🇪")
	contend(t, client, "/x/\u202eltr", "\u202eltr")
	contend(t, client, "/x/seq", "a\x1b[31m\x1b[2J\x1b]0;title\x07")
	for path, data := range map[string]string{
		"/x/services/s/one": `{"name":"s","id":"one","address":"\u001b[2J\u001b[31mred","registrationTimeUTC":1}`,
		"/x/group/\u2066m":  "",
	} {
		_, err := client.Create().CreatingParentsIfNeeded().WithMode(builders.Ephemeral).
			ForPath(t.Context(), path, []byte(data))
		testclient.Must(t, err)
	}
	term := openTerminal(t, 80, 24, append(servers, "NO_COLOR=1"), "holders", "/x", "--follow")
	written := term.record()
	text := term.await(`(?s)^\d\d:\S+ /x 8 participants\n(.+\n){9}\n`) // and each has a line of its own
	for _, want := range []string{                                     // Bubble Tea leaves combining marks out
		"/x/ea lock holds o ✔\ufe0f 🇩🇪 ", "/x/한국어 lock holds 🔒 host ", "漢字漢字漢字 lock holds ホスト一 ",
		"…g/very-long/end lock holds longlonglong", "/x/seq lock holds - ", `"/x/\u202eltr" lock holds - `,
		`/x/group members member "\u2066m" `, `/x/services/s service member one "\x1b[2J\x1…`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q on\n%s", want, text)
		}
	}
	// As wide as a character is, the columns stay below each other.
	lines := term.lines()
	before, _, _ := strings.Cut(lines[1], "STATE")
	for _, line := range lines[2:10] {
		state := ansi.TruncateWc(ansi.TruncateLeftWc(line, len(before), ""), len("member"), "")
		if state != "holds " && state != "member" {
			t.Errorf("%q is in the column of the state: %s", state, line)
		}
	}
	term.keys("q")
	term.requireRestored(CodeOK)
	if bytes := written(); colors.MatchString(bytes) || strings.ContainsAny(bytes, "\u202e\u2066") ||
		strings.Contains(bytes, "title\a") {
		t.Errorf("written: %q", bytes)
	}
	got := invoke(t.Context(), []string{"holders", "/x"}, servers...)
	if strings.ContainsAny(got.stdout, "\x1b\u202e\u2066") {
		t.Errorf("holders: %q", got.stdout)
	}
}

func TestTerminalSaysWhatIsOld(t *testing.T) {
	testenv.RequireReal(t)
	server := curatortest.NewServerT(t)
	client := testclient.Connect(t, server.ConnectString())
	contend(t, client, "/locks/a", "one")
	connect := []string{"CURATOR_CONNECT=" + server.ConnectString(), "NO_COLOR=1"}
	term := openTerminal(t, 80, 24, connect, "holders", "/locks", "--follow")
	term.await(`(?s)^\d\d:\S+ /locks 1 participant\n.*holds one`)
	testclient.Must(t, server.Stop())
	term.await(`(?s)^\d\d:\S+ /locks 1 participant NOT CONNECTED: this is old\n.*holds one`)
	testclient.Must(t, server.Restart())
	term.await(`(?s)^\d\d:\S+ /locks 1 participant\n.*holds one`)
	contend(t, client, "/locks/a", "two")
	term.await(`(?s)^\d\d:\S+ /locks 2 participants\n.*holds one.*waits two \S+ lock-0000000001 one\n`)
	term.keys("q")
	term.requireRestored(CodeOK)
}
