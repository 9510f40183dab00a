import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.zookeeper.CreateMode;

/** Nodes that one client keeps, as many as the window is wide. */
final class Nodes {
    private static final int PATIENCE_SECONDS = 60;

    private Nodes() {}

    static void addTo(Map<String, Case> cases) {
        cases.put("nodes-return", Nodes::comeBack);
    }

    /**
     * Ends the session of the nodes, again and again. The latency is from the first deleted node until all nodes are
     * there again. Another client observes both.
     */
    private static Result comeBack(Load load) throws Exception {
        List<String> names = new ArrayList<>();
        for (int i = 0; i < load.window; i++) {
            names.add("node-" + i);
        }
        Kept kept = new Kept(load, names);
        List<PersistentNode> nodes = new ArrayList<>();
        byte[] data = new byte[load.payload];
        for (String path : kept.paths) {
            PersistentNode node = new PersistentNode(kept.client, CreateMode.EPHEMERAL, false, path, data);
            nodes.add(node);
            node.start();
        }
        for (PersistentNode node : nodes) {
            if (!node.waitForInitialCreate(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
                throw new IllegalStateException("a node is not there");
            }
        }
        kept.awaitComplete();
        Result result = kept.measure(load);
        for (PersistentNode node : nodes) {
            node.close();
        }
        kept.close();
        return result;
    }
}
