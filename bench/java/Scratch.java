import java.util.ArrayList;
import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.transaction.CuratorOp;

/** Names for the nodes a run creates, under a parent of its own, and the removal of all of them. */
final class Scratch {
    private static final int DELETES_AT_ONCE = 500;

    private final CuratorFramework client;
    private final String parent = Target.newPath("run");
    private final long[] counts; // each thread has an element and a series of names of its own

    Scratch(CuratorFramework client, int threads) throws Exception {
        this.client = client;
        counts = new long[threads];
        client.create().creatingParentsIfNeeded().forPath(parent);
    }

    String next(int thread) {
        return path(thread, counts[thread]++);
    }

    private String path(int thread, long number) {
        return parent + "/" + thread + "-" + number;
    }

    void remove() throws Exception {
        List<String> paths = new ArrayList<>();
        for (int thread = 0; thread < counts.length; thread++) {
            for (long number = 0; number < counts[thread]; number++) {
                paths.add(path(thread, number));
            }
        }
        paths.add(parent);
        remove(client, paths);
    }

    /** Deletes nodes, many at a time. */
    static void remove(CuratorFramework client, List<String> paths) throws Exception {
        for (int from = 0; from < paths.size(); from += DELETES_AT_ONCE) {
            List<CuratorOp> deletes = new ArrayList<>();
            for (String path : paths.subList(from, Math.min(from + DELETES_AT_ONCE, paths.size()))) {
                deletes.add(client.transactionOp().delete().forPath(path));
            }
            client.transaction().forOperations(deletes);
        }
    }
}
