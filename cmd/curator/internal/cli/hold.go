package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/gocurator/curator/cmd/curator/internal/connect"
	"github.com/gocurator/curator/cmd/curator/internal/guard"
	"github.com/gocurator/curator/cmd/curator/internal/output"
	"github.com/gocurator/curator/cmd/curator/internal/run"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/locks"
)

// The environment of a command that lock, semaphore and elect run.
const (
	envLockPath       = "CURATOR_LOCK_PATH"
	envLockToken      = "CURATOR_LOCK_TOKEN"
	envSessionTimeout = "CURATOR_SESSION_TIMEOUT"
	envChildPID       = "CURATOR_CHILD_PID" // of a program of --on-lost
	envConnect        = "CURATOR_CONNECT"
	envContext        = "CURATOR_CONTEXT" // if --context is given
	envConfig         = "CURATOR_CONFIG"  // if --config is given
)

const holdHelp = `
The command is started without a shell, with the standard input, and gets these variables:
  CURATOR_LOCK_PATH        the node that holds it
  CURATOR_LOCK_TOKEN       the fencing token: it grows from holder to holder
  CURATOR_SESSION_TIMEOUT  the session timeout in milliseconds
  CURATOR_CONNECT          the servers
  CURATOR_CONTEXT          the one of --context, if it is given
  CURATOR_CONFIG           the file of --config, if it is given

When the session may end soon, because no majority of the servers answers, the command gets SIGTERM. After --grace,
what is left of it and of its descendants gets SIGKILL. That is --margin before the session can end, and before
another can hold it. The session timeout must be at least twice the sum of --grace and --margin.
When somebody deletes the node or ends the session, the command gets SIGKILL at once.
When the command ends, what it has left in the background gets SIGTERM, and SIGKILL after --grace. The node is deleted
when nothing is left.

Signals are forwarded to the command. One that is stopped goes on, and gets SIGKILL if it has not ended within --grace
after SIGTERM, SIGINT, SIGHUP or SIGQUIT. While curator waits, signals end the wait, with code 75.`

// acquired is what a subcommand holds.
type acquired struct {
	path    string
	context context.Context
	release func(ctx context.Context) error
}

// holdCommand is what lock, semaphore and elect have in common.
type holdCommand struct {
	app    *app
	wait   time.Duration // -1 is for ever
	try    bool
	grace  time.Duration
	margin time.Duration
	onLost string
	cgroup bool
	events bool
	// noHeartbeats turns quorum heartbeats off.
	noHeartbeats bool
	lines        chan<- []byte // of events
	options      []framework.Option
	// acquire waits for the hold, for the time wait at most if that is not negative.
	acquire func(ctx context.Context, client *framework.Client, path string, wait time.Duration) (*acquired, error)
	nodes   nodesOf // of the holders
}

func (h *holdCommand) flags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.DurationVar(&h.wait, "wait", -1, "how long to wait for it, and for a server (default for ever)")
	fs.Lookup("wait").DefValue = "0s" // which the help does not print
	fs.DurationVar(&h.grace, "grace", run.DefaultGrace, "the time from SIGTERM to SIGKILL")
	fs.DurationVar(&h.margin, "margin", run.DefaultMargin, "the time from SIGKILL to the earliest end of the session")
	fs.StringVar(&h.onLost, "on-lost", "term",
		`what the command gets when the session may end soon: term; kill, SIGKILL alone; or run:CMD, a program with its
arguments instead of SIGTERM, with the id of the command in `+envChildPID)
	fs.BoolVar(&h.cgroup, "cgroup", true, "put the command into a cgroup of its own, where that is delegated")
	fs.BoolVar(&h.noHeartbeats, "without-quorum-heartbeats", false,
		"send none: a server that is cut off from its leader may then let another hold it at the same time")
	fs.BoolVar(&h.events, "json", false, "print events on the standard error, one JSON value a line")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if cmd.ArgsLenAtDash() != 1 || len(args) < 2 {
			return usage(fmt.Errorf("wants a path, --, and a command: curator %s [flags] PATH -- COMMAND [ARGUMENT...]",
				cmd.Name()))
		}
		return nil
	}
	cmd.RunE = h.run
}

// tryFlag adds --try.
func (h *holdCommand) tryFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&h.try, "try", false, "do not wait for others, and 5 s for a server")
	cmd.MarkFlagsMutuallyExclusive("try", "wait")
}

