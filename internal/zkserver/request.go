package zkserver

import (
	"github.com/gocurator/curator/internal/jute"
)

// request handles a frame after the handshake. It returns false after the last frame of the connection.
func (c *conn) request(frame []byte) bool {
	return c.dispatch(frame, func(h jute.RequestHeader, body []byte) bool {
		if !c.alive() {
			return true // the end of the session is on its way to the client
		}
		c.member.noteActivity(c.session)
		if c.mustWait(h.Op) {
			c.wait(frame, isWrite(h.Op) && h.Op != jute.OpSync)
			return true
		}
		return c.answerRequest(h, body)
	})
}

// dispatch adds the identities of a frame that has some. It calls answer for a request of a client that may send it.
func (c *conn) dispatch(frame []byte, answer func(jute.RequestHeader, []byte) bool) bool {
	h, body, err := jute.DecodeRequestHeader(frame)
	switch {
	case err != nil:
		return false
	case h.Op == jute.OpAuth:
		return c.authenticate(h, body)
	case h.Op == jute.OpSASL:
		return c.sasl(h, body)
	case !c.member.service.config.admitted(c.ids):
		c.reply(jute.ReplyHeader{Xid: h.Xid, Code: jute.CodeSessionClosedRequireSASL}, h.Op, nil)
		return false
	}
	return answer(h, body)
}

// answerRequest answers a request. It returns false after the last frame of the connection.
func (c *conn) answerRequest(h jute.RequestHeader, body []byte) bool {
	version := c.member.service.config.Version
	switch {
	case !supported(h.Op) || h.Op == jute.OpCheck && !version.loneCheck():
		c.reply(jute.ReplyHeader{Xid: h.Xid, Zxid: -1, Code: jute.CodeUnimplemented}, h.Op, nil)
		return false
	case h.Op == jute.OpPing:
		c.answer(jute.RequestHeader{Xid: jute.XidPing, Op: h.Op}, jute.CodeOK, nil)
		return true
	case h.Op == jute.OpSetWatches, h.Op == jute.OpSetWatches2:
		c.armWatches(h, body)
		return true
	case c.member.state == stateReadOnly && isWrite(h.Op) && !(h.Op == jute.OpCloseSession && c.session.local):
		c.answer(h, jute.CodeNotReadOnly, nil)
		return true
	case h.Op == jute.OpCloseSession:
		return c.close(h)
	}
	r, err := jute.DecodeRequest(h.Op, body)
	numbered := err == nil || h.Op == jute.OpMulti || h.Op != jute.OpReconfig && version.numbersUnread()
	if err == nil && nullPath(h.Op, body) {
		err = jute.ErrMarshalling
	}
	switch {
	case isWrite(h.Op) && h.Op != jute.OpSync && numbered:
		return c.write(h, &r, err)
	case err != nil:
		c.answer(h, jute.CodeMarshallingError, nil)
	case h.Op == jute.OpSync && c.moved():
		return false
	default:
		var reply jute.Reply
		code := c.read(&r, &reply)
		c.answer(h, code, &reply)
	}
	return true
}

// answer sends a reply with the zxid of the last transaction that the member has applied.
func (c *conn) answer(h jute.RequestHeader, code jute.Code, body *jute.Reply) {
	reply := jute.ReplyHeader{Xid: h.Xid, Zxid: c.member.tree.applied, Code: code}
	c.noteAnswer(reply, operationName(h.Op, code))
	c.reply(reply, h.Op, body)
}

// alive reports whether the session is alive as far as the member knows. The end of a session closes its connections,
// but a leader without a quorum cannot end sessions whose time is over.
func (c *conn) alive() bool {
	if c.session.local {
		return c.member.local[c.session.id] == c.session
	}
	return !c.session.closing || c.member != c.member.service.cutLeader
}

// moved reports whether the session has moved to another connection, which the client of this one may not have noticed.
// A server that notices it ends the connection without an answer.
func (c *conn) moved() bool { return c.session.conn != c }

