import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;

/** Leader election. */
final class Latches {
    private static final int PATIENCE_SECONDS = 20;

    private Latches() {}

    static void addTo(Map<String, Case> cases) {
        cases.put("latch", Latches::latch);
    }

    /**
     * "threads" latches with a client each stand in line. The leader is closed again and again, and a new latch starts
     * in its place. The latency is from the call of close to the call of the next leader's listener.
     */
    private static Result latch(Load load) throws Exception {
        Election election = new Election(load.target, Target.newPath("latch"));
        for (int i = 0; i < load.threads; i++) {
            election.join(i);
        }
        election.leads = election.next();
        Loops loops = new Loops();
        loops.add(election::failOver);
        Result result = loops.run(load.seconds);
        for (LeaderLatch latch : election.latches) {
            latch.close();
        }
        return result;
    }

    /** The time at which a latch began to lead. */
    private record Beginning(int latch, long at) {}

    private static final class Election {
        private final Target target;
        private final String path;
        private final List<LeaderLatch> latches = new ArrayList<>();
        private final BlockingQueue<Beginning> beginnings = new LinkedBlockingQueue<>();
        private Beginning leads;

        Election(Target target, String path) {
            this.target = target;
            this.path = path;
        }

        long failOver() throws Exception {
            int last = leads.latch;
            long start = System.nanoTime();
            latches.get(last).close();
            leads = next();
            join(last);
            return leads.at - start;
        }

        /** Starts the latch of a number and waits until it stands in line. */
        void join(int number) throws Exception {
            CuratorFramework client = target.client(number);
            LeaderLatch latch = new LeaderLatch(client, path);
            latch.addListener(new LeaderLatchListener() {
                @Override
                public void isLeader() {
                    beginnings.add(new Beginning(number, System.nanoTime()));
                }

                @Override
                public void notLeader() {}
            });
            latch.start();
            if (number < latches.size()) {
                latches.set(number, latch);
            } else {
                latches.add(latch);
            }
            while (client.checkExists().forPath(path) == null
                    || client.getChildren().forPath(path).size() < latches.size()) {
                Thread.onSpinWait();
            }
        }

        Beginning next() throws InterruptedException {
            Beginning next = beginnings.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
            if (next == null) {
                throw new IllegalStateException("nobody leads");
            }
            return next;
        }
    }
}
