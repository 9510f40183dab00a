import java.io.Closeable;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedCountListener;
import org.apache.curator.framework.recipes.shared.SharedCountReader;
import org.apache.curator.framework.recipes.shared.VersionedValue;
import org.apache.curator.framework.state.ConnectionState;

/** Shared counts. */
final class Counts {
    private final Scope scope;
    private final Named<Count> counts;

    Counts(Scope scope) {
        this.scope = scope;
        counts = scope.named("count");
        countCommands();
    }

    Named<Count> counts() {
        return counts;
    }

    private void countCommands() {
        scope.on("countStart", args -> {
            String name = args.name();
            SharedCount recipe = new SharedCount(scope.client(args), args.path(), args.number("seed", 0));
            recipe.addListener(new SharedCountListener() {
                @Override
                public void countHasChanged(SharedCountReader count, int value) {
                    scope.event("counted", "name", name, "item", String.valueOf(value));
                }

                @Override
                public void stateChanged(CuratorFramework client, ConnectionState state) {
                    // the client's own listener reports it
                }
            });
            counts.put(args, new Count(recipe, new AtomicReference<>()));
            recipe.start();
            return null;
        });
        scope.on("countGet", args -> {
            Count count = counts.get(args);
            VersionedValue<Integer> read = count.recipe.getVersionedValue();
            count.read.set(read);
            return Map.of("value", read.getValue(), "version", read.getVersion());
        });
        scope.on("countSet", args -> {
            counts.get(args).recipe.setCount(args.number("value"));
            return null;
        });
        scope.on("countTrySet", args -> {
            Count count = counts.get(args);
            return count.recipe.trySetCount(count.read.get(), args.number("value"));
        });
        scope.on("countClose", args -> {
            counts.remove(args).close();
            return null;
        });
    }

    /** A count and its last value: Java compares with no other version. */
    record Count(SharedCount recipe, AtomicReference<VersionedValue<Integer>> read) implements Closeable {
        @Override
        public void close() throws IOException {
            recipe.close();
        }
    }
}
