import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import org.apache.curator.framework.CuratorFramework;

/**
 * The clients and recipes of one test, and the commands to them.
 *
 * <p>Each command runs on a thread of its own, so one that blocks delays no other. Commands that name the same
 * "thread" run on that one thread, in order, because Java's locks belong to threads. Commands to such a lock that name
 * no thread run on the thread of the lock.
 *
 * <p>A recipe adds a method that registers its commands, and a {@link Named} for its objects.
 */
final class Scope {
    /** A command returns the value of its answer, which may be null. */
    interface Command {
        Object run(Args args) throws Exception;
    }

    /** A command and, if its objects belong to threads, their kind. */
    private record Registered(Command command, String threadOf) {}

    private static final ThreadFactory DAEMONS = task -> {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        return thread;
    };

    private static final Executor ANY_THREAD = Executors.newCachedThreadPool(DAEMONS);

    private final String name;
    private final Peer peer;
    private final Map<String, Registered> commands = new ConcurrentHashMap<>();
    private final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();
    private final List<Named<?>> objects = new ArrayList<>();
    private final Clients clients;

    Scope(String name, Peer peer) {
        this.name = name;
        this.peer = peer;
        on("end", args -> {
            peer.end(this);
            return null;
        });
        clients = new Clients(this);
        new Nodes(this);
        new Locks(this, new Counts(this).counts());
        new Shared(this);
        new Barriers(this);
        new Counters(this);
        new Members(this);
        new Instances(this);
        new Discovery(this);
        new Leaders(this);
        new Queues(this);
        new Caches(this);
    }

    String name() {
        return name;
    }

    /** Registers a command. */
    void on(String command, Command action) {
        on(command, null, action);
    }

    /** Registers a command to an object of a kind that belongs to the thread that uses it. */
    void on(String command, String threadOf, Command action) {
        commands.put(command, new Registered(action, threadOf));
    }

    /** Returns a new set of objects that close with their client. */
    <T> Named<T> named(String kind) {
        Named<T> named = new Named<>(kind);
        objects.add(named);
        return named;
    }

    CuratorFramework client(Args args) {
        return clients.of(args);
    }

    /** Writes an event; the fields are names and values in turn. */
    void event(String event, Object... fields) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("event", event);
        line.put("scope", name);
        for (int i = 0; i < fields.length; i += 2) {
            line.put((String) fields[i], fields[i + 1]);
        }
        peer.write(line);
    }

    /** Runs a command on its thread. */
    void take(Args args) {
        Registered registered = commands.get(args.text("cmd"));
        if (registered == null) {
            peer.fail(args, new IllegalArgumentException("no command " + args.text("cmd")));
            return;
        }
        String thread = args.text("thread", null);
        if (thread == null && registered.threadOf != null) {
            thread = registered.threadOf + " " + args.text("name", "");
        }
        Executor executor = thread == null ? ANY_THREAD : threads.computeIfAbsent(
                thread, absent -> Executors.newSingleThreadExecutor(DAEMONS));
        executor.execute(() -> run(registered.command, args));
    }

    private void run(Command command, Args args) {
        Object value;
        try {
            value = command.run(args);
        } catch (Throwable e) {
            peer.fail(args, e);
            return;
        }
        peer.answer(args, value);
    }

    /** Closes the objects of a client. */
    void closeObjects(String client) {
        objects.forEach(named -> named.closeOf(client));
    }

    void close() {
        clients.close();
        threads.values().forEach(ExecutorService::shutdownNow);
    }
}
