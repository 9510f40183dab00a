package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
)

const (
	settingPath = "/setting"
	lastSetting = 5
)

// watch has one client follow a node that another one changes.
func watch(ctx context.Context, s *stage) (err error) {
	s.out.step("A watch")
	s.out.say("one client changes a node %d times, another one follows it", lastSetting)
	writer, err := s.client()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, writer.Close()) }()
	reader, err := s.client()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	if _, err := writer.Create().ForPath(ctx, settingPath, []byte("0")); err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // if the writer fails, nobody need follow it
	f := following{ready: make(chan struct{}), done: make(chan error, 1)}
	go func() { f.done <- f.follow(ctx, reader) }()
	select {
	case <-f.ready: // else the changes may be over before the reader looks
	case err := <-f.done:
		return err
	}
	for i := range lastSetting {
		if _, err := writer.SetData().ForPath(ctx, settingPath, []byte(strconv.Itoa(i+1))); err != nil {
			cancel()
			return errors.Join(err, <-f.done)
		}
	}
	if err := <-f.done; err != nil {
		return err
	}
	s.out.say("it saw %v", f.seen)
	s.out.check(f.seen[len(f.seen)-1] == lastSetting, "the last it saw is the newest")
	s.out.check(slices.IsSorted(f.seen), "it never saw an older value after a newer one")
	return nil
}

// following is a client that follows a node.
type following struct {
	ready chan struct{} // closed when it watches
	done  chan error
	seen  []int
}

// follow reads the node and watches it, and again each time that the watch reports a change. A watch reports that
// something has changed, not what: there may have been several changes by the time the node is read, and the reader
// sees only the last of them.
func (f *following) follow(ctx context.Context, client *framework.Client) error {
	changed := make(chan zk.Event, 1)
	watcher := callbacks.NewChanWatcher(changed)
	for {
		data, err := client.GetData().UsingWatcher(watcher).ForPath(ctx, settingPath)
		if err != nil {
			return err
		}
		value, err := strconv.Atoi(string(data))
		if err != nil {
			return fmt.Errorf("%s: %w", settingPath, err)
		}
		if f.seen = append(f.seen, value); len(f.seen) == 1 {
			close(f.ready)
		}
		if value == lastSetting {
			return client.Watches().Remove(watcher).Quietly().ForPath(ctx, settingPath)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