func (h *holdCommand) clientOptions() []framework.Option {
	if h.noHeartbeats {
		return append(slices.Clip(h.options), framework.WithoutQuorumHeartbeats())
	}
	return h.options
}

func (h *holdCommand) parseOnLost() (guard.OnLost, error) {
	command, isRun := strings.CutPrefix(h.onLost, "run:")
	switch {
	case h.onLost == "term":
		return guard.OnLost{}, nil
	case h.onLost == "kill":
		return guard.OnLost{Kill: true}, nil
	case isRun && len(strings.Fields(command)) > 0:
		args := strings.Fields(command)
		if _, err := exec.LookPath(args[0]); err != nil { // better now than when it is needed
			return guard.OnLost{}, usage(fmt.Errorf("--on-lost: %w", err))
		}
		return guard.OnLost{Run: args, PIDVariable: envChildPID}, nil
	}
	return guard.OnLost{}, usage(errors.New("--on-lost: must be term, kill or run:CMD"))
}

func (h *holdCommand) run(cmd *cobra.Command, args []string) error {
	defer h.writeEvents()()
	err := h.hold(cmd.Context(), args[0], args[1:])
	if text := message(err); h.events && text != "" {
		h.event(run.Event{Event: "error", Reason: text})
		return exit(Code(err), nil) // all of the standard error is JSON
	}
	return err
}

// hold waits for the hold, runs the command and releases the hold.
func (h *holdCommand) hold(ctx context.Context, path string, args []string) error {
	onLost, err := h.parseOnLost()
	if err != nil {
		return err
	}
	switch {
	case h.grace < 0:
		return usage(errors.New("--grace must not be negative"))
	case h.margin <= 0:
		return usage(errors.New("--margin must be positive"))
	case h.wait < -1:
		return usage(errors.New("--wait must not be negative"))
	}
	program, err := exec.LookPath(args[0])
	if err != nil {
		return exit(startCode(err), err)
	}
	conf, err := h.app.connect.Resolve(h.app.Getenv)
	if err != nil {
		return usage(err)
	}

	// From here on a signal ends the wait, or goes to the command.
	signals := make(chan os.Signal, 16)
	guard.Notify(signals, forwarded...)
	defer signal.Stop(signals)

	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	over := make(chan struct{})
	watcher := make(chan struct{})
	go func() {
		defer close(watcher)
		select {
		case sig := <-signals:
			stop(fmt.Errorf("not acquired: %v", sig))
		case <-over:
		}
	}()
	h.event(run.Event{Event: "waiting", Path: path})
	client, held, err := h.connectAndAcquire(waiting, conf, path)
	var stat *zk.Stat
	var lookErr error
	if err == nil {
		if stat, lookErr = client.CheckExists().ForPath(waiting, held.path); lookErr == nil && stat == nil {
			lookErr = run.ErrLost
		}
	}
	close(over)
	<-watcher
	if client != nil {
		defer func() { _ = client.Close() }() // the session ends in any case
	}
	if err != nil {
		if waiting.Err() != nil {
			return exit(CodeNotAcquired, context.Cause(waiting))
		}
		return err
	}
	defer h.release(ctx, held)
	switch {
	case waiting.Err() != nil: // the signal came with the hold, or before the look at it
		return exit(CodeNotAcquired, context.Cause(waiting))
	case lookErr != nil:
		return exit(CodeLost, lookErr)
	}
	h.event(run.Event{
		Event: "acquired", Path: held.path, Token: stat.Czxid, Session: output.Session(stat.EphemeralOwner),
		SessionTimeout: client.SessionTimeout().Milliseconds(),
	})
	outcome, err := run.Command(client,
		run.Hold{Path: held.path, Token: stat.Czxid, Session: stat.EphemeralOwner, Context: held.context},
		run.Config{
			Path: program, Args: args, Grace: h.grace, Margin: h.margin, OnLost: onLost, Cgroup: h.cgroup,
			Env: environ(h.environ(map[string]string{
				envLockPath:       held.path,
				envLockToken:      strconv.FormatInt(stat.Czxid, 10),
				envSessionTimeout: strconv.FormatInt(client.SessionTimeout().Milliseconds(), 10),
				envConnect:        conf.Connect,
			})),
			Signals: signals, Event: h.event,
		})
	switch {
	case errors.Is(err, run.ErrTooShort):
		return tooShort(err)
	case errors.Is(err, run.ErrLost):
		return exit(CodeLost, err)
	case err != nil:
		return exit(startCode(err), err)
	case outcome.Lost && outcome.Taken:
		return exit(CodeLost, fmt.Errorf("lost %s: %s; the command was gone %v after that was noticed, and another may "+
			"have held it since", held.path, outcome.Reason, outcome.SinceLoss.Round(time.Millisecond)))
	case outcome.Lost && outcome.Margin < 0:
		return exit(CodeLost, fmt.Errorf("lost %s: %s; the command was gone %v after the session could have ended",
			held.path, outcome.Reason, -outcome.Margin.Round(time.Millisecond)))
	case outcome.Lost:
		return exit(CodeLost, fmt.Errorf("lost %s: %s; the command was gone %v before the session could end",
			held.path, outcome.Reason, outcome.Margin.Round(time.Millisecond)))
	case outcome.Code != 0 && outcome.Reason == guard.StoppedAtSignal:
		return exit(outcome.Code, fmt.Errorf("the command was killed: %s", outcome.Reason))
	case outcome.Code != 0:
		return exit(outcome.Code, nil)
	}
	return nil
}