// write commits and applies a transaction, and answers with its outcome.
func (c *conn) write(h jute.RequestHeader, r *jute.Request, invalid error) bool {
	s := c.member.service
	if s.sessions[c.session.id] != c.session {
		c.member.catchUp() // a lagging member learns only now that the session has ended
		return false
	}
	// Apache ZooKeeper checks the session once for each operation, so it checks nothing for a multi without operations.
	empty := h.Op == jute.OpMulti && invalid == nil && len(r.Ops) == 0
	if c.moved() && !empty {
		return false
	}
	p := proposal{
		tree: s.leader.tree, session: c.session.id, ids: c.ids, schemes: s.schemes, enforceQuota: s.config.EnforceQuota,
	}
	var refused []jute.Result
	var next *ensemble
	code := jute.CodeMarshallingError
	switch {
	case invalid != nil:
	case h.Op == jute.OpMulti:
		refused, code = p.addAll(r.Ops, s.config.Version)
	case h.Op == jute.OpReconfig:
		next, code = s.reconfig(&p, r.Reconfig)
	case h.Op == jute.OpCreateTTL && s.config.NoTTL:
		code = jute.CodeUnimplemented
	default:
		code = p.add(r)
	}
	results := s.commit(&p.txn)
	c.member.catchUp()
	if h.Op == jute.OpCheck && code == jute.CodeOK {
		return true // Apache ZooKeeper fails to encode this answer and sends none
	}
	var reply jute.Reply
	switch {
	case h.Op == jute.OpMulti && refused != nil:
		reply.Results = refused
	case h.Op == jute.OpMulti:
		reply.Results = asInMulti(results)
	case code == jute.CodeOK:
		reply.Path, reply.Stat = results[0].Path, results[0].Stat
	}
	switch {
	case next == nil:
	case c.member == s.leader:
		reply.Data = next.text()
	default: // the order of the servers may differ
		reply.Data = next.read().text()
	}
	c.answer(h, code, &reply)
	if next != nil {
		s.activate(next)
	}
	return true
}

// nullPath reports whether the path is null, for which Java fails. An empty path is another case.
func nullPath(op jute.Op, body []byte) bool {
	switch op {
	case jute.OpCreate, jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL, jute.OpDelete, jute.OpExists,
		jute.OpGetData, jute.OpGetACL, jute.OpGetChildren, jute.OpGetChildren2, jute.OpGetAllChildrenNumber:
		d := jute.NewDecoder(body)
		return d.Int32() < 0
	}
	return false
}

// close ends the session because its client requests it.
func (c *conn) close(h jute.RequestHeader) bool {
	if c.session.local {
		delete(c.member.local, c.session.id)
	} else {
		c.leaving = true
		if s := c.member.service; s.sessions[c.session.id] == c.session {
			s.closeSession(c.session)
		}
		c.member.catchUp()
	}
	c.answer(h, jute.CodeOK, nil)
	return false
}

func (c *conn) armWatches(h jute.RequestHeader, body []byte) {
	decode := jute.DecodeSetWatches
	if h.Op == jute.OpSetWatches2 {
		decode = jute.DecodeSetWatches2
	}
	w, err := decode(body)
	code := jute.CodeMarshallingError
	if err == nil {
		code = c.setWatches(&w, h.Op == jute.OpSetWatches2)
	}
	c.answer(h, code, nil)
}

func (c *conn) authenticate(h jute.RequestHeader, body []byte) bool {
	a, err := jute.DecodeAuth(body)
	if err != nil {
		return false
	}
	if !c.ids.authenticate(&a, c.member.service.config.SuperDigest, loopback) {
		c.reply(jute.ReplyHeader{Xid: h.Xid, Code: jute.CodeAuthFailed}, h.Op, nil)
		return false
	}
	c.reply(jute.ReplyHeader{Xid: h.Xid}, h.Op, nil)
	return true
}

// supported reports whether a server knows the operation.
func supported(op jute.Op) bool {
	switch op {
	case jute.OpPing, jute.OpSetWatches, jute.OpSetWatches2, jute.OpExists, jute.OpGetData, jute.OpGetACL,
		jute.OpGetChildren, jute.OpGetChildren2, jute.OpMultiRead, jute.OpAddWatch, jute.OpCheckWatches,
		jute.OpRemoveWatches, jute.OpGetEphemerals, jute.OpGetAllChildrenNumber, jute.OpWhoAmI:
		return true
	}
	return isWrite(op)
}

// isWrite reports whether the operation needs the leader. That includes a sync, which is no transaction.
func isWrite(op jute.Op) bool {
	switch op {
	case jute.OpCreate, jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL, jute.OpDelete, jute.OpSetData,
		jute.OpSetACL, jute.OpMulti, jute.OpCheck, jute.OpReconfig, jute.OpSync, jute.OpCloseSession:
		return true
	}
	return false
}
