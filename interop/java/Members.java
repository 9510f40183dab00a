import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;
import org.apache.zookeeper.CreateMode;

/** Persistent nodes and group members. */
final class Members {
    private final Scope scope;

    Members(Scope scope) {
        this.scope = scope;
        nodeCommands();
        ttlNodeCommands();
        memberCommands();
    }

    private void nodeCommands() {
        Named<PersistentNode> nodes = scope.named("persistent node");
        scope.on("persistentNodeNew", args -> {
            PersistentNode node = new PersistentNode(scope.client(args), CreateMode.valueOf(args.text("mode")),
                    args.flag("protection"), args.path(), args.bytes("data"));
            nodes.put(args, node);
            node.start();
            node.waitForInitialCreate(args.timeout(), TimeUnit.MILLISECONDS);
            return node.getActualPath();
        });
        scope.on("persistentNodeSetData", args -> {
            nodes.get(args).setData(args.bytes("data"));
            return null;
        });
        scope.on("persistentNodeClose", args -> {
            nodes.remove(args).close();
            return null;
        });
    }

    private void ttlNodeCommands() {
        Named<PersistentTtlNode> nodes = scope.named("persistent TTL node");
        scope.on("persistentTtlNodeNew", args -> {
            PersistentTtlNode node = new PersistentTtlNode(
                    scope.client(args), args.path(), args.longNumber("ttlMs"), args.bytes("data"));
            nodes.put(args, node);
            node.start();
            return node.waitForInitialCreate(args.timeout(), TimeUnit.MILLISECONDS);
        });
    }

    private void memberCommands() {
        Named<GroupMember> members = scope.named("group member");
        scope.on("groupMemberNew", args -> {
            GroupMember member =
                    new GroupMember(scope.client(args), args.path(), args.text("member"), args.bytes("data"));
            members.put(args, member);
            member.start();
            return null;
        });
        scope.on("groupMemberSetData", args -> {
            members.get(args).setThisData(args.bytes("data"));
            return null;
        });
        scope.on("groupMemberCurrent", args -> {
            Map<String, Object> current = new LinkedHashMap<>();
            members.get(args).getCurrentMembers().forEach((id, data) -> current.put(id, Args.hex(data)));
            return current;
        });
        scope.on("groupMemberClose", args -> {
            members.remove(args).close();
            return null;
        });
    }
}
