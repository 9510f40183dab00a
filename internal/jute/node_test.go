package jute

import (
	"bytes"
	"testing"

	"github.com/go-zookeeper/zk"
)

func TestCopyBesideIsACopyWithItsOwnStat(t *testing.T) {
	if data, stat := CopyBeside(nil); data != nil || stat == nil {
		t.Errorf("of nil: %v, %v", data, stat)
	}
	for n := range 600 {
		given := bytes.Repeat([]byte{7}, n)
		data, stat := CopyBeside(given)
		if data == nil || !bytes.Equal(data, given) || cap(data) != n {
			t.Fatalf("%d bytes: %v, capacity %d", n, data, cap(data))
		}
		*stat = zk.Stat{Czxid: -1, Pzxid: -1}
		clear(given)
		if !bytes.Equal(data, bytes.Repeat([]byte{7}, n)) {
			t.Fatalf("%d bytes: the copy has changed", n)
		}
		if got := testing.AllocsPerRun(10, func() { _, _ = CopyBeside(given) }); got != 1 {
			t.Fatalf("%d bytes: %v objects, want 1", n, got)
		}
	}
}
