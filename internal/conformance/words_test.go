package conformance_test

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"testing"
	"time"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/testenv"
)

var wordStories = []story{
	{name: "four letter words", alone: true, play: words},
	{name: "a word in capital letters is none", play: noWord},
}

// words sends the four-letter words to a server with two clients, one with a node and watches.
func words(t stage) {
	addr := t.addr
	c, other := connect(t, t.addr, sessionTimeout), connect(t, t.addr, sessionTimeout)
	c.create(t, "/word-ephemeral", ephemeral)
	c.create(t, "/word", persistent)
	c.watch(t, "/word")
	c.watch(t, "/word-ephemeral")
	other.must(t, jute.Request{Op: jute.OpGetData, Path: "/word", Watch: true})
	other.must(t, jute.Request{Op: jute.OpGetChildren, Path: "/word", Watch: true})
	id, otherID := fmt.Sprintf("0x%x", c.session), fmt.Sprintf("0x%x", other.session)

	const (
		number = `[0-9]+(\.[0-9]+)?`
		// release is of the form that monitors parse, and kazoo.
		release = `3\.[89]\.\d-\S+, built on \d{4}-\d\d-\d\d \d\d:\d\d UTC`
		// response has the last answer of a connection.
		response = `lresp=\d+,llat=\d+,minlat=\d+,avglat=\d+,maxlat=\d+`
		// expiry is in front of what expires at the same time.
		expiry = `\d expire at [A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d \w+ \d{4}:\n`
	)
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	counters := `Latency min/avg/max: ` + number + "/" + number + "/" + number + `\nReceived: \d+\nSent: \d+\n` +
		`Connections: 3\nOutstanding: 0\nZxid: 0x4\nMode: standalone\nNode count: 7\n$`
	tests := []struct {
		word string
		want []string
	}{
		{"ruok", []string{`^imok$`}},
		{"isro", []string{`^rw$`}},
		{"srvr", []string{`^Zookeeper version: ` + release + `\n` + counters}},
		{"stat", []string{
			`^Zookeeper version: ` + release + `\nClients:\n` +
				`( /127.0.0.1:\d+\[[01]\]\(queued=0,recved=\d+,sent=\d+\)\n){3}\n` + counters,
			`\[[01]\]\(queued=0,recved=1,sent=0\)\n`, // the connection of the question
			`\[1\]\(queued=0,recved=5,sent=5\)\n`,
			`\[1\]\(queued=0,recved=3,sent=3\)\n`,
		}},
		{"mntr", []string{
			`^zk_version\t` + release + `\n`, `\nzk_uptime\t\d+\n`, `\nzk_server_state\tstandalone\n`,
			`\nzk_ephemerals_count\t1\n`, `\nzk_znode_count\t7\n`,
			`\nzk_num_alive_connections\t3\n`, `\nzk_outstanding_requests\t0\n`, `\nzk_global_sessions\t2\n`,
			`\nzk_watch_count\t4\n`, `\nzk_packets_received\t\d+\n`, `\nzk_packets_sent\t\d+\n`, `\nzk_avg_latency\t` + number +
				`\n`,
			`\nzk_min_latency\t\d+\n`, `\nzk_max_latency\t\d+\n`, `\nzk_approximate_data_size\t\d+\n`,
			`\nzk_local_sessions\t0\n`,
		}},
		{"conf", []string{
			`^clientPort=` + port + `\nsecureClientPort=-1\n` +
				`dataDir=\S+\ndataDirSize=\d+\ndataLogDir=\S+\ndataLogSize=\d+\n` +
				`tickTime=100\nmaxClientCnxns=0\nminSessionTimeout=200\nmaxSessionTimeout=3600000\n` +
				`clientPortListenBacklog=-1\nserverId=0\n$`,
		}},
		{"cons", []string{
			`(?m)^ /127.0.0.1:\d+\[1\]\(queued=0,recved=5,sent=5,sid=` + id +
				`,lop=EXIS,est=\d{13},to=60000,lcxid=0x4,lzxid=0x4,` + response + `\)$`,
			`(?m)^ /127.0.0.1:\d+\[1\]\(queued=0,recved=3,sent=3,sid=` + otherID +
				`,lop=GETC,est=\d{13},to=60000,lcxid=0x2,lzxid=0x4,` + response + `\)$`,
			`(?m)^ /127.0.0.1:\d+\[[01]\]\(queued=0,recved=1,sent=0\)$`, `\n\n$`,
		}},
		{"dump", []string{
			`^SessionTracker dump:\nSession Sets \(\d\)/\(2\):\n`,
			`\n\t` + id + `\n`, `\n\t` + otherID + `\n`,
			`\nephemeral nodes dump:\nSessions with Ephemerals \(1\):\n` + id + `:\n\t/word-ephemeral\n` +
				`Connections dump:\nConnections Sets \(\d\)/\(3\):\n(` + expiry +
				`(\tip: /127\.0\.0\.1:\d+ sessionId: 0x\w+\n)*)+$`,
			`\n` + expiry + `\t0x`, `\tip: /127\.0\.0\.1:\d+ sessionId: ` + id + `\n`,
			`\tip: /127\.0\.0\.1:\d+ sessionId: ` + otherID + `\n`, `\tip: /127\.0\.0\.1:\d+ sessionId: 0x0\n`,
		}},
		{"wchs", []string{`^2 connections watching 2 paths\nTotal watches:3\n$`}},
		{"wchc", []string{
			id + `\n(\t/word\n\t/word-ephemeral\n|\t/word-ephemeral\n\t/word\n)`, otherID + `\n\t/word\n`, `\n\n$`,
		}},
		{"wchp", []string{
			`(?m)^/word-ephemeral\n\t` + id + `\n`,
			`(?m)^/word\n(\t` + id + `\n\t` + otherID + `\n|\t` + otherID + `\n\t` + id + `\n)`, `\n\n$`,
		}},
		{"envi", []string{
			`^Environment:\nzookeeper\.version=` + release + `\n`, `\nhost\.name=\S+\n`, `\nos\.name=\S+\n`,
			`\nos\.arch=\S+\n`,
		}},
		{"dirs", []string{`^datadir_size: \d+\nlogdir_size: \d+\n$`}},
		{"hash", []string{`^$`}}, // without a digest
		{"gtmk", []string{`^306$`}},
		{"stmk", []string{`^$`}}, // without a mask
		{"stmk\x00\x00\x00\x00\x00\x00\x03\xfe", []string{`^1022$`}},
		{"gtmk", []string{`^1022$`}},
		{"stmk\x00\x00\x00\x00\x00\x00\x01\x32", []string{`^306$`}}, // as it was
		{"crst", []string{`^Connection stats reset\.\n$`}},
		{"srst", []string{`^Server stats reset\.\n$`}},
	}
	// The last answer may be here before Apache ZooKeeper has taken it from its queue and reads the connection again.
	quiet := regexp.MustCompile(`\[1\]\(queued=0,recved=\d+,sent=\d+,sid=`)
	testenv.Eventually(t, func() bool { return len(quiet.FindAllString(ask(t, addr, "cons"), -1)) == 2 },
		"all answers are sent")
	for _, tt := range tests {
		t.Run(tt.word, func(t *testing.T) {
			got := ask(t, addr, tt.word)
			for _, want := range tt.want {
				if !regexp.MustCompile(want).MatchString(got) {
					t.Errorf("no %s in\n%s", want, got)
				}
			}
		})
	}
}

func noWord(t stage) {
	if got := ask(t, t.addr, "RUOK"); got != "" {
		t.Errorf("answer %q", got)
	}
}

// ask sends a four-letter word and returns the whole answer.
func ask(tb testing.TB, addr, word string) string {
	tb.Helper()
	c, err := dial(addr)
	if err != nil {
		tb.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it has been read to its end
	if err := c.SetDeadline(time.Now().Add(answerLimit)); err != nil {
		tb.Fatal(err)
	}
	if _, err := io.WriteString(c, word); err != nil {
		tb.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil {
		tb.Fatal(err)
	}
	return string(got)
}
