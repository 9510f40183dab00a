package curatortest_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
)

// worded is a server that answers four-letter words.
type worded interface {
	Addr() string
	FourLetterWord(ctx context.Context, word string) (string, error)
}

// TestFourLetterWordsOfAnEnsemble checks what the words say of an ensemble beyond a server that stands alone.
func TestFourLetterWordsOfAnEnsemble(t *testing.T) {
	t.Run("in memory", func(t *testing.T) {
		cluster := curatortest.NewClusterT(t, 3)
		leader, others := followers(t, cluster)
		checkEnsembleWords(t, leader, others[0])
	})
	t.Run("real", func(t *testing.T) {
		testenv.RequireReal(t)
		cluster, err := curatortest.NewRealCluster(3)
		must(t, err)
		t.Cleanup(func() { closeServer(t, cluster) })
		leader, err := cluster.Leader()
		must(t, err)
		for _, s := range cluster.Servers() {
			if s != leader {
				checkEnsembleWords(t, leader, s)
				break
			}
		}
	})
}

func checkEnsembleWords(t *testing.T, leader, follower worded) {
	t.Helper()
	newSession(t, follower.Addr()).create(t, "/n", "", 0)
	conf := []string{
		`(?s)\nserverId=[123]\ninitLimit=\d+\nsyncLimit=\d+\nelectionAlg=3\nelectionPort=\d+\nquorumPort=\d+\npeerType=0\n` +
			`membership: \n(server\.\d=127\.0\.0\.1:\d+:\d+:participant;127\.0\.0\.1:\d+\n){3}version=0$`,
	}
	tests := []struct {
		name   string
		server worded
		word   string
		want   []string
	}{
		{
			"leader", leader, "srvr",
			[]string{`\nMode: leader\nNode count: \d+\nProposal sizes last/min/max: -?\d+/-?\d+/-?\d+\n$`},
		},
		{"follower", follower, "srvr", []string{`\nMode: follower\nNode count: \d+\n$`}},
		{"leader", leader, "mntr", []string{
			`\nzk_server_state\tleader\n`, `\nzk_peer_state\tleading - broadcast\n`, `\nzk_quorum_size\t3\n`,
			`\nzk_learners\t2\n`, `\nzk_synced_followers\t2\n`, `\nzk_synced_observers\t0\n`, `\nzk_pending_syncs\t0\n`,
			`\nzk_synced_non_voting_followers\t0\n`,
		}},
		{"follower", follower, "mntr", []string{
			`\nzk_server_state\tfollower\n`, `\nzk_peer_state\tfollowing - broadcast\n`, `\nzk_quorum_size\t3\n`,
		}},
		{"leader", leader, "conf", conf},
		{"follower", follower, "conf", conf},
		{
			"leader", leader, "dump",
			[]string{`^SessionTracker dump:\nSession Sets \(\d\)/\(1\):\n(\d expire at .*:\n)+\t0x\w+\nephemeral`},
		},
		{"follower", follower, "dump", []string{`^SessionTracker dump:\nGlobal Sessions\(1\):\n0x\w+\t\d+ms\nephemeral`}},
	}
	for _, tt := range tests {
		t.Run(tt.name+" "+tt.word, func(t *testing.T) {
			got, err := tt.server.FourLetterWord(t.Context(), tt.word)
			must(t, err)
			for _, want := range tt.want {
				if !regexp.MustCompile(want).MatchString(got) {
					t.Errorf("no %s in\n%s", want, strings.TrimSpace(got))
				}
			}
		})
	}
}

// TestFourLetterWordsWithoutAQuorum checks which words a server answers that does not serve.
func TestFourLetterWordsWithoutAQuorum(t *testing.T) {
	cluster := curatortest.NewClusterT(t, 3)
	cluster.Partition() // each alone
	const notServing = `^This ZooKeeper instance is not currently serving requests\n$`
	for word, want := range map[string]string{
		"ruok": `^imok$`, "isro": `^null$`, "gtmk": `^306$`, "envi": `^Environment:\nzookeeper\.version=3\.8\.0-`,
		"conf": notServing, "dirs": notServing, "dump": notServing, "mntr": notServing, "srvr": notServing,
	} {
		got, err := cluster.Servers()[0].FourLetterWord(t.Context(), word)
		must(t, err)
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s: no %s in\n%s", word, want, got)
		}
	}
}
