import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

/** The memory of the process. */
final class Memory {
    private Memory() {}

    /** Memory after a collection; rssKB is -1 if the system has no number. */
    static Map<String, Object> now() throws IOException {
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
}
