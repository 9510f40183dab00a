package zkserver

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// The digests were computed by hashlib of Python, after RFC 2831.
func TestLogin(t *testing.T) {
	l := login{nonce: "IbdS7MpDWa1CZ0ksIfL7tBn8bUGFQyO9yyIeVTTx"}
	reply, user, v := l.next([]byte(`charset=utf-8,username="bob",realm="zk-sasl-md5",`+
		`nonce="IbdS7MpDWa1CZ0ksIfL7tBn8bUGFQyO9yyIeVTTx",nc=00000001,cnonce="0123456789",`+
		`digest-uri="zookeeper/zk-sasl-md5",maxbuf=65536,response=a2286169becb5a607e69a2b8bc2bf485,qop=auth`),
		map[string]string{"bob": "bobsecret"})
	if v != loginDone || user != "bob" || string(reply) != "rspauth=7339629c602b7bf66302b7516fddf145" {
		t.Errorf("%q for user %q, verdict %d", reply, user, v)
	}
	if _, _, v := l.next(nil, map[string]string{"bob": "bobsecret"}); v != loginRefused {
		t.Errorf("a second login: verdict %d", v)
	}
}

func TestNoncesDiffer(t *testing.T) {
	var a, b login
	a.next(nil, nil)
	b.next(nil, nil)
	if a.nonce == b.nonce || len(a.nonce) != 40 {
		t.Errorf("%q and %q", a.nonce, b.nonce)
	}
}

func TestParseDirectives(t *testing.T) {
	const text = ` a=1 , b="x\"\\,=" c = d,,e="",F=g,h`
	got, ok := parseDirectives(text)
	if !ok || len(got) != 6 || got["a"] != "1" || got["b"] != `x"\,=` || got["c"] != "d" || got["f"] != "g" {
		t.Errorf("%q, %t", got, ok)
	}
	for _, name := range []string{"e", "h"} {
		if value, ok := got[name]; !ok || value != "" {
			t.Errorf("%s: %q, %t", name, value, ok)
		}
	}
	for _, text := range []string{"=", "a=", "a b=c", "a,b=c", `a="`, `a="\`, `a="b"c`, "username=a,username=b"} {
		if got, ok := parseDirectives(text); ok {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// Requests behind a handshake that waits are checked as all others, and identities count.
func TestAuthBehindAHandshakeThatWaits(t *testing.T) {
	inCluster(t, func(t *testing.T, s *Service) {
		heal := s.Part([]int{0, 0, 1})
		late := dialLater(t, s.Member(3))
		late.write(t, jute.AppendAuth(jute.AppendRequestHeader(nil, jute.RequestHeader{Xid: jute.XidAuth, Op: jute.OpAuth}),
			&jute.Auth{Scheme: schemeDigest, Auth: []byte("u:p")}))
		create := late.send(t, jute.Request{Op: jute.OpCreate, Path: "/x", ACL: zk.AuthACL(zk.PermAll)})
		late.want(t)
		time.Sleep(testLimit / 2)
		heal()
		got, open := late.answers(t) // the first is that of the handshake
		if !open || len(got) != 3 || got[1].Xid != jute.XidAuth || got[2].Xid != create || got[2].Code != jute.CodeOK {
			t.Errorf("answers %+v, open %t", got, open)
		}
	})
}

func TestRequestBehindAHandshakeThatWaitsNeedsALogin(t *testing.T) {
	inCluster(t, func(t *testing.T, s *Service) {
		s.config.RequiredAuth = []string{schemeDigest}
		heal := s.Part([]int{0, 0, 1})
		late := dialLater(t, s.Member(3))
		late.send(t, createOf("/x"))
		late.want(t)
		heal()
		got, open := late.answers(t)
		if open || len(got) != 2 || got[1].Code != jute.CodeSessionClosedRequireSASL || exists(s.Member(1), "/x") {
			t.Errorf("answers %+v, open %t", got, open)
		}
	})
}

func TestMembersHaveUsersOfTheirOwn(t *testing.T) {
	c := testConfig()
	c.Members, c.Users = 3, map[string]string{"bob": "old"}
	s := New(c)
	t.Cleanup(s.Close)
	users := map[string]string{"bob": "new"}
	s.Member(2).SetUsers(users)
	users["bob"], c.Users["bob"] = "changed", "changed"
	if got := s.Member(2).users["bob"]; got != "new" {
		t.Errorf("member 2: %q", got)
	}
	if got := s.Member(1).users["bob"]; got != "old" {
		t.Errorf("member 1: %q", got)
	}
}

// FuzzLogin sends arbitrary responses: none is accepted, and none is read twice.
func FuzzLogin(f *testing.F) {
	f.Add(`username="bob",realm="zk-sasl-md5",nonce="n",cnonce="",digest-uri="zookeeper/zk-sasl-md5",response=x,maxbuf=1`)
	f.Add(`a=" \`)
	f.Add("nonce-count=zz," + strings.Repeat(",", 100))
	f.Fuzz(func(t *testing.T, token string) {
		l := login{nonce: "n"}
		if reply, user, v := l.next([]byte(token), map[string]string{"bob": "secret"}); v == loginDone || reply != nil ||
			user != "" || v == loginGoesOn {
			t.Errorf("%q for user %q, verdict %d", reply, user, v)
		}
		if _, _, v := l.next([]byte(token), nil); v != loginRefused {
			t.Errorf("again: verdict %d", v)
		}
	})
}
