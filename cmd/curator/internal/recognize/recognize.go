// Package recognize finds recipes in a listing of nodes, by the nodes' names: who holds, and who waits for whom. The
// names are those of Java Curator, which Curator for Go has too. It does no I/O.
package recognize

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// Node is a node of the listing.
type Node struct {
	Path string
	Data []byte
	Stat zk.Stat
}

// Recipe is a kind of recipe.
type Recipe string

// The recipes. A mutex, a leader selector and an InterProcessSemaphore have the same nodes: they are a Lock.
const (
	Lock          Recipe = "lock"
	ReadWriteLock Recipe = "rwlock"
	Semaphore     Recipe = "semaphore"
	Latch         Recipe = "latch"
	Queue         Recipe = "queue"
	PriorityQueue Recipe = "priority-queue"
	DelayQueue    Recipe = "delay-queue"
	IDQueue       Recipe = "id-queue"
	SimpleQueue   Recipe = "simple-queue"
	QueueLocks    Recipe = "queue-locks"
	DoubleBarrier Recipe = "double-barrier"
	Members       Recipe = "members"
	Service       Recipe = "service"
)

// Recipes returns the names of all recipes.
func Recipes() []string {
	var names []string
	for _, r := range []Recipe{
		Lock, ReadWriteLock, Semaphore, Latch, Queue, PriorityQueue, DelayQueue, IDQueue, SimpleQueue, QueueLocks,
		DoubleBarrier, Members, Service,
	} {
		names = append(names, string(r))
	}
	return names
}

// State is what a participant does.
type State string

// The states.
const (
	Holds    State = "holds"
	Waits    State = "waits"
	Reads    State = "reads"  // holds a read lock
	Writes   State = "writes" // holds a write lock
	Leads    State = "leads"
	Queued   State = "queued"   // an item that waits for a consumer
	Consumed State = "consumed" // an item that a consumer has claimed
	Entered  State = "entered"
	Member   State = "member"
)

// Participant is a node that takes part in a recipe.
type Participant struct {
	Recipe  Recipe
	Path    string // of the recipe
	Node    string // the path of the node below it: a name, for a lease two
	State   State
	For     string    // the node that a waiting one waits for; "" if that is no single node
	Since   time.Time // the creation of the node, by the servers' clock
	Token   int64     // the transaction of the creation, which Curator for Go has as the token of a hold
	Session int64     // 0 if the node is not ephemeral
	ID      string    // the id of a participant, the id of an item, the priority, or the due time
	Address string    // what the data says: Curator's default is the address of the host
	Note    string
	Service *Instance // what the data says, of a Service alone
}

// Find returns the participants of all recipes in a listing: by path, and within a recipe in their order. Nodes of no
// recipe are left out. A barrier that is one node has no name of its own, so it is not found.
func Find(nodes []Node) []Participant {
	dirs := map[string][]*child{}
	for i := range nodes {
		n := &nodes[i]
		if n.Path == "/" {
			continue
		}
		parent, name := zkpath.PathAndNode(n.Path)
		dirs[parent] = append(dirs[parent], &child{Node: n, name: name})
	}
	f := &finder{dirs: dirs, ofSemaphore: map[string]bool{}}
	paths := make([]string, 0, len(dirs))
	for path := range dirs {
		paths = append(paths, path)
	}
	// By names, and not by text: "/a/b" is before "/a-b".
	slices.SortFunc(paths, func(a, b string) int { return slices.Compare(zkpath.Split(a), zkpath.Split(b)) })
	for _, path := range paths {
		f.semaphore(path)
	}
	var found []Participant
	for _, path := range paths {
		found = append(found, f.directory(path)...)
	}
	return found
}

// child is a node in its directory.
type child struct {
	*Node
	name   string
	number int32
}

func (c *child) isEphemeral() bool { return c.Stat.EphemeralOwner != 0 }

