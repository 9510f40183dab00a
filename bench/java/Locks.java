import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.zookeeper.KeeperException;

/** Locks of all kinds. An operation is one acquire with its release. */
final class Locks {
    /** The number of waiters that start at a time. It bounds the lists of the whole line in memory. */
    private static final int AT_ONCE = 100;

    private Locks() {}

    static void addTo(Map<String, Case> cases) {
        cases.put("lock-alone", Locks::alone);
        cases.put("lock-shared", Locks::shared);
        cases.put("lock-one-client", Locks::oneClient);
        cases.put("lock-contended", Locks::contended);
        cases.put("waiters", Locks::waiters);
    }

    /** Each thread has a lock of its own; all use one client. */
    private static Result alone(Load load) throws Exception {
        Loops loops = new Loops();
        for (int i = 0; i < load.threads; i++) {
            Lock lock = Lock.of(load.lock, load.target.client(0), Target.BASE + "/lock-" + i, load.leases);
            loops.add(() -> timed(lock));
        }
        return loops.run(load.seconds);
    }

    /** Each thread has a client of its own; all acquire one lock, which several may hold. */
    private static Result shared(Load load) throws Exception {
        return sharedBy(load, load.target::client);
    }

    /** The same with one client for all threads. */
    private static Result oneClient(Load load) throws Exception {
        return sharedBy(load, number -> load.target.client(0));
    }

    /** Returns the client of each thread. */
    private interface Clients {
        CuratorFramework client(int number) throws Exception;
    }

    private static Result sharedBy(Load load, Clients clients) throws Exception {
        String path = Target.newPath("shared");
        Loops loops = new Loops();
        for (int i = 0; i < load.threads; i++) {
            Lock lock = Lock.of(load.lock, clients.client(i), path, load.leases);
            loops.add(() -> timed(lock));
        }
        return loops.run(load.seconds);
    }

    private static long timed(Lock lock) throws Exception {
        long start = System.nanoTime();
        lock.acquire();
        lock.release();
        return System.nanoTime() - start;
    }

    /** Each thread has a client of its own; all acquire one lock. The latency is that of the hand-over. */
    private static Result contended(Load load) throws Exception {
        String path = Target.newPath("contended");
        HandOver handOver = new HandOver();
        Loops loops = new Loops();
        for (int i = 0; i < load.threads; i++) {
            Lock lock = Lock.of(load.lock, load.target.client(i), path, load.leases);
            loops.add(() -> handOver.through(lock));
        }
        return loops.run(load.seconds);
    }

    /**
     * One client holds a lock, and has a thread for each of "waiters", which wait for it: readers wait for a writer.
     * Memory is read before they start and when all wait. Then the lock goes through all of them. The latency is that
     * of the hand-over.
     */
    private static Result waiters(Load load) throws Exception {
        CuratorFramework client = load.target.client(0);
        String path = Target.newPath("waiters");
        Lock first = Lock.of(load.lock.equals("read") ? "write" : load.lock, client, path, 1);
        first.acquire();
        Result result = new Result();
        result.extra("before", Memory.now());

        HandOver handOver = new HandOver();
        List<Thread> threads = new ArrayList<>();
        // The holder of a lease is no longer in the line.
        boolean leases = load.lock.equals("semaphore");
        String line = leases ? path + "/locks" : path;
        int holders = leases ? 0 : 1;
        long start = System.nanoTime();
        for (int i = 0; i < load.waiters; i++) {
            Lock lock = Lock.of(load.lock, client, path, 1);
            Thread thread = new Thread(() -> {
                try {
                    result.add(handOver.through(lock));
                } catch (Exception e) {
                    result.fail(e);
                }
            });
            threads.add(thread);
            thread.start();
            if (threads.size() % AT_ONCE == 0) {
                awaitLine(client, line, threads.size() + holders, 1, threads);
            }
        }
        awaitLine(client, line, load.waiters + holders, 3, threads);
        result.extra("readyNs", System.nanoTime() - start);
        result.extra("waiting", Memory.now());

        result.start();
        handOver.release(first);
        for (Thread thread : threads) {
            thread.join();
        }
        result.stop();
        return result;
    }

    /**
     * Waits until a line is complete and all threads wait, in this many reads in a row. Answers come in order: a node
     * that a thread still creates during one read is there at the next.
     */
    private static void awaitLine(
            CuratorFramework client, String line, int contenders, int looks, List<Thread> threads) throws Exception {
        for (int calm = 0; calm < looks; calm++) {
            TimeUnit.MILLISECONDS.sleep(20);
            if (sizeOf(client, line) != contenders || !allWait(threads)) {
                calm = -1;
            }
        }
    }

    private static int sizeOf(CuratorFramework client, String line) throws Exception {
        try {
            return client.getChildren().forPath(line).size();
        } catch (KeeperException.NoNodeException e) {
            return 0; // the server deletes a line that is empty for long
        }
    }

    private static boolean allWait(List<Thread> threads) {
        return threads.stream().allMatch(thread -> thread.getState() == Thread.State.WAITING);
    }
}
