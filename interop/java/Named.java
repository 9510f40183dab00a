import java.io.Closeable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The objects of one kind, by the names that commands give them. */
final class Named<T> {
    private record Owned<T>(String client, T object) {}

    private final String kind;
    private final Map<String, Owned<T>> byName = new ConcurrentHashMap<>();

    Named(String kind) {
        this.kind = kind;
    }

    /** Names an object, which belongs to the client of the command. */
    void put(Args args, T object) {
        put(args.name(), args.text("client", ""), object);
    }

    void put(String name, String client, T object) {
        if (byName.putIfAbsent(name, new Owned<>(client, object)) != null) {
            throw new IllegalArgumentException("there is a " + kind + " \"" + name + "\" already");
        }
    }

    T get(Args args) {
        return get(args.name());
    }

    T get(String name) {
        return found(name, byName.get(name));
    }

    T remove(Args args) {
        return remove(args.name());
    }

    T remove(String name) {
        return found(name, byName.remove(name));
    }

    List<String> names() {
        return new ArrayList<>(byName.keySet());
    }

    /** Removes the objects of a client, and closes those that have a close. */
    void closeOf(String client) {
        byName.values().removeIf(owned -> {
            if (!owned.client.equals(client)) {
                return false;
            }
            if (owned.object instanceof Closeable) {
                try {
                    ((Closeable) owned.object).close();
                } catch (Exception e) {
                    // The object ends with its client, in any state.
                }
            }
            return true;
        });
    }

    private T found(String name, Owned<T> owned) {
        if (owned == null) {
            throw new IllegalArgumentException("no " + kind + " \"" + name + "\"");
        }
        return owned.object;
    }
}
