package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/zkpath"
)

// isTerminal reports whether the program has a terminal for a screen that moves.
func (a *app) isTerminal() bool {
	in, ok := a.Stdin.(*os.File)
	if !ok || !term.IsTerminal(in.Fd()) {
		return false
	}
	out, ok := a.Stdout.(*os.File)
	return ok && term.IsTerminal(out.Fd()) && a.Getenv("TERM") != "dumb"
}

// screenOfHolders shows the participants on the whole terminal, until a key ends it.
func (a *app) screenOfHolders(ctx context.Context, client *framework.Client, root string, o holding) error {
	return a.onScreen(ctx, client, o, root, a.newScreen(root))
}

// onScreen shows a model, which gets the changes of the participants, on the whole terminal.
func (a *app) onScreen(
	ctx context.Context, client *framework.Client, o holding, root string, model tea.Model,
) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := tea.NewProgram(model, tea.WithInput(a.Stdin), tea.WithOutput(a.Stdout), tea.WithoutSignalHandler())
	defer client.AddConnectionStateListener(func(_ context.Context, state framework.ConnectionState) {
		p.Send(connection(state.IsConnected()))
	})()
	var work sync.WaitGroup
	var failed error // of the reading, which ends the screen
	work.Go(func() {
		defer cancel()
		unread := func(n int, _ error) { p.Send(unreadableNodes(n)) }
		err := o.followed(ctx, client, root, unread, func(change string, h holder) error {
			p.Send(participantChanged{change, h})
			return nil
		})
		if ctx.Err() == nil {
			failed = err
		}
	})
	work.Go(func() {
		<-ctx.Done()
		p.Quit() // if it had the context, it would close its input while it reads from it
	})
	_, err := p.Run()
	cancel()
	work.Wait()
	if err == nil {
		err = failed
	}
	return err
}

// The messages to the screen.
type (
	participantChanged struct {
		change string
		holder holder
	}
	connection      bool
	unreadableNodes int
	second          time.Time
)

// The columns of the screen that have a rule.
const (
	columnPath     = 1
	columnRecipe   = 2
	columnWho      = 4
	columnFor      = 5
	columnNode     = 6
	columnWaitsFor = 7
)

// The width of the widest cell of a path or a name, and that on a screen without room for it.
const (
	maxCell   = 24
	maxNarrow = 16
)

// fresh is how long a change is marked.
const fresh = 2 * time.Second

// row is a line of the screen.
type row struct {
	holder
	changed time.Time
	gone    bool
}

// screen is the state of the screen. Its methods run on one goroutine.
type screen struct {
	root          string
	connected     bool
	unreadable    int // nodes
	colors        bool
	waiting       bool // show those alone that wait, and whom they wait for
	width, height int
	top           int // the first line that is shown
	now           time.Time
	rows          map[string]*row
}

func (a *app) newScreen(root string) *screen {
	return &screen{root: root, connected: true, colors: a.Getenv("NO_COLOR") == "", rows: map[string]*row{}}
}

// Init begins the seconds.
func (s *screen) Init() tea.Cmd {
	s.now = time.Now()
	return tick()
}

func tick() tea.Cmd { return tea.Tick(time.Second, func(t time.Time) tea.Msg { return second(t) }) }

// Update takes a message.
func (s *screen) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case tea.KeyPressMsg:
		return s, s.key(m.String())
	case participantChanged:
		s.note(m)
	case connection:
		s.connected = bool(m)
	case unreadableNodes:
		s.unreadable = int(m)
	case second:
		s.now = time.Time(m)
		for key, r := range s.rows {
			if r.gone && s.now.Sub(r.changed) > fresh {
				delete(s.rows, key)
			}
		}
		return s, tick()
	}
	return s, nil
}

func (s *screen) key(name string) tea.Cmd {
	page := max(s.height-3, 1)
	switch name {
	case "q", "esc", "ctrl+c":
		return tea.Quit
	case "w":
		s.waiting, s.top = !s.waiting, 0
	case "down", "j":
		s.top++
	case "up", "k":
		s.top--
	case "pgdown", "space":
		s.top += page
	case "pgup":
		s.top -= page
	case "home", "g":
		s.top = 0
	}
	return nil
}

func (s *screen) note(m participantChanged) {
	key := m.holder.key()
	if m.change == changeRemoved {
		if r := s.rows[key]; r != nil {
			r.gone, r.changed = true, s.now
		}
		return
	}
	s.rows[key] = &row{holder: m.holder, changed: s.now}
}

// View draws the screen.
func (s *screen) View() tea.View { return fullScreen(s.lines(), "curator holders "+printable(s.root)) }

// fullScreen is a view of the whole terminal.
func fullScreen(lines []string, title string) tea.View {
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	v.WindowTitle = title
	return v
}

