import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;

/** Barriers. */
final class Barriers {
    private static final int PATIENCE_SECONDS = 10;

    private Barriers() {}

    static void addTo(Map<String, Case> cases) {
        cases.put("double-barrier", Barriers::doubleBarrier);
    }

    /**
     * "threads" members with a client each enter and leave together, again and again. An operation is such a round.
     * Its latency is that of the first member. The members meet in the process before they enter and before they
     * leave, and each round has new objects: Java's members fail if one of them is ahead, or has been notified before.
     */
    private static Result doubleBarrier(Load load) throws Exception {
        String path = Target.newPath("double-barrier");
        List<CuratorFramework> clients = new ArrayList<>();
        for (int i = 0; i < load.threads; i++) {
            clients.add(load.target.client(i));
        }
        Result result = new Result();
        Meeting meeting = new Meeting(load);
        List<Thread> threads = new ArrayList<>();
        result.start();
        for (int i = 0; i < load.threads; i++) {
            CuratorFramework client = clients.get(i);
            boolean first = i == 0;
            Thread thread = new Thread(() -> {
                try {
                    while (meeting.another()) {
                        long start = System.nanoTime();
                        DistributedDoubleBarrier member = new DistributedDoubleBarrier(client, path, load.threads);
                        if (!member.enter(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
                            throw new IllegalStateException("the others did not come");
                        }
                        meeting.await();
                        if (!member.leave(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
                            throw new IllegalStateException("the others did not leave");
                        }
                        if (first) {
                            result.add(System.nanoTime() - start);
                        }
                    }
                } catch (Exception e) {
                    result.fail(e);
                    meeting.members.reset(); // this frees the others too
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join(load.nanos() / 1_000_000 + TimeUnit.SECONDS.toMillis(PATIENCE_SECONDS));
            if (thread.isAlive()) { // it may wait without a limit
                thread.interrupt();
                thread.join();
            }
        }
        result.stop();
        return result;
    }

    /** The meeting of the members. Before each round but the first they agree whether there is time for it. */
    private static final class Meeting {
        private final CyclicBarrier members;
        private volatile long end;
        private volatile boolean over;

        Meeting(Load load) {
            members = new CyclicBarrier(load.threads, () -> {
                over = end != 0 && System.nanoTime() >= end;
                end = end == 0 ? System.nanoTime() + load.nanos() : end;
            });
        }

        boolean another() throws Exception {
            await();
            return !over;
        }

        void await() throws Exception {
            members.await(PATIENCE_SECONDS, TimeUnit.SECONDS);
        }
    }
}
