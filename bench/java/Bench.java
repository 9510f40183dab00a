import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.curator.RetryPolicy;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.api.BackgroundCallback;
import org.apache.curator.framework.api.transaction.CuratorOp;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.KeeperException;

/**
 * The workloads of Java Curator in the benchmarks. It reads one command a line from standard input and writes
 * one answer a line to standard output, both JSON, one after the other:
 *
 * <pre>
 * {"id":1,"cmd":"open","target":"real","connect":"127.0.0.1:2181/x"}
 * {"id":2,"cmd":"run","target":"real","case":"getData-sync","threads":16,"seconds":1.0,"window":1000,"payload":100}
 * {"id":2,"ok":true,"value":{"ops":9,"errors":0,"elapsedNs":9,"cpuNs":9,"p50us":9.0,"p99us":9.0}}
 * {"id":3,"cmd":"memory"}
 * {"id":4,"cmd":"close","target":"real"}
 * </pre>
 *
 * Several targets may be open. Whatever a run needs is made before its clock starts and removed after it has
 * stopped. cpuNs is the CPU time of the whole process, its garbage collector and compiler included. Latencies
 * are of the whole operation where the case does not say otherwise. The program ends with its input.
 */
public final class Bench {
    /** A case runs its load once. */
    private interface Case {
        Result run(Load load) throws Exception;
    }

    /** One operation; it gives the latency to record in ns, below 0 for none. */
    private interface Operation {
        long run() throws Exception;
    }

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final OperatingSystemMXBean OS =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private static final String BASE = "/bench-java";
    private static final int DELETES_AT_ONCE = 500;

    private final Map<String, Case> cases = new LinkedHashMap<>();
    private final Map<String, Target> targets = new HashMap<>();
    private int runs;

