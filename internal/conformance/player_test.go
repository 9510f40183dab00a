package conformance_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// player plays a sequence on one server and writes down all that its clients hear, in words that do not depend on the
// server: times are left out, zxids count from the beginning, sessions and paths are the sequence's.
type player struct {
	narrator
	addr     string
	newest   int64 // the newest zxid that was heard of
	clients  [clients]*conn
	received [clients][]string
	waiting  [clients][]sent
}

// transcript is the result of a sequence: the answers to each client, and the tree at the end.
type transcript struct {
	received [clients][]string
	tree     []string
}

// superUser may do everything on both servers.
const superUser = "super:secret"

// play plays a sequence below root, a node that is not there before and will not be after.
func play(addr, root string, steps []step) (t transcript, err error) {
	p := &player{narrator: narrator{root: root, sessions: map[int64]int{}}, addr: addr}
	admin, err := open(addr, 0, nil)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, admin.Close()) }()
	if _, err := admin.ask(jute.OpAuth,
		jute.AppendAuth(nil, &jute.Auth{Scheme: schemeDigest, Auth: []byte(superUser)})); err != nil {
		return t, err
	}
	made, err := admin.request(&jute.Request{Op: jute.OpCreate, Path: root, ACL: zk.WorldACL(zk.PermAll)})
	if err != nil {
		return t, err
	}
	if made.Code != jute.CodeOK {
		return t, made.Code.Err()
	}
	p.base, p.newest = made.Zxid, made.Zxid
	defer func() { err = errors.Join(err, p.leave(admin)) }()
	for i := range p.clients {
		if err := p.connect(i, 0, nil); err != nil {
			return t, err
		}
	}
	for i, s := range steps {
		if err := p.step(s); err != nil {
			p.received[s.client] = append(p.received[s.client], fmt.Sprintf("step %d: %v", i, err))
			break
		}
	}
	for i := range p.clients { // what was sent to them before
		p.request(i, jute.Request{Op: jute.OpPing})
	}
	t.received = p.received
	t.tree, err = p.walk(admin, root)
	return t, err
}

func (p *player) connect(i int, session int64, password []byte) error {
	c, err := open(p.addr, session, password)
	if err != nil {
		return err
	}
	if session == 0 {
		p.sessions[c.session] = len(p.sessions) + 1
	}
	if old := p.clients[i]; old != nil {
		c.xid = old.xid
	}
	p.clients[i] = c
	return nil
}

func (p *player) step(s step) error {
	c := p.clients[s.client]
	switch s.action {
	case doAuth:
		return p.send(s.client, jute.OpAuth, jute.AppendAuth(nil, &s.auth))
	case doSetWatches:
		return p.setWatches(s)
	case doReconnect:
		if err := errors.Join(c.Close(), p.connect(s.client, c.session, c.password)); err != nil {
			return err
		}
		return p.setWatches(s)
	case doNewSession:
		return p.newSession(s.client)
	case doOffend:
		if err := p.offend(s); err != nil {
			return err
		}
		return p.connect(s.client, c.session, c.password)
	}
	return p.requests(s.client, s.requests)
}

func (p *player) requests(i int, requests []jute.Request) error {
	c := p.clients[i]
	var all []byte
	for _, r := range requests {
		b, xid := c.encode(r.Op, jute.AppendRequest(nil, p.root, &r))
		all = append(all, b...)
		p.waiting[i] = append(p.waiting[i], sent{r.Op, xid})
	}
	if _, err := c.Write(all); err != nil {
		return err
	}
	return p.await(i)
}

func (p *player) request(i int, r jute.Request) error { return p.requests(i, []jute.Request{r}) }

func (p *player) send(i int, op jute.Op, body []byte) error {
	b, xid := p.clients[i].encode(op, body)
	p.waiting[i] = append(p.waiting[i], sent{op, xid})
	if _, err := p.clients[i].Write(b); err != nil {
		return err
	}
	return p.await(i)
}

// await reads until every request of the client is answered.
func (p *player) await(i int) error {
	for len(p.waiting[i]) > 0 {
		a, err := p.clients[i].readAnswer()
		if err != nil {
			p.waiting[i] = nil
			return err
		}
		if a.Xid == jute.XidNotification {
			p.receive(i, p.event(a))
			continue
		}
		w := p.waiting[i][0]
		p.waiting[i] = p.waiting[i][1:]
		p.newest = max(p.newest, a.Zxid)
		p.receive(i, p.reply(w, a))
	}
	return nil
}

func (p *player) receive(i int, what string) { p.received[i] = append(p.received[i], what) }

