import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;

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
 * Several targets may be open. A run creates what it needs before its clock starts, and removes it after the clock
 * has stopped. cpuNs is the CPU time of the whole process, its garbage collector and compiler included. A latency is
 * that of the whole operation unless the case has another. The program ends with its input.
 */
public final class Bench {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Map<String, Case> cases = new LinkedHashMap<>();
    private final Map<String, Target> targets = new HashMap<>();

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
        Operations.addTo(cases);
        Connections.addTo(cases);
        Locks.addTo(cases);
        Latches.addTo(cases);
        Queues.addTo(cases);
        Barriers.addTo(cases);
        Counters.addTo(cases);
        Shared.addTo(cases);
        Nodes.addTo(cases);
        Services.addTo(cases);
        Caches.addTo(cases);
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
                return work.run(new Load(targets.get(target), request)).fields();
            case "memory":
                return Memory.now();
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
}
