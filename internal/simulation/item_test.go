package simulation_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// item is the record of one item of a queue.
type item struct {
	value        string
	put          *put
	nodes        []*node // that have held it, in the order of their creates
	deliveries   []*delivery
	reported     []string // errors about it
	lossReported bool     // one of them had its bytes
}

// put is the record of one put, of one item or several.
type put struct {
	queue    *openQueue
	putter   string // the goroutine that puts one after the other
	priority int
	due      time.Time
	id       string

	items     []*item
	began     time.Time
	ended     time.Time
	path      string // of its node
	err       error
	requested bool // to remove it by its id
	removed   time.Time
}

func (p *put) isOver() bool { return !p.ended.IsZero() }

// isSplit reports whether some of the items are, or were, in another node: they were put back. A removal by id may have
// removed only that node.
func (p *put) isSplit() bool {
	return slices.ContainsFunc(p.items, func(i *item) bool { return len(i.nodes) > 1 })
}

// result is the result of the work on an item.
type result int

const (
	itemOpen result = iota // the work has not ended
	itemDone
	itemFailed
	itemVoid // the process was dead: the work has no effect
)

func (r result) String() string { return [...]string{"open", "done", "failed", "void"}[r] }

// delivery is one call of a consumer, or one pull, with an item.
type delivery struct {
	value    string
	attempt  int // number of earlier deliveries
	queue    *openQueue
	item     *item // nil if it is unknown
	node     *node
	lock     *node // nil without a lock path
	ctx      context.Context
	began    time.Time
	ended    time.Time
	result   result
	reported bool // an error about it
}

// itemValues finds the items in the bytes of a node, or in a text about them.
var itemValues = regexp.MustCompile(`\[item [^\[\]]*\]`)

func valuesIn(data []byte) (found []string) {
	for _, v := range itemValues.FindAll(data, -1) {
		found = append(found, string(v))
	}
	return found
}

// numberOf returns the number that the server gave a node of an item.
func numberOf(n *node) int64 {
	number, _ := strconv.ParseInt(n.name[max(0, len(n.name)-10):], 10, 64) // 0 for one without a number
	return number
}

// String returns the life of an item.
func (i *item) String() string {
	began := i.put.queue.world.history.began
	at := func(t time.Time) string {
		if t.IsZero() {
			return "now"
		}
		return fmt.Sprintf("%.6f", t.Sub(began).Seconds())
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s of a %v queue, mode %d", i.value, i.put.queue.kind, i.put.queue.mode)
	fmt.Fprintf(&b, "\n  put from %s to %s, error: %v", at(i.put.began), at(i.put.ended), i.put.err)
	for _, n := range i.nodes {
		fmt.Fprintf(&b, "\n  in %s (%#x, of %d items) from %s to %s",
			n.name, n.czxid, len(valuesIn(n.data)), at(n.born), at(n.ended))
	}
	for _, d := range i.deliveries {
		fmt.Fprintf(&b, "\n  to %s from %s to %s: %v", d.queue.actor.name, at(d.began), at(d.ended), d.result)
		if d.node != nil {
			fmt.Fprintf(&b, ", node %s", d.node.name)
		}
		if d.lock != nil {
			fmt.Fprintf(&b, ", lock of session %#x from %s to %s", d.lock.owner, at(d.lock.born), at(d.lock.ended))
		}
	}
	if i.put.requested {
		fmt.Fprintf(&b, "\n  to be removed, is removed: %v", !i.put.removed.IsZero())
	}
	for _, text := range i.reported {
		fmt.Fprintf(&b, "\n  reported: %s", text)
	}
	return b.String()
}
