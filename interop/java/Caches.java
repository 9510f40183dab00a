import java.util.Map;
import java.util.TreeMap;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;

/** Caches of a tree. */
final class Caches {
    private final Scope scope;

    Caches(Scope scope) {
        this.scope = scope;
        cacheCommands();
    }

    private void cacheCommands() {
        Named<CuratorCache> caches = scope.named("cache");
        scope.on("cacheStart", args -> {
            String name = args.name();
            CuratorCache.Options[] options = args.texts("options").stream()
                    .map(CuratorCache.Options::valueOf)
                    .toArray(CuratorCache.Options[]::new);
            CuratorCache cache = CuratorCache.build(scope.client(args), args.path(), options);
            cache.listenable().addListener(CuratorCacheListener.builder()
                    .forInitialized(() -> scope.event("initialized", "name", name))
                    .forCreates(node -> event("created", name, null, node))
                    .forChanges((old, node) -> event("changed", name, old, node))
                    .forDeletes(old -> event("deleted", name, old, null))
                    .build());
            caches.put(args, cache);
            cache.start();
            return null;
        });
        scope.on("cacheDump", args -> {
            Map<String, String> nodes = new TreeMap<>();
            caches.get(args).stream().forEach(node -> nodes.put(node.getPath(), data(node)));
            return nodes;
        });
        scope.on("cacheClose", args -> {
            caches.remove(args).close();
            return null;
        });
    }

    /** Tells of a node before and after; one of them may be null. */
    private void event(String event, String name, ChildData old, ChildData node) {
        String path = (node == null ? old : node).getPath();
        scope.event(event, "name", name, "path", path, "data", data(node), "oldData", data(old));
    }

    private static String data(ChildData node) {
        return node == null ? null : Args.hex(node.getData());
    }
}