func (p *player) setWatches(s step) error {
	w := s.watches
	w.RelativeZxid = p.newest - w.RelativeZxid
	for _, list := range []*[]string{&w.Data, &w.Exist, &w.Child, &w.Persistent, &w.Recursive} {
		below := make([]string, len(*list))
		for j, path := range *list {
			below[j] = p.root + path
		}
		*list = below
	}
	body := jute.AppendSetWatches2(nil, &w)
	if s.op == jute.OpSetWatches {
		body = jute.AppendSetWatches(nil, &w)
	}
	return p.send(s.client, s.op, body)
}

// newSession ends a session. Its ephemeral nodes go in an order that is the server's own, so what is heard of it is
// sorted: between two pings of each client.
func (p *player) newSession(i int) error {
	other := (i + 1) % clients
	from := [clients]int{}
	for j := range p.clients {
		if err := p.request(j, jute.Request{Op: jute.OpPing}); err != nil {
			return err
		}
		from[j] = len(p.received[j])
	}
	if err := p.request(i, jute.Request{Op: jute.OpCloseSession}); err != nil {
		return err
	}
	if err := p.request(other, jute.Request{Op: jute.OpPing}); err != nil {
		return err
	}
	for j := range p.clients {
		slices.Sort(p.received[j][from[j] : len(p.received[j])-1])
	}
	if err := p.hangUp(i); err != nil {
		return err
	}
	return p.connect(i, 0, nil)
}

// hangUp waits until the server has closed the connection.
func (p *player) hangUp(i int) error {
	a, err := p.clients[i].readAnswer()
	if err == nil {
		return fmt.Errorf("an answer in place of the end: %+v", a)
	}
	p.receive(i, "the end")
	return p.clients[i].Close()
}

func (p *player) offend(s step) error {
	var body []byte
	if s.op == jute.OpAuth {
		body = jute.AppendAuth(nil, &jute.Auth{Scheme: "nonsense"})
	}
	if err := p.send(s.client, s.op, body); err != nil {
		return err
	}
	return p.hangUp(s.client)
}

// walk puts the tree into words.
func (p *player) walk(admin *conn, path string) ([]string, error) {
	var lines []string
	for _, op := range []jute.Op{jute.OpGetData, jute.OpGetACL, jute.OpGetChildren2} {
		a, err := admin.request(&jute.Request{Op: op, Path: path})
		if err != nil {
			return nil, err
		}
		lines = append(lines, fmt.Sprintf("%q %s", p.path(path), p.reply(sent{op, a.Xid}, a)))
		if op != jute.OpGetChildren2 || a.Code != jute.CodeOK {
			continue
		}
		var r jute.Reply
		if err := jute.DecodeReply(op, a.body, &r); err != nil {
			return nil, err
		}
		slices.Sort(r.Children)
		for _, child := range r.Children {
			below, err := p.walk(admin, path+"/"+child)
			if err != nil {
				return nil, err
			}
			lines = append(lines, below...)
		}
	}
	return lines, nil
}

// leave ends the sessions and removes the tree.
func (p *player) leave(admin *conn) error {
	var errs []error
	for _, c := range p.clients {
		if c == nil {
			continue
		}
		if b, _ := c.encode(jute.OpCloseSession, nil); b != nil {
			c.Write(b) //nolint:errcheck // the server may have ended the connection
		}
		for err := error(nil); err == nil; {
			_, err = c.readFrame() // until it closes it
		}
		errs = append(errs, c.Close())
	}
	errs = append(errs, remove(admin, p.root))
	_, err := admin.request(&jute.Request{Op: jute.OpCloseSession})
	return errors.Join(append(errs, err)...)
}

func remove(admin *conn, path string) error {
	a, err := admin.request(&jute.Request{Op: jute.OpGetChildren, Path: path})
	if err != nil || a.Code == jute.CodeNoNode { // a sequence may have deleted it itself
		return err
	}
	var r jute.Reply
	if err := jute.DecodeReply(jute.OpGetChildren, a.body, &r); err != nil {
		return err
	}
	for _, child := range r.Children {
		if err := remove(admin, path+"/"+child); err != nil {
			return err
		}
	}
	a, err = admin.request(&jute.Request{Op: jute.OpDelete, Path: path, Version: -1})
	if err == nil {
		err = a.Code.Err()
	}
	return err
}

// request sends a request and gives its answer; there are no events.
func (c *conn) request(r *jute.Request) (answer, error) {
	return c.ask(r.Op, jute.AppendRequest(nil, "", r))
}

func (c *conn) ask(op jute.Op, body []byte) (answer, error) {
	b, _ := c.encode(op, body)
	if _, err := c.Write(b); err != nil {
		return answer{}, err
	}
	return c.readAnswer()
}
