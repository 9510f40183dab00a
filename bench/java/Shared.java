import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedCountListener;
import org.apache.curator.framework.recipes.shared.SharedCountReader;
import org.apache.curator.framework.state.ConnectionState;

/** Shared counts. */
final class Shared {
    private static final int PATIENCE_SECONDS = 30;

    private Shared() {}

    static void addTo(Map<String, Case> cases) {
        cases.put("shared-change", Shared::change);
    }

    /** Sets a count, again and again. The latency is from the call until the listener has it. */
    private static Result change(Load load) throws Exception {
        CuratorFramework client = load.target.client(0);
        String path = Target.newPath("shared");
        BlockingQueue<Long> changed = new LinkedBlockingQueue<>();
        SharedCount count = new SharedCount(client, path, 0);
        count.addListener(new SharedCountListener() {
            @Override
            public void countHasChanged(SharedCountReader reader, int value) {
                changed.add(System.nanoTime());
            }

            @Override
            public void stateChanged(CuratorFramework of, ConnectionState state) {
                // the connection stays
            }
        });
        count.start();
        int[] n = {0};
        Loops loops = new Loops();
        loops.add(() -> {
            long start = System.nanoTime();
            count.setCount(++n[0]);
            Long at = changed.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
            if (at == null) {
                throw new IllegalStateException("the listener is not called");
            }
            return at - start;
        });
        Result result = loops.run(load.seconds);
        count.close();
        client.delete().forPath(path);
        return result;
    }
}
