import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.CuratorWatcher;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/** Nodes that one client keeps, as many as the window is wide. */
final class Nodes {
    private static final int PATIENCE_SECONDS = 60;

    private Nodes() {}

    static void addTo(Map<String, Case> cases) {
        cases.put("nodes-return", Nodes::comeBack);
    }

    /**
     * Ends the session of the nodes, again and again. The latency is from the first deleted node until all nodes are
     * there again. Another client observes both.
     */
    private static Result comeBack(Load load) throws Exception {
        Kept kept = new Kept(load);
        Loops loops = new Loops();
        loops.add(kept::comeBack);
        Result result = loops.run(load.seconds);
        kept.close();
        return result;
    }

    private static final class Kept {
        private final CuratorFramework client;
        private final CuratorFramework observer;
        private final String connect;
        private final String parent = Target.newPath("nodes");
        private final List<String> paths = new ArrayList<>();
        private final List<PersistentNode> nodes = new ArrayList<>();
        private final CuratorWatcher watcher = this::observe;
        private final Set<String> there = new HashSet<>(); // of the thread of the observer's events
        private final BlockingQueue<Long> complete = new LinkedBlockingQueue<>();
        private final BlockingQueue<Long> gone = new LinkedBlockingQueue<>();

        Kept(Load load) throws Exception {
            client = load.target.client(0);
            observer = load.target.client(1);
            connect = load.target.connect;
            observer.create().creatingParentsIfNeeded().forPath(parent);
            observer.watchers().add().withMode(AddWatchMode.PERSISTENT_RECURSIVE).usingWatcher(watcher).forPath(parent);
            for (int i = 0; i < load.window; i++) {
                paths.add(parent + "/node-" + i);
            }
            byte[] data = new byte[load.payload];
            for (String path : paths) {
                PersistentNode node = new PersistentNode(client, CreateMode.EPHEMERAL, false, path, data);
                nodes.add(node);
                node.start();
            }
            for (PersistentNode node : nodes) {
                if (!node.waitForInitialCreate(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
                    throw new IllegalStateException("a node is not there");
                }
            }
            next(complete);
        }

        private void observe(WatchedEvent event) {
            if (event.getPath() == null || !event.getPath().startsWith(parent + "/")) {
                return;
            }
            boolean wasComplete = there.size() == paths.size();
            switch (event.getType()) {
                case NodeCreated:
                    there.add(event.getPath());
                    break;
                case NodeDeleted:
                    there.remove(event.getPath());
                    break;
                default:
                    return;
            }
            boolean isComplete = there.size() == paths.size();
            if (isComplete && !wasComplete) {
                complete.add(System.nanoTime());
            } else if (!isComplete && wasComplete) {
                gone.add(System.nanoTime());
            }
        }

        /** Waits until all nodes belong to another session. */
        long comeBack() throws Exception {
            endSession();
            long from = next(gone);
            long to = next(complete);
            long session = client.getZookeeperClient().getZooKeeper().getSessionId();
            for (String path : paths) {
                Stat stat = observer.checkExists().forPath(path);
                if (stat == null || stat.getEphemeralOwner() != session) {
                    throw new IllegalStateException(path + " is of another session: " + stat);
                }
            }
            return to - from;
        }

        /** Takes the session over with another handle, and closes it. */
        private void endSession() throws Exception {
            ZooKeeper own = client.getZookeeperClient().getZooKeeper();
            CountDownLatch connected = new CountDownLatch(1);
            ZooKeeper second = new ZooKeeper(
                    connect,
                    own.getSessionTimeout(),
                    event -> {
                        if (event.getState() == KeeperState.SyncConnected) {
                            connected.countDown();
                        }
                    },
                    own.getSessionId(),
                    own.getSessionPasswd());
            if (!connected.await(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
                throw new IllegalStateException("no connection to " + connect);
            }
            second.close();
        }

        private static long next(BlockingQueue<Long> times) throws InterruptedException {
            Long at = times.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
            if (at == null) {
                throw new IllegalStateException("not all nodes are there, or none is gone");
            }
            return at;
        }

        void close() throws Exception {
            for (PersistentNode node : nodes) {
                node.close();
            }
            observer.watchers().remove(watcher).guaranteed().forPath(parent);
            observer.delete().deletingChildrenIfNeeded().forPath(parent);
        }
    }
}
