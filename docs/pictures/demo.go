package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// What is typed for the picture of the demo. The port is that of ZooKeeper.
const (
	demoCommand    = "go run ./cmd/curator demo --port 2181"
	holdersCommand = "go run ./cmd/curator holders /demo/locks -f --connect 127.0.0.1:2181"
)

// The sizes of the two terminals.
const (
	demoWidth     = 80
	demoHeight    = 23
	holdersHeight = 9
)

// demoPatience is how long the demo may take until all is there. It is compiled before.
const demoPatience = 5 * time.Minute

// demo runs the demo in a terminal, looks at it from a second one, and draws both at a moment at which they agree.
func demo(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, demoPatience)
	defer cancel()
	screens, err := startTmux()
	if err != nil {
		return err
	}
	defer screens.close(ctx)
	if err := screens.open(ctx, "demo", demoHeight, demoCommand); err != nil {
		return err
	}
	if first, err := screens.await(ctx, "demo", allOfDemo.MatchString); err != nil {
		return fmt.Errorf("%w: %s", err, first)
	}
	if err := screens.open(ctx, "holders", holdersHeight, holdersCommand); err != nil {
		return err
	}
	var above string
	below, err := screens.await(ctx, "holders", func(text string) bool {
		above, err = screens.capture(ctx, "demo")
		return err == nil && allOfDemo.MatchString(plainText(above)) && agree(plainText(above), text)
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, below)
	}
	var svg bytes.Buffer
	drawWindows(&svg, "curator demo", window{demoCommand, styled(above)}, window{holdersCommand, styled(below)})
	return os.WriteFile("docs/demo.svg", svg.Bytes(), 0o644)
}

// allOfDemo matches a screen of the demo with somebody in each row.
var allOfDemo = regexp.MustCompile(`(?s)lock  .*waits.*rw lock .*waits.*semaphore .*waits.*election .*leads.*` +
	`queue .*works[^\n]* [1-9] waiting.*service .*offers.*In another terminal:.*(\n\d\d:\d\d:\d\d [^\n]*){2}\nq quit`)

var (
	locksOfDemo  = regexp.MustCompile(`(?m)^  lock +/demo/locks/orders +(\S+) +(\S+) +(\S+)`)
	holderOfLock = regexp.MustCompile(`(?m)^  /demo/locks/orders +lock +holds +host-(\d)`)
	waiterOfLock = regexp.MustCompile(`(?m)^[ +] /demo/locks/orders +lock +waits +host-(\d)`)
)

// agree reports whether both terminals show one holder, who has the lock for a while, and one waiter.
func agree(demo, holders string) bool {
	states, holds := locksOfDemo.FindStringSubmatch(demo), holderOfLock.FindAllStringSubmatch(holders, -1)
	waits := waiterOfLock.FindAllStringSubmatch(holders, -1)
	if states == nil || len(holds) != 1 || len(waits) == 0 {
		return false
	}
	holder, _ := strconv.Atoi(holds[0][1]) // a digit
	waiter, _ := strconv.Atoi(waits[0][1])
	return states[holder] == "holds" && states[waiter] == "waits"
}

// plainText returns a screen without styles.
func plainText(screen string) string { return style.ReplaceAllString(screen, "") }

// tmux has terminals that nobody sees.
type tmux struct{ dir string }

func startTmux() (*tmux, error) {
	dir, err := os.MkdirTemp("", "tmux")
	return &tmux{dir}, err
}

// close ends all terminals, also if the context has ended.
func (t *tmux) close(ctx context.Context) {
	_, _ = t.run(context.WithoutCancel(ctx), "kill-server") // it may not have begun
	_ = os.RemoveAll(t.dir)
}

func (t *tmux) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-u", "-S", filepath.Join(t.dir, "s"), "-f", "/dev/null"},
		args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("tmux %s: %w: %s", args[0], err, out)
	}
	return string(out), nil
}

// open runs a command in a terminal, which stays when it ends.
func (t *tmux) open(ctx context.Context, name string, height int, command string) error {
	_, err := t.run(ctx, "new-session", "-d", "-s", name, "-x", strconv.Itoa(demoWidth), "-y", strconv.Itoa(height),
		command+"; exec cat")
	return err
}

// capture returns what a terminal shows, with styles.
func (t *tmux) capture(ctx context.Context, name string) (string, error) {
	return t.run(ctx, "capture-pane", "-p", "-e", "-t", name)
}

// await captures a terminal until its text is as it should be. It returns what it has captured, also with an error.
func (t *tmux) await(ctx context.Context, name string, enough func(text string) bool) (screen string, err error) {
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		last, err := t.capture(ctx, name)
		if err != nil {
			return screen, err
		}
		if screen = last; enough(plainText(screen)) {
			return screen, nil
		}
		if strings.Contains(screen, "exit status") {
			return screen, fmt.Errorf("%s has ended", name)
		}
		select {
		case <-ctx.Done():
			return screen, ctx.Err()
		case <-poll.C:
		}
	}
}
