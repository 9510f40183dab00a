import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.x.discovery.ServiceCache;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceProvider;

/** Discoveries, each with a cache and a provider of some services. The payloads are {@link Instances.Meta}. */
final class Discovery {
    private static final ObjectMapper JSON = new ObjectMapper();

    Discovery(Scope scope) {
        Named<Market> markets = scope.named("discovery");
        scope.on("discoveryStart", args -> {
            Market market = new Market(scope.client(args), args.path(), args.texts("services"));
            markets.put(args, market);
            market.start();
            return null;
        });
        scope.on("discoveryRegister", args -> {
            markets.get(args).discovery.registerService(instance(args.json().get("instance")));
            return null;
        });
        scope.on("discoveryView", args -> markets.get(args).view());
        scope.on("discoveryClose", args -> {
            markets.remove(args).close();
            return null;
        });
    }

    private static ServiceInstance<Instances.Meta> instance(JsonNode fields) throws Exception {
        return ServiceInstance.<Instances.Meta>builder()
                .name(fields.get("name").asText())
                .id(fields.get("id").asText())
                .address(fields.get("address").asText())
                .port(fields.get("port").asInt())
                .registrationTimeUTC(fields.get("registrationTimeUTC").asLong())
                .payload(JSON.treeToValue(fields.get("payload"), Instances.Meta.class))
                .build();
    }

    /** A discovery and what follows its services. */
    private static final class Market implements Closeable {
        private final ServiceDiscovery<Instances.Meta> discovery;
        private final Map<String, ServiceCache<Instances.Meta>> caches = new LinkedHashMap<>();
        private final Map<String, ServiceProvider<Instances.Meta>> providers = new LinkedHashMap<>();

        Market(CuratorFramework client, String path, List<String> services) {
            discovery = ServiceDiscoveryBuilder.builder(Instances.Meta.class)
                    .client(client)
                    .basePath(path)
                    .build();
            for (String service : services) {
                caches.put(service, discovery.serviceCacheBuilder().name(service).build());
                providers.put(service, discovery.serviceProviderBuilder().serviceName(service).build());
            }
        }

        void start() throws Exception {
            discovery.start();
            for (ServiceCache<Instances.Meta> cache : caches.values()) {
                cache.start();
            }
            for (ServiceProvider<Instances.Meta> provider : providers.values()) {
                provider.start();
            }
        }

        /** Returns the instances of each service: of the cache, of the provider in its turns, and of the server. */
        Map<String, Object> view() throws Exception {
            Map<String, Object> view = new LinkedHashMap<>();
            for (String service : caches.keySet()) {
                ServiceProvider<Instances.Meta> provider = providers.get(service);
                List<ServiceInstance<Instances.Meta>> turns = new ArrayList<>();
                for (int left = provider.getAllInstances().size(); left > 0; left--) {
                    ServiceInstance<Instances.Meta> next = provider.getInstance();
                    if (next != null) {
                        turns.add(next);
                    }
                }
                view.put(service, Map.of(
                        "cache", fields(caches.get(service).getInstances()),
                        "provider", fields(turns),
                        "query", fields(discovery.queryForInstances(service))));
            }
            return view;
        }

        private static List<Object> fields(Iterable<ServiceInstance<Instances.Meta>> instances) throws Exception {
            List<Object> all = new ArrayList<>();
            for (ServiceInstance<Instances.Meta> instance : instances) {
                all.add(Instances.fields(instance));
            }
            return all;
        }

        @Override
        public void close() throws IOException {
            for (ServiceCache<Instances.Meta> cache : caches.values()) {
                cache.close();
            }
            discovery.close(); // its providers, too
        }
    }
}
