import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.RetryPolicy;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** A server, and clients connected to it, which stay for later runs. */
final class Target {
    /** The parent of all nodes. */
    static final String BASE = "/bench-java";

    private static int paths; // of all targets

    final String connect;
    private final List<CuratorFramework> clients = new ArrayList<>();

    Target(String connect) throws Exception {
        this.connect = connect;
        client(0);
    }

    CuratorFramework client(int number) throws Exception {
        while (clients.size() <= number) {
            CuratorFramework client = open(connect, new ExponentialBackoffRetry(100, 5));
            clients.add(client);
            client.start();
            if (!client.blockUntilConnected(15, TimeUnit.SECONDS)) {
                throw new IllegalStateException("no connection to " + connect);
            }
        }
        return clients.get(number);
    }

    static CuratorFramework open(String connect, RetryPolicy retryPolicy) {
        return CuratorFrameworkFactory.builder()
                .connectString(connect)
                .sessionTimeoutMs(10_000)
                .connectionTimeoutMs(15_000)
                .ensembleTracker(false)
                .retryPolicy(retryPolicy)
                .build();
    }

    /** Returns a path that no other run of this process has. */
    static String newPath(String name) {
        return BASE + "/" + name + "-" + ++paths;
    }

    void close() {
        clients.forEach(CuratorFramework::close);
    }
}
