import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.LinkedHashMap;
import java.util.Map;

/** The outcome of a run, or of one thread's part in it. Operations after the end of a run do not count. */
final class Result {
    private static final OperatingSystemMXBean OS =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private final Map<String, Object> extra = new LinkedHashMap<>();
    private final Histogram latencies = new Histogram();
    private long ops;
    private long errors;
    private String firstError;
    private long elapsed;
    private long cpu;
    private boolean over;

    void start() {
        cpu = -OS.getProcessCpuTime();
        elapsed = -System.nanoTime();
    }

    synchronized void stop() {
        elapsed += System.nanoTime();
        cpu += OS.getProcessCpuTime();
        over = true;
    }

    synchronized void add(long latency) {
        if (over) {
            return;
        }
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

    synchronized Map<String, Object> fields() {
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
