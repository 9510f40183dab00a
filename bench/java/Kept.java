import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.CuratorWatcher;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.client.FourLetterWordMain;
import org.apache.zookeeper.data.Stat;

/** The ephemeral nodes that a client keeps through sessions, and what another client observes of them. */
final class Kept {
    private static final int PATIENCE_SECONDS = 60;

    final CuratorFramework client;
    final String parent = Target.newPath("kept");
    final List<String> paths = new ArrayList<>();
    private final CuratorFramework observer;
    private final String connect;
    private final CuratorWatcher watcher = this::observe;
    private final BlockingQueue<Long> complete = new LinkedBlockingQueue<>();
    private final BlockingQueue<Long> gone = new LinkedBlockingQueue<>();
    private final Map<String, Boolean> there = new HashMap<>(); // of the paths, and of the thread of the events
    private int count; // of those that are there
    private long requests; // of the client in all new sessions

    /** Prepares the paths of nodes, which the names say below a new parent. */
    Kept(Load load, List<String> names) throws Exception {
        client = load.target.client(0);
        observer = load.target.client(1);
        connect = load.target.connect;
        for (String name : names) {
            String path = parent + "/" + name;
            paths.add(path);
            there.put(path, false);
        }
        observer.create().creatingParentsIfNeeded().forPath(parent);
        observer.watchers().add().withMode(AddWatchMode.PERSISTENT_RECURSIVE).usingWatcher(watcher).forPath(parent);
    }

    private void observe(WatchedEvent event) {
        Boolean was = there.get(event.getPath());
        if (was == null) {
            return;
        }
        if (!was && event.getType() == EventType.NodeCreated) {
            there.put(event.getPath(), true);
            if (++count == paths.size()) {
                complete.add(System.nanoTime());
            }
        } else if (was && event.getType() == EventType.NodeDeleted) {
            there.put(event.getPath(), false);
            if (--count == paths.size() - 1) {
                gone.add(System.nanoTime());
            }
        }
    }

    /** Waits until all nodes are there for the first time. */
    void awaitComplete() throws Exception {
        next(complete);
    }

    /** Ends the session again and again. The latency is from the first deleted node until all are there again. */
    Result measure(Load load) throws Exception {
        Loops loops = new Loops();
        loops.add(this::comeBack);
        Result result = loops.run(load.seconds);
        result.extra("requests", requests);
        return result;
    }

    /** Waits until all nodes belong to another session. */
    private long comeBack() throws Exception {
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
        requests += requestsOf(session);
        return to - from;
    }

    /** Returns how many requests the server has received on the connection of a session, 0 if it does not tell. */
    private long requestsOf(long session) throws Exception {
        String[] address = connect.split("[,/]")[0].split(":");
        String answer = FourLetterWordMain.send4LetterWord(address[0], Integer.parseInt(address[1]), "cons");
        Matcher found = Pattern.compile("recved=(\\d+),\\S*sid=0x" + Long.toHexString(session) + ",").matcher(answer);
        return found.find() ? Long.parseLong(found.group(1)) : 0;
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

    /** Removes what is left after the client has ended its nodes. */
    void close() throws Exception {
        observer.watchers().remove(watcher).guaranteed().forPath(parent);
        observer.delete().deletingChildrenIfNeeded().forPath(parent);
    }
}
