import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.KeeperException;

/** Connections that begin and end. */
final class Connections {
    private Connections() {}

    static void addTo(Map<String, Case> cases) {
        cases.put("connect", Connections::connect);
        cases.put("reconnect", Connections::reconnect);
    }

    /** An operation is the whole life of a client; the latency is from its start to its first answer. */
    private static Result connect(Load load) throws Exception {
        Loops loops = new Loops();
        loops.add(() -> {
            try (CuratorFramework client = Target.open(load.target.connect, new ExponentialBackoffRetry(100, 5))) {
                long start = System.nanoTime();
                client.start();
                client.checkExists().forPath("/");
                return System.nanoTime() - start;
            }
        });
        return loops.run(load.seconds);
    }

    /**
     * Sends requests without a pause while a proxy cuts the connection. An operation is an interruption. Its latency
     * is from the last answer before it to the first one after it. The client does not retry by itself, so the
     * latency is that of the connection alone.
     */
    private static Result reconnect(Load load) throws Exception {
        Result result = new Result();
        try (CuratorFramework client = Target.open(load.target.connect, new RetryNTimes(0, 0))) {
            client.start();
            client.blockUntilConnected();
            client.checkExists().forPath("/");
            long answers = 0;
            result.start();
            long last = System.nanoTime();
            long end = last + load.nanos();
            boolean cut = false;
            while (cut || last < end) {
                try {
                    client.getData().forPath("/");
                } catch (KeeperException.ConnectionLossException e) {
                    cut = true;
                    LockSupport.parkNanos(1_000_000);
                    continue;
                }
                long now = System.nanoTime();
                if (cut) {
                    result.add(now - last);
                }
                cut = false;
                last = now;
                answers++;
            }
            result.stop();
            result.extra("answers", answers);
        }
        return result;
    }
}
