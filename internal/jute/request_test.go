package jute_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/jute"
)

func TestRequestHasTheBytesOfItsRecord(t *testing.T) {
	for _, tt := range requests {
		t.Run(tt.name, func(t *testing.T) {
			got := jute.AppendRequest([]byte{}, "", &tt.req)
			if diff := cmp.Diff(unhex(tt.hex), got); diff != "" {
				t.Errorf("bytes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequestRoundTrips(t *testing.T) {
	for _, tt := range requests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := jute.DecodeRequest(tt.req.Op, unhex(tt.hex))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.req, got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequestIsAppendedToWhatIsThere(t *testing.T) {
	b := jute.AppendRequest([]byte("head"), "", &jute.Request{Op: jute.OpSync, Path: "/a"})
	if diff := cmp.Diff(append([]byte("head"), unhex("00000002 2f61")...), b); diff != "" {
		t.Errorf("bytes (-want +got):\n%s", diff)
	}
}

func TestRequestIgnoresWhatFollowsTheRecord(t *testing.T) {
	got, err := jute.DecodeRequest(jute.OpSync, unhex("00000002 2f61 ff"))
	if err != nil || got.Path != "/a" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestNilVectorIsSentEmpty(t *testing.T) {
	got := jute.AppendRequest(nil, "", &jute.Request{Op: jute.OpSetACL, Path: "/a"})
	if diff := cmp.Diff(unhex("00000002 2f61  00000000  00000000"), got); diff != "" {
		t.Errorf("bytes (-want +got):\n%s", diff)
	}
}

func TestNilReconfigChangesNothing(t *testing.T) {
	got := jute.AppendRequest(nil, "", &jute.Request{Op: jute.OpReconfig})
	if diff := cmp.Diff(unhex("ffffffff ffffffff ffffffff ffffffffffffffff"), got); diff != "" {
		t.Errorf("bytes (-want +got):\n%s", diff)
	}
}

func TestChrootPrefixesEveryPath(t *testing.T) {
	tests := []struct {
		name               string
		chroot, path, want string
	}{
		{name: "no chroot", path: "/a", want: "/a"},
		{name: "no chroot keeps the root", path: "/", want: "/"},
		{name: "node", chroot: "/app", path: "/a", want: "/app/a"},
		{name: "root becomes the chroot", chroot: "/app", path: "/", want: "/app"},
		{name: "deep", chroot: "/app/one", path: "/a/b", want: "/app/one/a/b"},
		{name: "config is no exception", chroot: "/app", path: "/zookeeper/config", want: "/app/zookeeper/config"},
		{name: "bytes beyond ASCII", chroot: "/ä", path: "/ö", want: "/ä/ö"},
		{name: "empty path", chroot: "/app", want: "/app"},
	}
	ops := []jute.Op{
		jute.OpCreate, jute.OpDelete, jute.OpExists, jute.OpGetData, jute.OpSetData, jute.OpGetACL,
		jute.OpSetACL, jute.OpGetChildren, jute.OpSync, jute.OpGetChildren2, jute.OpCheck, jute.OpCreate2,
		jute.OpCheckWatches, jute.OpRemoveWatches, jute.OpCreateContainer, jute.OpCreateTTL,
		jute.OpGetEphemerals, jute.OpGetAllChildrenNumber, jute.OpAddWatch,
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, op := range ops {
				body := jute.AppendRequest(nil, tt.chroot, &jute.Request{Op: op, Path: tt.path})
				got, err := jute.DecodeRequest(op, body)
				want := tt.want
				if op == jute.OpGetEphemerals && tt.path == "/" { // a prefix of paths, not a path
					want = tt.chroot + "/"
				}
				if err != nil || got.Path != want {
					t.Errorf("%s: got %q, %v, want %q", op, got.Path, err, want)
				}
			}
		})
	}
}

func TestChrootPrefixesThePathsOfAMulti(t *testing.T) {
	tests := []struct {
		kind jute.Op
		ops  []jute.Op
	}{
		{kind: jute.OpMulti, ops: []jute.Op{
			jute.OpCreate, jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL, jute.OpDelete,
			jute.OpSetData, jute.OpCheck,
		}},
		{kind: jute.OpMultiRead, ops: []jute.Op{jute.OpGetData, jute.OpGetChildren}},
	}
	for _, tt := range tests {
		t.Run(tt.kind.String(), func(t *testing.T) {
			req := jute.Request{Op: tt.kind}
			for _, op := range tt.ops {
				req.Ops = append(req.Ops, jute.Request{Op: op, Path: "/a"}, jute.Request{Op: op, Path: "/"})
			}
			got, err := jute.DecodeRequest(tt.kind, jute.AppendRequest(nil, "/app", &req))
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range got.Ops {
				if want := []string{"/app/a", "/app"}[i%2]; r.Path != want {
					t.Errorf("%s: got %q, want %q", r.Op, r.Path, want)
				}
			}
			if len(got.Ops) != len(req.Ops) {
				t.Errorf("got %d operations, want %d", len(got.Ops), len(req.Ops))
			}
		})
	}
}

func TestMultiRefusesOperationsItCannotHold(t *testing.T) {
	tests := []struct {
		name string
		kind jute.Op
		op   jute.Op
	}{
		{name: "multi in multi", kind: jute.OpMulti, op: jute.OpMulti},
		{name: "multiRead in multi", kind: jute.OpMulti, op: jute.OpMultiRead},
		{name: "read in multi", kind: jute.OpMulti, op: jute.OpGetData},
		{name: "write in multiRead", kind: jute.OpMultiRead, op: jute.OpDelete},
		{name: "error in multi", kind: jute.OpMulti, op: jute.OpError},
		{name: "unknown in multi", kind: jute.OpMulti, op: 55},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := jute.AppendInt32(nil, int32(tt.op))
			body = append(body, unhex("00 ffffffff  00000002 2f61 00000000", hexEnd)...)
			if _, err := jute.DecodeRequest(tt.kind, body); !errors.Is(err, jute.ErrMarshalling) {
				t.Errorf("got %v, want ErrMarshalling", err)
			}
		})
	}
}

func TestRequestOfAnotherRecordIsUnimplemented(t *testing.T) {
	ops := []jute.Op{0, 10, 20, 55, jute.OpError, jute.OpAuth, jute.OpSetWatches, jute.OpSetWatches2}
	for _, op := range ops {
		if _, err := jute.DecodeRequest(op, nil); !errors.Is(err, jute.ErrUnimplemented) {
			t.Errorf("%s: got %v, want ErrUnimplemented", op, err)
		}
		if b := jute.AppendRequest(nil, "", &jute.Request{Op: op, Path: "/a"}); b != nil {
			t.Errorf("%s: appended %x", op, b)
		}
	}
}

func TestAppendRequestDoesNotAllocateInABufferWithRoom(t *testing.T) {
	buf := make([]byte, 0, 4096)
	for _, tt := range requests {
		allocs := testing.AllocsPerRun(100, func() {
			b := jute.AppendRequestHeader(buf[:0], jute.RequestHeader{Xid: 1, Op: tt.req.Op})
			jute.AppendRequest(b, "/chroot", &tt.req)
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", tt.name, allocs)
		}
	}
}
