import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.imps.ProtectedUtils;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/**
 * Java Curator as the other side of an interop test. It reads one command a line from standard input and writes
 * one answer a line to standard output, both JSON:
 *
 * <pre>
 * {"id":1,"cmd":"getData","path":"/a"}
 * {"id":1,"ok":true,"value":{"data":"00ff","stat":{"version":0,...}}}
 * {"id":1,"error":"NoNodeException","message":"KeeperErrorCode = NoNode for /a"}
 * {"event":"state","client":"","state":"SUSPENDED"}
 * </pre>
 *
 * Each command runs on a thread of its own, so one that blocks holds up no other. Commands that name the same
 * "thread" run on that one thread, in order, because Java's locks belong to threads. Lines with "event" come
 * unasked. Bytes are hex; an absent "data" is the client's default data. The program ends with its input.
 *
 * <p>A recipe adds a method that registers its commands, and a {@link Named} for its objects.
 */
public final class Peer {
    /** A command gives the value of its answer, which may be null. */
    private interface Command {
        Object run(Args args) throws Exception;
    }

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();
    private static final ThreadFactory DAEMONS = task -> {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        return thread;
    };

    private static final QueueSerializer<String> TEXT = new QueueSerializer<>() {
        @Override
        public byte[] serialize(String item) {
            return item.getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public String deserialize(byte[] bytes) {
            return new String(bytes, StandardCharsets.UTF_8);
        }
    };

    private final PrintStream out;
    private final Map<String, Command> commands = new ConcurrentHashMap<>();
    private final Map<String, Executor> threads = new ConcurrentHashMap<>();
    private final Executor anyThread = Executors.newCachedThreadPool(DAEMONS);
    private final Named<CuratorFramework> clients = new Named<>("client");
    private final Named<Mutex> mutexes = new Named<>("mutex");
    private final Named<LeaderLatch> latches = new Named<>("latch");
    private final Named<DistributedQueue<String>> queues = new Named<>("queue");
    private final Named<CuratorCache> caches = new Named<>("cache");

    public static void main(String[] args) throws IOException {
        PrintStream out = System.out;
        System.setOut(System.err); // only answers may go to standard output
        new Peer(out).serve(System.in);
    }

    private Peer(PrintStream out) {
        this.out = out;
        clientCommands();
        nodeCommands();
        nameCommands();
        mutexCommands();
        latchCommands();
        queueCommands();
        cacheCommands();
    }

    private void clientCommands() {
        commands.put("version", args -> {
            Properties properties = new Properties();
            String path = "/META-INF/maven/org.apache.curator/curator-framework/pom.properties";
            try (InputStream in = CuratorFramework.class.getResourceAsStream(path)) {
                properties.load(in);
            }
            return properties.getProperty("version");
        });
        commands.put("start", args -> {
            String name = args.text("client", "");
            int connectionTimeout = args.number("connectionTimeoutMs", 15_000);
            CuratorFramework client = CuratorFrameworkFactory.builder()
                    .connectString(args.text("connect"))
                    .namespace(args.text("namespace", null))
                    .sessionTimeoutMs(args.number("sessionTimeoutMs", 60_000))
                    .connectionTimeoutMs(connectionTimeout)
                    .ensembleTracker(args.flag("ensembleTracker"))
                    .retryPolicy(new ExponentialBackoffRetry(
                            args.number("retryBaseMs", 100), args.number("retryMax", 5)))
                    .build();
            client.getConnectionStateListenable().addListener((c, state) ->
                    event("state", "client", name, "state", state.toString()));
            clients.put(name, client);
            client.start();
            if (!client.blockUntilConnected(connectionTimeout, TimeUnit.MILLISECONDS)) {
                throw new IllegalStateException("not connected in time");
            }
            return sessionId(client);
        });
        commands.put("close", args -> {
            clients.remove(args.text("client", "")).close();
            return null;
        });
        commands.put("sessionId", args -> sessionId(client(args)));
        commands.put("killSession", args -> {
            killSession(client(args));
            return null;
        });
    }

    private void nodeCommands() {
        commands.put("create", args -> {
            // A builder changes itself: the types of the steps forbid some orders, the steps do not.
            var create = client(args).create();
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
            return data == null ? create.forPath(args.text("path")) : create.forPath(args.text("path"), data);
        });
        commands.put("getData", args -> {
            Stat stat = new Stat();
            var get = client(args).getData();
            if (args.flag("compressed")) {
                get.decompressed();
            }
            byte[] data = get.storingStatIn(stat).forPath(args.text("path"));
            return Map.of("data", HEX.formatHex(data), "stat", fields(stat));
        });
        commands.put("setData", args -> {
            var set = client(args).setData();
            if (args.flag("compressed")) {
                set.compressed();
            }
            set.withVersion(args.number("version", -1));
            byte[] data = args.bytes("data");
            return fields(data == null ? set.forPath(args.text("path")) : set.forPath(args.text("path"), data));
        });
        commands.put("delete", args -> {
            var delete = client(args).delete();
            if (args.flag("guaranteed")) {
                delete.guaranteed();
            }
            if (args.flag("children")) {
                delete.deletingChildrenIfNeeded();
            }
            delete.withVersion(args.number("version", -1)).forPath(args.text("path"));
            return null;
        });
        commands.put("exists", args -> {
            Stat stat = client(args).checkExists().forPath(args.text("path"));
            return stat == null ? null : fields(stat);
        });
        commands.put("children", args -> client(args).getChildren().forPath(args.text("path")));
    }

    private void nameCommands() {
        commands.put("isProtected", args -> ProtectedUtils.isProtectedZNode(args.text("name")));
        commands.put("normalize", args -> ProtectedUtils.normalize(args.text("name")));
    }

    private void mutexCommands() {
        commands.put("mutexNew", args -> {
            mutexes.put(args.text("name"), new Mutex(client(args), args.text("path"), args.bytes("lockData")));
            return null;
        });
        commands.put("mutexAcquire", args -> {
            Mutex mutex = mutexes.get(args.text("name"));
            int timeout = args.number("timeoutMs", -1);
            if (timeout >= 0) {
                return mutex.acquire(timeout, TimeUnit.MILLISECONDS);
            }
            mutex.acquire();
            return true;
        });
        commands.put("mutexRelease", args -> {
            mutexes.get(args.text("name")).release();
            return null;
        });
        commands.put("mutexPath", args -> mutexes.get(args.text("name")).getLockPath());
        commands.put("mutexOwned", args -> mutexes.get(args.text("name")).isOwnedByCurrentThread());
        commands.put("mutexParticipants", args -> mutexes.get(args.text("name")).getParticipantNodes());
        commands.put("makeRevocable", args -> {
            String name = args.text("name");
            mutexes.get(name).makeRevocable(mutex -> event("revoked", "name", name));
            return null;
        });
        commands.put("revoke", args -> {
            Revoker.attemptRevoke(client(args), args.text("path"));
            return null;
        });
    }

    private void latchCommands() {
        commands.put("latchStart", args -> {
            String name = args.text("name");
            LeaderLatch latch = new LeaderLatch(client(args), args.text("path"), args.text("participant", ""));
            latch.addListener(new LeaderLatchListener() {
                @Override
                public void isLeader() {
                    event("isLeader", "name", name);
                }

                @Override
                public void notLeader() {
                    event("notLeader", "name", name);
                }
            });
            latches.put(name, latch);
            latch.start();
            return null;
        });
        commands.put("latchAwait", args ->
                latches.get(args.text("name")).await(args.number("timeoutMs", 0), TimeUnit.MILLISECONDS));
        commands.put("latchHasLeadership", args -> latches.get(args.text("name")).hasLeadership());
        commands.put("latchLeader", args -> latches.get(args.text("name")).getLeader().getId());
        commands.put("latchParticipants", args ->
                latches.get(args.text("name")).getParticipants().stream().map(Participant::getId).sorted().toList());
        commands.put("latchClose", args -> {
            latches.remove(args.text("name")).close(
                    LeaderLatch.CloseMode.valueOf(args.text("mode", "SILENT")));
            return null;
        });
    }

    private void queueCommands() {
        commands.put("queueStart", args -> {
            String name = args.text("name");
            QueueConsumer<String> consumer = !args.flag("consume") ? null : new QueueConsumer<>() {
                @Override
                public void consumeMessage(String message) {
                    event("item", "name", name, "item", message);
                }

                @Override
                public void stateChanged(CuratorFramework client, ConnectionState state) {
                    // the client's own listener tells
                }
            };
            QueueBuilder<String> builder =
                    QueueBuilder.builder(client(args), consumer, TEXT, args.text("path"));
            if (args.text("lockPath", null) != null) {
                builder.lockPath(args.text("lockPath"));
            }
            DistributedQueue<String> queue = builder.buildQueue();
            queues.put(name, queue);
            queue.start();
            return null;
        });
        commands.put("queuePut", args -> {
            queues.get(args.text("name")).put(args.text("item"));
            return null;
        });
        commands.put("queueFlush", args ->
                queues.get(args.text("name")).flushPuts(args.number("timeoutMs", 0), TimeUnit.MILLISECONDS));
        commands.put("queueClose", args -> {
            queues.remove(args.text("name")).close();
            return null;
        });
    }

    private void cacheCommands() {
        commands.put("cacheStart", args -> {
            String name = args.text("name");
            CuratorCache cache = CuratorCache.build(client(args), args.text("path"));
            cache.listenable().addListener(CuratorCacheListener.builder()
                    .forInitialized(() -> event("initialized", "name", name))
                    .forCreates(node -> event("created", "name", name, "path", node.getPath()))
                    .forChanges((old, node) -> event("changed", "name", name, "path", node.getPath(),
                            "item", new String(node.getData(), StandardCharsets.UTF_8)))
                    .forDeletes(node -> event("deleted", "name", name, "path", node.getPath()))
                    .build());
            caches.put(name, cache);
            cache.start();
            return null;
        });
        commands.put("cacheDump", args -> {
            Map<String, String> nodes = new TreeMap<>();
            caches.get(args.text("name")).stream().forEach(node ->
                    nodes.put(node.getPath(), new String(node.getData(), StandardCharsets.UTF_8)));
            return nodes;
        });
        commands.put("cacheClose", args -> {
            caches.remove(args.text("name")).close();
            return null;
        });
    }

    /** Reads commands until the input ends, then closes the clients and ends the program. */
    private void serve(InputStream in) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode request = JSON.readTree(line);
            Executor thread = anyThread;
            if (request.hasNonNull("thread")) {
                thread = threads.computeIfAbsent(
                        request.get("thread").asText(), name -> Executors.newSingleThreadExecutor(DAEMONS));
            }
            thread.execute(() -> answer(new Args(request)));
        }
        clients.forEach(CuratorFramework::close);
        System.exit(0);
    }

    /** Runs one command and writes its answer. */
    private void answer(Args args) {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("id", args.json.path("id").asLong());
        try {
            Command command = commands.get(args.text("cmd"));
            if (command == null) {
                throw new IllegalArgumentException("no command " + args.text("cmd"));
            }
            Object value = command.run(args);
            answer.put("ok", true);
            answer.put("value", value);
        } catch (Throwable e) {
            answer.put("error", e.getClass().getSimpleName());
            answer.put("message", String.valueOf(e.getMessage()));
        }
        write(answer);
    }

    /** Tells of something that happened by itself; the fields are names and values in turn. */
    private void event(String event, String... fields) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("event", event);
        for (int i = 0; i < fields.length; i += 2) {
            line.put(fields[i], fields[i + 1]);
        }
        write(line);
    }

    private synchronized void write(Map<String, Object> line) {
        try {
            out.println(JSON.writeValueAsString(line));
            out.flush();
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private CuratorFramework client(Args args) {
        return clients.get(args.text("client", ""));
    }

    private static long sessionId(CuratorFramework client) throws Exception {
        return client.getZookeeperClient().getZooKeeper().getSessionId();
    }

    /** Ends the client's session at the server, as a second user of the session who closes it. */
    private static void killSession(CuratorFramework client) throws Exception {
        ZooKeeper own = client.getZookeeperClient().getZooKeeper();
        CountDownLatch connected = new CountDownLatch(1);
        try (ZooKeeper second = new ZooKeeper(
                client.getZookeeperClient().getCurrentConnectionString(),
                own.getSessionTimeout(),
                event -> {
                    if (event.getState() == KeeperState.SyncConnected) {
                        connected.countDown();
                    }
                },
                own.getSessionId(),
                own.getSessionPasswd())) {
            if (!connected.await(10, TimeUnit.SECONDS)) {
                throw new IllegalStateException("the second connection did not come about");
            }
        }
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

    /** What a command was given. */
    private record Args(JsonNode json) {
        String text(String key) {
            if (!json.hasNonNull(key)) {
                throw new IllegalArgumentException("no argument " + key);
            }
            return json.get(key).asText();
        }

        String text(String key, String absent) {
            return json.path(key).asText(absent);
        }

        int number(String key, int absent) {
            return json.path(key).asInt(absent);
        }

        boolean flag(String key) {
            return json.path(key).asBoolean();
        }

        byte[] bytes(String key) {
            return json.hasNonNull(key) ? HEX.parseHex(json.get(key).asText()) : null;
        }
    }

    /** The objects of one kind, by the names that commands give them. */
    private static final class Named<T> {
        private final String kind;
        private final Map<String, T> byName = new ConcurrentHashMap<>();

        Named(String kind) {
            this.kind = kind;
        }

        void put(String name, T object) {
            if (byName.putIfAbsent(name, object) != null) {
                throw new IllegalArgumentException("there is a " + kind + " \"" + name + "\" already");
            }
        }

        T get(String name) {
            return found(name, byName.get(name));
        }

        T remove(String name) {
            return found(name, byName.remove(name));
        }

        void forEach(Consumer<T> action) {
            byName.values().forEach(action);
        }

        private T found(String name, T object) {
            if (object == null) {
                throw new IllegalArgumentException("no " + kind + " \"" + name + "\"");
            }
            return object;
        }
    }

    /** A mutex with data of the test's choice in its nodes, which tells the path of the node it holds. */
    private static final class Mutex extends InterProcessMutex {
        private final byte[] lockData;

        Mutex(CuratorFramework client, String path, byte[] lockData) {
            super(client, path);
            this.lockData = lockData;
        }

        @Override
        protected byte[] getLockNodeBytes() {
            return lockData;
        }

        @Override
        protected String getLockPath() {
            return super.getLockPath();
        }
    }
}
