import com.fasterxml.jackson.databind.JsonNode;

/** The arguments of a run. */
final class Load {
    final Target target;
    final String lock;
    final int threads;
    final double seconds;
    final int window;
    final int payload;
    final int waiters;
    final int leases;
    final int batch;
    final boolean safe;
    final String cache;

    Load(Target target, JsonNode request) {
        this.target = target;
        lock = request.path("lock").asText("mutex");
        threads = request.path("threads").asInt(1);
        seconds = request.path("seconds").asDouble(1);
        window = request.path("window").asInt(1000);
        payload = request.path("payload").asInt(100);
        waiters = request.path("waiters").asInt(1000);
        leases = request.path("leases").asInt(1);
        batch = request.path("batch").asInt(1);
        safe = request.path("safe").asBoolean(false);
        cache = request.path("cache").asText("curator");
    }

    long nanos() {
        return (long) (seconds * 1e9);
    }
}
