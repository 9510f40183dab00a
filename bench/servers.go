package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/gocurator/curator/bench/nullserver"
	"github.com/gocurator/curator/curatortest"
)

// servers are the servers of a run, started when a row first needs them.
type servers struct {
	given  string // the address of a real server, if there is one already
	real   *curatortest.RealServer
	null   *nullserver.Process
	cutter *cutter
	away   *curatortest.Proxy
}

// connectString returns the connect string for the contenders of r.
func (s *servers) connectString(ctx context.Context, r row) (string, error) {
	addr, err := s.addr(ctx, r.server)
	if err != nil {
		return "", err
	}
	return addr + strings.Repeat(","+addr, max(r.servers, 1)-1), nil
}

func (s *servers) addr(ctx context.Context, which server) (addr string, err error) {
	switch which {
	case nullServer:
		if s.null == nil {
			s.null, err = startedOn(serverCores, func() (*nullserver.Process, error) { return startNullServer(ctx) })
		}
		if err != nil {
			return "", err
		}
		return s.null.Addr(), nil
	case cutServer:
		if s.cutter != nil {
			return s.cutter.addr(), nil
		}
		if addr, err = s.addr(ctx, realServer); err != nil {
			return "", err
		}
		if s.cutter, err = startCutter(addr); err != nil {
			return "", err
		}
		return s.cutter.addr(), nil
	case awayServer:
		if s.away != nil {
			return s.away.Addr(), nil
		}
		if addr, err = s.addr(ctx, realServer); err != nil {
			return "", err
		}
		if s.away, err = startAway(addr); err != nil {
			return "", err
		}
		return s.away.Addr(), nil
	}
	if s.given != "" {
		return s.given, nil
	}
	if s.real == nil {
		if s.real, err = startedOn(serverCores, startRealServer); err != nil {
			return "", err
		}
	}
	return s.real.Addr(), nil
}

func (s *servers) close() error {
	var errs []error
	if s.cutter != nil {
		errs = append(errs, s.cutter.close())
	}
	if s.away != nil {
		errs = append(errs, s.away.Close())
	}
	if s.null != nil {
		errs = append(errs, s.null.Close())
	}
	if s.real != nil {
		errs = append(errs, s.real.Close())
	}
	return errors.Join(errs...)
}

const startLimit = 10 * time.Second

// startNullServer starts this program as the null server.
func startNullServer(ctx context.Context) (*nullserver.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return nullserver.Spawn(ctx, exec.Command(self, asNullServer))
}

// javaOptions is the variable with flags of the virtual machine. They come before those of the command line.
const javaOptions = "_JAVA_OPTIONS"

// startRealServer starts ZooKeeper with the compiler and the memory of a production server: curatortest sets both for a
// quick start.
func startRealServer() (*curatortest.RealServer, error) {
	before, was := os.LookupEnv(javaOptions)
	if err := os.Setenv(javaOptions, before+" -XX:TieredStopAtLevel=4 -Xmx1g"); err != nil {
		return nil, err
	}
	srv, err := curatortest.NewRealServer(curatortest.WithTickTime(500 * time.Millisecond))
	if was {
		return srv, errors.Join(err, os.Setenv(javaOptions, before))
	}
	return srv, errors.Join(err, os.Unsetenv(javaOptions))
}