// connectAndAcquire connects and waits for the hold.
func (h *holdCommand) connectAndAcquire(
	ctx context.Context, conf connect.Config, path string,
) (*framework.Client, *acquired, error) {
	begun, wait := time.Now(), h.wait
	if h.try {
		wait = 0
	}
	if bound := h.bound(); bound >= 0 {
		conf.Timeout = min(conf.Timeout, bound)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, bound+answerTime)
		defer cancel()
	}
	client, err := conf.Client(ctx, h.waits, h.clientOptions()...)
	if err != nil {
		return nil, nil, err
	}
	if err := run.Check(client.SessionTimeout(), h.grace, h.margin); err != nil { // not after hours in the line
		return client, nil, tooShort(err)
	}
	if wait > 0 {
		wait = max(wait-time.Since(begun), 0)
	}
	stop := h.sayBehindWhom(ctx, client, path)
	held, err := h.acquire(ctx, client, path, wait)
	stop()
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = exit(CodeNotAcquired, fmt.Errorf("not acquired: no answer in time: %w", err))
	case errors.Is(err, locks.ErrNotAcquired):
		err = exit(CodeNotAcquired, fmt.Errorf("not acquired: others hold %s", path))
	case errors.Is(err, framework.ErrConnectionLoss), errors.Is(err, zk.ErrSessionExpired):
		err = exit(CodeNotAcquired, err)
	}
	return client, held, explain(ctx, client, err)
}

// tryTimeout bounds the connect of --try, unless there is --connect-timeout. answerTime is what the servers have beyond
// a bound to say that others hold it.
const (
	tryTimeout = 5 * time.Second
	answerTime = time.Second
)

// bound returns how long to connect and to wait, negative for ever.
func (h *holdCommand) bound() time.Duration {
	switch {
	case !h.try:
		return h.wait
	case h.app.connect.HasTimeout():
		return h.app.connect.Timeout
	}
	return tryTimeout
}

// waits says for what this process waits: an event with --json, and a line for people without it.
func (h *holdCommand) waits(text string) {
	if h.events {
		h.event(run.Event{Event: "connecting", Reason: text})
		return
	}
	h.send([]byte("curator: " + line(text) + "\n"))
}

func tooShort(err error) error {
	return exit(CodeRefused, fmt.Errorf("%w; set --session-timeout, --grace or --margin", err))
}

// releaseTimeout bounds the wait for the release. The end of the session releases too.
const releaseTimeout = 5 * time.Second

func (h *holdCommand) release(ctx context.Context, held *acquired) {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	if held.release(ctx) == nil {
		h.event(run.Event{Event: "released", Path: held.path})
	}
}

// maxEventsToWrite is how many events wait for the standard error. Without a reader further ones are lost, but the
// command is not.
const maxEventsToWrite = 1000

