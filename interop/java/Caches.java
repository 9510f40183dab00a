import java.util.Map;
import java.util.TreeMap;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.cache.NodeCache;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.cache.TreeCache;

/** Caches of a tree. */
final class Caches {
    private final Scope scope;

    Caches(Scope scope) {
        this.scope = scope;
        cacheCommands();
        nodeCacheCommands();
        childrenCacheCommands();
        treeCacheCommands();
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

    private void nodeCacheCommands() {
        Named<NodeCache> caches = scope.named("nodeCache");
        scope.on("nodeCacheStart", args -> {
            String name = args.name();
            NodeCache cache = new NodeCache(scope.client(args), args.path());
            cache.getListenable().addListener(
                    () -> scope.event("NODE_CHANGED", "name", name, "data", data(cache.getCurrentData())));
            caches.put(args, cache);
            cache.start();
            return null;
        });
        scope.on("nodeCacheDump", args -> {
            Map<String, String> nodes = new TreeMap<>();
            add(nodes, caches.get(args).getCurrentData());
            return nodes;
        });
        scope.on("nodeCacheClose", args -> {
            caches.remove(args).close();
            return null;
        });
    }

    private void childrenCacheCommands() {
        Named<PathChildrenCache> caches = scope.named("childrenCache");
        scope.on("childrenCacheStart", args -> {
            String name = args.name();
            PathChildrenCache cache = new PathChildrenCache(scope.client(args), args.path(), true);
            cache.getListenable().addListener((client, ev) -> event(ev.getType(), name, ev.getData()));
            caches.put(args, cache);
            cache.start();
            return null;
        });
        scope.on("childrenCacheDump", args -> {
            Map<String, String> nodes = new TreeMap<>();
            caches.get(args).getCurrentData().forEach(node -> add(nodes, node));
            return nodes;
        });
        scope.on("childrenCacheClose", args -> {
            caches.remove(args).close();
            return null;
        });
    }

    private void treeCacheCommands() {
        Named<TreeCache> caches = scope.named("treeCache");
        scope.on("treeCacheStart", args -> {
            String name = args.name();
            TreeCache cache = new TreeCache(scope.client(args), args.path());
            cache.getListenable().addListener((client, ev) -> event(ev.getType(), name, ev.getData()));
            caches.put(args, cache);
            cache.start();
            return null;
        });
        scope.on("treeCacheDump", args -> {
            Map<String, String> nodes = new TreeMap<>();
            addTree(nodes, caches.get(args), args.path());
            return nodes;
        });
        scope.on("treeCacheClose", args -> {
            caches.remove(args).close();
            return null;
        });
    }

    /** Adds the nodes at and below a path. The iterator of a TreeCache fails where the last child was deleted. */
    private static void addTree(Map<String, String> nodes, TreeCache cache, String path) {
        add(nodes, cache.getCurrentData(path));
        Map<String, ChildData> children = cache.getCurrentChildren(path);
        if (children != null) {
            children.values().forEach(node -> addTree(nodes, cache, node.getPath()));
        }
    }

    private static void add(Map<String, String> nodes, ChildData node) {
        if (node != null) {
            nodes.put(node.getPath(), data(node));
        }
    }

    /** Reports an event of a node; node is null for an event of the connection. */
    private void event(Enum<?> type, String name, ChildData node) {
        if (node != null) {
            scope.event(type.name(), "name", name, "path", node.getPath(), "data", data(node));
        }
    }

    /** Reports a node before and after a change; one of them may be null. */
    private void event(String event, String name, ChildData old, ChildData node) {
        String path = (node == null ? old : node).getPath();
        scope.event(event, "name", name, "path", path, "data", data(node), "oldData", data(old));
    }

    private static String data(ChildData node) {
        return node == null ? null : Args.hex(node.getData());
    }
}