    public static void main(String[] args) throws IOException {
        PrintStream out = System.out;
        System.setOut(System.err); // only answers may go to standard output
        Bench bench = new Bench();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            out.println(JSON.writeValueAsString(bench.answer(JSON.readTree(line))));
            out.flush();
        }
        bench.targets.values().forEach(Target::close);
        System.exit(0);
    }

    private Bench() {
        cases.put("create-sync", this::createSync);
        cases.put("getData-sync", this::getDataSync);
        cases.put("create-bg", this::createBackground);
        cases.put("getData-bg", this::getDataBackground);
        cases.put("mutex-uncontended", this::mutexUncontended);
        cases.put("mutex-contended", this::mutexContended);
        cases.put("connect", this::connect);
        cases.put("reconnect", this::reconnect);
        cases.put("waiters", this::waiters);
    }

    private Map<String, Object> answer(JsonNode request) {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("id", request.path("id").asLong());
        try {
            Object value = obey(request);
            answer.put("ok", true);
            answer.put("value", value);
        } catch (Exception e) {
            answer.put("error", e.getClass().getSimpleName());
            answer.put("message", String.valueOf(e.getMessage()));
        }
        return answer;
    }

    private Object obey(JsonNode request) throws Exception {
        String target = request.path("target").asText();
        switch (request.path("cmd").asText()) {
            case "open":
                close(target);
                targets.put(target, new Target(request.path("connect").asText()));
                return null;
            case "run":
                Case work = cases.get(request.path("case").asText());
                if (work == null) {
                    throw new IllegalArgumentException("the cases are " + cases.keySet());
                }
                if (!targets.containsKey(target)) {
                    throw new IllegalArgumentException("target \"" + target + "\" is not open");
                }
                runs++;
                return work.run(new Load(targets.get(target), request)).fields();
            case "memory":
                return memory();
            case "close":
                close(target);
                return null;
            default:
                throw new IllegalArgumentException("the commands are open, run, memory, close");
        }
    }

    private void close(String target) {
        if (targets.containsKey(target)) {
            targets.remove(target).close();
        }
    }

    // Single operations.

    private Result createSync(Load load) throws Exception {
        CuratorFramework client = load.target.client(0);
        Scratch scratch = new Scratch(client, load.threads);
        byte[] data = new byte[load.payload];
        List<Operation> loops = new ArrayList<>();
        for (int i = 0; i < load.threads; i++) {
            int thread = i;
            loops.add(() -> {
                String path = scratch.next(thread);
                long start = System.nanoTime();
                client.create().forPath(path, data);
                return System.nanoTime() - start;
            });
        }
        Result result = loop(load.seconds, loops);
        scratch.remove();
        return result;
    }

    private Result getDataSync(Load load) throws Exception {
        CuratorFramework client = load.target.client(0);
        String path = dataNode(client, load.payload);
        Operation get = () -> {
            long start = System.nanoTime();
            client.getData().forPath(path);
            return System.nanoTime() - start;
        };
        List<Operation> loops = new ArrayList<>();
        for (int i = 0; i < load.threads; i++) {
            loops.add(get);
        }
        return loop(load.seconds, loops);
    }

    private Result createBackground(Load load) throws Exception {
        CuratorFramework client = load.target.client(0);
        Scratch scratch = new Scratch(client, 1);
        byte[] data = new byte[load.payload];
        Result result = background(load, callback ->
                client.create().inBackground(callback, System.nanoTime()).forPath(scratch.next(0), data));
        scratch.remove();
        return result;
    }

    private Result getDataBackground(Load load) throws Exception {
        CuratorFramework client = load.target.client(0);
        String path = dataNode(client, load.payload);
        return background(load, callback ->
                client.getData().inBackground(callback, System.nanoTime()).forPath(path));
    }

    /** Submits one operation in the background, with the time as the callback's context. */
    private interface Submission {
        void submit(BackgroundCallback callback) throws Exception;
    }

    /** Keeps as many operations in flight as the window is wide; the clock stops after the last answer. */
    private static Result background(Load load, Submission submission) throws Exception {
        Result result = new Result();
        Semaphore window = new Semaphore(load.window);
        BackgroundCallback callback = (client, event) -> { // all on the client's event thread
            result.add(System.nanoTime() - (Long) event.getContext());
            if (event.getResultCode() != 0) {
                result.fail(event.getPath() + ": " + KeeperException.Code.get(event.getResultCode()));
            }
            window.release();
        };
        result.start();
        long end = System.nanoTime() + load.nanos();
        while (System.nanoTime() < end) {
            window.acquire();
            submission.submit(callback);
        }
        window.acquire(load.window);
        result.stop();
        return result;
    }

    // Locks. An operation is one acquire with its release.

    /** Each thread has a lock of its own; all use one client. */
    private Result mutexUncontended(Load load) throws Exception {
        List<Operation> loops = new ArrayList<>();
        for (int i = 0; i < load.threads; i++) {
            InterProcessMutex mutex = new InterProcessMutex(load.target.client(0), BASE + "/lock-" + i);
            loops.add(() -> {
                long start = System.nanoTime();
                mutex.acquire();
                mutex.release();
                return System.nanoTime() - start;
            });
        }
        return loop(load.seconds, loops);
    }

    /** Each thread has a client of its own; all want one lock. The latency is of the hand-over. */
    private Result mutexContended(Load load) throws Exception {
        HandOver handOver = new HandOver();
        List<Operation> loops = new ArrayList<>();
        for (int i = 0; i < load.threads; i++) {
            InterProcessMutex mutex = new InterProcessMutex(load.target.client(i), BASE + "/contended");
            loops.add(() -> handOver.through(mutex));
        }
        return loop(load.seconds, loops);
    }

    /**
     * One client has a thread for each of "waiters", all of which want the lock it holds. Memory is read before
     * they come and when all wait. The run is the lock going through all of them, its latency the hand-over.
     */
    private Result waiters(Load load) throws Exception {
        CuratorFramework client = load.target.client(0);
        String path = BASE + "/waiters";
        InterProcessMutex first = new InterProcessMutex(client, path);
        first.acquire();
        Result result = new Result();
        result.extra("before", memory());

        HandOver handOver = new HandOver();
        List<Thread> threads = new ArrayList<>();
        long start = System.nanoTime();
        for (int i = 0; i < load.waiters; i++) {
            InterProcessMutex mutex = new InterProcessMutex(client, path);
            Thread thread = new Thread(() -> {
                try {
                    result.add(handOver.through(mutex));
                } catch (Exception e) {
                    result.fail(e);
                }
            });
            threads.add(thread);
            thread.start();
        }
        // Answers come in order: what a thread still asked for at one look is there at the next.
        for (int calm = 0; calm < 3; calm++) {
            TimeUnit.MILLISECONDS.sleep(20);
            if (client.getChildren().forPath(path).size() <= load.waiters || !allWait(threads)) {
                calm = -1;
            }
        }
        result.extra("readyNs", System.nanoTime() - start);
        result.extra("waiting", memory());

        result.start();
        handOver.released = System.nanoTime();
        first.release();
        for (Thread thread : threads) {
            thread.join();
        }
        result.stop();
        return result;
    }

    private static boolean allWait(List<Thread> threads) {
        return threads.stream().allMatch(thread -> thread.getState() == Thread.State.WAITING);
    }

    /** Measures from the call of one holder's release to the return of the next one's acquire. */
    private static final class HandOver {
        private volatile long released; // written by the holder alone

        long through(InterProcessMutex mutex) throws Exception {
            mutex.acquire();
            long latency = released == 0 ? -1 : System.nanoTime() - released;
            released = System.nanoTime();
            mutex.release();
            return latency;
        }
    }

    // Connections.

    /** An operation is a client's whole life; the latency is from its start to its first answer. */
    private Result connect(Load load) throws Exception {
        return loop(load.seconds, List.of(() -> {
            try (CuratorFramework client = client(load.target.connect, new ExponentialBackoffRetry(100, 5))) {
                long start = System.nanoTime();
                client.start();
                client.checkExists().forPath("/");
                return System.nanoTime() - start;
            }
        }));
    }

    /**
     * Asks all the time while somebody else cuts the connection. An operation is an interruption, its latency
     * from the last answer before to the first one after it. The client does not retry by itself, so nothing
     * but the connection is waited for.
     */
    private Result reconnect(Load load) throws Exception {
        Result result = new Result();
        try (CuratorFramework client = client(load.target.connect, new RetryNTimes(0, 0))) {
            client.start();
            client.blockUntilConnected();
            client.checkExists().forPath("/");
            long answers = 0;
            result.start();
            long last = System.nanoTime();
            long end = last + load.nanos();
            boolean cut = false;
            while (cut || last < end) {
                try {
                    client.checkExists().forPath("/");
                } catch (KeeperException.ConnectionLossException e) {
                    cut = true;
                    LockSupport.parkNanos(1_000_000);
                    continue;
                }
                long now = System.nanoTime();
                if (cut) {
                    result.add(now - last);
                }
                cut = false;
                last = now;
                answers++;
            }
            result.stop();
            result.extra("answers", answers);
        }
        return result;
    }

    // What the cases are made of.

    /** Runs each operation over and over on a thread of its own until the time is up. */
    private static Result loop(double seconds, List<Operation> loops) throws InterruptedException {
        Result total = new Result();
        List<Result> results = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        CountDownLatch ready = new CountDownLatch(loops.size());
        CountDownLatch go = new CountDownLatch(1);
        for (Operation operation : loops) {
            Result result = new Result();
            results.add(result);
            Thread thread = new Thread(() -> {
                ready.countDown();
                try {
                    go.await();
                    long end = System.nanoTime() + (long) (seconds * 1e9);
                    while (System.nanoTime() < end) {
                        result.add(operation.run());
                    }
                } catch (Exception e) {
                    result.fail(e); // and this loop is over
                }
            });
            threads.add(thread);
            thread.start();
        }
        ready.await();
        total.start();
        go.countDown();
        for (Thread thread : threads) {
            thread.join();
        }
        total.stop();
        results.forEach(total::merge);
        return total;
    }

    /** Gives the path of a node with so much data. */
    private static String dataNode(CuratorFramework client, int payload) throws Exception {
        String path = BASE + "/data";
        client.create().orSetData().creatingParentsIfNeeded().forPath(path, new byte[payload]);
        return path;
    }

    private static CuratorFramework client(String connect, RetryPolicy retryPolicy) {
        return CuratorFrameworkFactory.builder()
                .connectString(connect)
                .sessionTimeoutMs(10_000)
                .connectionTimeoutMs(15_000)
                .ensembleTracker(false)
                .retryPolicy(retryPolicy)
                .build();
    }

    /** Memory after a collection; rssKB is -1 where the system does not tell. */
    private static Map<String, Object> memory() throws IOException {
        System.gc();
        Runtime runtime = Runtime.getRuntime();
        Map<String, Object> memory = new LinkedHashMap<>();
        memory.put("heapBytes", runtime.totalMemory() - runtime.freeMemory());
        memory.put("rssKB", residentKB());
        memory.put("threads", ManagementFactory.getThreadMXBean().getThreadCount());
        return memory;
    }

    private static long residentKB() throws IOException {
        Path status = Path.of("/proc/self/status");
        if (Files.exists(status)) {
            for (String line : Files.readAllLines(status)) {
                if (line.startsWith("VmRSS:")) {
                    return Long.parseLong(line.replaceAll("\\D", ""));
                }
            }
        }
        return -1;
    }

    /** What a run was asked for. */
    private static final class Load {
        final Target target;
        final int threads;
        final double seconds;
        final int window;
        final int payload;
        final int waiters;

        Load(Target target, JsonNode request) {
            this.target = target;
            threads = request.path("threads").asInt(1);
            seconds = request.path("seconds").asDouble(1);
            window = request.path("window").asInt(1000);
            payload = request.path("payload").asInt(100);
            waiters = request.path("waiters").asInt(1000);
        }

        long nanos() {
            return (long) (seconds * 1e9);
        }
    }

    /** A server, and clients connected to it, which stay for later runs. */
    private static final class Target {
        final String connect;
        private final List<CuratorFramework> clients = new ArrayList<>();

        Target(String connect) throws Exception {
            this.connect = connect;
            client(0);
        }

        CuratorFramework client(int number) throws Exception {
            while (clients.size() <= number) {
                CuratorFramework client = Bench.client(connect, new ExponentialBackoffRetry(100, 5));
                clients.add(client);
                client.start();
                if (!client.blockUntilConnected(15, TimeUnit.SECONDS)) {
                    throw new IllegalStateException("no connection to " + connect);
                }
            }
            return clients.get(number);
        }

        void close() {
            clients.forEach(CuratorFramework::close);
        }
    }

    /** Names for the nodes a run creates, under a parent of its own, and the removal of all of them. */
    private final class Scratch {
        private final CuratorFramework client;
        private final String parent = BASE + "/run-" + runs;
        private final long[] counts; // each thread has an element and a series of names of its own

        Scratch(CuratorFramework client, int threads) throws Exception {
            this.client = client;
            counts = new long[threads];
            client.create().creatingParentsIfNeeded().forPath(parent);
        }

        String next(int thread) {
            return path(thread, counts[thread]++);
        }

        private String path(int thread, long number) {
            return parent + "/" + thread + "-" + number;
        }

        void remove() throws Exception {
            List<CuratorOp> deletes = new ArrayList<>();
            for (int thread = 0; thread < counts.length; thread++) {
                for (long number = 0; number < counts[thread]; number++) {
                    deletes.add(client.transactionOp().delete().forPath(path(thread, number)));
                    if (deletes.size() == DELETES_AT_ONCE) {
                        client.transaction().forOperations(deletes);
                        deletes.clear();
                    }
                }
            }
            deletes.add(client.transactionOp().delete().forPath(parent));
            client.transaction().forOperations(deletes);
        }
    }

    /** The outcome of a run, or of one thread's part in it. */
    private static final class Result {
        private final Map<String, Object> extra = new LinkedHashMap<>();
        private final Histogram latencies = new Histogram();
        private long ops;
        private long errors;
        private String firstError;
        private long elapsed;
        private long cpu;

        void start() {
            cpu = -OS.getProcessCpuTime();
            elapsed = -System.nanoTime();
        }

        void stop() {
            elapsed += System.nanoTime();
            cpu += OS.getProcessCpuTime();
        }

        synchronized void add(long latency) {
            ops++;
            if (latency >= 0) {
                latencies.add(latency);
            }
        }

        void fail(Exception e) {
            fail(e.toString());
        }

        synchronized void fail(String error) {
            errors++;
            firstError = firstError == null ? error : firstError;
        }

        void extra(String name, Object value) {
            extra.put(name, value);
        }

        void merge(Result part) {
            ops += part.ops;
            errors += part.errors;
            firstError = firstError == null ? part.firstError : firstError;
            latencies.merge(part.latencies);
        }

        Map<String, Object> fields() {
            Map<String, Object> fields = new LinkedHashMap<>();
            fields.put("ops", ops);
            fields.put("errors", errors);
            if (firstError != null) {
                fields.put("firstError", firstError);
            }
            fields.put("elapsedNs", elapsed);
            fields.put("cpuNs", cpu);
            fields.put("p50us", latencies.percentile(0.50) / 1e3);
            fields.put("p99us", latencies.percentile(0.99) / 1e3);
            fields.put("maxus", latencies.percentile(1) / 1e3);
            fields.putAll(extra);
            return fields;
        }
    }

    /** Counts values in classes not wider than 1/32 of the value. */
    private static final class Histogram {
        private static final int BITS = 5;
        private static final int HALF = 1 << BITS;
        private final long[] counts = new long[(64 - BITS) * HALF];
        private long total;

        void add(long value) {
            int shift = Math.max(0, 63 - BITS - Long.numberOfLeadingZeros(value));
            counts[shift * HALF + (int) (value >>> shift)]++;
            total++;
        }

        void merge(Histogram part) {
            for (int i = 0; i < counts.length; i++) {
                counts[i] += part.counts[i];
            }
            total += part.total;
        }

        /** Gives the middle of the class in which so great a part of the values is reached; 0 without any. */
        double percentile(double part) {
            long rank = Math.max(1, (long) Math.ceil(part * total));
            long seen = 0;
            for (int i = 0; i < counts.length; i++) {
                seen += counts[i];
                if (seen >= rank) {
                    int shift = Math.max(0, i / HALF - 1);
                    long low = (long) (i - shift * HALF) << shift;
                    return low + ((1L << shift) - 1) / 2.0;
                }
            }
            return 0;
        }
    }
}
