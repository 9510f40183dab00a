package conformance_test

import (
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/jute"
)

var update = flag.Bool("update", false, "write into testdata what Apache ZooKeeper answers")

// TestGolden plays the scripts in testdata, which hold the answers of Apache ZooKeeper.
func TestGolden(t *testing.T) {
	for _, r := range releases {
		t.Run("in process "+r.name, func(t *testing.T) { playScripts(t, startOurs(t, r), r.scripts(t), false) })
	}
	t.Run("real", func(t *testing.T) {
		addr, r := startReal(t)
		scripts := r.scripts(t)
		playScripts(t, addr, scripts, *update)
		if *update {
			if err := r.write(scripts); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestQuotas plays the scripts in testdata/quota. All releases answer the same. The quotas of "enforced" hold, those of
// the other script are counted.
func TestQuotas(t *testing.T) {
	scripts, err := readScripts("testdata/quota")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scripts {
		t.Run(s.name(), func(t *testing.T) {
			var ours []curatortest.ServerOption
			var theirs []curatortest.RealOption
			if s.name() == "enforced" {
				ours, theirs = append(ours, curatortest.WithEnforcedQuotas()), append(theirs, curatortest.WithEnforcedQuotas())
			}
			for _, r := range releases {
				t.Run("in process "+r.name, func(t *testing.T) {
					playScripts(t, startOurs(t, r, ours...), []script{s}, false)
				})
			}
			t.Run("real", func(t *testing.T) {
				addr, _ := startReal(t, theirs...)
				playScripts(t, addr, []script{s}, *update)
				if *update {
					if err := s.write(); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

func playScripts(t *testing.T, addr string, scripts []script, update bool) {
	t.Helper()
	n := 0
	for _, s := range scripts {
		for i := range s.cases {
			c := &s.cases[i]
			n++
			root := fmt.Sprintf("/golden%d", n)
			t.Run(s.name()+"/"+c.name, func(t *testing.T) {
				received := playCase(t, addr, root, c)
				for i, l := range c.lines {
					if update {
						c.lines[i].received = received[i]
					} else if diff := cmp.Diff(l.received, received[i]); diff != "" {
						t.Errorf("%s (-want +got)\n%s", l.command, diff)
					}
				}
			})
		}
	}
}

func playCase(t *testing.T, addr, root string, c *scriptCase) (received [][]string) {
	t.Helper()
	admin, err := open(addr, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = admin.ask(jute.OpAuth, jute.AppendAuth(nil, &jute.Auth{Scheme: schemeDigest, Auth: []byte(superUser)}))
	if err != nil {
		t.Fatal(err)
	}
	made, err := admin.request(&jute.Request{Op: jute.OpCreate, Path: root, ACL: zk.WorldACL(zk.PermAll)})
	if err != nil || made.Code != jute.CodeOK {
		t.Fatal(err, made.Code)
	}
	a := &actor{
		narrator: narrator{root: root, base: made.Zxid, sessions: map[int64]int{}},
		addr:     addr,
		conns:    map[string]*conn{},
		first:    map[string]*conn{},
	}
	defer func() {
		for _, c := range a.conns {
			c.end()
		}
		for _, path := range []string{quotaRoot + root, root} {
			if err := remove(admin, path); err != nil {
				t.Error(err)
			}
		}
		admin.end()
	}()
	for _, l := range c.lines {
		received = append(received, a.run(l.command))
	}
	return received
}

// end ends the session, if the connection still has it, and the connection.
func (c *conn) end() {
	if b, _ := c.encode(jute.OpCloseSession, nil); c.session != 0 {
		c.Write(b) //nolint:errcheck // the server may have ended the connection
		for err := error(nil); err == nil; {
			_, err = c.readFrame() // until the server ends it
		}
	}
	c.Close() //nolint:errcheck // the script may have closed it
}

// word asks a four letter word. What is received is what the answer is made of: numbers, addresses and versions are a
// server's own.
func (a *actor) word(word string) ([]string, error) {
	c, err := dial(a.addr)
	if err != nil {
		return nil, err
	}
	defer c.Close() //nolint:errcheck // it has been read to its end
	if _, err := c.Write([]byte(word)); err != nil {
		return nil, err
	}
	if err := c.SetReadDeadline(time.Now().Add(answerLimit)); err != nil {
		return nil, err
	}
	text, err := readText(c)
	if err != nil {
		return nil, err
	}
	var received []string
	for line := range strings.Lines(text) {
		line = key.FindString(strings.TrimRight(line, "\n"))
		if line != "" && !slices.Contains(received, line) {
			received = append(received, line)
		}
	}
	return received, nil
}

// key is the start of a line of an answer.
var key = regexp.MustCompile(`^\s*[A-Za-z_ /]+[A-Za-z_]`)
