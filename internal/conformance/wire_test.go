package conformance_test

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

var wireStories = []story{
	{name: "answers byte by byte", play: answersInBytes},
	{name: "handshakes byte by byte", play: handshakesInBytes},
	{name: "a frame may have as many bytes as the limit and no more", play: longestFrame},
}

// Parts of answers, in hex; zxids and times are whatever they are.
const (
	anyLong   = "[0-9a-f]{16}"
	okHeader  = anyLong + "00000000"
	worldAll  = "00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65"
	pathN     = "00000002 2f6e"
	endOfList = "ffffffff 01 ffffffff"
)

// statOf is a stat: zxid and time of creation and last change, versions, no owner, lengths, zxid of the children.
func statOf(version, cversion, aversion, length, children int32) string {
	return anyLong + anyLong + anyLong + anyLong +
		fmt.Sprintf("%08x %08x %08x 0000000000000000 %08x %08x", version, cversion, aversion, length, children) + anyLong
}

func answersInBytes(t stage) {
	c := connect(t, t.addr, sessionTimeout)
	create := pathN + "ffffffff" + worldAll
	zxid := anyLong // of a notification
	if t.release == release38 {
		zxid = "ffffffffffffffff"
	}
	tests := []struct {
		name string
		op   jute.Op
		body string
		want []string // frames; XID is that of the request
	}{
		{"ping", 11, "", []string{"fffffffe" + okHeader}},
		{"exists of nothing", 3, pathN + "01", []string{"XID" + anyLong + "ffffff9b"}},
		{"create, and its event", 1, create + "00000000", []string{
			"ffffffff" + zxid + "00000000 00000001 00000003" + pathN,
			"XID" + okHeader + pathN,
		}},
		{"create again", 1, create + "00000000", []string{"XID" + anyLong + "ffffff92"}},
		{"exists", 3, pathN + "00", []string{"XID" + okHeader + statOf(0, 0, 0, 0, 0)}},
		{"getData of null", 4, pathN + "00", []string{"XID" + okHeader + "ffffffff" + statOf(0, 0, 0, 0, 0)}},
		{"setData to nothing", 5, pathN + "00000000 ffffffff", []string{"XID" + okHeader + statOf(1, 0, 0, 0, 0)}},
		{"getData of nothing", 4, pathN + "00", []string{"XID" + okHeader + "00000000" + statOf(1, 0, 0, 0, 0)}},
		{"setData", 5, pathN + "00000001 78 00000001", []string{"XID" + okHeader + statOf(2, 0, 0, 1, 0)}},
		{"getData", 4, pathN + "00", []string{"XID" + okHeader + "00000001 78" + statOf(2, 0, 0, 1, 0)}},
		{"setData with a bad version", 5, pathN + "ffffffff 00000007", []string{"XID" + anyLong + "ffffff99"}},
		{"no children", 8, pathN + "00", []string{"XID" + okHeader + "00000000"}},
		{"no children, with stat", 12, pathN + "00", []string{"XID" + okHeader + "00000000" + statOf(2, 0, 0, 1, 0)}},
		{
			"create2", 15, "00000004 2f6e2f6d ffffffff" + worldAll + "00000000",
			[]string{"XID" + okHeader + "00000004 2f6e2f6d" + statOf(0, 0, 0, 0, 0)},
		},
		{"children", 8, pathN + "00", []string{"XID" + okHeader + "00000001 00000001 6d"}},
		{
			"children, with stat", 12, pathN + "00",
			[]string{"XID" + okHeader + "00000001 00000001 6d" + statOf(2, 1, 0, 1, 1)},
		},
		{"number of all children", 104, pathN, []string{"XID" + okHeader + "00000001"}},
		{"delete with children", 2, pathN + "ffffffff", []string{"XID" + anyLong + "ffffff91"}},
		{"delete", 2, "00000004 2f6e2f6d ffffffff", []string{"XID" + okHeader}},
		{"getACL", 6, pathN, []string{"XID" + okHeader + worldAll + statOf(2, 2, 0, 1, 0)}},
		{"setACL", 7, pathN + worldAll + "ffffffff", []string{"XID" + okHeader + statOf(2, 2, 1, 1, 0)}},
		{"sync", 9, pathN, []string{"XID" + okHeader + pathN}},
		{"ephemeral nodes", 103, "00000001 2f", []string{"XID" + okHeader + "00000000"}},
		{"who one is", 107, "", []string{"XID" + okHeader + "00000001 00000002 6970 00000009 3132372e302e302e31"}},
		{"addWatch", 106, pathN + "00000000", []string{"XID" + okHeader + "00000000"}},
		{"checkWatches", 17, pathN + "00000003", []string{"XID" + okHeader}},
		{"removeWatches", 18, pathN + "00000003", []string{"XID" + okHeader}},
		{"no watch to remove", 18, pathN + "00000003", []string{"XID" + anyLong + "ffffff87"}},
		{"auth", 100, "00000000 00000006 646967657374 00000003 613a62", []string{"fffffffc 0000000000000000 00000000"}},
		{
			"setWatches, and an event", 101, "7fffffffffffffff 00000001 00000002 2f78 00000000 00000000",
			[]string{"ffffffff ffffffffffffffff 00000000 00000002 00000003 00000002 2f78", "fffffff8" + okHeader},
		},
		{
			"setWatches2", 105, "7fffffffffffffff 00000000 00000000 00000000 00000000 00000000",
			[]string{"fffffff8" + okHeader},
		},
		{"sasl", 102, "00000001 00", []string{"XID 0000000000000000 00000000 ffffffff"}},
		{"reconfig", 16, "ffffffff ffffffff ffffffff ffffffffffffffff", []string{"XID" + anyLong + "ffffff85"}},
		{"empty multi", 14, endOfList, []string{"XID" + okHeader + endOfList}},
		{
			"multi", 14,
			"0000000d 00 ffffffff" + pathN + "00000002" + "00000005 00 ffffffff" + pathN + "ffffffff ffffffff" +
				"00000002 00 ffffffff" + pathN + "00000003" + "00000001 00 ffffffff" + create + "00000000" + endOfList,
			[]string{
				"XID" + okHeader + "0000000d 00 00000000" + "00000005 00 00000000" + statOf(3, 2, 1, 0, 0) +
					"00000002 00 00000000" + "00000001 00 00000000" + pathN + endOfList,
			},
		},
		{
			"failed multi", 14,
			"0000000d 00 ffffffff" + pathN + "00000000" + "00000001 00 ffffffff" + create + "00000000" +
				"0000000d 00 ffffffff" + pathN + "00000000" + endOfList,
			[]string{
				"XID" + okHeader + "ffffffff 00 00000000 00000000" + "ffffffff 00 ffffff92 ffffff92" +
					"ffffffff 00 fffffffe fffffffe" + endOfList,
			},
		},
		{
			"multiRead", 22,
			"00000004 00 ffffffff" + pathN + "00" + "00000008 00 ffffffff" + pathN + "00" +
				"00000008 00 ffffffff 00000002 2f78 00" + endOfList,
			[]string{
				"XID" + okHeader + "00000004 00 00000000 ffffffff" + statOf(0, 0, 0, 0, 0) + "00000008 00 00000000 00000000" +
					"ffffffff 00 ffffff9b ffffff9b" + endOfList,
			},
		},
		{"closeSession", -11, "", []string{"XID" + okHeader}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body, err := hex.DecodeString(strings.ReplaceAll(tt.body, " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			b, xid := c.encode(tt.op, body)
			if _, err := c.Write(b); err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				c.wantFrame(t, strings.Replace(want, "XID", fmt.Sprintf("%08x", uint32(xid)), 1))
			}
		})
	}
}

