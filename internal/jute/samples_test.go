package jute_test

import (
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// The samples hold every record once, with its bytes worked out by hand. The golden tests, the round trips,
// the truncation test and the fuzz targets all draw on them.

const (
	hexWorldACL = "00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65"
	hexStat     = "0000000000000001 0000000000000002 0000000000000003 0000000000000004" + // zxids and times
		"00000005 00000006 00000007 0000000000000008 00000009 0000000a 000000000000000b"
	hexEnd = "ffffffff 01 ffffffff" // what closes a multi
)

var (
	worldACL = []zk.ACL{{Perms: zk.PermAll, Scheme: "world", ID: "anyone"}}
	stat     = zk.Stat{
		Czxid: 1, Mzxid: 2, Ctime: 3, Mtime: 4, Version: 5, Cversion: 6, Aversion: 7,
		EphemeralOwner: 8, DataLength: 9, NumChildren: 10, Pzxid: 11,
	}
)

var requests = []struct {
	name string
	req  jute.Request
	hex  string
}{
	{
		name: "create",
		req:  jute.Request{Op: jute.OpCreate, Path: "/a", Data: []byte("x"), ACL: worldACL, Flags: 1},
		hex:  "00000002 2f61  00000001 78 " + hexWorldACL + "00000001",
	},
	{
		name: "create without data sends null",
		req:  jute.Request{Op: jute.OpCreate, Path: "/a", ACL: worldACL},
		hex:  "00000002 2f61  ffffffff " + hexWorldACL + "00000000",
	},
	{
		name: "create with no bytes is not null",
		req:  jute.Request{Op: jute.OpCreate, Path: "/a", Data: []byte{}, ACL: []zk.ACL{}},
		hex:  "00000002 2f61  00000000  00000000 00000000",
	},
	{
		name: "create2",
		req:  jute.Request{Op: jute.OpCreate2, Path: "/a", Data: []byte("x"), ACL: worldACL, Flags: 2},
		hex:  "00000002 2f61  00000001 78 " + hexWorldACL + "00000002",
	},
	{
		name: "createContainer",
		req:  jute.Request{Op: jute.OpCreateContainer, Path: "/a", ACL: worldACL, Flags: 4},
		hex:  "00000002 2f61  ffffffff " + hexWorldACL + "00000004",
	},
	{
		name: "createTTL",
		req:  jute.Request{Op: jute.OpCreateTTL, Path: "/a", ACL: worldACL, Flags: 5, TTL: 1000},
		hex:  "00000002 2f61  ffffffff " + hexWorldACL + "00000005  00000000000003e8",
	},
	{
		name: "delete",
		req:  jute.Request{Op: jute.OpDelete, Path: "/a", Version: -1},
		hex:  "00000002 2f61  ffffffff",
	},
	{
		name: "exists",
		req:  jute.Request{Op: jute.OpExists, Path: "/a", Watch: true},
		hex:  "00000002 2f61  01",
	},
	{
		name: "getData",
		req:  jute.Request{Op: jute.OpGetData, Path: "/a"},
		hex:  "00000002 2f61  00",
	},
	{
		name: "setData",
		req:  jute.Request{Op: jute.OpSetData, Path: "/a", Data: []byte("xy"), Version: 3},
		hex:  "00000002 2f61  00000002 7879  00000003",
	},
	{
		name: "getACL",
		req:  jute.Request{Op: jute.OpGetACL, Path: "/a"},
		hex:  "00000002 2f61",
	},
	{
		name: "setACL",
		req:  jute.Request{Op: jute.OpSetACL, Path: "/a", ACL: worldACL, Version: 2},
		hex:  "00000002 2f61 " + hexWorldACL + "00000002",
	},
	{
		name: "getChildren",
		req:  jute.Request{Op: jute.OpGetChildren, Path: "/", Watch: true},
		hex:  "00000001 2f  01",
	},
	{
		name: "sync",
		req:  jute.Request{Op: jute.OpSync, Path: "/a"},
		hex:  "00000002 2f61",
	},
	{name: "ping", req: jute.Request{Op: jute.OpPing}},
	{
		name: "getChildren2",
		req:  jute.Request{Op: jute.OpGetChildren2, Path: "/a"},
		hex:  "00000002 2f61  00",
	},
	{
		name: "check",
		req:  jute.Request{Op: jute.OpCheck, Path: "/a", Version: 7},
		hex:  "00000002 2f61  00000007",
	},
	{
		name: "multi",
		req: jute.Request{Op: jute.OpMulti, Ops: []jute.Request{
			{Op: jute.OpCheck, Path: "/a", Version: 7},
			{Op: jute.OpCreate, Path: "/a/b", Data: []byte("x"), ACL: worldACL},
			{Op: jute.OpCreate2, Path: "/a/c", ACL: worldACL, Flags: 2},
			{Op: jute.OpCreateContainer, Path: "/a/d", ACL: worldACL, Flags: 4},
			{Op: jute.OpCreateTTL, Path: "/a/e", ACL: worldACL, Flags: 5, TTL: 1000},
			{Op: jute.OpSetData, Path: "/a", Data: []byte("y"), Version: 8},
			{Op: jute.OpDelete, Path: "/z", Version: -1},
		}},
		hex: "0000000d 00 ffffffff  00000002 2f61  00000007" +
			"00000001 00 ffffffff  00000004 2f612f62  00000001 78" + hexWorldACL + "00000000" +
			"0000000f 00 ffffffff  00000004 2f612f63  ffffffff" + hexWorldACL + "00000002" +
			"00000013 00 ffffffff  00000004 2f612f64  ffffffff" + hexWorldACL + "00000004" +
			"00000015 00 ffffffff  00000004 2f612f65  ffffffff" + hexWorldACL + "00000005 00000000000003e8" +
			"00000005 00 ffffffff  00000002 2f61  00000001 79  00000008" +
			"00000002 00 ffffffff  00000002 2f7a  ffffffff" + hexEnd,
	},
	{name: "empty multi", req: jute.Request{Op: jute.OpMulti}, hex: hexEnd},
	{
		name: "reconfig",
		req: jute.Request{Op: jute.OpReconfig, Reconfig: &jute.Reconfig{
			Joining: "server.1=h", Leaving: "2,3", ConfigID: -1,
		}},
		hex: "0000000a 7365727665722e313d68  00000003 322c33  ffffffff  ffffffffffffffff",
	},
	{
		name: "checkWatches",
		req:  jute.Request{Op: jute.OpCheckWatches, Path: "/a", Flags: 1},
		hex:  "00000002 2f61  00000001",
	},
	{
		name: "removeWatches",
		req:  jute.Request{Op: jute.OpRemoveWatches, Path: "/a", Flags: 3},
		hex:  "00000002 2f61  00000003",
	},
	{
		name: "multiRead",
		req: jute.Request{Op: jute.OpMultiRead, Ops: []jute.Request{
			{Op: jute.OpGetData, Path: "/a"},
			{Op: jute.OpGetChildren, Path: "/b"},
		}},
		hex: "00000004 00 ffffffff  00000002 2f61  00" +
			"00000008 00 ffffffff  00000002 2f62  00" + hexEnd,
	},
	{
		name: "sasl",
		req:  jute.Request{Op: jute.OpSASL, Data: []byte("t")},
		hex:  "00000001 74",
	},
	{
		name: "getEphemerals",
		req:  jute.Request{Op: jute.OpGetEphemerals, Path: "/a"},
		hex:  "00000002 2f61",
	},
	{
		name: "getAllChildrenNumber",
		req:  jute.Request{Op: jute.OpGetAllChildrenNumber, Path: "/a"},
		hex:  "00000002 2f61",
	},
	{
		name: "addWatch",
		req:  jute.Request{Op: jute.OpAddWatch, Path: "/a", Flags: 1},
		hex:  "00000002 2f61  00000001",
	},
	{name: "whoAmI", req: jute.Request{Op: jute.OpWhoAmI}},
	{name: "closeSession", req: jute.Request{Op: jute.OpCloseSession}},
}

var replies = []struct {
	name  string
	op    jute.Op
	reply jute.Reply
	hex   string
}{
	{name: "create", op: jute.OpCreate, reply: jute.Reply{Path: "/a"}, hex: "00000002 2f61"},
	{
		name: "create2", op: jute.OpCreate2,
		reply: jute.Reply{Path: "/a", Stat: stat}, hex: "00000002 2f61" + hexStat,
	},
	{
		name: "createContainer", op: jute.OpCreateContainer,
		reply: jute.Reply{Path: "/a", Stat: stat}, hex: "00000002 2f61" + hexStat,
	},
	{
		name: "createTTL", op: jute.OpCreateTTL,
		reply: jute.Reply{Path: "/a", Stat: stat}, hex: "00000002 2f61" + hexStat,
	},
	{name: "delete", op: jute.OpDelete},
	{name: "exists", op: jute.OpExists, reply: jute.Reply{Stat: stat}, hex: hexStat},
	{
		name: "getData", op: jute.OpGetData,
		reply: jute.Reply{Data: []byte("xy"), Stat: stat}, hex: "00000002 7879" + hexStat,
	},
	{
		name: "getData of a node without data", op: jute.OpGetData,
		reply: jute.Reply{Stat: stat}, hex: "ffffffff" + hexStat,
	},
	{
		name: "getData of a node with no bytes", op: jute.OpGetData,
		reply: jute.Reply{Data: []byte{}, Stat: stat}, hex: "00000000" + hexStat,
	},
	{name: "setData", op: jute.OpSetData, reply: jute.Reply{Stat: stat}, hex: hexStat},
	{
		name: "getACL", op: jute.OpGetACL,
		reply: jute.Reply{ACL: worldACL, Stat: stat}, hex: hexWorldACL + hexStat,
	},
	{name: "setACL", op: jute.OpSetACL, reply: jute.Reply{Stat: stat}, hex: hexStat},
	{
		name: "getChildren", op: jute.OpGetChildren,
		reply: jute.Reply{Children: []string{"b", "cd"}}, hex: "00000002  00000001 62  00000002 6364",
	},
	{
		name: "getChildren of a leaf", op: jute.OpGetChildren,
		reply: jute.Reply{Children: []string{}}, hex: "00000000",
	},
	{name: "sync", op: jute.OpSync, reply: jute.Reply{Path: "/a"}, hex: "00000002 2f61"},
	{name: "ping", op: jute.OpPing},
	{
		name: "getChildren2", op: jute.OpGetChildren2,
		reply: jute.Reply{Children: []string{"b"}, Stat: stat}, hex: "00000001  00000001 62" + hexStat,
	},
	{name: "check", op: jute.OpCheck},
	{
		name: "multi", op: jute.OpMulti,
		reply: jute.Reply{Results: []jute.Result{
			{Op: jute.OpCreate, Path: "/a"},
			{Op: jute.OpCreate2, Path: "/b", Stat: stat},
			{Op: jute.OpCreateContainer, Path: "/c", Stat: stat},
			{Op: jute.OpCreateTTL, Path: "/d", Stat: stat},
			{Op: jute.OpSetData, Stat: stat},
			{Op: jute.OpDelete},
			{Op: jute.OpCheck},
		}},
		hex: "00000001 00 00000000  00000002 2f61" +
			"0000000f 00 00000000  00000002 2f62" + hexStat +
			"00000013 00 00000000  00000002 2f63" + hexStat +
			"00000015 00 00000000  00000002 2f64" + hexStat +
			"00000005 00 00000000" + hexStat +
			"00000002 00 00000000" +
			"0000000d 00 00000000" + hexEnd,
	},
	{
		name: "failed multi", op: jute.OpMulti,
		reply: jute.Reply{Results: []jute.Result{
			{Op: jute.OpError, Code: jute.CodeOK},
			{Op: jute.OpError, Code: jute.CodeNoNode},
			{Op: jute.OpError, Code: jute.CodeRuntimeInconsistency},
		}},
		hex: "ffffffff 00 00000000 00000000" +
			"ffffffff 00 ffffff9b ffffff9b" +
			"ffffffff 00 fffffffe fffffffe" + hexEnd,
	},
	{name: "empty multi", op: jute.OpMulti, hex: hexEnd},
	{
		name: "reconfig", op: jute.OpReconfig,
		reply: jute.Reply{Data: []byte("v"), Stat: stat}, hex: "00000001 76" + hexStat,
	},
	{name: "checkWatches", op: jute.OpCheckWatches},
	{name: "removeWatches", op: jute.OpRemoveWatches},
	{
		name: "multiRead", op: jute.OpMultiRead,
		reply: jute.Reply{Results: []jute.Result{
			{Op: jute.OpGetData, Data: []byte("x"), Stat: stat},
			{Op: jute.OpGetChildren, Children: []string{"b"}},
			{Op: jute.OpError, Code: jute.CodeNoNode},
		}},
		hex: "00000004 00 00000000  00000001 78" + hexStat +
			"00000008 00 00000000  00000001  00000001 62" +
			"ffffffff 00 ffffff9b ffffff9b" + hexEnd,
	},
	{name: "auth", op: jute.OpAuth},
	{name: "setWatches", op: jute.OpSetWatches},
	{name: "sasl", op: jute.OpSASL, reply: jute.Reply{Data: []byte("t")}, hex: "00000001 74"},
	{
		name: "getEphemerals", op: jute.OpGetEphemerals,
		reply: jute.Reply{Children: []string{"/a"}}, hex: "00000001  00000002 2f61",
	},
	{
		name: "getAllChildrenNumber", op: jute.OpGetAllChildrenNumber,
		reply: jute.Reply{Count: 7}, hex: "00000007",
	},
	{name: "setWatches2", op: jute.OpSetWatches2},
	{name: "addWatch", op: jute.OpAddWatch, hex: "00000000"},
	{
		name: "whoAmI", op: jute.OpWhoAmI,
		reply: jute.Reply{ACL: []zk.ACL{{Scheme: "ip", ID: "::1"}}},
		hex:   "00000001  00000002 6970  00000003 3a3a31",
	},
	{name: "closeSession", op: jute.OpCloseSession},
}
