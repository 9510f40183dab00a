import com.fasterxml.jackson.databind.ObjectMapper;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Date;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceType;
import org.apache.curator.x.discovery.UriSpec;
import org.apache.curator.x.discovery.details.JsonInstanceSerializer;

/** The bytes of service instances. */
final class Instances {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** A payload that is an enum; a constant may have a body. */
    public enum Color {
        RED,
        GREEN {
            @Override
            public String toString() {
                return "g";
            }
        }
    }

    /** A part of a payload. */
    public static class Inner {
        public int n = 3;
        public String s = null;
        public List<String> l = Arrays.asList("a", "b");
    }

    /** A payload that is a bean. */
    public static class Meta {
        public String zone = "eu";
        public int weight = 5;
        public Inner inner = new Inner();
        public Map<String, Object> m = new LinkedHashMap<>();
        public double d = 1;
        public float f = 0.1f;
        public long big = 1L << 56;
        public byte[] raw = {1, 2, (byte) 255};
        public Date when = new Date(1_700_000_000_000L);
        public Color c = Color.GREEN;
        public boolean ok = true;
    }

    Instances(Scope scope) {
        scope.on("instanceWrite", args -> {
            boolean compatible = !args.flag("enabledMember");
            return Args.hex(serializer("java.lang.Object", compatible).serialize(instance(args.text("label"))));
        });
        scope.on("instanceRead", args -> fields(
                serializer(args.text("class"), true).deserialize(args.bytes("data"))));
        scope.on("instanceRewrite", args -> {
            JsonInstanceSerializer<Object> serializer = serializer(args.text("class"), !args.flag("enabledMember"));
            return Args.hex(serializer.serialize(serializer.deserialize(args.bytes("data"))));
        });
    }

    @SuppressWarnings("unchecked")
    private static JsonInstanceSerializer<Object> serializer(String name, boolean compatible) throws Exception {
        return new JsonInstanceSerializer<>((Class<Object>) Class.forName(name), compatible);
    }

    /** Returns an instance with a payload or, if the label begins with "uri ", with a URI spec. */
    private static ServiceInstance<Object> instance(String label) {
        if (label.startsWith("uri ")) {
            return new ServiceInstance<>("n", "i", "1.2.3.4", 80, 443, null, 5, ServiceType.DYNAMIC_SEQUENTIAL,
                    new UriSpec(label.substring(4)));
        }
        return new ServiceInstance<>("n", "i", "1.2.3.4", 80, null, payload(label), 5, ServiceType.DYNAMIC, null);
    }

    private static Object payload(String label) {
        Map<String, Object> map = new LinkedHashMap<>();
        switch (label) {
            case "null": return null;
            case "String": return "a<b>&\u00e9\u2028\u0001\"\\/\t\u007f\ud83d\ude00";
            case "controls": return "\u0000\u0007\b\n\u000b\f\r\u000e\u001f\u0080\uffff";
            case "Integer": return 5;
            case "Long": return 5L;
            case "Short": return (short) 5;
            case "Byte": return (byte) 5;
            case "Float": return 1.5f;
            case "Double": return 1.0;
            case "Double1e10": return 1e10;
            case "Double0.001": return 0.001;
            case "Double1e-4": return -1.25e-4;
            case "Double1e7": return 1e7;
            case "Double9999999.5": return 9999999.5;
            case "Double-0": return -0.0;
            case "DoubleNaN": return Double.NaN;
            case "Double-Inf": return Double.NEGATIVE_INFINITY;
            case "FloatInf": return Float.POSITIVE_INFINITY;
            case "Boolean": return true;
            case "Character": return 'c';
            case "BigDecimal": return new BigDecimal("1.50");
            case "BigInteger": return new BigInteger("7");
            case "Date": return new Date(1_700_000_000_000L);
            case "UUID": return new UUID(1, 2);
            case "enum": return Color.RED;
            case "enum-body": return Color.GREEN;
            case "byte[]": return new byte[] {1, 2, (byte) 255};
            case "int[]": return new int[] {1, 2};
            case "String[]": return new String[] {"a"};
            case "ArrayList": return new ArrayList<Object>(Arrays.asList("a", 1, 2L));
            case "Arrays.asList": return Arrays.asList("a");
            case "List.of": return List.of("a");
            case "emptyList": return Collections.emptyList();
            case "LinkedHashMap":
                map.put("k", 1);
                map.put("l", 2L);
                map.put("x", Arrays.asList(1, "b"));
                map.put("nul", null);
                return map;
            case "HashMap": return new HashMap<>(Map.of("k", "v"));
            case "Map.of": return Map.of("k", "v");
            case "Set": return new HashSet<>(Arrays.asList("a"));
            case "Optional": return Optional.of("a");
            case "bean": return new Meta();
            default: throw new IllegalArgumentException("no payload " + label);
        }
    }

    /** Returns the fields of an instance that are not what {} has. */
    static Map<String, Object> fields(ServiceInstance<?> instance) throws Exception {
        Map<String, Object> fields = new LinkedHashMap<>();
        put(fields, "name", instance.getName(), "");
        put(fields, "id", instance.getId(), "");
        put(fields, "address", instance.getAddress(), "");
        put(fields, "port", instance.getPort(), 0);
        put(fields, "sslPort", instance.getSslPort(), 0);
        put(fields, "payload", JSON.valueToTree(instance.getPayload()), JSON.getNodeFactory().nullNode());
        put(fields, "registrationTimeUTC", instance.getRegistrationTimeUTC(), 0L);
        put(fields, "serviceType", instance.getServiceType(), ServiceType.DYNAMIC);
        if (instance.getUriSpec() != null) {
            put(fields, "parts", JSON.valueToTree(instance.getUriSpec().getParts()), JSON.createArrayNode());
            put(fields, "uri", instance.buildUriSpec(), "");
        }
        put(fields, "enabled", instance.isEnabled(), true);
        return fields;
    }

    private static void put(Map<String, Object> fields, String name, Object value, Object absent) {
        if (value != null && !value.equals(absent)) {
            fields.put(name, value);
        }
    }
}