type finder struct {
	dirs        map[string][]*child
	ofSemaphore map[string]bool // the directories "locks" and "leases" of semaphores, and false for the semaphores
}

// The names of the nodes of semaphores.
const (
	turnNode  = "locks"
	leaseNode = "leases"
)

// semaphore notes whether a path is that of a semaphore.
func (f *finder) semaphore(path string) {
	locks, held := f.dirs[zkpath.Join(path, turnNode)], f.dirs[zkpath.Join(path, leaseNode)]
	has := func(name string) bool {
		return slices.ContainsFunc(f.dirs[path], func(c *child) bool { return c.name == name })
	}
	isOne := len(contenders(held, "lease-")) > 0 ||
		has(turnNode) && has(leaseNode) && len(contenders(locks, "lock-")) > 0
	if isOne {
		f.ofSemaphore[path] = false
		f.ofSemaphore[zkpath.Join(path, turnNode)] = true
		f.ofSemaphore[zkpath.Join(path, leaseNode)] = true
	}
}

// contenders returns the ephemeral nodes with one of the prefixes and a number, in their order.
func contenders(children []*child, prefixes ...string) []*child {
	var some []*child
	for _, c := range children {
		if !c.isEphemeral() {
			continue
		}
		for _, prefix := range prefixes {
			if n, ok := sequence(c.name, prefix); ok {
				c.number = n
				some = append(some, c)
				break
			}
		}
	}
	slices.SortStableFunc(some, byNumber)
	return some
}

// sequence returns the number behind the last occurrence of the prefix. The servers write ten digits at least.
func sequence(name, prefix string) (int32, bool) {
	i := strings.LastIndex(name, prefix)
	if i < 0 || len(name)-i-len(prefix) < 10 {
		return 0, false
	}
	return waitqueue.Sequence(name, prefix)
}

// InOrder returns the names with a prefix and a number, in the order in which their nodes were created.
func InOrder(names []string, prefix string) (ordered []string) {
	var some []*child
	for _, name := range names {
		if n, ok := sequence(name, prefix); ok {
			some = append(some, &child{Node: &Node{}, name: name, number: n})
		}
	}
	slices.SortStableFunc(some, byNumber)
	for _, c := range some {
		ordered = append(ordered, c.name)
	}
	return ordered
}

// byNumber orders nodes as they were created: after the largest number the servers continue with the smallest.
func byNumber(a, b *child) int {
	switch {
	case a.number == b.number:
		return cmp.Compare(a.Stat.Czxid, b.Stat.Czxid)
	case waitqueue.Before(a.number, b.number):
		return -1
	}
	return 1
}

// directory returns the participants of the recipes whose nodes are the children of a path. A path may have those of
// several recipes, although Curator's users should not do that.
func (f *finder) directory(path string) []Participant {
	all := f.dirs[path]
	isPart, isKnown := f.ofSemaphore[path]
	switch {
	case isPart:
		return nil
	case isKnown:
		return f.leases(path)
	}
	seen := map[*child]bool{}
	take := func(some []*child) []*child {
		for _, c := range some {
			seen[c] = true
		}
		return some
	}
	var found []Participant
	found = append(found, line(Lock, path, Holds, take(contenders(all, "lock-")))...)
	found = append(found, line(Latch, path, Leads, take(contenders(all, "latch-")))...)
	found = append(found, readWrite(path, take(contenders(all, writeName, readName)))...)
	found = append(found, items(path, all, take)...)
	found = append(found, elements(path, all, take)...)
	found = append(found, instances(path, all, take)...)
	rest := slices.DeleteFunc(slices.Clone(all), func(c *child) bool { return seen[c] })
	return append(found, members(path, rest)...)
}

