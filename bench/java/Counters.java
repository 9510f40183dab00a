import java.util.Map;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.retry.RetryNTimes;

/** Counters. An operation is one increment. */
final class Counters {
    private Counters() {}

    static void addTo(Map<String, Case> cases) {
        cases.put("counter", Counters::shared);
        cases.put("counter-one-client", Counters::oneClient);
    }

    /** Each thread has a client of its own; all increment one number. */
    private static Result shared(Load load) throws Exception {
        String path = Target.newPath("counter");
        Loops loops = new Loops();
        for (int i = 0; i < load.threads; i++) {
            loops.add(increment(counter(load, i, path)));
        }
        return loops.run(load.seconds);
    }

    /** All threads share one counter. */
    private static Result oneClient(Load load) throws Exception {
        DistributedAtomicLong counter = counter(load, 0, Target.newPath("counter"));
        Loops loops = new Loops();
        for (int i = 0; i < load.threads; i++) {
            loops.add(increment(counter));
        }
        return loops.run(load.seconds);
    }

    private static DistributedAtomicLong counter(Load load, int client, String path) throws Exception {
        return new DistributedAtomicLong(load.target.client(client), path, new RetryNTimes(1_000_000, 1));
    }

    private static Loops.Operation increment(DistributedAtomicLong counter) {
        return () -> {
            long start = System.nanoTime();
            if (!counter.increment().succeeded()) {
                throw new IllegalStateException("the others were faster");
            }
            return System.nanoTime() - start;
        };
    }
}
