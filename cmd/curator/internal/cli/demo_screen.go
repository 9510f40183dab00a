package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/gocurator/curator/cmd/curator/internal/demo"
	"github.com/gocurator/curator/cmd/curator/internal/recognize"
	"github.com/gocurator/curator/cmd/curator/internal/testserver"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/zkpath"
)

// screenOfDemo shows what happens on the whole terminal: what is to be typed elsewhere stays there.
func (a *app) screenOfDemo(ctx context.Context, e *testserver.Ensemble) error {
	return a.demoClient(ctx, e, func(client *framework.Client) error {
		return a.onScreen(ctx, client, holding{}, demo.Root, a.newDemoScreen(demoTitle(len(e.Addrs())), e.Addrs()))
	})
}

func (a *app) newDemoScreen(title string, servers []string) *demoScreen {
	return &demoScreen{screen: a.newScreen(demo.Root), title: title, servers: servers, hosts: demoHosts{}}
}

// demoScreen is a screen with a picture: a row for each recipe, and a column for each host.
type demoScreen struct {
	*screen
	title   string
	servers []string
	hosts   demoHosts
	events  []string // the newest is the last
}

// maxDemoEvents is how many events are kept. No screen is higher.
const maxDemoEvents = 500

// Update takes a message.
func (d *demoScreen) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	if m, ok := m.(participantChanged); ok {
		if event := d.hosts.event(m.change, m.holder); event != "" {
			d.events = append(d.events, d.now.Format("15:04:05")+"  "+event)
			d.events = d.events[max(0, len(d.events)-maxDemoEvents):]
		}
	}
	_, cmd := d.screen.Update(m)
	return d, cmd
}

// View draws the screen.
func (d *demoScreen) View() tea.View { return fullScreen(d.lines(), "curator demo") }

// lines returns the lines of the screen, none wider than it.
func (d *demoScreen) lines() []string {
	lines := append([]string{d.fit(d.title, "1"), ""}, d.picture()...)
	lines = append(lines, "", d.fit("In another terminal:", "1"))
	for _, line := range demoLines(os.Args[0], d.connect()) {
		typed, _, _ := strings.Cut(line, "#")
		typed = strings.TrimRight(typed, " ")
		if len("  "+typed) > d.width { // all of a command, over several lines that a shell takes for one
			for _, part := range wrapCommand(typed, d.width) {
				lines = append(lines, d.fit(part, ""))
			}
			continue
		}
		if len("  "+typed) >= d.width-1 { // a comment has no room
			line = typed
		}
		command, comment, _ := strings.Cut(d.fit("  "+line, ""), "#")
		if comment != "" {
			comment = d.styled("#"+comment, "2")
		}
		lines = append(lines, command+comment)
	}
	lines = append(lines, "")
	room := max(d.height-1, 1)
	for _, event := range d.events[max(0, len(d.events)-max(room-len(lines), 0)):] {
		if ansi.StringWidthWc(event) > d.width {
			event = strings.Join(strings.Fields(event), " ") // without its columns
		}
		lines = append(lines, d.fit(event, "2"))
	}
	for len(lines) < room {
		lines = append(lines, "")
	}
	return append(lines[:room], d.fit("q quit", "2"))
}

