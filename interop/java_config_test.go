package interop_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
)

// configSource prints the members of an ensemble as the classes of ZooKeeper read them, and then waits until the
// tracker of Java Curator has found them.
const configSource = `
import java.io.ByteArrayInputStream;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.server.quorum.QuorumPeer.QuorumServer;
import org.apache.zookeeper.server.quorum.flexible.QuorumMaj;

public class ReadConfig {
    public static void main(String[] ensembles) throws Exception {
        for (String ensemble : ensembles) {
            read(ensemble.split(","));
        }
    }

    static void read(String[] addresses) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder()
            .connectString(addresses[0]).retryPolicy(new RetryOneTime(100)).ensembleTracker(true).build();
        client.start();
        Properties properties = new Properties();
        properties.load(new ByteArrayInputStream(client.getConfig().forEnsemble()));
        QuorumMaj quorum = new QuorumMaj(properties);
        for (QuorumServer server : new TreeMap<>(quorum.getAllMembers()).values()) {
            System.out.print(server.id + " " + server.clientAddr.getPort() + " " + server.type + ", ");
        }
        System.out.print("version " + quorum.getVersion());
        while (client.getCurrentConfig().getAllMembers().size() != addresses.length) {
            Thread.sleep(20);
        }
        client.getZookeeperClient().getZooKeeper();
        System.out.println(", tracked " + client.getZookeeperClient().getCurrentConnectionString());
        client.close();
    }
}
`

// TestJavaReadsTheConfigurationOfAnEnsemble has Java parse /zookeeper/config of ensembles of either kind.
func TestJavaReadsTheConfigurationOfAnEnsemble(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	real, err := curatortest.NewRealCluster(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := real.Close(); err != nil {
			t.Error(err)
		}
	})
	tests := []struct{ name, connect string }{
		{"real", real.ConnectString()},
		{"in memory", curatortest.NewClusterT(t, 3).ConnectString()},
		{"at all interfaces", curatortest.NewClusterT(t, 3, curatortest.WithAddr("0.0.0.0:0")).ConnectString()},
		{"one server", curatortest.NewClusterT(t, 1).ConnectString()},
	}
	var connects []string
	for _, tt := range tests {
		connects = append(connects, tt.connect)
	}
	lines := strings.Split(strings.TrimSpace(readConfig(t, connects...)), "\n")
	if len(lines) != len(tests) {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			addrs := strings.Split(tt.connect, ",")
			var want strings.Builder
			for i, addr := range addrs {
				_, port, _ := strings.Cut(addr, ":")
				fmt.Fprintf(&want, "%d %s PARTICIPANT, ", i+1, port)
			}
			want.WriteString("version 0, tracked ")
			got, tracked, _ := strings.Cut(lines[i], "tracked ")
			if got += "tracked "; got != want.String() {
				t.Errorf("%s, not %s", got, want.String())
			}
			found := strings.Split(tracked, ",") // in no order
			slices.Sort(addrs)
			if slices.Sort(found); !slices.Equal(found, addrs) {
				t.Errorf("tracked %q, not %q", found, addrs)
			}
		})
	}
}

func readConfig(t *testing.T, connects ...string) string {
	t.Helper()
	ctx := testenv.Context(t)
	classes, err := interop.Compile(ctx, interop.Program{Class: "ReadConfig", Source: []byte(configSource)})
	if err != nil {
		t.Fatal(err)
	}
	classPath, err := interop.ClassPath()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{
		"-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", classes + ":" + classPath,
		"ReadConfig",
	}
	out, err := exec.CommandContext(ctx, "java", append(args, connects...)...).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}
