import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Java Curator as the other side of an interop test. It reads one command a line from standard input and writes
 * one answer a line to standard output, both JSON:
 *
 * <pre>
 * {"id":1,"cmd":"getData","path":"/a"}
 * {"id":1,"ok":true,"value":{"data":"00ff","stat":{"version":0,...}}}
 * {"id":1,"error":"NoNodeException","message":"KeeperErrorCode = NoNode for /a"}
 * {"event":"state","scope":"","client":"","state":"SUSPENDED"}
 * </pre>
 *
 * A command may name a "scope". A {@link Scope} runs it, and holds the objects that it creates, apart from all others.
 * Lines with "event" are no answers. Bytes are hex. The program ends with its input.
 */
public final class Peer {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final PrintStream out;
    private final Map<String, Scope> scopes = new ConcurrentHashMap<>();

    public static void main(String[] args) throws IOException {
        PrintStream out = System.out;
        System.setOut(System.err); // only answers may go to standard output
        new Peer(out).serve(System.in);
    }

    private Peer(PrintStream out) {
        this.out = out;
    }

    /** Reads commands until the input ends, then closes what is open and ends the program. */
    private void serve(InputStream in) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode request = JSON.readTree(line);
            String name = request.path("scope").asText("");
            scopes.computeIfAbsent(name, absent -> new Scope(name, this)).take(new Args(request));
        }
        scopes.values().forEach(Scope::close);
        System.exit(0);
    }

    /** Closes the objects of a scope, and removes the scope. */
    void end(Scope scope) {
        scope.close();
        scopes.remove(scope.name());
    }

    /** Writes the answer to a command. */
    void answer(Args args, Object value) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("id", args.id());
        line.put("ok", true);
        line.put("value", value);
        write(line);
    }

    /** Writes the answer to a command that threw. */
    void fail(Args args, Throwable e) {
        write(Map.of("id", args.id(), "error", e.getClass().getSimpleName(), "message", String.valueOf(e.getMessage())));
    }

    synchronized void write(Map<String, Object> line) {
        try {
            out.println(JSON.writeValueAsString(line));
            out.flush();
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }
}
