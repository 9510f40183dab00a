// Command pictures draws the pictures of the documentation from real runs, as SVG files in docs. It runs in the root of
// the repository:
//
//	go run ./docs/pictures tour   # docs/tour.svg: the terminal of examples/tour
//	go run ./docs/pictures demo         # docs/demo.svg: two terminals, one with curator demo
//	go run ./docs/pictures dashboard    # docs/grafana/dashboard.svg: panels of docs/grafana/curator.json
//
// The demo needs tmux, and the ports from 2181 on. The dashboard takes four minutes, and needs the server of Apache
// ZooKeeper that scripts/install.sh installs, and Debian's package prometheus.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 1 {
		switch args[0] {
		case "tour":
			return tour(ctx)
		case "demo":
			return demo(ctx)
		case "dashboard":
			return dashboard(ctx)
		}
	}
	return errors.New("usage: go run ./docs/pictures tour|demo|dashboard")
}

// tour runs the tour, and draws what it printed.
func tour(ctx context.Context) error {
	program := exec.CommandContext(ctx, "go", "run", "./examples/tour")
	program.Stderr = os.Stderr
	output, err := program.Output()
	if err != nil {
		return fmt.Errorf("%v: %w", program, err)
	}
	var svg bytes.Buffer
	drawTerminal(&svg, "go run ./examples/tour", string(output))
	return os.WriteFile("docs/tour.svg", svg.Bytes(), 0o644)
}