// wantFrame reads a frame and compares its hex text.
func (c *conn) wantFrame(tb testing.TB, want string) {
	tb.Helper()
	got, err := c.readFrame()
	if err != nil {
		tb.Fatal(err)
	}
	want = strings.ReplaceAll(want, " ", "")
	if !regexp.MustCompile("^" + want + "$").MatchString(hex.EncodeToString(got)) {
		tb.Errorf("got  %x\nwant %s", got, want)
	}
}

func handshakesInBytes(t stage) {
	addr := t.addr
	const (
		password = "00000010 00000000000000000000000000000000"
		granted  = "00000000 0000ea60 01[0-9a-f]{14} 00000010 [0-9a-f]{32}"
		refused  = "00000000 00000000 0000000000000000" + password
	)
	tests := []struct{ name, frame, want string }{
		{"a new session", "00000000 0000000000000000 0000ea60 0000000000000000" + password + "00", granted + "00"},
		{"without the last byte", "00000000 0000000000000000 0000ea60 0000000000000000" + password, granted},
		{"content with reading", "00000000 0000000000000000 0000ea60 0000000000000000" + password + "01", granted + "00"},
		{"another protocol version", "00000007 0000000000000000 0000ea60 0000000000000000" + password + "00", granted + "00"},
		{"a negative zxid", "00000000 ffffffffffffffff 0000ea60 0000000000000000" + password + "00", granted + "00"},
		{"a password of null", "00000000 0000000000000000 0000ea60 0000000000000000 ffffffff 00", granted + "00"},
		{"a short password", "00000000 0000000000000000 0000ea60 0000000000000000 00000001 00 00", granted + "00"},
		{"more bytes", "00000000 0000000000000000 0000ea60 0000000000000000" + password + "00 000000", granted + "00"},
		{"no such session", "00000000 0000000000000000 0000ea60 0000000000000007" + password + "00", refused + "00"},
		{"no such session, without the last byte", "00000000 0000000000000000 0000ea60 0000000000000007" + password, refused},
		{"no such session, with null", "00000000 0000000000000000 0000ea60 0000000000000007 ffffffff 00", refused + "00"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := dial(addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close() //nolint:errcheck // the server may have ended it
			body, err := hex.DecodeString(strings.ReplaceAll(tt.frame, " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.writeFrame(body); err != nil {
				t.Fatal(err)
			}
			c.wantFrame(t, tt.want)
			if strings.HasPrefix(tt.want, refused) {
				c.awaitEnd(t)
			} else {
				c.ping(t)
			}
		})
	}
}

func longestFrame(t stage) {
	const limit = 0xfffff
	c := connect(t, t.addr, sessionTimeout)
	r := jute.Request{Op: jute.OpCreate, Path: "/longest", ACL: zk.WorldACL(zk.PermAll)}
	const header = 8
	r.Data = make([]byte, limit-header-len(jute.AppendRequest(nil, "", &r)))
	c.must(t, r)
	if got := c.must(t, jute.Request{Op: jute.OpGetData, Path: r.Path}).Data; len(got) != len(r.Data) {
		t.Errorf("%d of %d bytes", len(got), len(r.Data))
	}
	r.Data = append(r.Data, 0)
	b, _ := c.encode(r.Op, jute.AppendRequest(nil, "", &r))
	c.Write(b) //nolint:errcheck // the server may end the connection meanwhile
	c.awaitEnd(t)
}
