package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/charmbracelet/x/term"

	"github.com/gocurator/curator/cmd/curator/internal/tree"
	"github.com/gocurator/curator/framework"
)

// The times of a progress: what is done sooner needs none, a terminal has it rewritten, and a file gets a line now and
// then.
const (
	progressDelay  = time.Second
	progressRedraw = 200 * time.Millisecond
	progressPause  = 10 * time.Second
)

// progress says on the standard error how far a long piece of work is.
type progress struct {
	out      io.Writer
	terminal bool
	text     func(done int64) string
	done     atomic.Int64
	over     chan struct{}
	printer  sync.WaitGroup
}

// progress begins to say how far some work is. The caller calls stop behind it, and before it prints anything else.
func (a *app) progress(text func(done int64) string, terminal bool) *progress {
	p := &progress{out: a.Stderr, terminal: terminal, text: text, over: make(chan struct{})}
	p.printer.Go(p.print)
	return p
}

// progressOf begins to say how many of some nodes have been changed: "deleted".
func (a *app) progressOf(verb, path string, nodes int) *progress {
	return a.progress(func(done int64) string {
		return fmt.Sprintf("%s %d of %d nodes at and below %s", verb, done, nodes, path)
	}, a.isTerminalError())
}

// read reads a tree that is to be changed.
func (a *app) read(
	ctx context.Context, client *framework.Client, path string, o tree.Options,
) (tree.Tree, error) {
	p := a.progress(func(done int64) string {
		return fmt.Sprintf("read %d nodes at and below %s", done, path)
	}, a.isTerminalError())
	defer p.stop()
	o.Progress = p.add
	return tree.Read(ctx, client, path, o)
}

// look reads a tree that is to be printed: the standard error of a script has no lines about it.
func (a *app) look(
	ctx context.Context, client *framework.Client, path string, o tree.Options,
) (tree.Tree, error) {
	if !a.isTerminalError() {
		return tree.Read(ctx, client, path, o)
	}
	return a.read(ctx, client, path, o)
}

// isTerminalError reports whether the standard error is a terminal that obeys.
func (a *app) isTerminalError() bool {
	file, ok := a.Stderr.(*os.File)
	return ok && term.IsTerminal(file.Fd()) && a.Getenv("TERM") != "dumb"
}

// add counts what is done.
func (p *progress) add(n int) { p.done.Add(int64(n)) }

// stop ends it, and takes its line off a terminal.
func (p *progress) stop() {
	close(p.over)
	p.printer.Wait()
}

func (p *progress) print() {
	pause := progressPause
	if p.terminal {
		pause = progressRedraw
	}
	next := time.NewTimer(progressDelay)
	defer next.Stop()
	for printed := false; ; printed = true {
		select {
		case <-p.over:
			if printed && p.terminal {
				_, _ = io.WriteString(p.out, "\r\x1b[K") // without a terminal the work goes on
			}
			return
		case <-next.C:
		}
		format := "curator: %s\n"
		if p.terminal {
			format = "\r\x1b[Kcurator: %s"
		}
		_, _ = fmt.Fprintf(p.out, format, line(p.text(p.done.Load()))) // as above
		next.Reset(pause)
	}
}