// writeEvents begins to write the events of --json. The caller calls stop behind the last one. Nobody may read them: a
// supervisor that waits for that would neither forward a signal nor tell the guard that the session lives.
func (h *holdCommand) writeEvents() (stop func()) {
	pipe := make(chan os.Signal, 1) // without a reader of the events the command goes on
	signal.Notify(pipe, syscall.SIGPIPE)
	lines, last, done := make(chan []byte, maxEventsToWrite), make(chan struct{}), make(chan struct{})
	h.lines = lines
	go func() {
		defer close(done)
		for {
			select {
			case line := <-lines:
				_, _ = h.app.Stderr.Write(line)
			case <-last:
				for len(lines) > 0 {
					_, _ = h.app.Stderr.Write(<-lines)
				}
				return
			}
		}
	}()
	return func() {
		close(last)
		select {
		case <-done:
		case <-time.After(time.Second): // it is lost with the process
		}
		signal.Stop(pipe)
	}
}

func (h *holdCommand) event(e run.Event) {
	if !h.events {
		return
	}
	e.Time = time.Now()
	if line, err := json.Marshal(e); err == nil {
		h.send(append(line, '\n'))
	}
}

// send writes a line without a wait for its reader.
func (h *holdCommand) send(line []byte) {
	select {
	case h.lines <- line:
	default:
	}
}

// environ adds the context that flags have chosen: a curator that the command runs logs in as this one, and not with
// the password of another context.
func (h *holdCommand) environ(values map[string]string) map[string]string {
	if flag := h.app.connect.Context; flag != "" {
		values[envContext] = flag
	}
	if flag := h.app.connect.Config; flag != "" {
		values[envConfig] = flag
	}
	return values
}

// environ returns the environment of this process with other values. Of two values programs would take the first.
func environ(values map[string]string) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		_, ok := values[name]
		return ok
	})
	for name, value := range values {
		env = append(env, name+"="+value)
	}
	return env
}

// startCode returns the exit code that a shell has for a command that it cannot start.
func startCode(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return 127
	}
	return 126
}

func (a *app) lock() *cobra.Command {
	h := &holdCommand{app: a, nodes: nodesOf{prefix: "lock-", most: 1}}
	cmd := &cobra.Command{
		Use:   "lock [flags] PATH -- COMMAND [ARGUMENT...]",
		Short: "Run a command while holding a lock",
		Long: "Lock waits for the lock of a path, and runs a command while it holds it. In Java: InterProcessMutex.\n" +
			holdHelp,
		Example: `  curator lock /locks/report -- make-report --daily
  curator lock --wait 10m /locks/report -- \
    bash -c 'set -o pipefail; make-report | curator put --fence --non-empty /report'`,
	}
	h.acquire = func(ctx context.Context, client *framework.Client, path string, wait time.Duration) (*acquired, error) {
		mu := locks.NewInterProcessMutex(client, path)
		acquire := mu.Acquire
		if wait >= 0 {
			acquire = func(ctx context.Context) (*locks.Hold, error) { return mu.TryAcquire(ctx, wait) }
		}
		hold, err := acquire(ctx)
		if err != nil {
			return nil, err
		}
		return &acquired{hold.Path(), hold.Context(), hold.Release}, nil
	}
	h.flags(cmd)
	h.tryFlag(cmd)
	return cmd
}

func (a *app) semaphore() *cobra.Command {
	h := &holdCommand{app: a, nodes: nodesOf{sub: "leases", prefix: "lease-"}}
	var permits int
	cmd := &cobra.Command{
		Use:   "semaphore [flags] -n PERMITS PATH -- COMMAND [ARGUMENT...]",
		Short: "Run a command while holding a lease of a semaphore",
		Long: "Semaphore waits for a lease of the semaphore of a path, and runs a command while it holds it.\n" +
			"All users of a path must give the same number of permits. In Java: InterProcessSemaphoreV2.\n" + holdHelp,
		Example: `  curator semaphore -n 3 /slots -- crawl`,
	}
	h.acquire = func(ctx context.Context, client *framework.Client, path string, wait time.Duration) (*acquired, error) {
		s := locks.NewInterProcessSemaphoreV2(client, path, permits)
		acquire := s.Acquire
		if wait >= 0 {
			acquire = func(ctx context.Context) (*locks.Lease, error) { return s.TryAcquire(ctx, wait) }
		}
		lease, err := acquire(ctx)
		if err != nil {
			return nil, err
		}
		return &acquired{lease.Path(), lease.Context(), lease.Return}, nil
	}
	h.flags(cmd)
	h.tryFlag(cmd)
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if permits < 1 {
			return usage(errors.New("--permits: must be positive"))
		}
		h.nodes.most = permits
		return nil
	}
	cmd.Flags().IntVarP(&permits, "permits", "n", 1, "how many may hold it at a time")
	return cmd
}