// lines returns the lines of the screen, none wider than it.
func (s *screen) lines() []string {
	state := ""
	switch {
	case !s.connected:
		state = "  NOT CONNECTED: this is old"
	case s.unreadable > 0:
		state = fmt.Sprintf("  %d nodes NOT READABLE", s.unreadable)
	}
	shown, noun := s.shown(), "participants"
	if len(shown) == 1 {
		noun = "participant"
	}
	lines := []string{
		s.fit(fmt.Sprintf("%s  %s  %d %s%s", s.now.Format("15:04:05"), printable(s.root), len(shown), noun, state), "1"),
	}
	room := max(s.height-2, 1)
	s.top = max(min(s.top, len(shown)-room+1), 0)
	cells := [][]string{{"", "PATH", "RECIPE", "STATE", "WHO", "FOR", "NODE", "WAITS FOR"}}
	for _, r := range shown[s.top:min(s.top+room-1, len(shown))] {
		c := r.cells(s.now)
		mark := " "
		switch {
		case r.gone:
			mark = "-"
		case s.now.Sub(r.changed) < fresh:
			mark = "+"
		}
		cells = append(cells, []string{mark, c[0], c[1], c[2], c[3], c[4], c[7], s.waitsFor(r)})
	}
	widths := s.layOut(cells)
	for n, line := range cells {
		var text strings.Builder
		for i, c := range line {
			if widths[i] > 0 {
				text.WriteString(c + strings.Repeat(" ", widths[i]-ansi.StringWidthWc(c)+1))
			}
		}
		style := ""
		switch {
		case n == 0, line[0] == "-":
			style = "2" // faint
		case line[3] == "waits":
			style = "33" // yellow
		case line[3] != "queued" && line[3] != "member":
			style = "32" // green
		}
		lines = append(lines, s.fit(strings.TrimRight(text.String(), " "), style))
	}
	for len(lines) < s.height-1 {
		lines = append(lines, "")
	}
	return append(lines, s.fit("q quit  w who waits  ↑↓ scroll", "2"))
}

// waitsFor returns who it is that a row waits for, or the node if it does not say who it is.
func (s *screen) waitsFor(r *row) string {
	if other := s.rows[holderKey(r.Recipe, r.Path, r.For)]; other != nil {
		if who := cmp.Or(other.ID, other.Address); who != "" {
			return shorten(printable(who))
		}
	}
	return dash(printable(zkpath.Normalize(zkpath.Node(r.For))))
}

// layOut shortens cells and leaves columns out, what is least needed first, until a line has room on the screen. It
// returns the widths of the columns, 0 for one that is left out.
func (s *screen) layOut(cells [][]string) []int {
	widths := make([]int, len(cells[0]))
	total := 0
	cut := func(longest int) {
		clear(widths)
		total = -1 // nothing is behind the last column
		for _, line := range cells {
			line[columnPath] = cutLeft(line[columnPath], longest) // the names at the end tell one path from another
			for _, i := range []int{columnWho, columnWaitsFor} {
				line[i] = ansi.TruncateWc(line[i], longest, "…")
			}
			for i, c := range line {
				widths[i] = max(widths[i], ansi.StringWidthWc(c))
			}
		}
		for _, w := range widths {
			total += w + 1
		}
	}
	leaveOut := func(i int) {
		if total > s.width {
			total -= widths[i] + 1
			widths[i] = 0
		}
	}
	cut(maxCell)
	leaveOut(columnNode)
	if total > s.width {
		cut(maxNarrow)
	}
	for _, i := range []int{columnNode, columnRecipe, columnWaitsFor, columnFor} {
		leaveOut(i)
	}
	return widths
}

// cutLeft cuts text to a width, and keeps its end.
func cutLeft(text string, width int) string {
	if w := ansi.StringWidthWc(text); w > width {
		return ansi.TruncateLeftWc(text, w-width+1, "…")
	}
	return text
}

// fit cuts a line to the width of the screen, and gives it a style of ANSI.
func (s *screen) fit(text, style string) string {
	return s.styled(ansi.TruncateWc(text, s.width, "…"), style)
}

func (s *screen) styled(text, style string) string {
	if style == "" || !s.colors {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// shown returns the rows in their order: by path, and then as their nodes were created.
func (s *screen) shown() []*row {
	contended := map[string]bool{}
	for _, r := range s.rows {
		if r.State == "waits" && !r.gone {
			contended[r.Recipe+" "+r.Path] = true
		}
	}
	var rows []*row
	for _, r := range s.rows {
		if !s.waiting || contended[r.Recipe+" "+r.Path] {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *row) int {
		if c := strings.Compare(a.Path+"\x00"+a.Recipe, b.Path+"\x00"+b.Recipe); c != 0 {
			return c
		}
		if a.Token < b.Token {
			return -1
		}
		return 1
	})
	return rows
}