// participant describes a node.
func participant(r Recipe, path string, s State, c *child) Participant {
	p := Participant{
		Recipe: r, Path: path, Node: c.name, State: s, Since: time.UnixMilli(c.Stat.Ctime).UTC(), Token: c.Stat.Czxid,
		Session: c.Stat.EphemeralOwner,
	}
	if string(c.Data) == revoke {
		p.Note = "asked to release"
	} else {
		p.Address = address(c.Data)
	}
	return p
}

// revoke is the data by which a participant asks the holder of a lock to release it.
const revoke = "__REVOKE__"

// maxAddress is how much of the data may be an address or an id.
const maxAddress = 256

// address returns the data if it is a short text that a terminal prints.
func address(data []byte) string {
	if len(data) > maxAddress || !utf8.Valid(data) {
		return ""
	}
	text := string(data)
	if strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0 {
		return ""
	}
	return text
}

// line returns the participants of a recipe whose first node holds, and each other waits for the one before it.
func line(r Recipe, path string, first State, some []*child) (found []Participant) {
	for i, c := range some {
		p := participant(r, path, first, c)
		if i > 0 {
			p.State, p.For = Waits, some[i-1].name
		}
		found = append(found, p)
	}
	return found
}

// The names of the nodes of read-write locks.
const (
	readName  = "__READ__"
	writeName = "__WRIT__"
)

// readWrite returns the participants of a read-write lock. A reader waits for the writers before it. A reader with the
// number of a writer is one and the same owner, which wrote before.
func readWrite(path string, some []*child) (found []Participant) {
	var writer *child // the last one so far
	for i, c := range some {
		p := participant(ReadWriteLock, path, Reads, c)
		if !strings.Contains(c.name, writeName) {
			if w := writer; w != nil && w.number != c.number {
				p.State, p.For = Waits, w.name
				// The nodes do not show whether this is another owner in the same session.
				if w == some[0] && w.Stat.EphemeralOwner == c.Stat.EphemeralOwner {
					p.Note = "or reads under the write lock of its own session"
				}
			} else if w != nil && w != some[0] {
				p.State, p.For = Waits, w.name
			}
			found = append(found, p)
			continue
		}
		writer = c
		p.State = Writes
		if i > 0 {
			p.State, p.For = Waits, some[i-1].name
		}
		found = append(found, p)
	}
	return found
}

// leases returns the participants of a semaphore. Who wants a lease waits for its turn below "locks". The first there
// creates a lease, and waits until there are few enough: then its lease is the newest.
func (f *finder) leases(path string) (found []Participant) {
	held := contenders(f.dirs[zkpath.Join(path, leaseNode)], "lease-")
	turns := contenders(f.dirs[zkpath.Join(path, turnNode)], "lock-")
	slices.SortStableFunc(held, func(a, b *child) int { return cmp.Compare(a.Stat.Czxid, b.Stat.Czxid) })
	var asks *child // the lease of the first in turn
	if len(held) > 0 && len(turns) > 0 {
		last, first := held[len(held)-1], turns[0]
		if last.Stat.EphemeralOwner == first.Stat.EphemeralOwner && last.Stat.Czxid > first.Stat.Czxid {
			asks = last
		}
	}
	for _, c := range held {
		p := participant(Semaphore, path, Holds, c)
		p.Node = leaseNode + "/" + c.name
		if c == asks {
			p.State, p.Note = Waits, "the next to get a lease"
		}
		found = append(found, p)
	}
	for i, c := range turns {
		if i == 0 && asks != nil {
			continue
		}
		p := participant(Semaphore, path, Waits, c)
		p.Node = turnNode + "/" + c.name
		if i > 0 {
			p.For = turnNode + "/" + turns[i-1].name
		}
		found = append(found, p)
	}
	return found
}

const itemPrefix = "queue-"

// The field of a name of an item, between bars: a time in hex, or an id.
var (
	itemName = regexp.MustCompile(`^queue-(?:\|(.*)\||([01][0-9A-F]{8}))?(-?[0-9]{10,})$`)
	dueTime  = regexp.MustCompile(`^[0-9A-F]{8,16}$`)
)

