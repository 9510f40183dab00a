//go:build unix

package locks_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/recipes/locks"
)

// TestFrozenProcessLateTokenIsRefused stops the process of a holder until the next one has the lock. It cannot
// know, and what it writes when it goes on is refused, by its token.
func TestFrozenProcessLateTokenIsRefused(t *testing.T) {
	if connect := os.Getenv(frozenVariable); connect != "" {
		holdAgainAndAgain(t, connect)
		return
	}
	t.Parallel()
	processes := testenv.Size(1, 1, 10)
	rounds := testenv.Size(1, 2, 50)
	var refused atomic.Int32
	var all sync.WaitGroup
	for range processes {
		connect := testenv.ConnectString(t)
		p := startFrozen(t, connect)
		waiter := newClient(t, connect)
		all.Go(func() {
			for range rounds {
				if err := p.round(t, waiter); err != nil {
					t.Error(err)
					return
				}
				refused.Add(1)
			}
		})
	}
	all.Wait()
	t.Logf("%d late writes refused", refused.Load())
}

// frozenVariable has the server of the process of a holder.
const frozenVariable = "CURATOR_TEST_FROZEN"

// frozen is the process of a holder.
type frozen struct {
	process *os.Process
	in      io.Writer
	out     *bufio.Reader
}

// startFrozen starts a process that holds the lock as often as the test wants.
func startFrozen(t *testing.T, connect string) *frozen {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.Command(os.Args[0], "-test.run=^"+name+"$", "-test.v=false")
	cmd.Env = append(os.Environ(), frozenVariable+"="+connect)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &frozen{process: cmd.Process, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		if t.Failed() {
			_ = p.process.Kill()
		}
		_ = in.Close() // ends it
		_, _ = io.Copy(io.Discard, p.out)
		if err := cmd.Wait(); err != nil && !t.Failed() {
			t.Error(err)
		}
	})
	return p
}

// holdAgainAndAgain is the process: it acquires, prints its token, and prints it once more when the lock is lost, as
// one that writes without a look.
func holdAgainAndAgain(t *testing.T, connect string) {
	t.Helper()
	client := newClient(t, connect, framework.WithSessionTimeout(duelSession))
	mu := locks.NewInterProcessMutex(client, lockPath)
	for in := bufio.NewReader(os.Stdin); ; {
		if _, err := in.ReadString('\n'); err != nil {
			return
		}
		hold, err := mu.Acquire(testenv.Context(t))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(hold.Token())
		<-hold.Context().Done()
		fmt.Println(hold.Token())
		_ = hold.Release(testenv.Context(t)) // which is lost
	}
}

// token is what the process prints next.
func (p *frozen) token() (token int64, err error) {
	line, err := p.out.ReadString('\n')
	if err == nil {
		_, err = fmt.Sscan(line, &token)
	}
	return token, err
}

// round is one hold of the process.
func (p *frozen) round(t *testing.T, waiter *framework.Client) error {
	t.Helper()
	ctx := testenv.Context(t)
	stop := context.AfterFunc(ctx, func() { _ = p.process.Kill() }) // it prints nothing: the test does not wait for ever
	defer stop()
	var guarded chaos.Guarded
	if _, err := fmt.Fprintln(p.in); err != nil {
		return err
	}
	token, err := p.token()
	if err != nil {
		return err
	}
	value, ok := guarded.Read(token)
	if !ok {
		return fmt.Errorf("the holder is refused")
	}
	if err := p.process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	next, err := locks.NewInterProcessMutex(waiter, lockPath).Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = next.Release(ctx) }()
	if now, ok := guarded.Read(next.Token()); !ok || !guarded.Write(next.Token(), now+1) {
		return fmt.Errorf("the next is refused")
	}
	if err := p.process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	late, err := p.token()
	if err != nil {
		return err
	}
	if late != token || guarded.Write(late, value+1) {
		return fmt.Errorf("the late write with token %d is accepted", late)
	}
	return nil
}

// TestFrozenProcessFencedWriteIsRefused is the same without tokens: the server refuses what the process writes with
// the client of its hold.
func TestFrozenProcessFencedWriteIsRefused(t *testing.T) {
	if connect := os.Getenv(frozenVariable); connect != "" {
		writeUntilRefused(t, connect)
		return
	}
	t.Parallel()
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	waiter := newClient(t, connect)
	if _, err := waiter.Create().ForPath(ctx, "/data", nil); err != nil {
		t.Fatal(err)
	}
	p := startFrozen(t, connect)
	stop := context.AfterFunc(ctx, func() { _ = p.process.Kill() })
	defer stop()
	if _, err := fmt.Fprintln(p.in); err != nil {
		t.Fatal(err)
	}
	if said, err := p.out.ReadString('\n'); err != nil || said != "writes\n" {
		t.Fatal(said, err)
	}
	if err := p.process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	next, err := locks.NewInterProcessMutex(waiter, lockPath).Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer release(t, next)
	stat, err := next.Client().SetData().ForPath(ctx, "/data", []byte("next"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if said, err := p.out.ReadString('\n'); err != nil || said != "refused\n" {
		t.Error(said, err)
	}
	data, err := waiter.GetData().StoringStatIn(stat).ForPath(ctx, "/data")
	if err != nil || string(data) != "next" {
		t.Errorf("data is %q, %v, %+v", data, err, stat)
	}
}

// writeUntilRefused is the process: it acquires until it has written, and writes with that hold alone, whatever the
// context of that says.
func writeUntilRefused(t *testing.T, connect string) {
	t.Helper()
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return
	}
	ctx := testenv.Context(t)
	client := newClient(t, connect, framework.WithSessionTimeout(duelSession))
	var hold *locks.Hold
	for written := false; ; {
		if hold == nil {
			var err error
			if hold, err = locks.NewInterProcessMutex(client, lockPath).Acquire(ctx); err != nil {
				t.Fatal(err)
			}
		}
		_, err := hold.Client().SetData().ForPath(ctx, "/data", []byte("late"))
		switch {
		case err == nil && !written:
			written = true
			fmt.Println("writes")
		case errors.Is(err, locks.ErrLockLost) && !written: // a busy machine has ended the session before
			hold = nil
		case errors.Is(err, locks.ErrLockLost):
			fmt.Println("refused")
			return
		case err != nil:
			fmt.Println(err)
			return
		}
	}
}
