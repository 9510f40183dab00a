import java.io.InputStream;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.api.ACLProvider;
import org.apache.curator.framework.imps.DefaultACLProvider;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;

/** Clients, by the argument "client". */
final class Clients {
    private static final ACLProvider CREATOR_ONLY = new ACLProvider() {
        @Override
        public List<ACL> getDefaultAcl() {
            return ZooDefs.Ids.CREATOR_ALL_ACL;
        }

        @Override
        public List<ACL> getAclForPath(String path) {
            return null; // the default
        }
    };

    private final Scope scope;
    private final Named<CuratorFramework> clients = new Named<>("client");

    Clients(Scope scope) {
        this.scope = scope;
        clientCommands();
        sessionCommands();
    }

    CuratorFramework of(Args args) {
        return clients.get(name(args));
    }

    /** Closes all clients, each after its objects. */
    void close() {
        clients.names().forEach(this::close);
    }

    private void close(String name) {
        scope.closeObjects(name);
        clients.remove(name).close();
    }

    private void clientCommands() {
        scope.on("version", args -> {
            Properties properties = new Properties();
            String path = "/META-INF/maven/org.apache.curator/curator-framework/pom.properties";
            try (InputStream in = CuratorFramework.class.getResourceAsStream(path)) {
                properties.load(in);
            }
            return properties.getProperty("version");
        });
        scope.on("zookeeperVersion", args -> org.apache.zookeeper.Version.getVersion());
        scope.on("start", args -> {
            String name = name(args);
            int connectionTimeout = args.number("connectionTimeoutMs", 15_000);
            CuratorFramework client = CuratorFrameworkFactory.builder()
                    .connectString(args.text("connect"))
                    .namespace(args.text("namespace", null))
                    .sessionTimeoutMs(args.number("sessionTimeoutMs", 60_000))
                    .connectionTimeoutMs(connectionTimeout)
                    .ensembleTracker(args.flag("ensembleTracker"))
                    .aclProvider(args.flag("creatorOnly") ? CREATOR_ONLY : new DefaultACLProvider())
                    .retryPolicy(new ExponentialBackoffRetry(
                            args.number("retryBaseMs", 100), args.number("retryMax", 5)))
                    .build();
            client.getConnectionStateListenable().addListener((c, state) ->
                    scope.event("state", "client", name, "state", state.toString()));
            clients.put(name, name, client);
            client.start();
            if (!client.blockUntilConnected(connectionTimeout, TimeUnit.MILLISECONDS)) {
                throw new IllegalStateException("not connected in time");
            }
            return sessionId(client);
        });
        scope.on("close", args -> {
            close(name(args));
            return null;
        });
    }

    private void sessionCommands() {
        scope.on("sessionId", args -> sessionId(of(args)));
        scope.on("killSession", args -> {
            killSession(of(args));
            return null;
        });
    }

    private static String name(Args args) {
        return args.text("client", "");
    }

    private static long sessionId(CuratorFramework client) throws Exception {
        return client.getZookeeperClient().getZooKeeper().getSessionId();
    }

    /** Ends the client's session at the server: a second user of the session closes it. */
    private static void killSession(CuratorFramework client) throws Exception {
        ZooKeeper own = client.getZookeeperClient().getZooKeeper();
        CountDownLatch connected = new CountDownLatch(1);
        try (ZooKeeper second = new ZooKeeper(
                client.getZookeeperClient().getCurrentConnectionString(),
                own.getSessionTimeout(),
                event -> {
                    if (event.getState() == KeeperState.SyncConnected) {
                        connected.countDown();
                    }
                },
                own.getSessionId(),
                own.getSessionPasswd())) {
            if (!connected.await(10, TimeUnit.SECONDS)) {
                throw new IllegalStateException("the second connection did not come about");
            }
        }
    }
}
