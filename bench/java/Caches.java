import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.transaction.CuratorOp;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.cache.PathChildrenCacheEvent;
import org.apache.curator.framework.recipes.cache.TreeCache;
import org.apache.curator.framework.recipes.cache.TreeCacheEvent;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.framework.state.ConnectionStateListener;
import org.apache.zookeeper.KeeperException;

/** Caches of as many nodes as the window is wide. */
final class Caches {
    private static final int PATIENCE_SECONDS = 60;
    private static final int CHANGED_WHILE_AWAY = 10;

    private Caches() {}

    static void addTo(Map<String, Case> cases) {
        cases.put("cache-load", Caches::load);
        cases.put("cache-memory", Caches::memory);
        cases.put("cache-change", Caches::change);
        cases.put("cache-return", Caches::comeBack);
    }

    /** Starts caches one after the other. The latency is from the start until all nodes are read. */
    private static Result load(Load load) throws Exception {
        Tree tree = new Tree(load);
        Loops loops = new Loops();
        loops.add(() -> {
            long start = System.nanoTime();
            AutoCloseable cache = tree.cached(() -> {});
            long took = System.nanoTime() - start;
            cache.close();
            return took;
        });
        Result result = loops.run(load.seconds);
        tree.remove();
        return result;
    }

    /** Starts one cache. Memory is read before that and when all nodes are read; an operation is a node. */
    private static Result memory(Load load) throws Exception {
        Result result = new Result();
        Tree tree = new Tree(load);
        result.extra("before", Memory.now());
        result.start();
        AutoCloseable cache = tree.cached(() -> {});
        tree.nodes.forEach(node -> result.add(-1));
        result.stop();
        result.extra("waiting", Memory.now());
        cache.close();
        tree.remove();
        return result;
    }

    /**
     * Sends the client of a cache away, and changes nodes with another client meanwhile. The latency is from the new
     * connection of the cache's client until the listener has all changes.
     */
    private static Result comeBack(Load load) throws Exception {
        Tree tree = new Tree(load);
        CuratorFramework other = load.target.client(1);
        BlockingQueue<Long> changed = new LinkedBlockingQueue<>();
        BlockingQueue<Long> reconnected = new LinkedBlockingQueue<>();
        AutoCloseable cache = tree.cached(() -> changed.add(System.nanoTime()));
        ConnectionStateListener states = (client, state) -> {
            if (state == ConnectionState.RECONNECTED) {
                reconnected.add(System.nanoTime());
            }
        };
        tree.client.getConnectionStateListenable().addListener(states);
        Loops loops = new Loops();
        loops.add(() -> {
            try {
                tree.client.getZookeeperClient().getZooKeeper().exists(tree.nodes.get(0) + "/away", false);
                throw new IllegalStateException("the client was not sent away");
            } catch (KeeperException.ConnectionLossException e) {
                // it is away
            }
            tree.change(other, new byte[load.payload]);
            long back = next(reconnected);
            long last = back;
            for (int i = 0; i < CHANGED_WHILE_AWAY; i++) {
                last = next(changed);
            }
            return Math.max(last - back, 0);
        });
        Result result = loops.run(load.seconds);
        tree.client.getConnectionStateListenable().removeListener(states);
        cache.close();
        tree.remove();
        return result;
    }

    private static long next(BlockingQueue<Long> times) throws InterruptedException {
        Long at = times.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
        if (at == null) {
            throw new IllegalStateException("the cache has no change");
        }
        return at;
    }

    /** Writes a node of the tree, again and again. The latency is from the call until the listener has it. */
    private static Result change(Load load) throws Exception {
        Tree tree = new Tree(load);
        BlockingQueue<Long> changed = new LinkedBlockingQueue<>();
        AutoCloseable cache = tree.cached(() -> changed.add(System.nanoTime()));
        String last = tree.nodes.get(tree.nodes.size() - 1);
        byte[] data = new byte[load.payload];
        Loops loops = new Loops();
        loops.add(() -> {
            long start = System.nanoTime();
            tree.client.setData().forPath(last, data);
            return next(changed) - start;
        });
        Result result = loops.run(load.seconds);
        cache.close();
        tree.remove();
        return result;
    }

    /** The nodes of a run; the others are children of the first. */
    private static final class Tree {
        private final CuratorFramework client;
        private final String kind;
        private final List<String> nodes = new ArrayList<>();

        Tree(Load load) throws Exception {
            client = load.target.client(0);
            kind = load.cache;
            String path = Target.newPath("cache");
            client.create().creatingParentsIfNeeded().forPath(path);
            nodes.add(path);
            byte[] data = new byte[load.payload];
            List<CuratorOp> creates = new ArrayList<>();
            for (int i = 0; i < load.window; i++) {
                nodes.add(path + "/node-" + i);
                creates.add(client.transactionOp().create().forPath(nodes.get(i + 1), data));
                if (creates.size() == 500 || i == load.window - 1) {
                    client.transaction().forOperations(creates);
                    creates.clear();
                }
            }
        }

        /** Writes nodes that are evenly spread over the tree, the last one included. */
        void change(CuratorFramework client, byte[] data) throws Exception {
            List<CuratorOp> writes = new ArrayList<>();
            for (int i = 1; i <= CHANGED_WHILE_AWAY; i++) {
                String node = nodes.get(i * (nodes.size() - 1) / CHANGED_WHILE_AWAY);
                writes.add(client.transactionOp().setData().forPath(node, data));
            }
            client.transaction().forOperations(writes);
        }

        void remove() throws Exception {
            Scratch.remove(client, nodes.subList(1, nodes.size()));
            client.delete().forPath(nodes.get(0));
        }

        /** Returns a cache that has all nodes. */
        AutoCloseable cached(Runnable changed) throws Exception {
            CountDownLatch ready = new CountDownLatch(1);
            AutoCloseable cache = start(ready, changed);
            if (!ready.await(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
                throw new IllegalStateException("the cache is not ready");
            }
            return cache;
        }

        private AutoCloseable start(CountDownLatch ready, Runnable changed) throws Exception {
            String path = nodes.get(0);
            switch (kind) {
                case "curator": {
                    CuratorCache cache = CuratorCache.build(client, path);
                    cache.listenable().addListener(CuratorCacheListener.builder()
                            .forInitialized(ready::countDown)
                            .forChanges((old, node) -> changed.run())
                            .build());
                    cache.start();
                    return cache;
                }
                case "tree": {
                    TreeCache cache = new TreeCache(client, path);
                    cache.getListenable().addListener((client, event) -> {
                        if (event.getType() == TreeCacheEvent.Type.INITIALIZED) {
                            ready.countDown();
                        } else if (event.getType() == TreeCacheEvent.Type.NODE_UPDATED) {
                            changed.run();
                        }
                    });
                    cache.start();
                    return cache;
                }
                case "children": {
                    PathChildrenCache cache = new PathChildrenCache(client, path, true);
                    cache.getListenable().addListener((client, event) -> {
                        if (event.getType() == PathChildrenCacheEvent.Type.INITIALIZED) {
                            ready.countDown();
                        } else if (event.getType() == PathChildrenCacheEvent.Type.CHILD_UPDATED) {
                            changed.run();
                        }
                    });
                    cache.start(PathChildrenCache.StartMode.POST_INITIALIZED_EVENT);
                    return cache;
                }
                default:
                    throw new IllegalArgumentException("no cache " + kind);
            }
        }
    }
}
