package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
)

// errFenced says that a later holder of the lock has written already: the writer has lost the lock and did not know.
var errFenced = errors.New("fenced off")

// counter is a number in a node, and stands for any resource that a lock protects: a row, a file, a device. It
// remembers the highest fencing token that has written to it, and refuses lower ones. A lock alone cannot do that: its
// holder may be paused for longer than its session lives, and write when it wakes up.
type counter struct {
	client *framework.Client
	path   string
}

// count is the content of the node.
type count struct {
	Value int   `json:"value"`
	Token int64 `json:"token"` // of the lock under which it was written
}

// create creates the node.
func (c counter) create(ctx context.Context) error {
	data, err := json.Marshal(count{})
	if err != nil {
		return err
	}
	_, err = c.client.Create().ForPath(ctx, c.path, data)
	return err
}

// read returns the content of the node and its version.
func (c counter) read(ctx context.Context) (n count, version int32, err error) {
	var stat zk.Stat
	data, err := c.client.GetData().StoringStatIn(&stat).ForPath(ctx, c.path)
	if err != nil {
		return n, 0, err
	}
	return n, stat.Version, json.Unmarshal(data, &n)
}

// increment adds one under the lock of that token. The write is for the version that was read, so nobody can write
// between the check of the token and the write.
func (c counter) increment(ctx context.Context, token int64) (count, error) {
	n, version, err := c.read(ctx)
	if err != nil {
		return n, err
	}
	if token < n.Token {
		return n, fmt.Errorf("%w: token %#x is older than %#x", errFenced, token, n.Token)
	}
	n.Value, n.Token = n.Value+1, token
	data, err := json.Marshal(n)
	if err != nil {
		return n, err
	}
	_, err = c.client.SetData().WithVersion(version).ForPath(ctx, c.path, data)
	return n, err
}