// wrapCommand breaks a command between its words, as a shell has it. Words that are wider stay whole.
func wrapCommand(text string, width int) (lines []string) {
	const indent, more = "  ", " \\"
	line := indent
	for _, word := range strings.Fields(text) {
		switch {
		case line == indent, line == indent+indent:
			line += word
		case len(line)+1+len(word)+len(more) > width:
			lines = append(lines, line+more)
			line = indent + indent + word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// connect returns as many servers as have room on the screen.
func (d *demoScreen) connect() string {
	for n := len(d.servers); n > 1; n-- {
		if text := strings.Join(d.servers[:n], ","); len("  export CURATOR_CONNECT="+text) <= d.width {
			return text
		}
	}
	return d.servers[0]
}

// demoRow is a row of the picture.
type demoRow struct {
	what, path string
	recipe     recognize.Recipe
}

// has reports whether a participant is in the row.
func (d *demoRow) has(h *holder) bool {
	return h.Recipe == string(d.recipe) && (h.Path == d.path || d.recipe == recognize.QueueLocks)
}

var demoRows = []demoRow{
	{"lock", demo.Orders, recognize.Lock},
	{"rw lock", demo.Catalogue, recognize.ReadWriteLock},
	{"semaphore", demo.Licences, recognize.Semaphore},
	{"election", demo.Leader, recognize.Latch},
	{"queue", demo.Jobs, recognize.QueueLocks},
	{"service", demo.Shop, recognize.Service},
}

// The widths of a column of a host, and that of it on a screen without room for it.
const (
	demoCell   = 10
	demoNarrow = 7
)

// labels returns what stands in front of a row, longest first: a screen shows the first one that has room.
func (d *demoRow) labels() []string {
	return []string{
		fmt.Sprintf("  %-10s %-22s", d.what, d.path),
		fmt.Sprintf("  %-18s", d.what+" "+zkpath.Node(d.path)),
		fmt.Sprintf("  %-10s", d.what),
	}
}

// layOutPicture returns which label has room on a screen for a number of columns, and the width of those. If none has,
// the columns are below it.
func (d *demoScreen) layOutPicture(columns int) (label, cell int, below bool) {
	widths := demoRows[0].labels()
	for i, text := range widths {
		if cell = demoNarrow; i == 0 {
			cell = demoCell
		}
		if len(text)+columns*cell <= d.width {
			return i, cell, false
		}
	}
	return len(widths) - 1, demoNarrow, true
}

// picture returns the lines of the picture.
func (d *demoScreen) picture() []string {
	columns := []string{"host-1", "host-2", "host-3"} // and one of whoever else takes part
	const you = 3
	cells := make([][]demoState, len(demoRows))
	for i := range cells {
		cells[i] = make([]demoState, you+1)
	}
	jobs := 0
	for _, r := range d.rows {
		if r.gone {
			continue
		}
		switch recognize.Recipe(r.Recipe) {
		case recognize.Queue:
			jobs++
		case recognize.QueueLocks: // its job is in the queue until it is done
			jobs--
		}
		i := slices.IndexFunc(demoRows, func(row demoRow) bool { return row.has(&r.holder) })
		if i < 0 {
			continue
		}
		column := slices.Index(columns[:you], d.hosts.name(&r.holder))
		if column < 0 {
			column, columns = you, append(columns[:you], "you")
		}
		cell := &cells[i][column]
		if cell.text == "" || cell.waits {
			*cell = newDemoState(recognize.State(r.State))
		}
	}
	label, width, below := d.layOutPicture(len(columns))
	head := strings.Repeat(" ", len(demoRows[0].labels()[label]))
	if below {
		head = " "
	}
	for _, c := range columns {
		head += fmt.Sprintf(" %-*s", width-1, c)
	}
	lines := []string{d.fit(strings.TrimRight(head, " "), "2")}
	for i, row := range demoRows {
		line := row.labels()[label]
		if below {
			lines = append(lines, d.fit(strings.TrimRight(line, " "), ""))
			line = " "
		}
		for n, cell := range cells[i][:len(columns)] {
			switch {
			case cell.text == "" && n == you:
				continue
			case cell.text == "":
				cell.text, cell.style = "-", "2"
			}
			line += " " + d.styled(cell.text, cell.style) + strings.Repeat(" ", width-1-len(cell.text))
		}
		if text := fmt.Sprintf(" %d waiting", max(jobs, 0)); row.recipe == recognize.QueueLocks &&
			ansi.StringWidthWc(line+text) <= d.width {
			line += text
		}
		lines = append(lines, ansi.TruncateWc(strings.TrimRight(line, " "), d.width, "…"))
	}
	return lines
}

// demoState is what a host does, in a cell.
type demoState struct {
	text, style string
	waits       bool
}

func newDemoState(s recognize.State) demoState {
	const green, yellow = "1;32", "33"
	switch s {
	case recognize.Waits:
		return demoState{string(s), yellow, true}
	case recognize.Consumed:
		return demoState{"works", green, false}
	case recognize.Member:
		return demoState{"offers", green, false}
	}
	return demoState{string(s), green, false}
}
