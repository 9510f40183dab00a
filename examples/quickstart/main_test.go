package main

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestQuickstartWritesBelowItsLock(t *testing.T) {
	chroot := testenv.Chroot(t)
	for range 2 { // the node exists the second time
		if err := run(testenv.Context(t), testenv.Addr(t)+chroot); err != nil {
			t.Fatal(err)
		}
	}
	if data, _, err := testenv.Raw(t).Get(chroot + "/app/last"); err != nil || string(data) != "me" {
		t.Errorf("got %q, %v", data, err)
	}
}

func TestQuickstartWithoutServerNamesTheReason(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil { // the port now refuses
		t.Fatal(err)
	}
	servers := listener.Addr().String()
	err = run(testenv.Context(t), servers)
	if !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), "no ZooKeeper at "+servers) {
		t.Errorf("got %v", err)
	}
}
