import java.util.Map;
import java.util.concurrent.Semaphore;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.BackgroundCallback;
import org.apache.zookeeper.KeeperException;

/** Single operations. */
final class Operations {
    private Operations() {}

    static void addTo(Map<String, Case> cases) {
        cases.put("create-sync", Operations::createSync);
        cases.put("getData-sync", Operations::getDataSync);
        cases.put("create-bg", Operations::createBackground);
        cases.put("getData-bg", Operations::getDataBackground);
    }

    private static Result createSync(Load load) throws Exception {
        CuratorFramework client = load.target.client(0);
        Scratch scratch = new Scratch(client, load.threads);
        byte[] data = new byte[load.payload];
        Loops loops = new Loops();
        for (int i = 0; i < load.threads; i++) {
            int thread = i;
            loops.add(() -> {
                String path = scratch.next(thread);
                long start = System.nanoTime();
                client.create().forPath(path, data);
                return System.nanoTime() - start;
            });
        }
        Result result = loops.run(load.seconds);
        scratch.remove();
        return result;
    }

    private static Result getDataSync(Load load) throws Exception {
        CuratorFramework client = load.target.client(0);
        String path = dataNode(client, load.payload);
        Loops loops = new Loops();
        for (int i = 0; i < load.threads; i++) {
            loops.add(() -> {
                long start = System.nanoTime();
                client.getData().forPath(path);
                return System.nanoTime() - start;
            });
        }
        return loops.run(load.seconds);
    }

    private static Result createBackground(Load load) throws Exception {
        CuratorFramework client = load.target.client(0);
        Scratch scratch = new Scratch(client, 1);
        byte[] data = new byte[load.payload];
        Result result = background(load, callback ->
                client.create().inBackground(callback, System.nanoTime()).forPath(scratch.next(0), data));
        scratch.remove();
        return result;
    }

    private static Result getDataBackground(Load load) throws Exception {
        CuratorFramework client = load.target.client(0);
        String path = dataNode(client, load.payload);
        return background(load, callback ->
                client.getData().inBackground(callback, System.nanoTime()).forPath(path));
    }

    /** Submits one operation in the background, with the time as the callback's context. */
    private interface Submission {
        void submit(BackgroundCallback callback) throws Exception;
    }

    /** Keeps as many operations in flight as the window is wide; the clock stops after the last answer. */
    private static Result background(Load load, Submission submission) throws Exception {
        Result result = new Result();
        Semaphore window = new Semaphore(load.window);
        BackgroundCallback callback = (client, event) -> { // all on the client's event thread
            result.add(System.nanoTime() - (Long) event.getContext());
            if (event.getResultCode() != 0) {
                result.fail(event.getPath() + ": " + KeeperException.Code.get(event.getResultCode()));
            }
            window.release();
        };
        result.start();
        long end = System.nanoTime() + load.nanos();
        do {
            window.acquire();
            submission.submit(callback);
        } while (System.nanoTime() < end);
        window.acquire(load.window);
        result.stop();
        return result;
    }

    /** Returns the path of a node with this much data. */
    private static String dataNode(CuratorFramework client, int payload) throws Exception {
        String path = Target.BASE + "/data";
        client.create().orSetData().creatingParentsIfNeeded().forPath(path, new byte[payload]);
        return path;
    }
}
