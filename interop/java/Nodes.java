import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.curator.framework.imps.ProtectedUtils;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.data.Stat;

/** Znodes, without a recipe. */
final class Nodes {
    private final Scope scope;

    Nodes(Scope scope) {
        this.scope = scope;
        nodeCommands();
        nameCommands();
    }

    private void nodeCommands() {
        scope.on("create", args -> {
            // A builder changes itself. The types of the steps forbid some orders; the steps do not.
            var create = scope.client(args).create();
            if (args.flag("parents")) {
                create.creatingParentsIfNeeded();
            }
            if (args.flag("containers")) {
                create.creatingParentContainersIfNeeded();
            }
            if (args.flag("protection")) {
                create.withProtection();
            }
            if (args.flag("compressed")) {
                create.compressed();
            }
            create.withMode(CreateMode.valueOf(args.text("mode", "PERSISTENT")));
            byte[] data = args.bytes("data");
            return data == null ? create.forPath(args.path()) : create.forPath(args.path(), data);
        });
        scope.on("getData", args -> {
            Stat stat = new Stat();
            var get = scope.client(args).getData();
            if (args.flag("compressed")) {
                get.decompressed();
            }
            byte[] data = get.storingStatIn(stat).forPath(args.path());
            Map<String, Object> node = new LinkedHashMap<>();
            node.put("data", Args.hex(data));
            node.put("stat", fields(stat));
            return node;
        });
        scope.on("setData", args -> {
            var set = scope.client(args).setData();
            if (args.flag("compressed")) {
                set.compressed();
            }
            set.withVersion(args.number("version", -1));
            byte[] data = args.bytes("data");
            return fields(data == null ? set.forPath(args.path()) : set.forPath(args.path(), data));
        });
        scope.on("delete", args -> {
            var delete = scope.client(args).delete();
            if (args.flag("guaranteed")) {
                delete.guaranteed();
            }
            if (args.flag("children")) {
                delete.deletingChildrenIfNeeded();
            }
            delete.withVersion(args.number("version", -1)).forPath(args.path());
            return null;
        });
        scope.on("exists", args -> {
            Stat stat = scope.client(args).checkExists().forPath(args.path());
            return stat == null ? null : fields(stat);
        });
        scope.on("children", args -> scope.client(args).getChildren().forPath(args.path()));
    }

    private void nameCommands() {
        scope.on("isProtected", args -> ProtectedUtils.isProtectedZNode(args.name()));
        scope.on("normalize", args -> ProtectedUtils.normalize(args.name()));
    }

    private static Map<String, Object> fields(Stat stat) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("czxid", stat.getCzxid());
        fields.put("mzxid", stat.getMzxid());
        fields.put("pzxid", stat.getPzxid());
        fields.put("version", stat.getVersion());
        fields.put("cversion", stat.getCversion());
        fields.put("ephemeralOwner", stat.getEphemeralOwner());
        fields.put("dataLength", stat.getDataLength());
        fields.put("numChildren", stat.getNumChildren());
        return fields;
    }
}