// items returns the items of a queue, and the locks of items.
func items(path string, all []*child, take func([]*child) []*child) (found []Participant) {
	recipe := Queue
	var some, locks []*child
	fields := map[*child]string{}
	for _, c := range all {
		if !strings.HasPrefix(c.name, itemPrefix) {
			continue
		}
		parts := itemName.FindStringSubmatch(c.name)
		if parts == nil {
			continue
		}
		number, err := strconv.ParseInt(parts[3], 10, 32)
		if err != nil {
			continue
		}
		c.number = int32(number)
		if c.isEphemeral() {
			locks = append(locks, c)
			continue
		}
		some = append(some, c)
		switch {
		case parts[2] != "":
			recipe, fields[c] = PriorityQueue, parts[2]
		case parts[1] != "" && dueTime.MatchString(parts[1]) && recipe != IDQueue:
			recipe, fields[c] = DelayQueue, parts[1]
		case parts[1] != "":
			recipe, fields[c] = IDQueue, parts[1]
		}
	}
	slices.SortStableFunc(some, func(a, b *child) int {
		if recipe == PriorityQueue || recipe == DelayQueue {
			// An item that Java has put back has no field, and comes first.
			if c := compareFields(fields[a], fields[b]); c != 0 {
				return c
			}
		}
		return byNumber(a, b)
	})
	for _, c := range take(some) {
		p := participant(recipe, path, Queued, c)
		p.ID, p.Address = fieldText(recipe, fields[c]), ""
		found = append(found, p)
	}
	slices.SortStableFunc(locks, byNumber)
	for _, c := range take(locks) {
		found = append(found, participant(QueueLocks, path, Consumed, c))
	}
	return found
}

// compareFields orders numbers in hex of any length.
func compareFields(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// fieldText returns the field of a name for people.
func fieldText(r Recipe, field string) string {
	switch {
	case field == "":
		return ""
	case r == PriorityQueue:
		bits, _ := strconv.ParseUint(field[1:], 16, 32) // the name was matched
		return strconv.Itoa(int(int32(uint32(bits))))
	case r == DelayQueue:
		if ms, err := strconv.ParseInt(field, 16, 64); err == nil {
			return time.UnixMilli(ms).UTC().Format(time.RFC3339)
		}
	}
	return field
}

const elementPrefix = "qn-"

// elements returns the elements of a simple queue.
func elements(path string, all []*child, take func([]*child) []*child) (found []Participant) {
	var some []*child
	for _, c := range all {
		if isElement(c.name) && !c.isEphemeral() {
			c.number, _ = sequence(c.name, elementPrefix)
			some = append(some, c)
		}
	}
	slices.SortStableFunc(some, byNumber)
	for _, c := range take(some) {
		p := participant(SimpleQueue, path, Queued, c)
		p.Address = ""
		found = append(found, p)
	}
	return found
}

// readyNode is the node that opens a double barrier.
const readyNode = "ready"

var uuidName = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// members returns the members of a double barrier, whose names are UUIDs, and those of groups, which have any name.
func members(path string, rest []*child) (found []Participant) {
	recipe, state := DoubleBarrier, Waits
	var some []*child
	for _, c := range rest {
		switch {
		case c.name == readyNode && !c.isEphemeral():
			state = Entered
		case !c.isEphemeral() || strings.HasPrefix(c.name, "fence-"):
		default:
			some = append(some, c)
			if !uuidName.MatchString(c.name) {
				recipe = Members
			}
		}
	}
	if recipe == Members {
		state = Member
	}
	slices.SortFunc(some, func(a, b *child) int { return cmp.Compare(a.name, b.name) })
	for _, c := range some {
		p := participant(recipe, path, state, c)
		if recipe == Members {
			p.ID = zkpath.Normalize(c.name)
		}
		found = append(found, p)
	}
	return found
}
