package curatortest_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/jute"
)

func TestMajorityIsThatOfTheConfiguration(t *testing.T) {
	cluster := curatortest.NewClusterT(t, 3, curatortest.WithReconfig(), curatortest.WithoutACLs())
	leader, others := followers(t, cluster)
	client := newSession(t, leader.Addr())
	// No other member is needed after both have left, and a partition does not end the majority of one.
	ids := []string{strconv.Itoa(others[0].ID()), strconv.Itoa(others[1].ID())}
	_, err := client.IncrementalReconfig(nil, ids, -1)
	must(t, err)
	heal := cluster.Partition()
	client.create(t, "/alone", "", 0)
	if now, err := cluster.Leader(); now != leader || err != nil {
		t.Errorf("leader %v, error %v", now, err)
	}
	_, err = client.IncrementalReconfig([]string{others[0].Spec()}, nil, -1)
	if !errors.Is(err, jute.CodeNewConfigNoQuorum.Err()) && !strings.Contains(err.Error(), "-13") {
		t.Errorf("error %v", err)
	}
	heal()
	_, err = client.IncrementalReconfig([]string{others[0].Spec(), others[1].Spec()}, nil, -1)
	must(t, err)
	newSession(t, others[0].Addr()).wantExists(t, "/alone", true)
	// Then the two others are a majority without the first one.
	must(t, cluster.KillServer(leader))
	if now, err := cluster.Leader(); now == leader || err != nil {
		t.Errorf("leader %v, error %v", now, err)
	}
}

func TestOneWithoutAVoteDoesNotLead(t *testing.T) {
	cluster := curatortest.NewClusterT(t, 3, curatortest.WithReconfig(), curatortest.WithoutACLs())
	leader, others := followers(t, cluster)
	client := newSession(t, leader.Addr())
	_, err := client.IncrementalReconfig(nil, []string{strconv.Itoa(others[0].ID())}, -1)
	must(t, err)
	must(t, cluster.KillServer(leader))
	if now, err := cluster.Leader(); err == nil {
		t.Errorf("server %d leads with a voter of two", now.ID())
	}
	must(t, cluster.RestartServer(leader))
	if _, err := cluster.Leader(); err != nil {
		t.Error(err)
	}
	newSession(t, others[0].Addr()).create(t, "/by-one-that-has-left", "", zk.FlagEphemeral)
}

func TestSpecs(t *testing.T) {
	cluster := curatortest.NewClusterT(t, 2)
	config, _ := cluster.Servers()[0].Node("/zookeeper/config")
	want := cluster.Servers()[0].Spec() + "\n" + cluster.Servers()[1].Spec() + "\nversion=0"
	if string(config.Data) != want || cluster.Servers()[1].ID() != 2 {
		t.Errorf("configuration %q, want %q", config.Data, want)
	}
	if s := curatortest.NewServerT(t); s.ID() != 0 || s.Spec() != "" {
		t.Errorf("a server that stands alone is %d, %q", s.ID(), s.Spec())
	}
}
