import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** The arguments of a command. */
record Args(JsonNode json) {
    static final HexFormat HEX = HexFormat.of();

    /** For the answers and the events. */
    static String hex(byte[] bytes) {
        return bytes == null ? null : HEX.formatHex(bytes);
    }

    long id() {
        return json.path("id").asLong();
    }

    /** The name of the object that the command is for. */
    String name() {
        return text("name");
    }

    String path() {
        return text("path");
    }

    /** The longest wait, in milliseconds. A day is longer than any test. */
    long timeout() {
        long timeout = json.path("timeoutMs").asLong(-1);
        return timeout < 0 ? TimeUnit.DAYS.toMillis(1) : timeout;
    }

    String text(String key) {
        if (!json.hasNonNull(key)) {
            throw new IllegalArgumentException("no argument " + key);
        }
        return json.get(key).asText();
    }

    String text(String key, String absent) {
        return json.hasNonNull(key) ? json.get(key).asText() : absent;
    }

    List<String> texts(String key) {
        List<String> texts = new ArrayList<>();
        json.path(key).forEach(text -> texts.add(text.asText()));
        return texts;
    }

    int number(String key) {
        return (int) longNumber(key);
    }

    int number(String key, int absent) {
        return json.path(key).asInt(absent);
    }

    long longNumber(String key) {
        if (!json.path(key).isIntegralNumber()) {
            throw new IllegalArgumentException("no number " + key);
        }
        return json.get(key).asLong();
    }

    boolean flag(String key) {
        return json.path(key).asBoolean();
    }

    byte[] bytes(String key) {
        return json.hasNonNull(key) ? HEX.parseHex(json.get(key).asText()) : null;
    }
}
