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
		command, comment, _ := strings.Cut(d.fit("  "+line, ""), "#")
		if comment != "" {
			comment = d.styled("#"+comment, "2")
		}
		lines = append(lines, command+comment)
	}
	lines = append(lines, "")
	room := max(d.height-1, 1)
	for _, event := range d.events[max(0, len(d.events)-max(room-len(lines), 0)):] {
		lines = append(lines, d.fit(event, "2"))
	}
	for len(lines) < room {
		lines = append(lines, "")
	}
	return append(lines[:room], d.fit("q quit", "2"))
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

// demoCell is the width of a column of a host.
const demoCell = 10

// picture returns the lines of the picture.
func (d *demoScreen) picture() []string {
	columns := []string{"host-1", "host-2", "host-3", ""} // the last one is of whoever else takes part
	cells := make([][]demoState, len(demoRows))
	for i := range cells {
		cells[i] = make([]demoState, len(columns))
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
		column := slices.Index(columns, d.hosts.name(&r.holder))
		if column < 0 || d.hosts.name(&r.holder) == "" {
			column = len(columns) - 1
			columns[column] = "you"
		}
		cell := &cells[i][column]
		if cell.text == "" || cell.waits {
			*cell = newDemoState(recognize.State(r.State))
		}
	}
	head := fmt.Sprintf("  %-10s %-22s", "", "")
	for _, c := range columns {
		head += fmt.Sprintf(" %-*s", demoCell-1, c)
	}
	lines := []string{d.fit(strings.TrimRight(head, " "), "2")}
	for i, row := range demoRows {
		line := fmt.Sprintf("  %-10s %-22s", row.what, row.path)
		for n, cell := range cells[i] {
			switch {
			case cell.text == "" && n == len(columns)-1:
				continue
			case cell.text == "":
				cell.text, cell.style = "-", "2"
			}
			line += " " + d.styled(cell.text, cell.style) + strings.Repeat(" ", demoCell-1-len(cell.text))
		}
		if row.recipe == recognize.QueueLocks {
			line += fmt.Sprintf(" %d waiting", max(jobs, 0))
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
