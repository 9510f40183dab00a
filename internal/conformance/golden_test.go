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

// testdata is the directory of the scripts for servers as they are.
const testdata = "testdata"

// TestGolden plays the scripts in testdata, which hold the answers of Apache ZooKeeper.
func TestGolden(t *testing.T) {
	for _, r := range releases {
		t.Run("in process "+r.name, func(t *testing.T) { playScripts(t, startOurs(t, r), r.scripts(t, testdata), false) })
	}
	t.Run("real", func(t *testing.T) {
		addr, r := startReal(t)
		scripts := r.scripts(t, testdata)
		playScripts(t, addr, scripts, *update)
		if *update {
			if err := r.write(scripts, testdata); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestQuotas plays scripts with quotas that are counted, and that hold.
func TestQuotas(t *testing.T) {
	playWith(t, "testdata/counted")
	playWith(t, "testdata/enforced", curatortest.WithEnforcedQuotas())
}

// TestWithoutACLs plays scripts on servers that permit everything.
func TestWithoutACLs(t *testing.T) { playWith(t, "testdata/unguarded", curatortest.WithoutACLs()) }

// playWith plays the scripts in a directory on servers with options.
func playWith(t *testing.T, dir string, opts ...curatortest.Option) {
	t.Helper()
	var ours []curatortest.ServerOption
	var theirs []curatortest.RealOption
	for _, o := range opts {
		ours, theirs = append(ours, o), append(theirs, o)
	}
	for _, r := range releases {
		t.Run("in process "+r.name, func(t *testing.T) { playScripts(t, startOurs(t, r, ours...), r.scripts(t, dir), false) })
	}
	t.Run("real", func(t *testing.T) {
		addr, r := startReal(t, theirs...)
		scripts := r.scripts(t, dir)
		playScripts(t, addr, scripts, *update)
		if *update {
			if err := r.write(scripts, dir); err != nil {
				t.Error(err)
			}
		}
	})
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
