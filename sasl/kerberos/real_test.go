package kerberos

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/kdc"
	"github.com/gocurator/curator/sasl"
)

const alice = "alice@" + kdc.Realm

// newKDC starts a KDC with the principals of the tests, and returns a keytab of alice.
func newKDC(t *testing.T) (k *kdc.Server, keytab string) {
	t.Helper()
	testenv.RequireReal(t)
	k = kdc.New(t)
	k.Add("alice", "secret")
	k.Add("zookeeper/localhost", "")
	return k, k.Keytab("alice")
}

// newServer starts Apache ZooKeeper with the principal zookeeper/localhost.
func newServer(t *testing.T, k *kdc.Server) *curatortest.RealServer {
	t.Helper()
	jaas := k.JAAS("Server", k.Keytab("zookeeper/localhost"), "zookeeper/localhost")
	server, err := curatortest.NewRealServer(
		curatortest.WithConfig("authProvider.sasl", "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"),
		curatortest.WithSystemProperty("java.security.auth.login.config", jaas),
		curatortest.WithSystemProperty("java.security.krb5.conf", k.ConfigFile()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// must returns a mechanism that has to be right.
func must(m *Mechanism, err error) *Mechanism {
	if err != nil {
		panic(err)
	}
	return m
}

// connection is a session with a server, in frames.
type connection struct {
	net.Conn
	xid int32
}

// login connects and logs in, and returns the identities that the server has for the session.
func login(ctx context.Context, m *Mechanism, addr string) (string, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	e, err := m.Start(ctx, host)
	if err != nil {
		return "", err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return "", err
		}
	}
	c := &connection{Conn: conn}
	hello := make([]byte, 4+8+4+8)
	binary.BigEndian.PutUint32(hello[12:], 10_000)
	hello = append(append(hello, 0, 0, 0, 16), make([]byte, 17)...)
	if _, err := c.ask(hello); err != nil {
		return "", err
	}
	var token []byte
	for {
		reply, done, err := e.Next(token)
		if err != nil {
			return "", err
		}
		if done {
			break
		}
		body := binary.BigEndian.AppendUint32(nil, uint32(len(reply)))
		answer, err := c.request(102, append(body, reply...))
		if err != nil {
			return "", err
		}
		token = nil
		if n := int32(binary.BigEndian.Uint32(answer)); n >= 0 {
			token = answer[4 : 4+n]
		}
	}
	who, err := c.request(107, nil)
	return string(who), err
}

func (c *connection) request(opcode uint32, body []byte) ([]byte, error) {
	c.xid++
	head := binary.BigEndian.AppendUint32(nil, uint32(c.xid))
	answer, err := c.ask(append(binary.BigEndian.AppendUint32(head, opcode), body...))
	if err != nil {
		return nil, err
	}
	if code := int32(binary.BigEndian.Uint32(answer[12:])); code != 0 {
		return nil, fmt.Errorf("the server answers %d", code)
	}
	return answer[16:], nil
}

func (c *connection) ask(frame []byte) ([]byte, error) {
	if _, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	answer := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(c, answer)
	return answer, err
}

// readLogin reads the section Client of a JAAS file.
func readLogin(t *testing.T, file string) sasl.Login {
	t.Helper()
	l, err := sasl.FromJAAS(file, "")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestLogins logs in to Apache ZooKeeper.
func TestLogins(t *testing.T) {
	t.Parallel()
	k, keytab := newKDC(t)
	server := newServer(t, k)
	conf := WithConfigFile(k.ConfigFile())
	cache := k.Cache("alice", keytab)
	jaas := k.JAAS("Client", keytab, "alice")
	mechanisms := map[string]*Mechanism{
		"keytab":              must(FromKeytab(keytab, alice, conf)),
		"default realm":       must(FromKeytab(keytab, "alice", conf)),
		"password":            must(FromPassword(alice, "secret", conf)),
		"cache":               must(FromCache(cache, conf)),
		"cache of FILE:":      must(FromCache("FILE:"+cache, conf)),
		"JAAS file":           must(FromLogin(readLogin(t, jaas), conf)),
		"mutual":              must(FromKeytab(keytab, alice, conf, WithMutualAuthentication())),
		"service principal":   must(FromKeytab(keytab, alice, conf, WithServicePrincipal("zookeeper/localhost"))),
		"realm of the server": must(FromKeytab(keytab, alice, conf, WithServiceRealm(kdc.Realm))),
		"name of the service": must(FromKeytab(keytab, alice, conf, WithServiceName("zookeeper"))),
	}
	for _, kind := range []string{"aes256-cts", "aes128-cts", "aes256-sha2", "aes128-sha2"} {
		k.Add(kind, "secret", "-e "+kind+":normal")
		mechanisms[kind+" password"] = must(FromPassword(kind, "secret", conf))
		mechanisms[kind+" keytab"] = must(FromKeytab(k.Keytab(kind), kind, conf))
		narrow := k.WriteConfig("default_tgs_enctypes = " + kind)
		mechanisms[kind+" session"] = must(FromPassword(alice, "secret", WithConfigFile(narrow), WithMutualAuthentication()))
	}
	for name, m := range mechanisms {
		t.Run(name, func(t *testing.T) {
			want := alice
			if m.state.principal != nil {
				want = m.state.principal.withRealm(kdc.Realm).String()
			}
			for range 2 { // the second with the ticket of the first
				who, err := login(testenv.Context(t), m, server.Addr())
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(who, "sasl") || !strings.Contains(who, want) {
					t.Errorf("the server has %q, want sasl and %s", who, want)
				}
			}
		})
	}
}
