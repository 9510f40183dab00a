import java.io.Closeable;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.shared.SharedValue;
import org.apache.curator.framework.recipes.shared.SharedValueListener;
import org.apache.curator.framework.recipes.shared.SharedValueReader;
import org.apache.curator.framework.recipes.shared.VersionedValue;
import org.apache.curator.framework.state.ConnectionState;

/** Shared values. */
final class Shared {
    private final Scope scope;

    Shared(Scope scope) {
        this.scope = scope;
        valueCommands();
    }

    private void valueCommands() {
        Named<Value> values = scope.named("shared value");
        scope.on("sharedStart", args -> {
            String name = args.name();
            SharedValue recipe = new SharedValue(scope.client(args), args.path(), args.bytes("seed"));
            recipe.getListenable().addListener(new SharedValueListener() {
                @Override
                public void valueHasChanged(SharedValueReader reader, byte[] value) {
                    scope.event("valueChanged", "name", name, "item", Args.hex(value));
                }

                @Override
                public void stateChanged(CuratorFramework client, ConnectionState state) {
                    // the client's own listener reports it
                }
            });
            values.put(args, new Value(recipe, new AtomicReference<>()));
            recipe.start();
            return null;
        });
        scope.on("sharedGet", args -> {
            Value value = values.get(args);
            VersionedValue<byte[]> read = value.recipe.getVersionedValue();
            value.read.set(read);
            return Map.of("value", Args.hex(read.getValue()), "version", read.getVersion());
        });
        scope.on("sharedSet", args -> {
            values.get(args).recipe.setValue(args.bytes("data"));
            return null;
        });
        scope.on("sharedTrySet", args -> {
            Value value = values.get(args);
            return value.recipe.trySetValue(value.read.get(), args.bytes("data"));
        });
        scope.on("sharedClose", args -> {
            values.remove(args).close();
            return null;
        });
    }

    /** A value and what was read last: Java compares with no other version. */
    private record Value(SharedValue recipe, AtomicReference<VersionedValue<byte[]>> read) implements Closeable {
        @Override
        public void close() throws IOException {
            recipe.close();
        }
    }
}
